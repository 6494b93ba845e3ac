#include "sweep/cli/commands/chosen_point.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "sweep/cli/reports/near_misses.h"
#include "sweep/cli/reports/top_rows.h"
#include "sweep/cli/terminal/format.h"

namespace shardscape::cli {

sweep::ChosenPoint point_of_id(const sweep::Study& study, const sweep::DesignSpace& space, std::uint64_t id) {
  const sweep::PointIndex point = space.point(id);
  return {point.plan, point.setting, study.setting(point.setting)};
}

std::optional<std::uint64_t> point_id_of(const std::string& text) {
  std::uint64_t id = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, id);
  return !text.empty() && read.ec == std::errc() && read.ptr == end ? std::optional(id) : std::nullopt;
}

sweep::ChosenPoint choose_point(const sweep::Study& study, const std::string& text, const char* option) {
  if (const std::optional<std::uint64_t> id = point_id_of(text)) {
    const sweep::DesignSpace space = study.design_space();
    if (*id < space.size()) return point_of_id(study, space, *id);
    throw BadInput(fmt::format("{}: {} is no point: the study has {}, from 0 on", option, *id,
                               counted(space.size(), "point")));
  }
  auto point = sweep::choose_point(text, study);
  if (point) return *std::move(point);
  std::vector<std::string> problems;
  for (const Problem& problem : point.error().list())
    problems.push_back(
        fmt::format("{}: {}{}{}", option, problem.field, problem.field.empty() ? "" : ": ", problem.message));
  throw BadInput(std::move(problems));
}

std::uint64_t best_row(const results::ResultReader& reader, const std::string& name,
                       const std::string& where) {
  if (reader.objectives().empty()) throw BadInput(name + ": names no objective; choose points with --point");
  const std::string by = reader.objectives().front();
  const TopRows found = find_top_rows(reader, {.where = where, .by = by, .per = {}, .front = {}, .count = 1});
  if (found.rows.empty())
    throw BadInput(name + ": no feasible row" + (where.empty() ? "" : " that --where leaves"));
  return reader.point_ids({found.rows.front(), found.rows.front() + 1}).front();
}

std::string point_or_best(const StudyArguments& study, const std::string& point) {
  if (!is_results(study.file) || !study.overrides.empty() || (!point.empty() && !point_id_of(point)))
    return point;
  const results::ResultReader reader = open_results(study.file);
  if (!stored_study(reader))
    throw BadInput(study.file.string() +
                   ": another version of the program wrote it, and this one lists the points of its study "
                   "differently, so that ids mean other plans; give the study in place of the file");
  return point.empty() ? std::to_string(best_row(reader, study.file.string())) : point;
}

StudyArguments for_point(StudyArguments study, const std::string& point) {
  study.one_plan = !point.empty() && !point_id_of(point);
  return study;
}

void note_other_settings(const sweep::Study& study, const sweep::ChosenPoint& point) {
  const std::size_t counts = std::max<std::size_t>(1, study.gpu_counts.size());
  if (study.setting_count() == 1 || point.at % (study.setting_count() / counts) != 0)
    return;  // chosen by an id
  const std::string on =
      study.gpu_counts.size() > 1 ? fmt::format(" on {} GPUs", study.gpus_of(point.at)) : std::string();
  std::cerr << "note: the study has " << study.setting_count() << " settings; this is the first" << on << " ("
            << describe_setting(study, point.at) << "), --set chooses another\n";
}

}  // namespace shardscape::cli
