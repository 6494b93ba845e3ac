// Scans a file's rows a few times: a first pass draws lots and objectives for bins, a second looks at all columns, a
// third finds the quantiles that are still open; then the shown rows are read.
#include "results_schema/report/page_rows.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <span>

#include "results_schema/reading/row_scan.h"
#include "results_schema/report/selection.h"

namespace shardscape::report {

namespace {

using results::Better;
using results::ColumnGroup;
using results::ColumnInfo;
using results::ResultReader;
using results::RowScan;

/// Rows that are read of all columns at once, few enough to stay in a processor's cache.
constexpr std::uint64_t kRowsTogether = 8192;
/// Number of objectives that divide those of an axis value into bins (AxisWorth): the second pass then keeps about
/// three in so many rows.
constexpr std::size_t kEdges = 1024;

bool is_feasible(double status) { return static_cast<Status>(status) == Status::ok; }

bool is_ranked(const ColumnInfo& column) {
  const bool result = column.group == ColumnGroup::output || column.group == ColumnGroup::faults;
  return result && column.better != Better::neither;
}

std::optional<std::size_t> place_of(const ResultReader& reader, const std::string& name) {
  const auto found = std::ranges::find(reader.columns(), name, &ColumnInfo::name);
  if (found == reader.columns().end()) return std::nullopt;
  return static_cast<std::size_t>(found - reader.columns().begin());
}

/// The columns of a front by their places, and their directions; columns that the file lacks are left out.
struct Front {
  Front(const ResultReader& reader, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      const auto place = place_of(reader, name);
      if (!place) continue;
      columns.push_back(*place);
      directions.push_back(reader.columns()[*place].better == Better::larger ? Better::larger
                                                                             : Better::smaller);
    }
  }
  std::vector<std::size_t> columns;
  std::vector<Better> directions;
};

/// Collects feasible rows that are shown whatever is sampled. Takes scans over all columns.
class KeptRows {
 public:
  KeptRows(const ResultReader& reader, const PageQuestion& question)
      : load_(place_of(reader, question.load)),
        load_front_(reader, {question.shown.first, question.shown.second}),
        load_rows_(load_front_.directions) {
    for (const Front& front : {Front(reader, reader.objectives()), load_front_}) {
      if (!front.columns.empty()) fronts_.emplace_back(front, FrontRows(front.directions));
    }
    if (load_front_.columns.empty()) load_.reset();
    for (std::size_t c = 0; c < reader.columns().size(); ++c) {
      const ColumnInfo& column = reader.columns()[c];
      if (is_ranked(column)) best_.emplace_back(c, BestRows(column.better, kBestKept));
    }
  }

  void offer(const RowScan& scan, std::span<const std::size_t> feasible) {
    if (feasible.empty()) return;  // then no column of the scan is read
    for (auto& [front, rows] : fronts_) {
      for (const std::size_t i : feasible) rows.offer(scan.first_row() + i, point(scan, front, i));
    }
    if (load_) {
      const auto load = scan.values(*load_);
      for (const std::size_t i : feasible)
        load_rows_.offer(scan.first_row() + i, load[i], point(scan, load_front_, i));
    }
    for (auto& [column, best] : best_) {
      const auto values = scan.values(column);
      for (const std::size_t i : feasible) best.offer(scan.first_row() + i, values[i]);
    }
  }

  /// The collected rows; some occur several times.
  std::vector<std::size_t> rows() {
    std::vector<std::size_t> all = load_rows_.rows();  // includes the best at each load by either value
    const auto add = [&](const std::vector<std::size_t>& some) {
      all.insert(all.end(), some.begin(), some.end());
    };
    for (const auto& [front, rows] : fronts_) add(rows.rows());
    for (auto& [column, best] : best_) add(best.rows());
    return all;
  }

 private:
  std::span<const double> point(const RowScan& scan, const Front& front, std::size_t i) {
    point_.clear();
    for (const std::size_t column : front.columns) point_.push_back(scan.values(column)[i]);
    return point_;
  }

  std::vector<std::pair<Front, FrontRows>> fronts_;
  std::optional<std::size_t> load_;
  Front load_front_;
  FrontRowsPerGroup load_rows_;
  std::vector<std::pair<std::size_t, BestRows>> best_;  ///< by place of the column
  std::vector<double> point_;
};

class PageReader {
 public:
  PageReader(const ResultReader& reader, const PageQuestion& question)
      : reader_(reader),
        columns_(reader.columns()),
        ranking_(place_of(reader, question.ranking).value()),
        sample_(question.max_points),
        edges_(kEdges),
        kept_(reader, question),
        wanted_(question.rows) {
    for (std::size_t c = 0; reader.stands_for_study() && c < columns_.size(); ++c) {
      if (is_axis(columns_[c])) axes_.push_back(c);
    }
  }

  PageRows run() {
    draw();
    std::vector<double> edges;
    for (const auto& [lot, objective] : edges_.sorted()) edges.push_back(objective);
    AxisWorth worth(axes_.size(), edges, columns_[ranking_].better);
    look_at_all(worth);
    choose();
    if (worth.has_to_collect()) collect(worth);
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      std::vector<AxisValue> values = worth.values(a);
      if (values.size() >= 2) result_.axes.push_back({axes_[a], std::move(values)});
    }
    return std::move(result_);
  }

