#include "engine/plan_floor.h"

#include <algorithm>
#include <limits>

#include "engine/step/feasibility.h"

namespace shardscape {

namespace {

using step::LayerKind;
using step::Pass;
using step::PassTime;

constexpr double kNever = std::numeric_limits<double>::infinity();

/// What the stages of a plan do for one microbatch, over all their chunks.
struct StageFloor {
  double forward = 0;
  double handed_on = 0;  ///< of the backward, what the stage before waits for
  double kept_back = 0;  ///< the rest of it, per microbatch
};

/// Sums over the layers of a stage.
class StageSum {
 public:
  StageSum(const LayerFloors& layers, bool cut, double deferred_share)
      : layers_(layers), cut_(cut), deferred_share_(deferred_share) {}

  [[nodiscard]] StageFloor of(const model::StageLayers& blocks, bool first, bool last) const {
    StageFloor sum;
    for (const model::BlockRun& run : blocks) {
      const LayerFloor& block = layers_[step::block_layer(run.kind).index()];
      sum.forward += run.count * block.forward;
      sum.handed_on += run.count * (cut_ ? block.input : block.backward);
      if (cut_) sum.kept_back += run.count * block.weight;
    }
    if (first) add(sum, step::kEmbeddingLayer, 1);
    add(sum, step::kFurtherLayer, blocks.further());
    if (last) add(sum, step::kHeadLayer, 1);
    return sum;
  }

 private:
  void add(StageFloor& sum, LayerKind kind, double count) const {
    const LayerFloor& layer = layers_[kind.index()];
    sum.forward += count * layer.forward;
    const double share = kind == step::kHeadLayer ? deferred_share_ : 0;
    const double now = std::min(layer.backward, share * layer.input + (1 - share) * layer.backward);
    sum.handed_on += count * now;
    sum.kept_back += count * (layer.backward - now);
  }

