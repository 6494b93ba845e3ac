#include "sweep/validate/bars.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/base/suggest.h"
#include "sweep/yaml/number.h"

namespace shardscape::validate {

namespace {

constexpr std::array kMetrics = {"step_time",     "memory",    "ttft",       "ttft_alone", "itl",
                                 "e2e",           "time",      "time_long",  "time_10us",  "time_20us",
                                 "time_row_tile", "time_node", "time_large", "time_small"};
constexpr std::array kErrors = {"mape", "median", "p90", "max"};
constexpr std::array kLowerBounds = {"oom.accuracy", "oom.precision", "oom.recall", "ranking.spearman"};
constexpr std::array kRegrets = {"ranking.regret_mean", "ranking.regret_max"};

}  // namespace

bool is_lower_bound(const Bar& bar) {
  return std::ranges::find(kLowerBounds, bar.statistic) != kLowerBounds.end();
}

std::vector<Bar> default_bars(TableKind kind) {
  switch (kind) {
    case TableKind::plans:
      return {{"step_time.mape", 0.12},   {"memory.mape", 0.10},        {"ttft_alone.mape", 0.15},
              {"itl.mape", 0.08},         {"e2e.mape", 0.06},           {"oom.accuracy", 0.975},
              {"ranking.spearman", 0.90}, {"ranking.regret_mean", 1.03}};
    case TableKind::gemm:
      return {{"time_long.mape", 0.02}, {"time_row_tile.mape", 0.10}};
    case TableKind::collectives:
      return {{"time_node.median", 0.15}};
    default:
      break;
  }
  return {};
}

std::vector<std::string> bar_statistics() {
  std::vector<std::string> names;
  for (const char* metric : kMetrics) {
    for (const char* error : kErrors) names.push_back(fmt::format("{}.{}", metric, error));
  }
  names.insert(names.end(), kLowerBounds.begin(), kLowerBounds.end());
  names.insert(names.end(), kRegrets.begin(), kRegrets.end());
  return names;
}

tl::expected<double, std::string> parse_share(std::string_view text) {
  double unit = 1;
  if (text.ends_with('%')) {
    unit = 0.01;
    text.remove_suffix(1);
    while (text.ends_with(' ')) text.remove_suffix(1);
  }
  const std::optional<double> value = yaml::parse_finite(text);
  if (value && *value >= 0) return *value * unit;
  return tl::unexpected(fmt::format("'{}' is no share; write 5% or 0.05", text));
}

tl::expected<Bar, std::string> parse_bar(std::string_view text) {
  const std::size_t sign = text.find('=');
  if (sign == std::string_view::npos) {
    return tl::unexpected(std::string("write it as STATISTIC=VALUE, such as step_time.mape=5%"));
  }
  const std::string name(text.substr(0, sign));
  const std::vector<std::string> known = bar_statistics();
  if (std::ranges::find(known, name) == known.end()) {
    return tl::unexpected(fmt::format("unknown statistic '{}'{}; METRIC.mape|median|p90|max of {}, {}, {}",
                                      name, did_you_mean(name, known), join_names(kMetrics),
                                      join_names(kLowerBounds), join_names(kRegrets)));
  }
  const auto limit = parse_share(text.substr(sign + 1));
  if (!limit) return tl::unexpected(limit.error());
  return Bar{name, *limit};
}

std::vector<BarResult> check_bars(std::span<const Bar> bars, std::span<const Statistic> statistics) {
  std::vector<BarResult> results;
  for (const Bar& bar : bars) {
    const auto found = std::ranges::find(statistics, bar.statistic, &Statistic::path);
    if (found == statistics.end() || !found->value) continue;
    const double value = *found->value;
    results.push_back({bar, value, is_lower_bound(bar) ? value >= bar.limit : value <= bar.limit});
  }
  return results;
}

}  // namespace shardscape::validate
