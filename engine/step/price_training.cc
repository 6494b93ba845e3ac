#include "engine/step/price_training.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "engine/model/block_kinds.h"
#include "engine/spec/parallel_groups.h"
#include "engine/step/contention.h"
#include "engine/step/data_beside.h"
#include "engine/step/data_costs.h"
#include "engine/step/expert_leads.h"
#include "engine/step/known_step.h"
#include "engine/step/paired_passes.h"
#include "engine/step/stage_tails.h"

namespace shardscape::step {

namespace {

using network::CollectiveOp;
using network::PlanLayout;
using network::RankGroups;
using network::Slice;

using GroupTimes = EnumArray<ParallelGroup, Seconds>;

GroupTimes price_calls(const PartCost& part, const StackProfile::Communication& stack,
                       const RankGroups& groups, network::CollectiveModel& collectives, const Slice& slice) {
  GroupTimes times = call_times(
      part, stack,
      [&](const model::CollectiveCall& call) {
        return collectives.time(call.op, call.bytes, groups[call.group], 1, slice);
      },
      [&](const model::CollectiveCall& call, Seconds work) {
        return collectives.late_combine(call.bytes, groups[call.group], work, slice);
      });
  times[ParallelGroup::expert] += crowding(part, groups, collectives, slice);
  times[ParallelGroup::expert] -= hidden_by_lead(part, groups, collectives, slice);
  for (const PartCost::Overlap& overlap : part.overlaps) {
    const model::CollectiveCall& call = overlap.exchange;
    const Seconds one = collectives.time(call.op, call.bytes, groups[call.group], 1, slice);
    Seconds room = overlap.beside;
    times[ParallelGroup::expert] -= hide(call.repeats * one, 1, room);
  }
  return times;
}

Seconds launch_of(const TrainingStep& in, LayerKind kind, const Segments& segments);

/// Times of the pieces that the stages of a slice are put together from.
class LayerTimer {
 public:
  LayerTimer(const TrainingStep& in, const LayerCosts& costs, const RankGroups& groups,
             network::CollectiveModel& collectives, const Slice& slice)
      : LayerTimer(in, costs, groups, &collectives, slice) {}
  /// Without collectives calls take no time.
  LayerTimer(const TrainingStep& in, const LayerCosts& costs, const RankGroups& groups,
             network::CollectiveModel* collectives, const Slice& slice)
      : in_(in),
        costs_(costs),
        groups_(groups),
        collectives_(collectives),
        communication_(in.setting.system.stack.communication),
        slice_(slice) {}

  /// The device waits where the host launches more slowly than it computes.
  [[nodiscard]] PassTime operator()(LayerKind kind, Pass pass) const {
    return of(kind, in_.segments(kind, pass));
  }
  [[nodiscard]] PassTime of(LayerKind kind, const Segments& segments) const {
    PassTime time;
    for (const Segment& segment : segments) add_device(costs_[kind], segment, time);
    time[TimeClass::host] = std::max(Seconds(0), launch_of(in_, kind, segments) - time.total());
    return time;
  }

 private:
  void add_device(const LayerCost& layer, const Segment& segment, PassTime& time) const {
    const PartCost& part = layer[segment.part];
    time[segment.again ? TimeClass::recompute : TimeClass::compute] += part.device;
    if (collectives_ == nullptr) return;
    const GroupTimes comm = price_calls(part, communication_, groups_, *collectives_, slice_);
    for (const ParallelGroup group : enum_values<ParallelGroup>()) {
      if (comm[group] <= Seconds(0)) continue;
      time[class_of(group)] +=
          comm[group] - hidden_by_attention(communication_, group, comm[group], part.attention_core);
    }
  }

