// Hashes of 128 bits, for comparing what is too long to be compared itself.
#pragma once

#include <bit>
#include <compare>
#include <cstdint>

#include "engine/base/hash.h"

namespace shardscape {

/// A 128-bit hash of a sequence of numbers, or a sum of such hashes, which stands for a multiset. Equal ones have equal
/// hashes; that different ones do is so unlikely (one pair in some 2^64) that it is neglected.
class Signature {
 public:
  constexpr Signature() = default;
  /// The hash of one word. Sums of these have no structure, as sums of hash_word() have.
  static constexpr Signature of(std::uint64_t word) {
    Signature one;
    one.first_ = scrambled(kGoldenHash * (word + 1));
    one.second_ = scrambled(one.first_ + kGoldenHash);
    return one;
  }

  void add(std::uint64_t value) {
    first_ = mix(first_ ^ value, 0xFF51AFD7ED558CCDULL);
    second_ = mix(second_ + value, 0xC4CEB9FE1A85EC53ULL);
  }
  void add(double value) { add(std::bit_cast<std::uint64_t>(value)); }
  Signature& operator+=(const Signature& other) {
    first_ += other.first_;
    second_ += other.second_;
    return *this;
  }
  Signature& operator-=(const Signature& other) {
    first_ -= other.first_;
    second_ -= other.second_;
    return *this;
  }
  friend auto operator<=>(const Signature&, const Signature&) = default;
  /// Half of its bits, for tables.
  [[nodiscard]] std::uint64_t half() const { return first_; }

 private:
  static constexpr std::uint64_t mix(std::uint64_t value, std::uint64_t factor) {
    value *= factor;
    return value ^ (value >> 31);
  }
  /// The finaliser of SplitMix64 (Steele, Lea and Flood 2014).
  static constexpr std::uint64_t scrambled(std::uint64_t word) {
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9ULL;
    return mix(word ^ (word >> 27), 0x94D049BB133111EBULL);
  }
  std::uint64_t first_ = kGoldenHash, second_ = 0x2545F4914F6CDD1DULL;
};

}  // namespace shardscape
