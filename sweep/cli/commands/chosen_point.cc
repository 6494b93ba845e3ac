// Reads the point against every number of GPUs of the study, and fits the workload to it.
#include "sweep/cli/commands/chosen_point.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "sweep/cli/command.h"

namespace shardscape::cli {

ChosenPoint chosen_point(const std::string& where, const std::string& text, const sweep::Study& study) {
  const std::size_t counts = study.gpu_counts.size();
  for (std::size_t count = 0; count < counts; ++count) {
    if (auto point = sweep::parse_point(text, study.space, study.gpu_counts[count], study.phase()))
      return {*std::move(point), count * (study.setting_count() / counts)};
  }
  // What is wrong on the most GPUs, which allow the most.
  const auto point = sweep::parse_point(text, study.space, study.gpu_counts.back(), study.phase());
  const std::string of =
      counts > 1 ? fmt::format(" (or one of gpus: [{}])", fmt::join(study.gpu_counts, ", ")) : std::string();
  std::vector<std::string> problems;
  for (const Problem& problem : point.error().list())
    problems.push_back(where + problem.field + ": " + problem.message + of);
  throw BadInput(std::move(problems));
}

void take_load(const std::string& where, const sweep::PointText& point, WorkloadSpec& workload) {
  if (point.concurrency && workload.open_loop())
    throw BadInput(where + "concurrency has no effect: requests come at a rate or by a trace");
  if (point.concurrency) workload.concurrency = *point.concurrency;
  if (!point.request_rate) return;
  if (!workload.load || workload.load->request_rate <= 0)
    throw BadInput(where + "request_rate has no effect: the study has no workload.request_rate");
  workload.load->request_rate = *point.request_rate;
}

}  // namespace shardscape::cli
