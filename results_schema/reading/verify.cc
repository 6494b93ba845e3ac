// Reads a file's rows range by range and checks each rule; problems of one kind are counted in one line with the first
// point.
#include "results_schema/reading/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>

#include "engine/spec/prediction.h"
#include "results_schema/hdf5/manifest.h"
#include "results_schema/hdf5/tables_io.h"
#include "results_schema/reading/row_scan.h"
#include "results_schema/rows/block.h"
#include "results_schema/rows/stored_rows.h"
#include "results_schema/rows/summary.h"
#include "results_schema/segments/segments.h"

namespace shardscape::results {

namespace {

// Checks of a finished file that does not store all rows.

constexpr const char* kOtherTop = "/summary/top is not that of the rows";
constexpr const char* kOtherFront = "/summary/pareto is not that of the rows";

class StoredVerifier {
 public:
  StoredVerifier(const ResultReader& reader, const Summary& of_rows)
      : reader_(reader), rows_(reader.stored_rows()), stored_(reader.summary()), of_rows_(of_rows) {}

  std::vector<std::string> run() {
    check_counts();
    switch (rows_.choice) {
      case RowChoice::feasible:
        require(stored_.top == of_rows_.top, kOtherTop);
        require(stored_.pareto == of_rows_.pareto, kOtherFront);
        break;
      case RowChoice::pareto:
        check_front();
        break;
      case RowChoice::top:
        check_top();
        break;
      case RowChoice::all:
        break;
    }
    return std::move(problems_);
  }

 private:
  void require(bool holds, const std::string& problem) {
    if (!holds) problems_.push_back(problem);
  }

  /// In studies with faults, objectives may have no value at feasible points, which are then not ranked.
  void check_counts() {
    std::uint64_t points = 0, feasible = 0;
    for (const CodeCount& status : stored_.statuses) {
      points += status.count;
      if (static_cast<Status>(status.code) == Status::ok) feasible += status.count;
    }
    require(points == reader_.point_count(), "/summary counts other points than there are");
    const bool top = rows_.choice == RowChoice::top;
    const std::uint64_t most = top ? std::min(rows_.count, feasible) : feasible;
    const bool exact = rows_.choice == RowChoice::feasible || (top && reader_.samples().columns().empty());
    const bool fits = reader_.row_count() <= most && (!exact || reader_.row_count() == most);
    require(fits, fmt::format("/points has {} rows, which are not '{}' of {} feasible points",
                              reader_.row_count(), to_string(rows_), feasible));
  }

  /// Checks that no row dominates another. If the front is that of the objectives, the summary must have the same.
  void check_front() {
    if (rows_.front == reader_.objectives()) require(stored_.pareto == of_rows_.pareto, kOtherFront);
    RowSelector selector(rows_, directions_of(rows_.front, reader_.columns()));
    std::vector<double> row(rows_.front.size());
    for (RowScan scan(reader_, rows_.front); scan.next();) {
      const auto ids = scan.point_ids();
      for (std::size_t i = 0; i < scan.size(); ++i) {
        for (std::size_t k = 0; k < row.size(); ++k) row[k] = scan.values(k)[i];
        selector.offer(ids[i], row);
      }
    }
    require(selector.chosen().size() == reader_.row_count(),
            "/points holds a point that another row dominates");
  }

  /// Checks the ranking as far as the rows reach, and of the front the points that rank before all that were left out.
  void check_top() {
    const std::size_t ranked = std::min<std::uint64_t>(rows_.count, stored_.top.size());
    require(std::ranges::equal(std::span(stored_.top).first(ranked), of_rows_.top), kOtherTop);
    const double last = last_objective();
    const bool whole = reader_.row_count() < rows_.count;
    const bool same = std::ranges::all_of(stored_.pareto, [&](const RankedPoint& point) {
      const bool is_row = whole || cost(point.values.front()) < last;
      return !is_row || std::ranges::count(of_rows_.pareto, point) > 0;
    });
    require(same, kOtherFront);
  }

  /// The first objective with its sign turned so that smaller is better.
  [[nodiscard]] double cost(double first_objective) const {
    const bool larger = reader_.find(reader_.objectives().front())->better == Better::larger;
    return larger ? -first_objective : first_objective;
  }

  /// The cost of the row that ranks last.
  [[nodiscard]] double last_objective() const {
    double last = -std::numeric_limits<double>::infinity();
    for (RowScan scan(reader_, {reader_.objectives().front()}); scan.next();) {
      for (const double value : scan.values(0)) last = std::max(last, cost(value));
    }
    return last;
  }

