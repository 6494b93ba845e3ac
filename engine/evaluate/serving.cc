// Evaluates serving, by replicas that prefill and decode, or by two pools of replicas, one for each. Memory decides how
// many requests a server holds; the time follows from its iterations (engine/step).
#include <map>
#include <optional>

#include "engine/evaluate/evaluators.h"
#include "engine/model/partition.h"
#include "engine/step/serving/ffn_split.h"
#include "engine/step/serving/inference.h"
#include "engine/step/serving/serving_memory.h"
#include "engine/timeline/load_timeline.h"

namespace shardscape::evaluate {

namespace {

/// The memory of one kind of server: `sequences` is the most sequences of an iteration, `tokens` the number of tokens
/// in the cache of one request.
class ServerMemory {
 public:
  ServerMemory(const Setting& setting, const ParallelPlan& plan,
               const std::vector<model::StageLayers>& layers, std::int64_t sequences, step::ServerWork work,
               double tokens)
      : inputs_{setting,
                plan,
                layers,
                model::stage_parameters(setting.model, setting.policy(), step::attention_side(plan)),
                step::serving_activations(setting, step::attention_side(plan),
                                          step::largest_iterations(setting, sequences, work)),
                {}},
        tokens_(tokens) {
    if (plan.ffn > 0) {
      held_ = inputs_.parameters.of_stage(layers, 0);
      held_[ParallelGroup::expert_data] = {};  // other ranks hold the experts
      inputs_.held = {&held_, 1};
    }
    if (step::has_drafts(setting.workload)) draft_.emplace(setting);
    for (std::int32_t stage = 0; stage < plan.pipeline; ++stage) {
      free_.push_back(setting.system.device.memory_capacity() - of_stage(stage, 0).total());
      request_.push_back(of_stage(stage, 1).kv_cache);
    }
  }

  /// Per stage: the bytes that are free without any cache, and the cache of one request in bytes.
  [[nodiscard]] const std::vector<Bytes>& free() const { return free_; }
  [[nodiscard]] const std::vector<Bytes>& request() const { return request_; }
  /// The memory of a stage with the caches of `requests` requests.
  [[nodiscard]] MemoryUse of_stage(std::int32_t stage, std::int64_t requests) const {
    MemoryUse use = memory::inference_stage(inputs_, stage, static_cast<double>(requests), tokens_);
    if (!draft_ || stage + 1 < inputs_.plan.pipeline) return use;
    const MemoryUse draft = step::draft_memory(*draft_, inputs_.plan, static_cast<double>(requests), tokens_);
    use.weights += draft.weights;
    use.kv_cache += draft.kv_cache;
    return use;
  }

 private:
  memory::MemoryInputs inputs_;
  double tokens_;
  model::ParameterGroups held_;  ///< of ranks of attention, where others hold the experts
  std::optional<step::Draft> draft_;
  std::vector<Bytes> free_, request_;
};

/// What servers of a simulated load do over time, kept where a timeline or the sums of it are wanted.
class LoadKept {
 public:
  explicit LoadKept(Details* details) : details_(details) {}
  [[nodiscard]] serving::LoadObserver observer(const Machine& machine) {
    const bool wanted = details_ != nullptr && (details_->want_timeline || details_->want_load_mixes);
    return {wanted ? &record_ : nullptr, machine.load_watch()};
  }
  void draw() {
    if (record_.works.empty()) return;
    if (details_->want_timeline) details_->timeline = timeline::load_timeline_json(record_);
    if (details_->want_load_mixes) details_->load_mixes = serving::mixes_of(record_);
  }

 private:
  Details* details_;
  serving::LoadRecord record_;
};

/// Splits the layers of the servers that decode over their stages; false where the rule cannot be met.
bool partition_decoding(const Setting& setting, Point& point) {
  const auto split = std::make_shared<model::Partition>();
  const bool met = model::partition_layers(setting.model, setting.system.stack,
                                           {point.plan.pipeline, point.plan.virtual_stages}, *split);
  point.split = split;
  return met;
}

class Replicas final : public Evaluator {
 public:
  explicit Replicas(Machine& machine) : machine_(machine), setting_(machine.setting()) {}

  bool partition(Point& point) override { return partition_decoding(setting_, point); }

  void memory(Point& point) override {
    const ParallelPlan& plan = point.plan;
    const std::int64_t sequences =
        step::sequences_at_once(setting_, plan, step::requests_per_replica(setting_, plan));
    const ServerMemory server(setting_, plan, point.split->stages, sequences, step::ServerWork::both,
                              step::cached_tokens(setting_));
    point.serving = step::serving_shape(setting_, plan, server.free(), server.request());
    for (std::int32_t stage = 0; stage < plan.pipeline; ++stage) {
      const MemoryUse use = server.of_stage(stage, point.serving.resident);
      if (point.details != nullptr) point.details->stage_memory.push_back(use);
      point.keep_peak(use, stage);
    }
  }

