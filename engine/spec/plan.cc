#include "engine/spec/plan.h"

#include <algorithm>

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

// Lehmer code: digit i, of base kPlanAxes - i, counts the later axes that come before order[i] in the enum.
std::int32_t rank_order_code(const RankOrder& order) {
  std::int32_t code = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::int32_t smaller_after = 0;
    for (std::size_t later = i + 1; later < order.size(); ++later)
      smaller_after += static_cast<std::int32_t>(order[later] < order[i]);
    code = code * static_cast<std::int32_t>(order.size() - i) + smaller_after;
  }
  return code;
}

RankOrder rank_order_of(std::int32_t code) {
  RankOrder order = kDefaultRankOrder;
  std::int32_t orders = kRankOrders;  // number of orders of the axes from this one on
  for (auto axis = order.begin(); axis != order.end(); ++axis) {
    orders /= static_cast<std::int32_t>(order.end() - axis);
    const auto chosen = axis + code / orders;
    std::rotate(axis, chosen, chosen + 1);
    code %= orders;
  }
  return order;
}

ParallelPlan prefill_plan(const ParallelPlan& plan) {
  ParallelPlan pool;
  pool.tensor = plan.prefill.tensor;
  pool.pipeline = plan.prefill.pipeline;
  pool.data = plan.prefill.data;
  pool.expert = plan.prefill.expert;
  pool.expert_tensor = plan.prefill.expert_tensor;
  pool.redundant_experts = plan.prefill.redundant_experts;
  pool.order = plan.order;
  return pool;
}

ParallelPlan decode_plan(const ParallelPlan& plan) {
  ParallelPlan pool = plan;
  pool.prefill = {};
  return pool;
}

}  // namespace shardscape
