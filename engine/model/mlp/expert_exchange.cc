#include "engine/model/mlp/expert_exchange.h"

#include "engine/model/mlp/moe.h"

namespace shardscape::model {

namespace {

using network::CollectiveOp;

/// Bytes per value that an exchange sends in forward and in backward.
struct ValueBytes {
  double forward, backward;
};
Operator exchange(const OperatorBuilder& b, std::string_view name, ParallelGroup group, CollectiveOp forward,
                  CollectiveOp backward, double copies, ValueBytes value) {
  const ExpertSplit split = b.key().experts();
  const std::int32_t ranks = group == ParallelGroup::expert ? split.ranks : split.tensor;
  const double values = copies * b.hidden(), repeats = ranks > 1 ? 1 : 0;
  Operator op;
  op.name = name;
  op.kind = OperatorKind::collective;
  op.forward_comm = {forward, group, Bytes(value.forward * values), repeats};
  op.backward_comm = {backward, group, Bytes(value.backward * values), repeats};
  return op;
}

Operator over_expert_tensor(const OperatorBuilder& b, std::string_view name, CollectiveOp forward,
                            CollectiveOp backward, double rows) {
  const double wire = bytes_per_element(b.policy().wire);
  return exchange(b, name, ParallelGroup::expert_tensor, forward, backward, rows, {wire, wire});
}

/// The exchange of a layer over the expert group: dispatch if `out`, else combine. Each is the other's backward, and
/// both are alike where all loads are equal. Where kernels send in fp8, only the forward dispatch does.
Operator over_experts(const OperatorBuilder& b, std::string_view name, bool out, const ExpertShare& share) {
  const double copies = share.mean / b.key().experts().tensor, wire = bytes_per_element(b.policy().wire);
  const StackProfile::Experts& stack = b.stack().experts;
  const auto over = [&](CollectiveOp forward, CollectiveOp backward, double value) {
    return exchange(b, name, ParallelGroup::expert, forward, backward, copies, {value, wire});
  };
  if (stack.dispatch == ExpertDispatcher::library) {
    if (!loads_differ(b.model(), b.workload()))
      return over(CollectiveOp::all_to_all, CollectiveOp::all_to_all, wire);
    return out ? over(CollectiveOp::dispatch, CollectiveOp::combine, wire)
               : over(CollectiveOp::combine, CollectiveOp::dispatch, wire);
  }
  const double sent = dispatched_value_bytes(b.policy(), stack);
  if (out) return over(CollectiveOp::expert_dispatch, CollectiveOp::expert_combine, sent);
  const CollectiveOp back = sent == wire ? CollectiveOp::expert_dispatch : CollectiveOp::expert_combine;
  return over(CollectiveOp::expert_combine, back, wire);
}

}  // namespace

void append_dispatch(std::vector<Operator>& ops, const OperatorBuilder& b, const ExpertShare& share,
                     std::span<const Operator> beside) {
  if (!b.key().dispatches) return;
  ops.push_back(over_experts(b, "dispatch", true, share));
  ops.insert(ops.end(), beside.begin(), beside.end());
  ops.push_back(over_expert_tensor(b, "expert_gather", CollectiveOp::all_gather, CollectiveOp::reduce_scatter,
                                   share.rows));
}

void append_combine(std::vector<Operator>& ops, const OperatorBuilder& b, const ExpertShare& share) {
  if (!b.key().dispatches) return;
  ops.push_back(over_expert_tensor(b, "expert_reduce", CollectiveOp::reduce_scatter, CollectiveOp::all_gather,
                                   share.rows));
  ops.push_back(over_experts(b, "combine", false, share));
}

}  // namespace shardscape::model
