// The axes of a study as lists of values, before they are multiplied out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/spec/plan.h"

namespace shardscape::sweep {

/// Values of one parallel degree, ascending and distinct; `fill` means gpus / (product of the other three),
/// built rather than filtered. At most one axis fills. `powers_of_two` and `divisors` are expanded to values
/// (up to gpus) when the study is read.
struct DegreeAxis {
  bool fill = false;
  std::vector<std::int32_t> values;
};

/// Every list is non-empty, distinct and in the order the study gives.
struct SpaceSpec {
  DegreeAxis tensor{false, {1}}, context{false, {1}}, pipeline{false, {1}}, data{true, {}};
  std::vector<bool> sequence_parallel{false};
  std::vector<std::int32_t> zero_stage{0};
  std::vector<Recompute> recompute{Recompute::none};
  std::vector<std::int32_t> microbatch{1};
  std::vector<ScheduleKind> schedule{ScheduleKind::one_f_one_b};
  std::vector<std::int32_t> virtual_stages{2};  ///< used by the interleaved schedule only
  std::vector<RankOrder> rank_order{kDefaultRankOrder};
  // Inference: the pool that prefills; its replicas follow from the other three. 0 GPUs: none.
  std::vector<std::int32_t> prefill_gpus{0};
  std::vector<std::int32_t> prefill_tensor{1}, prefill_pipeline{1};
  std::vector<std::string> constraints;  ///< source text of each expression
};

}  // namespace shardscape::sweep
