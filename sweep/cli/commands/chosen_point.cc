#include "sweep/cli/commands/chosen_point.h"

#include <fmt/format.h>

#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "sweep/cli/command.h"

namespace shardscape::cli {

sweep::ChosenPoint choose_point(const sweep::Study& study, const std::string& text, const char* option) {
  auto point = sweep::choose_point(text, study);
  if (point) return *std::move(point);
  std::vector<std::string> problems;
  for (const Problem& problem : point.error().list())
    problems.push_back(
        fmt::format("{}: {}{}{}", option, problem.field, problem.field.empty() ? "" : ": ", problem.message));
  throw BadInput(std::move(problems));
}

void note_other_settings(const sweep::Study& study, const sweep::ChosenPoint& point) {
  if (study.setting_count() == 1) return;
  const std::string on =
      study.gpu_counts.size() > 1 ? fmt::format(" on {} GPUs", study.gpus_of(point.at)) : std::string();
  std::cerr << "note: the study has " << study.setting_count() << " settings; this is the first" << on << " ("
            << describe_setting(study, point.at) << "), --set chooses another\n";
}

}  // namespace shardscape::cli
