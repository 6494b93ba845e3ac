// The 1f1b schedule, and the functions that it shares with other schedules which alternate one backward and one forward
// after their warm-up.
#include <algorithm>

#include "engine/base/check.h"
#include "engine/schedule/schedule_rules.h"

namespace shardscape::schedule {

namespace {

/// The k-th forward of a stage: groups of `stages` microbatches go through the chunks in turn.
PipelineOperation nth_forward(const PipelineShape& shape, std::int32_t k) {
  if (shape.virtual_stages == 1) return {.microbatch = k};
  const std::int32_t group_size = shape.stages * shape.virtual_stages;
  return {.chunk = k % group_size / shape.stages,
          .microbatch = k / group_size * shape.stages + k % shape.stages};
}

/// The k-th backward: the same, from the last chunk to the first.
PipelineOperation nth_backward(const PipelineShape& shape, std::int32_t k) {
  const PipelineOperation forward = nth_forward(shape, k);
  return {
      .backward = true, .chunk = shape.virtual_stages - 1 - forward.chunk, .microbatch = forward.microbatch};
}

/// Whether the backwards change to the next chunk in the second half of the forwards of a chunk, of a stage with so
/// many forwards in its warm-up.
bool mostly_late(const PipelineShape& shape, std::int32_t first) {
  return shape.virtual_stages > 1 && 2 * (first % shape.stages) > shape.stages;
}

}  // namespace

std::int32_t one_f_one_b_warm_up(const PipelineShape& shape, std::int32_t stage) {
  return std::min(shape.forwards(), shape.stages - stage);
}

void alternating_order(const PipelineShape& shape, std::int32_t stage,
                       std::vector<PipelineOperation>& order) {
  SHARDSCAPE_CHECK(shape.virtual_stages == 1 || shape.microbatches % shape.stages == 0, shape.microbatches,
                   shape.stages);
  const std::int32_t total = shape.forwards(), first = warm_up(shape, stage);
  order.clear();
  order.reserve(2 * static_cast<std::size_t>(total));
  for (std::int32_t k = 0; k < first; ++k) order.push_back(nth_forward(shape, k));
  for (std::int32_t k = 0; k < total; ++k) {
    const bool more = first + k < total, paired = more && shape.overlaps;
    PipelineOperation forward = more ? nth_forward(shape, first + k) : PipelineOperation{};
    forward.paired = paired;
    const bool late = shape.virtual_stages > 1 && (first + k) % shape.stages < first % shape.stages;
    forward.rare = paired && late != mostly_late(shape, first);
    if (paired) order.push_back(forward);
    order.push_back(nth_backward(shape, k));
    if (more && !paired) order.push_back(forward);
  }
}

std::array<HeldMicrobatches, 3> alternating_peaks(const PipelineShape& shape, std::int32_t stage) {
  const std::int32_t first = warm_up(shape, stage);
  const std::int32_t most = shape.overlaps ? std::min(shape.forwards(), first + 1) : first;
  return {{{most, 0}, {most, 0}, {most, 0}}};
}

std::array<Partner, 2> alternating_partners(const PipelineShape& shape, std::int32_t stage,
                                            std::int32_t chunk) {
  const std::int32_t first = warm_up(shape, stage), v = shape.virtual_stages, group = shape.stages * v;
  // The forwards of the warm-up have no partner: all chunks of its whole groups, and of its last group the first
  // chunks.
  const std::int32_t alone = v == 1 ? first
                                    : first / group * shape.stages +
                                          std::clamp(first % group - chunk * shape.stages, 0, shape.stages);
  const std::int32_t all = shape.overlaps ? shape.per_chunk() - alone : 0;
  // Backward k, of chunk v - 1 - k / S, is paired with forward k + w: while S forwards of one chunk run, the backwards
  // change to the next chunk after w % S of them. If the warm-up ends within a chunk, these have gone by there.
  const std::int32_t late = v == 1 ? 0 : first % shape.stages * (all / shape.stages);
  const auto partner = [&](std::int32_t ahead, std::int32_t pairs) {
    return Partner{v - 1 - ((chunk - ahead) % v + v) % v, pairs};
  };
  const std::array<Partner, 2> both = {partner(first / shape.stages, all - late),
                                       partner(first / shape.stages + 1, late)};
  return mostly_late(shape, first) ? std::array{both[1], both[0]} : both;
}

constinit const ScheduleRules kOneFOneBRules = {.warm_up = one_f_one_b_warm_up, .waves = true};

}  // namespace shardscape::schedule
