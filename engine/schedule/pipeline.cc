#include "engine/schedule/pipeline.h"

#include <algorithm>

#include "engine/base/check.h"
#include "engine/schedule/dualpipe.h"
#include "engine/schedule/ordered_run.h"

namespace shardscape::schedule {

namespace {

std::int32_t total_operations(const PipelineShape& shape) { return shape.per_chunk() * shape.virtual_stages; }

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

}  // namespace

std::int32_t warm_up(const PipelineShape& shape, std::int32_t stage) {
  const std::int32_t total = total_operations(shape);
  switch (shape.kind) {
    case ScheduleKind::gpipe:
      return total;
    case ScheduleKind::one_f_one_b:
    case ScheduleKind::zero_bubble:
      return std::min(total, shape.stages - stage);
    case ScheduleKind::interleaved:
      if (shape.microbatches == shape.stages) return total;
      return std::min(total, 2 * (shape.stages - stage - 1) + (shape.virtual_stages - 1) * shape.stages + 1);
    case ScheduleKind::dualpipe:
      return shape.stages + (stage == shape.stages / 2 || stage + 1 == shape.stages / 2 ? 1 : 0);
  }
  return total;
}

void stage_order(const PipelineShape& shape, std::int32_t stage, std::vector<PipelineOperation>& order) {
  if (shape.both_ways()) return dualpipe_order(shape, stage, order);
  const bool cut = shape.kind == ScheduleKind::zero_bubble;
  SHARDSCAPE_CHECK(!cut || shape.virtual_stages == 1, shape.virtual_stages);
  SHARDSCAPE_CHECK(shape.virtual_stages == 1 || shape.microbatches % shape.stages == 0, shape.microbatches,
                   shape.stages);
  const std::int32_t total = total_operations(shape);
  const std::int32_t first = warm_up(shape, stage);
  order.clear();
  order.reserve((cut ? 3 : 2) * static_cast<std::size_t>(total));
  for (std::int32_t k = 0; k < first; ++k) order.push_back(nth_forward(shape, k));
  for (std::int32_t k = 0; k < total; ++k) {
    const bool more = first + k < total, paired = more && shape.overlaps;
    PipelineOperation forward = more ? nth_forward(shape, first + k) : PipelineOperation{};
    forward.paired = paired;
    if (paired) order.push_back(forward);
    order.push_back(nth_backward(shape, k));
    order.back().cut = cut;
    if (cut && k >= stage) order.push_back({.backward = true, .microbatch = k - stage, .weight = true});
    if (more && !paired) order.push_back(forward);
  }
  if (!cut) return;
  for (std::int32_t k = std::max(0, total - stage); k < total; ++k)
    order.push_back({.backward = true, .microbatch = k, .weight = true});
}

std::int32_t in_flight(const PipelineShape& shape, std::int32_t stage) {
  if (shape.both_ways()) return shape.stages + 1;
  const std::int32_t first = warm_up(shape, stage);
  return shape.overlaps ? std::min(total_operations(shape), first + 1) : first;
}

std::int32_t pairs(const PipelineShape& shape, std::int32_t stage, std::int32_t chunk) {
  if (shape.both_ways()) return dualpipe_pairs(shape, stage, chunk);
  if (!shape.overlaps) return 0;
  // The forwards of the warm-up have no partner: all chunks of its whole groups, and of its last group the first
  // chunks.
  const std::int32_t group = shape.stages * shape.virtual_stages, first = warm_up(shape, stage);
  const std::int32_t alone =
      first / group * shape.stages + std::clamp(first % group - chunk * shape.stages, 0, shape.stages);
  return shape.per_chunk() - (shape.virtual_stages == 1 ? first : alone);
}

std::int32_t mate(const PipelineShape& shape, std::int32_t stage, std::int32_t chunk) {
  if (shape.both_ways()) return 1 - chunk;
  // Backward k, of chunk v - 1 - k / S, is paired with forward k + w. While S backwards of one chunk run, the forwards
  // change to the next chunk after S - w % S of them.
  const std::int32_t first = warm_up(shape, stage), v = shape.virtual_stages;
  const std::int32_t ahead = first / shape.stages + (2 * (first % shape.stages) > shape.stages ? 1 : 0);
  return v - 1 - ((chunk - ahead) % v + v) % v;
}

// When the k-th backward begins, min(w, m - k) microbatches are in flight and min(k, s) are put off. The first number
// falls from k = m - w on, the second rises up to k = s, so that a sum of positive multiples of both is largest where
// one of them bends: at k = m - w or at k = s.
std::array<HeldMicrobatches, 3> peaks(const PipelineShape& shape, std::int32_t stage) {
  const std::int32_t total = total_operations(shape);
  if (shape.both_ways()) return dualpipe_peaks(shape, stage);
  const std::int32_t first = warm_up(shape, stage), most = in_flight(shape, stage);
  if (shape.kind != ScheduleKind::zero_bubble) return {{{most, 0}, {most, 0}, {most, 0}}};
  const auto at = [&](std::int32_t k) {
    return HeldMicrobatches{std::min(first, total - k), std::min(k, stage)};
  };
  return {at(0), at(total - first), at(std::min(stage, total - 1))};
}

std::vector<double> run_in_order(const PipelineShape& shape, std::span<const StageTime> times,
                                 const Transfer& transfer, std::vector<PipelineSpan>* spans) {
  return OrderedRun().run(shape, times, transfer, spans);
}

std::vector<double> chunk_ends(const PipelineShape& shape, std::span<const PipelineSpan> spans,
                               const Transfer& transfer) {
  if (!shape.wraps()) return {};
  const auto chunks = static_cast<std::size_t>(shape.virtual_stages);
  std::vector<double> ends(static_cast<std::size_t>(shape.stages) * chunks);
  for (const PipelineSpan& span : spans) {
    const PipelineOperation& op = span.operation;
    if (!op.backward || op.weight || op.microbatch + 1 != shape.per_chunk()) continue;
    ends[static_cast<std::size_t>(span.stage) * chunks + static_cast<std::size_t>(op.chunk)] =
        transfer.blocking ? span.sent : span.end;
  }
  return ends;
}

}  // namespace shardscape::schedule
