#include "sweep/cli/reports/worth_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "sweep/cli/terminal/format.h"
#include "sweep/cli/terminal/text_table.h"

namespace shardscape::cli {

namespace {

Json seconds(const std::optional<double>& time) { return time ? Json(*time) : Json(); }

std::string change_text(double change) {
  if (change == 0) return "0";
  return (change < 0 ? "-" : "+") + format_seconds(std::abs(change));
}

}  // namespace

Json to_json(const explorer::WorthOfNumbers& worth) {
  Json list = Json::array();
  for (const explorer::Worth& one : worth.numbers) {
    list.push_back({{"key", one.key},
                    {"unit_text", one.unit_text},
                    {"more_s", seconds(one.more)},
                    {"less_s", seconds(one.less)}});
    if (one.per_unit) list.back()["per_unit_s"] = *one.per_unit;
  }
  return {{"base_s", seconds(worth.base)},
          {"worth_least_share", explorer::kMovesTime},
          {"worth", std::move(list)}};
}

void print_worth(std::ostream& out, const explorer::WorthOfNumbers& worth, double share) {
  out << "\nworth of numbers\n";
  if (!worth.base) {
    out << "  none: the plan has no time\n";
    return;
  }
  const double base = *worth.base;
  std::vector<const explorer::Worth*> moving;
  for (const explorer::Worth& one : worth.numbers)
    if (one.reach(base) >= explorer::kMovesTime * base) moving.push_back(&one);
  std::ranges::stable_sort(moving, std::greater(), [&](const auto* one) { return one->reach(base); });
  const std::string better = format_percent(share, 0) + " better";
  TextTable table({left("number"), left("is"), left("step"), "time by it", "in percent", better.c_str()});
  for (const explorer::Worth* one : moving) {
    const std::string_view hardware = "hardware.";
    const std::optional<double>& improved = one->less_is_better ? one->less : one->more;
    const auto in_percent = [&](double change) { return format_signed_percent(change / base, 3); };
    table.add_row({one->key.substr(one->key.starts_with(hardware) ? hardware.size() : 0), one->text,
                   one->unit_text, one->per_unit ? change_text(*one->per_unit) : "-",
                   one->per_unit ? in_percent(*one->per_unit) : "-",
                   improved ? in_percent(*improved - base) : "-"});
  }
  table.print(out, 2);
  const std::size_t idle = worth.numbers.size() - moving.size();
  out << fmt::format(
      "  {} {} the time here by {} or more, {} do not. A step is a straight line through what {} more "
      "and less give.\n",
      counted(moving.size(), "number"), moving.size() == 1 ? "moves" : "move",
      format_percent(explorer::kMovesTime, 3), format_count(idle), format_percent(share, 0));
}

}  // namespace shardscape::cli
