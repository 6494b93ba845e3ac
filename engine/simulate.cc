#include "engine/simulate.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "engine/base/check.h"
#include "engine/memory/memory.h"
#include "engine/model/block.h"
#include "engine/model/embedding.h"
#include "engine/model/head.h"
#include "engine/model/partition.h"
#include "engine/network/collective_model.h"
#include "engine/network/fabric.h"
#include "engine/passes/explain.h"
#include "engine/passes/feasibility.h"
#include "engine/passes/flattened.h"
#include "engine/passes/inference.h"
#include "engine/passes/layer_costs.h"
#include "engine/passes/pools.h"
#include "engine/passes/serving_memory.h"
#include "engine/passes/step_program.h"
#include "engine/passes/training.h"
#include "engine/passes/training_bytes.h"
#include "engine/prediction_range.h"
#include "engine/timeline/step_timeline.h"

namespace shardscape {

namespace {

struct LayerKeyHash {
  std::size_t operator()(const model::LayerKey& key) const {
    std::uint64_t hash = static_cast<std::uint64_t>(key.tensor) * 0x9E3779B97F4A7C15ULL;
    hash = (hash ^ static_cast<std::uint64_t>(key.context)) * 0xFF51AFD7ED558CCDULL;
    hash = (hash ^ static_cast<std::uint64_t>(key.microbatch)) * 0xC4CEB9FE1A85EC53ULL;
    return hash ^ (hash >> 29) ^ (key.sequence_parallel ? 1U : 0U);
  }
};

using LayerMemo = std::unordered_map<model::LayerKey, passes::LayerCosts, LayerKeyHash>;

/// A sick device, and what layers cost on it.
struct SickDevice {
  Setting setting;
  LayerMemo layers;
};
/// By (share of the clock, share of the memory bandwidth).
using SickMemo = std::map<std::pair<double, double>, std::unique_ptr<SickDevice>>;
constexpr std::size_t kMostSickDevices = 4096;

std::vector<std::int32_t> counts(const std::vector<model::StageLayers>& stages) {
  std::vector<std::int32_t> list;
  for (const model::StageLayers& stage : stages) list.push_back(stage.count());
  return list;
}

/// What rerun() starts from.
struct Healthy {
  ParallelPlan plan;
  Prediction prediction;
  bool links_known = false;
  network::LinkSet links{0};  ///< that carry anything
};

}  // namespace

struct Simulator::Impl {
  Impl(const Setting& s, SimulateOptions o)
      : setting(s),
        options(o),
        fabric(s.system.fabric),
        collectives(fabric, s.system.stack.communication, s.system.device.hbm_peak()) {
    scratch.reference = o.reference;
    collectives.use_reference(o.reference);
    collectives.set_tolerance(o.collective_tolerance);
    if (!o.placement.empty()) collectives.set_placement(o.placement);
  }

  Prediction run(const ParallelPlan& plan, const FaultSet& faults, Details* details);
  Prediction rerun(const FaultSet& draw);

  // The passes, in order.
  bool partition(const ParallelPlan& plan);
  void measure_training_memory(const ParallelPlan& plan, Prediction& out, Details* details);
  void measure_inference_memory(const ParallelPlan& plan, Prediction& out, Details* details);
  void time_training(const ParallelPlan& plan, Prediction& out, Details* details);
  void time_inference(const ParallelPlan& plan, Prediction& out, Details* details);
  void measure_pools(const ParallelPlan& plan, Prediction& out, Details* details);
  void time_pools(Prediction& out, Details* details);
  void time(const ParallelPlan& plan, Prediction& out, Details* details);
  void check_range(Prediction& out, Details* details) const;
  static void forget_times(Details& details);
  void reject_unreachable(Prediction& out, Details* details);
  void find_sick_stages(const ParallelPlan& plan, const FaultSet& draw);
  [[nodiscard]] bool in_the_way(const FaultSet& draw) const;
  network::PricedNetwork& machine();

