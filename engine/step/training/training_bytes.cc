#include "engine/step/training/training_bytes.h"

#include <algorithm>

#include "engine/network/collectives/collective_rows.h"
#include "engine/step/training/data_traffic.h"

namespace shardscape::step {

namespace {

using network::CollectiveOp;

/// Bytes that a rank of the group sends on average; `bytes` as the network counts them.
Bytes bytes_of(CollectiveOp op, Bytes bytes, double ranks) {
  const std::int32_t sweeps = network::row_of(op).sweeps;
  return sweeps > 0 ? sweeps * ((ranks - 1) / ranks * bytes) : bytes;
}

/// Bytes of one microbatch's calls in one stage, forward and backward.
GroupBytes stage_calls(const TrainingStep& in, std::int32_t stage,
                       const network::CollectivePrices& collectives) {
  const network::PlanLayout layout(in.plan);
  GroupBytes sum;
  in.each_part(in.stage_layers(stage), [&](const LayerRun& run, Pass /*pass*/, const PartCost& part) {
    for (const model::CollectiveCall& call : part.calls)
      sum[call.group] += run.count * sent_bytes(collectives, call, layout.group(call.group));
  });
  return sum;
}

/// Bytes of data-parallel traffic in one step.
GroupBytes data_bytes(const TrainingStep& in, std::int32_t stage) {
  const DataTraffic traffic = data_traffic(in, in.parameters_of(stage));
  GroupBytes sum;
  const auto add = [&](const DataTraffic::Part& part, double times) {
    const double ranks = in.pipeline.copies() * ranks_of(in.plan, part.group);
    sum[part.group] += times * bytes_of(part.op, part.bytes, ranks);
  };
  for (const Pass pass : kTrainingPasses) {
    for (const DataTraffic::Part& part : traffic.beside(pass, in.cuts())) add(part, in.pipeline.per_chunk());
  }
  for (const DataTraffic::Part& part : traffic.gradients) add(part, 1);
  for (const DataTraffic::Part& part : traffic.weights) add(part, 1);
  return sum;
}

}  // namespace

Bytes sent_bytes(const network::CollectivePrices& collectives, const model::CollectiveCall& call,
                 const network::RankGroup& group) {
  return call.repeats *
         bytes_of(call.op, collectives.healthy().wire_bytes(call.op, call.bytes, group), group.size());
}

GroupBytes training_bytes(const TrainingStep& in, const network::CollectivePrices& collectives) {
  GroupBytes most;
  const double m = in.pipeline.per_chunk();
  for (std::int32_t stage = 0; stage < in.plan.pipeline; ++stage) {
    const GroupBytes calls = stage_calls(in, stage, collectives);
    const GroupBytes data = data_bytes(in, stage);
    for (const ParallelGroup group : enum_values<ParallelGroup>())
      most[group] = std::max(most[group], m * calls[group] + data[group]);
  }
  if (in.plan.pipeline == 1) return most;
  const double messages = m * in.pipeline.virtual_stages;
  const Boundary boundary = in.boundary();
  most[ParallelGroup::pipeline] = messages * boundary.message;
  most.pipeline_wraps = in.pipeline.wraps();
  // The boundary is sent in parts, and gathered again on arrival, in forward and in backward.
  if (boundary.gathered > Bytes(0))
    most[ParallelGroup::tensor] +=
        2 * messages * bytes_of(CollectiveOp::all_gather, boundary.gathered, in.plan.tensor);
  return most;
}

}  // namespace shardscape::step
