// Builds the page's JSON document: head, facts, columns of the shown rows, worth of the axes, faults, near misses and
// commands.
#include "results_schema/report/report_data.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/base/safe_text.h"
#include "engine/spec/plan_axes.h"
#include "engine/spec/time_class.h"
#include "results_schema/report/page.h"
#include "results_schema/report/page_rows.h"

namespace shardscape::report {

namespace {

using Json = nlohmann::ordered_json;
using results::Better;
using results::ColumnInfo;
using results::ResultReader;

/// A number with seven significant digits, as many as f4 holds; whole numbers without a fraction, NaN as null.
Json number(double value) {
  if (!std::isfinite(value)) return nullptr;
  std::array<char, 32> text;
  const auto written =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific, 6);
  std::from_chars(text.data(), written.ptr, value);
  constexpr double kExact = 9007199254740992;  // 2^53, below which doubles hold all whole numbers
  if (value == std::floor(value) && std::abs(value) < kExact) return static_cast<std::int64_t>(value);
  return value;
}

Json verdicts(const ResultReader& reader, const Words& words) {
  const results::Summary summary = reader.summary();
  Json list = Json::array();
  for (const results::CodeCount& status : summary.statuses) {
    Json reasons = Json::array();
    for (const results::CodeCount& entry : summary.reasons) {
      const std::vector<std::string>& names = reader.find("reason")->meanings;
      const std::string reason = entry.code < names.size() ? names[entry.code] : "?";
      if (words.status_of(reason) != static_cast<Status>(status.code)) continue;
      reasons.push_back({{"name", reason},
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
  if (column.name == kLoadColumn) head["short"] = column.name;  // --point also takes this short name
  if (column.better != Better::neither) head["better"] = name_of(column.better);
  if (!column.meanings.empty()) head["names"] = column.meanings;
  if (const std::optional<int> digits = results::percent_digits(column)) head["percent_digits"] = *digits;
  if (results::is_slowdown(column)) head["slowdown"] = true;
  return head;
}

/// The column of executed times, behind that of the times without.
Json executed_column(const Answer& answer, const PageRows& rows, const Words& words) {
  Json head = column_head(*answer.executed, words), values = Json::array();
  head["name"] = "executed_" + answer.executed->name;
  head["heading"] = "executed";
  head["meaning"] = answer.executed->long_name + ", every message simulated; of some of the best points";
  for (const std::uint64_t id : rows.ids) {
    const auto time = answer.times.find(id);
    values.push_back(time == answer.times.end() ? Json() : number(time->second));
  }
  head["values"] = std::move(values);
  return head;
}

/// The columns of the shown rows; a column that is constant in them is a single value.
Json columns(const ResultReader& reader, const PageRows& rows, const ReportInput& input) {
  const Words& words = input.words;
  Json list = Json::array();
  for (std::size_t c = 0; c < reader.columns().size(); ++c) {
    const ColumnInfo& column = reader.columns()[c];
    if (column.name == "status" || column.name == "reason") continue;
    Json head = column_head(column, words);
    Json values = Json::array();
    if (column.name == "point_id") {
      for (const std::uint64_t id : rows.ids) values.push_back(id);
    } else {
      for (const double value : rows.values[c]) values.push_back(number(value));
    }
    const bool constant =
        !values.empty() && std::ranges::adjacent_find(values, std::not_equal_to<>()) == values.end();
    if (constant && column.name != "point_id") {
      head["value"] = values.front();
    } else {
      head["values"] = std::move(values);
    }
    list.push_back(std::move(head));
    if (input.answer.executed && input.answer.executed->name == column.name)
      list.push_back(executed_column(input.answer, rows, words));
  }
  return list;
}

Json answer_json(const Answer& answer) {
  return {{"point", answer.point ? Json(*answer.point) : Json()},
          {"confirmed", answer.confirmed},
          {"framework", answer.framework},
          {"refused", answer.refused},
          {"assumptions", answer.assumptions},
          {"remarks", answer.remarks}};
}

Json axes(const ResultReader& reader, const std::vector<PageAxis>& axes) {
  Json list = Json::array();
  for (const auto& [column, values] : axes) {
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
    list.push_back({{"column", reader.columns()[column].name},
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

/// Says which of the study's points the rows are. Only rows that represent the whole study tell what an axis is worth.
Json selection(const ResultReader& reader, const std::string& text) {
  const results::PointSelection& chosen = reader.layout().selection;
  return {{"kind", name_of(chosen.kind)},
          {"study_points", chosen.study_points},
          {"text", text},
          {"stands_for_study", reader.stands_for_study()}};
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
  const auto [x, y] = default_axes(reader);
  const PageRows rows =
      read_page_rows(reader, {ranking.name, {x, y}, kLoadColumn, input.max_points, input.answer.rows});
  Json facts = Json::array();
  for (const auto& [label, text] : input.facts) facts.push_back({label, text});
  const Json document = {{"title", reader.attribute("title")},
                         {"version", reader.attribute("software_version")},
                         {"commit", reader.attribute("git_commit")},
                         {"seed", reader.attribute("seed")},
                         {"study_sha256", reader.attribute("study_sha256")},
                         {"complete", reader.complete()},
                         {"rows", reader.row_count()},
                         {"points", reader.point_count()},
                         {"total_points", reader.total_points()},
                         {"selection", selection(reader, input.of_the_study)},
                         {"feasible", rows.feasible},
                         {"shown", rows.ids.size()},
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
                         {"answer", answer_json(input.answer)},
                         {"statuses", verdicts(reader, input.words)},
                         {"columns", columns(reader, rows, input)},
                         {"axes", axes(reader, rows.axes)},
                         {"near_misses", near_misses(input.near_misses)},
                         {"faults", fault_figures(input.faults)}};
  return without_tags(json_text(document));
}

}  // namespace shardscape::report
