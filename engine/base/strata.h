// A stratified choice of whole numbers: one of each of equally large consecutive parts.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/base/counter_rng.h"

namespace shardscape {

/// Member `index` of a choice of `count` of the numbers [0, population), 1 <= count <= population: the range
/// is cut into `count` consecutive parts whose sizes differ by at most one, and one number is drawn from part
/// `index`, uniformly and keyed by (seed, index). Ascends with `index`. Each number is as likely as any other
/// up to the rounding of the sizes, so that means over the choice estimate those over the population; that
/// the draw is random within a part keeps it from falling in step with a digit of the numbers (Cochran 1977,
/// "Sampling Techniques", 3rd ed., sections 5.2 and 8.3).
inline std::uint64_t stratified_choice(std::uint64_t population, std::uint64_t count, std::uint64_t index,
                                       std::uint64_t seed) {
  const std::uint64_t size = population / count, larger = population % count;
  const std::uint64_t first = size * index + std::min(index, larger);
  return first + CounterRng(seed, index).below(size + (index < larger ? 1 : 0));
}

}  // namespace shardscape
