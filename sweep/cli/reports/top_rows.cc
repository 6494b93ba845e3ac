// Finds the rows that `top` shows: one pass reads only the columns that the filter and the ranking need, and a selector
// keeps the best rows, the best per combination, or the front.
#include "sweep/cli/reports/top_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "engine/base/suggest.h"
#include "results_schema/reading/row_scan.h"
#include "results_schema/rows/summary.h"
#include "sweep/cli/command.h"
#include "sweep/cli/reports/top_output.h"
#include "sweep/cli/terminal/text_table.h"
#include "sweep/space/axis_names.h"
#include "sweep/study/column_names.h"

namespace shardscape::cli {

namespace {

using results::Better;
using results::ColumnInfo;
using results::ResultReader;
using results::RowScan;

constexpr const char* kWhereNamesAre = "; '--columns list' lists the names";

/// Another name of a column's code 0, so that conditions hold in files of any age: what says that no difference is left
/// was "none" once, which is what `evidence` says where nothing is known.
std::string other_zero(const ColumnInfo& column) {
  if (column.name != "evidence_gap" || column.meanings.empty()) return "";
  return column.meanings.front() == "none" ? "nothing" : "none";
}

/// The columns that a pass reads, each once.
class ColumnList {
 public:
  /// The index of a column in the list, where it is added if it is new.
  std::size_t add(const std::string& name) {
    const auto found = std::ranges::find(names_, name);
    if (found != names_.end()) return static_cast<std::size_t>(found - names_.begin());
    names_.push_back(name);
    return names_.size() - 1;
  }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
};

/// A condition on rows.
class RowFilter {
 public:
  RowFilter(const ResultReader& reader, const std::string& text, ColumnList& read) {
    const std::vector<sweep::ExpressionName> names = name_table(reader);
    auto condition = sweep::Expression::parse(text, names);
    if (!condition) {
      const std::string& message = condition.error().message;
      const bool open =
          message.starts_with("unknown name") && message.find("did you mean") == std::string::npos;
      throw BadInput(fmt::format("--where: position {} of \"{}\": {}{}", condition.error().offset + 1, text,
                                 message, open ? kWhereNamesAre : ""));
    }
    condition_ = *std::move(condition);
    values_.resize(names.size());
    for (const std::size_t name : condition_->references()) {
      sources_.push_back(read.add(columns_[name]));
      on_status_ = on_status_ || columns_[name] == "status";
    }
  }

  /// Whether the condition keeps row `i` of the range that was read.
  bool keeps(const RowScan& scan, std::size_t i) {
    for (std::size_t k = 0; k < sources_.size(); ++k)
      values_[condition_->references()[k]] = scan.values(sources_[k])[i];
    return condition_->holds(values_);
  }
  [[nodiscard]] bool on_status() const { return on_status_; }

 private:
  std::vector<sweep::ExpressionName> name_table(const ResultReader& reader) {
    std::vector<sweep::ExpressionName> names;
    for (const ColumnInfo& column : reader.columns()) {
      for (sweep::ExpressionName& name : condition_names(column)) {
        names.push_back(std::move(name));
        columns_.push_back(column.name);
      }
    }
    return names;
  }

  std::vector<std::string> columns_;  ///< column of each name in the condition
  std::vector<std::size_t> sources_;  ///< for each reference, the index of its column among those read
  std::vector<double> values_;        ///< value of each name
  std::optional<sweep::Expression> condition_;
  bool on_status_ = false;
};

/// Decides which of the rows it is offered are kept. Rows come in ascending order.
class Selector {
 public:
  Selector() = default;
  Selector(const Selector&) = delete;
  Selector& operator=(const Selector&) = delete;
  virtual ~Selector() = default;
  /// Offers row `i` of the range.
  virtual void offer(const RowScan& scan, std::size_t i) = 0;
  [[nodiscard]] virtual std::vector<std::uint64_t> rows() const = 0;
};

/// A row in the order of a column: the best first, then by row; rows without a value come last.
struct Ranked {
  bool missing = false;
  double cost = 0;
  std::uint64_t row = 0;
  friend auto operator<=>(const Ranked&, const Ranked&) = default;
};
class Ranking {
 public:
  Ranking(const ColumnInfo& by, ColumnList& read)
      : column_(read.add(by.name)), sign_(by.better == Better::larger ? -1 : 1) {}
  [[nodiscard]] Ranked of(const RowScan& scan, std::size_t i) const {
    const double value = scan.values(column_)[i];
    const bool missing = std::isnan(value);
    return {missing, missing ? 0 : sign_ * value, scan.first_row() + i};
  }

