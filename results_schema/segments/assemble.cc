// Makes the finished file from segments, or from finished shards: packed chunks are copied block by block, summaries
// added up (or made anew from the rows), and the file is put in place in one step. Where a sweep does not store all
// rows, they are chosen among the candidates of its parts in one pass, and then copied, with their fault samples.
#include "results_schema/segments/assemble.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <system_error>

#include "engine/base/check.h"
#include "engine/base/words.h"
#include "results_schema/disk/files.h"
#include "results_schema/hdf5/chunk_filler.h"
#include "results_schema/hdf5/hdf5_io.h"
#include "results_schema/hdf5/manifest.h"
#include "results_schema/hdf5/manifest_io.h"
#include "results_schema/hdf5/tables_io.h"
#include "results_schema/rows/stored_rows.h"

namespace shardscape::results {

namespace fs = std::filesystem;

namespace {

/// Opens a part; StoreError where it is not what it should be.
using OpenPart = std::function<H5File(const std::filesystem::path& path)>;

constexpr const char* kIds = "/points/point_id";

/// The rows of a table whose point is in `chosen`, or all rows where there is no choice. Both lists ascend by id.
std::vector<RowRange> rows_of(const Dataset& ids, const std::optional<std::vector<std::uint64_t>>& chosen) {
  const std::uint64_t rows = ids.rows();
  if (!chosen && rows > 0) return {{0, rows}};
  std::vector<RowRange> found;
  for (std::uint64_t begin = 0; begin < rows; begin += kRowsAtOnce) {
    const auto here = ids.read<std::uint64_t>(begin, std::min(rows, begin + kRowsAtOnce));
    auto next = std::ranges::lower_bound(*chosen, here.front());
    for (std::size_t i = 0; i < here.size(); ++i) {
      while (next != chosen->end() && *next < here[i]) ++next;
      if (next != chosen->end() && *next == here[i]) append_row(found, begin + i);
    }
  }
  return found;
}

std::uint64_t count_rows(std::span<const RowRange> ranges) {
  std::uint64_t rows = 0;
  for (const RowRange& range : ranges) rows += range.end - range.begin;
  return rows;
}

class StoredAssembly {
 public:
  StoredAssembly(const Manifest& manifest, std::span<const fs::path> parts, const OpenPart& open)
      : manifest_(manifest), parts_(parts), open_(open) {}

  Summary write(const H5File& output) {
    const Summary summary = choose();
    write_points(output);
    if (!manifest_.sample_columns.empty()) write_samples(output);
    return summary;
  }

 private:
  /// One pass over the deciding columns and the summaries: chooses the rows, and returns the summary of all points.
  Summary choose() {
    const StudyInfo& study = manifest_.study;
    SummaryBuilder summary(directions_of(study.objectives, manifest_.columns));
    RowSelector selector(study.stored_rows, deciding_directions(manifest_));
    const bool feasible = study.stored_rows.choice == RowChoice::feasible;
    for (const fs::path& path : parts_) {
      const H5File file = open_(path);
      check_lengths(file);
      summary.add(read_summary(file, study.objectives));
      offer_rows(file, selector);
      rows_ += file.dataset(kIds).rows();
    }
    if (!feasible) {
      chosen_ = selector.chosen();
      rows_ = chosen_->size();
    }
    return summary.finish();
  }

  /// Checks that all columns have as many rows: a chunk is read whole, whatever a damaged header says about its rows.
  void check_lengths(const H5File& file) const {
    const std::uint64_t rows = file.dataset(kIds).rows();
    for (const ColumnInfo& column : manifest_.columns) {
      const Dataset dataset = file.dataset("/points/" + column.name);
      if (dataset.rows() != rows) dataset.fail(fmt::format("has {} rows, not {}", dataset.rows(), rows));
    }
    (void)sample_rows(file, manifest_.sample_columns);
  }

