#include "sweep/cli/commands/step_outputs.h"

#include <algorithm>
#include <iostream>
#include <vector>

#include "engine/timeline/schedule_text.h"
#include "sweep/chakra/trace_folder.h"
#include "sweep/cli/terminal/terminal.h"

namespace shardscape::cli {

namespace {

constexpr std::size_t kUsualWidth = 120;

std::int32_t chart_width() {
  const auto width = terminal_width(std::cout).value_or(kUsualWidth);
  return std::clamp(static_cast<std::int32_t>(width), timeline::kNarrowestChart, timeline::kWidestChart);
}

}  // namespace

std::string schedule_chart(const timeline::TimedStep& step, std::int32_t width) {
  std::vector<schedule::PipelineSpan> spans;
  const std::vector<double> ends = schedule::run_in_order(step.shape, step.times, step.transfer, &spans);
  return timeline::schedule_text({step.shape, step.transfer, spans, ends, step.tails},
                                 width > 0 ? width : chart_width());
}

std::uint64_t write_chakra(const execution::Programs& programs, const Setting& setting,
                           results::OutputFolder& folder) {
  const timeline::ProgramExport exported(programs, setting.training_host().step_fixed.value());
  std::uint64_t nodes = 0;
  folder.fill([&](const std::filesystem::path& place) {
    chakra::TraceWriter writer(place, exported.groups(), setting.system.fabric.dimensions.size());
    for (std::int32_t rank = 0; rank < exported.ranks(); ++rank) {
      const timeline::RankTrace trace = exported.rank(rank);
      nodes += trace.nodes.size();
      writer.write_rank(rank, trace);
    }
  });
  return nodes;
}

}  // namespace shardscape::cli