  const TrainingStep& in_;
  const LayerCosts& costs_;
  const RankGroups& groups_;
  network::CollectiveModel* collectives_;
  const StackProfile::Communication& communication_;
  Slice slice_;
};

/// As pass_launch(), of a pass that consists of these segments.
Seconds launch_of(const TrainingStep& in, LayerKind kind, const Segments& segments) {
  const StackProfile::Host& host = in.setting.system.stack.host;
  const LayerCost& layer = in.costs[kind];
  const StackProfile::Experts& experts = in.setting.system.stack.experts;
  const Seconds each =
      (in.setting.model.moe ? static_cast<double>(in.setting.model.moe->experts) : 0) * experts.per_expert;
  const Seconds forward = host.forward_layer + layer.routers * (experts.forward_layer + each) +
                          layer.plain_forward * experts.plain_launch;
  const Seconds backward = host.backward_layer + layer.routers * (experts.backward_layer + each) +
                           layer.plain_backward * experts.plain_launch;
  const auto own = [&](Part part) {
    switch (part) {
      case Part::forward:
        return forward;
      case Part::backward:
        return backward;
      case Part::input:
        return (1 - layer.weight_kernels) * backward;
      case Part::weight:
        return layer.weight_kernels * backward;
      case Part::repeated:
        return layer.repeated_kernels * forward;
    }
    return Seconds(0);
  };
  Seconds sum;
  for (const Segment& segment : segments) {
    if (segment.part == Part::repeated && layer.repeated_kernels == 0) continue;  // the attention core alone
    Seconds launch = own(segment.part), progress;
    for (const model::CollectiveCall& call : layer[segment.part].calls) {
      launch += call.repeats * host.per_collective;
      progress += call.repeats * ranks_of(in.plan, call.group) * host.per_collective_rank;
    }
    sum += std::max(launch, progress);
  }
  return sum;
}

/// The passes of stages whose layers cost the same; `known`: of these layers.
class StageTimer {
 public:
  StageTimer(const TrainingStep& in, const LayerTimer& timer, LayerTimes& known)
      : in_(in), timer_(timer), layers_(known.layers) {}

  [[nodiscard]] StagePasses of(const LayerRuns& runs) {
    StagePasses passes;
    for (const LayerRun& run : runs) {
      const LayerPasses& layer = timed(run.kind);
      passes.forward += run.count * layer.forward;
      PassTime backward = run.count * layer.backward;
      if (in_.defers(run.kind)) {
        const double share = in_.deferred_share();
        backward = share * layer.input;
        if (share < 1) backward += (1 - share) * layer.backward;
        passes.deferred = static_cast<double>(in_.deferred()) * layer.weight;
      }
      if (in_.cuts(run.kind)) {
        const PassTime weight = run.count * layer.weight;
        backward += weight;
        passes.weight += weight.total();
        passes.weight_host += weight[TimeClass::host];
      } else if (in_.splits(run.kind)) {
        passes.weight += std::min(run.count * layer.weight.total(), backward.total());
      }
      passes.backward += backward;
      if (run.kind == kEmbeddingLayer) passes.ends.embedding = backward.total();
      if (run.kind == kHeadLayer) passes.ends.head = backward.total();
      if (run.kind == kFurtherLayer) passes.ends.further = backward.total();
    }
    return passes;
  }

  /// What a forward through some layers and a backward through others hide of each other.
  [[nodiscard]] Seconds hidden(const LayerRuns& forward, const LayerRuns& backward, const LayerCosts& costs) {
    const StackProfile::Communication& stack = in_.setting.system.stack.communication;
    if (stack.expert_overlap <= 0 || !in_.key().dispatches) return Seconds(0);
    std::vector<LayerEmitter::Item> ahead, back;
    for (const LayerRun& run : forward) {
      for (std::int32_t n = 0; n < run.count; ++n)
        append_pieces(costs[run.kind], in_.segments(run.kind, Pass::forward),
                      timed(run.kind).forward[TimeClass::expert_comm], ahead);
    }
    for (auto run = backward.rbegin(); run != backward.rend(); ++run) {
      for (std::int32_t n = 0; n < run->count; ++n)
        append_pieces(costs[run->kind], in_.segments(run->kind, Pass::backward),
                      timed(run->kind).backward[TimeClass::expert_comm], back);
    }
    double seconds = 0;
    pair_up(ahead, back, 0, stack.expert_overlap, seconds);
    return Seconds(stack.expert_hidden * seconds);
  }

