// Bounds on results: what a study promises (`promises:`) or asks for (`constraints:` on outputs). A point that has a
// time and misses one is no result: its status is `missed`, and its reason is the bound that it misses by most, whose
// name stands behind the reasons that every study has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/enum_names.h"
#include "results_schema/rows/columns.h"

namespace shardscape::results {

enum class Relation : std::uint8_t { at_most, below, at_least, above };
SHARDSCAPE_ENUM_NAMES(Relation, "<=", "<", ">=", ">");

struct Limit {
  std::string column;  ///< its name
  Relation relation = Relation::at_most;
  double bound = 0;      ///< in the column's unit
  bool promise = false;  ///< made to requests, by `promises:`
  friend bool operator==(const Limit&, const Limit&) = default;
};

/// "ttft_p95_s<=2": the name of the reason, without blanks, with the shortest number that is the bound.
std::string limit_name(const Limit& limit);
/// The limit of such a name; nothing where it is that of another reason.
std::optional<Limit> limit_of_name(std::string_view name);
/// By how much a value misses the limit, as a share of the bound (of a bound of 0, in the column's unit); nothing where
/// it keeps it. A value that is no number misses by infinity.
std::optional<double> miss_of(const Limit& limit, double value);

/// The codes of limits as reasons: that of the first limit.
inline constexpr std::size_t kFirstLimitReason = enum_names<Reason>().size();
/// The most limits of a study.
inline constexpr std::size_t kMostLimits = 128;

/// Holds points against the limits of a study. Immutable; any number of threads may use one object.
class LimitCheck {
 public:
  /// `columns`: of the study, with all that the limits name. Promises without `columns` hold of every row.
  LimitCheck(ColumnTable columns, std::vector<Limit> limits);

  [[nodiscard]] const std::vector<Limit>& limits() const { return limits_; }

  struct Miss {
    std::size_t reason = 0;  ///< the code: Reason::overloaded, or kFirstLimitReason and the limit's index
    bool promise = false;
    double by = 0;
  };
  /// All that a point misses, whose status must be ok. Servers with promises that are overloaded miss by the share of
  /// the requests beyond those that they keep up with.
  [[nodiscard]] std::vector<Miss> misses(const PointRecord& row) const;
  /// Completes the record of a point, and sets the status and the reason of its prediction, where that is ok.
  void judge(PointRecord& row, Prediction& prediction) const;

 private:
  ColumnTable columns_;
  std::vector<Limit> limits_;
  std::vector<std::size_t> places_;  ///< of the limits' columns
};

}  // namespace shardscape::results
