#include "results_schema/assemble.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <system_error>

#include "results_schema/files.h"
#include "results_schema/hdf5_io.h"
#include "results_schema/manifest_io.h"
#include "results_schema/samples_io.h"
#include "results_schema/summary_io.h"

namespace shardscape::results {

namespace fs = std::filesystem;

namespace {

/// Collects, block by block, the decoded columns that the summary needs.
class SummaryFeed {
 public:
  SummaryFeed(const std::vector<std::string>& objectives, std::span<const ColumnInfo> columns)
      : builder_(directions_of(objectives, columns)) {
    for (const std::string& name : summary_columns(objectives)) {
      const auto found = std::ranges::find(columns, name, &ColumnInfo::name);
      sources_.push_back(static_cast<std::size_t>(found - columns.begin()));
    }
    numbers_.resize(sources_.size());
    row_.resize(objectives.size());
  }

  void take(std::size_t column, ColumnType type, std::span<const std::byte> values, std::uint32_t rows) {
    for (std::size_t slot = 0; slot < sources_.size(); ++slot) {
      if (sources_[slot] != column) continue;
      if (slot == 0) {
        ids_.resize(rows);
        std::memcpy(ids_.data(), values.data(), rows * sizeof(std::uint64_t));
      } else {
        widen(type, values, rows, numbers_[slot]);
      }
    }
  }

  void end_block(std::uint32_t rows) {
    for (std::uint32_t i = 0; i < rows; ++i) {
      for (std::size_t k = 0; k < row_.size(); ++k) row_[k] = numbers_[3 + k][i];
      builder_.add(ids_[i], static_cast<Status>(numbers_[1][i]), static_cast<Reason>(numbers_[2][i]), row_);
    }
  }

  [[nodiscard]] Summary finish() const { return builder_.finish(); }

 private:
  template <class T>
  static void widen_from(std::span<const std::byte> values, std::uint32_t rows, std::vector<double>& out) {
    for (std::uint32_t i = 0; i < rows; ++i) {
      T value;
      std::memcpy(&value, values.data() + i * sizeof(T), sizeof(T));
      out[i] = static_cast<double>(value);
    }
  }
  static void widen(ColumnType type, std::span<const std::byte> values, std::uint32_t rows,
                    std::vector<double>& out) {
    out.resize(rows);
    switch (type) {
      case ColumnType::u8:
        return widen_from<std::uint8_t>(values, rows, out);
      case ColumnType::i32:
        return widen_from<std::int32_t>(values, rows, out);
      case ColumnType::u64:
        return widen_from<std::uint64_t>(values, rows, out);
      case ColumnType::f4:
        return widen_from<float>(values, rows, out);
      case ColumnType::f8:
        return widen_from<double>(values, rows, out);
    }
  }

  SummaryBuilder builder_;
  std::vector<std::size_t> sources_;  ///< columns of point_id, status, reason, objectives
  std::vector<std::uint64_t> ids_;
  std::vector<std::vector<double>> numbers_;  ///< per source; [0] stays empty
  std::vector<double> row_;
};

/// One pass over the segments: every chunk is checked (zlib's checksum), summed up and copied as it is.
class Copier {
 public:
  Copier(const SegmentStore& store, const H5File& output)
      : manifest_(store.manifest()),
        feed_(manifest_.study.objectives, manifest_.columns),
        decoder_(manifest_.layout.rows_per_block) {
    for (const ColumnInfo& column : manifest_.columns) {
      targets_.push_back(output.create_column("/points", column, manifest_.layout.rows(), rows_per_block()));
    }
  }

  void copy(const Segment& segment) {
    const H5File file = H5File::open(segment.path);
    std::vector<Dataset> sources;
    for (const ColumnInfo& column : manifest_.columns) {
      sources.push_back(file.dataset("/points/" + column.name));
      if (sources.back().column_type() != column.type || sources.back().chunk_rows() != rows_per_block()) {
        file.fail("/points/" + column.name + " does not have the type or chunk length of the study");
      }
    }
    for (std::uint64_t block = segment.blocks.first; block < segment.blocks.end(); ++block) {
      copy_block(sources, block, segment.blocks.first);
    }
  }

