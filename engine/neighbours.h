// Finds what to change in a plan that does not fit.
//
// Plans are neighbours when one move leads from one to the other. Moves keep the GPUs, the global batch and
// the work:
//   recompute more; a smaller microbatch (half); a higher ZeRO stage; sequence parallelism on; the schedule
//   to 1f1b; twice the tensor, context or pipeline degree, half of another degree (the degrees of experts become the
//   largest that divide the ranks of a stage); of mixtures of experts twice or half of a degree of experts.
// Inference has the moves of degrees alone, and those of experts only where they have no GPUs of their own. The nearest
// feasible plans are those that the fewest moves reach.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/spec/prediction.h"
#include "engine/spec/scenario.h"

namespace shardscape {

struct Neighbour {
  ParallelPlan plan;
  std::int32_t moves = 0;
  Prediction prediction;  ///< its status is ok
};

/// Up to `wanted` plans of status ok within `most_moves` moves of `plan`, fewest moves first, then the
/// fastest. Breadth-first: all plans of n moves are looked at before any of n + 1, of three moves at most
/// some ten thousand in all.
std::vector<Neighbour> nearest_feasible(const Setting& setting, const ParallelPlan& plan, std::size_t wanted,
                                        std::int32_t most_moves = 3);

}  // namespace shardscape
