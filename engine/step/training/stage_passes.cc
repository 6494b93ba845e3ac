// What the passes of stages and chunks take. A stage that is like the one before it takes what that takes; where links
// tell stages apart each is timed on its own links; a sick device slows the stage that it sits in.
#include "engine/step/training/stage_passes.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/step/layers/layer_timer.h"

namespace shardscape::step {

namespace {

/// Whether passes through whole stages, not through single chunks, run in pairs.
bool pairs_of_stages(const TrainingStep& in) {
  return in.pipeline.overlaps && in.pipeline.virtual_stages == 1;
}

/// Whether the chunks of a stage that is like the one before it take what those do, alone and in pairs.
bool chunks_like_the_ones_before(const TrainingStep& in, std::size_t s) {
  const auto stage = static_cast<std::int32_t>(s), each = in.pipeline.virtual_stages;
  if (each > 1) {  // stages of one chunk have none listed
    const auto chunks = in.chunks.begin() + stage * each;
    if (!std::equal(chunks, chunks + each, chunks - each)) return false;
  }
  for (std::int32_t c = 0; in.pipeline.overlaps && c < each; ++c) {
    const auto mine = schedule::partners(in.pipeline, stage, c),
               theirs = schedule::partners(in.pipeline, stage - 1, c);
    if (mine[0].chunk != theirs[0].chunk || mine[1].chunk != theirs[1].chunk) return false;
    if ((mine[1].pairs > 0) != (theirs[1].pairs > 0)) return false;  // else that pair was not timed
  }
  return true;
}

/// Finds the stages that take what the one before them takes. The plain path looks at all chunks.
void find_twins(const StepMachine& machine, TrainingScratch& scratch) {
  const TrainingStep& in = machine.in;
  std::vector<std::size_t>& twin = scratch.step.twin;
  twin.resize(static_cast<std::size_t>(in.plan.pipeline));
  const bool all =
      scratch.parts.known() != nullptr || (scratch.options.reference && in.pipeline.virtual_stages > 1);
  for (std::size_t s = 0; s < twin.size(); ++s) {
    const bool alike = !all && machine.like_the_one_before(s) && chunks_like_the_ones_before(in, s);
    twin[s] = alike ? twin[s - 1] : s;
  }
}

/// `partner`: which of its partners the backward is.
Seconds in_pair(const ChunkPasses& forward, const ChunkPasses& backward, std::size_t partner) {
  return forward.forward.total() + backward.backward.total() - forward.hidden[partner];
}

/// Keeps the slower of the passes of one stage on different devices, and of each layer: gradients leave when the
/// slowest device has made them. That also holds for passes that the host bounds, which take equally long on any
/// device.
void keep_slower(StagePasses& kept, const StagePasses& other, bool pairs) {
  const Seconds pair = std::max(in_pair(kept, kept, 0), in_pair(other, other, 0));
  if (other.forward.total() > kept.forward.total()) {
    kept.slowed += other.forward.total() - kept.forward.total();
    kept.forward = other.forward;
  }
  if (other.backward.total() > kept.backward.total()) {
    kept.backward = other.backward;
    kept.weight = other.weight;
    kept.weight_host = other.weight_host;
  }
  for (std::size_t role = 0; role < kept.backwards.roles.size(); ++role)
    kept.backwards.roles[role] = std::max(kept.backwards.roles[role], other.backwards.roles[role]);
  if (pairs) kept.hidden[0] = kept.forward.total() + kept.backward.total() - pair;
}

/// The passes of a kind, made where they are not known.
template <class Passes, class Make>
const Passes& known_passes(std::vector<Known<Passes>>& known, const StageKind& kind, const Make& make) {
  const auto found = std::ranges::find(known, kind, &Known<Passes>::kind);
  if (found != known.end()) return found->passes;
  known.push_back({kind, make()});
  return known.back().passes;
}

/// Times the passes of one stage on devices with these costs and prices. `known`: of layers that these take as long.
class StageFiller {
 public:
  StageFiller(const StepMachine& machine, std::size_t stage, const LayerCosts& costs,
              const network::CollectivePrices& prices, LayerTimes& known)
      : in_(machine.in),
        stage_(static_cast<std::int32_t>(stage)),
        known_(known),
        layer_(in_, costs, machine.calls_of(stage, prices)),
        timer_(in_, layer_, known) {}