  [[nodiscard]] Summary summary() const { return feed_.finish(); }

 private:
  [[nodiscard]] std::uint32_t rows_per_block() const { return manifest_.layout.rows_per_block; }

  void copy_block(const std::vector<Dataset>& sources, std::uint64_t block, std::uint64_t first_of_segment) {
    const std::uint64_t from = (block - first_of_segment) * rows_per_block();
    const std::uint64_t to = (block - manifest_.layout.blocks.first) * rows_per_block();
    const std::uint32_t rows = manifest_.layout.rows_of(block);
    for (std::size_t c = 0; c < sources.size(); ++c) {
      const ColumnType type = manifest_.columns[c].type;
      const std::size_t limit = 2 * rows_per_block() * size_of(type) + kChunkSlack;
      sources[c].read_chunk(from, limit, chunk_);
      const auto values = decoder_.decode(type, chunk_);
      if (values.empty()) sources[c].fail("the chunk of row " + std::to_string(from) + " is damaged");
      feed_.take(c, type, values, rows);
      targets_[c].write_chunk(to, chunk_);
    }
    feed_.end_block(rows);
  }

  static constexpr std::size_t kChunkSlack = 1024;  ///< deflate's overhead on tiny chunks

  const Manifest& manifest_;
  SummaryFeed feed_;
  BlockDecoder decoder_;
  std::vector<Dataset> targets_;
  std::vector<std::byte> chunk_;
};

/// /fault_samples of all segments, one after the other.
void gather_samples(const SegmentStore& store, const H5File& output) {
  const std::vector<ColumnInfo>& columns = store.manifest().sample_columns;
  if (columns.empty()) return;
  std::uint64_t rows = 0;
  for (const Segment& segment : store.segments()) rows += sample_rows(H5File::open(segment.path), columns);
  const std::vector<Dataset> targets = create_samples(output, columns, rows);
  std::uint64_t first = 0;
  for (const Segment& segment : store.segments())
    first += copy_samples(H5File::open(segment.path), targets, first);
}

void check_complete(const SegmentStore& store) {
  const auto gaps = store.missing();
  if (gaps.empty()) return;
  std::uint64_t rows = 0;
  for (const BlockRange& gap : gaps) rows += store.manifest().layout.rows_in(gap);
  throw StoreError(store.folder(), "is not complete: " + std::to_string(rows) + " points are missing");
}

/// Finds out before the first byte is written that the disk cannot hold the copy.
void check_space(const SegmentStore& store) {
  std::uintmax_t needed = 0;
  std::error_code error;
  for (const Segment& segment : store.segments()) needed += fs::file_size(segment.path, error);
  const fs::space_info space = fs::space(store.folder(), error);
  if (error || space.available >= needed) return;
  throw StoreError(store.folder(), "no space left to assemble the result: " + std::to_string(needed) +
                                       " bytes are needed, " + std::to_string(space.available) + " are free");
}

Summary write_output(const SegmentStore& store, const fs::path& path, const RunInfo& run) {
  H5File file = H5File::create(path);
  const Manifest& manifest = store.manifest();
  write_manifest(file, kResultsSchema, manifest, run, true);
  Summary summary;
  {
    Copier copier(store, file);
    for (const Segment& segment : store.segments()) copier.copy(segment);
    summary = copier.summary();
  }
  gather_samples(store, file);
  write_summary(file, summary, manifest.study.objectives, manifest.columns);
  file.close();
  return summary;
}

}  // namespace

Summary assemble(SegmentStore&& store, const fs::path& output, const RunInfo& run) {
  const QuietErrors quiet;
  store.scan();
  check_complete(store);
  check_space(store);
  const fs::path temporary = store.folder() / (std::string("assembled.h5") + kTemporaryEnding);
  Summary summary;
  try {
    summary = write_output(store, temporary, run);
    publish(temporary, output);
  } catch (const StoreError&) {
    std::error_code ignored;
    fs::resize_file(temporary, 0, ignored);  // HDF5 may still hold it open
    fs::remove(temporary, ignored);
    throw;
  }
  remove_folder(store.folder());
  return summary;
}

}  // namespace shardscape::results