  /// Offers the rows of a part to the selector. Ids must ascend from part to part, as rows are found again by them
  /// (rows_of()).
  void offer_rows(const H5File& file, RowSelector& selector) {
    const Dataset ids = file.dataset(kIds);
    std::vector<Dataset> measures;
    for (const std::string& name : manifest_.study.stored_rows.measures(manifest_.study.objectives))
      measures.push_back(file.dataset("/points/" + name));
    std::vector<double> row(measures.size());
    for (std::uint64_t begin = 0; begin < ids.rows(); begin += kRowsAtOnce) {
      const std::uint64_t end = std::min(ids.rows(), begin + kRowsAtOnce);
      const auto here = ids.read<std::uint64_t>(begin, end);
      std::vector<std::vector<double>> values;
      for (const Dataset& measure : measures) values.push_back(measure.read<double>(begin, end));
      for (std::size_t i = 0; i < here.size(); ++i) {
        if (last_id_ && here[i] <= *last_id_) ids.fail(fmt::format("does not ascend at point {}", here[i]));
        last_id_ = here[i];
        for (std::size_t k = 0; k < row.size(); ++k) row[k] = values[k][i];
        selector.offer(here[i], row);
      }
    }
  }

  /// Writes the rows, and finds on the way which samples belong to them.
  void write_points(const H5File& output) {
    const std::uint64_t rows_per_block = manifest_.layout.rows_per_block;
    std::vector<Dataset> targets;
    for (const ColumnInfo& column : manifest_.columns)
      targets.push_back(output.create_column("/points", column, rows_, rows_per_block));
    ChunkFiller filler(types_of(manifest_.columns), rows_per_block);
    for (const fs::path& path : parts_) {
      const H5File file = open_(path);
      if (!manifest_.sample_columns.empty())
        samples_.push_back(rows_of(file.dataset(std::string(kSamplesGroup) + "/point_id"), chosen_));
      const std::vector<RowRange> rows = rows_of(file.dataset(kIds), chosen_);
      if (rows.empty()) continue;
      for (std::size_t c = 0; c < targets.size(); ++c) {
        const Dataset source = file.dataset("/points/" + manifest_.columns[c].name);
        if (!source.has_type(manifest_.columns[c].type)) source.fail("does not have the type of the study");
        filler.append_rows(c, ColumnPieces(source), rows, targets[c].chunk_writer());
      }
    }
    for (std::size_t c = 0; c < targets.size(); ++c) filler.finish(c, targets[c].chunk_writer());
  }

  void write_samples(const H5File& output) const {
    std::uint64_t rows = 0;
    for (const std::vector<RowRange>& part : samples_) rows += count_rows(part);
    SampleWriter samples(create_samples(output, manifest_.sample_columns, rows));
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (!samples_[i].empty()) samples.append_from(open_(parts_[i]), samples_[i]);
    }
    samples.finish();
  }

  const Manifest& manifest_;
  const std::span<const fs::path> parts_;
  const OpenPart& open_;
  std::optional<std::vector<std::uint64_t>> chosen_;  ///< ids of the rows to store; nothing: all rows
  std::uint64_t rows_ = 0;                            ///< number of rows to store
  std::optional<std::uint64_t> last_id_;              ///< id of the latest row offered
  std::vector<std::vector<RowRange>> samples_;        ///< samples to store, by part
};

/// Writes /points, and /fault_samples where the study has faults, with the rows to store of `parts`: segments or
/// finished files in the order of their points, each with all its rows that may be stored. Takes memory for the ids of
/// the rows (for `feasible` not even that) and one chunk per column. Returns the summary of all points.
Summary write_stored_rows(const Manifest& manifest, std::span<const fs::path> parts, const OpenPart& open,
                          const H5File& output) {
  return StoredAssembly(manifest, parts, open).write(output);
}

/// Collects, block by block, the decoded columns that the summary needs.
class SummaryFeed {
 public:
  SummaryFeed(SummaryBuilder& builder, const std::vector<std::string>& objectives,
              std::span<const ColumnInfo> columns)
      : builder_(builder) {
    for (const std::string& name : summary_columns(objectives)) {
      const auto found = std::ranges::find(columns, name, &ColumnInfo::name);
      sources_.push_back(static_cast<std::size_t>(found - columns.begin()));
    }
    numbers_.resize(sources_.size());
    row_.resize(objectives.size());
  }

  [[nodiscard]] bool needs(std::size_t column) const { return std::ranges::count(sources_, column) > 0; }

