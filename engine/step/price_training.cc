// Times a training step: passes of stages and chunks (only those that faults touch, where the healthy step is known),
// data-parallel traffic, the pipeline, the tails, contention, and the breakdown along the stage that ends last.
#include "engine/step/price_training.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "engine/base/check.h"
#include "engine/model/block_kinds.h"
#include "engine/step/data_beside.h"
#include "engine/step/data_costs.h"
#include "engine/step/host_work.h"
#include "engine/step/known_step.h"
#include "engine/step/layer_timer.h"
#include "engine/step/stage_tails.h"
#include "engine/step/step_contention.h"

namespace shardscape::step {

namespace {

using network::CollectiveOp;
using network::PlanLayout;
using network::RankGroups;
using network::Slice;

/// Whether passes through whole stages, not through single chunks, run in pairs.
bool pairs_of_stages(const TrainingStep& in) {
  return in.pipeline.overlaps && in.pipeline.virtual_stages == 1;
}

/// The key of a stage that sick links slow; its layers are left for the caller to fill in.
SickPassesMemo::Key sick_key(const TrainingStep& in, std::size_t stage,
                             const network::CollectiveModel& collectives, const TrainingScratch& scratch) {
  SickPassesMemo::Key key;
  key.layers_id = scratch.parts->known()->layers_id;
  key.faults = collectives.fault_epoch();
  key.stage = static_cast<std::int32_t>(stage);
  key.deferred = in.deferred();
  return key;
}

/// Keeps the later end of each part: gradients leave when the slowest device has made them. That also holds for passes
/// that the host bounds, which take equally long on any device.
void keep_later(EndLayers& kept, const EndLayers& other) {
  for (Seconds EndLayers::*const part :
       {&EndLayers::head, &EndLayers::embedding, &EndLayers::further, &EndLayers::blocks})
    kept.*part = std::max(kept.*part, other.*part);
}

/// Whether the chunks of a stage that is like the one before it take what those do, alone and in pairs.
bool chunks_like_the_ones_before(const TrainingStep& in, std::size_t s) {
  const auto stage = static_cast<std::int32_t>(s), each = in.pipeline.virtual_stages;
  if (each > 1) {  // stages of one chunk have none listed
    const auto chunks = in.chunks.begin() + stage * each;
    if (!std::equal(chunks, chunks + each, chunks - each)) return false;
  }
  for (std::int32_t c = 0; in.pipeline.overlaps && c < each; ++c) {
    if (schedule::mate(in.pipeline, stage, c) != schedule::mate(in.pipeline, stage - 1, c)) return false;
  }
  return true;
}

/// Finds the stages that take what the one before them takes. The plain path looks at all chunks.
void find_twins(const TrainingStep& in, const network::CollectiveModel& collectives,
                TrainingScratch& scratch) {
  scratch.twin.resize(static_cast<std::size_t>(in.plan.pipeline));
  const bool all = scratch.parts->known() != nullptr || (scratch.reference && in.pipeline.virtual_stages > 1);
  for (std::size_t s = 0; s < scratch.twin.size(); ++s) {
    const bool alike = !all && like_the_one_before(in, s, collectives) && chunks_like_the_ones_before(in, s);
    scratch.twin[s] = alike ? scratch.twin[s - 1] : s;
  }
}

void put_passes(const StagePasses& passes, std::size_t s, TrainingScratch& scratch) {
  scratch.forward[s] = passes.forward;
  scratch.backward[s] = passes.backward;
  scratch.weight[s] = passes.weight;
  scratch.weight_host[s] = passes.weight_host;
  scratch.ends[s] = passes.ends;
  scratch.hidden[s] = passes.hidden;
  if (s + 1 == scratch.forward.size()) scratch.deferred = passes.deferred;
}

/// Fills the times of all stages. `known`: times of the layers on healthy devices (where links tell stages apart, those
/// of the first stage).
void fill_stage_times(const TrainingStep& in, const PlanLayout& layout, const RankGroups& groups,
                      network::CollectiveModel& collectives, LayerTimes& known, TrainingScratch& scratch) {
  find_twins(in, collectives, scratch);
  const auto stages = static_cast<std::size_t>(in.plan.pipeline);
  const PartsToPrice& parts = *scratch.parts;
  scratch.forward.resize(stages);
  scratch.backward.resize(stages);
  scratch.weight.resize(stages);
  scratch.weight_host.resize(stages);
  scratch.beside.resize(stages);
  scratch.ends.resize(stages);
  scratch.hidden.resize(stages);
  const auto timed = [&](StageTimer& timer, std::size_t s) {
    const LayerRuns layers = in.stage_layers(static_cast<std::int32_t>(s));
    StagePasses passes = timer.of(layers);
    if (pairs_of_stages(in)) passes.hidden = timer.hidden(layers, layers);
    return passes;
  };
  const auto passes_with = [&](const LayerCosts& costs, std::size_t s, LayerTimes& layers) {
    const LayerTimer timer(in, costs, groups, &collectives, slice_of(s, layout, in, collectives));
    StageTimer of_stage(in, timer, layers);
    return timed(of_stage, s);
  };
  const auto passes_of = [&](const LayerCosts& costs, std::size_t s) {
    LayerTimes own;
    return passes_with(costs, s, own);
  };
  const LayerTimer first_timer(in, in.costs, groups, &collectives, slice_of(0, layout, in, collectives));
  StageTimer first(in, first_timer, known);
  const auto healthy = [&](std::size_t s) -> const StagePasses& {
    const auto stage = static_cast<std::int32_t>(s);
    const StageKind kind{in.layers[s], in.first(stage), in.last(stage), pairs_of_stages(in), in.deferred()};
    const auto found = std::ranges::find(known.stages, kind, &KnownPasses::kind);
    if (found != known.stages.end()) return found->passes;
    known.stages.push_back({kind, timed(first, s)});
    return known.stages.back().passes;
  };
  const auto slowed = [&](std::size_t s) {  // a stage that sick links slow
    SickPassesMemo::Key key = sick_key(in, s, collectives, scratch);
    key.overlaps = pairs_of_stages(in);
    key.layers = in.layers[s];
    const SickPassesMemo::Place place = scratch.sick_passes->of(key);
    if (!place.known) place.passes = passes_with(in.costs, s, scratch.sick_passes->layers(key));
    return place.passes;
  };
  const bool apart = told_apart(collectives);
  const bool shared = collectives.has_faults() && parts.known() != nullptr;
  for (std::size_t s = 0; s < stages; ++s) {
    if (!parts.passes(s) || scratch.is_twin(s)) continue;
    if (shared) {
      put_passes(slowed(s), s, scratch);
    } else if (s == 0 || !apart) {
      put_passes(healthy(s), s, scratch);
    } else {
      put_passes(passes_of(in.costs, s), s, scratch);
    }
    if (collectives.records_links()) scratch.known->links[s].passes = collectives.take_recorded_part();
  }
  for (const SickStage& sick : in.sick) {
    collectives.set_memory_share(sick.setting.system.device.hbm_peak() / in.setting.system.device.hbm_peak());
    const StagePasses passes = passes_of(sick.costs, sick.stage);
    PassTime& forward = scratch.forward[sick.stage];
    PassTime& backward = scratch.backward[sick.stage];
    Seconds& hidden = scratch.hidden[sick.stage];
    const Seconds pair = std::max(forward.total() + backward.total() - hidden,
                                  passes.forward.total() + passes.backward.total() - passes.hidden);
    if (passes.forward.total() > forward.total()) forward = passes.forward;
    if (passes.deferred.total() > scratch.deferred.total()) scratch.deferred = passes.deferred;
    if (passes.backward.total() > backward.total()) {
      backward = passes.backward;
      scratch.weight[sick.stage] = passes.weight;
      scratch.weight_host[sick.stage] = passes.weight_host;
    }
    keep_later(scratch.ends[sick.stage], passes.ends);
    if (pairs_of_stages(in)) hidden = forward.total() + backward.total() - pair;
  }
  collectives.set_memory_share(1);
}

/// One chunk of a stage, with everything that its passes depend on.
StageKind chunk_kind(const TrainingStep& in, std::int32_t stage, std::int32_t chunk) {
  const std::int32_t part = in.pipeline.part(stage, chunk);
  return {in.chunks[static_cast<std::size_t>(stage * in.pipeline.virtual_stages + chunk)], part == 0,
          part + 1 == in.pipeline.parts(), false, in.deferred()};
}

/// Fills the times of chunks, where a stage has several. Keeps the slower of the times already there and those of the
/// timer's devices.
class ChunkFiller {
 public:
  ChunkFiller(const TrainingStep& in, TrainingScratch& scratch)
      : in_(in), each_(static_cast<std::size_t>(in.pipeline.virtual_stages)), chunks_(scratch.chunks) {}

