#include "engine/passes/training.h"

#include <algorithm>
#include <functional>

#include "engine/model/block.h"
#include "engine/network/plan_groups.h"
#include "engine/passes/contention.h"
#include "engine/passes/data_exposure.h"
#include "engine/passes/data_traffic.h"
#include "engine/spec/zero.h"

namespace shardscape::passes {

namespace {

using network::CollectiveOp;
using network::PlanGroups;
using network::PlanLayout;
using network::Slice;

struct CommTime {
  Seconds tensor, context;
};

CommTime price_calls(const std::vector<model::CollectiveCall>& calls, const PlanGroups& groups,
                     network::CollectiveModel& collectives, const Slice& slice) {
  CommTime sum;
  for (const model::CollectiveCall& call : calls) {
    const bool tensor = call.axis == PlanAxis::tensor;
    const ParallelGroup group = tensor ? ParallelGroup::tensor : ParallelGroup::context;
    const Seconds time = call.repeats * collectives.time(call.op, call.bytes, groups[group], 1, slice);
    (tensor ? sum.tensor : sum.context) += time;
  }
  return sum;
}

/// Times of the pieces that the stages of a slice are put together from.
class LayerTimer {
 public:
  LayerTimer(const TrainingInputs& in, const PlanGroups& groups, network::CollectiveModel& collectives,
             const Slice& slice)
      : in_(in), groups_(groups), collectives_(collectives), stack_(in.setting.system.stack), slice_(slice) {}

  [[nodiscard]] PassTime forward(const LayerCost& layer) const {
    PassTime time = forward_device(layer);
    return with_host(time, pass_launch(in_, stack_.host.forward_layer, layer.forward_calls));
  }

  /// A whole one is all in `input`.
  struct Backward {
    PassTime input, weight;
  };
  [[nodiscard]] Backward backward(const LayerCost& layer, Recompute recompute, bool cut) const {
    PassTime weight;
    if (cut) weight.compute = layer.weight;
    const CommTime comm = price_calls(layer.backward_calls, groups_, collectives_, slice_);
    PassTime time;
    time.compute = layer.backward - weight.compute;
    time.tensor_comm = exposed_tensor(comm.tensor);
    time.context_comm = exposed_context(comm.context, layer.attention_core_backward);
    if (recompute == Recompute::full) {
      PassTime again = forward_device(layer);
      std::swap(again.compute, again.recompute);
      time += again;
    } else if (recompute == Recompute::selective) {
      time.recompute += layer.attention_core;
      time.context_comm +=
          forward_device(layer).context_comm;  // keys and values of the other ranks come again
    }
    const BackwardLaunch launch = backward_launch(in_, layer, recompute, cut);
    return {with_host(time, launch.input), with_host(weight, launch.weight)};
  }

 private:
  [[nodiscard]] PassTime forward_device(const LayerCost& layer) const {
    const CommTime comm = price_calls(layer.forward_calls, groups_, collectives_, slice_);
    PassTime time;
    time.compute = layer.forward;
    time.tensor_comm = exposed_tensor(comm.tensor);
    time.context_comm = exposed_context(comm.context, layer.attention_core);
    return time;
  }
  [[nodiscard]] Seconds exposed_tensor(Seconds comm) const {
    return (1 - stack_.communication.tensor_overlap) * comm;
  }
  [[nodiscard]] Seconds exposed_context(Seconds comm, Seconds attention) const {
    return std::max(Seconds(0), comm - stack_.communication.context_overlap * attention);
  }
  /// The device waits where the host launches more slowly than it computes.
  [[nodiscard]] static PassTime with_host(PassTime time, Seconds launch) {
    time.host = std::max(Seconds(0), launch - time.total());
    return time;
  }

