// What the passes of stages and chunks take. A stage that is like the one before it takes what that takes; where links
// tell stages apart each is timed on its own links; a sick device slows the stage that it sits in.
#include "engine/step/training/stage_passes.h"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <optional>
#include <utility>

#include "engine/step/layers/host_work.h"
#include "engine/step/layers/layer_timer.h"
#include "engine/step/layers/paired_passes.h"

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
  if (other.forward.total() > kept.forward.total()) kept.forward = other.forward;
  if (other.backward.total() > kept.backward.total()) {
    kept.backward = other.backward;
    kept.weight = other.weight;
  }
  for (std::size_t role = 0; role < kept.backwards.roles.size(); ++role)
    kept.backwards.roles[role] = std::max(kept.backwards.roles[role], other.backwards.roles[role]);
  if (pairs) kept.hidden[0] = kept.forward.total() + kept.backward.total() - pair;
}

/// One pass of a pair: its steps, and the layers that the host launches.
struct PassInPair {
  struct Layer {
    Seconds runs, launch;
    std::int64_t exchanges = 0;
  };
  std::vector<PairStep> steps;
  std::vector<Layer> layers;
  std::int64_t exchanges = 0;
};

/// Seconds that a pair takes whatever of its exchanges hides: the host launches the layers of both passes without a
/// stop, in the order in which their exchanges take turns (paired_passes.h).
Seconds launched_together(const PassInPair& back, const PassInPair& ahead) {
  Seconds sum;
  HostLead lead;
  std::int64_t gone_back = 0, gone_ahead = 0;
  for (std::size_t b = 0, f = 0; b < back.layers.size() || f < ahead.layers.size();) {
    const bool turn = gone_back * ahead.exchanges <= gone_ahead * back.exchanges;
    const bool backward = b < back.layers.size() && (turn || f == ahead.layers.size());
    const PassInPair::Layer& layer = backward ? back.layers[b++] : ahead.layers[f++];
    (backward ? gone_back : gone_ahead) += layer.exchanges;
    sum += layer.runs + lead.launch(1, layer.runs, layer.launch);
  }
  return sum;
}

/// Puts together the passes of stages whose layers cost the same. `known`: of these layers. All references must outlive
/// it.
///
/// The host meets the device where a pass begins, launches ahead of layers that take longer to run than to launch, and
/// makes up in them for others: a pass of layers that run for d_i and take h_i to launch takes the longest of
/// h_1 + ... + h_k + d_k+1 + ... + d_n over all k, as it is executed (LayerEmitter::append). In a layer that
/// meets_host() it meets the device again. That is taken to be where the layer begins: between two such points lie the
/// rest of one layer and the beginning of the next, which is as much to run and to launch as one layer. Two passes that
/// run as a pair are launched without a stop.
class StageTimer {
 public:
  StageTimer(const TrainingStep& inputs, const LayerTimer& timer, LayerTimes& known)
      : in_(inputs), timer_(timer), layers_(known.layers) {}