  const StagePasses& all_chunks() {
    const StageKind kind{in_.contents(stage_), pairs_of_stages(in_), in_.deferred()};
    return known_passes(known_.stages, kind, [&] {
      const LayerRuns layers = in_.stage_layers(stage_);
      StagePasses passes = timer_.passes_through(layers);
      if (kind.overlaps) passes.hidden[0] = timer_.hidden(layers, layers);
      return passes;
    });
  }

  /// StageTimer::deferred(), of a stage with the head.
  PassTime deferred() { return timer_.deferred(); }

  /// Keeps the slower of the times already there and those of these devices.
  void fill(std::span<ChunkPasses> chunks) {
    const bool both = in_.pipeline.both_ways(), pairs = in_.pipeline.overlaps || both;
    boost::container::small_vector<std::array<Seconds, 2>, 4> slowest(
        pairs ? chunks.size() : 0);  // of pairs; index: chunk of the forward, which of its partners
    const auto each_pair = [&](const auto& visit) {
      for (std::size_t c = 0; c < slowest.size(); ++c) {
        const auto partners = schedule::partners(in_.pipeline, stage_, static_cast<std::int32_t>(c));
        for (std::size_t i = 0; i < partners.size(); ++i)
          if (i == 0 || partners[i].pairs > 0) visit(c, i, static_cast<std::size_t>(partners[i].chunk));
      }
    };
    each_pair([&](std::size_t c, std::size_t i, std::size_t mate) {
      slowest[c][i] = std::max(in_pair(chunks[c], chunks[mate], i), pair_of(c, mate));
    });
    const ChunkPasses* of_chunk = nullptr;
    StageKind kind;
    Seconds ahead, back;
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      const StageKind before = std::exchange(kind, chunk_kind(c));
      if (c == 0 || kind != before) {
        of_chunk = &passes_of(c);
        ahead = of_chunk->forward.total();
        back = of_chunk->backward.total();
      }
      ChunkPasses& chunk = chunks[c];
      if (ahead > chunk.forward.total()) chunk.forward = of_chunk->forward;
      if (both) chunk.weight = std::max(chunk.weight, of_chunk->weight);
      chunk.cut = std::max(chunk.cut, of_chunk->cut);
      if (back <= chunk.backward.total()) continue;
      chunk.backward = of_chunk->backward;
      if (!both) chunk.weight = of_chunk->weight;
    }
    each_pair([&](std::size_t c, std::size_t i, std::size_t mate) {
      chunks[c].hidden[i] = chunks[c].forward.total() + chunks[mate].backward.total() - slowest[c][i];
    });
  }

 private:
  /// One chunk of the stage, with everything that its passes depend on.
  [[nodiscard]] StageKind chunk_kind(std::size_t chunk) const {
    return {.contents = in_.contents(stage_, static_cast<std::int32_t>(chunk)), .deferred = in_.deferred()};
  }
  [[nodiscard]] LayerRuns layers_of(std::size_t chunk) const {
    return in_.chunk_layers(stage_, static_cast<std::int32_t>(chunk));
  }
  const ChunkPasses& passes_of(std::size_t chunk) {
    return known_passes(known_.chunks, chunk_kind(chunk),
                        [&]() -> ChunkPasses { return timer_.passes_through(layers_of(chunk)); });
  }
  /// Seconds that the forward of a chunk and the backward of its mate take together on these devices.
  Seconds pair_of(std::size_t chunk, std::size_t mate) {
    const Seconds ahead = passes_of(chunk).forward.total(), back = passes_of(mate).backward.total();
    const StageKind forward = chunk_kind(chunk), backward = chunk_kind(mate);
    const auto alike = [&](const KnownPair& pair) {
      return pair.forward == forward && pair.backward == backward;
    };
    auto found = std::ranges::find_if(known_.pairs, alike);
    if (found == known_.pairs.end())
      found =
          known_.pairs.insert(found, {forward, backward, timer_.hidden(layers_of(chunk), layers_of(mate))});
    return ahead + back - found->hidden;
  }