 private:
  /// The first pass: lots decide which rows may be shown beside those that must be, and some objectives become the
  /// edges of bins.
  void draw() {
    std::vector<std::uint64_t> ids;
    for (RowScan scan(reader_, {"status", columns_[ranking_].name}, kRowsTogether); scan.next();) {
      reader_.point_ids_into({scan.first_row(), scan.first_row() + scan.size()}, ids);
      for (std::size_t i = 0; i < scan.size(); ++i) {
        if (!is_feasible(scan.values(0)[i])) continue;
        const std::uint64_t lot = lot_of(ids[i]);
        sample_.offer(lot, scan.first_row() + i);
        const double objective = scan.values(1)[i];
        if (!std::isnan(objective)) edges_.offer(lot, objective);
      }
    }
    result_.feasible = sample_.offered();
    drawn_ = sample_.drawn();
  }

  /// The second pass, over all columns: collects rows that must be shown, and counts objectives in bins.
  void look_at_all(AxisWorth& worth) {
    std::vector<std::string> names;
    for (const ColumnInfo& column : columns_) names.push_back(column.name);
    const std::size_t status = place_of(reader_, "status").value();
    drawn_values_.resize(columns_.size());
    std::vector<std::size_t> feasible;
    std::size_t drawn = 0;  // index of the next drawn row
    for (RowScan scan(reader_, std::move(names), kRowsTogether); scan.next();) {
      feasible.clear();
      for (std::size_t i = 0; i < scan.size(); ++i) {
        if (is_feasible(scan.values(status)[i])) feasible.push_back(i);
      }
      kept_.offer(scan, feasible);
      const std::size_t first = drawn;
      while (drawn < drawn_.size() && drawn_[drawn] < scan.first_row() + scan.size()) ++drawn;
      for (std::size_t c = 0; c < columns_.size(); ++c) {
        for (std::size_t k = first; k < drawn; ++k)
          drawn_values_[c].push_back(scan.values(c)[drawn_[k] - scan.first_row()]);
      }
      if (!axes_.empty()) worth.count(rated(scan, status, ranking_, axes_));
    }
    worth.end_count();
  }

  /// The third pass: finds the quantiles of axis values that the passes before left open.
  void collect(AxisWorth& worth) {
    std::vector<std::string> names = {"status", columns_[ranking_].name};
    std::vector<std::size_t> places;
    for (const std::size_t axis : axes_) {
      places.push_back(names.size());
      names.push_back(columns_[axis].name);
    }
    for (RowScan scan(reader_, std::move(names), kRowsTogether); scan.next();) {
      if (std::ranges::any_of(scan.values(0), is_feasible)) worth.collect(rated(scan, 0, 1, places));
    }
  }

  /// The range of a scan as RatedRows, valid until the next call.
  RatedRows rated(const RowScan& scan, std::size_t status, std::size_t objective,
                  std::span<const std::size_t> axes) {
    is_feasible_.clear();
    for (const double code : scan.values(status)) is_feasible_.push_back(is_feasible(code) ? 1 : 0);
    axis_values_.clear();
    for (const std::size_t column : axes) axis_values_.push_back(scan.values(column));
    return {scan.first_row(), is_feasible_, scan.values(objective), axis_values_};
  }

  /// Chooses the rows to show. Values of drawn rows are known already; the others are read one by one.
  void choose() {
    std::vector<std::size_t> kept = kept_.rows();
    kept.insert(kept.end(), wanted_.begin(), wanted_.end());
    const std::vector<std::size_t> chosen = sample_.rows(kept);
    std::vector<std::uint64_t> others;
    std::ranges::set_difference(chosen, drawn_, std::back_inserter(others));
    result_.values.resize(columns_.size());
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const std::vector<double> read = values_of(reader_, columns_[c].name, others);
      std::size_t drawn = 0, other = 0;
      for (const std::size_t row : chosen) {
        while (drawn < drawn_.size() && drawn_[drawn] < row) ++drawn;
        const bool there = drawn < drawn_.size() && drawn_[drawn] == row;
        result_.values[c].push_back(there ? drawn_values_[c][drawn] : read[other++]);
      }
      drawn_values_[c] = {};
    }
    std::vector<std::uint64_t> ids;
    for (const std::size_t row : chosen) ids.push_back(reader_.point_ids({row, row + 1}).front());
    order(ids);
  }

  /// Sorts the rows by rank, the best first, as the page lists them.
  void order(const std::vector<std::uint64_t>& ids) {
    const std::vector<std::size_t> places = ranked_rows(result_.values[ranking_], columns_[ranking_].better);
    for (const std::size_t place : places) result_.ids.push_back(ids[place]);
    for (std::vector<double>& column : result_.values) {
      std::vector<double> ordered;
      ordered.reserve(places.size());
      for (const std::size_t place : places) ordered.push_back(column[place]);
      column = std::move(ordered);
    }
  }

  const ResultReader& reader_;
  const std::vector<ColumnInfo>& columns_;
  std::size_t ranking_;
  /// Places of the columns of axes; none where the rows do not represent the study.
  std::vector<std::size_t> axes_;
  SampledRows sample_;
  Smallest<std::uint64_t, double> edges_;
  KeptRows kept_;
  std::vector<std::size_t> wanted_;
  std::vector<std::size_t> drawn_;
  std::vector<std::vector<double>> drawn_values_;  ///< values of the drawn rows, by column
  // Data of the range at hand.
  std::vector<std::uint8_t> is_feasible_;
  std::vector<std::span<const double>> axis_values_;
  PageRows result_;
};

}  // namespace

PageRows read_page_rows(const ResultReader& reader, const PageQuestion& question) {
  return PageReader(reader, question).run();
}

}  // namespace shardscape::report