  /// The passes through all of these layers.
  [[nodiscard]] StagePasses passes_through(const LayerRuns& runs) {
    StagePasses passes;
    const Spared less = spared(runs);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const LayerRun& run = runs[i];
      const LayerPasses& layer = timed(run.kind);
      passes.forward += run.count * layer.forward;
      passes.forward[TimeClass::host] -= less.forward[i];
      PassTime backward = run.count * backward_of(run.kind);
      Seconds alone = backward.total();
      backward[TimeClass::host] -= less.backward[i];
      passes.cut += run.count * cut_backward_of(run.kind).total() - less.cut[i];
      if (in_.cuts(run.kind)) {
        PassTime weight = run.count * layer.weight;
        alone += weight.total();
        weight[TimeClass::host] -= less.weight[i];
        backward += weight;
        passes.weight += weight.total();
      } else if (in_.splits(run.kind)) {
        passes.weight += run.count * layer.weight.total() - less.weight[i];
      }
      passes.backward += backward;
      passes.backwards[run.kind] += alone;
    }
    passes.lead = pass_lead(in_);
    passes.forward[TimeClass::host] += passes.lead;
    passes.backward[TimeClass::host] += passes.lead;
    passes.cut += passes.lead;
    return passes;
  }

  /// All weight gradients of the head that the stack defers.
  [[nodiscard]] PassTime deferred() {
    if (in_.deferred() == 0) return {};
    return static_cast<double>(in_.deferred()) * timed(kHeadLayer).weight;
  }

  /// Seconds by which a forward through some layers and a backward through others are shorter as a pair. Exchanges hide
  /// beside the other pass (paired_passes.h), but a pair takes no less than the host needs to launch it, the layers of
  /// both passes in turn as their exchanges are, whatever of its exchanges hides. A pair takes the longer of both, so
  /// that nothing that takes longer makes it shorter.
  [[nodiscard]] Seconds hidden(const LayerRuns& forward, const LayerRuns& backward) {
    const StackProfile::Communication& stack = in_.setting.system.stack.communication;
    const bool exchanges = stack.expert_overlap > 0 && in_.key().dispatches;
    if (!exchanges && !(in_.pipeline.both_ways() && (waits_for_host(forward) || waits_for_host(backward))))
      return Seconds(0);
    PassInPair ahead, back;
    Seconds device;
    const auto add = [&](const LayerWork& work, const PassTime& time, PassInPair& pass) {
      const Seconds runs = time.total() - time[TimeClass::host];
      const Segments segments = in_.segments(work.kind, work.pass);
      const Seconds hideable =
          exchanges ? time[TimeClass::expert_comm] - timer_.split_experts(work.kind, segments) : Seconds(0);
      device += work.count * runs;
      const std::size_t before = pass.steps.size();
      std::vector<std::vector<Seconds>> pieces;
      if (exchanges) pieces = timer_.pieces(work.kind, segments);
      for (std::int32_t n = 0; n < work.count; ++n) append_pieces(pieces, hideable, pass.steps);
      const std::int64_t calls =
          std::count_if(pass.steps.begin() + static_cast<std::ptrdiff_t>(before), pass.steps.end(),
                        [](const PairStep& step) { return step.kind == PairStep::Kind::exchange; });
      pass.layers.insert(pass.layers.end(), static_cast<std::size_t>(work.count),
                         {runs - hideable, launch_of(work.kind, work.pass), calls / work.count});
      pass.exchanges += calls;
    };
    for (const LayerWork& work : in_.stream(backward, Pass::backward, true))
      add(work, backward_of(work.kind), back);
    for (const LayerWork& work : in_.stream(forward, Pass::forward, false))
      add(work, timed(work.kind).forward, ahead);
    const Seconds least = launched_together(back, ahead);
    const double seconds = exchanges ? pair_up(ahead.steps, back.steps, stack.expert_overlap).hidden : 0;
    device -= Seconds(stack.expert_hidden * seconds);
    const Seconds apart = passes_through(forward).forward.total() +
                          passes_through(backward).backward.total() - 2 * pass_lead(in_);
    return std::max(Seconds(0), apart - std::max(device, least));
  }

 private:
  /// Waits for the host that each layer would have by itself, but that passes through all of the layers do not have.
  struct Spared {
    /// Index: run of layers; `backward` is without weight gradients that all backwards defer, `cut` without those that
    /// some do.
    boost::container::small_vector<Seconds, 4> forward, backward, cut, weight;
  };

  /// Whether any of the layers would wait for the host by itself.
  [[nodiscard]] bool waits_for_host(const LayerRuns& runs) {
    constexpr TimeClass kHost = TimeClass::host;
    return std::ranges::any_of(runs, [&](const LayerRun& run) {
      const LayerPasses& layer = timed(run.kind);
      return layer.forward[kHost] + layer.backward[kHost] + layer.weight[kHost] + layer.input[kHost] >
             Seconds(0);
    });
  }

  [[nodiscard]] Spared spared(const LayerRuns& runs) {
    Spared less;
    for (auto* const waits : {&less.forward, &less.backward, &less.cut, &less.weight})
      waits->resize(runs.size());
    const auto add = [&](HostLead& lead, std::size_t i, Pass pass, const PassTime& time, Seconds& saved) {
      const double count = runs[i].count;
      const Seconds waits = time[TimeClass::host];
      saved = std::max(Seconds(0),
                       count * waits - lead.launch(count, time.total() - waits, launch_of(runs[i].kind, pass),
                                                   meets_host(in_, runs[i].kind, pass)));
    };
    if (runs.size() == 1 || !waits_for_host(runs)) return less;  // either all of them wait, or none does
    HostLead ahead, back, cut, weights;
    for (std::size_t i = 0; i < runs.size(); ++i)
      add(ahead, i, Pass::forward, timed(runs[i].kind).forward, less.forward[i]);
    for (std::size_t i = runs.size(); i-- > 0;) {
      const LayerKind kind = runs[i].kind;
      add(back, i, Pass::backward, backward_of(kind), less.backward[i]);
      if (in_.pipeline.both_ways())
        add(cut, i, in_.splits(kind) ? Pass::input : Pass::backward, cut_backward_of(kind), less.cut[i]);
      if (in_.splits(kind) || in_.cuts(kind))
        add(weights, i, Pass::weight, timed(kind).weight, less.weight[i]);
    }
    return less;
  }

  /// The backward of one layer for one microbatch; for the head the mean over microbatches.
  [[nodiscard]] PassTime backward_of(LayerKind kind) {
    const LayerPasses& layer = timed(kind);
    if (!in_.defers(kind)) return layer.backward;
    const double share = in_.deferred_share();
    PassTime backward = share * layer.input;
    if (share < 1) backward += (1 - share) * layer.backward;
    return backward;
  }

  /// The same where the schedule puts the weight gradients of blocks off in some backwards.
  [[nodiscard]] const PassTime& cut_backward_of(LayerKind kind) {
    const LayerPasses& layer = timed(kind);
    return in_.splits(kind) ? layer.input : layer.backward;
  }

  /// Host time to launch a pass through a layer; for the head the mean over microbatches.
  [[nodiscard]] Seconds launch_of(LayerKind kind, Pass pass) {
    const LayerPasses& layer = timed(kind);
    const Seconds whole = layer.launch[static_cast<std::size_t>(pass)];
    if (pass != Pass::backward || !in_.defers(kind)) return whole;
    const double share = in_.deferred_share();
    return share * layer.launch[static_cast<std::size_t>(Pass::input)] + (1 - share) * whole;
  }

  const LayerPasses& timed(LayerKind kind) {
    const auto known = std::ranges::find(layers_, kind, &KnownLayer::kind);
    if (known != layers_.end()) return known->passes;
    layers_.reserve(kLayerKinds);  // so that references stay valid
    layers_.push_back({kind, {}});
    LayerPasses& layer = layers_.back().passes;
    const auto fill = [&](Pass pass, PassTime& time) {
      time = timer_(kind, pass);
      layer.launch[static_cast<std::size_t>(pass)] = pass_launch(in_, kind, pass);
    };
    fill(Pass::forward, layer.forward);
    fill(Pass::backward, layer.backward);
    if (in_.cuts(kind) || in_.defers(kind) || in_.splits(kind)) fill(Pass::weight, layer.weight);
    if (in_.defers(kind) || in_.splits(kind)) fill(Pass::input, layer.input);
    return layer;
  }

  const TrainingStep& in_;
  const LayerTimer& timer_;
  std::vector<KnownLayer>& layers_;
};

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
        deferred_(in_.deferred()),
        known_(known),
        layer_(in_, costs, machine.calls_of(stage, prices)),
        timer_(in_, layer_, known) {}

  const StagePasses& all_chunks() {
    const StageKind kind{in_.contents(stage_), pairs_of_stages(in_), deferred_};
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
    if (chunks.empty()) return;
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
        of_chunk = &passes_of(c, kind);
        ahead = of_chunk->forward.total();
        back = of_chunk->backward.total();
      }
      ChunkPasses& chunk = chunks[c];
      chunk.lead = of_chunk->lead;
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
    return {.contents = in_.contents(stage_, static_cast<std::int32_t>(chunk)), .deferred = deferred_};
  }
  [[nodiscard]] LayerRuns layers_of(std::size_t chunk) const {
    return in_.chunk_layers(stage_, static_cast<std::int32_t>(chunk));
  }
  const ChunkPasses& passes_of(std::size_t chunk, const StageKind& kind) {
    return known_passes(known_.chunks, kind,
                        [&]() -> ChunkPasses { return timer_.passes_through(layers_of(chunk)); });
  }
  /// Seconds that the forward of a chunk and the backward of its mate take together on these devices.
  Seconds pair_of(std::size_t chunk, std::size_t mate) {
    const StageKind forward = chunk_kind(chunk), backward = chunk_kind(mate);
    const Seconds ahead = passes_of(chunk, forward).forward.total(),
                  back = passes_of(mate, backward).backward.total();
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
  std::int32_t deferred_;
  LayerTimes& known_;
  LayerTimer layer_;
  StageTimer timer_;
};

