#include "sweep/study/choose_point.h"

#include <fmt/format.h>

#include <utility>

#include "sweep/study/study_parts.h"

namespace shardscape::sweep {

namespace {

/// Gives the workload the concurrency and the rate of requests that the text has, with as many requests as the study
/// has at that rate, and with lengths as a run draws them there.
void take_load(const PointText& text, const Study& study, std::size_t at, WorkloadSpec& workload,
               Problems& problems) {
  if (text.concurrency && workload.open_loop())
    problems.add("", "concurrency has no effect: requests come at a rate or by a trace");
  if (text.concurrency) workload.concurrency = *text.concurrency;
  if (text.request_rate && (!workload.load || workload.load->request_rate <= 0))
    return problems.add("", "request_rate has no effect: the study has no workload.request_rate");
  if (!workload.load || !(text.request_rate || text.concurrency)) return;
  if (text.request_rate) workload.load->request_rate = *text.request_rate;
  study.timed_requests.count(*workload.load);
  study.length_laws[at % study.workloads.size()].give_to(*workload.load);
  serving::keep_to_drawn(*workload.load, workload.concurrency);
  if (std::string refusal = study.model.too_long(workload.longest_prompt() + workload.longest_output());
      !workload.load->trace && !refusal.empty())
    problems.add("workload.output_tokens", std::move(refusal));
}

}  // namespace

ChosenPoint with_setting(ChosenPlan chosen, const Study& study) {
  ChosenPoint point{chosen.plan, chosen.at, study.setting(chosen.at), std::move(chosen.warning)};
  point.setting.workload = std::move(chosen.workload);
  return point;
}

tl::expected<ChosenPlan, Problems> choose_plan(const std::string& text, const Study& study) {
  const std::size_t counts = study.gpu_counts.size();
  for (std::size_t count = 0; count < counts; ++count) {
    auto point = parse_point(text, study.space, study.gpu_counts[count], study.phase());
    if (!point) continue;
    const std::size_t at = count * (study.setting_count() / counts);
    ChosenPlan chosen{point->plan, at, study.workload_of(at), ""};
    Problems problems;
    take_load(*point, study, at, chosen.workload, problems);
    if (!problems.empty()) return tl::unexpected(std::move(problems));
    if (long_sequences(study.model, study.workloads).empty())
      chosen.warning = long_sequences(study.model, {&chosen.workload, 1});
    return chosen;
  }
  // What is wrong on the most GPUs, which allow the most.
  const auto point = parse_point(text, study.space, study.gpu_counts.back(), study.phase());
  const std::string of =
      counts > 1 ? fmt::format(" (or one of gpus: [{}])", fmt::join(study.gpu_counts, ", ")) : std::string();
  Problems problems;
  for (const Problem& problem : point.error().list()) problems.add(problem.field, problem.message + of);
  return tl::unexpected(std::move(problems));
}

}  // namespace shardscape::sweep
