// Opens a finished file or the segments of a parts folder and presents both as one table; columns are read through
// ChunkReader from the file that holds the rows, and the file read last stays open.
#include "results_schema/reading/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <optional>
#include <stdexcept>

#include "engine/base/joined.h"
#include "results_schema/hdf5/chunk_reader.h"
#include "results_schema/hdf5/hdf5_io.h"
#include "results_schema/hdf5/manifest_io.h"
#include "results_schema/hdf5/samples_io.h"
#include "results_schema/hdf5/summary_io.h"
#include "results_schema/segments/segments.h"

namespace shardscape::results {

namespace fs = std::filesystem;

namespace {

/// Runs `work` with HDF5 silent. Failing to allocate memory counts as a damaged header, which promised too much.
template <class Work>
auto guarded(const fs::path& path, const Work& work) {
  const QuietErrors quiet;
  try {
    return work();
  } catch (const std::bad_alloc&) {
    throw StoreError(path, "does not fit in memory");
  } catch (const std::length_error&) {
    throw StoreError(path, "does not fit in memory");
  }
}

/// Replaces the mark of values that were not computed by NaN.
void remove_marks(std::vector<double>& values, const std::optional<double>& mark) {
  if (mark) std::ranges::replace(values, *mark, std::numeric_limits<double>::quiet_NaN());
}

fs::path resolve(fs::path path) {
  if (!path.has_filename()) path = path.parent_path();  // "OUT.h5.parts/"
  std::error_code error;
  if (fs::is_directory(path, error) && !fs::exists(path / "manifest.h5", error)) {
    throw StoreError(path, "is a folder that holds no sweep: it has no manifest.h5");
  }
  if (fs::exists(path, error)) return path;
  if (error) throw StoreError(path, "can't open: " + error.message());
  const fs::path parts = parts_folder(path);
  if (fs::is_directory(parts, error)) return parts;
  throw StoreError(path, "no such file, and no sweep running into it");
}

}  // namespace

struct ResultReader::Impl {
  /// Rows [begin, end) of the table are the rows of one file, from its row 0 on.
  struct Piece {
    fs::path path;
    std::uint64_t begin = 0, end = 0;
  };

  fs::path path;
  bool complete = false;
  std::optional<H5File> file;  ///< set where `path` is a finished file
  Manifest manifest;
  std::map<std::string, std::string> attributes;
  std::vector<Piece> pieces, sample_pieces;
  std::uint64_t rows = 0, points = 0, samples = 0;
  /// The columns read last, of the finished file or of one piece, since they are likely to be read again.
  struct Opened {
    fs::path path;
    std::optional<H5File> piece;  ///< nothing where it is the finished file
    std::map<std::string, ChunkReader> columns;
  };
  mutable Opened opened;

  ~Impl() {
    const QuietErrors quiet;
    opened.columns.clear();
    opened.piece.reset();
    file.reset();
  }

  void open(const fs::path& given) {
    path = resolve(given);
    fs::is_directory(path) ? open_parts() : open_file();
  }

  void open_file() {
    file.emplace(H5File::open(path));
    check_schema(*file, kResultsSchema);
    manifest = read_manifest(*file);
    attributes = file->attributes();
    complete = true;
    points = manifest.layout.rows();
    rows = stores_all() ? points : file->dataset("/points/point_id").rows();
    if (rows > points) file->fail("/points has more rows than there are points");
    pieces = {{path, 0, rows}};
    for (const ColumnInfo& column : manifest.columns) {
      if (file->dataset("/points/" + column.name).rows() != rows) {
        file->fail(fmt::format("/points/{} does not have {} rows", column.name, rows));
      }
    }
    samples = sample_rows(*file, manifest.sample_columns);
    sample_pieces = {{path, 0, samples}};
  }

  void open_parts() {
    const SegmentStore store = SegmentStore::open(path);
    manifest = store.manifest();
    attributes = H5File::open(path / "manifest.h5").attributes();
    for (const Segment& segment : store.segments()) {
      points += manifest.layout.rows_in(segment.blocks);
      const std::uint64_t count = stores_all()
                                      ? manifest.layout.rows_in(segment.blocks)
                                      : H5File::open(segment.path).dataset("/points/point_id").rows();
      pieces.push_back({segment.path, rows, rows + count});
      rows += count;
      if (manifest.sample_columns.empty()) continue;
      const std::uint64_t some = sample_rows(H5File::open(segment.path), manifest.sample_columns);
      sample_pieces.push_back({segment.path, samples, samples + some});
      samples += some;
    }
  }

  [[nodiscard]] bool stores_all() const { return manifest.study.stored_rows.all(); }