 private:
  std::size_t column_;
  double sign_;
};

/// Keeps the best `count` rows.
class BestRows final : public Selector {
 public:
  BestRows(const Ranking& ranking, std::uint64_t count) : ranking_(ranking), count_(count) {}
  void offer(const RowScan& scan, std::size_t i) override {
    const Ranked row = ranking_.of(scan, i);
    if (best_.size() == count_ && !(row < *best_.rbegin())) return;
    best_.insert(row);
    if (best_.size() > count_) best_.erase(std::prev(best_.end()));
  }
  [[nodiscard]] std::vector<std::uint64_t> rows() const override {
    std::vector<std::uint64_t> rows;
    for (const Ranked& row : best_) rows.push_back(row.row);
    return rows;
  }

 private:
  Ranking ranking_;
  std::uint64_t count_;
  std::set<Ranked> best_;
};

/// Keeps the best row of each combination of values, in the order of these values.
class BestRowsPer final : public Selector {
 public:
  BestRowsPer(const Ranking& ranking, std::vector<std::size_t> columns)
      : ranking_(ranking), columns_(std::move(columns)), key_(columns_.size()) {}
  void offer(const RowScan& scan, std::size_t i) override {
    for (std::size_t k = 0; k < columns_.size(); ++k) {
      const double value = scan.values(columns_[k])[i];
      key_[k] = std::isnan(value) ? std::numeric_limits<double>::infinity() : value;  // NaN cannot be ordered
    }
    const Ranked row = ranking_.of(scan, i);
    const auto [it, fresh] = best_.emplace(key_, row);
    if (!fresh) it->second = std::min(it->second, row);
  }
  [[nodiscard]] std::vector<std::uint64_t> rows() const override {
    std::vector<std::uint64_t> rows;
    for (const auto& [values, row] : best_) rows.push_back(row.row);
    return rows;
  }

 private:
  Ranking ranking_;
  std::vector<std::size_t> columns_;
  std::vector<double> key_;
  std::map<std::vector<double>, Ranked> best_;
};

/// Keeps the rows that no other row beats in all columns at once; the best in the first column come first.
class Front final : public Selector {
 public:
  Front(std::vector<std::size_t> columns, const std::vector<Better>& directions)
      : columns_(std::move(columns)), builder_(directions), values_(columns_.size()) {}
  void offer(const RowScan& scan, std::size_t i) override {
    for (std::size_t k = 0; k < columns_.size(); ++k) values_[k] = scan.values(columns_[k])[i];
    builder_.add(scan.first_row() + i, Status::ok, Reason::none, values_);
  }
  [[nodiscard]] std::vector<std::uint64_t> rows() const override {
    std::vector<std::uint64_t> rows;
    for (const results::RankedPoint& point : builder_.finish().pareto) rows.push_back(point.point_id);
    return rows;
  }