 private:
  const LayerPasses& timed(LayerKind kind) {
    std::optional<LayerPasses>& layer = layers_[kind.index()];
    if (!layer) {
      layer = {timer_(kind, Pass::forward), timer_(kind, Pass::backward), {}, {}};
      if (in_.cuts(kind) || in_.defers(kind) || in_.splits(kind)) layer->weight = timer_(kind, Pass::weight);
      if (in_.defers(kind)) layer->input = timer_(kind, Pass::input);
    }
    return *layer;
  }

  const TrainingStep& in_;
  const LayerTimer& timer_;
  std::array<std::optional<LayerPasses>, kLayerKinds>& layers_;
};

/// Whether passes through whole stages run in pairs, and not those through chunks.
bool pairs_of_stages(const TrainingStep& in) {
  return in.pipeline.overlaps && in.pipeline.virtual_stages == 1;
}

/// Of a stage that sick links slow, but for its layers.
SickPassesMemo::Key sick_key(const TrainingStep& in, std::size_t stage,
                             const network::CollectiveModel& collectives, const TrainingScratch& scratch) {
  SickPassesMemo::Key key;
  key.layers_id = scratch.parts->known()->layers_id;
  key.faults = collectives.fault_epoch();
  key.stage = static_cast<std::int32_t>(stage);
  key.deferred = in.deferred();
  return key;
}

/// `known`: of the layers on healthy devices, of the first stage where links tell stages apart.
void fill_stage_times(const TrainingStep& in, const PlanLayout& layout, const RankGroups& groups,
                      network::CollectiveModel& collectives, LayerTimes& known, TrainingScratch& scratch) {
  const auto stages = static_cast<std::size_t>(in.plan.pipeline);
  const PartsToPrice& parts = *scratch.parts;
  scratch.forward.resize(stages);
  scratch.backward.resize(stages);
  scratch.weight.resize(stages);
  scratch.weight_host.resize(stages);
  scratch.beside.resize(stages);
  scratch.ends.resize(stages);
  scratch.hidden.resize(stages);
  const auto timed = [&](StageTimer& timer, const LayerCosts& costs, std::size_t s) {
    const LayerRuns layers = in.stage_layers(static_cast<std::int32_t>(s));
    StagePasses passes = timer.of(layers);
    if (pairs_of_stages(in)) passes.hidden = timer.hidden(layers, layers, costs);
    return passes;
  };
  const auto passes_of = [&](const LayerCosts& costs, std::size_t s) {
    const LayerTimer timer(in, costs, groups, collectives, slice_of(s, layout, in, collectives));
    LayerTimes own;
    StageTimer of_stage(in, timer, own);
    return timed(of_stage, costs, s);
  };
  const LayerTimer first_timer(in, in.costs, groups, collectives, slice_of(0, layout, in, collectives));
  StageTimer first(in, first_timer, known);
  const auto healthy = [&](std::size_t s) -> const StagePasses& {
    const auto stage = static_cast<std::int32_t>(s);
    const StageKind kind{in.layers[s], in.first(stage), in.last(stage), pairs_of_stages(in), in.deferred()};
    const auto found = std::ranges::find(known.stages, kind, &KnownPasses::kind);
    if (found != known.stages.end()) return found->passes;
    known.stages.push_back({kind, timed(first, in.costs, s)});
    return known.stages.back().passes;
  };
  const auto slowed = [&](std::size_t s) {  // by sick links
    SickPassesMemo::Key key = sick_key(in, s, collectives, scratch);
    key.overlaps = pairs_of_stages(in);
    key.layers = in.layers[s];
    const SickPassesMemo::Place place = scratch.sick_passes->of(key);
    if (!place.known) place.passes = passes_of(in.costs, s);
    return place.passes;
  };
  const bool apart = told_apart(collectives);
  const bool shared = collectives.has_faults() && parts.known() != nullptr;
  for (std::size_t s = 0; s < stages; ++s) {
    if (!parts.passes(s)) continue;
    if (like_the_one_before(in, s, collectives)) {
      copy_stage(scratch, s - 1, scratch, s);
      continue;
    }
    const StagePasses passes = shared ? slowed(s) : s == 0 || !apart ? healthy(s) : passes_of(in.costs, s);
    scratch.forward[s] = passes.forward;
    scratch.backward[s] = passes.backward;
    scratch.weight[s] = passes.weight;
    scratch.weight_host[s] = passes.weight_host;
    scratch.ends[s] = passes.ends;
    scratch.hidden[s] = passes.hidden;
    if (s + 1 == stages) scratch.deferred = passes.deferred;
    if (collectives.records_links()) scratch.known->links[s].passes = collectives.take_recorded_part();
  }
  for (const SickStage& sick : in.sick) {
    collectives.set_memory_share(sick.setting.system.device.hbm_peak() / in.setting.system.device.hbm_peak());
    const StagePasses passes = passes_of(sick.costs, sick.stage);
    PassTime& forward = scratch.forward[sick.stage];
    PassTime& backward = scratch.backward[sick.stage];
    if (passes.forward.total() > forward.total()) forward = passes.forward;
    if (passes.deferred.total() > scratch.deferred.total()) scratch.deferred = passes.deferred;
    if (passes.backward.total() <= backward.total()) continue;
    backward = passes.backward;
    scratch.weight[sick.stage] = passes.weight;
    scratch.weight_host[sick.stage] = passes.weight_host;
    scratch.ends[sick.stage] = passes.ends;
    scratch.hidden[sick.stage] = passes.hidden;
  }
  collectives.set_memory_share(1);
}

/// One chunk of a stage, with all that its passes depend on.
StageKind chunk_kind(const TrainingStep& in, std::int32_t stage, std::int32_t chunk) {
  const std::int32_t part = in.pipeline.part(stage, chunk);
  return {in.chunks[static_cast<std::size_t>(stage * in.pipeline.virtual_stages + chunk)], part == 0,
          part + 1 == in.pipeline.parts(), false, in.deferred()};
}

/// The same by chunk, where a stage is more than one. The slower of what is there already and of these devices.
class ChunkFiller {
 public:
  ChunkFiller(const TrainingStep& in, TrainingScratch& scratch)
      : in_(in), each_(static_cast<std::size_t>(in.pipeline.virtual_stages)), chunks_(scratch.chunks) {}

