// Opens a finished file or the segments of a parts folder and presents both as one table; columns are read through
// ChunkReader from the file that holds the rows, and the file read last stays open.
#include "results_schema/reading/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <optional>
#include <stdexcept>

#include "engine/base/words.h"
#include "results_schema/hdf5/chunk_reader.h"
#include "results_schema/hdf5/hdf5_io.h"
#include "results_schema/hdf5/manifest_io.h"
#include "results_schema/hdf5/tables_io.h"
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

/// The files of a snapshot, of which the one that is read stays open.
struct TableReader::Files {
  fs::path path;
  std::optional<H5File> finished;  ///< set where `path` is a finished file
  /// The columns read last, of the finished file or of one file of parts, since they are likely to be read again.
  struct Opened {
    fs::path path;
    std::optional<H5File> part;  ///< nothing where it is the finished file
    std::map<std::string, ChunkReader> columns;
  };
  mutable Opened opened;

  ~Files() {
    const QuietErrors quiet;
    opened.columns.clear();
    opened.part.reset();
    finished.reset();
  }

  ChunkReader& column_in(const fs::path& file, const std::string& dataset) const {
    if (opened.path != file) {
      opened.columns.clear();
      opened.part.reset();
      opened.path.clear();
      if (!finished) opened.part = H5File::open(file);
      opened.path = file;
    }
    const auto found = opened.columns.find(dataset);
    if (found != opened.columns.end()) return found->second;
    const H5File& source = finished ? *finished : *opened.part;
    return opened.columns.try_emplace(dataset, source.dataset(dataset)).first->second;
  }
};

/// A table over all files of a snapshot.
struct TableReader::Table {
  /// Rows [begin, end) of the table are the rows of one file, from its row 0 on.
  struct Piece {
    fs::path path;
    std::uint64_t begin = 0, end = 0;
  };

  const Files& files;
  const char* group;
  const std::vector<ColumnInfo>& columns;
  const char* why_missing;  ///< in a message, behind the name of a column that is missing
  std::vector<Piece> pieces = {};
  std::uint64_t rows = 0;

  void add_piece(const fs::path& path, std::uint64_t count) {
    pieces.push_back({path, rows, rows + count});
    rows += count;
  }

  [[nodiscard]] const ColumnInfo* find(std::string_view name) const {
    const auto found = std::ranges::find(columns, name, &ColumnInfo::name);
    return found == columns.end() ? nullptr : &*found;
  }

  [[nodiscard]] const ColumnInfo& column(std::string_view name) const {
    if (const ColumnInfo* found = find(name)) return *found;
    throw StoreError(files.path, fmt::format("has no column {}{}; columns: {}", name, why_missing,
                                             joined(columns, ", ", &ColumnInfo::name)));
  }

  [[nodiscard]] std::string dataset(std::string_view column) const {
    return fmt::format("{}/{}", group, column);
  }

  /// Reads rows of the pieces into `values`, whose memory is used again.
  template <class T>
  void read(std::string_view column, RowRange range, std::vector<T>& values) const {
    const std::uint64_t last = std::min(range.end, rows);
    const std::uint64_t first = std::min(range.begin, last);
    for (const Piece& piece : pieces) {
      const std::uint64_t begin = std::max(first, piece.begin);
      const std::uint64_t end = std::min(last, piece.end);
      if (begin >= end) continue;
      ChunkReader& source = files.column_in(piece.path, dataset(column));
      source.check(begin - piece.begin, end - piece.begin);
      if (values.size() < end - first) values.resize(end - first);  // only once the rows are known to exist
      source.read(begin - piece.begin, std::span(values).subspan(begin - first, end - begin));
    }
    values.resize(last - first);
  }
  template <class T>
  [[nodiscard]] std::vector<T> read(std::string_view column, RowRange range) const {
    std::vector<T> values;
    read(column, range, values);
    return values;
  }

  [[nodiscard]] bool stored_alike(const Table& other, std::string_view column, RowRange range) const {
    if (!files.finished || !other.files.finished) return false;
    ChunkReader& here = files.column_in(files.path, dataset(column));
    ChunkReader& there = other.files.column_in(other.files.path, dataset(column));
    const std::uint64_t end = std::min({range.end, rows, other.rows});
    here.check(range.begin, end);
    there.check(range.begin, end);
    return here.stored_alike(there, range.begin, end);
  }
};

struct ResultReader::Snapshot {
  Files files;
  bool complete = false;
  Manifest manifest;
  std::map<std::string, std::string> attributes;
  Table points{files, "/points", manifest.columns, ""};
  Table samples{files, kSamplesGroup, manifest.sample_columns, " of fault samples"};
  std::uint64_t point_count = 0;

  explicit Snapshot(const fs::path& path) {
    files.path = resolve(path);
    fs::is_directory(files.path) ? open_parts() : open_file();
    points.why_missing = why_missing();
  }

  void open_file() {
    const H5File& file = files.finished.emplace(H5File::open(files.path));
    check_schema(file, kResultsSchema);
    manifest = read_manifest(file);
    attributes = file.attributes();
    complete = true;
    point_count = manifest.layout.rows();
    points.add_piece(files.path, stores_all() ? point_count : file.dataset("/points/point_id").rows());
    if (points.rows > point_count) file.fail("/points has more rows than there are points");
    for (const ColumnInfo& column : manifest.columns) {
      if (file.dataset(points.dataset(column.name)).rows() != points.rows) {
        file.fail(fmt::format("/points/{} does not have {} rows", column.name, points.rows));
      }
    }
    samples.add_piece(files.path, sample_rows(file, manifest.sample_columns));
  }

