#include "engine/step/layers/expert_leads.h"

#include <algorithm>
#include <vector>

#include "engine/model/expert_shares.h"

namespace shardscape::step {

namespace {

using model::CollectiveCall;
using network::CollectiveOp;

const CollectiveCall* find_call(const PartCost& part, CollectiveOp op, ParallelGroup group) {
  const auto is_it = [&](const CollectiveCall& call) { return call.op == op && call.group == group; };
  const auto found = std::ranges::find_if(part.calls, is_it);
  return found == part.calls.end() ? nullptr : &*found;
}

/// Whether the first two members of expert groups also share a tensor or context group, which brings them together.
bool meet_elsewhere(const network::RankGroups& groups) {
  const std::int32_t other = groups[ParallelGroup::expert].levels.front().stride;
  std::int32_t reached = 0;
  for (const ParallelGroup group : {ParallelGroup::tensor, ParallelGroup::context}) {
    for (std::int32_t i = 0; i < groups[group].depth; ++i) {
      const network::RankGroup::Level& level = groups[group].levels[static_cast<std::size_t>(i)];
      reached += other / level.stride % level.extent * level.stride;
    }
  }
  return reached == other;
}

}  // namespace

Seconds crowding(const ExpertExchanges& of) {
  const double others = of.members - 1, r = (1 - of.most) / others / of.most;
  const bool two = of.members == 2;
  const Seconds none(0), sooner = (two && !of.together ? 1 : 1 - r) * of.dispatch;
  const Seconds before = std::max(of.dispatch, of.beside) - std::max(of.dispatch - sooner, of.beside);
  const Seconds of_dispatch = two ? std::min(before, r * of.gather) : none;
  const Seconds ahead = (1 - r) * (of.gather + of.work + of.scatter) + before;
  const Seconds left = std::max(none, r * of.dispatch - std::max(none, ahead - of.scatter));
  return of_dispatch + std::min(left, others * std::min(of.scatter, ahead));
}

Seconds crowding(const PartCost& part, const CallPrices& prices) {
  const CollectiveCall* const dispatch = find_call(part, CollectiveOp::dispatch, ParallelGroup::expert);
  const CollectiveCall* const gather =
      find_call(part, CollectiveOp::all_gather, ParallelGroup::expert_tensor);
  const CollectiveCall* const scatter =
      find_call(part, CollectiveOp::reduce_scatter, ParallelGroup::expert_tensor);
  if (dispatch == nullptr || gather == nullptr || scatter == nullptr) return Seconds(0);
  if (gather->repeats <= 0 || dispatch->repeats <= 0) return Seconds(0);
  const std::int32_t members = prices.groups[ParallelGroup::expert].size();
  const std::vector<double> experts = model::expert_shares(prices.setting);
  if (experts.empty() || members < 2) return Seconds(0);
  const double most = std::ranges::max(compute::member_shares(experts, static_cast<std::size_t>(members)));
  constexpr double kUnequal = 1 + 1e-9;
  if (most * members < kUnequal) return Seconds(0);
  const auto time = [&](const CollectiveCall& call) {
    return prices.collectives.time(prices.on_stage(call));
  };
  const auto links = [&](const CollectiveCall& call) -> const network::LinkSet& {
    return prices.collectives.healthy().links(prices.healthy(call));
  };
  const network::LinkSet of_scatters = links(*scatter);
  if (!of_scatters.contains_all(links(*dispatch))) return Seconds(0);
  Seconds beside;
  for (const PartCost::Overlap& overlap : part.overlaps) {
    if (overlap.exchange.op == CollectiveOp::dispatch) beside += overlap.beside;
  }
  return crowding({static_cast<double>(members), most, time(*dispatch), time(*gather), part.experts,
                   time(*scatter), meet_elsewhere(prices.groups), beside});
}

Seconds hidden_by_lead(const PartCost& part, const CallPrices& prices) {
  if (!prices.collectives.has_faults() || part.between.size() != 3) return Seconds(0);
  Seconds hidden = part.between[1];
  for (const CollectiveCall& call : part.calls) {
    if (call.group != ParallelGroup::expert || call.repeats <= 0) continue;
    if (!prices.collectives.some_get_ahead(prices.healthy(call))) return Seconds(0);
    hidden = std::min(hidden, prices.collectives.added_by_faults(prices.on_stage(call)));
  }
  return hidden;
}

}  // namespace shardscape::step