  /// `known`: times of the layers that `timer` has timed.
  void fill(std::size_t s, StageTimer& timer, LayerTimes& known) {
    const auto stage = static_cast<std::int32_t>(s);
    const bool pairs = in_.pipeline.overlaps || in_.pipeline.both_ways();
    const std::span<ChunkPasses> chunks = chunks_.subspan(s * each_, each_);
    boost::container::small_vector<Seconds, 4> slowest(each_);  // of a pair; index: chunk of its forward
    const auto mate = [&](std::size_t c) {
      return static_cast<std::size_t>(schedule::mate(in_.pipeline, stage, static_cast<std::int32_t>(c)));
    };
    for (std::size_t c = 0; pairs && c < each_; ++c) {
      const Seconds before = chunks[c].forward.total() + chunks[mate(c)].backward.total() - chunks[c].hidden;
      slowest[c] = std::max(before, pair_of(stage, c, mate(c), timer, known));
    }
    const KnownChunk* of_chunk = nullptr;
    StageKind kind;
    Seconds ahead, back;
    for (std::size_t c = 0; c < each_; ++c) {
      const StageKind before = std::exchange(kind, chunk_kind(in_, stage, static_cast<std::int32_t>(c)));
      if (c == 0 || kind != before) {
        of_chunk = &passes_of(stage, static_cast<std::int32_t>(c), timer, known);
        ahead = of_chunk->forward.total();
        back = of_chunk->backward.total();
      }
      ChunkPasses& chunk = chunks[c];
      if (ahead > chunk.forward.total()) chunk.forward = of_chunk->forward;
      if (back <= chunk.backward.total()) continue;
      chunk.backward = of_chunk->backward;
      chunk.weight = of_chunk->weight;
    }
    for (std::size_t c = 0; pairs && c < each_; ++c)
      chunks[c].hidden = chunks[c].forward.total() + chunks[mate(c)].backward.total() - slowest[c];
  }

