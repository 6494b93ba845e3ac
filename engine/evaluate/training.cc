// Evaluates training: layers over stages, memory of every stage, the time of a step. Layers' costs, partitions and
// parameters are remembered, since neighbouring plans share them.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "engine/base/memo.h"
#include "engine/evaluate/evaluators.h"
#include "engine/model/partition.h"
#include "engine/step/feasibility.h"
#include "engine/step/plan_pipeline.h"
#include "engine/step/training/operator_table.h"
#include "engine/step/training/price_training.h"
#include "engine/step/training/sent_in_step.h"

namespace shardscape::evaluate {

namespace {

memory::ActivationBytes activations(const step::LayerCosts& costs, Recompute recompute) {
  constexpr auto kAll = static_cast<std::size_t>(Recompute::none);
  memory::ActivationBytes bytes;
  for (std::size_t kind = 0; kind < bytes.block.size(); ++kind) {
    const step::LayerCost& block = costs[step::block_layer(kind)];
    const Bytes saved = block.saved[static_cast<std::size_t>(recompute)];
    // A block that recomputes holds all of its activations again while its backward runs.
    bytes.block[kind] = {saved, block.saved[kAll] - saved + block.working, block.put_off};
  }
  bytes.embedding = costs[step::kEmbeddingLayer].saved[kAll];
  bytes.further = costs[step::kFurtherLayer].saved[kAll];
  bytes.head = costs[step::kHeadLayer].saved[kAll];
  bytes.head_put_off = costs[step::kHeadLayer].put_off;
  bytes.logits = costs.logits;
  bytes.logits_saved = costs.logits_saved;
  bytes.boundary = costs.boundary;
  return bytes;
}

/// Costs of layers on one device, and the bytes they hold, by key. References to entries stay valid when more are
/// added.
class LayerMemo {
 public:
  struct Known {
    step::LayerCosts costs;
    std::array<memory::ActivationBytes, enum_names<Recompute>().size()> activations;  ///< by recomputation
  };
  const Known& of(const Setting& setting, const model::LayerKey& key) {
    return known_.get(key, static_cast<std::size_t>(key.microbatch), [&] {
      Known known;
      known.costs = step::price_layers(setting, key, &products_);
      for (std::size_t i = 0; i < known.activations.size(); ++i)
        known.activations[i] = activations(known.costs, static_cast<Recompute>(i));
      return known;
    });
  }
  void clear() {
    known_.forget();
    products_.forget();
  }

 private:
  HandyMemo<model::LayerKey, Known> known_;  // neighbouring points differ in the microbatch alone
  step::ProductMemo products_;
};

/// The split of a plan's layers over its stages; null where the rule cannot be met.
std::shared_ptr<const model::Partition> partition_of(const Setting& setting, const ParallelPlan& plan) {
  std::optional<model::Partition> split = step::training_partition(setting, plan);
  return split ? std::make_shared<const model::Partition>(*std::move(split)) : nullptr;
}

/// Remembers partitions by their few inputs, as many plans share them.
class PartitionMemo {
 public:
  std::shared_ptr<const model::Partition> of(const Setting& setting, const ParallelPlan& plan) {
    const auto [entry, fresh] = known_.try_emplace({plan.pipeline, plan.virtual_stages, plan.both_ways()});
    if (fresh) entry->second = partition_of(setting, plan);
    return entry->second;
  }

 private:
  std::map<std::tuple<std::int32_t, std::int32_t, bool>, std::shared_ptr<const model::Partition>> known_;
};

/// Remembers the parameters of a plan's stages, and the memory that follows from them, which neighbouring plans share.
class ParameterMemo {
 public:
  struct Known {
    model::StageParameters parameters;
    std::vector<model::ParameterGroups> held;  ///< parameters by stage
    /// memory::training_state() by ZeRO stage and pipeline stage, as far as it was asked for.
    std::array<std::vector<std::optional<MemoryUse>>, 4> states;
  };
  /// `layers`: of each stage, as PartitionMemo gives them. The result is valid until the next call.
  Known& of(const Setting& setting, const ParallelPlan& plan, bool both_ways,
            const std::vector<model::StageLayers>& layers) {
    const Key key{model::layer_key(plan, 1), plan.pipeline, plan.data, plan.virtual_stages, both_ways};
    if (key_ == key) return known_;
    key_ = key;
    known_.parameters = model::stage_parameters(setting.model, setting.policy(), plan, Phase::training);
    known_.held.clear();
    for (std::size_t stage = 0; stage < layers.size(); ++stage) {
      const bool end = stage == 0 || stage + 1 == layers.size();
      const bool both = both_ways && end;  // under dualpipe the first and the last stage each hold both ends
      known_.held.push_back(
          known_.parameters.of_stage(layers[stage], stage == 0 || both, stage + 1 == layers.size() || both));
    }
    for (auto& states : known_.states) states.assign(layers.size(), std::nullopt);
    return known_;
  }
  void clear() { key_.reset(); }