  void take(std::size_t column, ColumnType type, std::span<const std::byte> values, std::uint32_t rows) {
    for (std::size_t slot = 0; slot < sources_.size(); ++slot) {
      if (sources_[slot] != column) continue;
      if (slot == 0) {
        ids_.resize(rows);
        std::memcpy(ids_.data(), values.data(), rows * sizeof(std::uint64_t));
      } else {
        numbers_[slot].clear();
        append_numbers(type, values, rows, numbers_[slot]);
      }
    }
  }

  void end_block(std::uint32_t rows) {
    for (std::uint32_t i = 0; i < rows; ++i) {
      for (std::size_t k = 0; k < row_.size(); ++k) row_[k] = numbers_[3 + k][i];
      builder_.add(ids_[i], static_cast<Status>(numbers_[1][i]), static_cast<Reason>(numbers_[2][i]), row_);
    }
  }

 private:
  SummaryBuilder& builder_;
  std::vector<std::size_t> sources_;  ///< places of the columns point_id, status, reason, objectives
  std::vector<std::uint64_t> ids_;
  std::vector<std::vector<double>> numbers_;  ///< by source; [0] stays empty, as the ids are in ids_
  std::vector<double> row_;
};

/// What is copied. Segments have a checksum as a whole and the summary of their rows. Of finished files, which have
/// none as a whole, every chunk is unpacked, and the summary is made from the rows.
enum class From { segments, files };

H5File open_part(From from, const fs::path& path) {
  if (from == From::files) return H5File::open(path);
  if (!is_as_sealed(path)) throw StoreError(path, std::string("is damaged: it ") + kNotAsSealed);
  return H5File::open_whole(path);
}

/// One pass over segments or files: every chunk is copied as it is.
class Copier {
 public:
  Copier(From from, const Manifest& manifest, const H5File& output)
      : from_(from),
        manifest_(manifest),
        builder_(directions_of(manifest.study.objectives, manifest.columns)),
        feed_(builder_, manifest_.study.objectives, manifest_.columns),
        decoder_(manifest_.layout.rows_per_block),
        whole_(manifest_.columns.size()) {
    for (const ColumnInfo& column : manifest_.columns) {
      targets_.push_back(output.create_column("/points", column, manifest_.layout.rows(), rows_per_block()));
    }
  }

  void copy(const Segment& segment) {
    const H5File file = open_part(from_, segment.path);
    if (from_ == From::segments) builder_.add(read_summary(file, manifest_.study.objectives));
    std::vector<Dataset> sources;
    for (const ColumnInfo& column : manifest_.columns) {
      sources.push_back(file.dataset("/points/" + column.name));
      if (!sources.back().has_type(column.type) || sources.back().chunk_rows() != rows_per_block()) {
        file.fail("/points/" + column.name + " does not have the type or chunk length of the study");
      }
    }
    for (std::uint64_t block = segment.blocks.first; block < segment.blocks.end(); ++block) {
      copy_block(sources, block, segment.blocks.first);
    }
  }

  [[nodiscard]] Summary summary() const { return builder_.finish(); }

 private:
  [[nodiscard]] std::uint32_t rows_per_block() const { return manifest_.layout.rows_per_block; }

  void copy_block(const std::vector<Dataset>& sources, std::uint64_t block, std::uint64_t first_of_segment) {
    const std::uint64_t from = (block - first_of_segment) * rows_per_block();
    const std::uint64_t to = (block - manifest_.layout.blocks.first) * rows_per_block();
    const std::uint32_t rows = manifest_.layout.rows_of(block);
    for (std::size_t c = 0; c < sources.size(); ++c) {
      const ColumnType type = manifest_.columns[c].type;
      sources[c].read_chunk(from, ChunkPacker::most_bytes(rows_per_block() * size_of(type)), chunk_);
      if (from_ == From::files && !summed_up(c, type, rows))
        sources[c].fail(fmt::format("the chunk of row {} is damaged", from));
      targets_[c].write_chunk(to, chunk_);
    }
    if (from_ == From::files) feed_.end_block(rows);
  }

