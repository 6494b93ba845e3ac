#include "engine/schedule/pipeline.h"

#include "engine/schedule/ordered_run.h"
#include "engine/schedule/schedule_rules.h"

namespace shardscape::schedule {

std::int32_t warm_up(const PipelineShape& shape, std::int32_t stage) {
  return rules_of(shape).warm_up(shape, stage);
}

void stage_order(const PipelineShape& shape, std::int32_t stage, std::vector<PipelineOperation>& order) {
  rules_of(shape).order(shape, stage, order);
}

std::int32_t in_flight(const PipelineShape& shape, std::int32_t stage) {
  return peaks(shape, stage).front().in_flight;
}

std::array<Partner, 2> partners(const PipelineShape& shape, std::int32_t stage, std::int32_t chunk) {
  return rules_of(shape).partners(shape, stage, chunk);
}

std::array<HeldMicrobatches, 3> peaks(const PipelineShape& shape, std::int32_t stage) {
  return rules_of(shape).peaks(shape, stage);
}

std::array<std::array<HeldMicrobatches, 2>, 3> peaks_by_chunk(const PipelineShape& shape,
                                                              std::int32_t stage) {
  return rules_of(shape).peaks_by_chunk(shape, stage);
}

std::vector<double> run_in_order(const PipelineShape& shape, std::span<const StageTime> times,
                                 const Transfer& transfer, std::vector<PipelineSpan>* spans) {
  OrderedRun run;
  const std::span<const double> ends = run.run(shape, times, transfer, spans).stages;
  return {ends.begin(), ends.end()};
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