  /// `known`: of what `timer` times.
  void fill(std::size_t s, StageTimer& timer, const LayerCosts& costs, LayerTimes& known) {
    const auto stage = static_cast<std::int32_t>(s);
    for (std::size_t c = 0; c < each_; ++c) {
      const auto number = static_cast<std::int32_t>(c);
      const StagePasses& passes = passes_of(stage, number, timer, known);
      ChunkPasses& chunk = chunks_[s * each_ + c];
      if (passes.forward.total() > chunk.forward.total()) chunk.forward = passes.forward;
      if (passes.backward.total() <= chunk.backward.total()) continue;
      chunk.backward = passes.backward;
      chunk.weight = passes.weight;
      if (in_.pipeline.overlaps || in_.pipeline.both_ways())
        chunk.hidden = hidden_of(stage, number, timer, costs, known);
    }
  }

 private:
  const StagePasses& passes_of(std::int32_t stage, std::int32_t chunk, StageTimer& timer, LayerTimes& known) {
    const StageKind kind = chunk_kind(in_, stage, chunk);
    const auto found = std::ranges::find(known.stages, kind, &KnownPasses::kind);
    if (found != known.stages.end()) return found->passes;
    known.stages.push_back({kind, timer.of(in_.chunk_layers(stage, chunk))});
    return known.stages.back().passes;
  }
  Seconds hidden_of(std::int32_t stage, std::int32_t chunk, StageTimer& timer, const LayerCosts& costs,
                    LayerTimes& known) {
    const std::int32_t mate = schedule::mate(in_.pipeline, stage, chunk);
    const StageKind forward = chunk_kind(in_, stage, chunk), backward = chunk_kind(in_, stage, mate);
    const auto alike = [&](const KnownPair& pair) {
      return pair.forward == forward && pair.backward == backward;
    };
    const auto found = std::ranges::find_if(known.pairs, alike);
    if (found != known.pairs.end()) return found->hidden;
    const Seconds hidden = timer.hidden(in_.chunk_layers(stage, chunk), in_.chunk_layers(stage, mate), costs);
    known.pairs.push_back({forward, backward, hidden});
    return hidden;
  }

