// What the passes of stages and chunks take. A stage that is like the one before it takes what that takes; where links
// tell stages apart each is timed on its own links; a sick device slows the stage that it sits in.
#include "engine/step/training/stage_passes.h"

#include <algorithm>
#include <utility>

#include "engine/step/layers/layer_timer.h"
#include "engine/step/training/data_beside.h"
#include "engine/step/training/known_step.h"
#include "engine/step/training/stage_tails.h"

namespace shardscape::step {

namespace {

using network::PlanLayout;
using network::RankGroups;

/// Whether passes through whole stages, not through single chunks, run in pairs.
bool pairs_of_stages(const TrainingStep& in) {
  return in.pipeline.overlaps && in.pipeline.virtual_stages == 1;
}

/// The key of a stage that sick links slow; its layers are left for the caller to fill in.
SickPassesMemo::Key sick_key(const TrainingStep& in, std::size_t stage,
                             const network::CollectivePrices& collectives, const TrainingScratch& scratch) {
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
void find_twins(const TrainingStep& in, const network::CollectivePrices& collectives,
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

}  // namespace

void fill_stage_times(const TrainingStep& in, const PlanLayout& layout, const RankGroups& groups,
                      const network::CollectivePrices& collectives, LayerTimes& known,
                      TrainingScratch& scratch) {
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
    StagePasses passes = timer.passes_through(layers);
    if (pairs_of_stages(in)) passes.hidden = timer.hidden(layers, layers);
    return passes;
  };
  const auto passes_with = [&](const network::CollectivePrices& prices, const LayerCosts& costs,
                               std::size_t s, LayerTimes& layers) {
    const LayerTimer timer(in, costs, groups, &prices, slice_of(s, layout, in, prices));
    StageTimer of_stage(in, timer, layers);
    return timed(of_stage, s);
  };
  const auto passes_of = [&](const network::CollectivePrices& prices, const LayerCosts& costs,
                             std::size_t s) {
    LayerTimes own;
    return passes_with(prices, costs, s, own);
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
    const SickPassesMemo::Place place = scratch.sick_passes->passes_for(key);
    if (!place.known) place.passes = passes_with(collectives, in.costs, s, scratch.sick_passes->layers(key));
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
      put_passes(passes_of(collectives, in.costs, s), s, scratch);
    }
    if (network::LinkRecorder* const recorder = collectives.recorder())
      scratch.known->links[s].passes = recorder->take_part();
  }
  for (const SickStage& sick : in.sick) {
    const StagePasses passes = passes_of(collectives.with_memory(sick.memory_share), sick.costs, sick.stage);
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
}

namespace {

/// One chunk of a stage, with everything that its passes depend on.
StageKind chunk_kind(const TrainingStep& in, std::int32_t stage, std::int32_t chunk) {
  const std::int32_t part = in.pipeline.part(stage, chunk);
  return {.layers = in.chunks[static_cast<std::size_t>(stage * in.pipeline.virtual_stages + chunk)],
          .first = part == 0,
          .last = part + 1 == in.pipeline.parts(),
          .deferred = in.deferred()};
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
    const StagePasses passes = timer.passes_through(in_.chunk_layers(stage, chunk));
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

}  // namespace

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

namespace {

/// Takes the chunks of a stage that sick links slow from what other plans have asked for; calls fill() for the rest.
template <class Fill>
void take_slowed(const TrainingStep& in, std::size_t stage, const network::CollectivePrices& collectives,
                 TrainingScratch& scratch, std::span<ChunkPasses> chunks, const Fill& fill) {
  bool filled = false;
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    SickPassesMemo::Key key = sick_key(in, stage, collectives, scratch);
    key.chunk = static_cast<std::int32_t>(c);
    key.virtual_stages = in.pipeline.virtual_stages;
    key.overlaps = in.pipeline.overlaps;
    key.layers = in.chunks[stage * chunks.size() + c];
    const SickPassesMemo::Place place = scratch.sick_passes->passes_for(key);
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

}  // namespace

void fill_chunk_times(const TrainingStep& in, const PlanLayout& layout, const RankGroups& groups,
                      const network::CollectivePrices& collectives, LayerTimes& known,
                      TrainingScratch& scratch) {
  const PartsToPrice& parts = *scratch.parts;
  if (in.pipeline.virtual_stages == 1) {
    if (parts.known() == nullptr) scratch.chunks.clear();
    return;
  }
  const auto each = static_cast<std::size_t>(in.pipeline.virtual_stages);
  scratch.chunks.resize(each * static_cast<std::size_t>(in.plan.pipeline));
  ChunkFiller chunks(in, scratch);
  const auto fill_with = [&](const network::CollectivePrices& prices, std::size_t s, const LayerCosts& costs,
                             LayerTimes& layers) {
    const LayerTimer timer(in, costs, groups, &prices, slice_of(s, layout, in, prices));
    StageTimer of_stage(in, timer, layers);
    chunks.fill(s, of_stage, layers);
  };
  const auto fill_alone = [&](const network::CollectivePrices& prices, std::size_t s,
                              const LayerCosts& costs) {
    LayerTimes own;
    fill_with(prices, s, costs, own);
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
        fill_with(collectives, s, in.costs,
                  scratch.sick_passes->layers(sick_key(in, s, collectives, scratch)));
      });
    } else if (s == 0 || !apart) {
      chunks.fill(s, first, known);
    } else {
      fill_alone(collectives, s, in.costs);
    }
    if (network::LinkRecorder* const recorder = collectives.recorder())
      scratch.known->links[s].passes.insert_all(recorder->take_part());
  }
  for (const SickStage& sick : in.sick)
    fill_alone(collectives.with_memory(sick.memory_share), sick.stage, sick.costs);
  for (std::size_t s = 0; s < scratch.forward.size(); ++s)
    if (parts.passes(s) && !scratch.is_twin(s))
      add_up_chunks(std::span(scratch.chunks).subspan(s * each, each), s, scratch);
}

}  // namespace shardscape::step