  void time(Point& point) override {
    const network::CollectivePrices& collectives = machine_.collectives();
    const step::InferenceInputs inputs{setting_, point.plan, point.split->stages, point.serving};
    std::optional<step::FlattenedRun> run;
    if (machine_.flattened()) run.emplace(machine_.run_on(machine_.options().placement));
    const SimulateOptions& options = machine_.options();
    const step::LoadTiming how = options.load_floors ? step::LoadTiming::floors
                                 : options.reference ? step::LoadTiming::plain
                                                     : step::LoadTiming::quick;
    LoadKept load(point.details);
    step::time_inference(inputs, collectives, memo_, how, point.out, run ? &*run : nullptr,
                         load.observer(machine_));
    if (collectives.unreachable() || (run && run->unreachable)) point.cut_off(collectives);
    if (run && !run->deadlock.empty()) point.stand_still(run->deadlock);
    if (point.details == nullptr || point.deadlocked) return;
    if (run) point.details->events = run->events;
    if (run && run->unreachable) return;
    point.details->stage_layers = block_counts(point.split->stages);
    load.draw();
    if (setting_.workload.load) return;  // the rest is the mean request of the steady closed loop
    point.details->group_bytes = step::inference_bytes(inputs, collectives, memo_);
    step::explain_inference(inputs, collectives, memo_, point.details->operators);
  }

  [[nodiscard]] bool links_are_recorded() const override { return !machine_.flattened(); }
  void forget() override { memo_.clear(); }

 private:
  Machine& machine_;
  const Setting& setting_;
  step::InferenceMemo memo_;
};

class Pools final : public Evaluator {
 public:
  explicit Pools(Machine& machine) : machine_(machine), setting_(machine.setting()) {
    if (pools_differ(setting_)) reading_.emplace(prefill_setting(setting_));
  }

  bool partition(Point& point) override {
    const StackProfile& stack = setting_.system.stack;
    model::Partition prefill;
    if (!model::partition_layers(setting_.model, stack, {point.plan.prefill.pipeline, 1}, prefill))
      return false;
    point.prefill.layers = std::move(prefill.stages);
    return partition_decoding(setting_, point);
  }

  void memory(Point& point) override;
  void time(Point& point) override;

  [[nodiscard]] bool links_are_recorded() const override { return false; }
  void forget() override {
    memo_.clear();
    reading_memo_.clear();
  }

 private:
  [[nodiscard]] std::vector<std::int32_t> placed(std::int64_t begin, std::int64_t end) const;
  /// Sizes the pool's servers by their memory, then calls keep(use, stage) for every stage.
  template <class Keep>
  static void measure(const Setting& setting, step::PoolInputs& pool, std::int64_t sequences,
                      step::ServerWork work, double tokens, const Keep& keep);
  const network::CollectivePrices& collectives_of(const Setting& setting, const step::PoolInputs& pool);
  /// The setting of the pool that prefills.
  [[nodiscard]] const Setting& reading() const { return reading_ ? *reading_ : setting_; }

