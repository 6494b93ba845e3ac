#include "results_schema/hdf5/summary_io.h"

#include <algorithm>

#include "engine/base/check.h"
#include "results_schema/hdf5/column_attributes.h"

namespace shardscape::results {
namespace {

const ColumnInfo& column_named(std::string_view name, std::span<const ColumnInfo> columns) {
  const auto found = std::ranges::find(columns, name, &ColumnInfo::name);
  SHARDSCAPE_CHECK(found != columns.end(), name);
  return *found;
}

void write_counts(const H5File& file, const std::string& group, const ColumnInfo& column,
                  const std::vector<CodeCount>& counts) {
  file.create_group(group);
  const Dataset codes = file.write_values<std::uint8_t>(group + "/" + column.name, counts, &CodeCount::code,
                                                        column.unit, column.long_name);
  set_codes(codes, column.type, column.meanings);
  file.write_values<std::uint64_t>(group + "/count", counts, &CodeCount::count, "1", "number of points");
  file.write_values<std::uint64_t>(group + "/example_point_id", counts, &CodeCount::example, "1",
                                   "the first such point");
}

std::vector<CodeCount> read_counts(const H5File& file, const std::string& group, const char* code) {
  const auto codes = file.dataset(group + "/" + code).read_all<std::uint8_t>();
  const auto counts = file.dataset(group + "/count").read_all<std::uint64_t>();
  const auto examples = file.dataset(group + "/example_point_id").read_all<std::uint64_t>();
  if (counts.size() != codes.size() || examples.size() != codes.size()) {
    file.fail(group + " has columns of different lengths");
  }
  std::vector<CodeCount> list;
  for (std::size_t i = 0; i < codes.size(); ++i) list.push_back({codes[i], counts[i], examples[i]});
  return list;
}

void write_ranking(const H5File& file, const std::string& group, const std::vector<RankedPoint>& points,
                   const std::vector<std::string>& objectives, std::span<const ColumnInfo> columns) {
  file.create_group(group);
  file.write_values<std::uint64_t>(group + "/point_id", points, &RankedPoint::point_id, "1",
                                   column_named("point_id", columns).long_name);
  for (std::size_t i = 0; i < objectives.size(); ++i) {
    const ColumnInfo& column = column_named(objectives[i], columns);
    const Dataset values = file.write_values<double>(
        group + "/" + column.name, points, [&](const RankedPoint& p) { return p.values[i]; }, column.unit,
        column.long_name);
    values.set_attribute("better", name_of(column.better));
  }
}

std::vector<RankedPoint> read_ranking(const H5File& file, const std::string& group,
                                      const std::vector<std::string>& objectives) {
  std::vector<RankedPoint> points;
  for (const std::uint64_t id : file.dataset(group + "/point_id").read_all<std::uint64_t>()) {
    points.push_back({id, {}});
  }
  for (const std::string& objective : objectives) {
    const auto values = file.dataset(group + "/" + objective).read_all<double>();
    if (values.size() != points.size()) file.fail(group + " has columns of different lengths");
    for (std::size_t i = 0; i < points.size(); ++i) points[i].values.push_back(values[i]);
  }
  return points;
}

}  // namespace

std::vector<std::string> summary_columns(const std::vector<std::string>& objectives) {
  std::vector<std::string> names = {"point_id", "status", "reason"};
  names.insert(names.end(), objectives.begin(), objectives.end());
  return names;
}

std::vector<Better> directions_of(const std::vector<std::string>& objectives,
                                  std::span<const ColumnInfo> columns) {
  std::vector<Better> directions;
  for (const std::string& objective : objectives)
    directions.push_back(column_named(objective, columns).better);
  return directions;
}

void write_summary(const H5File& file, const Summary& summary, const std::vector<std::string>& objectives,
                   std::span<const ColumnInfo> columns) {
  file.create_group("/summary");
  write_counts(file, "/summary/status_counts", column_named("status", columns), summary.statuses);
  write_counts(file, "/summary/reason_counts", column_named("reason", columns), summary.reasons);
  write_ranking(file, "/summary/pareto", summary.pareto, objectives, columns);
  write_ranking(file, "/summary/top", summary.top, objectives, columns);
}

Summary read_summary(const H5File& file, const std::vector<std::string>& objectives) {
  return {read_counts(file, "/summary/status_counts", "status"),
          read_counts(file, "/summary/reason_counts", "reason"),
          read_ranking(file, "/summary/pareto", objectives), read_ranking(file, "/summary/top", objectives)};
}

}  // namespace shardscape::results
