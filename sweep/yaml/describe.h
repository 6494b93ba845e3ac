// THE table of keys: one description per spec, walked by Reader, Writer and Lister alike (visitors.h).
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "engine/spec/fabric_numbers.h"
#include "engine/spec/spec_numbers.h"
#include "engine/spec/stack.h"
#include "sweep/yaml/preset_specs.h"
#include "sweep/yaml/visitors.h"

namespace shardscape::yaml {

/// The key of a number, as its row has it.
template <class V, class Spec>
void describe_number(V& v, Spec& spec, const NumberRow<Spec>& row, const char* key) {
  const char* const idle = row.idle != nullptr ? row.idle(spec) : nullptr;
  if (idle != nullptr) {
    v.unused(key, idle);
    row.set(spec, row.fallback(spec).value());
    return;
  }
  row.visit(spec, [&](auto& value) {
    using T = std::remove_cvref_t<decltype(value)>;
    if constexpr (requires { value.has_value(); }) {
      v.maybe(key, value);
    } else if (!row.total.empty()) {
      if constexpr (std::is_same_v<Spec, DimensionSpec>) {
        const bool gpu = v.either(key, row.total.data(), value, spec.basis == BandwidthBasis::gpu);
        spec.basis = gpu ? BandwidthBasis::gpu : BandwidthBasis::link;
      } else if constexpr (requires { value /= 2.0, value.value(), spec.hbm; }) {
        v.shared(key, row.total.data(), spec.hbm.stacks, value);
      }
    } else if (const auto fallback = row.fallback != nullptr ? row.fallback(spec) : std::nullopt) {
      v.optional(key, value, [&] { return static_cast<T>(*fallback); });
    } else if (row.use == KeyUse::required) {
      v.required(key, value);
    } else if (row.use == KeyUse::none_if_absent) {
      v.if_any(key, value);
    } else if (row.use == KeyUse::for_the_reader) {
      v.fact(key, value);
    } else {
      v.optional(key, value);
    }
  });
}

/// The numbers of a spec by their table, from `path` on ("host."; "": all) with the groups inside; `others` describes
/// what else the group of each path has. A group that has a required number is required.
template <class V, class Spec, class Others>
void describe_numbers(V& v, Spec& spec, std::span<const NumberRow<Spec>> table, const Others& others,
                      std::string_view path = "") {
  others(v, path);
  std::string_view last;
  for (const NumberRow<Spec>& row : table) {
    if (!row.path.starts_with(path)) continue;
    const std::string_view key = row.path.substr(path.size());
    const std::size_t dot = key.find('.');
    if (dot == std::string_view::npos) {
      describe_number(v, spec, row, key.data());  // the end of a literal
      continue;
    }
    const std::string_view inside = row.path.substr(0, path.size() + dot + 1);
    if (inside == std::exchange(last, inside)) continue;
    const auto group = [&](V& inner) { describe_numbers(inner, spec, table, others, inside); };
    const bool required = std::ranges::any_of(table, [&](const auto& other) {
      return other.path.starts_with(inside) && other.use == KeyUse::required;
    });
    const std::string name(key.substr(0, dot));
    required ? v.group(name.c_str(), group) : v.optional_group(name.c_str(), group);
  }
}

constexpr auto kNoOthers = [](auto&, std::string_view) {};

template <class V>
void describe(V& v, MixtureOfExperts& moe) {
  describe_numbers(v, moe, expert_numbers(), kNoOthers);
  v.optional("shared_gate", moe.shared_gate);
  v.optional("router", moe.router);
  v.optional("normalise_top_k", moe.normalise_top_k);
  v.optional("weights_alone", moe.weights_alone);
  v.optional("router_bias", moe.router_bias);
}

template <class V>
void describe(V& v, LatentAttention& latent) {
  v.required("kind", latent.kind);
  describe_numbers(v, latent, latent_numbers(), kNoOthers);
}

template <class V>
void describe(V& v, ModelSpec& m) {
  v.required("name", m.name);
  v.comment("source");
  v.checkpoints("also");
  v.maybe_group("attention", m.latent, [](V& group, LatentAttention& latent) { describe(group, latent); });
  v.maybe_group("moe", m.moe, [](V& group, MixtureOfExperts& moe) { describe(group, moe); });
  describe_numbers(v, m, model_numbers(), kNoOthers);
  v.optional("mlp", m.mlp);
  v.optional("norm", m.norm);
  v.optional("norm_bias", m.norm_bias);
  v.optional("norm_place", m.norm_place);
  v.optional("qk_norm", m.qk_norm);
  v.optional("position", m.position);
  v.optional("window_pattern", m.window_pattern);
  v.optional("attention_sinks", m.attention_sinks);
  v.optional("fp8_block_scales", m.fp8_block_scales);
  v.optional("attention_soft_cap", m.attention_soft_cap);
  v.optional("logit_soft_cap", m.logit_soft_cap);
  v.optional("parallel_residual", m.parallel_residual);
  v.optional("shared_norm", m.shared_norm);
  v.optional("embedding_norm", m.embedding_norm);
  v.optional("tied_embeddings", m.tied_embeddings);
  v.optional("head_bias", m.head_bias);
  v.optional("linear_bias", m.linear_bias);
  v.optional("qkv_bias", m.qkv_bias);
  v.optional("output_bias", m.output_bias);
  v.optional("mlp_bias", m.mlp_bias);
}

template <class V>
void describe(V& v, DeviceSpec& d) {
  v.required("name", d.name);
  v.comment("source");
  v.optional("architecture", d.architecture);
  describe_numbers(v, d, device_numbers(), [&](V& group, std::string_view path) {
    if (path == "energy.") group.optional("steps", d.energy.steps);
    if (path == "products.") group.optional("pairs", d.products.pairs);
  });
  v.remarks("package", d.package);
}

template <class V>
void describe(V& v, DevicePreset& d) {
  describe(v, static_cast<DeviceSpec&>(d));
  v.fact("cluster", d.tables.cluster);
  v.words("also", d.tables.also);
}

template <class V>
void describe(V& v, DimensionSpec& d) {
  v.required("name", d.name);
  const bool kind_known = v.required("kind", d.kind);
  v.extents("size", "shape", d.shape);
  v.optional("scope", d.scope);
  if (!kind_known) return v.anything_else();
  for (const DimensionNumber& number : dimension_numbers()) {
    const std::string why = number.no_effect(d);
    if (why.empty()) {
      describe_number(v, d, number, number.path.data());
    } else {
      for (const std::string_view key : {number.path, number.total})
        if (!key.empty()) v.unused(key.data(), why);
    }
  }
  const auto has = [&](const Kinds& kinds, const char* key, bool up = false) {
    const std::string why = no_effect(kinds, d, up);
    if (!why.empty()) v.unused(key, why);
    return why.empty();
  };
  if (has(kTrees, "up_routing", true)) v.optional("up_routing", d.fat_tree.up_routing);
  if (has(kSwitches, "in_network_reduction")) v.optional("in_network_reduction", d.in_network_reduction);
  if (!has(kCustom, "links")) return;
  v.list("links", d.custom.links, [](V& item, CustomSpec::Link& link) {
    item.ends("between", "from", "to", link.a, link.b, link.one_way);
    for (const auto& number : custom_link_numbers()) describe_number(item, link, number, number.path.data());
  });
}

/// The keys of a cluster file: those of a fabric, and `device`, which the caller reads itself.
template <class V>
void describe(V& v, FabricSpec& f) {
  v.required("name", f.name);
  v.comment("source");
  v.list("dimensions", f.dimensions, [](V& item, DimensionSpec& d) { describe(item, d); });
}

template <class V>
void describe(V& v, StackProfile& s) {
  v.required("name", s.name);
  v.comment("source");
  v.optional("attention", s.attention);
  v.optional("fused_sinks_from", s.fused_sinks_from);
  v.optional("graphs_from", s.graphs_from);
  v.optional("partition", s.partition);
  v.fact("pipeline_layout", s.pipeline_layout);
  v.optional("zero2_gradients", s.zero2_gradients);
  v.optional("fused_loss", s.fused_loss);
  v.optional("fused_pointwise", s.fused_pointwise);
  v.optional("fused_residual", s.fused_residual);
  v.optional("keep_gathered", s.keep_gathered);
  v.choices("selective_recompute", s.selective_recompute,
            {RecomputePart::attention_core, RecomputePart::norms, RecomputePart::latent_up,
             RecomputePart::activations, RecomputePart::mlp, RecomputePart::experts});
  v.optional_group("kept", [&](V& kept) {
    kept.optional("attention_output", s.kept.attention_output);
    kept.optional("activation_inputs", s.kept.activation_inputs);
    kept.optional("fp8_weights", s.kept.fp8_weights);
  });
  describe_numbers(v, s, stack_numbers(), [&](V& group, std::string_view path) {
    if (path == "communication.") {
      group.optional("context_exchange", s.communication.context_exchange);
      group.optional("overlapped_exchanges", s.communication.overlapped_exchanges);
      group.optional("pipeline_async", s.communication.pipeline_async);
      group.optional("scatter_boundaries", s.communication.scatter_boundaries);
      group.optional("protocols", s.communication.protocols);
      group.optional("all_reduce", s.communication.all_reduce);
      group.choices("algorithms", s.communication.algorithms, StackProfile::Communication::all_algorithms());
    } else if (path == "serving.") {
      group.optional("scheduler", s.serving.scheduler);
      group.optional("kv_growth", s.serving.kv_growth);
      group.optional("queue", s.serving.queue);
      group.optional("routing", s.serving.routing);
      group.optional("prefix_cache", s.serving.prefix_cache);
      group.optional("attention_ranks", s.serving.attention_ranks);
      group.optional("fp8_cache", s.serving.fp8_cache);
      group.optional("fp8_cache_blackwell", s.serving.fp8_cache_blackwell);
      group.optional("kv_transfer", s.serving.kv_transfer);
      group.optional("prefill_precision", s.serving.prefill_precision);
      group.optional("dispatch", s.serving.dispatch);
      group.optional("prompts_summed", s.serving.prompts_summed);
      group.optional("two_batch_overlap", s.serving.two_batch_overlap);
    } else if (path == "experts.") {
      group.optional("dispatch", s.experts.dispatch);
      group.optional("fp8_dispatch", s.experts.fp8_dispatch);
      group.optional("shared_overlap", s.experts.shared_overlap);
      group.optional("fused_bias", s.experts.fused_bias);
    } else if (path == "head.") {
      group.optional("deferred_weight_gradient", s.head.deferred_weight_gradient);
    }
  });
}

template <class V>
void describe(V& v, StackPreset& s) {
  describe(v, static_cast<StackProfile&>(s));
  v.words("software", s.tables.software);
  v.words("software_of", s.tables.software_of);
  v.words("expert_software", s.tables.expert_software);
  v.fact("expert_software_from", s.tables.expert_software_from);
  v.fact("expert_software_on", s.tables.expert_software_on);
  v.fact("years", s.tables.years);
  v.fact("usual_zero_stage", s.tables.usual_zero_stage);
  v.fact("usual_recompute", s.tables.usual_recompute);
  v.fact("usual_sequence_parallel", s.tables.usual_sequence_parallel);
  v.fact("usual_offload", s.tables.usual_offload);
  v.fact("usual_expert_parallel", s.tables.usual_expert_parallel);
  v.fact("usual_expert_tensor", s.tables.usual_expert_tensor);
}

}  // namespace shardscape::yaml