 private:
  struct Key {
    model::LayerKey layers;
    std::int32_t stages = 0, data = 0, virtual_stages = 0;
    bool both_ways = false;
    friend bool operator==(const Key&, const Key&) = default;
  };
  std::optional<Key> key_;
  Known known_;
};

/// A sick device and the costs of layers on it.
struct SickDevice {
  Setting setting;
  LayerMemo layers;
};
constexpr std::size_t kMostSickDevices = 4096;
/// The mode checked executes steps of at most so many events, those of all ranks counted: some seconds, where ranks
/// that do the same are not executed once.
constexpr std::int64_t kMostChecked = 100'000'000;

class Training final : public Evaluator {
 public:
  explicit Training(Machine& machine) : machine_(machine), setting_(machine.setting()) {
    scratch_.options.reference = machine.options().reference;
  }

  bool partition(Point& point) override {
    point.split = machine_.options().reference ? partition_of(setting_, point.plan)
                                               : partitions_.of(setting_, point.plan);
    return point.split != nullptr;
  }

  void memory(Point& point) override {
    const ParallelPlan& plan = point.plan;
    point.pipeline = step::pipeline_shape(setting_, plan);
    point.out.microbatches = point.pipeline.microbatches;
    ParameterMemo::Known& parameters = parameters_of(point);
    const memory::MemoryInputs inputs{setting_,
                                      plan,
                                      point.split->stages,
                                      parameters.parameters,
                                      layers(plan).activations[static_cast<std::size_t>(plan.recompute)],
                                      point.pipeline,
                                      point.split->chunks,
                                      parameters.held};
    auto& states = parameters.states[static_cast<std::size_t>(plan.zero_stage)];
    const bool every_stage = point.details != nullptr || machine_.options().reference;
    for (std::int32_t stage = 0; stage < plan.pipeline; ++stage) {
      if (!every_stage && memory::is_no_fuller(inputs, stage)) continue;
      std::optional<MemoryUse>& state = states[static_cast<std::size_t>(stage)];
      if (!state) state = memory::training_state(inputs, stage);
      const MemoryUse use = memory::training_stage(inputs, stage, *state);
      if (point.details != nullptr) point.details->stage_memory.push_back(use);
      point.keep_peak(use, stage);
    }
  }

  void find_sick(Point& point) override;
  void time(Point& point) override;

  [[nodiscard]] bool links_are_recorded() const override { return !machine_.flattened(); }
  [[nodiscard]] bool minds_sick_devices() const override { return true; }
  void forget() override {
    layers_.clear();
    parameters_.clear();
  }

 private:
  const LayerMemo::Known& layers(const ParallelPlan& plan) {
    return layers_.of(setting_, model::layer_key(plan, plan.microbatch));
  }
  ParameterMemo::Known& parameters_of(const Point& point) {
    return parameters_.of(setting_, point.plan, point.plan.both_ways(), point.split->stages);
  }
  SickDevice& sick_device(std::pair<double, double> shares);
  std::int32_t execute(const step::TrainingStep& inputs, Point& point);
  void explain(const step::TrainingStep& inputs, std::int32_t critical, Point& point);

