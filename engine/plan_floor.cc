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

/// Seconds that a stage of a plan takes at least for one microbatch, over all its chunks.
struct StageFloor {
  double forward = 0;
  double handed_on = 0;  ///< part of the backward that the stage before waits for
  double kept_back = 0;  ///< rest of the backward
};

/// Sums the floors of the layers of a stage.
class StageSum {
 public:
  /// `launches` is null where launching does not bound the pass.
  StageSum(const LayerFloors& layers, const LayerFloors* launches, bool cut, double deferred_share)
      : runs_(layers), launches_(launches), cut_(cut), deferred_share_(deferred_share) {}

  /// What a stage or a chunk holds beside its blocks.
  struct Ends {
    bool embedding = false, head = false;
  };
  [[nodiscard]] StageFloor of(const model::StageLayers& blocks, Ends ends) const {
    const StageFloor runs = sum_of(runs_, blocks, ends);
    if (launches_ == nullptr) return runs;
    const StageFloor launched = sum_of(*launches_, blocks, ends);
    return {std::max(runs.forward, launched.forward), std::max(runs.handed_on, launched.handed_on),
            std::max(runs.kept_back, launched.kept_back)};
  }

 private:
  [[nodiscard]] StageFloor sum_of(const LayerFloors& layers, const model::StageLayers& blocks,
                                  Ends ends) const {
    StageFloor sum;
    for (const model::BlockRun& run : blocks) {
      const LayerFloor& block = layers[step::block_layer(run.kind).index()];
      sum.forward += run.count * block.forward;
      sum.handed_on += run.count * (cut_ ? block.input : block.backward);
      if (cut_) sum.kept_back += run.count * block.weight;
    }
    if (ends.embedding) add(layers, sum, step::kEmbeddingLayer, 1);
    add(layers, sum, step::kFurtherLayer, blocks.further());
    if (ends.head) add(layers, sum, step::kHeadLayer, 1);
    return sum;
  }
  void add(const LayerFloors& layers, StageFloor& sum, LayerKind kind, double count) const {
    const LayerFloor& layer = layers[kind.index()];
    sum.forward += count * layer.forward;
    const double share = kind == step::kHeadLayer ? deferred_share_ : 0;
    const double now = std::min(layer.backward, share * layer.input + (1 - share) * layer.backward);
    sum.handed_on += count * now;
    sum.kept_back += count * (layer.backward - now);
  }

  const LayerFloors& runs_;
  const LayerFloors* launches_;
  bool cut_;
  double deferred_share_;
};

