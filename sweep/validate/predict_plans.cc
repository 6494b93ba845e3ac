#include "sweep/validate/predict_plans.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "engine/simulate.h"

namespace shardscape::validate {

namespace {

using Refusals = std::vector<RowRefusal>;

/// What rows of one setting agree in.
auto setting_key(const PlanRow& row) {
  const WorkloadSpec& load = row.workload;
  return std::tie(row.model, row.cluster, row.stack, row.gpus, load.phase, load.precision,
                  load.sequence_length, load.global_batch, load.prompt_tokens, load.output_tokens,
                  load.concurrency);
}

/// A table of learned positions is as long as it is.
void check_positions(const ModelSpec& model, const WorkloadSpec& load, Refusals& refusals) {
  const bool training = load.phase == Phase::training;
  const std::int64_t tokens = training ? load.sequence_length : load.prompt_tokens + load.output_tokens;
  if (model.position != PositionKind::learned || tokens <= model.max_positions) return;
  refusals.push_back({training ? "sequence_length" : "output_tokens",
                      std::to_string(tokens) + " tokens are more than the " +
                          std::to_string(model.max_positions) + " learned positions of model " + model.name});
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
  if (taken(model, "model")) check_positions(**model, row.workload, refusals);
  taken(stack, "stack");
  FabricSpec fabric;
  if (taken(cluster, "cluster")) {
    Problems problems;
    fabric = (*cluster)->fabric.instantiate(row.gpus, problems);
    for (const Problem& problem : problems.list()) refusals.push_back({"gpus", problem.message});
  }
  const Problems workload = row.workload.validate();
  for (const Problem& problem : workload.list()) refusals.push_back({problem.field, problem.message});
  if (!refusals.empty()) return tl::unexpected(std::move(refusals));
  return Setting{**model, {(*cluster)->device, std::move(fabric), **stack}, row.workload};
}

/// The engine's rejection in the words of the table. Memory is no rejection.
std::optional<RowRefusal> refusal(const Prediction& prediction) {
  switch (prediction.reason) {
    case Reason::none:
    case Reason::constraint:
    case Reason::memory_capacity:
      return std::nullopt;
    case Reason::heads_by_tensor:
      return RowRefusal{"tensor_parallel", "impossible plan: the heads do not divide by tp"};
    case Reason::kv_heads_by_tensor:
      return RowRefusal{"tensor_parallel",
                        "impossible plan: neither do the key-value heads divide by tp nor tp by them"};
    case Reason::ffn_by_tensor:
      return RowRefusal{"tensor_parallel", "impossible plan: the feed-forward width does not divide by tp"};
    case Reason::sequence_by_context:
      return RowRefusal{
          "context_parallel",
          "impossible plan: the sequence does not divide by 2 * cp, or by cp * tp with sequence "
          "parallelism"};
    case Reason::fewer_layers_than_stages:
      return RowRefusal{"pipeline_parallel",
                        "impossible plan: there are fewer layers than pp * virtual_stages"};
    case Reason::layers_by_pipeline:
      return RowRefusal{"pipeline_parallel",
                        "impossible plan: the layers do not divide by pp * virtual_stages, as the stack's "
                        "partition asks"};
    case Reason::batch_by_data:
      return RowRefusal{"global_batch", "impossible plan: does not divide by dp * microbatch_size"};
    case Reason::microbatches_by_stages:
      return RowRefusal{"num_microbatches",
                        "impossible plan: the interleaved schedule needs a number that divides by pp"};
    case Reason::requests_by_data:
      return RowRefusal{"concurrency", "impossible plan: does not divide by dp"};
    case Reason::no_route:
      return RowRefusal{"cluster", "impossible plan: a group of ranks cannot reach itself"};
    case Reason::precision:
      return RowRefusal{"precision", "the device has no unit for it"};
    case Reason::schedule:
      return RowRefusal{"schedule", "is not modelled for this plan"};
  }
  return std::nullopt;
}

RowPrediction judged(const Prediction& prediction) {
  if (auto why = refusal(prediction)) {
    why->rejected = true;
    return tl::unexpected(Refusals{*std::move(why)});
  }
  return prediction;
}

}  // namespace

Bytes reserved_by_allocator(const Prediction& prediction) {
  return prediction.memory_peak - prediction.memory.reserve;
}

bool setting_less(const PlanRow& a, const PlanRow& b) { return setting_key(a) < setting_key(b); }

std::vector<RowPrediction> predict_plans(std::span<const PlanRow> rows, Presets& presets,
                                         const std::filesystem::path& folder, bool reference) {
  std::vector<RowPrediction> results(rows.size());
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return setting_key(rows[a]) < setting_key(rows[b]); });
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    const PlanRow& first = rows[order[begin]];
    while (end < order.size() && setting_key(rows[order[end]]) == setting_key(first)) ++end;
    const auto setting = build_setting(first, presets, folder);
    std::optional<Simulator> simulator;
    if (setting) {
      simulator.emplace(*setting, SimulateOptions{.reference = reference, .time_infeasible = true});
    }
    for (std::size_t i = begin; i < end; ++i) {
      results[order[i]] =
          simulator ? judged(simulator->run(rows[order[i]].plan)) : tl::unexpected(setting.error());
    }
  }
  return results;
}

}  // namespace shardscape::validate
