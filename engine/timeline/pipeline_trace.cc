#include "engine/timeline/pipeline_trace.h"
#include "engine/base/safe_text.h"
#include "engine/timeline/microseconds.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace shardscape::timeline {

namespace {

using nlohmann::ordered_json;

class TraceBuilder {
 public:
  explicit TraceBuilder(double begin) : begin_(begin) {}

  /// Microseconds in the trace of a time in the pipeline, in seconds.
  [[nodiscard]] double at(double time) const { return (begin_ + time) * kMicroseconds; }

  void name_track(std::int64_t stage) {
    events_.push_back({{"ph", "M"},
                       {"pid", 0},
                       {"tid", stage},
                       {"name", "thread_name"},
                       {"args", {{"name", fmt::format("stage {}", stage)}}}});
    events_.push_back({{"ph", "M"},
                       {"pid", 0},
                       {"tid", stage},
                       {"name", "thread_sort_index"},
                       {"args", {{"sort_index", stage}}}});
  }

  void slice(std::int64_t stage, const std::string& name, const char* category, double start, double duration,
             ordered_json args = ordered_json::object()) {
    if (duration <= 0) return;
    events_.push_back({{"ph", "X"},
                       {"pid", 0},
                       {"tid", stage},
                       {"name", name},
                       {"cat", category},
                       {"ts", at(start)},
                       {"dur", duration * kMicroseconds},
                       {"args", std::move(args)}});
  }

  [[nodiscard]] ordered_json take() { return std::move(events_); }

 private:
  double begin_;
  ordered_json events_ = ordered_json::array();
};

}  // namespace

std::string pipeline_trace_json(std::string_view title, std::span<const schedule::PipelineSpan> spans,
                                std::span<const double> stage_end, std::span<const StageTailSpan> tails,
                                double begin) {
  TraceBuilder trace(begin);
  for (std::size_t s = 0; s < stage_end.size(); ++s) trace.name_track(static_cast<std::int64_t>(s));
  for (const schedule::PipelineSpan& span : spans) {
    const schedule::PipelineOperation& op = span.operation;
    const char* direction = op.weight ? "weight" : op.backward ? "backward" : "forward";
    trace.slice(span.stage, fmt::format("{} {}", direction, op.microbatch), direction, span.start,
                span.end - span.start,
                {{"microbatch", op.microbatch}, {"chunk", op.chunk}, {"arrives_us", trace.at(span.sent)}});
  }
  for (std::size_t s = 0; s < tails.size(); ++s) {
    const auto stage = static_cast<std::int64_t>(s);
    const double begin_tail = stage_end[s] + tails[s].deferred;
    trace.slice(stage, "deferred weight gradients", "weight", stage_end[s], tails[s].deferred);
    trace.slice(stage, "data-parallel communication", "communication", begin_tail, tails[s].data_comm);
    trace.slice(stage, "optimizer", "optimizer", begin_tail + tails[s].data_comm, tails[s].optimizer);
  }
  const ordered_json document = {
      {"displayTimeUnit", "ms"}, {"otherData", {{"title", title}}}, {"traceEvents", trace.take()}};
  return json_text(document);
}

}  // namespace shardscape::timeline