  [[nodiscard]] const ColumnInfo* find(std::string_view name) const {
    const auto found = std::ranges::find(manifest.columns, name, &ColumnInfo::name);
    return found == manifest.columns.end() ? nullptr : &*found;
  }

  ChunkReader& column_in(const Piece& piece, const std::string& dataset) const {
    if (opened.path != piece.path) {
      opened.columns.clear();
      opened.piece.reset();
      opened.path.clear();
      if (!file) opened.piece = H5File::open(piece.path);
      opened.path = piece.path;
    }
    const auto found = opened.columns.find(dataset);
    if (found != opened.columns.end()) return found->second;
    return opened.columns.try_emplace(dataset, (file ? *file : *opened.piece).dataset(dataset)).first->second;
  }

  /// Reads rows of the pieces into `values`, whose memory is used again.
  template <class T>
  void read_from(const std::vector<Piece>& from, std::uint64_t count, const std::string& dataset,
                 RowRange range, std::vector<T>& values) const {
    const std::uint64_t last = std::min(range.end, count);
    const std::uint64_t first = std::min(range.begin, last);
    for (const Piece& piece : from) {
      const std::uint64_t begin = std::max(first, piece.begin);
      const std::uint64_t end = std::min(last, piece.end);
      if (begin >= end) continue;
      ChunkReader& source = column_in(piece, dataset);
      source.check(begin - piece.begin, end - piece.begin);
      if (values.size() < end - first) values.resize(end - first);  // only once the rows are known to exist
      source.read(begin - piece.begin, std::span(values).subspan(begin - first, end - begin));
    }
    values.resize(last - first);
  }
  template <class T>
  void read(const std::string& column, RowRange range, std::vector<T>& values) const {
    read_from(pieces, rows, "/points/" + column, range, values);
  }
  template <class T>
  [[nodiscard]] std::vector<T> read(const std::string& column, RowRange range) const {
    std::vector<T> values;
    read(column, range, values);
    return values;
  }
  template <class T>
  void read_samples(const std::string& column, RowRange range, std::vector<T>& values) const {
    read_from(sample_pieces, samples, fmt::format("{}/{}", kSamplesGroup, column), range, values);
  }

  [[nodiscard]] bool stored_alike(const Impl& other, const std::string& dataset, std::uint64_t count,
                                  RowRange range) const {
    if (!file || !other.file) return false;
    ChunkReader& here = column_in(pieces.front(), dataset);
    ChunkReader& there = other.column_in(other.pieces.front(), dataset);
    const std::uint64_t end = std::min(range.end, count);
    here.check(range.begin, end);
    there.check(range.begin, end);
    return here.stored_alike(there, range.begin, end);
  }

  [[nodiscard]] const ColumnInfo& sample_column(std::string_view name) const {
    const auto& columns = manifest.sample_columns;
    const auto found = std::ranges::find(columns, name, &ColumnInfo::name);
    if (found != columns.end()) return *found;
    throw StoreError(path, fmt::format("has no column {} of fault samples", name));
  }

  [[nodiscard]] const char* why_missing() const {
    return manifest.study.stored_columns ? " (store.columns of the study names what is there)" : "";
  }

  void require_column(std::string_view name) const {
    if (find(name) != nullptr) return;
    throw StoreError(path, fmt::format("has no column {}{}; columns: {}", name, why_missing(),
                                       joined(manifest.columns, ", ", &ColumnInfo::name)));
  }