 private:
  const KnownChunk& passes_of(std::int32_t stage, std::int32_t chunk, StageTimer& timer, LayerTimes& known) {
    const StageKind kind = chunk_kind(in_, stage, chunk);
    const auto found = std::ranges::find(known.chunks, kind, &KnownChunk::kind);
    if (found != known.chunks.end()) return *found;
    const StagePasses passes = timer.of(in_.chunk_layers(stage, chunk));
    known.chunks.push_back({kind, passes.forward, passes.backward, passes.weight});
    return known.chunks.back();
  }
  /// Seconds that the forward of a chunk and the backward of its mate take together on the timer's devices.
  Seconds pair_of(std::int32_t stage, std::size_t chunk, std::size_t mate, StageTimer& timer,
                  LayerTimes& known) {
    const auto number = static_cast<std::int32_t>(chunk), other = static_cast<std::int32_t>(mate);
    const Seconds ahead = passes_of(stage, number, timer, known).forward.total();
    const Seconds back = passes_of(stage, other, timer, known).backward.total();
    return ahead + back - hidden_of(stage, number, other, timer, known);
  }
  Seconds hidden_of(std::int32_t stage, std::int32_t chunk, std::int32_t mate, StageTimer& timer,
                    LayerTimes& known) {
    const StageKind forward = chunk_kind(in_, stage, chunk), backward = chunk_kind(in_, stage, mate);
    const auto alike = [&](const KnownPair& pair) {
      return pair.forward == forward && pair.backward == backward;
    };
    const auto found = std::ranges::find_if(known.pairs, alike);
    if (found != known.pairs.end()) return found->hidden;
    const Seconds hidden = timer.hidden(in_.chunk_layers(stage, chunk), in_.chunk_layers(stage, mate));
    known.pairs.push_back({forward, backward, hidden});
    return hidden;
  }