  const LayerFloors& layers_;
  bool cut_;
  double deferred_share_;
};

/// The longest of the chains of the header.
double longest_chain(const schedule::PipelineShape& shape, const std::vector<model::StageLayers>& layers,
                     const StageSum& stages) {
  const double m = shape.per_chunk(), chunks = shape.virtual_stages;
  const bool cut = shape.kind == ScheduleKind::zero_bubble;
  const std::int32_t last = shape.parts() - 1;
  double longest = 0, forwards = 0, backwards = 0, after = 0;
  for (std::int32_t s = 0; s < shape.stages; ++s) {
    const StageFloor stage =
        stages.of(layers[static_cast<std::size_t>(s)], shape.holds(s, 0), shape.holds(s, last));
    const double works = forwards + m * (stage.forward + stage.handed_on + stage.kept_back);
    if (shape.both_ways()) {
      longest = std::max(longest, works);
      continue;
    }
    if (s == 0 && cut) after = stage.kept_back;
    const double before = cut ? std::max(0.0, m - 1 - s) * stage.kept_back : 0;
    const double through = forwards + m * (stage.forward + stage.handed_on) + before + backwards + after;
    longest = std::max({longest, works, through});
    forwards += stage.forward / chunks;
    backwards += stage.handed_on / chunks;
  }
  return longest;
}

}  // namespace

PlanFloor::PlanFloor(const Setting& setting) : setting_(setting), kinds_(step::layer_kinds(setting.model)) {}

const step::LayerCosts& PlanFloor::costs(const ParallelPlan& plan) {
  // Plans come by their keys: the last few are enough.
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
  const bool both_ways = plan.schedule == ScheduleKind::dualpipe && plan.pipeline > 1;
  const auto [entry, fresh] =
      splits_.try_emplace({plan.pipeline, plan.virtual_stages, static_cast<std::int32_t>(both_ways)});
  if (fresh) {
    model::Partition partition;
    entry->second.met =
        model::partition_layers(setting_.model, setting_.system.stack,
                                {plan.pipeline, plan.virtual_stages, Phase::training}, partition);
    if (entry->second.met && both_ways) model::fold_both_ways(partition);
    entry->second.layers = std::move(partition.stages);
  }
  return entry->second;
}

template <class TimeOf>
PassFloors PlanFloor::floors(const ParallelPlan& plan, const TimeOf& time_of) {
  const std::vector<model::StageLayers> none;
  const step::TrainingStep inputs{setting_, plan, costs(plan), none, none, {}, {}};
  PassFloors result;
  for (const LayerKind kind : kinds_) {
    const Recompute recompute = kind.is_block() ? plan.recompute : Recompute::none;
    const auto put = [&](double LayerFloor::*member, Pass pass, bool cut) {
      const PassTime time = time_of(inputs, kind, step::segments(pass, recompute, cut));
      const Seconds hidden = time[TimeClass::expert_comm] + time[TimeClass::host];
      result.alone[kind.index()].*member = time.total().value();
      result.paired[kind.index()].*member = (time.total() - hidden).value();
    };
    put(&LayerFloor::forward, Pass::forward, false);
    put(&LayerFloor::backward, Pass::backward, false);
    put(&LayerFloor::input, Pass::input, true);
    put(&LayerFloor::weight, Pass::weight, true);
  }
  return result;
}

PassFloors PlanFloor::without_calls(const ParallelPlan& plan) {
  const network::RankGroups groups = network::PlanLayout(plan).groups();
  return floors(plan, [&](const step::TrainingStep& inputs, LayerKind kind, const step::Segments& segments) {
    return step::time_segments(inputs, kind, segments, groups, nullptr);
  });
}

PassFloors PlanFloor::with_calls(const ParallelPlan& plan, std::span<const RankOrder> orders) {
  if (!machine_) machine_ = std::make_unique<evaluate::Machine>(setting_, SimulateOptions{});
  std::vector<network::RankGroups> seen;
  PassFloors least;
  for (const RankOrder& order : orders) {
    ParallelPlan ordered = plan;
    ordered.order = order;
    const network::RankGroups groups = network::PlanLayout(ordered).groups();
    const auto same = [&](const network::RankGroups& other) {
      for (const ParallelGroup group : {ParallelGroup::tensor, ParallelGroup::context, ParallelGroup::expert,
                                        ParallelGroup::expert_tensor}) {
        if (groups[group] != other[group]) return false;
      }
      return true;
    };
    if (std::ranges::any_of(seen, same)) continue;
    const PassFloors one = floors(
        ordered, [&](const step::TrainingStep& inputs, LayerKind kind, const step::Segments& segments) {
          return step::time_segments(inputs, kind, segments, groups, &machine_->collectives());
        });
    const auto keep = [&](LayerFloors& kept, const LayerFloors& other) {
      for (std::size_t kind = 0; kind < kept.size(); ++kind) {
        for (double LayerFloor::*member :
             {&LayerFloor::forward, &LayerFloor::backward, &LayerFloor::input, &LayerFloor::weight})
          kept[kind].*member = std::min(kept[kind].*member, other[kind].*member);
      }
    };
    if (seen.empty()) {
      least = one;
    } else {
      keep(least.alone, one.alone);
      keep(least.paired, one.paired);
    }
    seen.push_back(groups);
  }
  return least;
}

bool PlanFloor::possible(const ParallelPlan& plan) const {
  return step::check_plan(setting_, plan).status == Status::ok;
}

double PlanFloor::least(const ParallelPlan& plan, const PassFloors& passes) {
  if (!possible(plan)) return kNever;
  const Split& layers = split(plan);
  if (!layers.met) return kNever;
  const schedule::PipelineShape shape = step::pipeline_shape(setting_, plan);
  const double deferred = deferred_heads(plan, setting_.system.stack, shape.microbatches);
  const bool pairs = shape.overlaps || shape.both_ways();
  const StageSum stages(pairs ? passes.paired : passes.alone, shape.kind == ScheduleKind::zero_bubble,
                        deferred / shape.microbatches);
  return longest_chain(shape, layers.layers, stages) + setting_.system.stack.host.step_fixed.value();
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
