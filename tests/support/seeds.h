// How many random cases a property test draws: under sanitizers a sixteenth of those that the optimised build draws.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardscape::test {

// g++ says so by a macro, clang by a feature.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SHARDSCAPE_FEW_SEEDS
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SHARDSCAPE_FEW_SEEDS
#endif

#if defined(SHARDSCAPE_FEW_SEEDS)
inline constexpr std::uint64_t kSeedDivisor = 16;
#else
inline constexpr std::uint64_t kSeedDivisor = 1;
#endif

constexpr std::uint64_t seeds(std::uint64_t in_a_normal_build) {
  return std::max<std::uint64_t>(1, in_a_normal_build / kSeedDivisor);
}

/// The same of a test that goes on until it has seen so many cases.
constexpr int cases(int in_a_normal_build) {
  return std::max(1, in_a_normal_build / static_cast<int>(kSeedDivisor));
}

/// How many of the cases must have been of a kind; a few cases need not hold any.
constexpr int at_least(int in_a_normal_build) { return kSeedDivisor > 1 ? 0 : in_a_normal_build; }

/// Whether there are enough cases to ask for shares of them.
constexpr bool all_seeds() { return kSeedDivisor == 1; }

/// Of a list of cases each of which takes long, the first of every `in_so_many` in builds that are slow.
template <class T>
std::vector<T> some_of(const std::vector<T>& cases, std::size_t in_so_many) {
  std::vector<T> some;
  for (std::size_t i = 0; i < cases.size(); i += all_seeds() ? 1 : in_so_many) some.push_back(cases[i]);
  return some;
}

/// A size of a case that takes long, and the one that builds that are slow make do with.
template <class T>
constexpr T size_of_case(T in_a_normal_build, T in_a_slow_one) {
  return all_seeds() ? in_a_normal_build : in_a_slow_one;
}

}  // namespace shardscape::test