  /// Adds the chunk to the summary if that needs the column, else only verifies it; false where the chunk is damaged.
  bool summed_up(std::size_t column, ColumnType type, std::uint32_t rows) {
    if (!feed_.needs(column)) {
      std::vector<std::byte>& whole = whole_[column];
      if (chunk_ == whole) return true;
      if (!decoder_.is_whole(type, chunk_)) return false;
      whole = chunk_;
      return true;
    }
    const auto values = decoder_.decode(type, chunk_);
    if (!values.empty()) feed_.take(column, type, values, rows);
    return !values.empty();
  }

  const From from_;
  const Manifest& manifest_;
  SummaryBuilder builder_;
  SummaryFeed feed_;
  BlockDecoder decoder_;
  std::vector<Dataset> targets_;
  std::vector<std::byte> chunk_;
  /// By column, the latest chunk that was found undamaged: many columns repeat one chunk in block after block.
  std::vector<std::vector<std::byte>> whole_;
};

/// Writes the /fault_samples of all segments, one segment after the other.
void gather_samples(const Manifest& manifest, const std::vector<Segment>& segments, const H5File& output) {
  const std::vector<ColumnInfo>& columns = manifest.sample_columns;
  if (columns.empty()) return;
  std::uint64_t rows = 0;
  for (const Segment& segment : segments) rows += sample_rows(H5File::open(segment.path), columns);
  SampleWriter samples(create_samples(output, columns, rows));
  for (const Segment& segment : segments) samples.append_from(H5File::open(segment.path));
  samples.finish();
}

Summary copy_all(From from, const Manifest& manifest, const std::vector<Segment>& segments,
                 const H5File& output) {
  Summary summary;
  {
    Copier copier(from, manifest, output);
    for (const Segment& segment : segments) copier.copy(segment);
    summary = copier.summary();
  }
  gather_samples(manifest, segments, output);
  return summary;
}

Summary choose_rows(From from, const Manifest& manifest, const std::vector<Segment>& segments,
                    const H5File& output) {
  std::vector<fs::path> paths;
  for (const Segment& segment : segments) paths.push_back(segment.path);
  return write_stored_rows(
      manifest, paths, [&](const fs::path& path) { return open_part(from, path); }, output);
}

void check_complete(const SegmentStore& store) {
  const auto gaps = store.missing();
  if (gaps.empty()) return;
  std::uint64_t rows = 0;
  for (const BlockRange& gap : gaps) rows += store.manifest().layout.rows_in(gap);
  throw StoreError(store.folder(), fmt::format("is not complete: {} points are missing", rows));
}

/// Fails before the first byte is written if the disk cannot hold the copy.
void check_space(const std::vector<Segment>& segments, const fs::path& folder) {
  std::uintmax_t needed = 0;
  std::error_code error;
  for (const Segment& segment : segments) needed += fs::file_size(segment.path, error);
  const fs::space_info space = fs::space(folder, error);
  if (error || space.available >= needed) return;
  throw StoreError(
      folder, fmt::format("no space left to assemble the result: {} bytes are needed, {} are free", needed,
                          space.available));
}

Summary write_output(From from, const Manifest& manifest, const std::vector<Segment>& segments,
                     const fs::path& path, const RunInfo& run) {
  H5File file = H5File::create(path);
  write_manifest(file, kResultsSchema, manifest, run, true);
  const Summary summary = manifest.study.stored_rows.all() ? copy_all(from, manifest, segments, file)
                                                           : choose_rows(from, manifest, segments, file);
  write_summary(file, summary, manifest.study.objectives, manifest.columns);
  write_dimensions(file);
  file.close();
  return summary;
}

/// Writes the output under a temporary name and puts it in place; on failure nothing remains.
Summary publish_output(From from, const Manifest& manifest, const std::vector<Segment>& segments,
                       const fs::path& temporary, const OutputPath& output, const RunInfo& run) {
  make_free(temporary);
  try {
    const Summary summary = write_output(from, manifest, segments, temporary, run);
    output.publish(temporary);
    return summary;
  } catch (const StoreError&) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw;
  }
}

