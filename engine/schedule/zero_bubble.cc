#include <algorithm>

#include "engine/base/check.h"
#include "engine/schedule/schedule_rules.h"

namespace shardscape::schedule {

namespace {

/// 1f1b with input gradients for backwards; the weight gradient of a microbatch follows the `stage`-th of them behind
/// it.
void zero_bubble_order(const PipelineShape& shape, std::int32_t stage,
                       std::vector<PipelineOperation>& order) {
  SHARDSCAPE_CHECK(shape.virtual_stages == 1, shape.virtual_stages);
  std::vector<PipelineOperation> plain;
  alternating_order(shape, stage, plain);
  order.clear();
  order.reserve(3 * static_cast<std::size_t>(shape.microbatches));
  const auto add_weight = [&](std::int32_t microbatch) {
    order.push_back({.backward = true, .microbatch = microbatch, .weight = true});
  };
  for (PipelineOperation& op : plain) {
    op.cut = op.backward;
    order.push_back(op);
    if (op.backward && op.microbatch >= stage) add_weight(op.microbatch - stage);
  }
  for (std::int32_t k = std::max(0, shape.microbatches - stage); k < shape.microbatches; ++k) add_weight(k);
}

// When the k-th backward begins, min(w, m - k) microbatches are in flight and min(k, s) are put off. The first number
// falls from k = m - w on, the second rises up to k = s, so that a sum of positive multiples of both is largest where
// one of them bends: at k = m - w or at k = s.
std::array<HeldMicrobatches, 3> zero_bubble_peaks(const PipelineShape& shape, std::int32_t stage) {
  const std::int32_t total = shape.microbatches, first = warm_up(shape, stage);
  const auto at = [&](std::int32_t k) {
    return HeldMicrobatches{std::min(first, total - k), std::min(k, stage)};
  };
  return {at(0), at(total - first), at(std::min(stage, total - 1))};
}

}  // namespace

constinit const ScheduleRules kZeroBubbleRules = {
    .warm_up = one_f_one_b_warm_up, .order = zero_bubble_order, .peaks = zero_bubble_peaks, .waves = true};

}  // namespace shardscape::schedule
