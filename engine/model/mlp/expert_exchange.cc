#include "engine/model/mlp/expert_exchange.h"

namespace shardscape::model {

namespace {

using network::CollectiveOp;

Operator exchange(const OperatorBuilder& b, std::string_view name, ParallelGroup group, CollectiveOp forward,
                  CollectiveOp backward, double rows) {
  const ExpertSplit split = b.key().experts();
  const std::int32_t ranks = group == ParallelGroup::expert ? split.ranks : split.tensor;
  const Bytes bytes(bytes_per_element(b.policy().wire) * rows * b.hidden());
  const double repeats = ranks > 1 ? 1 : 0;
  Operator op;
  op.name = name;
  op.kind = OperatorKind::collective;
  op.forward_comm = {forward, group, bytes, repeats};
  op.backward_comm = {backward, group, bytes, repeats};
  return op;
}

/// Dispatch and combine are each other's backward, and alike.
Operator all_to_all(const OperatorBuilder& b, std::string_view name, double rows) {
  return exchange(b, name, ParallelGroup::expert, CollectiveOp::all_to_all, CollectiveOp::all_to_all,
                  rows / b.key().experts().tensor);
}

}  // namespace

void append_dispatch(std::vector<Operator>& ops, const OperatorBuilder& b, double rows) {
  if (!b.key().dispatches) return;
  ops.push_back(all_to_all(b, "dispatch", rows));
  ops.push_back(exchange(b, "expert_gather", ParallelGroup::expert_tensor, CollectiveOp::all_gather,
                         CollectiveOp::reduce_scatter, rows));
}

void append_combine(std::vector<Operator>& ops, const OperatorBuilder& b, double rows) {
  if (!b.key().dispatches) return;
  ops.push_back(exchange(b, "expert_reduce", ParallelGroup::expert_tensor, CollectiveOp::reduce_scatter,
                         CollectiveOp::all_gather, rows));
  ops.push_back(all_to_all(b, "combine", rows));
}

}  // namespace shardscape::model