  Machine& machine_;
  const Setting& setting_;
  LayerMemo layers_;
  ParameterMemo parameters_;
  PartitionMemo partitions_;
  std::map<std::pair<double, double>, std::unique_ptr<SickDevice>>
      sick_;  ///< costs on a sick device, by the shares of clock and memory rate that are left
  step::TrainingScratch scratch_;
};

SickDevice& Training::sick_device(std::pair<double, double> shares) {
  std::unique_ptr<SickDevice>& device = sick_[shares];
  if (!device) {
    device = std::make_unique<SickDevice>(SickDevice{setting_, {}});
    DeviceSpec& spec = device->setting.system.device;
    spec.sm.clock = shares.first * spec.sm.clock;
    spec.hbm.bandwidth_per_stack = shares.second * spec.hbm.bandwidth_per_stack;
  }
  return *device;
}

void Training::find_sick(Point& point) {
  point.sick.clear();
  if (machine_.faults().devices.empty()) return;
  std::map<std::int32_t, std::pair<double, double>> shares;  // what is left, by rank of the fabric
  for (const DeviceFault& fault : machine_.faults().devices) {
    auto& [compute, hbm] = shares.try_emplace(fault.rank, 1.0, 1.0).first->second;
    compute *= fault.compute_share;
    hbm *= fault.hbm_share;
  }
  if (sick_.size() > kMostSickDevices || machine_.options().reference) sick_.clear();
  const std::vector<std::int32_t>& placement = machine_.options().placement;
  const std::int32_t stride = network::PlanLayout(point.plan).stride(PlanAxis::pipeline);
  for (const auto& [rank, share] : shares) {
    SickDevice& device = sick_device(share);
    const auto placed = std::ranges::find(placement, rank);
    const auto logical = placement.empty() ? rank : static_cast<std::int32_t>(placed - placement.begin());
    point.sick.push_back(
        {static_cast<std::size_t>(logical / stride % point.plan.pipeline), logical,
         device.layers.of(device.setting, model::layer_key(point.plan, point.plan.microbatch)).costs,
         device.setting, share.second});
  }
}

std::int32_t Training::execute(const step::TrainingStep& inputs, Point& point) {
  step::FlattenedRun run = machine_.run_on(machine_.options().placement);
  if (machine_.checks()) run.most_planned = kMostChecked;
  run.want_programs = point.details != nullptr && point.details->want_programs;
  run.want_timeline = point.details != nullptr && point.details->want_timeline;
  const std::int32_t critical = step::execute_training(inputs, machine_.collectives(), run, point.out);
  if (!run.deadlock.empty()) {
    point.stand_still(run.deadlock);
    return critical;
  }
  if (point.details != nullptr) {
    point.details->events = run.events;
    point.details->executed_ranks = run.executed_ranks;
    point.details->programs = std::move(run.programs);
    point.details->timeline = std::move(run.timeline);
  }
  return critical;
}

void Training::time(Point& point) {
  const network::CollectivePrices& collectives = machine_.collectives();
  const ParameterMemo::Known& parameters = parameters_of(point);
  const step::TrainingStep inputs{setting_,
                                  point.plan,
                                  layers(point.plan).costs,
                                  point.split->stages,
                                  point.split->chunks,
                                  parameters.parameters,
                                  point.pipeline,
                                  point.sick,
                                  parameters.held,
                                  &scratch_.step.turns};
  scratch_.options.every_tail = point.details != nullptr || machine_.options().reference;
  std::int32_t critical = step::time_training(inputs, collectives, scratch_, point.out);
  // Where links are recorded it is asked for prices alone.
  const bool doubted = machine_.checks() && point.out.outside_domain() && collectives.recorder() == nullptr &&
                       !step::too_long(setting_, point.plan, true);
  point.executed = (machine_.flattened() || doubted) && !collectives.unreachable();
  if (point.executed) {
    point.priced = point.out;
    const std::int32_t of_prices = std::exchange(critical, execute(inputs, point));
    if (doubted && !std::isfinite(point.out.step_time.value())) {  // too many events: it stays marked
      point.out = point.priced;
      point.executed = false;
      critical = of_prices;
    }
  }
  if (point.deadlocked) return;
  if (point.details != nullptr) explain(inputs, critical, point);
  if (collectives.unreachable()) point.cut_off(collectives);
}

void Training::explain(const step::TrainingStep& inputs, std::int32_t critical, Point& point) {
  const network::CollectivePrices& collectives = machine_.collectives();
  Details& details = *point.details;
  details.stage_layers = block_counts(point.split->stages);
  details.group_bytes = step::training_bytes(inputs, collectives);
  for (const step::StagePasses& passes : scratch_.step.stages) {
    details.stage_forward.push_back(passes.forward.total());
    details.stage_backward.push_back(passes.backward.total());
  }
  const Breakdown priced = point.executed ? Breakdown() : scratch_.step.contention_now;
  step::explain_training(inputs, critical, point.out.breakdown[TimeClass::optimizer], priced, collectives,
                         details.operators);
  if (details.want_schedule)
    details.schedule = std::make_shared<const timeline::TimedStep>(step::timed_step(inputs, scratch_.step));
  if (point.executed || (!details.want_programs && !details.want_timeline)) return;
  details.programs = step::emit_step(inputs, collectives, machine_.run_on(machine_.options().placement),
                                     step::timed_step(inputs, scratch_.step),
                                     details.want_timeline ? &details.timeline : nullptr);
}

}  // namespace

std::unique_ptr<Evaluator> training_evaluator(Machine& machine) {
  return std::make_unique<Training>(machine);
}

}  // namespace shardscape::evaluate