 private:
  std::vector<std::size_t> columns_;
  results::SummaryBuilder builder_;
  std::vector<double> values_;
};

std::unique_ptr<Selector> selector_of(const ResultReader& reader, const TopQuestion& question,
                                      ColumnList& read) {
  std::vector<std::size_t> columns;
  if (!question.front.empty()) {
    std::vector<Better> directions;
    for (const std::string& name : question.front) {
      const ColumnInfo& column = require_column(reader, name, "--pareto");
      directions.push_back(column.better == Better::larger ? Better::larger : Better::smaller);
      columns.push_back(read.add(column.name));
    }
    return std::make_unique<Front>(std::move(columns), directions);
  }
  const Ranking ranking(require_column(reader, question.by, "--by"), read);
  if (question.per.empty()) return std::make_unique<BestRows>(ranking, question.count);
  for (const std::string& name : question.per)
    columns.push_back(read.add(require_column(reader, name, "--per").name));
  return std::make_unique<BestRowsPer>(ranking, std::move(columns));
}

}  // namespace

std::vector<sweep::ExpressionName> condition_names(const ColumnInfo& column) {
  const bool coded = !column.meanings.empty(), rate = column.unit == "s-1";
  // What devices hold is to be small; what is sent, and the sizes of the hardware, may have a few kilobytes.
  const bool memory = column.unit == "byte" && column.better == results::Better::smaller;
  std::vector<sweep::ExpressionName> names;
  for (std::string& name : sweep::names_of_column(column))
    names.push_back({std::move(name), coded ? sweep::NameKind::choice : sweep::NameKind::number,
                     column.meanings, rate, rate ? "" : column.unit, memory, other_zero(column)});
  std::string words = short_heading(column);  // as the table has it, and as the page does
  names.back().also = {words};
  std::ranges::replace(words, '_', ' ');
  names.back().also.push_back(std::move(words));
  return names;
}

const ColumnInfo& require_column(const ResultReader& reader, std::string_view name, std::string_view option) {
  const std::string plain = sweep::without_path(name);
  std::vector<std::string> known;
  for (const ColumnInfo& column : reader.columns()) {
    const std::vector<std::string> names = sweep::names_of_column(column);
    if (std::ranges::find(names, plain) != names.end()) return column;
    known.insert(known.end(), names.begin(), names.end());
  }
  for (const ColumnInfo& column :
       reader.columns())  // a heading, and other capitals, as conditions may have them
    if (sweep::find_name(condition_names(column), plain)) return column;
  std::string hint = did_you_mean(plain, known);
  if (hint.empty()) hint = kWhereNamesAre;
  throw BadInput(fmt::format("{}: no column '{}'{}{}", option, name, reader.why_missing(), hint));
}

void print_columns(std::ostream& out, const ResultReader& reader) {
  TextTable table({left("column"), left("also"), left("unit"), left("meaning")});
  for (const ColumnInfo& column : reader.columns()) {
    const std::vector<std::string> names = sweep::names_of_column(column);
    table.add_row(
        {names.front(), names.size() > 1 ? names.back() : "", column.unit == "1" ? "" : column.unit,
         column.meanings.empty() ? column.long_name : column.long_name + ": " + join_names(column.meanings)});
  }
  table.print(out);
}

TopRows find_top_rows(const ResultReader& reader, const TopQuestion& question) {
  ColumnList read;
  const std::size_t status = read.add("status");
  std::optional<RowFilter> filter;
  if (!question.where.empty()) filter.emplace(reader, question.where, read);
  const std::unique_ptr<Selector> selector = selector_of(reader, question, read);
  TopRows found;
  found.any_status = filter && filter->on_status();
  for (RowScan scan(reader, read.names()); scan.next();) {
    found.infeasible.resize(scan.first_row() +
                            scan.size());  // the rows that were read, not the number that the file claims
    for (std::size_t i = 0; i < scan.size(); ++i) {
      if (filter && !filter->keeps(scan, i)) continue;
      if (found.any_status || static_cast<Status>(scan.values(status)[i]) == Status::ok) {
        ++found.looked_at;
        selector->offer(scan, i);
      } else {
        found.infeasible[scan.first_row() + i] = found.any_infeasible = true;
      }
    }
  }
  found.rows = selector->rows();
  if (found.rows.size() > question.count) found.rows.resize(question.count);
  return found;
}

}  // namespace shardscape::cli
