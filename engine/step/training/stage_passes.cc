// What the passes of stages and chunks take. A stage that is like the one before it takes what that takes; where links
// tell stages apart each is timed on its own links; a sick device slows the stage that it sits in.
#include "engine/step/training/stage_passes.h"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <span>
#include <utility>

#include "engine/step/layers/host_work.h"
#include "engine/step/layers/layer_timer.h"
#include "engine/step/layers/paired_passes.h"
#include "engine/step/training/data_traffic.h"

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

/// Keeps the slower of the passes through one chunk on different devices. `apart`: its backward may be cut or not.
void keep_slower(ChunkPasses& kept, const ChunkPasses& other, bool apart) {
  kept.lead = other.lead;
  if (other.forward.total() > kept.forward.total()) kept.forward = other.forward;
  if (apart) kept.weight = std::max(kept.weight, other.weight);
  kept.cut = std::max(kept.cut, other.cut);
  if (other.backward.total() <= kept.backward.total()) return;
  kept.backward = other.backward;
  if (!apart) kept.weight = other.weight;
}

/// The same of a stage, and of each layer: gradients leave when the slowest device has made them. That also holds for
/// passes that the host bounds, which take equally long on any device.
void keep_slower(StagePasses& kept, const StagePasses& other, bool apart, bool pairs) {
  const Seconds pair = std::max(in_pair(kept, kept, 0), in_pair(other, other, 0));
  keep_slower(kept, other, apart);
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
    const bool leads = runs.size() > 1 && waits_for_host(runs);  // either all of them wait, or none does
    const auto spared_in = [&](Pass pass) { return leads ? spared(runs, pass) : Waits(runs.size()); };
    const Waits ahead = spared_in(Pass::forward), back = spared_in(Pass::backward),
                cut = in_.pipeline.both_ways() ? spared_in(Pass::input) : Waits(runs.size()),
                weights =
                    in_.cuts() || in_.pipeline.both_ways() ? spared_in(Pass::weight) : Waits(runs.size());
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const auto [kind, count] = runs[i];
      passes.forward += count * pass_of(kind, Pass::forward).time;
      passes.forward[TimeClass::host] -= ahead[i];
      PassTime backward = count * pass_of(kind, Pass::backward).time;
      Seconds alone = backward.total();
      backward[TimeClass::host] -= back[i];
      passes.cut += count * pass_of(kind, Pass::input).time.total() - cut[i];
      if (in_.cuts(kind)) {
        PassTime weight = count * pass_of(kind, Pass::weight).time;
        alone += weight.total();
        weight[TimeClass::host] -= weights[i];
        backward += weight;
        passes.weight += weight.total();
      } else if (in_.splits(kind)) {
        passes.weight += count * pass_of(kind, Pass::weight).time.total() - weights[i];
      }
      passes.backward += backward;
      passes.backwards[kind] += alone;
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
    return static_cast<double>(in_.deferred()) * pass_of(kHeadLayer, Pass::weight).time;
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
    const auto add = [&](const LayerWork& work, Pass of, PassInPair& pass) {
      const LayerPass layer = pass_of(work.kind, of);
      const Segments segments = in_.segments(work.kind, work.pass);
      const Seconds hideable =
          exchanges ? layer.time[TimeClass::expert_comm] - timer_.split_experts(work.kind, segments)
                    : Seconds(0);
      device += work.count * layer.runs();
      const std::size_t before = pass.steps.size();
      std::vector<std::vector<Seconds>> pieces;
      if (exchanges) pieces = timer_.pieces(work.kind, segments);
      for (std::int32_t n = 0; n < work.count; ++n) append_pieces(pieces, hideable, pass.steps);
      const std::int64_t calls =
          std::count_if(pass.steps.begin() + static_cast<std::ptrdiff_t>(before), pass.steps.end(),
                        [](const PairStep& step) { return step.kind == PairStep::Kind::exchange; });
      pass.layers.insert(pass.layers.end(), static_cast<std::size_t>(work.count),
                         {layer.runs() - hideable, pass_of(work.kind, work.pass).launch, calls / work.count});
      pass.exchanges += calls;
    };
    for (const LayerWork& work : in_.stream(backward, Pass::backward, true)) add(work, Pass::backward, back);
    for (const LayerWork& work : in_.stream(forward, Pass::forward, false)) add(work, Pass::forward, ahead);
    const Seconds least = launched_together(back, ahead);
    const double seconds = exchanges ? pair_up(ahead.steps, back.steps, stack.expert_overlap).hidden : 0;
    device -= Seconds(stack.expert_hidden * seconds);
    const Seconds apart = passes_through(forward).forward.total() +
                          passes_through(backward).backward.total() - 2 * pass_lead(in_);
    return std::max(Seconds(0), apart - std::max(device, least));
  }

 private:
  /// Whether any of the layers would wait for the host by itself.
  [[nodiscard]] bool waits_for_host(const LayerRuns& runs) {
    return std::ranges::any_of(runs, [&](const LayerRun& run) {
      return std::ranges::any_of(
          timed(run.kind), [](const LayerPass& pass) { return pass.time[TimeClass::host] > Seconds(0); });
    });
  }

  /// Waits for the host that each layer would have by itself, but that a pass through all of them does not have; index:
  /// run of layers.
  using Waits = boost::container::small_vector<Seconds, 4>;
  [[nodiscard]] Waits spared(const LayerRuns& runs, Pass pass) {
    Waits saved(runs.size());
    HostLead lead;
    for (std::size_t n = 0; n < runs.size(); ++n) {
      const std::size_t i = pass == Pass::forward ? n : runs.size() - 1 - n;
      const auto [kind, count] = runs[i];
      const Pass runs_as = pass == Pass::input && !in_.splits(kind) ? Pass::backward : pass;
      if (pass == Pass::weight && !in_.splits(kind) && !in_.cuts(kind)) continue;
      const LayerPass layer = pass_of(kind, runs_as);
      saved[i] = std::max(Seconds(0),
                          count * layer.time[TimeClass::host] -
                              lead.launch(count, layer.runs(), layer.launch, meets_host(in_, kind, runs_as)));
    }
    return saved;
  }

  /// A pass through one layer for one microbatch: the backward of the head as the mean over microbatches, and that
  /// without weight gradients (Pass::input) only where the schedule puts these off in some backwards.
  [[nodiscard]] LayerPass pass_of(LayerKind kind, Pass pass) {
    const LayerPasses& layer = timed(kind);
    const auto as = [&](Pass of) -> const LayerPass& { return layer[static_cast<std::size_t>(of)]; };
    if (pass == Pass::input && !in_.splits(kind) && !in_.defers(kind)) return as(Pass::backward);
    if (pass != Pass::backward || !in_.defers(kind)) return as(pass);
    const double share = in_.deferred_share();
    LayerPass mean{share * as(Pass::input).time,
                   share * as(Pass::input).launch + (1 - share) * as(Pass::backward).launch};
    if (share < 1) mean.time += (1 - share) * as(Pass::backward).time;
    return mean;
  }

  /// The passes of a layer; the reference is valid until those of another kind are asked for.
  const LayerPasses& timed(LayerKind kind) {
    const auto [layer, fresh] = layers_.at(kind);
    if (!fresh) return layer;
    const bool apart = in_.defers(kind) || in_.splits(kind);
    for (const Pass pass : {Pass::forward, Pass::backward, Pass::weight, Pass::input}) {
      if ((pass == Pass::weight && !apart && !in_.cuts(kind)) || (pass == Pass::input && !apart)) continue;
      layer[static_cast<std::size_t>(pass)] = {timer_(kind, pass), pass_launch(in_, kind, pass)};
    }
    return layer;
  }

  const TrainingStep& in_;
  const LayerTimer& timer_;
  ShortMemo<LayerKind, LayerPasses>& layers_;
};

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
    return known_.stages.get(kind, [&] {
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
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      const StageKind before = std::exchange(kind, chunk_kind(c));
      if (c == 0 || kind != before) of_chunk = &passes_of(c, kind);
      keep_slower(chunks[c], *of_chunk, both);
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
    return known_.chunks.get(kind, [&] { return ChunkPasses(timer_.passes_through(layers_of(chunk))); });
  }
  /// Seconds that the forward of a chunk and the backward of its mate take together on these devices.
  Seconds pair_of(std::size_t chunk, std::size_t mate) {
    const StageKind forward = chunk_kind(chunk), backward = chunk_kind(mate);
    const Seconds ahead = passes_of(chunk, forward).forward.total(),
                  back = passes_of(mate, backward).backward.total();
    return ahead + back - known_.pairs.get({forward, backward}, [&] {
      return timer_.hidden(layers_of(chunk), layers_of(mate));
    });
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
    return times_at(scratch.memos.sick_layers.at({parts.known()->layers_id, collectives.fault_epoch(), s}));
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
    keep_slower(step.stages[sick.stage], filler.all_chunks(), in.pipeline.both_ways(), pairs_of_stages(in));
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

BesideCosts beside_costs(const StepMachine& machine, std::size_t s) {
  const TrainingStep& in = machine.in;
  const network::CollectivePrices collectives = machine.collectives.with_memory(memory_share(in, s));
  const CallPrices prices = machine.calls_of(s, collectives);
  BesideCosts costs;
  for (const DataTraffic::Part& part : data_traffic(in, static_cast<std::int32_t>(s)).parts) {
    if (part.once) continue;
    BesideCost& of_pass = costs[static_cast<std::size_t>(part.pass)];
    of_pass.time += prices.time_in_row(part.group, part.key(machine.groups, prices.slice));
    of_pass.calls += part.calls;
  }
  return costs;
}

namespace {

using BesidePasses = std::array<BesidePass, std::size(kTrainingPasses)>;  ///< index: Pass

/// Makes passes longer by what they expose of the traffic beside them.
void add_exposed(const BesidePasses& traffic, ChunkPasses& passes) {
  const auto exposed = [&](Pass pass) { return traffic[static_cast<std::size_t>(pass)].exposed(); };
  passes.weight_exposed = exposed(Pass::weight);
  passes.forward[TimeClass::data_comm] += exposed(Pass::forward);
  passes.backward[TimeClass::data_comm] += exposed(Pass::backward) + passes.weight_exposed;
  passes.weight += passes.weight_exposed;
}

/// Adds to the passes of a stage what they expose of the traffic beside them: of the whole stage, or of its chunks, of
/// which each has an equal share of the traffic, as it is executed.
void add_beside(const TrainingStep& in, const BesideCosts& costs, std::span<ChunkPasses> chunks,
                StagePasses& stage) {
  BesidePasses sum{};
  const auto of_chunk = [&](const ChunkPasses& chunk, double share) {
    BesidePasses traffic;
    for (const Pass pass : kTrainingPasses) {
      const auto i = static_cast<std::size_t>(pass);
      traffic[i] = beside_pass(in.setting.system.stack.communication, share * costs[i].time,
                               chunk.work(pass, in.cuts()));
    }
    return traffic;
  };
  for (ChunkPasses& chunk : chunks) {
    const BesidePasses traffic = of_chunk(chunk, 1.0 / static_cast<double>(chunks.size()));
    add_exposed(traffic, chunk);
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i].beyond += traffic[i].beyond;
      sum[i].lost += traffic[i].lost;
    }
  }
  add_exposed(chunks.empty() ? of_chunk(stage, 1) : sum, stage);
}

}  // namespace

void add_data_parallel(const StepMachine& machine, TrainingScratch& scratch) {
  const TrainingStep& in = machine.in;
  if (!sends_beside_passes(in)) return;
  const PartsToPrice& parts = scratch.parts;
  StepTimes& step = scratch.step;
  for (std::size_t s = 0; s < step.stages.size(); ++s) {
    if (!parts.beside(s) || step.is_twin(s)) continue;
    const std::span<ChunkPasses> chunks = step.chunks_of(s);
    if (!parts.passes(s)) {
      const StageTimes& before = parts.known()->layers;
      step.stages[s] = before.stages[s];
      std::ranges::copy(before.chunks_of(s), chunks.begin());
    }
    // What siblings that take turns spare depends on more of the plan.
    const bool turns = in.turns != nullptr && in.turns->any;
    const auto costs = [&] { return beside_costs(machine, s); };
    add_beside(in, turns ? costs() : machine.known(s, &DataCosts::beside, costs), chunks, step.stages[s]);
    if (network::LinkRecorder* const recorder = machine.collectives.recorder())
      scratch.known.links[s].beside = recorder->take_part();
  }
}

}  // namespace shardscape::step