  const TrainingStep& in_;
  std::size_t each_;
  std::span<ChunkPasses> chunks_;
};

void copy_to_twins(const TrainingStep& in, TrainingScratch& scratch) {
  const std::ptrdiff_t each = in.pipeline.virtual_stages;
  for (std::size_t s = 0; s < scratch.twin.size(); ++s) {
    if (!scratch.is_twin(s)) continue;
    copy_stage(scratch, s - 1, scratch, s);
    if (each == 1) continue;  // no chunks are listed
    const auto chunks = scratch.chunks.begin() + static_cast<std::ptrdiff_t>(s) * each;
    std::copy(chunks - each, chunks, chunks);
  }
}

/// Takes the chunks of a stage that sick links slow from what other plans have asked for; calls fill() for the rest.
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

/// Replaces a stage's times by the sums over its chunks if the host is ever waited for. The host is ahead within the
/// passes of each chunk only, not from one chunk to the next.
void add_up_chunks(std::span<const ChunkPasses> chunks, std::size_t s, StageTimes& times) {
  const auto waits = [](const ChunkPasses& chunk) {
    return chunk.forward[TimeClass::host] > Seconds(0) || chunk.backward[TimeClass::host] > Seconds(0);
  };
  if (std::ranges::none_of(chunks, waits)) return;
  times.forward[s] = times.backward[s] = {};
  times.weight[s] = {};
  for (const ChunkPasses& chunk : chunks) {
    times.forward[s] += chunk.forward;
    times.backward[s] += chunk.backward;
    times.weight[s] += chunk.weight;
  }
}

void fill_chunk_times(const TrainingStep& in, const PlanLayout& layout, const RankGroups& groups,
                      network::CollectiveModel& collectives, LayerTimes& known, TrainingScratch& scratch) {
  const PartsToPrice& parts = *scratch.parts;
  if (in.pipeline.virtual_stages == 1) {
    if (parts.known() == nullptr) scratch.chunks.clear();
    return;
  }
  const auto each = static_cast<std::size_t>(in.pipeline.virtual_stages);
  scratch.chunks.resize(each * static_cast<std::size_t>(in.plan.pipeline));
  ChunkFiller chunks(in, scratch);
  const auto fill_with = [&](std::size_t s, const LayerCosts& costs, LayerTimes& layers) {
    const LayerTimer timer(in, costs, groups, &collectives, slice_of(s, layout, in, collectives));
    StageTimer of_stage(in, timer, layers);
    chunks.fill(s, of_stage, layers);
  };
  const auto fill_alone = [&](std::size_t s, const LayerCosts& costs) {
    LayerTimes own;
    fill_with(s, costs, own);
  };
  const LayerTimer first_timer(in, in.costs, groups, &collectives, slice_of(0, layout, in, collectives));
  StageTimer first(in, first_timer, known);
  const bool apart = told_apart(collectives), shared = collectives.has_faults() && parts.known() != nullptr;
  for (std::size_t s = 0; s < scratch.forward.size(); ++s) {
    if (!parts.passes(s) || scratch.is_twin(s)) continue;
    const std::span<ChunkPasses> of_stage = std::span(scratch.chunks).subspan(s * each, each);
    std::ranges::fill(of_stage, ChunkPasses());
    if (shared) {
      take_slowed(in, s, collectives, scratch, of_stage, [&] {
        fill_with(s, in.costs, scratch.sick_passes->layers(sick_key(in, s, collectives, scratch)));
      });
    } else if (s == 0 || !apart) {
      chunks.fill(s, first, known);
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
  for (std::size_t s = 0; s < scratch.forward.size(); ++s)
    if (parts.passes(s) && !scratch.is_twin(s))
      add_up_chunks(std::span(scratch.chunks).subspan(s * each, each), s, scratch);
}

/// Seconds of one message over each boundary between stages, as if no other boundary were sending: a stage sends when
/// it has worked, so that messages of different boundaries are under way at different times.
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

/// Fills the times that the pipeline is run with.
void fill_schedule_times(const TrainingStep& in, TrainingScratch& scratch) {
  const auto each = static_cast<std::size_t>(in.pipeline.virtual_stages);
  std::vector<schedule::StageTime>& times = scratch.times;
  times.resize(scratch.forward.size() * each);
  const auto set = [&](std::size_t i, const PassTime& forward, const PassTime& backward, Seconds weight,
                       Seconds hidden) {
    times[i] = {forward.total().value(), backward.total().value(), weight.value(), hidden.value()};
  };
  for (std::size_t s = 0; s < scratch.forward.size(); ++s) {
    for (std::size_t i = s * each; i < (s + 1) * each; ++i) {
      if (scratch.is_twin(s)) {
        times[i] = times[i - each];
      } else if (each > 1) {
        const ChunkPasses& chunk = scratch.chunks[i];
        set(i, chunk.forward, chunk.backward, chunk.weight, chunk.hidden);
      } else {
        set(i, scratch.forward[s], scratch.backward[s], scratch.weight[s], scratch.hidden[s]);
      }
    }
  }
}

/// Seconds that all pairs of a stage hide in one step.
Seconds hidden_in_step(const TrainingStep& in, const TrainingScratch& scratch, std::size_t stage) {
  const std::int32_t chunks = in.pipeline.virtual_stages;
  double sum = 0;
  for (std::int32_t c = 0; c < chunks; ++c) {
    const auto entry = static_cast<std::size_t>(static_cast<std::int32_t>(stage) * chunks + c);
    sum += schedule::pairs(in.pipeline, static_cast<std::int32_t>(stage), c) * scratch.times[entry].hidden;
  }
  return Seconds(sum);
}

/// Finds when each stage ends, with the real transfers and with free ones. `shared`: what plans of the same layers
/// share, or null.
void run_pipeline(const TrainingStep& in, const RankGroups& groups, network::CollectiveModel& collectives,
                  LayerTimes* shared, TrainingScratch& scratch) {
  const PartsToPrice& parts = *scratch.parts;
  if (scratch.every_tail) copy_to_twins(in, scratch);
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

/// Model FLOPs of a whole step over all GPUs.
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

/// The share of what faults add to a step that is open: ranks beyond a sick link are late, and no closed form says how
/// far that hides behind the work of the others. With it, plans are marked to whose step the fault adds a tenth
/// (kDomainBand / 0.3); of 1,100 executed plans with a sick link, those below are 3.4 % off at the 95th percentile.
constexpr double kSickOpen = 0.3;

/// The passes of a stage over all microbatches.
PassTime all_passes(const TrainingStep& in, const TrainingScratch& scratch, std::size_t stage) {
  const double m = in.pipeline.per_chunk();
  const std::size_t twin = scratch.twin[stage];
  PassTime busy = m * scratch.forward[twin];
  busy += m * scratch.backward[twin];
  const Seconds hidden = hidden_in_step(in, scratch, stage);
  const bool exchanging = in.setting.system.stack.communication.expert_overlap > 0;
  const Seconds exchanges = exchanging ? std::min(hidden, busy[TimeClass::expert_comm]) : Seconds(0);
  busy[TimeClass::expert_comm] -= exchanges;
  busy[TimeClass::host] -= hidden - exchanges;  // for pairs, the host launches without a stop
  return busy;
}

/// What a stage waits for the others in a step without transfers.
Seconds waits(const TrainingScratch& scratch, std::size_t stage, const PassTime& busy) {
  return std::max(Seconds(0), Seconds(scratch.end_without_transfers[stage]) - busy.total());
}

/// Times the healthy machine for what faults leave as it is: the contention and its mark.
void time_healthy(const TrainingStep& in, network::CollectiveModel& collectives, TrainingScratch& scratch,
                  Prediction& out) {
  const FaultSet faults = collectives.faults();
  TrainingStep healthy = in;
  healthy.sick = {};
  collectives.set_faults({});
  time_training(healthy, collectives, scratch, out);
  collectives.set_faults(faults);
}

/// What the parts of a step are priced on. `shared` and `data`: what plans share, or null.
struct Machine {
  const PlanLayout& layout;
  const RankGroups& groups;
  network::CollectiveModel& collectives;
  LayerTimes* shared;
  StageDataCosts* data;
};

/// Times all stages, with the pipeline and the tails. `layers`: known times of the layers.
LastStage time_stages(const TrainingStep& in, const Machine& machine, LayerTimes& layers,
                      TrainingScratch& scratch) {
  const auto& [layout, groups, collectives, shared, data] = machine;
  const bool records = collectives.records_links();
  fill_stage_times(in, layout, groups, collectives, layers, scratch);
  fill_chunk_times(in, layout, groups, collectives, layers, scratch);
  if (records) scratch.known->layers = scratch;
  add_data_parallel(in, layout, groups, collectives, data, scratch);
  if (records) scratch.known->passes = scratch;
  run_pipeline(in, groups, collectives, shared, scratch);
  if (records) keep_pipeline(scratch);
  return add_tails(in, layout, groups, collectives, data, scratch);
}

/// Finds out how siblings take turns in a step that was timed with all of them sending at once, and times it again so.
LastStage take_turns(const TrainingStep& in, const Machine& machine, LastStage last,
                     TrainingScratch& scratch) {
  scratch.spared_in_turn = {};
  if (in.plan.pipeline == 1 || in.turns == nullptr) return last;
  // Links are recorded of a step that has been timed before.
  SHARDSCAPE_CHECK(!machine.collectives.records_links(), last.stage);
  const PassTime busy = all_passes(in, scratch, last.stage);
  const Seconds step = last.end + once_per_step(in.setting.system.stack);
  const SiblingTurns turns = turns_of_siblings(
      in, timed_stage(in, scratch, last.stage, step, busy, waits(scratch, last.stage, busy)),
      machine.collectives, machine.shared, machine.data);
  if (!turns.any) return last;
  scratch.turns = turns;
  LayerTimes layers;  // with their shares, so for this plan only
  const LastStage now = time_stages(
      in, {machine.layout, machine.groups, machine.collectives, machine.shared, nullptr}, layers, scratch);
  const StageTail& tail = scratch.tails[now.stage];
  scratch.spared_in_turn = last.end - now.end + std::min(turns.once, tail.data_comm - tail.lost);
  return now;
}

}  // namespace

void fill_training_rates(const TrainingStep& in, Prediction& out) {
  fill_rates(in, useful_flops(in.setting), out);
}

std::int32_t time_training(const TrainingStep& in, network::CollectiveModel& collectives,
                           TrainingScratch& scratch, Prediction& out) {
  // The healthy machine is timed before any faults. If this is not the first time, `out` already has its time.
  const bool first = out.step_time <= Seconds(0);
  if (first && (collectives.has_faults() || !in.sick.empty())) time_healthy(in, collectives, scratch, out);
  const Seconds before = out.step_time;
  const PlanLayout layout(in.plan);
  const bool plain_machine = in.sick.empty() && !collectives.has_faults(), at_once = plain_machine && first;
  if (at_once) scratch.turns = {};
  const KnownStep* const step = begin_step(in, layout, collectives, scratch, at_once);
  // Layers' times can't be shared where sick links or devices tell stages apart, where siblings take turns, where links
  // are recorded, and on the plain path.
  const bool plain =
      plain_machine && !scratch.turns.any && !collectives.records_links() && !scratch.reference;
  LayerTimes* const shared = plain ? &scratch.layer_times.of(in) : nullptr;
  LayerTimes& layers = plain ? *shared : scratch.own_times;
  if (!plain) layers.forget();
  if (step == nullptr && !layers.groups) layers.groups = layout.groups();
  const RankGroups& groups = step != nullptr ? step->groups : *layers.groups;
  StageDataCosts* const data = plain ? &scratch.data_costs->of(in) : nullptr;
  const Machine machine{layout, groups, collectives, shared, data};
  LastStage last = time_stages(in, machine, layers, scratch);
  if (at_once) last = take_turns(in, machine, last, scratch);
  const Seconds fixed = once_per_step(in.setting.system.stack);
  const std::size_t critical = last.stage;
  StageTail& tail = scratch.tails[critical];
  const Seconds spared_once = std::min(scratch.turns.once, tail.data_comm - tail.lost);
  tail.data_comm -= spared_once;
  out.step_time = last.end + fixed - spared_once;

  const PassTime busy = all_passes(in, scratch, critical);
  Breakdown& b = out.breakdown;
  const Seconds waiting = waits(scratch, critical, busy);
  // With one stage, all devices go at the pace of the sick one. With several stages, or sick links, contention stays
  // that of the healthy machine, so that no fault makes a step shorter.
  Breakdown& contended = scratch.contention.added = scratch.contention.healthy;
  const bool slower_machine = !in.sick.empty() && !collectives.has_faults() && in.plan.pipeline == 1;
  if (at_once || slower_machine) {
    const TimedStage stage = timed_stage(in, scratch, critical, out.step_time, busy, waiting);
    const Contention contention = slower_machine ? contention_on(in.sick.front(), in, stage, collectives)
                                                 : contention_of(in, stage, collectives, shared, data);
    contended = contention.added;
    if (plain_machine) {
      out.contended_share = contention.marked_share + kTurnsOpen * (scratch.turns.left / out.step_time);
      scratch.contention.healthy = contended;
    }
  }
  b = busy;
  b += scratch.tails[critical].deferred;
  b[TimeClass::data_comm] += scratch.tails[critical].data_comm;
  b[TimeClass::pipeline_comm] =
      Seconds(std::max(0.0, scratch.end[critical] - scratch.end_without_transfers[critical]));
  b[TimeClass::bubble] = waiting + wait_for_mirror(in, scratch, critical);
  b[TimeClass::optimizer] = scratch.tails[critical].optimizer;
  b[TimeClass::host] += fixed;
  add_contention(contended, scratch.spared_in_turn, slower_machine ? before : Seconds(0), out);
  if (!plain_machine) out.contended_share += kSickOpen * std::max(0.0, 1 - before / out.step_time);

  if (!scratch.useful) scratch.useful = useful_flops(in.setting);
  fill_rates(in, *scratch.useful, out);
  return static_cast<std::int32_t>(critical);
}

}  // namespace shardscape::step
