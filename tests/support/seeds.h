// How many random cases a test draws: a tenth in builds that are slow.
#pragma once

#include <algorithm>
#include <cstdint>

namespace shardscape::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr std::uint64_t kSeedDivisor = 10;
#else
inline constexpr std::uint64_t kSeedDivisor = 1;
#endif

constexpr std::uint64_t seeds(std::uint64_t in_a_normal_build) {
  return std::max<std::uint64_t>(1, in_a_normal_build / kSeedDivisor);
}

/// How many of the cases must have been of a kind; a few cases need not hold any.
constexpr int at_least(int in_a_normal_build) { return kSeedDivisor > 1 ? 0 : in_a_normal_build; }

}  // namespace shardscape::test
