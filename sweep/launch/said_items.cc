#include "sweep/launch/said_items.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "engine/spec/plan_axes.h"
#include "engine/spec/zero.h"
#include "sweep/yaml/specs.h"

namespace shardscape::launch {

namespace {

/// Keys of stacks that are measured, and facts that follow from the version of a program. "host." is all below it.
constexpr auto kMeasured = std::to_array<std::string_view>({"name",
                                                            "fused_sinks_from",
                                                            "fused_residual",
                                                            "fused_pointwise",
                                                            "zero_slice",
                                                            "host.",
                                                            "quantisation.",
                                                            "memory.",
                                                            "communication.call",
                                                            "communication.rank_step",
                                                            "communication.rank_step_scale_out",
                                                            "communication.local_copy",
                                                            "communication.scale_up_fraction",
                                                            "communication.scale_out_fraction",
                                                            "communication.scale_out_scaling",
                                                            "communication.data_hidden",
                                                            "communication.data_sms",
                                                            "communication.expert_hidden",
                                                            "communication.protocols",
                                                            "communication.all_reduce",
                                                            "communication.algorithms",
                                                            "experts.forward_layer",
                                                            "experts.backward_layer",
                                                            "experts.per_expert",
                                                            "experts.load_wait",
                                                            "experts.fused_bias",
                                                            "experts.plain_launch",
                                                            "serving.answer_after",
                                                            "serving.host_bandwidth",
                                                            "serving.disk_bandwidth",
                                                            "serving.frontend",
                                                            "serving.eager_floor",
                                                            "serving.eager_layer",
                                                            "serving.eager_expert_layer",
                                                            "serving.eager_fp4_layer",
                                                            "serving.first_prompts",
                                                            "serving.converted_share",
                                                            "serving.fp8_expert_share",
                                                            "serving.fp8_blackwell_share"});

/// A choice of a stack: the phase that it is of, and when it has no effect.
struct StackChoice {
  std::string_view key;
  Phases phases;
  bool (*idle)(const Case& of);
};
using C = const Case&;
bool never(C /*of*/) { return false; }
bool split_tensor(C of) { return of.plan.tensor > 1; }
bool pipelined(C of) { return of.plan.pipeline > 1; }
bool copies(C of) { return of.plan.data * of.plan.context > 1; }
bool dealt(C of) { return of.experts() && of.plan.expert > 1; }
bool narrow(C of) { return operand_bytes(of.workload().policy().products) <= operand_bytes(Precision::fp8); }
bool loaded(C of) { return of.workload().load.has_value(); }

constexpr auto kChoices = std::to_array<StackChoice>({
    {"attention", Phases::both, never},
    {"graphs_from", Phases::training, [](C of) { return !of.setting.trains_on_graphs(); }},
    {"partition", Phases::training,
     [](C of) { return !pipelined(of) || !of.stack().pipeline_layout.empty(); }},
    {"pipeline_layout", Phases::training, [](C of) { return of.stack().pipeline_layout.empty(); }},
    {"zero2_gradients", Phases::training, [](C of) { return of.plan.zero_stage != 2; }},
    {"fused_loss", Phases::training, [](C of) { return !of.stack().fused_loss; }},
    {"keep_gathered", Phases::training, [](C of) { return !of.stack().keep_gathered || !split_tensor(of); }},
    {"selective_recompute", Phases::training,
     [](C of) { return of.plan.recompute != Recompute::selective; }},
    {"kept.attention_output", Phases::training,
     [](C of) { return !narrow(of) || of.stack().kept.attention_output == KeptFormat::computed; }},
    {"kept.activation_inputs", Phases::training,
     [](C of) { return !narrow(of) || of.stack().kept.activation_inputs == KeptFormat::computed; }},
    {"kept.fp8_weights", Phases::training, [](C of) { return !narrow(of) || !of.stack().kept.fp8_weights; }},
    {"communication.tensor_overlap", Phases::training,
     [](C of) { return of.stack().communication.tensor_overlap == 0 || !split_tensor(of); }},
    {"communication.context_overlap", Phases::training, [](C of) { return of.plan.context == 1; }},
    {"communication.data_overlap", Phases::training,
     [](C of) { return of.stack().communication.data_overlap == 0 || !copies(of); }},
    {"communication.gather_overlap", Phases::training,
     [](C of) {
       return of.stack().communication.gather_overlap == 0 || of.plan.zero_stage == 0 || of.plan.zero_stage == 3;
     }},
    {"communication.expert_overlap", Phases::both,
     [](C of) { return of.stack().communication.expert_overlap == 0 || !dealt(of); }},
    {"communication.overlapped_exchanges", Phases::training,
     [](C of) {
       const StackProfile::Communication& stack = of.stack().communication;
       return stack.expert_overlap == 0 || !dealt(of) || stack.overlapped_exchanges == OverlappedExchanges::everywhere;
     }},
    {"communication.pipeline_async", Phases::training, [](C of) { return !pipelined(of); }},
    {"communication.scatter_boundaries", Phases::training,
     [](C of) { return !of.stack().communication.scatter_boundaries || !pipelined(of) || !split_tensor(of); }},
    {"communication.bucket", Phases::training, [](C of) { return !copies(of); }},
    {"communication.zero_bucket", Phases::training,
     [](C of) { return of.stack().communication.zero_bucket == Bytes(0) || of.plan.zero_stage == 0; }},
    {"communication.bucket_per_rank", Phases::training,
     [](C of) { return of.stack().communication.bucket_per_rank == Bytes(0) || !copies(of); }},
    {"experts.dispatch", Phases::training, [](C of) { return !dealt(of); }},
    {"experts.dispatch_sms", Phases::both,
     [](C of) {
       const StackProfile& stack = of.stack();
       const bool kernels = of.workload().phase == Phase::training
                                ? stack.experts.dispatch != ExpertDispatcher::library
                                : stack.serving.dispatch == ServedDispatch::kernels;
       return !dealt(of) || !kernels || stack.experts.dispatch_sms == 20;
     }},
    {"experts.fp8_dispatch", Phases::both, [](C of) { return !dealt(of) || !of.stack().experts.fp8_dispatch; }},
    {"experts.shared_overlap", Phases::training,
     [](C of) { return !dealt(of) || !of.stack().experts.shared_overlap; }},
    {"head.deferred_weight_gradient", Phases::training,
     [](C of) { return !of.stack().head.deferred_weight_gradient || !pipelined(of); }},
    {"head.deferral_limit", Phases::training,
     [](C of) { return !of.stack().head.deferred_weight_gradient || !pipelined(of); }},
    {"state.gradient_bytes", Phases::training, never},
    {"state.gradient_comm_bytes", Phases::training, [](C of) { return !copies(of); }},
    {"state.master_bytes", Phases::training, never},
    {"state.moment_bytes", Phases::training, never},
    {"serving.scheduler", Phases::inference, never},
    {"serving.token_budget", Phases::inference, never},
    {"serving.max_batch", Phases::inference, never},
    {"serving.kv_block", Phases::inference, never},
    {"serving.kv_share", Phases::inference, never},
    {"serving.kv_growth", Phases::inference,
     [](C of) { return !loaded(of) || of.stack().serving.kv_growth == KvGrowth::usual; }},
    {"serving.kv_watermark", Phases::inference,
     [](C of) { return !loaded(of) || of.stack().serving.kv_watermark == 0; }},
    {"serving.queue", Phases::inference,
     [](C of) { return !loaded(of) || of.stack().serving.queue == QueueOrder::fcfs; }},
    {"serving.routing", Phases::inference, [](C of) { return !loaded(of) || of.plan.data == 1; }},
    {"serving.attention_ranks", Phases::inference,
     [](C of) {
       return !loaded(of) || of.coupled() == 1 || of.stack().serving.attention_ranks == AttentionRanks::alike;
     }},
    {"serving.balance_wait", Phases::inference,
     [](C of) { return !loaded(of) || of.coupled() == 1 || of.stack().serving.balance_wait == 0; }},
    {"serving.prefix_cache", Phases::inference,
     [](C of) { return !loaded(of) || !of.workload().load->has_prefixes(); }},
    {"serving.host_cache", Phases::inference,
     [](C of) { return !loaded(of) || of.stack().serving.host_cache == Bytes(0); }},
    {"serving.disk_cache", Phases::inference,
     [](C of) { return !loaded(of) || of.stack().serving.disk_cache == Bytes(0); }},
    {"serving.poll_interval", Phases::inference,
     [](C of) { return !loaded(of) || of.stack().serving.poll_interval == 1; }},
    {"serving.schedule_ahead", Phases::inference, [](C of) { return !loaded(of); }},
    {"serving.pool_prompts", Phases::inference,
     [](C of) { return of.pool != Case::Pool::prefill || of.stack().serving.pool_prompts == 0; }},
    {"serving.graph_tokens", Phases::inference,
     [](C of) { return !loaded(of) || of.stack().serving.graph_tokens == 0; }},
    {"serving.fp8_cache", Phases::inference, [](C of) { return of.setting.policy().kv_cache != Precision::fp8; }},
    {"serving.fp8_cache_blackwell", Phases::inference, [](C /*of*/) { return true; }},  // fp8_cache has the outcome
    {"serving.kv_transfer", Phases::inference, [](C of) { return of.pool == Case::Pool::whole; }},
    {"serving.dispatch", Phases::inference, [](C of) { return of.coupled() == 1; }},
    {"serving.redundant_experts", Phases::inference,
     [](C of) { return of.pool == Case::Pool::prefill || of.plan.redundant_experts == 0; }},
    {"serving.prefill_redundant_experts", Phases::inference,
     [](C of) { return of.pool != Case::Pool::prefill || of.plan.redundant_experts == 0; }},
    {"serving.two_batch_overlap", Phases::inference,
     [](C of) { return !of.stack().serving.two_batch_overlap || of.coupled() == 1; }},
    {"serving.ffn_batches", Phases::inference, [](C of) { return of.plan.ffn == 0; }},
});

std::string text_of(const yaml::Node& node) {
  if (!node.is_list()) return node.text;
  std::vector<std::string> words;
  for (const yaml::Node& item : node.items) words.push_back(text_of(item));
  return fmt::format("[{}]", fmt::join(words, ", "));
}

/// Calls visit(path, text) for every leaf.
template <class Visit>
void each_leaf(const yaml::Node& node, const std::string& path, const Visit& visit) {
  if (!node.is_map()) return visit(path, text_of(node));
  for (const yaml::Entry& entry : node.entries)
    each_leaf(entry.value, path.empty() ? entry.key : path + '.' + entry.key, visit);
}

void add_axes(const Case& of, std::vector<Item>& items) {
  const Phase phase = of.workload().phase;
  for (const PlanAxisRow& row : kPlanRows) {
    // The axes of the other pool are those of a case of its own.
    const bool other_pool = is_of_prefill(row) && row.key != PlanKey::ffn;
    if (other_pool || !applies(row.phases, phase)) continue;
    const std::int32_t code = row.get(of.plan);
    items.push_back({std::string(row.name), code_text(row, code), true, code == row.idle});
  }
  if (of.pool != Case::Pool::whole) items.push_back({"pools", "prefill and decode", true, false});
}

void add_workload(const Case& of, std::vector<Item>& items) {
  // A field that is new does not compile here.
  const auto& [phase, precision, expert_load, sequence, batch, prompt, output, concurrency, load] =
      of.workload();
  const auto add = [&](const char* key, std::string value, bool idle = false) {
    items.push_back({std::string("workload.") + key, std::move(value), false, idle});
  };
  add("precision", std::string(name_of(precision)));
  add("expert_load", std::string(name_of(expert_load.distribution)), expert_load.balanced());
  if (phase == Phase::training) {
    add("sequence_length", std::to_string(sequence));
    return add("global_batch", std::to_string(batch));
  }
  add("prompt_tokens", std::to_string(load ? load->prompt.longest : prompt));
  add("output_tokens", std::to_string(load ? load->output.longest : output));
  add("concurrency", std::to_string(concurrency), concurrency == 0);
  if (!load) return;
  add("load", load->open() ? fmt::format("{:.4g} requests/s", load->offered_per_s()) : "closed loop");
  const auto& [tokens, acceptance, method, draft_model] = load->speculation;
  const std::string drafts = method == DraftMethod::mtp ? "mtp"
                             : draft_model != nullptr   ? draft_model->name
                                                        : "draft model";
  add("speculation", fmt::format("{} tokens by {}", tokens, drafts), tokens == 0);
}

}  // namespace

std::optional<bool> is_measured(std::string_view stack_key) {
  if (std::ranges::find(kChoices, stack_key, &StackChoice::key) != kChoices.end()) return false;
  if (std::ranges::any_of(kMeasured, [&](std::string_view row) { return covers_key(row, stack_key); }))
    return true;
  return std::nullopt;
}

std::vector<Item> said_items(const Case& of) {
  std::vector<Item> items;
  add_axes(of, items);
  add_workload(of, items);
  each_leaf(yaml::write(of.stack()), "", [&](const std::string& key, std::string text) {
    if (is_measured(key).value_or(false)) return;
    const auto row = std::ranges::find(kChoices, key, &StackChoice::key);
    const bool idle = row != kChoices.end() && (!applies(row->phases, of.workload().phase) || row->idle(of));
    items.push_back({"stack." + key, std::move(text), false, idle});
  });
  std::vector<std::pair<std::string, std::string>> plain;
  ModelSpec usual;
  usual.moe.emplace();
  usual.latent.emplace();
  each_leaf(yaml::write(usual), "",
            [&](const std::string& key, std::string text) { plain.emplace_back(key, std::move(text)); });
  each_leaf(yaml::write(of.shape()), "", [&](const std::string& key, std::string text) {
    if (key == "name" || key == "source") return;
    const bool idle = std::ranges::find(plain, std::pair(key, text)) != plain.end();
    items.push_back({"model." + key, std::move(text), false, idle});
  });
  return items;
}

}  // namespace shardscape::launch
