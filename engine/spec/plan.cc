#include "engine/spec/plan.h"

namespace shardscape {

std::string to_string(const RankOrder& order) {
  std::string text;
  for (const PlanAxis axis : order) {
    if (!text.empty()) text += '-';
    text += name_of(axis);
  }
  return text;
}

std::optional<RankOrder> parse_rank_order(std::string_view text) {
  RankOrder order{};
  std::array<bool, kPlanAxes> seen{};
  for (std::size_t i = 0; i < kPlanAxes; ++i) {
    const std::size_t dash = text.find('-');
    if ((dash == std::string_view::npos) != (i + 1 == kPlanAxes)) return std::nullopt;
    const std::optional<PlanAxis> axis = parse_enum<PlanAxis>(text.substr(0, dash));
    if (!axis || seen[static_cast<std::size_t>(*axis)]) return std::nullopt;
    seen[static_cast<std::size_t>(*axis)] = true;
    order[i] = *axis;
    if (dash != std::string_view::npos) text.remove_prefix(dash + 1);
  }
  return order;
}

}  // namespace shardscape