/// The name under which the file is written: in the folder of segments, of which a killed sweep leaves nothing else, or
/// beside `output` if it cannot be renamed from there.
fs::path assembly_name(const fs::path& folder, const OutputPath& output) {
  struct stat here {};
  struct stat there {};
  const bool same = ::stat(folder.c_str(), &here) == 0 && ::stat(output.folder().c_str(), &there) == 0 &&
                    here.st_dev == there.st_dev;
  return same ? folder / (std::string("assembled.h5") + kTemporaryEnding) : temporary_name(output.folder());
}

/// The first 12 digits of a fingerprint, enough for messages.
std::string first_digits(const std::string& fingerprint) { return fingerprint.substr(0, 12); }

/// The inputs in which two studies differ, in words.
std::string different_inputs(const StudyInfo& a, const StudyInfo& b) {
  std::vector<std::string> differ;
  const auto require = [&](bool same, const std::string& what) {
    if (!same) differ.push_back(what);
  };
  const auto text_of = [](const StudyInfo& study, const std::string& name) -> const std::string* {
    const auto found = std::ranges::find(study.sources, name, &SourceText::name);
    return found == study.sources.end() ? nullptr : &found->text;
  };
  const auto same_text = [](const std::string* x, const std::string* y) {
    return x != nullptr && y != nullptr && *x == *y;
  };
  require(a.title == b.title, "title");
  require(a.seed == b.seed, "seed");
  require(a.objectives == b.objectives, "objectives");
  for (const SourceText& source : a.sources)
    require(same_text(&source.text, text_of(b, source.name)), source.name);
  for (const SourceText& source : b.sources) require(text_of(a, source.name) != nullptr, source.name);
  require(a.resolved_yaml == b.resolved_yaml, "resolved study");
  return joined(differ, ", ", {}, " and ");
}

/// The fingerprints in which a part differs from another one; empty where they are equal.
std::string different_fingerprints(const Manifest& part, const SweepPart& one) {
  const Manifest& other = one.manifest;
  const std::string path = one.path.string();
  std::vector<std::string> differ;
  const std::string study = study_sha256(part.study), other_study = study_sha256(other.study);
  if (study != other_study)
    differ.push_back(fmt::format("belongs to another study than {} (study_sha256 {}, not {}): the {} differ",
                                 path, first_digits(study), first_digits(other_study),
                                 different_inputs(part.study, other.study)));
  const std::string columns = columns_sha256(part.columns), other_columns = columns_sha256(other.columns);
  if (columns != other_columns)
    differ.push_back(fmt::format("has other columns than {} (columns_sha256 {}, not {})", path,
                                 first_digits(columns), first_digits(other_columns)));
  else if (part.columns != other.columns || part.sample_columns != other.sample_columns)
    differ.push_back(fmt::format("has other columns than {}", path));
  const RunInfo &run = part.run, &other_run = other.run;
  if (run.software_version != other_run.software_version || run.git_commit != other_run.git_commit)
    differ.push_back(fmt::format("comes from version {} ({}) of the program, {} from {} ({})",
                                 run.software_version, run.git_commit, path, other_run.software_version,
                                 other_run.git_commit));
  return joined(differ, "; ");
}

/// StoreError unless the manifest's fingerprints are those of what the file holds.
void check_fingerprints(const H5File& file, const Manifest& manifest) {
  if (file.text_attribute("study_sha256") != study_sha256(manifest.study))
    file.fail("/study is not what study_sha256 says; see what `shardscape verify` finds");
  if (file.text_attribute("columns_sha256") != columns_sha256(manifest.columns))
    file.fail("/points has other columns than columns_sha256 says; see what `shardscape verify` finds");
}

/// The shards that neighbouring parts cover together; count 0 where they are not of one division into shards.
ShardRange shards_of(std::span<const SweepPart> parts, bool whole) {
  if (whole) return {};
  ShardRange range = parts.front().manifest.shards;
  for (const SweepPart& part : parts.subspan(1)) {
    const ShardRange& next = part.manifest.shards;
    if (next.count != range.count || next.first != range.last + 1) return {1, 1, 0};
    range.last = next.last;
  }
  return range;
}

}  // namespace