  const ResultReader& reader_;
  const StoredRows& rows_;
  const Summary stored_;
  const Summary& of_rows_;
  std::vector<std::string> problems_;
};

/// Whether the point is one of those that the file is made from; points ascend with their rows. Their choice must be
/// known (PointSelection::knows_points()).
bool is_of_file(const BlockLayout& layout, std::uint64_t point_id) {
  std::uint64_t low = layout.first_row(layout.blocks.first);
  const std::uint64_t end = low + layout.rows();
  for (std::uint64_t high = end; low < high;) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (layout.point(middle) < point_id)
      low = middle + 1;
    else
      high = middle;
  }
  return low < end && layout.point(low) == point_id;
}

/// Checks that the counts cover all points, that there are as many rows as follows from them, that the rows are chosen
/// as the file says, and that they agree with /summary as far as they reach. `of_rows`: the summary made from the rows
/// alone.
std::vector<std::string> stored_rows_problems(const ResultReader& reader, const Summary& of_rows) {
  return StoredVerifier(reader, of_rows).run();
}

constexpr double kBreakdownTolerance = 1e-5;  // the terms are stored as f4
constexpr double kSlowdownTolerance = 1e-12;
constexpr double kMeanTolerance = 1e-9;

/// Collects problems; those of one kind become one line.
class Problems {
 public:
  void add(const std::string& what) { found_.try_emplace(what); }
  void add(const std::string& what, std::uint64_t point) {
    auto& entry = found_[what];
    if (++entry.count == 1) entry.point = point;
  }
  [[nodiscard]] std::vector<std::string> lines() const {
    std::vector<std::string> lines;
    for (const auto& [what, entry] : found_) {
      lines.push_back(entry.count == 0
                          ? what
                          : fmt::format("{} ({} times, first at point {})", what, entry.count, entry.point));
    }
    return lines;
  }

 private:
  struct Entry {
    std::uint64_t count = 0, point = 0;
  };
  std::map<std::string, Entry> found_;
};

class Verifier {
 public:
  Verifier(const std::filesystem::path& file, const std::function<void()>& step)
      : file_(file), reader_(file), step_(step) {
    training_ = reader_.find("step_time_s") != nullptr;
    const auto& columns = reader_.columns();
    values_.resize(columns.size());
    status_column_ = place_of("status");
    reason_column_ = place_of("reason");
    time_column_ = place_of(training_ ? "step_time_s" : "e2e_s");
    for (const std::string& name : reader_.objectives()) objective_columns_.push_back(place_of(name));
    for (std::size_t c = 0; c < columns.size(); ++c) {
      if (columns[c].group == ColumnGroup::breakdown) breakdown_columns_.push_back(c);
    }
    whole_breakdown_ = reader_.attribute(kStoredColumns).empty() || holds_breakdown();
  }

  Verification run() {
    check_fingerprints();
    check_search();
    SummaryBuilder builder(directions_of(reader_.objectives(), reader_.columns()));
    for (std::uint64_t begin = 0; begin < reader_.row_count(); begin += kRowsAtOnce) {
      check_rows(begin, builder);
      step();
    }
    step();
    if (reader_.complete()) check_summary(builder.finish());
    if (!reader_.samples().columns().empty()) check_samples();
    return {reader_.row_count(), reader_.samples().row_count(), problems_.lines()};
  }

 private:
  void step() const {
    if (step_) step_();
  }

  using Columns = std::map<std::string, std::vector<double>, std::less<>>;

  [[nodiscard]] bool holds_breakdown() const {
    const ColumnTable all(Phase::training);
    return std::ranges::all_of(all.columns(), [&](const ColumnInfo& column) {
      return column.group != ColumnGroup::breakdown || reader_.find(column.name) != nullptr;
    });
  }

  void check_fingerprints() {
    StudyInfo study;
    study.title = reader_.attribute("title");
    study.resolved_yaml = reader_.resolved_yaml();
    study.sources = reader_.sources();
    study.objectives = reader_.objectives();
    study.seed = std::strtoull(reader_.attribute("seed").c_str(), nullptr, 10);
    if (study_sha256(study) != reader_.attribute("study_sha256"))
      problems_.add("/study is not what study_sha256 says");
    if (columns_sha256(reader_.columns()) != reader_.attribute("columns_sha256"))
      problems_.add("/points has other columns than columns_sha256 says");
  }

