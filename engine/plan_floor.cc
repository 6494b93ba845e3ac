// Prices layers for floors with and without their calls, keeps what neighbouring plans share, and finds the longest
// chain of operations that a schedule forces. The header says why nothing is faster.
#include "engine/plan_floor.h"

#include <algorithm>
#include <limits>

#include "engine/network/prices/least_time.h"
#include "engine/spec/zero.h"
#include "engine/step/feasibility.h"
#include "engine/step/layers/host_work.h"
#include "engine/step/layers/layer_timer.h"
#include "engine/step/plan_pipeline.h"
#include "engine/step/training/contention.h"
#include "engine/step/training/price_training.h"
#include "engine/step/training/stage_tails.h"
#include "engine/token_prices.h"

namespace shardscape {

namespace {

using step::LayerKind;
using step::Pass;
using step::PassTime;

constexpr double kNever = std::numeric_limits<double>::infinity();

/// The time of a pass through a layer, and the price of its exchanges of experts; by that price stacks decide what runs
/// beside them.
struct TimedPass {
  PassTime time;
  Seconds exchanges;
};

/// Of steps whose layers have floors in place of costs. Made once: its tables for all layers take longer to clear than
/// such a step takes to look at.
const step::LayerCosts& no_costs() {
  static const step::LayerCosts none;
  return none;
}

/// The floor of what a stage or a chunk holds, kept for the next one, which mostly holds the same.
struct KeptFloor {
  std::optional<step::StageContents> of;
  StageFloor floor;