  void explain_training(const passes::TrainingInputs& inputs, std::int32_t critical, Seconds optimizer,
                        Details& details);

  const passes::LayerCosts& training_costs(const ParallelPlan& plan);
  template <class Make>
  const passes::LayerCosts& remember(LayerMemo& memo, const model::LayerKey& key, Make make);

  [[nodiscard]] bool training() const { return setting.workload.phase == Phase::training; }
  void keep_peak(const MemoryUse& use, std::int32_t stage, Prediction& out, Details* details) const;
  void set_pipeline(const ParallelPlan& plan, std::int32_t microbatches);
  [[nodiscard]] memory::MemoryInputs memory_inputs(const ParallelPlan& plan,
                                                   memory::ActivationBytes activations) const;
  [[nodiscard]] memory::MemoryInputs serving_memory(const ParallelPlan& plan,
                                                    const std::vector<model::StageLayers>& stages,
                                                    std::int64_t sequences, passes::ServerWork work) const;
  network::CollectiveModel& pool_collectives(const passes::PoolInputs& pool);

  const Setting& setting;
  SimulateOptions options;
  network::Fabric fabric;
  network::CollectiveModel collectives;
  LayerMemo training_memo;
  passes::InferenceMemo inference_memo;
  std::vector<model::StageLayers> layers;  ///< of the current plan, per stage
  schedule::PipelineShape pipeline;        ///< of the current plan
  passes::ServingShape serving;            ///< of the current plan
  // Disaggregated serving.
  passes::PoolInputs prefill, decode;  ///< of the current plan
  std::map<std::pair<std::int32_t, std::size_t>, network::CollectiveModel>
      pool_models;       ///< first rank, ranks
  std::string cut_pool;  ///< what is cut off in a pool
  passes::TrainingScratch scratch;
  // Of faults.
  SickMemo sick_memo;
  std::vector<passes::SickStage> sick_stages;  ///< of the current plan and faults
  std::optional<Healthy> healthy;              ///< of the last run(), for rerun()
  // Flattened mode.
  std::unique_ptr<network::PricedNetwork> network;
  execution::Executor executor;
  FaultSet faults;       ///< of the current point
  bool cut_off = false;  ///< execution found ranks that dead links cut off
};

// One design point: what does not divide is rejected first, then what does not fit, and only the rest is
// timed.
Prediction Simulator::Impl::run(const ParallelPlan& plan, const FaultSet& draw, Details* details) {
  SHARDSCAPE_CHECK(plan.gpus() == fabric.ranks(), plan.gpus(), fabric.ranks());
  if (options.reference) {
    training_memo.clear();
    inference_memo.clear();
  }
  Prediction out;
  collectives.set_faults(draw);
  faults = draw;
  healthy.reset();

  // 1. Divisibility and support: O(1), no numbers.
  const passes::Verdict verdict = passes::check_plan(setting, plan);
  out.status = verdict.status;
  out.reason = verdict.reason;
  if (out.status != Status::ok) return out;

  // 2. Layers to stages, by the stack's rule.
  if (!partition(plan)) {
    out.status = Status::indivisible;
    out.reason = Reason::layers_by_pipeline;
    return out;
  }

  // 3. Peak memory of every stage; the fullest decides.
  if (training()) {
    measure_training_memory(plan, out, details);
  } else {
    measure_inference_memory(plan, out, details);
  }
  if (!memory_in_range(out)) {
    reject_range(out);
    return out;
  }
  if (out.memory_peak > setting.system.device.memory_capacity()) {
    out.status = Status::memory;
    out.reason = Reason::memory_capacity;
    if (!options.time_infeasible) return out;
  }

  // 4. Time: operators, collectives, pipeline, tail.
  find_sick_stages(plan, draw);
  time(plan, out, details);

  // 5. A group that dead links cut has no time.
  if (collectives.unreachable() || cut_off) reject_unreachable(out, details);

  // 6. What is no number, or beyond all machines, is no result.
  check_range(out, details);
  if (draw.empty() && out.status == Status::ok) healthy = Healthy{plan, out, false, network::LinkSet()};
  return out;
}

void Simulator::Impl::time(const ParallelPlan& plan, Prediction& out, Details* details) {
  cut_off = false;
  cut_pool.clear();
  if (training()) {
    time_training(plan, out, details);
  } else {
    time_inference(plan, out, details);
  }
}

// The plan's divisibility, partition and memory are as they were; what no faulty link carries costs what it
// did.
Prediction Simulator::Impl::rerun(const FaultSet& draw) {
  SHARDSCAPE_CHECK(healthy.has_value(), draw.links.size());
  if (options.reference) {
    const Healthy kept = *healthy;
    Prediction out = run(kept.plan, draw, nullptr);
    healthy = kept;
    return out;
  }
  Prediction out = healthy->prediction;
  // Which links an execution uses is known after it only, and those of pools are not recorded.
  const bool recordable = options.mode == ExecutionMode::hierarchical && !healthy->plan.disaggregated();
  if (recordable && !healthy->links_known) {
    collectives.set_faults({});
    faults = {};
    sick_stages.clear();
    collectives.record_links(true);
    time(healthy->plan, out, nullptr);
    collectives.record_links(false);
    healthy->links = collectives.recorded_links();
    healthy->links_known = true;
  }
  if (!in_the_way(draw)) return healthy->prediction;
  collectives.set_faults(draw);
  faults = draw;
  find_sick_stages(healthy->plan, draw);
  time(healthy->plan, out, nullptr);
  if (collectives.unreachable() || cut_off) reject_unreachable(out, nullptr);
  check_range(out, nullptr);
  return out;
}

/// The fabric of this point, for execution.
network::PricedNetwork& Simulator::Impl::machine() {
  if (!network)
    network = std::make_unique<network::PricedNetwork>(fabric, setting.system.stack.communication);
  network->set_faults(faults);
  return *network;
}

bool Simulator::Impl::in_the_way(const FaultSet& draw) const {
  if (!healthy->links_known) return !draw.empty();
  if (training() && !draw.devices.empty()) return true;
  return std::ranges::any_of(draw.links,
                             [&](const LinkFault& fault) { return healthy->links.contains(fault.link); });
}

void Simulator::Impl::find_sick_stages(const ParallelPlan& plan, const FaultSet& draw) {
  sick_stages.clear();
  if (!training() || draw.devices.empty()) return;
  std::map<std::int32_t, std::pair<double, double>> shares;  // by rank of the fabric
  for (const DeviceFault& fault : draw.devices) {
    auto& [compute, hbm] = shares.try_emplace(fault.rank, 1.0, 1.0).first->second;
    compute *= fault.compute_share;
    hbm *= fault.hbm_share;
  }
  if (sick_memo.size() > kMostSickDevices || options.reference) sick_memo.clear();
  const model::LayerKey key{plan.tensor, plan.context, plan.microbatch, plan.sequence_parallel};
  const std::int32_t stride = network::PlanLayout(plan).stride(PlanAxis::pipeline);
  for (const auto& [rank, share] : shares) {
    std::unique_ptr<SickDevice>& device = sick_memo[share];
    if (!device) {
      device = std::make_unique<SickDevice>(SickDevice{setting, {}});
      device->setting.system.device.sm.clock = share.first * setting.system.device.sm.clock;
      device->setting.system.device.hbm.bandwidth_per_stack =
          share.second * setting.system.device.hbm.bandwidth_per_stack;
    }
    const passes::LayerCosts& costs =
        remember(device->layers, key, [&] { return passes::price_layers(device->setting, key); });
    const auto placed = std::ranges::find(options.placement, rank);
    const auto logical =
        options.placement.empty() ? rank : static_cast<std::int32_t>(placed - options.placement.begin());
    sick_stages.push_back(
        {static_cast<std::size_t>(logical / stride % plan.pipeline), logical, costs, device->setting});
  }
}

void Simulator::Impl::check_range(Prediction& out, Details* details) const {
  if (out.status == Status::unreachable || in_range(out, setting.workload.phase)) return;
  reject_range(out);
  if (details == nullptr) return;
  forget_times(*details);
  details->program.reset();
  details->executed.reset();
}

void Simulator::Impl::forget_times(Details& details) {
  details.stage_forward.clear();
  details.stage_backward.clear();
  details.operators.clear();
  details.timeline.clear();
}

void Simulator::Impl::reject_unreachable(Prediction& out, Details* details) {
  Prediction rejected;
  rejected.status = Status::unreachable;
  rejected.reason = Reason::no_route;
  rejected.microbatches = out.microbatches;
  rejected.peak_stage = out.peak_stage;
  rejected.memory_peak = out.memory_peak;
  rejected.memory = out.memory;
  rejected.prefill_memory_peak = out.prefill_memory_peak;
  out = rejected;
  if (details == nullptr) return;
  details->cut = collectives.unreachable() ? collectives.describe_unreachable() : cut_pool;
  forget_times(*details);
}

bool Simulator::Impl::partition(const ParallelPlan& plan) {
  if (plan.disaggregated() && !model::partition_layers(setting.model, setting.system.stack.partition,
                                                       plan.prefill.pipeline, 1, prefill.layers)) {
    return false;
  }
  return model::partition_layers(setting.model, setting.system.stack.partition, plan.pipeline,
                                 plan.virtual_stages, layers);
}

void Simulator::Impl::set_pipeline(const ParallelPlan& plan, std::int32_t microbatches) {
  // On one stage there is no bubble to fill: zero_bubble is plain accumulation.
  const bool plain = plan.pipeline == 1 && plan.schedule == ScheduleKind::zero_bubble;
  pipeline = {plain ? ScheduleKind::one_f_one_b : plan.schedule, plan.pipeline, plan.virtual_stages,
              microbatches};
}

memory::MemoryInputs Simulator::Impl::memory_inputs(const ParallelPlan& plan,
                                                    memory::ActivationBytes activations) const {
  return {setting,     plan,
          layers,      model::stage_parameters(setting.model, setting.workload.policy(), plan.tensor),
          activations, pipeline};
}

void Simulator::Impl::keep_peak(const MemoryUse& use, std::int32_t stage, Prediction& out,
                                Details* details) const {
  if (details != nullptr) details->stage_memory.push_back(use);
  if (stage > 0 && use.total() <= out.memory_peak) return;
  out.memory = use;
  out.memory_peak = use.total();
  out.peak_stage = stage;
}

void Simulator::Impl::measure_training_memory(const ParallelPlan& plan, Prediction& out, Details* details) {
  const std::int64_t per_microbatch = static_cast<std::int64_t>(plan.data) * plan.microbatch;
  out.microbatches = static_cast<std::int32_t>(setting.workload.global_batch / per_microbatch);
  set_pipeline(plan, out.microbatches);
  const passes::LayerCosts& costs = training_costs(plan);
  const auto policy = static_cast<std::size_t>(plan.recompute);
  memory::ActivationBytes activations;
  for (std::size_t kind = 0; kind < costs.blocks.size(); ++kind) {
    const passes::LayerCost& block = costs.blocks[kind];
    const Bytes saved = block.saved[policy];
    // A block that recomputes holds all of its activations again while its backward runs.
    const Bytes working = block.saved[static_cast<std::size_t>(Recompute::none)] - saved + block.working;
    activations.block[kind] = {saved, working, block.put_off};
  }
  activations.embedding = costs.embedding.saved[static_cast<std::size_t>(Recompute::none)];
  activations.head = costs.head.saved[static_cast<std::size_t>(Recompute::none)];
  activations.logits = costs.logits;
  activations.logits_saved = costs.logits_saved;
  activations.boundary = costs.boundary;
  const memory::MemoryInputs inputs = memory_inputs(plan, activations);
  for (std::int32_t stage = 0; stage < plan.pipeline; ++stage) {
    keep_peak(memory::training_stage(inputs, stage), stage, out, details);
  }
}

/// Of a pool or of replicas that do both, where an iteration works on so many sequences at most.
memory::MemoryInputs Simulator::Impl::serving_memory(const ParallelPlan& plan,
                                                     const std::vector<model::StageLayers>& stages,
                                                     std::int64_t sequences, passes::ServerWork work) const {
  return {setting,
          plan,
          stages,
          model::stage_parameters(setting.model, setting.workload.policy(), plan.tensor),
          passes::serving_activations(setting, plan, passes::largest_iterations(setting, sequences, work)),
          {}};
}

/// Per stage: what is left without a cache, and what one request's takes.
struct CacheSpace {
  std::vector<Bytes> free, request;
  CacheSpace(const Setting& setting, const memory::MemoryInputs& inputs, double tokens) {
    for (std::int32_t stage = 0; stage < inputs.plan.pipeline; ++stage) {
      const MemoryUse empty = memory::inference_stage(inputs, stage, 0, tokens);
      free.push_back(setting.system.device.memory_capacity() - empty.total());
      request.push_back(memory::inference_stage(inputs, stage, 1, tokens).kv_cache);
    }
  }
};

void Simulator::Impl::measure_inference_memory(const ParallelPlan& plan, Prediction& out, Details* details) {
  if (plan.disaggregated()) return measure_pools(plan, out, details);
  const std::int64_t sequences =
      passes::sequences_at_once(setting, plan, setting.workload.concurrency / plan.data);
  const memory::MemoryInputs inputs = serving_memory(plan, layers, sequences, passes::ServerWork::both);
  const double tokens = passes::cached_tokens(setting);
  const CacheSpace space(setting, inputs, tokens);
  serving = passes::serving_shape(setting, plan, space.free, space.request);
  for (std::int32_t stage = 0; stage < plan.pipeline; ++stage) {
    const auto resident = static_cast<double>(serving.resident);
    keep_peak(memory::inference_stage(inputs, stage, resident, tokens), stage, out, details);
  }
}

/// The pool that decodes as if it were alone, then the one that prefills.
void Simulator::Impl::measure_pools(const ParallelPlan& plan, Prediction& out, Details* details) {
  const auto measure = [&](passes::PoolInputs& pool, std::int64_t sequences, passes::ServerWork work,
                           double tokens, auto&& keep) {
    const memory::MemoryInputs inputs = serving_memory(pool.plan, pool.layers, sequences, work);
    const CacheSpace space(setting, inputs, tokens);
    pool.shape = passes::pool_shape(setting, pool.plan, space.free, space.request);
    for (std::int32_t stage = 0; stage < pool.plan.pipeline; ++stage) {
      keep(memory::inference_stage(inputs, stage, static_cast<double>(pool.shape.resident), tokens), stage);
    }
  };
  prefill.plan = passes::prefill_plan(plan);
  decode.plan = passes::decode_plan(plan);
  decode.layers = layers;
  const auto ranks = [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::int32_t> list;
    for (std::int64_t rank = begin; rank < end; ++rank) {
      const auto logical = static_cast<std::size_t>(rank);
      list.push_back(options.placement.empty() ? static_cast<std::int32_t>(rank)
                                               : options.placement[logical]);
    }
    return list;
  };
  prefill.placement = ranks(0, plan.prefill.gpus());
  decode.placement = ranks(plan.prefill.gpus(), plan.gpus());
  const std::int64_t sequences =
      std::min(setting.system.stack.serving.max_batch, passes::requests_per_replica(setting, decode.plan));
  measure(decode, sequences, passes::ServerWork::decoding, passes::cached_tokens(setting),
          [&](const MemoryUse& use, std::int32_t stage) { keep_peak(use, stage, out, details); });
  const std::int64_t prompts =
      passes::sequences_at_once(setting, prefill.plan, passes::requests_per_replica(setting, prefill.plan));
  measure(prefill, prompts, passes::ServerWork::prompts, passes::prefill_cached_tokens(setting),
          [&](const MemoryUse& use, std::int32_t stage) {
            out.prefill_memory_peak = std::max(out.prefill_memory_peak, use.total());
            if (details != nullptr) details->prefill.stage_memory.push_back(use);
            if (use.total() <= out.memory_peak) return;
            out.memory = use;
            out.memory_peak = use.total();
            out.peak_stage = stage;
          });
}

void Simulator::Impl::time_training(const ParallelPlan& plan, Prediction& out, Details* details) {
  const passes::TrainingInputs inputs{
      setting,
      plan,
      training_costs(plan),
      layers,
      model::stage_parameters(setting.model, setting.workload.policy(), plan.tensor),
      pipeline,
      sick_stages};
  std::int32_t critical = passes::time_training(inputs, collectives, scratch, out);
  if (options.mode == ExecutionMode::flattened && !collectives.unreachable()) {
    passes::FlattenedRun run{machine(), options.placement, executor};
    run.want_programs = details != nullptr && details->want_program;
    run.want_timeline = details != nullptr && details->want_timeline;
    critical = passes::execute_training(inputs, collectives, run, out);
    if (details != nullptr) {
      details->events = run.events;
      details->executed = std::move(run.programs);
      details->timeline = std::move(run.timeline);
    }
  }
  if (details == nullptr) return;
  details->stage_layers = counts(layers);
  details->axis_bytes = passes::training_bytes(inputs);
  for (std::size_t s = 0; s < scratch.forward.size(); ++s) {
    details->stage_forward.push_back(scratch.forward[s].total());
    details->stage_backward.push_back(scratch.backward[s].total());
  }
  explain_training(inputs, critical, out.breakdown.optimizer, *details);
  if (details->want_program || details->want_timeline) {
    details->program = std::make_shared<const timeline::StepProgram>(
        passes::make_step_program(inputs, collectives, scratch));
  }
  if (details->want_timeline && options.mode == ExecutionMode::hierarchical) {
    details->timeline = timeline::step_timeline_json(*details->program);
  }
}

void Simulator::Impl::time_inference(const ParallelPlan& plan, Prediction& out, Details* details) {
  if (plan.disaggregated()) return time_pools(out, details);
  const passes::InferenceInputs inputs{setting, plan, layers, serving};
  if (options.mode == ExecutionMode::flattened) {
    passes::FlattenedRun run{machine(), options.placement, executor};
    passes::time_inference(inputs, collectives, inference_memo, options.reference, out, &run);
    cut_off = run.unreachable;
    if (details != nullptr) details->events = run.events;
  } else {
    passes::time_inference(inputs, collectives, inference_memo, options.reference, out);
  }
  if (details == nullptr || cut_off) return;
  details->stage_layers = counts(layers);
  details->axis_bytes = passes::inference_bytes(inputs, collectives, inference_memo);
  passes::explain_inference(inputs, collectives, inference_memo, details->operators);
}

/// Collectives over the ranks of one pool, on the fabric with the faults of this point.
network::CollectiveModel& Simulator::Impl::pool_collectives(const passes::PoolInputs& pool) {
  const auto [entry, fresh] =
      pool_models.try_emplace({pool.placement.front(), pool.placement.size()}, fabric,
                              setting.system.stack.communication, setting.system.device.hbm_peak());
  network::CollectiveModel& model = entry->second;
  if (fresh) {
    model.use_reference(options.reference);
    model.set_tolerance(options.collective_tolerance);
    model.set_placement(pool.placement);
  }
  model.set_faults(faults);
  return model;
}

void Simulator::Impl::time_pools(Prediction& out, Details* details) {
  const passes::PoolCollectives models{pool_collectives(prefill), pool_collectives(decode)};
  network::PricedNetwork& priced = machine();
  std::optional<passes::FlattenedPools> flattened;
  if (options.mode == ExecutionMode::flattened)
    flattened.emplace(
        passes::FlattenedPools{{priced, prefill.placement, executor}, {priced, decode.placement, executor}});
  const bool connected = passes::time_disaggregated(
      {setting, prefill, decode}, models, priced, inference_memo, options.reference,
      flattened ? &*flattened : nullptr, out, details != nullptr ? &details->operators : nullptr);
  for (network::CollectiveModel* model : {&models.prefill, &models.decode}) {
    if (model->unreachable()) cut_pool = model->describe_unreachable();
  }
  cut_off = !connected || models.prefill.unreachable() || models.decode.unreachable();
  if (details == nullptr || cut_off) return;
  details->stage_layers = counts(decode.layers);
  details->prefill.stage_layers = counts(prefill.layers);
  if (flattened) details->events = flattened->prefill.events + flattened->decode.events;
}

template <class Make>
const passes::LayerCosts& Simulator::Impl::remember(LayerMemo& memo, const model::LayerKey& key, Make make) {
  const auto found = memo.find(key);
  return found != memo.end() ? found->second : memo.emplace(key, make()).first->second;
}

const passes::LayerCosts& Simulator::Impl::training_costs(const ParallelPlan& plan) {
  const model::LayerKey key{plan.tensor, plan.context, plan.microbatch, plan.sequence_parallel};
  return remember(training_memo, key, [&] { return passes::price_layers(setting, key); });
}

void Simulator::Impl::explain_training(const passes::TrainingInputs& inputs, std::int32_t critical,
                                       Seconds optimizer, Details& details) {
  const ParallelPlan& plan = inputs.plan;
  const model::LayerKey key{plan.tensor, plan.context, plan.microbatch, plan.sequence_parallel};
  const std::int64_t tokens = setting.workload.sequence_length;
  const double microbatches = pipeline.microbatches;
  const auto add = [&](const std::vector<model::Operator>& operators, double count, Recompute recompute) {
    passes::explain(
        {operators, "forward", count, count, recompute == Recompute::none ? 0 : count,
         recompute == Recompute::selective, network::stage_slice(critical, network::PlanLayout(plan), plan)},
        setting, plan, collectives, details.operators);
  };
  if (critical == 0) {
    add(model::embedding_operators(setting, key, tokens, model::Mode::training), microbatches,
        Recompute::none);
  }
  for (const auto& [kind, count] : layers[static_cast<std::size_t>(critical)]) {
    add(model::block_operators(setting, kind, key, tokens, model::Mode::training), microbatches * count,
        plan.recompute);
  }
  if (critical + 1 == plan.pipeline) {
    add(model::head_operators(setting, key, tokens, model::Mode::training), microbatches, Recompute::none);
  }
  passes::explain_optimizer(
      passes::optimizer_cost(inputs, setting.system.device, static_cast<std::size_t>(critical)), optimizer,
      details.operators);
}

Simulator::Simulator(const Setting& setting, SimulateOptions options)
    : impl_(std::make_unique<Impl>(setting, options)) {}
Simulator::~Simulator() = default;
Simulator::Simulator(Simulator&&) noexcept = default;
Simulator& Simulator::operator=(Simulator&&) noexcept = default;

Prediction Simulator::run(const ParallelPlan& plan, const FaultSet& faults, Details* details) {
  return impl_->run(plan, faults, details);
}

Prediction Simulator::rerun(const FaultSet& faults) { return impl_->rerun(faults); }

}  // namespace shardscape
