#include "engine/schedule/pipeline.h"

#include <algorithm>

#include "engine/base/check.h"

namespace shardscape::schedule {

namespace {

std::int32_t total_operations(const PipelineShape& shape) {
  return shape.microbatches * shape.virtual_stages;
}

/// The k-th forward (or backward) of a stage: groups of `stages` microbatches visit chunk after chunk,
/// backwards from the last chunk to the first.
PipelineOperation operation(const PipelineShape& shape, std::int32_t k, bool backward) {
  if (shape.virtual_stages == 1) return {backward, 0, k};
  const std::int32_t group_size = shape.stages * shape.virtual_stages;
  const std::int32_t in_group = k % group_size;
  const std::int32_t chunk = in_group / shape.stages;
  return {backward, backward ? shape.virtual_stages - 1 - chunk : chunk,
          k / group_size * shape.stages + k % shape.stages};
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
  }
  return total;
}

void stage_order(const PipelineShape& shape, std::int32_t stage, std::vector<PipelineOperation>& order) {
  const bool cut = shape.kind == ScheduleKind::zero_bubble;
  SHARDSCAPE_CHECK(!cut || shape.virtual_stages == 1, shape.virtual_stages);
  SHARDSCAPE_CHECK(shape.virtual_stages == 1 || shape.microbatches % shape.stages == 0, shape.microbatches,
                   shape.stages);
  const std::int32_t total = total_operations(shape);
  const std::int32_t first = warm_up(shape, stage);
  order.clear();
  order.reserve((cut ? 3 : 2) * static_cast<std::size_t>(total));
  for (std::int32_t k = 0; k < first; ++k) order.push_back(operation(shape, k, false));
  for (std::int32_t k = 0; k < total; ++k) {
    order.push_back(operation(shape, k, true));
    if (cut && k >= stage) order.push_back({true, 0, k - stage, true});
    if (first + k < total) order.push_back(operation(shape, first + k, false));
  }
  if (!cut) return;
  for (std::int32_t k = std::max(0, total - stage); k < total; ++k) order.push_back({true, 0, k, true});
}

std::int32_t in_flight(const PipelineShape& shape, std::int32_t stage) { return warm_up(shape, stage); }

// When the k-th backward begins, min(w, m - k) microbatches are in flight and min(k, s) are put off. The
// first number falls from k = m - w on, the second rises up to k = s. Any sum of positive multiples of the
// two is largest where one of them bends: at k = m - w or at k = s.
std::array<HeldMicrobatches, 3> peaks(const PipelineShape& shape, std::int32_t stage) {
  const std::int32_t total = total_operations(shape);
  const std::int32_t first = warm_up(shape, stage);
  if (shape.kind != ScheduleKind::zero_bubble) return {{{first, 0}, {first, 0}, {first, 0}}};
  const auto at = [&](std::int32_t k) {
    return HeldMicrobatches{std::min(first, total - k), std::min(k, stage)};
  };
  return {at(0), at(total - first), at(std::min(stage, total - 1))};
}

std::vector<double> run_in_order(const PipelineShape& shape, std::span<const StageTime> times,
                                 const Transfer& transfer, std::vector<PipelineSpan>* spans) {
  SHARDSCAPE_CHECK(times.size() == static_cast<std::size_t>(shape.stages), times.size(), shape.stages);
  const auto stages = static_cast<std::size_t>(shape.stages);
  const auto per_stage =
      static_cast<std::size_t>(shape.microbatches) * static_cast<std::size_t>(shape.virtual_stages);
  const auto microbatches = static_cast<std::size_t>(shape.microbatches);
  constexpr double kPending = -1;
  std::vector<double> forward_arrival(stages * per_stage, kPending),
      backward_arrival(stages * per_stage, kPending);
  std::vector<double> stage_end(stages, 0);
  std::vector<std::size_t> next(stages, 0);
  std::vector<std::vector<PipelineOperation>> orders(stages);
  for (std::size_t s = 0; s < stages; ++s) stage_order(shape, static_cast<std::int32_t>(s), orders[s]);

  const auto slot = [&](std::size_t stage, std::int32_t chunk, std::int32_t microbatch) {
    return stage * per_stage + static_cast<std::size_t>(chunk) * microbatches +
           static_cast<std::size_t>(microbatch);
  };
  const std::int32_t last_chunk = shape.virtual_stages - 1;
  /// When the input of an operation is at hand; kPending where it has not been computed yet.
  const auto ready = [&](std::size_t s, const PipelineOperation& op) {
    if (op.weight) return 0.0;
    const bool first_stage = s == 0, last_stage = s + 1 == stages;
    if (!op.backward) {
      if (!first_stage) return forward_arrival[slot(s - 1, op.chunk, op.microbatch)];
      return op.chunk == 0 ? 0.0 : forward_arrival[slot(stages - 1, op.chunk - 1, op.microbatch)];
    }
    if (!last_stage) return backward_arrival[slot(s + 1, op.chunk, op.microbatch)];
    return op.chunk == last_chunk ? forward_arrival[slot(s, op.chunk, op.microbatch)]
                                  : backward_arrival[slot(0, op.chunk + 1, op.microbatch)];
  };

  std::size_t left = 0;
  for (const std::vector<PipelineOperation>& order : orders) left += order.size();
  while (left > 0) {
    const std::size_t before = left;
    for (std::size_t s = 0; s < stages; ++s) {
      const std::vector<PipelineOperation>& order = orders[s];
      while (next[s] < order.size()) {
        const PipelineOperation& op = order[next[s]];
        const double input = ready(s, op);
        if (input == kPending) break;
        const double start = std::max(stage_end[s], input);
        double end = start + duration(shape, op, times[s]);
        // The last forward and the first backward of a microbatch stay on their stage, as weight gradients
        // do; everything else is sent on.
        const bool stays = op.weight || (op.backward ? (s == 0 && op.chunk == 0)
                                                     : (s + 1 == stages && op.chunk == last_chunk));
        const std::size_t boundary = !op.backward ? s : s > 0 ? s - 1 : stages - 1;
        const double arrival = stays ? end : end + transfer.over(boundary);
        if (spans != nullptr) spans->push_back({static_cast<std::int32_t>(s), op, start, end, arrival});
        if (transfer.blocking) end = arrival;
        if (!op.weight) {
          (op.backward ? backward_arrival : forward_arrival)[slot(s, op.chunk, op.microbatch)] = arrival;
        }
        stage_end[s] = end;
        ++next[s];
        --left;
      }
    }
    SHARDSCAPE_CHECK(left < before, "schedule deadlocks", shape.stages, shape.virtual_stages,
                     shape.microbatches);
  }
  return stage_end;
}

std::vector<double> chunk_ends(const PipelineShape& shape, std::span<const PipelineSpan> spans,
                               const Transfer& transfer) {
  if (shape.virtual_stages == 1) return {};
  const auto chunks = static_cast<std::size_t>(shape.virtual_stages);
  std::vector<double> ends(static_cast<std::size_t>(shape.stages) * chunks);
  for (const PipelineSpan& span : spans) {
    const PipelineOperation& op = span.operation;
    if (!op.backward || op.weight || op.microbatch + 1 != shape.microbatches) continue;
    ends[static_cast<std::size_t>(span.stage) * chunks + static_cast<std::size_t>(op.chunk)] =
        transfer.blocking ? span.sent : span.end;
  }
  return ends;
}

}  // namespace shardscape::schedule
