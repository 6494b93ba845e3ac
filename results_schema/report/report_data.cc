#include "results_schema/report/report_data.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/base/safe_text.h"
#include "engine/spec/plan_axes.h"
#include "engine/spec/time_class.h"
#include "results_schema/report/axis_worth.h"
#include "results_schema/report/selection.h"
#include "results_schema/row_scan.h"

namespace shardscape::report {

namespace {

using Json = nlohmann::ordered_json;
using results::Better;
using results::ColumnGroup;
using results::ColumnInfo;
using results::ResultReader;
using results::RowScan;

/// A number with seven significant digits, as much as f4 holds; whole numbers without a fraction; NaN as
/// null.
Json number(double value) {
  if (!std::isfinite(value)) return nullptr;
  std::array<char, 32> text;
  const auto written =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific, 6);
  std::from_chars(text.data(), written.ptr, value);
  constexpr double kExact = 9007199254740992;  // 2^53
  if (value == std::floor(value) && std::abs(value) < kExact) return static_cast<std::int64_t>(value);
  return value;
}

bool is_input(const ColumnInfo& column) {
  return column.group == ColumnGroup::plan || column.group == ColumnGroup::workload ||
         column.group == ColumnGroup::hardware;
}

/// An axis that the study chose: microbatches follow from the others.
bool is_axis(const ColumnInfo& column) { return is_input(column) && column.name != "microbatches"; }

/// The feasible rows of the file and the parts of columns that belong to them.
class Feasible {
 public:
  explicit Feasible(const ResultReader& reader) : reader_(reader) {
    is_.reserve(reader.row_count());
    for (RowScan scan(reader, {"status"}); scan.next();) {
      const auto ids = reader.point_ids({scan.first_row(), scan.first_row() + scan.size()});
      for (std::size_t i = 0; i < scan.size(); ++i) {
        is_.push_back(static_cast<Status>(scan.values(0)[i]) == Status::ok);
        if (is_.back()) ids_.push_back(ids[i]);
      }
    }
  }
  [[nodiscard]] const std::vector<bool>& is() const { return is_; }
  [[nodiscard]] const std::vector<std::uint64_t>& ids() const { return ids_; }
  [[nodiscard]] std::vector<double> read(const std::string& column) const {
    std::vector<double> values;
    values.reserve(ids_.size());
    for (RowScan scan(reader_, {column}); scan.next();) {
      for (std::size_t i = 0; i < scan.size(); ++i) {
        if (is_[scan.first_row() + i]) values.push_back(scan.values(0)[i]);
      }
    }
    return values;
  }

