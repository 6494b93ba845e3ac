#include "results_schema/rows/limits.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/words.h"

namespace shardscape::results {

std::string limit_name(const Limit& limit) {
  std::array<char, 32> number;
  const auto end = std::to_chars(number.data(), number.data() + number.size(), limit.bound).ptr;
  return limit.column + std::string(name_of(limit.relation)) + std::string(number.data(), end);
}

std::optional<Limit> limit_of_name(std::string_view name) {
  const std::size_t sign = name.find_first_of("<>=");
  const std::size_t bound = name.find_last_of("<>=") + 1;
  if (sign == std::string_view::npos) return std::nullopt;
  const auto relation = parse_enum<Relation>(name.substr(sign, bound - sign));
  const auto number = to_number<double>(name.substr(bound));
  if (!relation || !number) return std::nullopt;
  return Limit{std::string(name.substr(0, sign)), *relation, *number};
}

std::optional<double> miss_of(const Limit& limit, double value) {
  const double bound = limit.bound;
  const bool kept = limit.relation == Relation::at_most    ? value <= bound
                    : limit.relation == Relation::below    ? value < bound
                    : limit.relation == Relation::at_least ? value >= bound
                                                           : value > bound;
  if (kept) return std::nullopt;
  if (std::isnan(value)) return std::numeric_limits<double>::infinity();
  return std::abs(value - bound) / (bound == 0 ? 1 : std::abs(bound));
}

LimitCheck::LimitCheck(ColumnTable columns, std::vector<Limit> limits)
    : columns_(std::move(columns)), limits_(std::move(limits)) {
  for (const Limit& limit : limits_) {
    const ColumnInfo* const column = columns_.find(limit.column);
    SHARDSCAPE_CHECK(column != nullptr, limit.column);
    places_.push_back(static_cast<std::size_t>(column - columns_.columns().data()));
  }
}

std::vector<LimitCheck::Miss> LimitCheck::misses(const PointRecord& row) const {
  std::vector<Miss> found;
  const std::optional<LoadSpec>& load = row.workload.load;
  const double holds = row.prediction.load.sustained_per_s;
  if (load && load->promised != LatencyBounds() && holds > 0)
    found.push_back({static_cast<std::size_t>(Reason::overloaded), true,
                     std::max(0.0, load->offered_per_s() / holds - 1)});
  for (std::size_t i = 0; i < limits_.size(); ++i) {
    if (const auto by = miss_of(limits_[i], columns_.number(places_[i], row)))
      found.push_back({kFirstLimitReason + i, limits_[i].promise, *by});
  }
  return found;
}

void LimitCheck::judge(PointRecord& row, Prediction& prediction) const {
  if (prediction.status != Status::ok) return;
  const std::vector<Miss> missed = misses(row);
  row.promises_kept = std::ranges::none_of(missed, &Miss::promise);
  if (missed.empty()) return;
  const Miss& most = *std::ranges::max_element(missed, {}, &Miss::by);
  row.missed_by = most.by;
  prediction.status = Status::missed;
  prediction.reason = static_cast<Reason>(most.reason);
}

}  // namespace shardscape::results