  [[nodiscard]] Summary compute_summary() const {
    const auto& objectives = manifest.study.objectives;
    for (const std::string& name : summary_columns(objectives)) require_column(name);
    SummaryBuilder builder(directions_of(objectives, manifest.columns));
    if (!stores_all()) {
      for (const Piece& piece : pieces) builder.add(read_summary(H5File::open(piece.path), objectives));
      return builder.finish();
    }
    std::vector<double> row(objectives.size());
    for (const Piece& piece : pieces) {
      const RowRange range{piece.begin, piece.end};
      const auto ids = read<std::uint64_t>("point_id", range);
      const auto statuses = read<std::uint8_t>("status", range);
      const auto reasons = read<std::uint8_t>("reason", range);
      std::vector<std::vector<double>> values;
      for (const std::string& objective : objectives) values.push_back(read<double>(objective, range));
      for (std::size_t i = 0; i < ids.size(); ++i) {
        for (std::size_t k = 0; k < row.size(); ++k) row[k] = values[k][i];
        builder.add(ids[i], static_cast<Status>(statuses[i]), static_cast<Reason>(reasons[i]), row);
      }
    }
    return builder.finish();
  }
};

ResultReader::ResultReader(const fs::path& path) : impl_(std::make_unique<Impl>()) {
  guarded(path, [&] { impl_->open(path); });
}
ResultReader::~ResultReader() = default;
ResultReader::ResultReader(ResultReader&&) noexcept = default;
ResultReader& ResultReader::operator=(ResultReader&&) noexcept = default;

const fs::path& ResultReader::path() const { return impl_->path; }
bool ResultReader::complete() const { return impl_->complete; }
std::uint64_t ResultReader::row_count() const { return impl_->rows; }
const std::optional<SearchInfo>& ResultReader::search() const { return impl_->manifest.search; }
std::uint64_t ResultReader::point_count() const { return impl_->points; }
const StoredRows& ResultReader::stored_rows() const { return impl_->manifest.study.stored_rows; }
std::uint64_t ResultReader::total_points() const { return impl_->manifest.layout.rows(); }
const BlockLayout& ResultReader::layout() const { return impl_->manifest.layout; }
const ShardRange& ResultReader::shards() const { return impl_->manifest.shards; }
bool ResultReader::stands_for_study() const {
  return stored_rows().all() && layout().selection.kind != SelectionKind::first &&
         layout().selection.kind != SelectionKind::search && row_count() == layout().total_points;
}
const std::vector<ColumnInfo>& ResultReader::columns() const { return impl_->manifest.columns; }
const ColumnInfo* ResultReader::find(std::string_view name) const { return impl_->find(name); }
const char* ResultReader::why_missing() const { return impl_->why_missing(); }

std::vector<double> ResultReader::read(std::string_view column, RowRange rows) const {
  std::vector<double> values;
  read_into(column, rows, values);
  return values;
}

void ResultReader::read_into(std::string_view column, RowRange rows, std::vector<double>& values) const {
  impl_->require_column(column);
  guarded(impl_->path, [&] {
    impl_->read(std::string(column), rows, values);
    remove_marks(values, impl_->find(column)->fill);
  });
}

std::vector<std::uint64_t> ResultReader::point_ids(RowRange rows) const {
  std::vector<std::uint64_t> ids;
  point_ids_into(rows, ids);
  return ids;
}

void ResultReader::point_ids_into(RowRange rows, std::vector<std::uint64_t>& ids) const {
  impl_->require_column("point_id");
  guarded(impl_->path, [&] { impl_->read("point_id", rows, ids); });
}

const std::vector<ColumnInfo>& ResultReader::sample_columns() const { return impl_->manifest.sample_columns; }
std::uint64_t ResultReader::sample_count() const { return impl_->samples; }

std::vector<double> ResultReader::read_samples(std::string_view column, RowRange rows) const {
  std::vector<double> values;
  read_samples_into(column, rows, values);
  return values;
}

void ResultReader::read_samples_into(std::string_view column, RowRange rows,
                                     std::vector<double>& values) const {
  guarded(impl_->path, [&] {
    const ColumnInfo& info = impl_->sample_column(column);
    impl_->read_samples(info.name, rows, values);
    remove_marks(values, info.fill);
  });
}

std::vector<std::uint64_t> ResultReader::sample_point_ids(RowRange rows) const {
  std::vector<std::uint64_t> ids;
  guarded(impl_->path, [&] { impl_->read_samples("point_id", rows, ids); });
  return ids;
}

bool ResultReader::stored_alike(const ResultReader& other, std::string_view column, RowRange rows) const {
  return guarded(impl_->path, [&] {
    return impl_->stored_alike(*other.impl_, fmt::format("/points/{}", column),
                               std::min(impl_->rows, other.impl_->rows), rows);
  });
}
bool ResultReader::samples_stored_alike(const ResultReader& other, std::string_view column,
                                        RowRange rows) const {
  return guarded(impl_->path, [&] {
    return impl_->stored_alike(*other.impl_, fmt::format("{}/{}", kSamplesGroup, column),
                               std::min(impl_->samples, other.impl_->samples), rows);
  });
}

const std::map<std::string, std::string>& ResultReader::attributes() const { return impl_->attributes; }
const std::vector<std::string>& ResultReader::objectives() const { return impl_->manifest.study.objectives; }
std::string ResultReader::resolved_yaml() const { return impl_->manifest.study.resolved_yaml; }
std::vector<SourceText> ResultReader::sources() const { return impl_->manifest.study.sources; }
std::vector<LinkRecord> ResultReader::links() const { return impl_->manifest.study.links.records(); }
std::vector<std::string> ResultReader::link_dimensions() const { return impl_->manifest.study.dimensions; }

Summary ResultReader::summary() const {
  return guarded(impl_->path, [&] {
    return impl_->file ? read_summary(*impl_->file, impl_->manifest.study.objectives)
                       : impl_->compute_summary();
  });
}

}  // namespace shardscape::results
