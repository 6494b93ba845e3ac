#include "sweep/cli/commands/chosen_point.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>

#include "sweep/cli/command.h"
#include "sweep/space/point_text.h"

namespace shardscape::cli {

namespace {

ChosenPoint at_setting(const sweep::Study& study, const sweep::PointText& text, std::size_t at,
                       const char* option) {
  ChosenPoint point{text.plan, at, study.setting(at)};
  WorkloadSpec& workload = point.setting.workload;
  if (text.concurrency && workload.open_loop())
    throw BadInput(std::string(option) +
                   ": concurrency has no effect: requests come at a rate or by a trace\n");
  if (text.concurrency) workload.concurrency = *text.concurrency;
  if (text.request_rate) {
    if (!workload.load || workload.load->request_rate <= 0)
      throw BadInput(std::string(option) +
                     ": request_rate has no effect: the study has no workload.request_rate\n");
    workload.load->request_rate = *text.request_rate;
  }
  return point;
}

}  // namespace

ChosenPoint choose_point(const sweep::Study& study, const std::string& text, const char* option) {
  const std::size_t counts = study.gpu_counts.size();
  for (std::size_t count = 0; count < counts; ++count) {
    if (auto point = sweep::parse_point(text, study.space, study.gpu_counts[count], study.phase()))
      return at_setting(study, *point, count * (study.setting_count() / counts), option);
  }
  // What is wrong on the most GPUs, which allow the most.
  const auto point = sweep::parse_point(text, study.space, study.gpu_counts.back(), study.phase());
  const std::string of =
      counts > 1 ? fmt::format(" (or one of gpus: [{}])", fmt::join(study.gpu_counts, ", ")) : std::string();
  std::vector<std::string> problems;
  for (const Problem& problem : point.error().list())
    problems.push_back(fmt::format("{}: {}: {}{}", option, problem.field, problem.message, of));
  throw BadInput(std::move(problems));
}

void note_other_settings(const sweep::Study& study, const ChosenPoint& point) {
  if (study.setting_count() == 1) return;
  const std::string on =
      study.gpu_counts.size() > 1 ? fmt::format(" on {} GPUs", study.gpus_of(point.at)) : std::string();
  std::cerr << "note: the study has " << study.setting_count() << " settings; this is the first" << on << " ("
            << describe_setting(study, point.at) << "), --set chooses another\n";
}

}  // namespace shardscape::cli