/// Replaces a stage's times by the sums over its chunks, if it has several and the host is ever waited for. The host is
/// ahead within the passes of each chunk only, not from one chunk to the next.
void add_up_chunks(std::span<const ChunkPasses> chunks, ChunkPasses& stage) {
  const auto waits = [](const ChunkPasses& chunk) {
    return chunk.forward[TimeClass::host] > Seconds(0) || chunk.backward[TimeClass::host] > Seconds(0);
  };
  if (chunks.size() < 2 || std::ranges::none_of(chunks, waits)) return;
  stage.forward = stage.backward = {};
  stage.weight = stage.lead = {};
  for (const ChunkPasses& chunk : chunks) {
    stage.lead += chunk.lead;
    stage.forward += chunk.forward;
    stage.backward += chunk.backward;
    stage.weight += chunk.weight;
  }
}

/// Finds by how much faults make the forward of each stage of a pipeline longer. `fresh()`: for new layers.
template <class Fresh>
void find_slowed(const StepMachine& machine, const Fresh& fresh, TrainingScratch& scratch) {
  const TrainingStep& in = machine.in;
  if (in.plan.pipeline == 1 || (in.sick.empty() && !machine.collectives.has_faults())) return;
  const network::CollectivePrices prices = machine.collectives.without_faults();
  for (std::size_t s = 0; s < scratch.step.stages.size(); ++s) {
    if (scratch.step.is_twin(s)) continue;
    Seconds well;  // forward
    if (const KnownStep* const known = scratch.parts.known()) {
      if (!scratch.parts.passes(s)) continue;
      well = known->layers.stages[s].forward.total();
    } else {
      StageFiller filler(machine, s, in.costs, prices, fresh());
      StagePasses passes = filler.all_chunks();
      std::vector<ChunkPasses> chunks(scratch.step.chunks_of(s).size());
      filler.fill(chunks);
      add_up_chunks(chunks, passes);
      well = passes.forward.total();
    }
    StagePasses& stage = scratch.step.stages[s];
    stage.slowed = std::max(Seconds(0), stage.forward.total() - well);
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
  // Of layers that no other stage or plan shares.
  const auto own_layers = [&]() -> LayerTimes& {
    scratch.memos.stage_layers.forget();
    return scratch.memos.stage_layers;
  };
  // Known times of the layers of a stage, where other plans have asked for them if sick links slow it.
  const auto layers_of = [&](std::size_t s) -> LayerTimes& {
    if (!slowed && (s == 0 || !apart)) return layers;
    if (!slowed) return own_layers();
    return scratch.memos.sick_layers.times_for({parts.known()->layers_id, collectives.fault_epoch(), s});
  };
  for (std::size_t s = 0; s < stages; ++s) {
    if (!parts.passes(s) || step.is_twin(s)) continue;
    StageFiller filler(machine, s, in.costs, collectives, layers_of(s));
    step.stages[s] = filler.all_chunks();
    if (s + 1 == stages) step.deferred = filler.deferred();
    static constexpr ChunkPasses kNone{};
    std::ranges::fill(step.chunks_of(s), kNone);
    filler.fill(step.chunks_of(s));
    if (network::LinkRecorder* const recorder = collectives.recorder())
      scratch.known.links[s].passes = recorder->take_part();
  }
  for (const SickStage& sick : in.sick) {
    const network::CollectivePrices prices = collectives.with_memory(sick.memory_share);
    StageFiller filler(machine, sick.stage, sick.costs, prices, own_layers());
    keep_slower(step.stages[sick.stage], filler.all_chunks(), pairs_of_stages(in));
    filler.fill(step.chunks_of(sick.stage));
    if (sick.stage + 1 < stages) continue;
    const PassTime deferred = filler.deferred();
    if (deferred.total() > step.deferred.total()) step.deferred = deferred;
  }
  for (std::size_t s = 0; s < stages; ++s)
    if (parts.passes(s) && !step.is_twin(s)) add_up_chunks(step.chunks_of(s), step.stages[s]);
  find_slowed(machine, own_layers, scratch);
}

void copy_to_twins(StepTimes& step) {
  for (std::size_t s = 0; s < step.twin.size(); ++s) {
    if (!step.is_twin(s)) continue;
    step.stages[s] = step.stages[s - 1];
    std::ranges::copy(step.chunks_of(s - 1), step.chunks_of(s).begin());
  }
}

}  // namespace shardscape::step
