// Columns of a table are appended in the order of its records and checked to have one length; /summary is written
// whole. Scales are data sets without values, as netCDF wants them, to which every column of their table points.
#include "results_schema/hdf5/tables_io.h"

#include <fmt/format.h>
#include <hdf5_hl.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "engine/base/check.h"
#include "results_schema/hdf5/column_attributes.h"
#include "results_schema/rows/block.h"

namespace shardscape::results {

namespace {

constexpr std::uint64_t kChunkRows = 16384;
static_assert(kChunkRows <= kMaxRowsPerBlock);

std::vector<ColumnType> stored_types(const std::vector<Dataset>& columns) {
  std::vector<ColumnType> types;
  for (const Dataset& column : columns) types.push_back(column.column_type());
  return types;
}

std::string path_of(const ColumnInfo& column) { return fmt::format("{}/{}", kSamplesGroup, column.name); }

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

Hid create_scale(const H5File& file, const std::string& path, std::uint64_t length) {
  const hsize_t size = length;
  const Hid space(H5Screate_simple(1, &size, nullptr));
  const Hid creation = checked_creation(H5P_DATASET_CREATE);
  Hid scale(file.check(H5Dcreate2(file.id(), path.c_str(), H5T_IEEE_F32BE, space.get(), H5P_DEFAULT,
                                  creation.get(), H5P_DEFAULT),
                       "can't write " + path));
  std::array<char, 80> name;
  std::snprintf(name.data(), name.size(), "This is a netCDF dimension but not a netCDF variable.%10llu",
                static_cast<unsigned long long>(length));
  if (H5DSset_scale(scale.get(), name.data()) < 0) file.fail("can't write " + path);
  return scale;
}

struct SharedDimension {
  const char* group;
  const char* scale;
};

/// The dimension that all columns of a group share. Some of the groups are not in every file.
constexpr std::array kDimensions = {SharedDimension{"/points", "/point"},
                                    SharedDimension{kSamplesGroup, "/fault_sample"},
                                    SharedDimension{"/links", "/link"},
                                    SharedDimension{"/summary/status_counts", "/summary/status_count"},
                                    SharedDimension{"/summary/reason_counts", "/summary/reason_count"},
                                    SharedDimension{"/summary/pareto", "/summary/pareto_point"},
                                    SharedDimension{"/summary/top", "/summary/top_point"}};

std::vector<Dataset> columns_of(const H5File& file, const std::string& group) {
  std::vector<Dataset> columns;
  if (!file.has(group)) return columns;
  for (const std::string& name : file.children(group)) columns.push_back(file.dataset(group + "/" + name));
  return columns;
}

}  // namespace

std::vector<Dataset> create_samples(const H5File& file, std::span<const ColumnInfo> columns,
                                    std::uint64_t rows) {
  file.create_group(kSamplesGroup);
  std::vector<Dataset> datasets;
  for (const ColumnInfo& column : columns)
    datasets.push_back(file.create_column(kSamplesGroup, column, rows, kChunkRows));
  return datasets;
}

SampleWriter::SampleWriter(std::vector<Dataset> columns)
    : columns_(std::move(columns)), chunks_(stored_types(columns_), kChunkRows) {}

void SampleWriter::append(std::span<const FaultSampleRecord> rows) {
  plain_.resize(rows.size() * sizeof(double));
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    put_fault_samples(c, rows, plain_.data());
    chunks_.append(c, std::span(plain_).first(rows.size() * size_of(columns_[c].column_type())),
                   columns_[c].chunk_writer());
  }
}

void SampleWriter::finish() {
  for (std::size_t c = 0; c < columns_.size(); ++c) chunks_.finish(c, columns_[c].chunk_writer());
}

void SampleWriter::append_from(const H5File& from) {
  const RowRange all{0, from.dataset(columns_.front().path()).rows()};
  append_from(from, std::span(&all, 1));
}

void SampleWriter::append_from(const H5File& from, std::span<const RowRange> rows) {
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const Dataset source = from.dataset(columns_[c].path());
    if (source.column_type() != columns_[c].column_type()) source.fail("does not have the type of the study");
    chunks_.append_rows(c, ColumnPieces(source), rows, columns_[c].chunk_writer());
  }
}

std::uint64_t sample_rows(const H5File& file, std::span<const ColumnInfo> columns) {
  std::uint64_t rows = 0;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const std::uint64_t count = file.dataset(path_of(columns[c])).rows();
    if (c > 0 && count != rows) file.fail(fmt::format("{} has columns of different lengths", kSamplesGroup));
    rows = count;
  }
  return rows;
}

std::vector<ColumnInfo> read_sample_columns(const H5File& file) {
  std::vector<ColumnInfo> columns;
  for (const std::string& name : file.children(kSamplesGroup)) {
    columns.push_back(column_info(file.dataset(fmt::format("{}/{}", kSamplesGroup, name)), name));
  }
  return columns;
}

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

void write_dimensions(const H5File& file) {
  for (const auto& [group, path] : kDimensions) {
    const std::vector<Dataset> columns = columns_of(file, group);
    if (columns.empty()) continue;
    const Hid scale = create_scale(file, path, columns.front().rows());
    for (const Dataset& column : columns)
      if (H5DSattach_scale(column.id(), scale.get(), 0) < 0) column.fail("can't write its dimension");
  }
}

void check_dimensions(const H5File& file) {
  for (const auto& [group, path] : kDimensions) {
    const std::vector<Dataset> columns = columns_of(file, group);
    if (columns.empty()) continue;
    const Dataset scale = file.dataset(path);
    for (const Dataset& column : columns)
      if (H5DSis_attached(column.id(), scale.id(), 0) <= 0)
        column.fail("has lost its dimension " + scale.path());
  }
}

}  // namespace shardscape::results
