// By how much the slowest of many ranks holds up a training step.
//
// Devices of one kind differ: at the same power limit chips reach different clocks, and hosts and memories differ, too
// (Sinha et al. 2022, "Not All GPUs Are Created Equal": some 8 % between the best and the worst of a cluster). The
// groups of a plan meet in every layer, microbatch or step, so that a step goes at the pace of the slowest of all its
// ranks. If what ranks take spreads normally with the share s around its mean, the slowest of n takes
//
//     1 + s e(n),   e(n) = Phi^-1((n - 3/8) / (n + 1/4))
//
// of the mean (Blom 1958, "Statistical Estimates and Transformed Beta-Variables"). The rates of devices are those that
// nodes of eight were seen to reach, so what counts is e(n) - e(8), nothing up to a node. Left out: ranks that are slow
// in one step and fast in the next, which larger plans average over their microbatches.
#pragma once

#include <cstdint>

#include "engine/spec/scenario.h"

namespace shardscape::step {

/// e(n): the mean of the largest of n standard normals, within 0.03 of it. n >= 1.
double expected_largest(double n);

/// What everything takes on the slowest of so many ranks, over what it takes on that of a node, at least 1.
double slowest_of(double spread, std::int64_t ranks);

/// The same of the ranks of a setting: 1 where it serves.
double slowest_rank(const Setting& setting);

}  // namespace shardscape::step
