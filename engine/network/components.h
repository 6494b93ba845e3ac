// Finds groups that are connected by shared links, and which of these components are alike.
#pragma once

#include <bit>
#include <cstdint>
#include <numeric>
#include <vector>

namespace shardscape::network {

/// Disjoint sets of the numbers 0 .. n-1.
class UnionFind {
 public:
  explicit UnionFind(std::size_t n) : parent_(n) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  std::size_t root(std::size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(std::size_t a, std::size_t b) { parent_[root(b)] = root(a); }
  /// The sets, in the order of their first members; members ascend.
  std::vector<std::vector<std::size_t>> sets() {
    std::vector<std::vector<std::size_t>> result;
    std::vector<std::size_t> number(parent_.size(), parent_.size());
    for (std::size_t i = 0; i < parent_.size(); ++i) {
      std::size_t& set = number[root(i)];
      if (set == parent_.size()) {
        set = result.size();
        result.emplace_back();
      }
      result[set].push_back(i);
    }
    return result;
  }

 private:
  std::vector<std::size_t> parent_;
};

/// A 128-bit hash of a sequence of numbers. Equal sequences have equal hashes; that different sequences do is so
/// unlikely (one pair in some 2^64) that it is neglected.
class Signature {
 public:
  void add(std::uint64_t value) {
    first_ = mix(first_ ^ value, 0xFF51AFD7ED558CCDULL);
    second_ = mix(second_ + value, 0xC4CEB9FE1A85EC53ULL);
  }
  void add(double value) { add(std::bit_cast<std::uint64_t>(value)); }
  friend auto operator<=>(const Signature&, const Signature&) = default;

 private:
  static std::uint64_t mix(std::uint64_t value, std::uint64_t factor) {
    value *= factor;
    return value ^ (value >> 31);
  }
  std::uint64_t first_ = 0x9E3779B97F4A7C15ULL, second_ = 0x2545F4914F6CDD1DULL;
};

}  // namespace shardscape::network
