#include "sweep/cli/reports/executed_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sweep/cli/terminal/format.h"

namespace shardscape::cli {

std::string order_text(std::span<const double> costs, std::span<const std::size_t> numbers) {
  const auto better = [](double a, double b) { return b - a > kTurnsOver * std::abs(a); };
  const auto first = std::ranges::min_element(costs);
  if (better(*first, costs.front()))
    return fmt::format("turns over, the first was number {}",
                       numbers[static_cast<std::size_t>(first - costs.begin())] + 1);
  double worst = costs.front();  // of the rows before
  for (const double cost : costs) {
    if (better(cost, worst)) return "turns over below the first";
    worst = std::max(worst, cost);
  }
  return std::ranges::is_sorted(costs) ? "holds" : fmt::format("holds to {}", format_percent(kTurnsOver));
}

}  // namespace shardscape::cli
