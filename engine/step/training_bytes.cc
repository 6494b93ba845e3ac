#include "engine/step/training_bytes.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "engine/model/expert_shares.h"
#include "engine/network/expert_dispatch.h"
#include "engine/step/data_traffic.h"

namespace shardscape::step {

namespace {

using network::CollectiveOp;

/// Of what a call moves: kernels of experts send a token once to each of the ranks that it goes to.
double sent_share(const TrainingStep& in, const model::CollectiveCall& call, double ranks) {
  if (!network::is_exchange(call.op)) return 1;
  const auto chosen = static_cast<double>(in.setting.model.moe->top_k);
  const std::vector<double> loads = model::expert_shares(in.setting);
  if (loads.empty()) return network::places_met(ranks, chosen) / chosen;
  const std::vector<double> met = network::chances_met(
      compute::member_shares(loads, static_cast<std::size_t>(std::lround(ranks))), chosen);
  return std::accumulate(met.begin(), met.end(), 0.0) / chosen;
}

/// One microbatch through one stage, forward and backward.
GroupBytes stage_calls(const TrainingStep& in, std::int32_t stage) {
  GroupBytes sum;
  for (const LayerRun& run : in.stage_layers(stage)) {
    for (const Pass pass : kTrainingPasses) {
      for (const Segment& segment : in.segments(run.kind, pass)) {
        for (const model::CollectiveCall& call : in.costs[run.kind][segment.part].calls) {
          const double ranks = ranks_of(in.plan, call.group);
          sum[call.group] +=
              run.count * call.repeats * sent_share(in, call, ranks) * sent_bytes(call.op, call.bytes, ranks);
        }
      }
    }
  }
  return sum;
}

/// One step.
GroupBytes data_bytes(const TrainingStep& in, std::int32_t stage) {
  const DataTraffic traffic = data_traffic(in, in.parameters_of(stage));
  GroupBytes sum;
  const auto add = [&](const DataTraffic::Part& part, double times) {
    const double ranks = in.pipeline.copies() * ranks_of(in.plan, part.group);
    sum[part.group] += times * sent_bytes(part.op, part.bytes, ranks);
  };
  for (const Pass pass : kTrainingPasses) {
    for (const DataTraffic::Part& part : traffic.beside(pass, in.cuts())) add(part, in.pipeline.per_chunk());
  }
  for (const DataTraffic::Part& part : traffic.gradients) add(part, 1);
  for (const DataTraffic::Part& part : traffic.weights) add(part, 1);
  return sum;
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
    case CollectiveOp::expert_dispatch:
    case CollectiveOp::expert_combine:
    case CollectiveOp::dispatch:  // a mean rank's
    case CollectiveOp::combine:
    case CollectiveOp::last_combine:
    case CollectiveOp::low_latency_dispatch:
    case CollectiveOp::low_latency_combine:
      return sweep;
    case CollectiveOp::broadcast:
    case CollectiveOp::ring_pass:
    case CollectiveOp::chain_pass:
      break;
  }
  return bytes;
}

GroupBytes training_bytes(const TrainingStep& in) {
  GroupBytes most;
  const double m = in.pipeline.per_chunk();
  for (std::int32_t stage = 0; stage < in.plan.pipeline; ++stage) {
    const GroupBytes calls = stage_calls(in, stage);
    const GroupBytes data = data_bytes(in, stage);
    for (const ParallelGroup group : enum_values<ParallelGroup>())
      most[group] = std::max(most[group], m * calls[group] + data[group]);
  }
  if (in.plan.pipeline == 1) return most;
  const double messages = m * in.pipeline.virtual_stages;
  const Boundary boundary = in.boundary();
  most[ParallelGroup::pipeline] = messages * boundary.message;
  most.pipeline_wraps = in.pipeline.wraps();
  // Sent in parts and gathered again on arrival, forward and backward.
  if (boundary.gathered > Bytes(0))
    most[ParallelGroup::tensor] +=
        2 * messages * sent_bytes(CollectiveOp::all_gather, boundary.gathered, in.plan.tensor);
  return most;
}

}  // namespace shardscape::step
