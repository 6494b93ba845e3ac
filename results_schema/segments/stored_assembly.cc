// Chooses the rows of a finished file in one pass over its parts, then copies those rows of every column, and the fault
// samples that belong to them.
#include "results_schema/segments/stored_assembly.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "results_schema/hdf5/chunk_filler.h"
#include "results_schema/hdf5/tables_io.h"
#include "results_schema/rows/stored_rows.h"

namespace shardscape::results {

namespace {

namespace fs = std::filesystem;

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

}  // namespace

Summary write_stored_rows(const Manifest& manifest, std::span<const fs::path> parts, const OpenPart& open,
                          const H5File& output) {
  return StoredAssembly(manifest, parts, open).write(output);
}

}  // namespace shardscape::results
