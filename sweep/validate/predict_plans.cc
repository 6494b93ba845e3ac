// Predicts rows of plans: groups them by setting, builds each setting from presets, runs its rows on one simulator, and
// words the engine's rejections in terms of the row. Several processes share the groups.
#include "sweep/validate/predict_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "engine/simulate.h"

namespace shardscape::validate {

namespace {

using Refusals = std::vector<RowRefusal>;

/// The values that rows of one setting have in common.
auto setting_key(const PlanRow& row) {
  const WorkloadSpec& load = row.workload;
  return std::tuple_cat(
      std::tie(row.model, row.cluster, row.stack, row.gpus, load.phase, load.precision, load.sequence_length,
               load.global_batch, load.prompt_tokens, load.output_tokens, load.concurrency),
      std::tuple(row.plan.prefill.gpus(), load.longest_prompt(), load.longest_output()),
      std::tie(row.client, row.recipe));
}

void check_length(const ModelSpec& model, const WorkloadSpec& load, Refusals& refusals) {
  const bool training = load.phase == Phase::training;
  const std::int64_t tokens = training ? load.sequence_length : load.longest_prompt() + load.longest_output();
  if (std::string refusal = model.too_long(tokens); !refusal.empty())
    refusals.push_back({training ? "sequence_length" : "output_tokens", std::move(refusal)});
}

/// The GPUs that the pool that prefills leaves idle in its last node: each pool has nodes of its own, where one does
/// not hold both.
std::int64_t idle_between(const PlanRow& row, const FabricSpec& fabric) {
  const std::int64_t node = fabric.dimensions.front().size(), prefill = row.plan.prefill.gpus();
  return row.gpus <= node ? 0 : (node - prefill % node) % node;
}

/// The cluster's fabric with the row's GPUs; for pools of servers, which may leave GPUs idle, with the next larger
/// number of GPUs that the cluster comes in.
FabricSpec fabric_for(const PlanRow& row, const FabricTemplate& cluster, Problems& problems) {
  constexpr std::int64_t kLargestNode = 72;
  for (std::int64_t idle = 0; row.plan.disaggregated() && idle < 2 * kLargestNode; ++idle) {
    Problems unfit;
    FabricSpec fabric = cluster.instantiate(row.gpus + idle, unfit);
    if (unfit.empty() && idle >= idle_between(row, fabric)) return fabric;
  }
  return cluster.instantiate(row.gpus, problems);
}

/// Where the plan's ranks lie, of pools.
std::vector<std::int32_t> placement_of(const PlanRow& row, const FabricSpec& fabric) {
  std::vector<std::int32_t> placement;
  if (!row.plan.disaggregated()) return placement;
  // A cluster that has no GPUs to leave idle has the pools side by side.
  const std::int64_t wanted = idle_between(row, fabric), gap = row.gpus + wanted > fabric.size() ? 0 : wanted;
  for (std::int64_t rank = 0; rank < row.gpus; ++rank)
    placement.push_back(static_cast<std::int32_t>(rank < row.plan.prefill.gpus() ? rank : rank + gap));
  return placement;
}

tl::expected<Setting, Refusals> build_setting(const PlanRow& row, Presets& presets,
                                              const std::filesystem::path& folder) {
  Refusals refusals;
  const auto taken = [&](const auto& found, const char* column) {
    if (!found) refusals.push_back({column, found.error()});
    return found.has_value();
  };
  const auto model = presets.model(row.model, folder);
  const auto cluster = presets.cluster(row.cluster, folder);
  const auto stack = presets.stack(row.stack, folder);
  if (taken(model, "model")) check_length(**model, row.workload, refusals);
  taken(stack, "stack");
  FabricSpec fabric;
  if (taken(cluster, "cluster")) {
    Problems problems;
    fabric = fabric_for(row, (*cluster)->fabric, problems);
    for (const Problem& problem : problems.list()) refusals.push_back({"gpus", problem.message});
  }
  const Problems workload = row.workload.validate();
  for (const Problem& problem : workload.list()) refusals.push_back({problem.field, problem.message});
  if (!refusals.empty()) return tl::unexpected(std::move(refusals));
  Setting setting{**model, {(*cluster)->device, std::move(fabric), **stack}, row.workload};
  row.recipe.apply(setting.system.stack.serving);
  return setting;
}

template <class... Numbers>
RowRefusal impossible(const char* column, fmt::format_string<Numbers...> why, Numbers&&... numbers) {
  return {column, "impossible plan: " + fmt::format(why, std::forward<Numbers>(numbers)...)};
}

/// A rejection for one of the reasons of experts.
RowRefusal refusal_of_experts(Reason reason, const Setting& setting, const ParallelPlan& plan) {
  const ModelSpec& model = setting.model;
  const std::int64_t experts = model.moe ? model.moe->experts : 0;
  switch (reason) {
    case Reason::experts_by_ranks:
      return impossible("expert_parallel", "the {} experts of {} do not divide by it", experts, model.name);
    case Reason::slots_by_ranks:
      return impossible("expert_parallel",
                        "the {} experts of {} and {} copies of the stack do not divide by it, or are more "
                        "than one of each for every rank",
                        experts, model.name, setting.system.stack.serving.redundant_experts);
    case Reason::expert_width_by_ranks:
      return impossible("expert_tensor_parallel", "the width of an expert of {} does not divide by it",
                        model.name);
    case Reason::ranks_by_experts:
      return impossible("expert_parallel",
                        "groups of ep * etp = {} do not tile the ranks of a stage, tp * cp * dp = {}; "
                        "servers have their experts in the tensor group",
                        plan.expert * plan.expert_tensor, plan.stage_ranks());
    default:
      return impossible("expert_parallel", "model {} has no experts", model.name);
  }
}

/// A rejection by the engine, in the row's terms and numbers. Too little memory is not a rejection.
std::optional<RowRefusal> refusal(Reason reason, const Setting& setting, const ParallelPlan& plan) {
  const ModelSpec& model = setting.model;
  const WorkloadSpec& load = setting.workload;
  const std::int64_t chunks = static_cast<std::int64_t>(plan.pipeline) * plan.virtual_stages;
  const std::int64_t tokens = load.phase == Phase::training ? load.sequence_length : load.prompt_tokens;
  const std::int64_t samples = static_cast<std::int64_t>(plan.data) * plan.microbatch;
  switch (reason) {
    case Reason::none:
    case Reason::constraint:
    case Reason::memory_capacity:
    case Reason::overloaded:
      return std::nullopt;
    case Reason::heads_by_tensor:
      return impossible("tensor_parallel", "the {} heads of {} do not divide by tp {}", model.heads,
                        model.name, plan.tensor);
    case Reason::kv_heads_by_tensor:
      return impossible("tensor_parallel",
                        "neither do the {} key-value heads of {} divide by tp {} nor tp by them",
                        model.kv_heads, model.name, plan.tensor);
    case Reason::ffn_by_tensor:
      return impossible("tensor_parallel", "the feed-forward width {} of {} does not divide by tp {}",
                        model.ffn_hidden, model.name, plan.tensor);
    case Reason::sequence_by_context:
      if (plan.context > 1 && tokens % (2L * plan.context) != 0)
        return impossible("context_parallel", "the sequence of {} tokens does not divide by 2 * cp = {}",
                          tokens, 2L * plan.context);
      return impossible("sequence_parallel", "the sequence of {} tokens does not divide by cp * tp = {}",
                        tokens, static_cast<std::int64_t>(plan.context) * plan.tensor);
    case Reason::fewer_layers_than_stages:
      return impossible("pipeline_parallel", "the {} layers of {} are fewer than pp * virtual_stages = {}",
                        model.layers, model.name, chunks);
    case Reason::layers_by_pipeline:
      return impossible(
          "pipeline_parallel",
          "the {} layers of {} do not divide by pp * virtual_stages = {}, as the stack's partition asks",
          model.layers, model.name, chunks);
    case Reason::batch_by_data:
      return impossible("global_batch", "{} does not divide by dp * microbatch_size = {}", load.global_batch,
                        samples);
    case Reason::microbatches_by_stages:
      return impossible("num_microbatches",
                        "the interleaved schedule needs a number that divides by pp {}, not {}",
                        plan.pipeline, load.global_batch / samples);
    case Reason::requests_by_data:
      return impossible("concurrency", "{} does not divide by dp {}", load.concurrency, plan.data);
    case Reason::no_route:
      return impossible("cluster", "some ranks of a group cannot reach each other");
    case Reason::precision:
      return RowRefusal{"precision", fmt::format("device {} has no unit for {}", setting.system.device.name,
                                                 name_of(load.precision))};
    case Reason::split_pool:
    case Reason::schedule:
      return RowRefusal{"schedule", "is not modelled for this plan"};
    case Reason::no_experts:
    case Reason::experts_by_ranks:
    case Reason::slots_by_ranks:
    case Reason::expert_width_by_ranks:
    case Reason::ranks_by_experts:
      return refusal_of_experts(reason, setting, plan);
    case Reason::microbatches_by_directions:
      return impossible("num_microbatches", "dualpipe needs an even number, at least 2 * pp = {}, not {}",
                        2 * plan.pipeline, load.global_batch / samples);
    case Reason::layout:
      return impossible("pipeline_parallel",
                        "the stack's pipeline_layout is for other layers or another pp * virtual_stages");
    case Reason::repeated_tokens:
      return RowRefusal{"sequence_parallel", "experts beside tensor parallelism need it"};
    case Reason::no_steady_state:
      return RowRefusal{"stack", "the requests that count show no steady state of the servers"};
    case Reason::out_of_range:
      return RowRefusal{"stack",
                        "the prediction for this row is infinite, no number, or beyond all machines"};
  }
  return std::nullopt;
}

RowPrediction judged(const PlanPrediction& of, const Setting& setting, const ParallelPlan& plan) {
  if (auto why = refusal(of.prediction.reason, setting, plan)) {
    why->rejected = true;
    return tl::unexpected(Refusals{*std::move(why)});
  }
  return of;
}

/// The plan as stated; where the table does not state it, experts are dealt over as many ranks of a stage as divide
/// both.
ParallelPlan plan_of(const PlanRow& row, const ModelSpec& model) {
  ParallelPlan plan = row.plan;
  if (row.experts_unstated && model.moe)
    plan.expert = static_cast<std::int32_t>(std::gcd(model.moe->experts, plan.stage_ranks()));
  return plan;
}

/// The part of a run's predicted memory that the row has measured.
Bytes measured_memory(const Prediction& prediction, const Details& details, const StackProfile& stack,
                      MemoryOf of) {
  if (of == MemoryOf::fullest_reserved || details.stage_memory.empty())
    return prediction.memory_peak - prediction.memory.reserve;
  const MemoryUse& last = details.stage_memory.back();
  return last.total() - last.reserve - (1 - 1 / stack.memory.fragmentation) * last.activations;
}

/// Runs the plan as stated; where the table does not state recomputation, with the least that fits, or the most where
/// nothing fits: the measured run did fit, and that comes closest.
PlanPrediction run_row(Simulator& simulator, const StackProfile& stack, const PlanRow& row,
                       ParallelPlan plan) {
  Details details;
  Details* const wanted = row.memory_of == MemoryOf::fullest_reserved ? nullptr : &details;
  Prediction prediction = simulator.run(plan, {}, wanted);
  for (const Recompute stronger : {Recompute::selective, Recompute::full}) {
    if (!row.recompute_unstated || prediction.status != Status::memory) break;
    if (stronger <= plan.recompute) continue;
    plan.recompute = stronger;
    details = {};
    prediction = simulator.run(plan, {}, wanted);
  }
  return {prediction, measured_memory(prediction, details, stack, row.memory_of)};
}

/// Indices of rows that share a setting, and so a simulator.
using RowsOfSetting = std::vector<std::size_t>;

std::vector<RowsOfSetting> by_setting(std::span<const PlanRow> rows) {
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return setting_key(rows[a]) < setting_key(rows[b]); });
  std::vector<RowsOfSetting> groups;
  for (const std::size_t row : order) {
    const bool same = !groups.empty() && setting_key(rows[groups.back().front()]) == setting_key(rows[row]);
    if (!same) groups.emplace_back();
    groups.back().push_back(row);
  }
  return groups;
}