  Machine& machine_;
  const Setting& setting_;
  std::optional<Setting> reading_;  ///< of the pool that prefills, where that differs
  step::InferenceMemo memo_, reading_memo_;
  std::map<std::pair<std::int32_t, std::size_t>, std::optional<network::CollectivePrices>>
      prices_;  ///< prices of the calls of a pool, by its first rank and number of ranks
};

/// The ranks of the fabric on which the plan's ranks from `begin` to `end` lie.
std::vector<std::int32_t> Pools::placed(std::int64_t begin, std::int64_t end) const {
  const std::vector<std::int32_t>& placement = machine_.options().placement;
  std::vector<std::int32_t> list;
  for (std::int64_t rank = begin; rank < end; ++rank) {
    const auto logical = static_cast<std::size_t>(rank);
    list.push_back(placement.empty() ? static_cast<std::int32_t>(rank) : placement[logical]);
  }
  return list;
}

template <class Keep>
void Pools::measure(const Setting& setting, step::PoolInputs& pool, std::int64_t sequences,
                    step::ServerWork work, double tokens, const Keep& keep) {
  const ServerMemory server(setting, pool.plan, pool.layers, sequences, work, tokens);
  pool.shape = step::pool_shape(setting, pool.plan, server.free(), server.request(), tokens);
  for (std::int32_t stage = 0; stage < pool.plan.pipeline; ++stage) {
    keep(server.of_stage(stage, pool.shape.resident), stage);
  }
}

/// Finds the memory of both pools, each as if it were alone: first the one that decodes, then the one that prefills.
void Pools::memory(Point& point) {
  if (reading_) {  // the load of a setting may change from point to point
    reading_->workload = setting_.workload;
    reading_->workload.precision =
        policy_name(setting_.system.stack.serving.prefill_precision, setting_.workload.precision);
  }
  step::PoolInputs& prefill = point.prefill;
  step::PoolInputs& decode = point.decode;
  Details* details = point.details;
  prefill.plan = prefill_plan(point.plan);
  decode.plan = decode_plan(point.plan);
  decode.layers = point.split->stages;
  prefill.placement = placed(0, point.plan.prefill.gpus());
  decode.placement = placed(point.plan.prefill.gpus(), point.plan.gpus());
  const std::int64_t sequences =
      std::min(setting_.system.stack.serving.max_batch, step::requests_per_replica(setting_, decode.plan));
  measure(setting_, decode, sequences, step::ServerWork::decoding, step::cached_tokens(setting_),
          [&](const MemoryUse& use, std::int32_t stage) {
            if (details != nullptr) details->stage_memory.push_back(use);
            point.keep_peak(use, stage);
          });
  if (decode.plan.ffn > 0) {
    const MemoryUse experts = step::expert_ranks_memory(setting_, decode.plan, decode.layers, sequences);
    if (details != nullptr) details->expert_memory = {experts};
    if (experts.total() > point.out.memory_peak) point.keep_peak(experts, 0);
  }
  const std::int64_t prompts =
      step::sequences_at_once(reading(), prefill.plan, step::requests_per_replica(reading(), prefill.plan));
  // The fullest device is the one with the least room left of what it has.
  const Bytes own = setting_.system.device.memory_capacity(),
              theirs = reading().system.device.memory_capacity();
  measure(reading(), prefill, prompts, step::ServerWork::prompts, step::prefill_cached_tokens(reading()),
          [&](const MemoryUse& use, std::int32_t stage) {
            if (details != nullptr) details->prefill.stage_memory.push_back(use);
            point.out.prefill_memory_peak = std::max(point.out.prefill_memory_peak, use.total());
            if (use.total() / theirs <= point.out.memory_peak / point.capacity_or(own)) return;
            point.out.memory_peak = Bytes(0);  // of the other pool, or of a stage that is less full
            point.keep_peak(use, stage);
            point.out.peak_in_prefill = true;
            point.capacity = theirs;
          });
}

/// Collectives over the ranks of one pool that its degrees lay out: without those that only have experts.
const network::CollectivePrices& Pools::collectives_of(const Setting& setting, const step::PoolInputs& pool) {
  const std::vector<std::int32_t> ranks(pool.placement.begin(), pool.placement.end() - pool.plan.ffn);
  std::optional<network::CollectivePrices>& prices = prices_[{ranks.front(), ranks.size()}];
  if (!prices) {
    prices.emplace(machine_.pool_collectives(setting, ranks));
  } else {
    prices->set_faults(machine_.faults());
  }
  return *prices;
}

void Pools::time(Point& point) {
  std::vector<step::FlattenedRun> runs;
  if (machine_.flattened()) {
    runs.push_back(machine_.run_on(point.prefill.placement));
    runs.push_back(machine_.run_on(point.decode.placement));
  }
  const auto pool = [&](const Setting& setting, step::InferenceMemo& memo, const step::PoolInputs& inputs,
                        std::size_t run) {
    return step::Pool{setting, memo, inputs, collectives_of(setting, inputs),
                      runs.empty() ? nullptr : &runs[run]};
  };
  const step::Pool prefill = pool(reading(), reading_ ? reading_memo_ : memo_, point.prefill, 0),
                   decode = pool(setting_, memo_, point.decode, 1);
  LoadKept load(point.details);
  const bool connected =
      step::time_disaggregated(prefill, decode, machine_.network(), machine_.options().reference, point.out,
                               point.details != nullptr ? &point.details->operators : nullptr,
                               serving::serve_disaggregated, load.observer(machine_));
  for (const network::CollectivePrices* prices : {&prefill.collectives, &decode.collectives})
    if (!connected || prices->unreachable()) point.cut_off(*prices);
  for (const step::FlattenedRun& run : runs)
    if (!run.deadlock.empty()) point.stand_still(run.deadlock);
  if (point.details == nullptr || point.unreachable || point.deadlocked) return;
  load.draw();
  point.details->stage_layers = block_counts(point.decode.layers);
  point.details->prefill.stage_layers = block_counts(point.prefill.layers);
  if (!runs.empty()) point.details->events = runs.front().events + runs.back().events;
}

}  // namespace

std::unique_ptr<Evaluator> replica_evaluator(Machine& machine) { return std::make_unique<Replicas>(machine); }
std::unique_ptr<Evaluator> pool_evaluator(Machine& machine) { return std::make_unique<Pools>(machine); }

}  // namespace shardscape::evaluate