Summary assemble(SegmentStore&& store, const OutputPath& output, const RunInfo& run) {
  const QuietErrors quiet;
  store.scan();
  check_complete(store);
  const fs::path temporary = assembly_name(store.folder(), output);
  check_space(store.segments(), directory_of(temporary));
  const Summary summary =
      publish_output(From::segments, store.manifest(), store.segments(), temporary, output, run);
  std::move(store).abandon();
  return summary;
}

// ---- shards ----

std::vector<SweepPart> open_parts(std::span<const fs::path> files) {
  const QuietErrors quiet;
  std::vector<SweepPart> parts;
  for (const fs::path& path : files) {
    const H5File file = H5File::open(path);
    check_schema(file, kResultsSchema);
    parts.push_back({path, read_manifest(file)});
    check_fingerprints(file, parts.back().manifest);
  }
  std::ranges::stable_sort(parts, {},
                           [](const SweepPart& part) { return part.manifest.layout.blocks.first; });
  return parts;
}

std::vector<std::string> merge_problems(std::span<const SweepPart> parts) {
  std::vector<std::string> problems;
  const auto bad = [&](const SweepPart& part, const std::string& what) {
    problems.push_back(part.path.string() + ": " + what);
  };
  const auto points = [](const BlockLayout& layout, std::uint64_t first, std::uint64_t end) {
    return fmt::format("points {} .. {}", layout.point(layout.first_row(first)),
                       layout.point(std::min(layout.total_points, layout.first_row(end)) - 1));
  };
  const auto choice = [](const BlockLayout& layout) {
    const std::string count = fmt::format("{} points", layout.total_points);
    switch (layout.selection.kind) {
      case SelectionKind::first:
        return "the first " + count;
      case SelectionKind::sample:
        return fmt::format("a sample of {} (seed {})", count, layout.selection.seed);
      case SelectionKind::search:
        return count + " that a search visited";
      case SelectionKind::all:
        break;
    }
    return "all " + count;
  };
  const SweepPart& one = parts.front();
  std::uint64_t end = one.manifest.layout.blocks.first;
  for (const SweepPart& part : parts) {
    const Manifest &m = part.manifest, &first = one.manifest;
    if (m.layout.selection.kind == SelectionKind::search)
      bad(part, "holds the points that a search visited, which are no part of a sweep");
    else if (m.study.stored_rows != first.study.stored_rows)
      bad(part,
          fmt::format("stores other rows ({}) than {} ({}): store.rows of their studies differ",
                      to_string(m.study.stored_rows), one.path.string(), to_string(first.study.stored_rows)));
    else if (const std::string differ = different_fingerprints(m, one); !differ.empty())
      bad(part, differ);
    else if (m.layout.total_points != first.layout.total_points ||
             m.layout.rows_per_block != first.layout.rows_per_block ||
             m.layout.selection != first.layout.selection)
      bad(part, "comes from a sweep of " + choice(m.layout) + ", " + one.path.string() + " of " +
                    choice(first.layout));
    else if (m.layout.blocks.first < end)
      bad(part, points(m.layout, m.layout.blocks.first, std::min(end, m.layout.blocks.end())) +
                    " are in another of the files, too");
    else if (m.layout.blocks.first > end)
      bad(part,
          points(m.layout, end, m.layout.blocks.first) + ", which come before, are in none of the files");
    end = std::max(end, m.layout.blocks.end());
  }
  return problems;
}

Summary merge(std::span<const SweepPart> parts, const OutputPath& output, const RunInfo& run) {
  const QuietErrors quiet;
  const std::vector<std::string> problems = merge_problems(parts);
  SHARDSCAPE_CHECK(problems.empty(), parts.size(), problems.front());
  Manifest manifest = parts.front().manifest;
  std::vector<Segment> segments;
  for (const SweepPart& part : parts) segments.push_back({part.path, part.manifest.layout.blocks});
  manifest.layout.blocks.count = segments.back().blocks.end() - manifest.layout.blocks.first;
  manifest.shards = shards_of(parts, manifest.layout.is_unsharded());
  check_space(segments, output.folder());
  return publish_output(From::files, manifest, segments, temporary_name(output.folder()), output, run);
}

}  // namespace shardscape::results
