// A plan's launch as `launch` prints it, and the command that `simulate` and the page show.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "sweep/cli/reports/report.h"
#include "sweep/launch/write_launch.h"
#include "sweep/study/study.h"

namespace shardscape::cli {

struct PlanLaunch {
  const launch::Framework& framework;
  std::string what;  ///< the study, its plan and machine, in a line
  std::string point;
  launch::Launch launch;
  std::vector<std::string> memory = {};       ///< memory_notes() of the plan
  bool tight = false;                         ///< whether one of them says that its memory is
  std::string_view status = {}, reason = {};  ///< verdict on the plan
  std::string misfit = {};                    ///< that the plan does not fit, in words; empty where it does
};
/// `gpus_per_node`: 0 where nobody says.
PlanLaunch plan_launch(const sweep::Study& study, const Setting& setting, const ParallelPlan& plan,
                       const launch::Framework& framework, std::int64_t gpus_per_node = 0);

/// The command that launches the plan in the framework that the study's stack is nearest to, as `simulate` ends with;
/// where that cannot run it, why. `study_words`: STUDY and the options that change it. `id`: of the point, where it was
/// chosen by that, which tells its setting, too.
std::string launch_line(const sweep::Study& study, const Setting& setting, const ParallelPlan& plan,
                        const std::vector<std::string>& study_words, const std::string& id = {});

Json to_json(const PlanLaunch& made);
/// Comments, then what a shell runs: with `files` they are written first.
void print_launch(std::ostream& out, const PlanLaunch& made, bool files);

}  // namespace shardscape::cli