  const TrainingInputs& in_;
  const PlanGroups& groups_;
  network::CollectiveModel& collectives_;
  const StackProfile& stack_;
  Slice slice_;
};

/// Data-parallel traffic of one stage.
struct DataComm {
  Seconds per_forward;   ///< exposed, each microbatch
  Seconds per_backward;  ///< exposed, each microbatch
  Seconds per_weight;    ///< exposed, each microbatch: of a cut backward, behind its weight gradient
};

/// `weight`: the part of backward that is put off; weights are gathered for the rest of it, gradients reduced
/// behind it. Zero where the backward is whole.
DataComm data_comm(const TrainingInputs& in, const PlanGroups& groups, const model::Parameters& parameters,
                   const PassTime& forward, const PassTime& backward, Seconds weight,
                   network::CollectiveModel& collectives, const Slice& slice) {
  const DataTraffic traffic = data_traffic(in, parameters);
  const auto cost = [&](const DataTraffic::Part& part) {
    return collectives.time(part.op, part.bytes, groups[ParallelGroup::data_shard], part.calls, slice);
  };
  const double overlap = in.setting.system.stack.communication.data_overlap;
  const auto exposed = [&](Seconds time, Seconds hider) {
    return std::max(Seconds(0), time - overlap * hider);
  };
  const bool cut = in.pipeline.kind == ScheduleKind::zero_bubble;
  const Seconds gather = cost(traffic.backward_gather), scatter = cost(traffic.backward_scatter);
  DataComm comm;
  comm.per_forward = exposed(cost(traffic.forward_gather), forward.total());
  comm.per_backward = exposed(cut ? gather : gather + scatter, backward.total() - weight);
  if (cut) comm.per_weight = exposed(scatter, weight);
  return comm;
}

compute::OptimizerState optimizer_state(const Setting& setting) {
  const StackProfile::State& state = setting.system.stack.state;
  return {state.gradient_bytes, state.master_bytes, state.moment_bytes,
          bytes_per_element(setting.workload.policy().weights)};
}

/// One microbatch over all chunks of a stage.
struct StagePasses {
  PassTime forward, backward;
  Seconds weight;  ///< the part of backward that zero_bubble puts off
  EndLayers ends;
};

/// The passes of stages whose layers cost the same.
class StageTimer {
 public:
  StageTimer(const TrainingInputs& in, const LayerCosts& costs, const LayerTimer& timer)
      : in_(in), costs_(costs), timer_(timer), blocks_(costs.blocks.size()) {
    const bool cut = in.pipeline.kind == ScheduleKind::zero_bubble;
    for (std::size_t kind = 0; kind < blocks_.size(); ++kind) {
      const LayerCost& block = costs.blocks[kind];
      blocks_[kind] = {timer.forward(block), timer.backward(block, in.plan.recompute, cut)};
    }
  }

  [[nodiscard]] StagePasses of(std::size_t stage) const {
    StagePasses passes;
    PassTime weight;
    for (const auto& [kind, layers] : in_.layers[stage]) {
      passes.forward += layers * blocks_[kind].forward;
      passes.backward += layers * blocks_[kind].backward.input;
      weight += layers * blocks_[kind].backward.weight;
    }
    passes.weight = weight.total();
    passes.backward += weight;
    if (stage == 0) passes.ends.embedding = add(costs_.embedding, passes);
    if (stage + 1 == in_.layers.size()) passes.ends.head = add(costs_.head, passes);
    return passes;
  }

 private:
  /// Returns the time of its backward.
  Seconds add(const LayerCost& layer, StagePasses& passes) const {
    const PassTime backward = timer_.backward(layer, Recompute::none, false).input;
    passes.forward += timer_.forward(layer);
    passes.backward += backward;
    return backward.total();
  }