  void open_parts() {
    const SegmentStore store = SegmentStore::open(files.path);
    manifest = store.manifest();
    attributes = H5File::open(files.path / "manifest.h5").attributes();
    for (const Segment& segment : store.segments()) {
      const std::uint64_t count = manifest.layout.rows_in(segment.blocks);
      point_count += count;
      points.add_piece(segment.path,
                       stores_all() ? count : H5File::open(segment.path).dataset("/points/point_id").rows());
      if (manifest.sample_columns.empty()) continue;
      samples.add_piece(segment.path, sample_rows(H5File::open(segment.path), manifest.sample_columns));
    }
  }

  [[nodiscard]] bool stores_all() const { return manifest.study.stored_rows.all(); }

  [[nodiscard]] const char* why_missing() const {
    return manifest.study.stored_columns ? " (store.columns of the study names what is there)" : "";
  }

  [[nodiscard]] Summary compute_summary() const {
    const auto& objectives = manifest.study.objectives;
    for (const std::string& name : summary_columns(objectives)) (void)points.column(name);
    SummaryBuilder builder(directions_of(objectives, manifest.columns));
    if (!stores_all()) {
      for (const Table::Piece& piece : points.pieces) {
        builder.add(read_summary(H5File::open(piece.path), objectives));
      }
      return builder.finish();
    }
    std::vector<double> row(objectives.size());
    for (const Table::Piece& piece : points.pieces) {
      const RowRange range{piece.begin, piece.end};
      const auto ids = points.read<std::uint64_t>("point_id", range);
      const auto statuses = points.read<std::uint8_t>("status", range);
      const auto reasons = points.read<std::uint8_t>("reason", range);
      std::vector<std::vector<double>> values;
      for (const std::string& objective : objectives) values.push_back(points.read<double>(objective, range));
      for (std::size_t i = 0; i < ids.size(); ++i) {
        for (std::size_t k = 0; k < row.size(); ++k) row[k] = values[k][i];
        builder.add(ids[i], static_cast<Status>(statuses[i]), static_cast<Reason>(reasons[i]), row);
      }
    }
    return builder.finish();
  }
};

const std::vector<ColumnInfo>& TableReader::columns() const { return table_->columns; }
std::uint64_t TableReader::row_count() const { return table_->rows; }
const ColumnInfo* TableReader::find(std::string_view name) const { return table_->find(name); }

std::vector<double> TableReader::read(std::string_view column, RowRange rows) const {
  std::vector<double> values;
  read_into(column, rows, values);
  return values;
}

void TableReader::read_into(std::string_view column, RowRange rows, std::vector<double>& values) const {
  const ColumnInfo& info = table_->column(column);
  guarded(table_->files.path, [&] {
    table_->read(column, rows, values);
    remove_marks(values, info.fill);
  });
}

std::vector<std::uint64_t> TableReader::point_ids(RowRange rows) const {
  std::vector<std::uint64_t> ids;
  point_ids_into(rows, ids);
  return ids;
}

void TableReader::point_ids_into(RowRange rows, std::vector<std::uint64_t>& ids) const {
  const ColumnInfo& info = table_->column("point_id");
  guarded(table_->files.path, [&] { table_->read(info.name, rows, ids); });
}

bool TableReader::stored_alike(const TableReader& other, std::string_view column, RowRange rows) const {
  return guarded(table_->files.path, [&] { return table_->stored_alike(*other.table_, column, rows); });
}

ResultReader::ResultReader(const fs::path& path) {
  guarded(path, [&] { snapshot_ = std::make_unique<Snapshot>(path); });
  table_ = &snapshot_->points;
  samples_.table_ = &snapshot_->samples;
}
ResultReader::~ResultReader() = default;
ResultReader::ResultReader(ResultReader&&) noexcept = default;
ResultReader& ResultReader::operator=(ResultReader&&) noexcept = default;

const fs::path& ResultReader::path() const { return snapshot_->files.path; }
bool ResultReader::complete() const { return snapshot_->complete; }
const std::optional<SearchInfo>& ResultReader::search() const { return snapshot_->manifest.search; }
std::uint64_t ResultReader::point_count() const { return snapshot_->point_count; }
const StoredRows& ResultReader::stored_rows() const { return snapshot_->manifest.study.stored_rows; }
std::uint64_t ResultReader::total_points() const { return layout().rows(); }
const BlockLayout& ResultReader::layout() const { return snapshot_->manifest.layout; }
const ShardRange& ResultReader::shards() const { return snapshot_->manifest.shards; }
bool ResultReader::stands_for_study() const {
  return stored_rows().all() && layout().selection.kind != SelectionKind::first &&
         layout().selection.kind != SelectionKind::search && row_count() == layout().total_points;
}
const char* ResultReader::why_missing() const { return snapshot_->why_missing(); }

const std::map<std::string, std::string>& ResultReader::attributes() const { return snapshot_->attributes; }
std::string ResultReader::attribute(std::string_view name) const {
  const auto found = attributes().find(std::string(name));
  return found == attributes().end() ? "" : found->second;
}
const std::vector<std::string>& ResultReader::objectives() const {
  return snapshot_->manifest.study.objectives;
}
std::string ResultReader::resolved_yaml() const { return snapshot_->manifest.study.resolved_yaml; }
std::vector<SourceText> ResultReader::sources() const { return snapshot_->manifest.study.sources; }
std::vector<LinkRecord> ResultReader::links() const { return snapshot_->manifest.study.links.records(); }
std::vector<std::string> ResultReader::link_dimensions() const {
  return snapshot_->manifest.study.dimensions;
}

Summary ResultReader::summary() const {
  return guarded(path(), [&] {
    return snapshot_->complete ? read_summary(*snapshot_->files.finished, objectives())
                               : snapshot_->compute_summary();
  });
}

}  // namespace shardscape::results
