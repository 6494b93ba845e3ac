#include "results_schema/reading/verify_stored.h"

#include <fmt/format.h>

#include <algorithm>

#include "results_schema/hdf5/summary_io.h"
#include "results_schema/reading/row_scan.h"
#include "results_schema/rows/row_selector.h"

namespace shardscape::results {

namespace {

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

}  // namespace

// Whether a point is one of the layout's; points ascend with their rows.
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

std::vector<std::string> stored_rows_problems(const ResultReader& reader, const Summary& of_rows) {
  return StoredVerifier(reader, of_rows).run();
}

}  // namespace shardscape::results