  const TrainingStep& in_;
  std::size_t each_;
  std::vector<ChunkPasses>& chunks_;
};

/// Those of a stage that sick links slow, as far as other plans have asked for them; else fill().
template <class Fill>
void take_slowed(const TrainingStep& in, std::size_t stage, const network::CollectiveModel& collectives,
                 TrainingScratch& scratch, std::span<ChunkPasses> chunks, const Fill& fill) {
  bool filled = false;
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    SickPassesMemo::Key key = sick_key(in, stage, collectives, scratch);
    key.chunk = static_cast<std::int32_t>(c);
    key.virtual_stages = in.pipeline.virtual_stages;
    key.overlaps = in.pipeline.overlaps;
    key.layers = in.chunks[stage * chunks.size() + c];
    const SickPassesMemo::Place place = scratch.sick_passes->of(key);
    ChunkPasses& chunk = chunks[c];
    if (!place.known) {
      if (!filled) fill();
      filled = true;
      place.passes = {chunk.forward, chunk.backward, chunk.weight, {}, {}, {}, chunk.hidden};
    }
    chunk = {place.passes.forward, place.passes.backward, place.passes.weight, place.passes.hidden, {}};
  }
}

void fill_chunk_times(const TrainingStep& in, const PlanLayout& layout, const RankGroups& groups,
                      network::CollectiveModel& collectives, LayerTimes& known, TrainingScratch& scratch) {
  const PartsToPrice& parts = *scratch.parts;
  if (parts.known() == nullptr) scratch.chunks.clear();
  if (in.pipeline.virtual_stages == 1) return;
  const auto each = static_cast<std::size_t>(in.pipeline.virtual_stages);
  scratch.chunks.resize(each * static_cast<std::size_t>(in.plan.pipeline));
  ChunkFiller chunks(in, scratch);
  const auto fill_alone = [&](std::size_t s, const LayerCosts& costs) {
    const LayerTimer timer(in, costs, groups, collectives, slice_of(s, layout, in, collectives));
    LayerTimes own;
    StageTimer of_stage(in, timer, own);
    chunks.fill(s, of_stage, costs, own);
  };
  const LayerTimer first_timer(in, in.costs, groups, collectives, slice_of(0, layout, in, collectives));
  StageTimer first(in, first_timer, known);
  const bool apart = told_apart(collectives), shared = collectives.has_faults() && parts.known() != nullptr;
  for (std::size_t s = 0; s < scratch.forward.size(); ++s) {
    if (!parts.passes(s)) continue;
    const std::span<ChunkPasses> of_stage = std::span(scratch.chunks).subspan(s * each, each);
    std::ranges::fill(of_stage, ChunkPasses());
    if (shared) {
      take_slowed(in, s, collectives, scratch, of_stage, [&] { fill_alone(s, in.costs); });
    } else if (s == 0 || !apart) {
      chunks.fill(s, first, in.costs, known);
    } else {
      fill_alone(s, in.costs);
    }
    if (collectives.records_links())
      scratch.known->links[s].passes.insert_all(collectives.take_recorded_part());
  }
  for (const SickStage& sick : in.sick) {
    collectives.set_memory_share(sick.setting.system.device.hbm_peak() / in.setting.system.device.hbm_peak());
    fill_alone(sick.stage, sick.costs);
  }
  collectives.set_memory_share(1);
}

/// The seconds of one message over each boundary between stages, as if no other boundary were sending: a
/// stage sends when it has worked, so that messages of different boundaries are under way at different
/// times.
void price_boundaries(const TrainingStep& in, const RankGroups& groups, network::CollectiveModel& collectives,
                      std::vector<double>& seconds) {
  const Boundary boundary = in.boundary();
  const bool closed = in.pipeline.wraps();  // the next chunk begins on the first stage again
  collectives.boundary_times(boundary.message, groups[ParallelGroup::pipeline], closed, seconds);
  // In a chain the last boundary (from the last stage to the first) is not used. It takes the time of
  // another, so that a chain whose boundaries cost the same is seen to be so below.
  if (!closed) seconds.back() = seconds.front();
  if (std::ranges::adjacent_find(seconds, std::ranges::not_equal_to()) == seconds.end()) seconds.resize(1);
  if (boundary.gathered <= Bytes(0)) return;
  const Seconds gather =
      collectives.time(CollectiveOp::all_gather, boundary.gathered, groups[ParallelGroup::tensor]);
  for (double& of_boundary : seconds) of_boundary += gather.value();
}

schedule::Transfer priced_transfer(const TrainingStep& in, const RankGroups& groups,
                                   network::CollectiveModel& collectives) {
  schedule::Transfer transfer(0, !in.setting.system.stack.communication.pipeline_async);
  if (in.plan.pipeline == 1) return transfer;
  collectives.set_memory_share(memory_share(in));
  price_boundaries(in, groups, collectives, transfer.seconds);
  collectives.set_memory_share(1);
  return transfer;
}

/// What the pipeline is timed with.
void fill_schedule_times(const TrainingStep& in, TrainingScratch& scratch) {
  scratch.times.clear();
  const auto add = [&](const PassTime& forward, const PassTime& backward, Seconds weight, Seconds hidden) {
    scratch.times.push_back(
        {forward.total().value(), backward.total().value(), weight.value(), hidden.value()});
  };
  if (in.pipeline.virtual_stages > 1) {
    for (const ChunkPasses& chunk : scratch.chunks)
      add(chunk.forward, chunk.backward, chunk.weight, chunk.hidden);
    return;
  }
  for (std::size_t s = 0; s < scratch.forward.size(); ++s)
    add(scratch.forward[s], scratch.backward[s], scratch.weight[s], scratch.hidden[s]);
}

/// What pairs of a stage hide in a step.
Seconds hidden_in_step(const TrainingStep& in, const TrainingScratch& scratch, std::size_t stage) {
  const std::int32_t chunks = in.pipeline.virtual_stages;
  double sum = 0;
  for (std::int32_t c = 0; c < chunks; ++c) {
    const auto entry = static_cast<std::size_t>(static_cast<std::int32_t>(stage) * chunks + c);
    sum += schedule::pairs(in.pipeline, static_cast<std::int32_t>(stage), c) * scratch.times[entry].hidden;
  }
  return Seconds(sum);
}

/// When each stage ends, with the real transfers and with free ones. `shared`: with plans of the same layers, or null.
void run_pipeline(const TrainingStep& in, const RankGroups& groups, network::CollectiveModel& collectives,
                  LayerTimes* shared, TrainingScratch& scratch) {
  const PartsToPrice& parts = *scratch.parts;
  fill_schedule_times(in, scratch);
  if (!parts.boundaries()) scratch.transfer = parts.known()->transfer;
  if (!parts.pipeline()) {
    scratch.end = parts.known()->end;
    scratch.chunk_end = parts.known()->chunk_end;
    scratch.end_without_transfers = parts.known()->end_without_transfers;
    return;
  }
  if (parts.boundaries()) {
    std::optional<schedule::Transfer> own;
    std::optional<schedule::Transfer>& known =
        shared != nullptr ? shared->transfers[in.pipeline.wraps()] : own;
    if (!known) known = priced_transfer(in, groups, collectives);
    scratch.transfer = *known;
  }
  if (collectives.records_links()) scratch.known->boundaries = collectives.take_recorded_part();
  if (scratch.reference) {
    std::vector<schedule::PipelineSpan> spans;
    scratch.end = schedule::run_in_order(in.pipeline, scratch.times, scratch.transfer, &spans);
    scratch.chunk_end = schedule::chunk_ends(in.pipeline, spans, scratch.transfer);
    scratch.end_without_transfers =
        schedule::run_in_order(in.pipeline, scratch.times, {0, scratch.transfer.blocking});
    return;
  }
  const schedule::PipelineEnds fast = scratch.pipelines.run(in.pipeline, scratch.times, scratch.transfer);
  scratch.end.assign(fast.stages.begin(), fast.stages.end());
  scratch.chunk_end.assign(fast.chunks.begin(), fast.chunks.end());
  scratch.end_without_transfers.assign(fast.free.begin(), fast.free.end());
}

/// Of a step, in all.
Flops useful_flops(const Setting& setting) {
  const WorkloadSpec& workload = setting.workload;
  return static_cast<double>(workload.global_batch) *
         model::model_flops_per_sequence(setting.model, workload.sequence_length);
}

void fill_rates(const TrainingStep& in, Flops useful, Prediction& out) {
  const WorkloadSpec& workload = in.setting.workload;
  const auto gpus = static_cast<double>(in.plan.gpus());
  const auto batch = static_cast<double>(workload.global_batch);
  out.tokens_per_s_per_gpu =
      batch * static_cast<double>(workload.sequence_length) / out.step_time.value() / gpus;
  out.mfu =
      useful / out.step_time / (gpus * in.setting.system.device.tensor_peak(workload.policy().products));
}

}  // namespace

