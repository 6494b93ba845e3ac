#include "engine/model/mlp/expert_exchange.h"

namespace shardscape::model {

namespace {

using network::CollectiveOp;

/// Of `copies` of tokens; a value takes so many bytes in forward and in backward.
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

/// Dispatch and combine are each other's backward. Of kernels that send in fp8 only the dispatch of forward does.
Operator over_experts(const OperatorBuilder& b, std::string_view name, bool out, double rows) {
  const double copies = rows / b.key().experts().tensor, wire = bytes_per_element(b.policy().wire);
  const StackProfile::Experts& stack = b.stack().experts;
  if (stack.dispatch == ExpertDispatcher::library) {
    return exchange(b, name, ParallelGroup::expert, CollectiveOp::all_to_all, CollectiveOp::all_to_all,
                    copies, {wire, wire});
  }
  const double sent = dispatched_value_bytes(b.policy(), stack);
  if (out) {
    return exchange(b, name, ParallelGroup::expert, CollectiveOp::expert_dispatch,
                    CollectiveOp::expert_combine, copies, {sent, wire});
  }
  const CollectiveOp back = sent == wire ? CollectiveOp::expert_dispatch : CollectiveOp::expert_combine;
  return exchange(b, name, ParallelGroup::expert, CollectiveOp::expert_combine, back, copies, {wire, wire});
}

}  // namespace

void append_dispatch(std::vector<Operator>& ops, const OperatorBuilder& b, double rows) {
  if (!b.key().dispatches) return;
  ops.push_back(over_experts(b, "dispatch", true, rows));
  ops.push_back(
      over_expert_tensor(b, "expert_gather", CollectiveOp::all_gather, CollectiveOp::reduce_scatter, rows));
}

void append_combine(std::vector<Operator>& ops, const OperatorBuilder& b, double rows) {
  if (!b.key().dispatches) return;
  ops.push_back(
      over_expert_tensor(b, "expert_reduce", CollectiveOp::reduce_scatter, CollectiveOp::all_gather, rows));
  ops.push_back(over_experts(b, "combine", false, rows));
}

}  // namespace shardscape::model
