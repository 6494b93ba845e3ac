#include "sweep/cli/commands/step_outputs.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <vector>

#include "engine/timeline/program_export.h"
#include "engine/timeline/schedule_text.h"
#include "engine/timeline/trace_export.h"
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

std::string schedule_chart(const timeline::PricedStep& program, std::int32_t width) {
  std::vector<schedule::PipelineSpan> spans;
  const std::vector<double> ends =
      schedule::run_in_order(program.shape, program.times, program.transfer, &spans);
  return timeline::schedule_text({program.shape, program.transfer, spans, ends, program.tails},
                                 width > 0 ? width : chart_width());
}

std::uint64_t write_chakra(const Details& details, const Setting& setting, results::OutputFolder& folder) {
  std::unique_ptr<const timeline::TraceSource> exported;
  if (details.executed) {
    const double before = setting.training_host().step_fixed.value();
    exported = std::make_unique<timeline::ProgramExport>(*details.executed, before);
  } else {
    exported = std::make_unique<timeline::TraceExport>(*details.program);
  }
  std::uint64_t nodes = 0;
  folder.fill([&](const std::filesystem::path& place) {
    chakra::TraceWriter writer(place, exported->groups(), setting.system.fabric.dimensions.size());
    for (std::int32_t rank = 0; rank < exported->ranks(); ++rank) {
      const timeline::RankTrace trace = exported->rank(rank);
      nodes += trace.nodes.size();
      writer.write_rank(rank, trace);
    }
  });
  return nodes;
}

}  // namespace shardscape::cli