/// What a rank tells rank 0: a row's index and its prediction.
struct Told {
  std::uint64_t row = 0;
  PlanPrediction prediction;
};

/// Gathers on rank 0 what each rank has predicted; rows that were refused have `known` false afterwards.
void gather_predictions(ranks::Ranks& together, std::vector<RowPrediction>& results,
                        std::vector<char>& known) {
  std::string own;
  for (std::size_t row = 0; row < results.size(); ++row) {
    if (known[row] == 0 || !results[row]) continue;
    ranks::append_value(Told{row, *results[row]}, own);
  }
  for (const std::string& text : together.gather(own)) {
    for (std::string_view rest(text); !rest.empty();) {
      Told told;
      ranks::take_value(told, rest);
      results[told.row] = told.prediction;
      known[told.row] = 1;
    }
  }
}

}  // namespace

std::vector<RowRefusal> check_presets(const std::string& model, const std::string& cluster,
                                      const std::string& stack, Presets& presets,
                                      const std::filesystem::path& folder) {
  Refusals refusals;
  const auto check = [&](const auto& found, const char* column) {
    if (!found) refusals.push_back({column, found.error()});
  };
  if (!model.empty()) check(presets.model(model, folder), "model");
  if (!cluster.empty()) check(presets.cluster(cluster, folder), "cluster");
  if (!stack.empty()) check(presets.stack(stack, folder), "stack");
  return refusals;
}

