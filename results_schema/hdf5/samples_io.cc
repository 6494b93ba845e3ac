#include "results_schema/hdf5/samples_io.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

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

}  // namespace shardscape::results
