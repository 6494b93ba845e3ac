// Hash functions for numbers, for tables in memory: hashes are not stored in files.
#pragma once

#include <bit>
#include <cstdint>

namespace shardscape {

/// 2^64 / golden ratio (Knuth, The Art of Computer Programming 3, section 6.4).
inline constexpr std::uint64_t kGoldenHash = 0x9E3779B97F4A7C15ULL;

/// Continues a hash with one more word.
constexpr std::uint64_t hash_word(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * kGoldenHash;
  return hash ^ (hash >> 32);
}

/// The hash of a container of integers or doubles.
template <class Words>
std::uint64_t hash_words(const Words& words) {
  std::uint64_t hash = words.size();
  for (const auto word : words) hash = hash_word(hash, std::bit_cast<std::uint64_t>(word));
  return hash;
}

}  // namespace shardscape