bool setting_less(const PlanRow& a, const PlanRow& b) { return setting_key(a) < setting_key(b); }

std::vector<RowPrediction> predict_plans(std::span<const PlanRow> rows, Presets& presets,
                                         const std::filesystem::path& folder, bool reference,
                                         ranks::Ranks* together) {
  std::vector<RowPrediction> results(rows.size());
  std::vector<char> known(rows.size());
  const auto predict = [&](const RowsOfSetting& group) {
    const auto setting = build_setting(rows[group.front()], presets, folder);
    std::optional<Simulator> simulator;
    if (setting)
      simulator.emplace(
          *setting, SimulateOptions{.reference = reference,
                                    .time_infeasible = true,
                                    .placement = placement_of(rows[group.front()], setting->system.fabric)});
    for (const std::size_t place : group) {
      if (std::exchange(known[place], 1) != 0) continue;
      if (!setting) {
        results[place] = tl::unexpected(setting.error());
        continue;
      }
      const ParallelPlan plan = plan_of(rows[place], setting->model);
      results[place] = judged(run_row(*simulator, setting->system.stack, rows[place], plan), *setting, plan);
    }
  };
  const std::vector<RowsOfSetting> groups = by_setting(rows);
  const int size = together == nullptr ? 1 : together->size(),
            rank = together == nullptr ? 0 : together->rank();
  for (std::size_t group = static_cast<std::size_t>(rank); group < groups.size();
       group += static_cast<std::size_t>(size))
    predict(groups[group]);
  if (size == 1) return results;
  gather_predictions(*together, results, known);
  // Rank 0 repeats refused rows: refusals are texts, and quickly found again.
  for (const RowsOfSetting& group : groups) {
    const bool complete = std::ranges::all_of(group, [&](std::size_t place) { return known[place] != 0; });
    if (rank == 0 && !complete) predict(group);
  }
  return results;
}

}  // namespace shardscape::validate
