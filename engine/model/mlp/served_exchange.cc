#include "engine/model/mlp/served_exchange.h"

#include <cmath>

namespace shardscape::model {

namespace {

using network::CollectiveOp;

/// A call over `tokens` tokens; none where the group has one rank.
Operator served_call(const OperatorBuilder& b, std::string_view name, ParallelGroup group, CollectiveOp op,
                     double tokens) {
  const ExpertSplit split = b.key().experts();
  const std::int32_t ranks = group == ParallelGroup::expert ? split.ranks : split.tensor;
  Operator call;
  call.name = name;
  call.kind = OperatorKind::collective;
  call.forward_comm = {op, group, Bytes(bytes_per_element(b.policy().wire) * tokens * b.hidden()),
                       ranks > 1 ? 1.0 : 0.0};
  return call;
}

/// Tokens that a rank has for the experts.
double sent_tokens(const OperatorBuilder& b) { return b.tokens() / b.key().tensor; }

/// Ranks that hold one of a token's experts.
double ranks_met(const OperatorBuilder& b) {
  const double ranks = b.key().experts().ranks;
  return ranks * (1 - std::pow(1 - 1 / ranks, static_cast<double>(b.model().moe->top_k)));
}

bool gathers(const OperatorBuilder& b) { return b.stack().serving.dispatch == ServedDispatch::all_gather; }

/// Of what goes through the ranks that deal experts, and through those that split each.
struct ServedTokens {
  double dealt, split;
};
ServedTokens served_tokens(const OperatorBuilder& b) {
  const double copies = gathers(b) ? b.key().experts().ranks : ranks_met(b);
  return {sent_tokens(b) * copies, sent_tokens(b) * copies * b.key().experts().tensor};
}

}  // namespace

void append_served_dispatch(std::vector<Operator>& ops, const OperatorBuilder& b) {
  if (!b.key().dispatches) return;
  const ServedTokens tokens = served_tokens(b);
  const CollectiveOp out = gathers(b) ? CollectiveOp::all_gather : CollectiveOp::all_to_all;
  ops.push_back(served_call(b, "dispatch", ParallelGroup::expert, out, tokens.dealt));
  ops.push_back(
      served_call(b, "expert_gather", ParallelGroup::expert_tensor, CollectiveOp::all_gather, tokens.split));
}

void append_served_combine(std::vector<Operator>& ops, const OperatorBuilder& b) {
  if (!b.key().dispatches) return;
  const ServedTokens tokens = served_tokens(b);
  const CollectiveOp back = gathers(b) ? CollectiveOp::reduce_scatter : CollectiveOp::all_to_all;
  ops.push_back(served_call(b, "expert_reduce", ParallelGroup::expert_tensor, CollectiveOp::reduce_scatter,
                            tokens.split));
  ops.push_back(served_call(b, "combine", ParallelGroup::expert, back, tokens.dealt));
}

}  // namespace shardscape::model
