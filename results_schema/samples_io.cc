#include "results_schema/samples_io.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "results_schema/block.h"

namespace shardscape::results {

namespace {

constexpr std::uint64_t kChunkRows = 16384;
static_assert(kChunkRows <= kMaxRowsPerBlock);

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
    : columns_(std::move(columns)), open_(columns_.size()) {}

void SampleWriter::append(std::span<const FaultSampleRecord> rows) {
  plain_.resize(rows.size() * sizeof(double));
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    put_fault_samples(c, rows, plain_.data());
    append(c, std::span(plain_).first(rows.size() * size_of(columns_[c].column_type())));
  }
}

void SampleWriter::append(std::size_t column, std::span<const std::byte> values) {
  Open& open = open_[column];
  const std::size_t full = kChunkRows * size_of(columns_[column].column_type());
  while (!values.empty()) {
    const std::size_t count = std::min(values.size(), full - open.values.size());
    open.values.insert(open.values.end(), values.begin(),
                       values.begin() + static_cast<std::ptrdiff_t>(count));
    values = values.subspan(count);
    if (open.values.size() == full) write(column);
  }
}

/// What is there of a chunk, the rest of it zeros.
void SampleWriter::write(std::size_t column) {
  Open& open = open_[column];
  const std::size_t width = size_of(columns_[column].column_type());
  open.values.resize(kChunkRows * width);
  columns_[column].write_chunk(open.row, packer_.pack(open.values, width));
  open.row += kChunkRows;
  open.values.clear();
}

void SampleWriter::finish() {
  for (std::size_t c = 0; c < columns_.size(); ++c)
    if (!open_[c].values.empty()) write(c);
}

void SampleWriter::append_all(const H5File& from) {
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const Dataset source = from.dataset(columns_[c].path());
    if (source.column_type() != columns_[c].column_type()) source.fail("does not have the type of the study");
    append_column(c, source);
  }
}

/// Chunk by chunk; HDF5 reads what is not packed as ours are, or says what is wrong with it.
void SampleWriter::append_column(std::size_t column, const Dataset& source) {
  const ColumnType type = columns_[column].column_type();
  const std::uint64_t rows = source.rows();
  const bool ours = source.chunk_rows() == kChunkRows && source.is_packed_as_block(type);
  BlockDecoder decoder(static_cast<std::uint32_t>(kChunkRows));
  const std::size_t most = ChunkPacker::most_bytes(kChunkRows * size_of(type));
  std::vector<std::byte> packed;
  for (std::uint64_t begin = 0; begin < rows; begin += kChunkRows) {
    const std::uint64_t count = std::min(kChunkRows, rows - begin);
    const std::size_t bytes = count * size_of(type);
    std::span<const std::byte> values;
    if (ours && source.try_read_chunk(begin, most, packed)) values = decoder.decode(type, packed);
    if (values.empty()) {
      plain_.resize(bytes);
      source.read_rows(type, begin, begin + count, plain_.data());
      values = plain_;
    }
    append(column, values.first(bytes));
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
