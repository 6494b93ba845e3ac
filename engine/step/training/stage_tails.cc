// Prices what stages do after their last backward, and finds the stage that ends last; the exposed gradients are found
// only of stages that may be the last one.
#include "engine/step/training/stage_tails.h"

#include <algorithm>

#include "engine/spec/zero.h"
#include "engine/step/training/contention.h"
#include "engine/step/training/data_exposure.h"
#include "engine/step/training/data_traffic.h"

namespace shardscape::step {

namespace {

compute::OptimizerState optimizer_state(const Setting& setting) {
  const StackProfile::State& state = setting.system.stack.state;
  return {state.gradient_bytes, state.master_bytes, state.moment_bytes,
          bytes_per_element(setting.policy().weights)};
}

/// The links that data-parallel traffic of a stage crosses, all of its groups at once, while they are healthy.
network::LinkSet links_of_data(const StepMachine& machine, std::size_t stage) {
  network::LinkSet links;
  for (const DataTraffic::Part& part : data_traffic(machine.in, static_cast<std::int32_t>(stage)).parts) {
    const network::CollectiveKey asked = part.key(machine.groups);
    if (!asked.nothing()) links.insert_all(machine.collectives.healthy().links(asked));
  }
  return links;
}

}  // namespace

OptimizerCost optimizer_cost(const TrainingStep& in, const DeviceSpec& device, std::int32_t stage) {
  const bool sharded = zero_shards(in.plan, ZeroState::optimizer);
  const bool sliced = sharded && !zero_shards(in.plan, ZeroState::weights);
  OptimizerCost cost;
  for (const auto& [copies, held] : in.parameters_of(stage))
    cost.parameters += held.count / (sharded ? in.pipeline.copies() * ranks_of(in.plan, copies) : 1.0);
  cost.update = compute::optimizer_step(cost.parameters, optimizer_state(in.setting), device);
  if (sliced) {
    for (const auto& [copies, held] : in.parameters.of_blocks(in.layers[static_cast<std::size_t>(stage)])) {
      const double shards = in.pipeline.copies() * ranks_of(in.plan, copies);
      if (shards > 1) cost.slices += held.tensors * shards;
    }
  }
  cost.slicing = cost.slices * in.setting.system.stack.zero_slice;
  return cost;
}

Seconds lost_in_step(const TrainingStep& in, const TailCosts& costs, Seconds hidden, Seconds last_backward) {
  Seconds beside = hidden;
  if (!in.pipeline.both_ways()) {
    Seconds all_but_last;
    for (const GroupGradients& group : costs.gradients) all_but_last += (1 - 1 / group.buckets) * group.time;
    beside += gradients_beside(in.setting.system.stack.communication, all_but_last, last_backward);
  }
  return lost_once(in.setting.system, beside);
}

namespace {

TailCosts costs_of_tail(const StepMachine& machine, std::size_t s) {
  const TrainingStep& in = machine.in;
  const network::CollectivePrices collectives = machine.collectives.with_memory(memory_share(in, s));
  const CallPrices prices = machine.calls_of(s, collectives);
  const auto cost = [&](const DataTraffic::Part& part) {
    return collectives.time(part.key(machine.groups, prices.slice));
  };
  const auto optimizer_on = [&](const DeviceSpec& device) {
    return optimizer_cost(in, device, static_cast<std::int32_t>(s)).total();
  };
  TailCosts costs = tail_costs(data_traffic(in, static_cast<std::int32_t>(s)), cost);
  costs.optimizer = optimizer_on(in.setting.system.device);
  for (const SickStage& sick : in.sick) {
    if (sick.stage == s)
      costs.optimizer = std::max(costs.optimizer, optimizer_on(sick.setting.system.device));
  }
  return costs;
}

StageTail without_gradients(const TrainingStep& in, const StepTimes& step, std::size_t s,
                            const TailCosts& costs) {
  StageTail tail;
  // What faults lengthen hides no more in a pipeline: there a pass may hide more of the gather than the step grows by.
  const StagePasses& passes = step.stages[s];
  tail.hidden = hidden_gather(in.setting.system.stack.communication, costs.weights,
                              passes.forward.total() - passes.lead - passes.slowed, in.pipeline);
  const Seconds hidden = tail.hidden.all();
  double last_backward = 0;
  for (const schedule::StageTime& chunk : chunk_times(in, step, s))
    last_backward += gradient_pass(chunk, in.cuts());
  tail.lost = lost_in_step(in, costs, hidden, Seconds(last_backward));
  tail.data_comm = costs.weights.whole - hidden + tail.lost;
  tail.optimizer = costs.optimizer;
  return tail;
}

/// Sums in another order differ by this much, relative, at most: some 1e-16 for each of the layers of a stage.
constexpr double kSumRounding = 1e-12;

/// When a stage has ended its last pass, and on the last stage also the deferred weight gradients.
Seconds at_work(const TrainingStep& in, const StepTimes& step, std::size_t s) {
  return Seconds(step.pipeline.end[s]) + step.deferred_on(in, s);
}

/// The end of a stage's step.
Seconds end_of(const TrainingStep& in, const StepTimes& step, std::size_t s, Seconds data_comm,
               Seconds optimizer) {
  return at_work(in, step, s) + wait_for_mirror(in, step, s) + data_comm + optimizer;
}

/// How much of its gradients a stage in a run of equal stages exposed.
struct Exposed {
  std::size_t stage = 0;
  Seconds time;
};

/// Whether a stage exposes no more than stage `than`, which costs the same: no chunk ends later, relative to the
/// stage's end.
bool exposes_no_more(const TrainingStep& in, const StepTimes& step, std::size_t stage, std::size_t than) {
  if (in.pipeline.both_ways() || in.pipeline.virtual_stages == 1) return true;
  const auto chunks = static_cast<std::size_t>(in.pipeline.virtual_stages);
  const double* const ends = step.pipeline.chunk_end.data() + stage * chunks;
  const double* const those = step.pipeline.chunk_end.data() + than * chunks;
  for (std::size_t c = 0; c < chunks; ++c) {
    const bool alike =
        step.twin[stage] == step.twin[than] || in.chunks[stage * chunks + c] == in.chunks[than * chunks + c];
    if (!alike || ends[0] - ends[c] < (those[0] - those[c]) - kSumRounding * ends[0]) return false;
  }
  return true;
}

}  // namespace

Seconds wait_for_mirror(const TrainingStep& in, const StepTimes& step, std::size_t stage) {
  if (!in.pipeline.both_ways()) return {};
  const std::size_t mirror = step.stages.size() - 1 - stage;
  return std::max(Seconds(0), at_work(in, step, mirror) - at_work(in, step, stage));
}

bool sick_links_carry_data(const StepMachine& machine, std::size_t stage, TrainingScratch& scratch) {
  if (!machine.collectives.has_faults()) return false;
  if (scratch.parts.known() != nullptr) return scratch.parts.data(stage);
  return machine.collectives.touched(links_of_data(machine, stage));
}

LastStage add_tails(const StepMachine& machine, TrainingScratch& scratch) {
  const TrainingStep& in = machine.in;
  StepTimes& step = scratch.step;
  step.tails.resize(step.stages.size());
  const PartsToPrice& parts = scratch.parts;
  // Costs of this stage, or of the run of equal stages that it is in.
  TailCosts own;
  std::span<const double> left;  // gradients_left(), where plans share it
  const auto left_of = [&](DataCosts& shared, std::size_t s, const GradientTraffic& gradients) {
    std::vector<double>& known = shared.left[in.deferred() > 0 ? 1 : 0];
    if (known.empty()) known = gradients_left(in, static_cast<std::int32_t>(s), gradients);
    return std::span<const double>(known);
  };
  const auto price = [&](std::size_t s) {
    std::optional<DataCosts> of_plan;
    DataCosts& shared = machine.data_of(s, of_plan);
    if (!shared.tail) shared.tail = costs_of_tail(machine, s);
    own = *shared.tail;
    if (!of_plan) left = left_of(shared, s, own.gradients);
  };
  const auto exposed_on = [&](std::size_t s, const GradientTraffic& gradients) {
    const auto stage = static_cast<std::int32_t>(s);
    const LastBackward last = last_backward(in, step, s);
    if (left.empty() && !parts.tail(s))
      left = left_of(scratch.memos.data.costs_for(in).at(in.contents(stage)).value, s, gradients);
    return left.empty() ? exposed_gradients(in, stage, last, gradients)
                        : exposed_gradients(in, stage, last, left);
  };
  LastStage last;
  std::optional<Exposed> known;  // of the run of equal stages
  StageTail whole;               // likewise, all but the gradients
  for (std::size_t s = 0; s < step.stages.size(); ++s) {
    if (!step.is_twin(s) && !machine.like_the_one_before(s)) {  // twins are
      left = {};
      if (parts.tail(s)) price(s);
      known.reset();
    }
    const TailCosts& costs = parts.tail(s) ? own : scratch.known.tails[s];
    if (network::LinkRecorder* const recorder = machine.collectives.recorder()) {
      scratch.known.tails.push_back(costs);
      scratch.known.links[s].tail = recorder->take_part();
      scratch.known.links[s].data = links_of_data(machine, s);
    }
    if (!step.is_twin(s)) whole = without_gradients(in, step, s, costs);
    const bool asked = scratch.options.every_tail || sick_links_carry_data(machine, s, scratch);
    Seconds exposed;
    if (!costs.gradients.empty()) {
      Seconds most;
      for (const GroupGradients& group : costs.gradients) most += group.time;
      if (known && exposes_no_more(in, step, s, known->stage)) most = std::min(most, known->time);
      const Seconds without = end_of(in, step, s, whole.data_comm, whole.optimizer);
      const bool may_end_last = s == 0 || (1 + kSumRounding) * (without + most) >= last.end;
      if (may_end_last || asked) {
        exposed = exposed_on(s, costs.gradients);
        known = {s, exposed};
      }
    }
    const Seconds end = end_of(in, step, s, whole.data_comm + exposed, whole.optimizer);
    const bool is_last = s == 0 || end > last.end;
    if (is_last) last = {s, end};
    if (is_last || asked) {
      step.tails[s] = whole;
      step.tails[s].data_comm += exposed;
      step.tails[s].end = end;
    }
  }
  return last;
}

}  // namespace shardscape::step
