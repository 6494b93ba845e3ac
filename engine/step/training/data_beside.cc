#include "engine/step/training/data_beside.h"

#include <algorithm>
#include <optional>
#include <span>

#include "engine/step/training/data_traffic.h"

namespace shardscape::step {

BesideCosts beside_costs(const StepMachine& machine, std::size_t s) {
  const TrainingStep& in = machine.in;
  const network::CollectivePrices collectives = machine.collectives.with_memory(memory_share(in, s));
  const DataTraffic traffic = data_traffic(in, in.parameters_of(static_cast<std::int32_t>(s)));
  const CallPrices prices = machine.calls_of(s, collectives);
  const auto beside = [&](Pass pass) {
    Seconds time;
    for (const DataTraffic::Part& part : traffic.beside(pass, in.cuts()))
      time += prices.time(part.group, part.key(machine.groups, prices.slice));
    return time;
  };
  return {beside(Pass::forward), beside(Pass::backward), beside(Pass::weight)};
}

namespace {

/// Traffic beside the passes of that name.
struct BesidePasses {
  BesidePass forward, backward, weight;
};

/// Makes passes longer by what they expose of the traffic beside them.
void add_exposed(const BesidePasses& traffic, ChunkPasses& passes) {
  passes.weight_exposed = traffic.weight.exposed();
  passes.forward[TimeClass::data_comm] += traffic.forward.exposed();
  passes.backward[TimeClass::data_comm] += traffic.backward.exposed() + traffic.weight.exposed();
  passes.weight += traffic.weight.exposed();
}

/// Adds to the passes of a stage (share 1) or of a chunk what they expose of the traffic beside them, and returns that.
BesidePasses add_beside(const StackProfile::Communication& stack, const BesideCosts& costs, double share,
                        ChunkPasses& passes) {
  const BesidePasses traffic{
      beside_pass(stack, share * costs.forward, passes.forward.total() - passes.lead),
      beside_pass(stack, share * costs.backward, passes.backward.total() - passes.weight - passes.lead),
      beside_pass(stack, share * costs.weight, passes.weight)};
  add_exposed(traffic, passes);
  return traffic;
}

/// The same for a stage of several chunks, each of which has an equal share of the traffic, as it is executed.
void add_beside_chunks(const StackProfile::Communication& stack, const BesideCosts& costs,
                       std::span<ChunkPasses> chunks, StagePasses& stage) {
  BesidePasses sum;
  const auto add = [](BesidePass& to, const BesidePass& more) {
    to.beyond += more.beyond;
    to.lost += more.lost;
  };
  for (ChunkPasses& chunk : chunks) {
    const BesidePasses traffic = add_beside(stack, costs, 1.0 / static_cast<double>(chunks.size()), chunk);
    add(sum.forward, traffic.forward);
    add(sum.backward, traffic.backward);
    add(sum.weight, traffic.weight);
  }
  add_exposed(sum, stage);
}

}  // namespace

void add_data_parallel(const StepMachine& machine, TrainingScratch& scratch) {
  const TrainingStep& in = machine.in;
  if (!sends_beside_passes(in)) return;
  const StackProfile::Communication& stack = in.setting.system.stack.communication;
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
    std::optional<DataCosts> own;
    // What siblings that take turns spare depends on more of the plan.
    const bool turns = in.turns != nullptr && in.turns->any;
    std::optional<BesideCosts>& costs = (turns ? own.emplace() : machine.data_of(s, own)).beside;
    if (!costs) costs = beside_costs(machine, s);
    if (chunks.empty()) {
      add_beside(stack, *costs, 1, step.stages[s]);
    } else {
      add_beside_chunks(stack, *costs, chunks, step.stages[s]);
    }
    if (network::LinkRecorder* const recorder = machine.collectives.recorder())
      scratch.known.links[s].beside = recorder->take_part();
  }
}

}  // namespace shardscape::step
