#include "engine/timeline/timed_step.h"

#include <fmt/format.h>

namespace shardscape::timeline {

void draw_pipeline(ChromeTrace& trace, std::span<const schedule::PipelineSpan> spans,
                   std::span<const double> stage_end, std::span<const StageTailSpan> tails) {
  constexpr std::int64_t kPipeline = 0;
  const auto slice = [&](std::int64_t stage, std::string_view name, const char* category, double start,
                         double seconds, const nlohmann::ordered_json& args) {
    trace.slice(kPipeline, stage, name, category, start, start + seconds, args);
  };
  const nlohmann::ordered_json none = nlohmann::ordered_json::object();
  for (std::size_t s = 0; s < stage_end.size(); ++s)
    trace.name_track(kPipeline, static_cast<std::int64_t>(s), fmt::format("stage {}", s));
  for (const schedule::PipelineSpan& span : spans) {
    const schedule::PipelineOperation& op = span.operation;
    const char* direction = op.weight ? "weight" : op.backward ? "backward" : "forward";
    slice(span.stage, fmt::format("{} {}", direction, op.microbatch), direction, span.start,
          span.end - span.start,
          {{"microbatch", op.microbatch}, {"chunk", op.chunk}, {"arrives_us", trace.at(span.sent)}});
  }
  for (std::size_t s = 0; s < tails.size(); ++s) {
    const auto stage = static_cast<std::int64_t>(s);
    const double begin = stage_end[s] + tails[s].deferred;
    slice(stage, "deferred weight gradients", "weight", stage_end[s], tails[s].deferred, none);
    slice(stage, "data-parallel communication", "communication", begin, tails[s].data_comm, none);
    slice(stage, "optimizer", "optimizer", begin + tails[s].data_comm, tails[s].optimizer, none);
  }
}

}  // namespace shardscape::timeline
