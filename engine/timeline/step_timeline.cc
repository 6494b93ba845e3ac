// Writes a priced step as a Chrome trace: the pipeline's overview, and per stage the operators of the first
// microbatches, placed within the spans of the schedule.
#include "engine/timeline/step_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "engine/base/safe_text.h"
#include "engine/network/groups/rank_group.h"
#include "engine/timeline/microseconds.h"

namespace shardscape::timeline {

namespace {

using nlohmann::ordered_json;
using schedule::PipelineOperation;
using schedule::PipelineSpan;

enum DeviceTrack : int { kHostTrack = 0, kComputeTrack = 1, kCommunicationTrack = 2, kWaitTrack = 3 };
constexpr const char* kTrackNames[] = {"host", "compute", "communication", "wait"};

class TimelineWriter {
 public:
  TimelineWriter(const PricedStep& program, std::size_t most_operator_slices)
      : program_(program), most_operator_slices_(most_operator_slices), offset_(program.step_fixed) {
    ends_ = schedule::run_in_order(program.shape, program.times, program.transfer, &spans_);
    choose_detail();
  }

  std::string write() {
    add_overview();
    free_.assign(ends_.size(), 0);
    for (std::size_t s = 0; s < ends_.size(); ++s) name_device(s);
    for (const PipelineSpan& span : spans_) add_span(span);
    for (std::size_t s = 0; s < ends_.size(); ++s) add_tail(s);
    const ordered_json other = {
        {"title", program_.title},
        {"operators_of_microbatches", std::min(detailed_, program_.shape.microbatches)}};
    const ordered_json document = {
        {"displayTimeUnit", "ms"}, {"otherData", other}, {"traceEvents", std::move(events_)}};
    return json_text(document);
  }

 private:
  /// Chooses the number of microbatches whose operators are drawn.
  void choose_detail() {
    std::size_t per_microbatch = 0;
    for (const StageSteps& stage : program_.stages) {
      for (const ChunkSteps& chunk : stage.chunks) {
        per_microbatch += 2 * (chunk.forward.size() + chunk.backward.size() + chunk.weight.size()) + 12;
      }
    }
    detailed_ = static_cast<std::int32_t>(
        std::max<std::size_t>(1, most_operator_slices_ / std::max<std::size_t>(1, per_microbatch)));
  }

  void slice(int process, int track, const std::string& name, const char* category, double start, double end,
             ordered_json args = ordered_json::object()) {
    if (end <= start) return;
    events_.push_back({{"ph", "X"},
                       {"pid", process},
                       {"tid", track},
                       {"name", name},
                       {"cat", category},
                       {"ts", (offset_ + start) * kMicroseconds},
                       {"dur", (end - start) * kMicroseconds},
                       {"args", std::move(args)}});
  }
  void label(int process, int track, const char* what, const ordered_json& args) {
    events_.push_back({{"ph", "M"}, {"pid", process}, {"tid", track}, {"name", what}, {"args", args}});
  }

  void add_overview() {
    label(0, 0, "process_name", {{"name", "pipeline"}});
    const std::string text = pipeline_trace_json(program_.title, spans_, ends_, program_.tails, offset_);
    ordered_json overview = ordered_json::parse(text);
    for (ordered_json& event : overview.at("traceEvents")) events_.push_back(std::move(event));
  }

  void name_device(std::size_t stage) {
    const network::PlanLayout layout(program_.plan);
    const auto first = static_cast<std::int32_t>(stage) * layout.stride(PlanAxis::pipeline);
    const auto each = program_.plan.gpus() / program_.plan.pipeline;
    const int process = static_cast<int>(stage) + 1;
    label(process, 0, "process_name",
          {{"name", fmt::format("stage {}: rank {}{}", stage, first,
                                each > 1 ? fmt::format(" and {} alike", each - 1) : "")}});
    for (const int track : {kHostTrack, kComputeTrack, kCommunicationTrack, kWaitTrack}) {
      label(process, track, "thread_name", {{"name", kTrackNames[track]}});
      label(process, track, "thread_sort_index", {{"sort_index", track}});
    }
    slice(process, kHostTrack, "once per step", "host", -offset_, 0);
  }