  const TrainingInputs& in_;
  const LayerCosts& costs_;
  const LayerTimer& timer_;
  struct BlockTime {
    PassTime forward;
    LayerTimer::Backward backward;
  };
  std::vector<BlockTime> blocks_;  ///< by kind
};

/// What sick devices leave of the memory's rate; of those on one stage, or of all.
double memory_share(const TrainingInputs& in, std::optional<std::size_t> stage = {}) {
  double share = 1;
  for (const SickStage& sick : in.sick) {
    if (stage && sick.stage != *stage) continue;
    share = std::min(share, sick.setting.system.device.hbm_peak() / in.setting.system.device.hbm_peak());
  }
  return share;
}

/// What a stage waits for: its own groups. While all links are healthy, stages are alike.
Slice slice_of(std::size_t stage, const PlanLayout& layout, const TrainingInputs& in,
               const network::CollectiveModel& collectives) {
  if (!collectives.has_faults()) return {};
  return stage_slice(static_cast<std::int32_t>(stage), layout, in.plan);
}

void fill_stage_times(const TrainingInputs& in, const PlanLayout& layout, const PlanGroups& groups,
                      network::CollectiveModel& collectives, TrainingScratch& scratch) {
  const auto stages = static_cast<std::size_t>(in.plan.pipeline);
  scratch.forward.resize(stages);
  scratch.backward.resize(stages);
  scratch.weight.resize(stages);
  scratch.ends.resize(stages);
  const auto timer_of = [&](std::size_t s) {
    return LayerTimer(in, groups, collectives, slice_of(s, layout, in, collectives));
  };
  const LayerTimer first_timer = timer_of(0);
  const StageTimer first(in, in.costs, first_timer);
  for (std::size_t s = 0; s < stages; ++s) {
    const bool alike = s == 0 || !collectives.has_faults();
    const StagePasses passes = alike ? first.of(s) : StageTimer(in, in.costs, timer_of(s)).of(s);
    scratch.forward[s] = passes.forward;
    scratch.backward[s] = passes.backward;
    scratch.weight[s] = passes.weight;
    scratch.ends[s] = passes.ends;
  }
  for (const SickStage& sick : in.sick) {
    collectives.set_memory_share(sick.setting.system.device.hbm_peak() / in.setting.system.device.hbm_peak());
    const StagePasses passes = StageTimer(in, sick.costs, timer_of(sick.stage)).of(sick.stage);
    PassTime& forward = scratch.forward[sick.stage];
    PassTime& backward = scratch.backward[sick.stage];
    if (passes.forward.total() > forward.total()) forward = passes.forward;
    if (passes.backward.total() <= backward.total()) continue;
    backward = passes.backward;
    scratch.weight[sick.stage] = passes.weight;
    scratch.ends[sick.stage] = passes.ends;
  }
  collectives.set_memory_share(1);
}

/// Adds to the passes of each stage what data parallelism costs every microbatch.
void add_data_parallel(const TrainingInputs& in, const PlanLayout& layout, const PlanGroups& groups,
                       network::CollectiveModel& collectives, TrainingScratch& scratch) {
  const auto stages = static_cast<std::size_t>(in.plan.pipeline);
  for (std::size_t s = 0; s < stages; ++s) {
    collectives.set_memory_share(memory_share(in, s));
    const DataComm comm =
        data_comm(in, groups, in.parameters.of_stage(in.layers, s), scratch.forward[s], scratch.backward[s],
                  scratch.weight[s], collectives, slice_of(s, layout, in, collectives));
    scratch.forward[s].data_comm += comm.per_forward;
    scratch.backward[s].data_comm += comm.per_backward + comm.per_weight;
    scratch.weight[s] += comm.per_weight;
  }
  collectives.set_memory_share(1);
}

/// The end of each stage's step: gradients that its last backward does not hide, optimizer, weights.
void add_tails(const TrainingInputs& in, const PlanLayout& layout, const PlanGroups& groups,
               network::CollectiveModel& collectives, TrainingScratch& scratch) {
  const auto stages = static_cast<std::size_t>(in.plan.pipeline);
  scratch.tails.resize(stages);
  for (std::size_t s = 0; s < stages; ++s) {
    const DataTraffic traffic = data_traffic(in, in.parameters.of_stage(in.layers, s));
    const Slice slice = slice_of(s, layout, in, collectives);
    const auto cost = [&](const DataTraffic::Part& part) {
      return collectives.time(part.op, part.bytes, groups[ParallelGroup::data_shard], part.calls, slice);
    };
    collectives.set_memory_share(memory_share(in, s));
    scratch.tails[s].data_comm = cost(traffic.weights);
    if (traffic.gradients.bytes > Bytes(0)) {
      scratch.tails[s].data_comm +=
          exposed_gradients(in, static_cast<std::int32_t>(s), last_backward(in, scratch, s),
                            traffic.gradients.calls, cost(traffic.gradients));
    }
    const auto optimizer_on = [&](const DeviceSpec& device) { return optimizer_cost(in, device, s).total(); };
    scratch.tails[s].optimizer = optimizer_on(in.setting.system.device);
    for (const SickStage& sick : in.sick) {
      if (sick.stage == s)
        scratch.tails[s].optimizer =
            std::max(scratch.tails[s].optimizer, optimizer_on(sick.setting.system.device));
    }
  }
  collectives.set_memory_share(1);
}

/// One message over each boundary between stages. Those of different boundaries are under way at different
/// times: a stage sends one when it has worked on another.
void price_boundaries(const TrainingInputs& in, const PlanGroups& groups,
                      network::CollectiveModel& collectives, std::vector<double>& seconds) {
  const Bytes bytes = in.costs.boundary;
  const bool closed = in.pipeline.virtual_stages > 1;  // the next chunk begins on the first stage again
  const bool scatter = in.setting.system.stack.communication.scatter_boundaries &&
                       !in.plan.sequence_parallel && in.plan.tensor > 1;
  collectives.boundary_times(scatter ? bytes / in.plan.tensor : bytes, groups[ParallelGroup::pipeline],
                             closed, seconds);
  if (!closed) seconds.back() = seconds.front();  // not used; a chain may be alike everywhere
  if (std::ranges::adjacent_find(seconds, std::ranges::not_equal_to()) == seconds.end()) seconds.resize(1);
  if (!scatter) return;
  const Seconds gather = collectives.time(CollectiveOp::all_gather, bytes, groups[ParallelGroup::tensor]);
  for (double& boundary : seconds) boundary += gather.value();
}

/// When each stage ends, with the real transfers and with free ones.
void run_pipeline(const TrainingInputs& in, const PlanGroups& groups, network::CollectiveModel& collectives,
                  TrainingScratch& scratch) {
  const auto stages = static_cast<std::size_t>(in.plan.pipeline);
  scratch.times.resize(stages);
  for (std::size_t s = 0; s < stages; ++s) {
    const double chunks = in.pipeline.virtual_stages;
    scratch.times[s] = {scratch.forward[s].total().value() / chunks,
                        scratch.backward[s].total().value() / chunks, scratch.weight[s].value() / chunks};
  }
  scratch.transfer.blocking = !in.setting.system.stack.communication.pipeline_async;
  scratch.transfer.seconds.assign(1, 0);
  const auto run = [&](std::vector<double>& end) {
    if (scratch.reference) {
      std::vector<schedule::PipelineSpan> spans;
      end = schedule::run_in_order(in.pipeline, scratch.times, scratch.transfer, &spans);
      scratch.chunk_end = schedule::chunk_ends(in.pipeline, spans, scratch.transfer);
    } else {
      const schedule::PipelineEnds fast = scratch.pipelines.run(in.pipeline, scratch.times, scratch.transfer);
      end.assign(fast.stages.begin(), fast.stages.end());
      scratch.chunk_end.assign(fast.chunks.begin(), fast.chunks.end());
    }
  };
  run(scratch.end_without_transfers);
  if (stages == 1) {
    scratch.end = scratch.end_without_transfers;
  } else {
    collectives.set_memory_share(memory_share(in));
    price_boundaries(in, groups, collectives, scratch.transfer.seconds);
    run(scratch.end);
    collectives.set_memory_share(1);
  }
}

void fill_rates(const TrainingInputs& in, Prediction& out) {
  const WorkloadSpec& workload = in.setting.workload;
  const auto gpus = static_cast<double>(in.plan.gpus());
  const auto batch = static_cast<double>(workload.global_batch);
  out.tokens_per_s_per_gpu =
      batch * static_cast<double>(workload.sequence_length) / out.step_time.value() / gpus;
  const Flops useful = batch * model::model_flops_per_sequence(in.setting.model, workload.sequence_length);
  out.mfu =
      useful / out.step_time / (gpus * in.setting.system.device.tensor_peak(workload.policy().products));
}

}  // namespace

Seconds pass_launch(const TrainingInputs& in, Seconds layer,
                    const std::vector<model::CollectiveCall>& calls) {
  const StackProfile::Host& host = in.setting.system.stack.host;
  Seconds launch = layer, progress;
  for (const model::CollectiveCall& call : calls) {
    launch += call.repeats * host.per_collective;
    progress += call.repeats * in.plan.degree(call.axis) * host.per_collective_rank;
  }
  return std::max(launch, progress);
}

BackwardLaunch backward_launch(const TrainingInputs& in, const LayerCost& layer, Recompute recompute,
                               bool cut) {
  const StackProfile::Host& host = in.setting.system.stack.host;
  const double put_off = cut ? layer.weight_kernels : 0;
  BackwardLaunch launch{pass_launch(in, (1 - put_off) * host.backward_layer, layer.backward_calls),
                        put_off * host.backward_layer};
  if (recompute == Recompute::full) launch.input += pass_launch(in, host.forward_layer, layer.forward_calls);
  return launch;
}

OptimizerCost optimizer_cost(const TrainingInputs& in, const DeviceSpec& device, std::size_t stage) {
  const double shards = ranks_of(in.plan, ParallelGroup::data_shard);
  const bool sharded = zero_shards(in.plan, ZeroState::optimizer);
  OptimizerCost cost;
  cost.parameters = in.parameters.of_stage(in.layers, stage).count / (sharded ? shards : 1.0);
  cost.update = compute::optimizer_step(cost.parameters, optimizer_state(in.setting), device);
  const bool sliced = sharded && !zero_shards(in.plan, ZeroState::weights);
  if (sliced && shards > 1) cost.slices = in.parameters.of_blocks(in.layers[stage]).tensors * shards;
  cost.slicing = cost.slices * in.setting.system.stack.zero_slice;
  return cost;
}

void fill_training_rates(const TrainingInputs& in, Prediction& out) { fill_rates(in, out); }

PassTime& PassTime::operator+=(const PassTime& o) {
  compute += o.compute;
  recompute += o.recompute;
  tensor_comm += o.tensor_comm;
  context_comm += o.context_comm;
  data_comm += o.data_comm;
  host += o.host;
  return *this;
}

PassTime operator*(double n, const PassTime& t) {
  return {n * t.compute, n * t.recompute, n * t.tensor_comm, n * t.context_comm, n * t.data_comm, n * t.host};
}

std::int32_t time_training(const TrainingInputs& in, network::CollectiveModel& collectives,
                           TrainingScratch& scratch, Prediction& out) {
  const PlanLayout layout(in.plan);
  const PlanGroups groups(in.plan);
  fill_stage_times(in, layout, groups, collectives, scratch);
  add_data_parallel(in, layout, groups, collectives, scratch);
  run_pipeline(in, groups, collectives, scratch);
  add_tails(in, layout, groups, collectives, scratch);

  const auto after_pipeline = [&](std::size_t s) {
    return Seconds(scratch.end[s]) + scratch.tails[s].data_comm + scratch.tails[s].optimizer;
  };
  std::size_t critical = 0;
  for (std::size_t s = 1; s < scratch.end.size(); ++s) {
    if (after_pipeline(s) > after_pipeline(critical)) critical = s;
  }
  const Seconds fixed = in.setting.system.stack.host.step_fixed;
  const bool first = out.step_time <= Seconds(0);  // and no rerun with faults
  out.step_time = after_pipeline(critical) + fixed;
  if (first) out.contended_share = contended_share(in, critical, out.step_time, collectives);

  const double m = in.pipeline.microbatches;
  PassTime busy = m * scratch.forward[critical];
  busy += m * scratch.backward[critical];
  Breakdown& b = out.breakdown;
  b.compute = busy.compute;
  b.recompute = busy.recompute;
  b.tensor_comm = busy.tensor_comm;
  b.context_comm = busy.context_comm;
  b.data_comm = busy.data_comm + scratch.tails[critical].data_comm;
  b.pipeline_comm = Seconds(std::max(0.0, scratch.end[critical] - scratch.end_without_transfers[critical]));
  b.bubble = std::max(Seconds(0), Seconds(scratch.end_without_transfers[critical]) - busy.total());
  b.optimizer = scratch.tails[critical].optimizer;
  b.host = busy.host + fixed;

  fill_rates(in, out);
  return static_cast<std::int32_t>(critical);
}

}  // namespace shardscape::passes
