#include "engine/passes/training_bytes.h"

#include <algorithm>

#include "engine/passes/data_traffic.h"
#include "engine/spec/parallel_groups.h"

namespace shardscape::passes {

namespace {

using network::CollectiveOp;

class CallSum {
 public:
  explicit CallSum(const ParallelPlan& plan) : plan_(plan) {}

  void add(const std::vector<model::CollectiveCall>& calls, double count, bool context_only = false) {
    for (const model::CollectiveCall& call : calls) {
      const Bytes bytes = count * call.repeats * sent_bytes(call.op, call.bytes, plan_.degree(call.axis));
      if (call.axis == PlanAxis::context) {
        context += bytes;
      } else if (!context_only) {
        tensor += bytes;
      }
    }
  }

  Bytes tensor, context;

 private:
  const ParallelPlan& plan_;
};

/// One microbatch through one stage, forward and backward.
CallSum stage_calls(const TrainingInputs& in, std::size_t stage) {
  CallSum sum(in.plan);
  for (const auto& [kind, count] : in.layers[stage]) {
    const LayerCost& block = in.costs.blocks[kind];
    sum.add(block.forward_calls, count);
    sum.add(block.backward_calls, count);
    if (in.plan.recompute != Recompute::none)
      sum.add(block.forward_calls, count, in.plan.recompute == Recompute::selective);
  }
  const auto add_end = [&](const LayerCost& layer) {
    sum.add(layer.forward_calls, 1);
    sum.add(layer.backward_calls, 1);
  };
  if (stage == 0) add_end(in.costs.embedding);
  if (stage + 1 == in.layers.size()) add_end(in.costs.head);
  return sum;
}

Bytes data_bytes(const TrainingInputs& in, const model::Parameters& parameters) {
  const double shards = ranks_of(in.plan, ParallelGroup::data_shard);
  const DataTraffic traffic = data_traffic(in, parameters);
  const auto sent = [&](const DataTraffic::Part& part) { return sent_bytes(part.op, part.bytes, shards); };
  const Bytes each =
      sent(traffic.forward_gather) + sent(traffic.backward_gather) + sent(traffic.backward_scatter);
  return in.pipeline.microbatches * each + sent(traffic.gradients) + sent(traffic.weights);
}

}  // namespace

Bytes sent_bytes(CollectiveOp op, Bytes bytes, double ranks) {
  const Bytes sweep = (ranks - 1) / ranks * bytes;
  switch (op) {
    case CollectiveOp::all_reduce:
      return 2 * sweep;
    case CollectiveOp::reduce_scatter:
    case CollectiveOp::all_gather:
    case CollectiveOp::all_to_all:
      return sweep;
    case CollectiveOp::broadcast:
    case CollectiveOp::ring_pass:
    case CollectiveOp::chain_pass:
      break;
  }
  return bytes;
}

AxisBytes training_bytes(const TrainingInputs& in) {
  AxisBytes most;
  const double m = in.pipeline.microbatches;
  const std::size_t stages = in.layers.size();
  for (std::size_t s = 0; s < stages; ++s) {
    const CallSum calls = stage_calls(in, s);
    most.tensor = std::max(most.tensor, m * calls.tensor);
    most.context = std::max(most.context, m * calls.context);
    most.data = std::max(most.data, data_bytes(in, in.parameters.of_stage(in.layers, s)));
  }
  if (stages == 1) return most;
  const double messages = m * in.pipeline.virtual_stages;
  most.pipeline = messages * in.costs.boundary;
  most.pipeline_wraps = in.pipeline.virtual_stages > 1;
  const bool scatter = in.setting.system.stack.communication.scatter_boundaries && !in.plan.sequence_parallel;
  if (scatter && in.plan.tensor > 1) {
    // Sent in parts and gathered again on arrival, forward and backward.
    most.pipeline /= in.plan.tensor;
    most.tensor += 2 * messages * sent_bytes(CollectiveOp::all_gather, in.costs.boundary, in.plan.tensor);
  }
  return most;
}

}  // namespace shardscape::passes
