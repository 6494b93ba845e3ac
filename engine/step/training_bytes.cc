#include "engine/step/training_bytes.h"

#include <algorithm>

#include "engine/step/data_traffic.h"

namespace shardscape::step {

namespace {

using network::CollectiveOp;

/// One microbatch through one stage, forward and backward.
AxisBytes stage_calls(const TrainingStep& in, std::int32_t stage) {
  AxisBytes sum;
  for (const LayerRun& run : in.stage_layers(stage)) {
    for (const Pass pass : kTrainingPasses) {
      for (const Segment& segment : in.segments(run.kind, pass)) {
        for (const model::CollectiveCall& call : in.costs[run.kind][segment.part].calls) {
          sum[call.axis] +=
              run.count * call.repeats * sent_bytes(call.op, call.bytes, in.plan.degree(call.axis));
        }
      }
    }
  }
  return sum;
}

Bytes data_bytes(const TrainingStep& in, std::int32_t stage) {
  const DataTraffic traffic = data_traffic(in, in.parameters_of(stage));
  const double shards = static_cast<double>(in.plan.data) * in.plan.context;
  const auto sent = [&](const DataTraffic::Part& part) { return sent_bytes(part.op, part.bytes, shards); };
  Bytes sum;
  for (const Pass pass : kTrainingPasses) {
    for (const DataTraffic::Part& part : traffic.beside(pass, in.cuts()))
      sum += in.pipeline.microbatches * sent(part);
  }
  return sum + sent(traffic.gradients) + sent(traffic.weights);
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

AxisBytes training_bytes(const TrainingStep& in) {
  AxisBytes most;
  const double m = in.pipeline.microbatches;
  for (std::int32_t stage = 0; stage < in.plan.pipeline; ++stage) {
    const AxisBytes calls = stage_calls(in, stage);
    for (const PlanAxis axis : enum_values<PlanAxis>()) most[axis] = std::max(most[axis], m * calls[axis]);
    most[PlanAxis::data] = std::max(most[PlanAxis::data], data_bytes(in, stage));
  }
  if (in.plan.pipeline == 1) return most;
  const double messages = m * in.pipeline.virtual_stages;
  const Boundary boundary = in.boundary();
  most[PlanAxis::pipeline] = messages * boundary.message;
  most.pipeline_wraps = in.pipeline.virtual_stages > 1;
  // Sent in parts and gathered again on arrival, forward and backward.
  if (boundary.gathered > Bytes(0))
    most[PlanAxis::tensor] +=
        2 * messages * sent_bytes(CollectiveOp::all_gather, boundary.gathered, in.plan.tensor);
  return most;
}

}  // namespace shardscape::step