  const TrainingStep& in_;
  std::int32_t stage_;
  LayerTimes& known_;
  LayerTimer layer_;
  StageTimer timer_;
};

/// Replaces a stage's times by the sums over its chunks if the host is ever waited for. The host is ahead within the
/// passes of each chunk only, not from one chunk to the next.
void add_up_chunks(std::span<const ChunkPasses> chunks, ChunkPasses& stage) {
  const auto waits = [](const ChunkPasses& chunk) {
    return chunk.forward[TimeClass::host] > Seconds(0) || chunk.backward[TimeClass::host] > Seconds(0);
  };
  if (std::ranges::none_of(chunks, waits)) return;
  stage.forward = stage.backward = {};
  stage.weight = {};
  for (const ChunkPasses& chunk : chunks) {
    stage.forward += chunk.forward;
    stage.backward += chunk.backward;
    stage.weight += chunk.weight;
  }
}

}  // namespace

void fill_passes(const StepMachine& machine, LayerTimes& layers, TrainingScratch& scratch) {
  const TrainingStep& in = machine.in;
  const network::CollectivePrices& collectives = machine.collectives;
  find_twins(machine, scratch);
  StepTimes& step = scratch.step;
  const PartsToPrice& parts = scratch.parts;
  const std::size_t stages = step.twin.size(), each = static_cast<std::size_t>(in.pipeline.virtual_stages);
  step.stages.resize(stages);
  step.chunks.resize(each > 1 ? each * stages : 0);
  const bool apart = told_apart(collectives), slowed = collectives.has_faults() && parts.known() != nullptr;
  std::optional<LayerTimes> own;
  // Known times of the layers of a stage, where other plans have asked for them if sick links slow it.
  const auto layers_of = [&](std::size_t s) -> LayerTimes& {
    if (!slowed && (s == 0 || !apart)) return layers;
    if (!slowed) return own.emplace();
    const auto [times, fresh] =
        scratch.memos.sick_layers.at({parts.known()->layers_id, collectives.fault_epoch(), s});
    if (fresh) times.forget();
    return times;
  };
  for (std::size_t s = 0; s < stages; ++s) {
    if (!parts.passes(s) || step.is_twin(s)) continue;
    StageFiller filler(machine, s, in.costs, collectives, layers_of(s));
    step.stages[s] = filler.all_chunks();
    if (s + 1 == stages) step.deferred = filler.deferred();
    std::ranges::fill(step.chunks_of(s), ChunkPasses());
    filler.fill(step.chunks_of(s));
    if (network::LinkRecorder* const recorder = collectives.recorder())
      scratch.known.links[s].passes = recorder->take_part();
  }
  for (const SickStage& sick : in.sick) {
    const network::CollectivePrices prices = collectives.with_memory(sick.memory_share);
    StageFiller filler(machine, sick.stage, sick.costs, prices, own.emplace());
    keep_slower(step.stages[sick.stage], filler.all_chunks(), pairs_of_stages(in));
    filler.fill(step.chunks_of(sick.stage));
    if (sick.stage + 1 < stages) continue;
    const PassTime deferred = filler.deferred();
    if (deferred.total() > step.deferred.total()) step.deferred = deferred;
  }
  for (std::size_t s = 0; each > 1 && s < stages; ++s)
    if (parts.passes(s) && !step.is_twin(s)) add_up_chunks(step.chunks_of(s), step.stages[s]);
}

void copy_to_twins(StepTimes& step) {
  for (std::size_t s = 0; s < step.twin.size(); ++s) {
    if (!step.is_twin(s)) continue;
    step.stages[s] = step.stages[s - 1];
    std::ranges::copy(step.chunks_of(s - 1), step.chunks_of(s).begin());
  }
}

}  // namespace shardscape::step