Seconds pass_launch(const TrainingStep& in, LayerKind kind, Pass pass) {
  return launch_of(in, kind, in.segments(kind, pass));
}

PassTime time_segments(const TrainingStep& in, LayerKind kind, const Segments& segments,
                       const RankGroups& groups, network::CollectiveModel* collectives) {
  return LayerTimer(in, in.costs, groups, collectives, {}).of(kind, segments);
}

void fill_training_rates(const TrainingStep& in, Prediction& out) {
  fill_rates(in, useful_flops(in.setting), out);
}

std::int32_t time_training(const TrainingStep& in, network::CollectiveModel& collectives,
                           TrainingScratch& scratch, Prediction& out) {
  const PlanLayout layout(in.plan);
  const KnownStep* const step = begin_step(in, layout, collectives, scratch);
  // Sick links and devices tell stages apart, and who records links or wants the plain path asks for every time anew.
  const bool plain =
      in.sick.empty() && !collectives.has_faults() && !collectives.records_links() && !scratch.reference;
  LayerTimes* const shared = plain ? &scratch.layer_times.of(in) : nullptr;
  LayerTimes& layers = plain ? *shared : scratch.own_times;
  if (!plain) layers.forget();
  if (step == nullptr && !layers.groups) layers.groups = layout.groups();
  const RankGroups& groups = step != nullptr ? step->groups : *layers.groups;
  fill_stage_times(in, layout, groups, collectives, layers, scratch);
  fill_chunk_times(in, layout, groups, collectives, layers, scratch);
  const bool records = collectives.records_links();
  if (records) scratch.known->layers = scratch;
  StageDataCosts* const data = plain ? &scratch.data_costs->of(in) : nullptr;
  add_data_parallel(in, layout, groups, collectives, data, scratch);
  if (records) scratch.known->passes = scratch;
  run_pipeline(in, groups, collectives, shared, scratch);
  if (records) keep_pipeline(scratch);
  const auto [critical, end] = add_tails(in, layout, groups, collectives, data, scratch);
  const Seconds fixed = in.setting.system.stack.host.step_fixed;
  // The healthy machine is timed first and faults after it: then the time is there already.
  const bool first = out.step_time <= Seconds(0);
  out.step_time = end + fixed;

  const double m = in.pipeline.per_chunk();
  PassTime busy = m * scratch.forward[critical];
  busy += m * scratch.backward[critical];
  busy[TimeClass::expert_comm] -= hidden_in_step(in, scratch, critical);
  Breakdown& b = out.breakdown;
  if (first) {
    const TimedStage stage{critical, out.step_time, busy.total(), scratch.tails[critical].data_comm};
    out.contended_share = contended_share(in, stage, collectives, shared, data);
  }
  b = busy;
  b += scratch.tails[critical].deferred;
  b[TimeClass::data_comm] += scratch.tails[critical].data_comm;
  b[TimeClass::pipeline_comm] =
      Seconds(std::max(0.0, scratch.end[critical] - scratch.end_without_transfers[critical]));
  b[TimeClass::bubble] =
      std::max(Seconds(0), Seconds(scratch.end_without_transfers[critical]) - busy.total()) +
      wait_for_mirror(in, scratch, critical);
  b[TimeClass::optimizer] = scratch.tails[critical].optimizer;
  b[TimeClass::host] += fixed;

  if (!scratch.useful) scratch.useful = useful_flops(in.setting);
  fill_rates(in, *scratch.useful, out);
  return static_cast<std::int32_t>(critical);
}

}  // namespace shardscape::step
