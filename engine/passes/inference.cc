#include "engine/passes/inference.h"

#include <algorithm>

namespace shardscape::passes {

namespace {

using network::CollectiveOp;
using network::PlanLayout;
using network::RankGroup;

/// One trip of a token (or prompt) through all stages, by class.
struct Trip {
  Seconds compute, tensor_comm, context_comm, pipeline_comm, host;
  [[nodiscard]] Seconds total() const { return compute + tensor_comm + context_comm + pipeline_comm + host; }
};

class TripTimer {
 public:
  TripTimer(const InferenceInputs& in, network::CollectiveModel& collectives)
      : in_(in), collectives_(collectives), layout_(in.plan) {}

  /// `launch`: host time per block.
  [[nodiscard]] Trip run(const LayerCosts& costs, Seconds launch) const {
    Trip trip;
    const Seconds block_launch =
        launch + costs.block.forward_call_count * in_.setting.system.stack.host.per_collective;
    add(trip, static_cast<double>(in_.setting.model.layers), costs.block, block_launch);
    add(trip, 1, costs.embedding, Seconds(0));
    add(trip, 1, costs.head, Seconds(0));
    const double hops = in_.plan.pipeline - 1;
    trip.pipeline_comm =
        hops * collectives_.time(CollectiveOp::chain_pass, costs.boundary, layout_.group(PlanAxis::pipeline));
    return trip;
  }

 private:
  void add(Trip& trip, double count, const LayerCost& layer, Seconds launch) const {
    const StackProfile::Communication& stack = in_.setting.system.stack.communication;
    Seconds tensor, context;
    for (const workload::CollectiveCall& call : layer.forward_calls) {
      (call.axis == PlanAxis::tensor ? tensor : context) +=
          call.repeats * collectives_.time(call.op, call.bytes, layout_.group(call.axis));
    }
    tensor *= 1 - stack.tensor_overlap;
    context = std::max(Seconds(0), context - stack.context_overlap * layer.attention_core);
    trip.compute += count * layer.forward;
    trip.tensor_comm += count * tensor;
    trip.context_comm += count * context;
    trip.host += count * std::max(Seconds(0), launch - (layer.forward + tensor + context));
  }

  const InferenceInputs& in_;
  network::CollectiveModel& collectives_;
  PlanLayout layout_;
};

}  // namespace

std::int32_t decode_group(const WorkloadSpec& workload, const ParallelPlan& plan) {
  const std::int64_t requests = workload.concurrency / plan.data;
  const std::int64_t groups = std::min<std::int64_t>(plan.pipeline, requests);
  return static_cast<std::int32_t>((requests + groups - 1) / groups);
}

void time_inference(const InferenceInputs& in, network::CollectiveModel& collectives, Prediction& out) {
  const StackProfile::Host& host = in.setting.system.stack.host;
  const WorkloadSpec& workload = in.setting.workload;
  const TripTimer timer(in, collectives);
  const Trip prefill = timer.run(in.prefill, host.decode_layer);
  const Trip step = timer.run(in.decode, host.decode_layer);
  const auto tokens = static_cast<double>(workload.output_tokens);
  const double steps = tokens - 1;

  const Seconds waiting = (in.requests - 1) / tokens * prefill.total();
  out.ttft = prefill.total() + host.decode_step_fixed;
  out.itl = step.total() + host.decode_step_fixed + waiting;
  out.e2e = out.ttft + steps * out.itl;
  out.step_time = step.total() + host.decode_step_fixed;

  Breakdown& b = out.breakdown;
  b.compute = prefill.compute + steps * step.compute;
  b.tensor_comm = prefill.tensor_comm + steps * step.tensor_comm;
  b.context_comm = prefill.context_comm + steps * step.context_comm;
  b.pipeline_comm = prefill.pipeline_comm + steps * step.pipeline_comm;
  b.host = prefill.host + steps * step.host + tokens * host.decode_step_fixed;
  b.bubble = steps * waiting;

  out.tokens_per_s_per_gpu = static_cast<double>(workload.concurrency) * tokens / out.e2e.value() /
                             static_cast<double>(in.plan.gpus());
}

}  // namespace shardscape::passes