  template <class Make>
  const StageFloor& get(const step::StageContents& contents, const Make& make) {
    if (of == contents) return floor;
    of = contents;
    return floor = make();
  }
};

/// The longest of the chains that the header lists, in seconds. `floor_of(runs)`: of layers; `optimizers`: seconds by
/// stage.
template <class FloorOf>
double longest_chain(const step::TrainingStep& in, const FloorOf& floor_of,
                     const std::vector<double>& optimizers) {
  KeptFloor stages, chunks;
  const schedule::PipelineShape& shape = in.pipeline;
  const double m = shape.per_chunk();
  const bool cut = shape.cuts();
  double longest = 0, forwards = 0, backwards = 0, after = 0;
  for (std::int32_t s = 0; s < shape.stages; ++s) {
    const StageFloor stage = stages.get(in.contents(s), [&] { return floor_of(in.stage_layers(s)); });
    const double works = forwards + m * (stage.forward + stage.handed_on + stage.kept_back) +
                         optimizers[static_cast<std::size_t>(s)];
    if (shape.both_ways()) {
      longest = std::max(longest, works);
      continue;
    }
    if (s == 0 && cut) after = stage.kept_back;
    const double before = cut ? std::max(0.0, m - 1 - s) * stage.kept_back : 0;
    const double through =
        forwards + m * (stage.forward + stage.handed_on) + before + backwards + after + optimizers[0];
    longest = std::max({longest, works, through});
    const StageFloor chunk = shape.virtual_stages == 1 ? stage : chunks.get(in.contents(s, 0), [&] {
      return floor_of(in.chunk_layers(s, 0));
    });
    forwards += chunk.forward;
    backwards += chunk.handed_on;
  }
  return longest;
}

/// Keeps of a fabric what step::overlaps_exchanges() reads: the sizes of its dimensions, and their scopes.
FabricSpec outline(const FabricSpec& fabric) {
  FabricSpec result;
  for (const DimensionSpec& dimension : fabric.dimensions) {
    DimensionSpec plain;
    plain.shape = {dimension.size()};
    plain.scope = dimension.scope;
    result.dimensions.push_back(std::move(plain));
  }
  return result;
}

}  // namespace

System read_by_floor(FloorKind kind, System system) {
  system.device.hbm.capacity_per_stack = Bytes(0);
  if (kind == FloorKind::points) return system;
  if (kind == FloorKind::passes) system.fabric = {};
  if (kind == FloorKind::steps) system.fabric = outline(system.fabric);
  if (kind == FloorKind::steps) return system;
  system.stack.partition = {};
  system.stack.pipeline_layout.clear();
  return system;
}

WorkloadSpec read_by_floor(FloorKind kind, WorkloadSpec workload) {
  if (kind == FloorKind::passes || kind == FloorKind::calls) workload.global_batch = 0;
  return workload;
}

void keep_least(PassFloors& kept, const PassFloors& other) {
  const auto keep = [](LayerFloors& floors, const LayerFloors& others) {
    for (std::size_t kind = 0; kind < floors.size(); ++kind) {
      for (double LayerFloor::*member :
           {&LayerFloor::forward, &LayerFloor::backward, &LayerFloor::input, &LayerFloor::weight})
        floors[kind].*member = std::min(floors[kind].*member, others[kind].*member);
    }
  };
  keep(kept.alone, other.alone);
  keep(kept.launches, other.launches);
  keep(kept.paired, other.paired);
}

StageFloor sum_of(const step::TrainingStep& in, const step::LayerRuns& runs, const LayerFloors& layers,
                  double deferred_share) {
  StageFloor sum;
  for (const auto& [kind, count] : runs) {
    const LayerFloor& layer = layers[kind.index()];
    sum.forward += count * layer.forward;
    if (in.cuts(kind)) {
      sum.handed_on += count * layer.input;
      sum.kept_back += count * layer.weight;
      continue;
    }
    const double share = in.defers(kind) ? deferred_share : 0;
    const double now = std::min(layer.backward, share * layer.input + (1 - share) * layer.backward);
    sum.handed_on += count * now;
    sum.kept_back += count * (layer.backward - now);
  }
  return sum;
}

bool same_layer_groups(ParallelPlan plan, const RankOrder& one, const RankOrder& other) {
  plan.order = one;
  const network::RankGroups groups = network::PlanLayout(plan).groups();
  plan.order = other;
  const network::RankGroups others = network::PlanLayout(plan).groups();
  for (const ParallelGroup group : kLayerGroups) {
    if (groups[group] != others[group]) return false;
  }
  return groups[ParallelGroup::pipeline] == others[ParallelGroup::pipeline];
}

PlanFloor::PlanFloor(const Setting& setting, std::shared_ptr<network::SharedNetworks> networks,
                     ExecutionMode mode)
    : setting_(setting),
      networks_(std::move(networks)),
      mode_(mode),
      kinds_(step::layer_kinds(setting.model)) {}

const step::LayerCosts& PlanFloor::costs(const ParallelPlan& plan) {
  // Plans with one key mostly follow each other, so the last keys are enough.
  constexpr std::size_t kKept = 64;
  const model::LayerKey key = model::layer_key(plan, plan.microbatch);
  const auto known = std::ranges::find(costs_, key, [](const auto& entry) { return entry.first; });
  if (known != costs_.end()) return known->second;
  if (costs_.size() < kKept) costs_.emplace_back();
  auto& oldest = costs_[next_cost_++ % kKept];
  oldest = {key, step::price_layers(setting_, key, &products_)};
  return oldest.second;
}

const std::optional<model::Partition>& PlanFloor::split(const ParallelPlan& plan) {
  const auto [entry, fresh] =
      splits_.try_emplace({plan.pipeline, plan.virtual_stages, static_cast<std::int32_t>(plan.both_ways())});
  if (fresh) entry->second = step::training_partition(setting_, plan);
  return entry->second;
}

template <class TimeOf>
PassFloors PlanFloor::floors(const ParallelPlan& plan, const TimeOf& time_of) {
  const std::vector<model::StageLayers> none;
  const step::TrainingStep inputs{setting_, plan, costs(plan), none, none, {}, {}};
  const StackProfile::Communication& stack = setting_.system.stack.communication;
  const double hides = stack.expert_overlap * stack.expert_hidden;
  PassFloors result;
  for (const LayerKind kind : kinds_) {
    const Recompute recompute = kind.is_block() ? plan.recompute : Recompute::none;
    const auto put = [&](double LayerFloor::*member, Pass pass) {
      const step::Segments segments = step::segments(pass, recompute, pass == Pass::weight);
      const auto [time, exchanges] = time_of(inputs, kind, segments);
      const Seconds runs = time.total() - time[TimeClass::host];
      result.alone[kind.index()].*member = runs.value();
      result.launches[kind.index()].*member = step::segments_launch(inputs, kind, segments).value();
      result.paired[kind.index()].*member =
          (runs - std::min(time[TimeClass::expert_comm], hides * exchanges)).value();
    };
    put(&LayerFloor::forward, Pass::forward);
    put(&LayerFloor::backward, Pass::backward);
    put(&LayerFloor::input, Pass::input);
    put(&LayerFloor::weight, Pass::weight);
  }
  return result;
}

PassFloors PlanFloor::without_calls(const ParallelPlan& plan) {
  const network::RankGroups groups = network::PlanLayout(plan).groups();
  return floors(plan, [&](const step::TrainingStep& inputs, LayerKind kind, const step::Segments& segments) {
    return TimedPass{step::time_segments(inputs, kind, segments, groups, nullptr), {}};
  });
}

evaluate::Machine& PlanFloor::machine() {
  if (!machine_)
    machine_ = std::make_unique<evaluate::Machine>(setting_, SimulateOptions{.networks = networks_});
  return *machine_;
}

/// Seconds that no execution of one operation of a group falls below, and no price where siblings take turns.
Seconds PlanFloor::alone(const ParallelPlan& plan, network::CollectiveOp op, Bytes bytes,
                         const network::RankGroup& group, double calls) {
  const network::CollectivePrices& collectives = machine().collectives();
  const auto stages = network::PlanLayout(plan).stages();
  const network::CollectiveKey asked{op, bytes, group, calls};
  return executed() ? network::least_time(collectives, machine().fabric(), asked, stages)
                    : network::time_of_one_slice(collectives, asked, stages);
}

/// Floors with the calls of the plan's own order of ranks.
PassFloors PlanFloor::in_order(const ParallelPlan& plan) {
  const network::RankGroups groups = network::PlanLayout(plan).groups();
  const network::CollectivePrices& collectives = machine().collectives();
  return floors(plan, [&](const step::TrainingStep& inputs, LayerKind kind, const step::Segments& segments) {
    PassTime time = step::time_segments(inputs, kind, segments, groups, &collectives);
    const Seconds exchanges = time[TimeClass::expert_comm];
    const bool apart = plan.context > 1 && plan.tensor > 1;
    if (!executed() && plan.pipeline == 1 && !apart) return TimedPass{time, exchanges};
    // What hides was decided by prices. From the exposed time, subtract for each call the excess of its price over its
    // floor.
    for (const step::Segment& segment : segments) {
      for (const model::CollectiveCall& call : inputs.costs[kind][segment.part].calls) {
        const network::RankGroup& group = groups[call.group];
        if (group.alone()) continue;
        Seconds& shown = time[class_of(call.group)];
        const Seconds all = collectives.time({call.op, call.bytes, group});
        shown -= call.repeats * (all - alone(plan, call.op, call.bytes, group, 1));
        if (!executed() && call.group == ParallelGroup::tensor)
          shown -= call.repeats * step::spared_apart(plan, {call.op, call.bytes, group}, collectives);
        shown = std::max(Seconds(0), shown);
      }
    }
    return TimedPass{time, exchanges};
  });
}

PassFloors PlanFloor::with_calls(const ParallelPlan& plan, std::span<const RankOrder> orders) {
  PassFloors least;
  if (executed() && plan.expert > 1 && loads_differ(setting_.model, setting_.workload))
    return without_calls(plan);
  for (std::size_t i = 0; i < orders.size(); ++i) {
    const auto called = [&](const RankOrder& before) { return same_layer_groups(plan, before, orders[i]); };
    if (std::ranges::any_of(orders.first(i), called)) continue;
    ParallelPlan ordered = plan;
    ordered.order = orders[i];
    const PassFloors one = in_order(ordered);
    if (i == 0) {
      least = one;
    } else {
      keep_least(least, one);
    }
  }
  return least;
}

bool PlanFloor::possible(const ParallelPlan& plan) const {
  return step::check_plan(setting_, plan).status == Status::ok;
}

double PlanFloor::least(const ParallelPlan& plan, const PassFloors& passes) {
  return step_floor(plan, passes, static_cast<std::int32_t>(ZeroState::weights));
}

double PlanFloor::least_of_stage(const ParallelPlan& plan, const PassFloors& passes) {
  return step_floor(plan, passes, plan.zero_stage);
}

bool PlanFloor::order_decides_pairs() const { return step::order_decides_pairs(setting_.system.stack); }

double PlanFloor::step_floor(const ParallelPlan& plan, const PassFloors& passes, std::int32_t zero_stage) {
  if (!possible(plan)) return kNever;
  const std::optional<model::Partition>& layers = split(plan);
  if (!layers) return kNever;
  const step::TrainingStep inputs{
      setting_, plan, no_costs(), layers->stages, layers->chunks, {}, step::pipeline_shape(setting_, plan)};
  const schedule::PipelineShape& shape = inputs.pipeline;
  const double deferred = inputs.deferred_share();
  const bool pairs =
      shape.overlaps || shape.both_ways() || (order_decides_pairs() && setting_.model.moe.has_value());
  const std::vector<double>& optimizer = optimizers(plan, zero_stage, inputs);
  const auto chain = [&](const LayerFloors& floors) {
    return longest_chain(
        inputs, [&](const step::LayerRuns& runs) { return sum_of(inputs, runs, floors, deferred); },
        optimizer);
  };
  // A pass takes no less than its layers run, and no less than they take to launch.
  const auto either = [&](const step::LayerRuns& runs) {
    const StageFloor one = sum_of(inputs, runs, passes.alone, deferred),
                     other = sum_of(inputs, runs, passes.launches, deferred);
    return StageFloor{std::max(one.forward, other.forward), std::max(one.handed_on, other.handed_on),
                      std::max(one.kept_back, other.kept_back)};
  };
  double longest = pairs ? chain(passes.paired) : longest_chain(inputs, either, optimizer);
  if (pairs && executed()) longest = std::max(longest, chain(passes.launches));
  return longest + step::once_per_step(setting_).value();
}

const std::vector<double>& PlanFloor::optimizers(ParallelPlan plan, std::int32_t zero_stage,
                                                 const step::TrainingStep& in) {
  plan.zero_stage = zero_stage;
  const auto [seconds, fresh] = optimizers_.at({model::layer_key(plan, 1), plan.pipeline, plan.virtual_stages,
                                                plan.data, plan.zero_stage, in.pipeline.both_ways()});
  if (!fresh) return seconds;
  seconds.resize(in.layers.size());
  const step::TrainingStep sharded{
      setting_,   plan,
      in.costs,   in.layers,
      in.chunks,  model::stage_parameters(setting_.model, setting_.policy(), plan, Phase::training),
      in.pipeline};
  for (std::size_t s = 0; s < seconds.size(); ++s) {
    const auto stage = static_cast<std::int32_t>(s);
    const bool alike = s > 1 && !in.last(stage) && in.layers[s] == in.layers[s - 1];
    seconds[s] =
        alike ? seconds[s - 1] : step::optimizer_cost(sharded, setting_.system.device, stage).total().value();
  }
  return seconds;
}

Prediction PlanFloor::rates(const ParallelPlan& plan, Seconds step) {
  const std::vector<model::StageLayers> none;
  Prediction prediction;
  prediction.step_time = step;
  step::fill_training_rates({setting_, plan, no_costs(), none, none, {}, {}}, prediction);
  fill_token_prices(setting_.system, plan, prediction);
  return prediction;
}

}  // namespace shardscape