/// The longest of the chains that the header lists, in seconds. `optimizers`: seconds by stage.
double longest_chain(const schedule::PipelineShape& shape, const std::vector<model::StageLayers>& layers,
                     const std::vector<model::StageLayers>& first_chunks, const StageSum& stages,
                     const std::vector<double>& optimizers) {
  const double m = shape.per_chunk();
  const bool cut = shape.cuts();
  const std::int32_t last = shape.parts() - 1;
  double longest = 0, forwards = 0, backwards = 0, after = 0;
  for (std::int32_t s = 0; s < shape.stages; ++s) {
    const StageFloor stage =
        stages.of(layers[static_cast<std::size_t>(s)], {shape.holds(s, 0), shape.holds(s, last)});
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
    const StageFloor chunk = shape.virtual_stages == 1 ? stage
                                                       : stages.of(first_chunks[static_cast<std::size_t>(s)],
                                                                   {.embedding = shape.part(s, 0) == 0});
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

bool same_layer_groups(ParallelPlan plan, const RankOrder& one, const RankOrder& other) {
  plan.order = one;
  const network::RankGroups groups = network::PlanLayout(plan).groups();
  plan.order = other;
  const network::RankGroups others = network::PlanLayout(plan).groups();
  for (const ParallelGroup group :
       {ParallelGroup::tensor, ParallelGroup::context, ParallelGroup::expert, ParallelGroup::expert_tensor}) {
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
  // Plans with one key follow each other, so the last few keys are enough.
  constexpr std::size_t kKept = 16;
  const model::LayerKey key = model::layer_key(plan, plan.microbatch);
  const auto known = std::ranges::find(costs_, key, [](const auto& entry) { return entry.first; });
  if (known != costs_.end()) return known->second;
  if (costs_.size() < kKept) costs_.emplace_back();
  auto& oldest = costs_[next_cost_++ % kKept];
  oldest = {key, step::price_layers(setting_, key)};
  return oldest.second;
}

const PlanFloor::Split& PlanFloor::split(const ParallelPlan& plan) {
  const bool both_ways = plan.both_ways();
  const auto [entry, fresh] =
      splits_.try_emplace({plan.pipeline, plan.virtual_stages, static_cast<std::int32_t>(both_ways)});
  if (fresh) {
    model::Partition partition;
    entry->second.met =
        model::partition_layers(setting_.model, setting_.system.stack,
                                {plan.pipeline, plan.virtual_stages, Phase::training}, partition);
    if (entry->second.met && both_ways) model::fold_both_ways(partition);
    const auto each = static_cast<std::size_t>(plan.virtual_stages);
    for (std::size_t c = 0; c < partition.chunks.size(); c += each)
      entry->second.first_chunks.push_back(partition.chunks[c]);
    entry->second.layers = std::move(partition.stages);
    entry->second.chunks = std::move(partition.chunks);
  }
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
  const Split& layers = split(plan);
  if (!layers.met) return kNever;
  const schedule::PipelineShape shape = step::pipeline_shape(setting_, plan);
  const double deferred = deferred_heads(plan, setting_.system.stack, shape.microbatches);
  const bool pairs =
      shape.overlaps || shape.both_ways() || (order_decides_pairs() && setting_.model.moe.has_value());
  const auto chain = [&](const LayerFloors& runs, const LayerFloors* launches) {
    const StageSum stages(runs, launches, shape.cuts(), deferred / shape.microbatches);
    return longest_chain(shape, layers.layers, layers.first_chunks, stages,
                         optimizers(plan, zero_stage, layers, shape));
  };
  double longest = pairs ? chain(passes.paired, nullptr) : chain(passes.alone, &passes.launches);
  if (pairs && executed()) longest = std::max(longest, chain(passes.launches, nullptr));
  return longest + step::once_per_step(setting_).value();
}

const std::vector<double>& PlanFloor::optimizers(ParallelPlan plan, std::int32_t zero_stage,
                                                 const Split& split, const schedule::PipelineShape& shape) {
  constexpr std::size_t kKept = 32;  // neighbouring plans share them, so the last few are enough
  plan.zero_stage = zero_stage;
  const Sharding key{model::layer_key(plan, 1), plan.pipeline,    plan.virtual_stages, plan.data,
                     plan.zero_stage,           shape.both_ways()};
  const auto known = std::ranges::find(optimizers_, key, [](const auto& entry) { return entry.first; });
  if (known != optimizers_.end()) return known->second;
  if (optimizers_.size() < kKept) optimizers_.emplace_back();
  auto& [sharding, seconds] = optimizers_[next_optimizer_++ % kKept];
  sharding = key;
  seconds.resize(split.layers.size());
  const step::LayerCosts no_costs;
  const std::vector<model::StageLayers> no_chunks;
  const step::TrainingStep inputs{
      setting_,  plan,
      no_costs,  split.layers,
      no_chunks, model::stage_parameters(setting_.model, setting_.policy(), plan, Phase::training),
      shape};
  for (std::size_t s = 0; s < seconds.size(); ++s) {
    const auto stage = static_cast<std::int32_t>(s);
    const bool alike = s > 1 && !inputs.last(stage) && split.layers[s] == split.layers[s - 1];
    seconds[s] =
        alike ? seconds[s - 1] : step::optimizer_cost(inputs, setting_.system.device, stage).total().value();
  }
  return seconds;
}

Prediction PlanFloor::rates(const ParallelPlan& plan, Seconds step) {
  const std::vector<model::StageLayers> none;
  const step::LayerCosts costs;
  Prediction prediction;
  prediction.step_time = step;
  step::fill_training_rates({setting_, plan, costs, none, none, {}, {}}, prediction);
  return prediction;
}

}  // namespace shardscape