  /// Checks that every point of the study has one fate, and that the visited ones are rows; where none was visited, the
  /// file holds the first point.
  void check_search() {
    const BlockLayout& layout = reader_.layout();
    const std::optional<SearchInfo>& search = reader_.search();
    if (!search) return;
    std::uint64_t points = 0;
    for (const std::uint64_t count : search->counts) points += count;
    const std::uint64_t visited = search->counts[static_cast<std::size_t>(Fate::visited)];
    if (points != layout.selection.study_points)
      problems_.add("/search/count does not add up to the points of the study");
    if (std::max<std::uint64_t>(visited, 1) != layout.total_points)
      problems_.add("/search/count has another number of visited points than there are rows");
  }

  /// The place of a column; StoreError where there is none of that name.
  std::size_t place_of(const std::string& name) const {
    const auto found = std::ranges::find(reader_.columns(), name, &ColumnInfo::name);
    if (found == reader_.columns().end()) throw StoreError(file_, "has no column " + name);
    return static_cast<std::size_t>(found - reader_.columns().begin());
  }

  void check_rows(std::uint64_t begin, SummaryBuilder& builder) {
    const RowRange range{begin, begin + kRowsAtOnce};
    reader_.point_ids_into(range, ids_);
    for (std::size_t c = 0; c < values_.size(); ++c) {
      reader_.read_into(reader_.columns()[c].name, range, values_[c]);
      check_codes(reader_.columns()[c], values_[c]);
    }
    const auto &status = values_[status_column_], &reason = values_[reason_column_];
    const auto& time = values_[time_column_];
    const BlockLayout& layout = reader_.layout();
    const std::uint64_t row_of_sweep = layout.first_row(layout.blocks.first) + begin;
    const bool known_points =
        reader_.complete() && layout.selection.knows_points() && reader_.stored_rows().all();
    std::vector<double> row(objective_columns_.size());
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      const std::uint64_t id = ids_[i];
      const bool ok = static_cast<Status>(status[i]) == Status::ok;
      const bool timed = is_timed(static_cast<Status>(status[i]));
      if (last_id_ && id <= *last_id_) problems_.add("/points/point_id does not ascend", id);
      if (known_points && id != layout.point(row_of_sweep + i))
        problems_.add("/points misses rows before", id);
      if (!reader_.stored_rows().all()) check_stored(id, ok);
      last_id_ = id;
      if (ok != (static_cast<Reason>(reason[i]) == Reason::none))
        problems_.add("/points/reason does not fit the status", id);
      if (timed != (std::isfinite(time[i]) && time[i] > 0))
        problems_.add(training_ ? "/points/step_time_s does not fit the status"
                                : "/points/e2e_s does not fit the status",
                      id);
      if (timed && training_ && whole_breakdown_) check_breakdown(i, time[i]);
      for (std::size_t k = 0; k < row.size(); ++k) row[k] = values_[objective_columns_[k]][i];
      builder.add(id, static_cast<Status>(status[i]), static_cast<Reason>(reason[i]), row);
    }
  }

