#include "results_schema/samples_io.h"

#include <fmt/format.h>

#include <algorithm>

#include "results_schema/block.h"

namespace shardscape::results {

namespace {

constexpr std::uint64_t kChunkRows = 16384;
static_assert(kRowsAtOnce % kChunkRows == 0);

std::string path_of(const ColumnInfo& column) { return fmt::format("{}/{}", kSamplesGroup, column.name); }

}  // namespace

std::vector<Dataset> create_samples(const H5File& file, std::span<const ColumnInfo> columns,
                                    std::uint64_t rows) {
  file.create_group(kSamplesGroup);
  std::vector<Dataset> datasets;
  for (const ColumnInfo& column : columns)
    datasets.push_back(file.create_column(kSamplesGroup, column, rows, kChunkRows));
  return datasets;
}

void write_samples(const std::vector<Dataset>& columns, std::uint64_t first,
                   std::span<const FaultSampleRecord> rows) {
  if (rows.empty()) return;
  std::vector<std::byte> plain(rows.size() * sizeof(double));
  for (std::size_t c = 0; c < columns.size(); ++c) {
    put_fault_samples(c, rows, plain.data());
    columns[c].write_rows(columns[c].column_type(), first, rows.size(), plain.data());
  }
}

std::uint64_t copy_samples(const H5File& from, const std::vector<Dataset>& columns, std::uint64_t first) {
  std::uint64_t rows = 0;
  std::vector<std::byte> plain;
  for (const Dataset& target : columns) {
    const Dataset source = from.dataset(target.path());
    const ColumnType type = target.column_type();
    if (source.column_type() != type) source.fail("does not have the type of the study");
    rows = source.rows();
    for (std::uint64_t begin = 0; begin < rows; begin += kRowsAtOnce) {
      const std::uint64_t count = std::min(kRowsAtOnce, rows - begin);
      plain.resize(count * size_of(type));
      source.read_rows(type, begin, begin + count, plain.data());
      target.write_rows(type, first + begin, count, plain.data());
    }
  }
  return rows;
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

}  // namespace shardscape::results