  void add_span(const PipelineSpan& span) {
    const PipelineOperation& op = span.operation;
    const auto stage = static_cast<std::size_t>(span.stage);
    const int process = span.stage + 1;
    const bool detailed = op.microbatch < detailed_;
    if (detailed) slice(process, kWaitTrack, "pipeline", "wait", free_[stage], span.start);
    free_[stage] = program_.transfer.blocking ? span.sent : span.end;
    if (!detailed) return;
    const ChunkSteps& chunk = program_.stages[stage].chunks[static_cast<std::size_t>(op.chunk)];
    const std::vector<ProgramStep>& steps = chunk.of(op);
    double length = 0;
    for (const ProgramStep& step : steps) length += step.exposed();
    // Steps that add up to more than the span, as in pairs, which hide part of each other's exchanges, are scaled to
    // fit.
    const double scale = length > span.end - span.start ? (span.end - span.start) / length : 1;
    double now = span.start;
    for (const ProgramStep& step : steps) now = add_step(process, step, now, scale, op.microbatch);
    slice(process, kWaitTrack, "data-parallel communication", "wait", now, span.end);
    if (span.sent <= span.end) return;
    const char* const what = op.backward ? "send gradient" : "send activation";
    slice(process, kCommunicationTrack, what, "communication", span.end, span.sent,
          {{"microbatch", op.microbatch}, {"bytes", program_.boundary_bytes}, {"bound", "link"}});
    if (program_.transfer.blocking) slice(process, kWaitTrack, what, "wait", span.end, span.sent);
  }

  double add_step(int process, const ProgramStep& step, double now, double scale, std::int32_t microbatch) {
    const double end = now + scale * step.exposed();
    if (step.kind == StepKind::compute) {
      slice(process, kComputeTrack, step.name, "compute", now, end,
            {{"microbatch", microbatch}, {"bound", step.bound}});
    } else if (step.kind == StepKind::wait) {
      slice(process, kWaitTrack, step.name, "wait", now, end, {{"microbatch", microbatch}});
    } else {
      slice(process, kWaitTrack, step.name, "wait", now, end, {{"microbatch", microbatch}});
      slice(process, kCommunicationTrack, step.name, "communication", now - scale * step.hidden, end,
            communication_args(step, microbatch));
    }
    return end;
  }
  static ordered_json communication_args(const ProgramStep& step, std::int32_t microbatch) {
    return {
        {"microbatch", microbatch},
        {"operation", step.kind == StepKind::ring_pass ? "ring_pass" : std::string(name_of(step.collective))},
        {"group", name_of(step.group)},
        {"bytes", step.bytes * step.repeats},
        {"calls", step.repeats},
        {"bound", "link"}};
  }

  void add_tail(std::size_t stage) {
    const int process = static_cast<int>(stage) + 1;
    const StageTailSpan tail = stage < program_.tails.size() ? program_.tails[stage] : StageTailSpan{};
    const double begin = ends_[stage] + tail.deferred, reduced = begin + tail.data_comm;
    slice(process, kComputeTrack, "deferred weight gradients", "compute", ends_[stage], begin,
          {{"microbatches", program_.stages[stage].deferrals}});
    double bytes = 0;
    for (const GradientSteps& part : program_.stages[stage].gradients)
      bytes += part.step.bytes * part.step.repeats;
    for (const ProgramStep& step : program_.stages[stage].weights) bytes += step.bytes * step.repeats;
    slice(process, kCommunicationTrack, "gradients and weights", "communication", begin, reduced,
          {{"group", "data"}, {"bytes", bytes}, {"bound", "link"}});
    slice(process, kWaitTrack, "data-parallel communication", "wait", begin, reduced);
    slice(process, kComputeTrack, "optimizer", "compute", reduced, reduced + tail.optimizer,
          {{"bound", "hbm"}});
  }

  const PricedStep& program_;
  std::size_t most_operator_slices_;
  double offset_;
  std::int32_t detailed_ = 0;
  std::vector<PipelineSpan> spans_;
  std::vector<double> ends_;
  std::vector<double> free_;  ///< by stage: end of its latest operation
  ordered_json events_ = ordered_json::array();
};

}  // namespace

std::string step_timeline_json(const PricedStep& program, std::size_t most_operator_slices) {
  return TimelineWriter(program, most_operator_slices).write();
}

}  // namespace shardscape::timeline