  void check_codes(const ColumnInfo& column, const std::vector<double>& values) {
    if (column.meanings.empty()) return;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] < 0 || values[i] >= static_cast<double>(column.meanings.size()))
        problems_.add("/points/" + column.name + " holds a code without a meaning", ids_[i]);
    }
  }

  void check_breakdown(std::size_t i, double time) {
    double sum = 0;
    for (const std::size_t column : breakdown_columns_) sum += values_[column][i];
    if (!(std::abs(sum - time) <= kBreakdownTolerance * time))
      problems_.add("the breakdown does not add up to step_time_s", ids_[i]);
  }

  /// Checks one row of a file that does not store all rows.
  void check_stored(std::uint64_t id, bool ok) {
    if (!ok) problems_.add("/points holds a point that is not ok", id);
    if (reader_.layout().selection.knows_points() && !is_of_file(reader_.layout(), id))
      problems_.add("/points holds a point that is none of the sweep", id);
  }

  void check_summary(const Summary& expected) {
    if (!reader_.stored_rows().all()) {
      for (const std::string& problem : stored_rows_problems(reader_, expected)) problems_.add(problem);
      return;
    }
    const Summary stored = reader_.summary();
    if (stored.statuses != expected.statuses || stored.reasons != expected.reasons)
      problems_.add("/summary counts other points than there are");
    if (stored.top != expected.top) problems_.add("/summary/top is not that of the rows");
    if (stored.pareto != expected.pareto) problems_.add("/summary/pareto is not that of the rows");
  }

  // ---- /fault_samples ----

  /// The fault samples of one point, in their order.
  struct Group {
    std::uint64_t point = 0;
    std::size_t row = 0;
    std::int64_t samples = 0, reached = 0;
    double last_sample = -1, sum = 0;
  };

  void check_samples() {
    ids_ = reader_.point_ids();
    status_ = reader_.read("status");
    expected_samples_ = reader_.read("fault_samples");
    mean_ = reader_.read("slowdown_mean");
    healthy_ = reader_.read(training_ ? "step_time_s" : "e2e_s");
    std::vector<char> seen(ids_.size(), 0);
    std::optional<Group> group;
    const auto finish = [&] {
      if (group) finish_group(*group), seen[group->row] = 1;
    };
    Columns values;
    for (const ColumnInfo& column : reader_.samples().columns()) values[column.name];
    const auto &sample = values.at("sample"), &fault = values.at("fault");
    const auto &time = values.at("step_time_s"), &slowdown = values.at("slowdown");
    for (std::uint64_t begin = 0; begin < reader_.samples().row_count(); begin += kRowsAtOnce) {
      const RowRange range{begin, begin + kRowsAtOnce};
      const auto points = reader_.samples().point_ids(range);
      for (auto& [name, column] : values) reader_.samples().read_into(name, range, column);
      for (std::size_t i = 0; i < points.size(); ++i) {
        if (!group || group->point != points[i]) {
          finish();
          group = start_group(points[i]);
          if (!group) continue;
        }
        take(*group, sample[i], fault[i], time[i], slowdown[i]);
      }
      step();
    }
    finish();
    for (std::size_t row = 0; row < ids_.size(); ++row) {
      if (seen[row] == 0 && expected_samples_[row] > 0)
        problems_.add("/fault_samples misses a point that has samples", ids_[row]);
    }
  }

  std::optional<Group> start_group(std::uint64_t point) {
    const auto found = std::ranges::lower_bound(ids_, point);
    if (found == ids_.end() || *found != point) {
      problems_.add("/fault_samples holds a point that is none", point);
      return std::nullopt;
    }
    const auto row = static_cast<std::size_t>(found - ids_.begin());
    if (!is_timed(static_cast<Status>(status_[row])))
      problems_.add("/fault_samples holds a point that has no time", point);
    return Group{point, row};
  }

  void take(Group& group, double sample, double fault, double time, double slowdown) {
    if (fault != 0) return;  // not the sample's first row
    if (sample <= group.last_sample)
      problems_.add("/fault_samples/sample does not ascend within a point", group.point);
    group.last_sample = sample;
    ++group.samples;
    if (std::isnan(slowdown) != std::isnan(time))
      problems_.add("/fault_samples/slowdown does not fit the time", group.point);
    if (std::isnan(slowdown)) return;
    ++group.reached;
    group.sum += slowdown;
    if (!(std::abs(time / healthy_[group.row] - 1 - slowdown) <= kSlowdownTolerance * (1 + slowdown)))
      problems_.add("/fault_samples/slowdown does not fit the time", group.point);
  }

  void finish_group(const Group& group) {
    if (static_cast<double>(group.samples) != expected_samples_[group.row])
      problems_.add("/fault_samples holds another number of samples than the point says", group.point);
    const double mean = group.sum / static_cast<double>(group.reached);
    const double stored = mean_[group.row];
    if (std::isnan(mean) != std::isnan(stored) ||
        (!std::isnan(mean) && !(std::abs(mean - stored) <= kMeanTolerance * (1 + mean))))
      problems_.add("/points/slowdown_mean is not that of the samples", group.point);
  }

  std::filesystem::path file_;
  ResultReader reader_;
  const std::function<void()>& step_;
  bool training_ = true, whole_breakdown_ = true;
  // Places of columns among the file's columns.
  std::size_t status_column_ = 0, reason_column_ = 0, time_column_ = 0;
  std::vector<std::size_t> objective_columns_, breakdown_columns_;
  std::vector<std::vector<double>> values_;  ///< values of the range at hand, by column
  std::optional<std::uint64_t> last_id_;
  std::vector<std::uint64_t> ids_;
  std::vector<double> status_, expected_samples_, mean_, healthy_;
  Problems problems_;
};

}  // namespace

Verification verify(const std::filesystem::path& file, const std::function<void()>& step) {
  std::error_code error;
  const bool finished = std::filesystem::is_regular_file(file, error);
  const bool parts = std::filesystem::is_directory(file, error);
  // HDF5 is not shown what the checksum does not vouch for.
  if (!finished) {
    auto damaged = damaged_files(parts ? file : parts_folder(file));
    if (!damaged.empty()) return {0, 0, std::move(damaged)};
  }
  return Verifier(file, step).run();
}

}  // namespace shardscape::results
