#include "engine/model/mlp/expert_exchange.h"

#include "engine/model/mlp/moe.h"

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

/// Dispatch and combine are each other's backward, and alike where loads are.
Operator all_to_all(const OperatorBuilder& b, std::string_view name, const ExpertShare& share, bool there) {
  const double rows = share.mean / b.key().experts().tensor;
  CollectiveOp forward = CollectiveOp::all_to_all, backward = CollectiveOp::all_to_all;
  if (loads_differ(b.model(), b.workload())) {
    forward = there ? CollectiveOp::dispatch : CollectiveOp::combine;
    backward = there ? CollectiveOp::combine : CollectiveOp::dispatch;
  }
  return exchange(b, name, ParallelGroup::expert, forward, backward, rows);
}

}  // namespace

void append_dispatch(std::vector<Operator>& ops, const OperatorBuilder& b, const ExpertShare& share) {
  if (!b.key().dispatches) return;
  ops.push_back(all_to_all(b, "dispatch", share, true));
  ops.push_back(exchange(b, "expert_gather", ParallelGroup::expert_tensor, CollectiveOp::all_gather,
                         CollectiveOp::reduce_scatter, share.rows));
}

void append_combine(std::vector<Operator>& ops, const OperatorBuilder& b, const ExpertShare& share) {
  if (!b.key().dispatches) return;
  ops.push_back(exchange(b, "expert_reduce", ParallelGroup::expert_tensor, CollectiveOp::reduce_scatter,
                         CollectiveOp::all_gather, share.rows));
  ops.push_back(all_to_all(b, "combine", share, false));
}

}  // namespace shardscape::model
