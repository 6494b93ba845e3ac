#include "engine/spec/plan_axes.h"

#include <algorithm>

#include "engine/base/words.h"

namespace shardscape {

const PlanAxisRow* find_plan_column(std::string_view column) {
  const auto* const found = std::ranges::find(kPlanRows, column, &PlanAxisRow::column);
  return found == kPlanRows.end() ? nullptr : &*found;
}

std::string code_text(const PlanAxisRow& row, std::int32_t code) {
  if (row.kind == AxisKind::choice) return std::string(row.names[static_cast<std::size_t>(code)]);
  if (row.kind == AxisKind::order) return to_string(rank_order_of(code));
  return std::to_string(code);
}

std::optional<std::int32_t> parse_code(const PlanAxisRow& row, std::string_view text) {
  if (row.kind == AxisKind::order) {
    const std::optional<RankOrder> order = parse_rank_order(text);
    return order ? std::optional(rank_order_code(*order)) : std::nullopt;
  }
  const auto name = std::ranges::find(row.names, text);
  if (name == row.names.end()) return std::nullopt;
  return static_cast<std::int32_t>(name - row.names.begin());
}

std::string degree_names(std::string_view between) {
  std::string text;
  for (const PlanAxisRow& row : kPlanRows) {
    if (row.kind == AxisKind::degree) text.append(text.empty() ? "" : between).append(row.name);
  }
  return text;
}

std::string order_names(std::string_view before_last) {
  return joined(
      kDefaultRankOrder, ", ", [](PlanAxis axis) { return name_of(axis); }, before_last);
}

}  // namespace shardscape