 private:
  const ResultReader& reader_;
  std::vector<bool> is_;            ///< by row
  std::vector<std::uint64_t> ids_;  ///< of the feasible ones
};

/// The front between the columns: of all rows, or of each value of `per` by itself.
std::vector<std::size_t> front_of(const ResultReader& reader, const Feasible& feasible,
                                  const std::vector<std::string>& names, const char* per = nullptr) {
  std::vector<std::vector<double>> columns;
  std::vector<Better> directions;
  for (const std::string& name : names) {
    const ColumnInfo* const column = reader.find(name);
    if (column == nullptr) continue;
    columns.push_back(feasible.read(name));
    directions.push_back(column->better == Better::larger ? Better::larger : Better::smaller);
  }
  if (per == nullptr) return pareto_rows(columns, directions);
  if (reader.find(per) == nullptr) return {};
  return pareto_rows_per_group(feasible.read(per), columns, directions);
}

/// Feasible rows (as positions among them) that are shown whatever is sampled.
std::vector<std::size_t> rows_to_keep(const ResultReader& reader, const Feasible& feasible) {
  std::vector<std::size_t> keep = front_of(reader, feasible, reader.objectives());
  const auto [x, y] = default_axes(reader);
  std::ranges::copy(front_of(reader, feasible, {x, y}), std::back_inserter(keep));
  // What is best at a load by either of them is on the front of that load.
  std::ranges::copy(front_of(reader, feasible, {x, y}, kLoadColumn), std::back_inserter(keep));
  for (const ColumnInfo& column : reader.columns()) {
    const bool result = column.group == ColumnGroup::output || column.group == ColumnGroup::faults;
    if (!result || column.better == Better::neither) continue;
    std::ranges::copy(best_rows(feasible.read(column.name), column.better, kBestKept),
                      std::back_inserter(keep));
  }
  return keep;
}

Json verdicts(const ResultReader& reader, const Words& words) {
  const results::Summary summary = reader.summary();
  Json list = Json::array();
  for (const results::CodeCount& status : summary.statuses) {
    Json reasons = Json::array();
    for (const results::CodeCount& entry : summary.reasons) {
      const auto reason = static_cast<Reason>(entry.code);
      if (words.status_of(reason) != static_cast<Status>(status.code)) continue;
      reasons.push_back({{"name", name_of(reason)},
                         {"count", entry.count},
                         {"example", entry.example},
                         {"meaning", words.meaning(reason)}});
    }
    list.push_back({{"name", name_of(static_cast<Status>(status.code))},
                    {"count", status.count},
                    {"example", status.example},
                    {"reasons", std::move(reasons)}});
  }
  return list;
}

Json column_head(const ColumnInfo& column, const Words& words) {
  Json head = {{"name", column.name},
               {"heading", words.heading(column)},
               {"unit", column.unit},
               {"meaning", column.long_name},
               {"group", name_of(column.group)}};
  const auto* const part = std::ranges::find(kTimeClasses, column.name, &TimeClassRow::column);
  if (part != kTimeClasses.end()) head["place"] = part - kTimeClasses.begin();
  if (const PlanAxisRow* const axis = find_plan_column(column.name)) head["short"] = axis->name;
  if (column.name == kLoadColumn) head["short"] = column.name;  // --point takes it, too
  if (column.better != Better::neither) head["better"] = name_of(column.better);
  if (!column.meanings.empty()) head["names"] = column.meanings;
  if (const std::optional<int> digits = results::percent_digits(column)) head["percent_digits"] = *digits;
  return head;
}

/// The columns of the shown rows; one value for all where they agree.
Json columns(const ResultReader& reader, const Feasible& feasible, const std::vector<std::size_t>& shown,
             const Words& words) {
  Json list = Json::array();
  for (const ColumnInfo& column : reader.columns()) {
    if (column.name == "status" || column.name == "reason") continue;
    Json head = column_head(column, words);
    Json values = Json::array();
    if (column.name == "point_id") {
      for (const std::size_t row : shown) values.push_back(feasible.ids()[row]);
    } else {
      const std::vector<double> all = feasible.read(column.name);
      for (const std::size_t row : shown) values.push_back(number(all[row]));
    }
    const bool constant =
        !values.empty() && std::ranges::adjacent_find(values, std::not_equal_to<>()) == values.end();
    if (constant && column.name != "point_id") {
      head["value"] = values.front();
    } else {
      head["values"] = std::move(values);
    }
    list.push_back(std::move(head));
  }
  return list;
}

Json axes(const ResultReader& reader, const Feasible& feasible, const ColumnInfo& ranking) {
  const std::vector<double> objective = reader.read(ranking.name);
  const std::vector<std::size_t> ranked = ranked_feasible(feasible.is(), objective, ranking.better);
  Json list = Json::array();
  for (const ColumnInfo& column : reader.columns()) {
    if (!is_axis(column) || !results::varies(reader, column.name)) continue;
    const auto values =
        axis_values(reader.read(column.name), feasible.is(), objective, ranked, ranking.better);
    if (values.size() < 2) continue;
    Json entries = Json::array();
    for (const AxisValue& value : values) {
      entries.push_back(
          {{"value", number(value.value)},
           {"points", value.points},
           {"feasible", value.feasible},
           {"best", number(value.best)},
           {"quarter", number(value.quarter)},
           {"median", number(value.median)},
           {"three_quarters", number(value.three_quarters)},
           {"worst", number(value.worst)},
           {"best_point", std::isnan(value.best)
                              ? Json()
                              : Json(reader.point_ids({value.best_row, value.best_row + 1}).front())}});
    }
    list.push_back({{"column", column.name},
                    {"spread", number(spread_of_best(values))},
                    {"values", std::move(entries)}});
  }
  return list;
}

Json places(const std::vector<FaultPlace>& list) {
  Json result = Json::array();
  for (const FaultPlace& place : list) {
    result.push_back({{"name", place.name},
                      {"samples", place.samples},
                      {"unreachable", place.unreachable},
                      {"mean", number(place.mean)},
                      {"max", number(place.max)},
                      {"above_1pct", number(place.above_1pct)}});
  }
  return result;
}

Json fault_figures(const FaultFigures& figures) {
  if (figures.distributions.empty() && figures.places.empty()) return nullptr;
  Json distributions = Json::array();
  for (const Distribution& distribution : figures.distributions) {
    Json points = Json::array();
    for (const auto& [share, slowdown] : distribution.points)
      points.push_back({number(share), number(slowdown)});
    distributions.push_back({{"name", distribution.name}, {"points", std::move(points)}});
  }
  return {{"distributions", std::move(distributions)},
          {"places", places(figures.places)},
          {"place_count", figures.place_count},
          {"dimensions", places(figures.dimensions)}};
}

/// A root attribute; nothing where there is none.
std::string attribute(const ResultReader& reader, const std::string& name) {
  const auto found = reader.attributes().find(name);
  return found == reader.attributes().end() ? "" : found->second;
}

Json near_misses(const std::vector<NearMiss>& misses) {
  Json list = Json::array();
  for (const NearMiss& miss : misses) {
    Json fixes = Json::array();
    for (const Fix& fix : miss.fixes) {
      fixes.push_back({{"change", fix.change},
                       {"memory_bytes", number(fix.memory_bytes)},
                       {"time_s", number(fix.time_s)},
                       {"where", fix.where}});
    }
    list.push_back({{"point_id", miss.point_id},
                    {"plan", miss.plan},
                    {"setting", miss.setting},
                    {"problem", miss.problem},
                    {"missing_bytes", number(miss.missing_bytes)},
                    {"stage", miss.stage},
                    {"fixes", std::move(fixes)}});
  }
  return list;
}

/// Which of the study's points these are. Only rows that stand for the whole study say what an axis is worth.
Json selection(const ResultReader& reader, const std::string& text) {
  const results::PointSelection& chosen = reader.layout().selection;
  return {{"kind", name_of(chosen.kind)},
          {"study_points", chosen.study_points},
          {"text", text},
          {"stands_for_study", reader.stands_for_study()}};
}

/// Strings are the only place where '<' occurs in JSON.
std::string without_tags(const std::string& json) {
  std::string safe;
  safe.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

}  // namespace

const ColumnInfo& ranking_column(const ResultReader& reader) {
  if (!reader.objectives().empty()) {
    if (const ColumnInfo* const column = reader.find(reader.objectives().front())) return *column;
  }
  for (const char* name : {"step_time_s", "e2e_s"}) {
    if (const ColumnInfo* const column = reader.find(name)) return *column;
  }
  throw results::StoreError("results", "have no column that ranks points");
}

std::pair<std::string, std::string> default_axes(const ResultReader& reader) {
  const std::string first = ranking_column(reader).name;
  for (const std::string& objective : reader.objectives()) {
    if (objective != first && reader.find(objective) != nullptr) return {first, objective};
  }
  const char* const time = reader.find("step_time_s") != nullptr ? "step_time_s" : "e2e_s";
  return {first, first == "memory_peak_bytes" ? time : "memory_peak_bytes"};
}

std::string report_json(const ResultReader& reader, const ReportInput& input) {
  const ColumnInfo& ranking = ranking_column(reader);
  const Feasible feasible(reader);
  std::vector<std::size_t> shown =
      sample_rows(feasible.ids(), rows_to_keep(reader, feasible), input.max_points);
  {  // The page lists them as they come: the best first.
    const std::vector<double> objective = feasible.read(ranking.name);
    std::vector<double> values;
    for (const std::size_t row : shown) values.push_back(objective[row]);
    std::vector<std::size_t> ordered;
    for (const std::size_t i : ranked_rows(values, ranking.better)) ordered.push_back(shown[i]);
    shown = std::move(ordered);
  }
  const auto [x, y] = default_axes(reader);
  Json facts = Json::array();
  for (const auto& [label, text] : input.facts) facts.push_back({label, text});
  const Json document = {
      {"title", attribute(reader, "title")},
      {"version", attribute(reader, "software_version")},
      {"commit", attribute(reader, "git_commit")},
      {"seed", attribute(reader, "seed")},
      {"study_sha256", attribute(reader, "study_sha256")},
      {"complete", reader.complete()},
      {"rows", reader.row_count()},
      {"total_points", reader.total_points()},
      {"selection", selection(reader, input.of_the_study)},
      {"feasible", feasible.ids().size()},
      {"shown", shown.size()},
      {"best_kept", kBestKept},
      {"facts", std::move(facts)},
      {"objectives", reader.objectives()},
      {"ranking", ranking.name},
      {"x", x},
      {"y", y},
      {"commands",
       {{"study", input.commands.study},
        {"plans", input.commands.plans},
        {"settings", input.commands.settings}}},
      {"statuses", verdicts(reader, input.words)},
      {"columns", columns(reader, feasible, shown, input.words)},
      {"axes", reader.stands_for_study() ? axes(reader, feasible, ranking) : Json::array()},
      {"near_misses", near_misses(input.near_misses)},
      {"faults", fault_figures(input.faults)}};
  return without_tags(json_text(document));
}

}  // namespace shardscape::report
