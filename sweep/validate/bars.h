// Accuracy bars: what a statistic must reach.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "sweep/validate/evaluation.h"

namespace shardscape::validate {

/// Errors and regrets are at most the limit; accuracies, precision, recall and Spearman at least.
struct Bar {
  std::string statistic;  ///< as Statistic::path()
  double limit = 0;       ///< a fraction
};
bool is_lower_bound(const Bar& bar);

/// The bars of a kind of table where nothing else is said.
std::vector<Bar> default_bars(TableKind kind);

/// Names of the statistics that a bar can be set on, of all kinds.
std::vector<std::string> bar_statistics();

/// "5 %", "5%" or "0.05"; at least 0.
tl::expected<double, std::string> parse_share(std::string_view text);
/// "step_time.mape=5%". Errors say what is wrong and what would be right.
tl::expected<Bar, std::string> parse_bar(std::string_view text);

struct BarResult {
  Bar bar;
  double value = 0;
  bool held = false;
};
/// One result per bar whose statistic is defined, in the order of the bars.
std::vector<BarResult> check_bars(std::span<const Bar> bars, std::span<const Statistic> statistics);

}  // namespace shardscape::validate
