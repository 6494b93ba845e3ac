// Accuracy bars: limits that a statistic must keep to.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "sweep/validate/evaluation.h"

namespace shardscape::validate {

/// A limit for one statistic: errors and regrets must be at most it; accuracies, precision, recall and Spearman at
/// least.
struct Bar {
  std::string statistic;  ///< name of the statistic, as Statistic::path()
  double limit = 0;       ///< as a fraction
};
bool is_lower_bound(const Bar& bar);

/// The bars of a kind of table where the user gives none.
std::vector<Bar> default_bars(TableKind kind);

/// Names of the statistics, of all kinds of tables, that may have a bar.
std::vector<std::string> bar_statistics();

/// A share written as "5 %", "5%" or "0.05"; at least 0.
tl::expected<double, std::string> parse_share(std::string_view text);
/// A bar written as "step_time.mape=5%". Errors say what is wrong and what would be right.
tl::expected<Bar, std::string> parse_bar(std::string_view text);

struct BarResult {
  Bar bar;
  double value = 0;
  bool held = false;
};
/// A result for each bar whose statistic is defined, in the order of the bars.
std::vector<BarResult> check_bars(std::span<const Bar> bars, std::span<const Statistic> statistics);

}  // namespace shardscape::validate
