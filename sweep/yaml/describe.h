// THE table of keys: one description per spec, walked by Reader, Writer and Lister alike (visitors.h).
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

#include "engine/spec/device.h"
#include "engine/spec/fabric_spec.h"
#include "engine/spec/model.h"
#include "engine/spec/ranges.h"
#include "engine/spec/stack.h"
#include "engine/spec/stack_numbers.h"
#include "sweep/yaml/visitors.h"

namespace shardscape::yaml {

template <class V>
void describe(V& v, MixtureOfExperts& moe) {
  v.required("experts", moe.experts);
  v.required("top_k", moe.top_k);
  v.required("expert_ffn_hidden", moe.expert_ffn_hidden);
  v.optional("shared_experts", moe.shared_experts);
  v.optional("shared_ffn_hidden", moe.shared_ffn_hidden, [&] {
    const bool small = ranges::kExpertsOrNone.holds(static_cast<double>(moe.shared_experts)) &&
                       ranges::kRows.holds(static_cast<double>(moe.expert_ffn_hidden));
    return small ? moe.shared_experts * moe.expert_ffn_hidden : 0;
  });
  v.optional("shared_gate", moe.shared_gate);
  v.optional("first_dense_layers", moe.first_dense_layers);
  v.optional("every", moe.every);
  v.optional("router", moe.router);
  v.optional("normalise_top_k", moe.normalise_top_k);
  v.optional("router_bias", moe.router_bias);
  v.optional("expert_groups", moe.expert_groups);
  v.optional("top_groups", moe.top_groups);
  v.optional("capacity_factor", moe.capacity_factor);
  v.optional("mtp_layers", moe.mtp_layers);
}

template <class V>
void describe(V& v, LatentAttention& latent) {
  v.required("kind", latent.kind);
  v.optional("q_rank", latent.q_rank);
  v.required("kv_rank", latent.kv_rank);
  v.required("rope_dim", latent.rope_dim);
  v.required("nope_dim", latent.nope_dim);
  v.required("value_dim", latent.value_dim);
}

/// Attention heads: each with keys and values of its own, in groups that share them, or from a latent vector.
template <class V>
void describe_attention(V& v, ModelSpec& m) {
  v.maybe_group("attention", m.latent, [](V& group, LatentAttention& latent) { describe(group, latent); });
  if (m.latent) {
    constexpr const char* kWhy =
        "has no effect with latent attention, whose attention.nope_dim, rope_dim and "
        "value_dim say the widths of all heads; take it out";
    v.unused("kv_heads", kWhy);
    v.unused("head_dim", kWhy);
    m.kv_heads = m.heads;
    m.head_dim = m.latent->query_dim();
    return;
  }
  v.optional("kv_heads", m.kv_heads, [&] { return m.heads; });
  v.optional("head_dim", m.head_dim,
             [&] { return m.heads >= 1 && m.hidden % m.heads == 0 ? m.hidden / m.heads : 0; });
}

template <class V>
void describe(V& v, ModelSpec& m) {
  v.required("name", m.name);
  v.comment("source");
  v.comment("also");
  v.required("layers", m.layers);
  v.required("hidden", m.hidden);
  v.required("heads", m.heads);
  describe_attention(v, m);
  v.maybe_group("moe", m.moe, [](V& group, MixtureOfExperts& moe) { describe(group, moe); });
  if (m.moe && m.moe->everywhere()) {
    v.optional("ffn_hidden", m.ffn_hidden, [&] { return m.moe->expert_ffn_hidden; });
  } else {
    v.required("ffn_hidden", m.ffn_hidden);
  }
  v.required("vocabulary", m.vocabulary);
  v.optional("max_positions", m.max_positions);
  v.optional("mlp", m.mlp);
  v.optional("norm", m.norm);
  v.optional("norm_bias", m.norm_bias);
  v.optional("norm_place", m.norm_place);
  v.optional("qk_norm", m.qk_norm);
  v.optional("position", m.position);
  v.optional("rotary_fraction", m.rotary_fraction);
  v.optional("sliding_window", m.sliding_window);
  v.optional("window_pattern", m.window_pattern);
  v.optional("attention_sinks", m.attention_sinks);
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
  v.optional("dropout", m.dropout);
  v.maybe("attention_dropout", m.attention_dropout);
  v.maybe("embedding_dropout", m.embedding_dropout);
}

template <class V>
void describe(V& v, DeviceSpec::StreamingMultiprocessors& sm) {
  v.required("count", sm.count);
  v.required("clock", sm.clock);
  v.template by_name<Precision>("tensor_flops_per_clock", sm.tensor_flops_per_clock);
  v.required("vector_flops_per_clock", sm.vector_flops_per_clock);
  v.required("registers", sm.registers);
  v.required("sram", sm.sram);
  v.required("sram_bytes_per_clock", sm.sram_bytes_per_clock);
  v.optional("tensor_efficiency", sm.tensor_efficiency);
  v.optional("load_latency_clocks", sm.load_latency_clocks);
  v.optional("l2_bytes_per_clock", sm.l2_bytes_per_clock);
  v.optional_group("fragment", [&](V& fragment) {
    fragment.optional("m", sm.fragment.m);
    fragment.optional("n", sm.fragment.n);
    fragment.optional("per_cta", sm.fragment.per_cta);
  });
  v.optional("cluster", sm.cluster);
}

template <class V>
void describe(V& v, NcclProtocols& nccl) {
  const auto describe_rates = [](V& p, NcclProtocols::Flagged& protocol) {
    p.optional("step", protocol.step);
    p.optional("bandwidth", protocol.bandwidth);
    p.optional("limit", protocol.limit);
  };
  v.optional("start", nccl.start);
  v.optional_group("ll", [&](V& ll) { describe_rates(ll, nccl.ll); });
  v.optional_group("ll128", [&](V& ll128) {
    ll128.optional("start", nccl.ll128.start);
    describe_rates(ll128, nccl.ll128);
  });
  v.optional_group("simple", [&](V& simple) {
    simple.optional("start", nccl.simple.start);
    simple.optional("step", nccl.simple.step);
    simple.optional("link_share", nccl.simple.link_share);
    simple.optional("own_bandwidth", nccl.simple.own_bandwidth);
  });
  v.optional_group("all_to_all", [&](V& all) {
    all.optional("start", nccl.all_to_all.start);
    all.optional("small_peer", nccl.all_to_all.small_peer);
    all.optional("small_bandwidth", nccl.all_to_all.small_bandwidth);
    all.optional("large_start", nccl.all_to_all.large_start);
    all.optional("large_peer", nccl.all_to_all.large_peer);
    all.optional("large_link_share", nccl.all_to_all.large_link_share);
    all.optional("own_bandwidth", nccl.all_to_all.own_bandwidth);
  });
}

template <class V>
void describe(V& v, CustomAllReduce& custom) {
  const auto kernels = [](CustomAllReduce::Kernels& k) {
    return [&k](V& group) {
      group.optional("start", k.start);
      group.optional("rank", k.rank);
      group.optional("one_shot_bandwidth", k.one_shot_bandwidth);
      group.optional("second_start", k.second_start);
      group.optional("two_shot_bandwidth", k.two_shot_bandwidth);
      group.optional("pair_limit", k.pair_limit);
      group.optional("two_shot_limit", k.two_shot_limit);
      group.optional("eager_floor", k.eager_floor);
    };
  };
  v.optional_group("vllm", kernels(custom.vllm));
  v.optional_group("trtllm", kernels(custom.trtllm));
  v.optional("multimem_start", custom.multimem_start);
  v.optional("multimem_bandwidth", custom.multimem_bandwidth);
}

template <class V>
void describe(V& v, ExpertDispatch& experts) {
  v.optional_group("low_latency", [&](V& group) {
    ExpertDispatch::LowLatency& k = experts.low_latency;
    group.optional("dispatch_start", k.dispatch_start);
    group.optional("combine_start", k.combine_start);
    group.optional("dispatch_expert", k.dispatch_expert);
    group.optional("combine_expert", k.combine_expert);
    group.optional("dispatch_bandwidth", k.dispatch_bandwidth);
    group.optional("combine_bandwidth", k.combine_bandwidth);
    group.optional("queue_bandwidth", k.queue_bandwidth);
    group.optional("dispatch_node", k.dispatch_node);
    group.optional("combine_node", k.combine_node);
    group.optional("node_bandwidth", k.node_bandwidth);
  });
  v.optional_group("normal", [&](V& group) {
    ExpertDispatch::Normal& k = experts.normal;
    group.optional("dispatch_start", k.dispatch_start);
    group.optional("combine_start", k.combine_start);
    group.optional("row_bandwidth", k.row_bandwidth);
    group.optional("copy", k.copy);
    group.optional("sm_bandwidth", k.sm_bandwidth);
    group.optional("bandwidth", k.bandwidth);
    group.optional("local_copies", k.local_copies);
    group.optional("dispatch_node", k.dispatch_node);
    group.optional("combine_node", k.combine_node);
    group.optional("node_bandwidth", k.node_bandwidth);
  });
}

template <class V>
void describe_facts(V& v, DeviceSpec::Facts& facts) {
  v.optional_group("die", [&](V& die) {
    die.fact("area_mm2", facts.die_area_mm2);
    die.fact("process_nm", facts.process_nm);
  });
  v.remarks("package", facts.package);
  v.optional_group("links", [&](V& links) {
    links.fact("ports", facts.link_ports);
    links.fact("bandwidth_per_port", facts.link_bandwidth_per_port);
  });
  v.fact("power", facts.power_watts, Dimension::power);
  v.fact("cluster", facts.cluster);
  v.words("also", facts.also);
}

template <class V>
void describe(V& v, DeviceSpec& d) {
  v.required("name", d.name);
  v.comment("source");
  v.group("sm", [&](V& sm) { describe(sm, d.sm); });
  v.group("l2", [&](V& l2) {
    l2.required("capacity", d.l2.capacity);
    l2.required("bytes_per_clock", d.l2.bytes_per_clock);
  });
  v.group("hbm", [&](V& hbm) {
    hbm.required("stacks", d.hbm.stacks);
    hbm.shared("capacity_per_stack", "capacity", d.hbm.stacks, d.hbm.capacity_per_stack);
    hbm.shared("bandwidth_per_stack", "bandwidth", d.hbm.stacks, d.hbm.bandwidth_per_stack);
  });
  v.optional_group("sustained", [&](V& sustained) {
    sustained.optional("tensor", d.sustained.tensor);
    sustained.optional("hbm", d.sustained.hbm);
    sustained.optional("l2", d.sustained.l2);
  });
  v.optional_group("attention", [&](V& attention) {
    attention.optional("forward", d.attention.forward);
    attention.optional("backward", d.attention.backward);
    attention.optional("prompt_rate", d.attention.prompt_rate);
    attention.optional("decode_rate", d.attention.decode_rate);
  });
  v.optional("architecture", d.architecture);
  v.optional_group("energy", [&](V& energy) {
    energy.optional("idle_watts", d.energy.idle_watts);
    energy.optional("flop_pj", d.energy.flop_pj);
    energy.optional("fp8", d.energy.fp8);
    energy.optional("fp4", d.energy.fp4);
    energy.optional("byte_pj", d.energy.byte_pj);
    energy.optional("burst_watts", d.energy.burst_watts);
    energy.optional("steps", d.energy.steps);
  });
  v.optional_group("products", [&](V& products) {
    products.optional("latency", d.products.latency);
    products.optional("step", d.products.step);
    products.optional("reduction", d.products.reduction);
    products.optional("output", d.products.output);
    products.optional("port", d.products.port);
    products.optional("pairs", d.products.pairs);
  });
  v.required("kernel_latency", d.kernel_latency);
  v.optional("cold_start", d.cold_start);
  v.optional_group("nccl", [&](V& nccl) { describe(nccl, d.node.nccl); });
  v.optional_group("custom_all_reduce", [&](V& custom) { describe(custom, d.node.custom); });
  v.optional_group("expert_dispatch", [&](V& experts) { describe(experts, d.node.experts); });
  describe_facts(v, d.facts);
}

template <class V>
void describe(V& v, FatTreeSpec& t) {
  v.required("levels", t.levels);
  v.required("radix", t.radix);
  if (t.levels == 1) {
    constexpr const char* kWhy = "has no effect in a fat_tree of one level, which has no ports up";
    for (const char* key : {"oversubscription", "up_routing", "uplink_bandwidth", "uplink_latency"})
      v.unused(key, kWhy);
    return;
  }
  v.optional("oversubscription", t.oversubscription);
  v.optional("up_routing", t.up_routing);
  v.maybe("uplink_bandwidth", t.uplink_bandwidth);
  v.maybe("uplink_latency", t.uplink_latency);
}

template <class V>
void describe(V& v, DragonflySpec& f) {
  v.maybe("groups", f.groups);
  v.required("routers_per_group", f.routers_per_group);
  v.required("hosts_per_router", f.hosts_per_router);
  v.maybe("global_bandwidth", f.global_bandwidth);
  v.maybe("global_latency", f.global_latency);
}

template <class V>
void describe(V& v, CustomSpec& c) {
  v.optional("switches", c.switches);
  v.list("links", c.links, [](V& item, CustomSpec::Link& link) {
    item.ends("between", "from", "to", link.a, link.b, link.one_way);
    item.required("bandwidth", link.bandwidth);
    item.required("latency", link.latency);
  });
}

/// The keys that only some kinds of dimension have; on other kinds they are errors that name the right kind.
template <class V>
void describe_kind(V& v, DimensionSpec& d) {
  const auto only = [&](DimensionKind kind, std::initializer_list<const char*> keys) {
    if (d.kind == kind) return true;
    for (const char* key : keys) {
      v.unused(key, fmt::format("has no effect on a {}, only on a {}", name_of(d.kind), name_of(kind)));
    }
    return false;
  };
  const bool tree = only(DimensionKind::fat_tree, {"levels", "radix", "oversubscription", "up_routing",
                                                   "uplink_bandwidth", "uplink_latency", "rails"});
  if (tree) describe(v, d.fat_tree);
  if (tree) v.maybe("rails", d.rails);
  if (only(DimensionKind::dragonfly,
           {"groups", "routers_per_group", "hosts_per_router", "global_bandwidth", "global_latency"}))
    describe(v, d.dragonfly);
  if (only(DimensionKind::custom, {"switches", "links"})) describe(v, d.custom);
  if (only(DimensionKind::switched, {"gpus_per_tray"})) v.maybe("gpus_per_tray", d.gpus_per_tray);
  if (tree || d.kind == DimensionKind::switched) {
    v.maybe("nics_per_node", d.nics_per_node);
    v.optional("in_network_reduction", d.in_network_reduction);
    return;
  }
  for (const char* key : {"nics_per_node", "in_network_reduction"}) {
    v.unused(key, fmt::format("has no effect on a {}, only on a switch or a fat_tree", name_of(d.kind)));
  }
}

template <class V>
void describe(V& v, DimensionSpec& d) {
  v.required("name", d.name);
  const bool kind_known = v.required("kind", d.kind);
  v.extents("size", "shape", d.shape);
  v.optional("scope", d.scope);
  if (!kind_known) return v.anything_else();
  if (d.kind == DimensionKind::custom) {
    for (const char* key : {"bandwidth", "bandwidth_per_gpu", "latency"})
      v.unused(key, "has no effect on a custom dimension, whose links have their own");
  } else {
    const bool per_gpu =
        v.either("bandwidth", "bandwidth_per_gpu", d.bandwidth, d.basis == BandwidthBasis::gpu);
    d.basis = per_gpu ? BandwidthBasis::gpu : BandwidthBasis::link;
    v.required("latency", d.latency);
  }
  describe_kind(v, d);
}

/// The keys of a cluster file: those of a fabric, and `device`, which the caller reads itself.
template <class V>
void describe(V& v, FabricSpec& f) {
  v.required("name", f.name);
  v.comment("source");
  v.list("dimensions", f.dimensions, [](V& item, DimensionSpec& d) { describe(item, d); });
}

/// The numbers of a stack whose keys lie in `group` ("host."; "": those outside of groups), by its table.
template <class V>
void describe_numbers(V& v, StackProfile& s, std::string_view group) {
  for (const StackNumber& number : stack_numbers()) {
    const std::string_view key = number.path.substr(std::min(group.size(), number.path.size()));
    if (!number.path.starts_with(group) || key.find('.') != std::string_view::npos) continue;
    number.visit(s, [&](auto& value) {
      if (number.required) {
        v.required(key.data(), value);  // the end of a literal
      } else {
        v.optional(key.data(), value);
      }
    });
  }
}

template <class V>
void describe(V& v, StackProfile& s) {
  v.required("name", s.name);
  v.comment("source");
  v.optional("attention", s.attention);
  v.optional("fused_sinks_from", s.fused_sinks_from);
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
  describe_numbers(v, s, "");
  v.optional_group("host", [&](V& host) { describe_numbers(host, s, "host."); });
  v.group("communication", [&](V& calls) {
    describe_numbers(calls, s, "communication.");
    calls.optional("overlapped_exchanges", s.communication.overlapped_exchanges);
    calls.optional("pipeline_async", s.communication.pipeline_async);
    calls.optional("scatter_boundaries", s.communication.scatter_boundaries);
    calls.optional("protocols", s.communication.protocols);
    calls.optional("all_reduce", s.communication.all_reduce);
    calls.choices("algorithms", s.communication.algorithms, StackProfile::Communication::all_algorithms());
  });
  v.optional_group("serving", [&](V& serving) {
    serving.optional("scheduler", s.serving.scheduler);
    serving.optional("kv_growth", s.serving.kv_growth);
    serving.optional("queue", s.serving.queue);
    serving.optional("routing", s.serving.routing);
    describe_numbers(serving, s, "serving.");
    serving.optional("fp8_cache", s.serving.fp8_cache);
    serving.optional("fp8_cache_blackwell", s.serving.fp8_cache_blackwell);
    serving.optional("kv_transfer", s.serving.kv_transfer);
    serving.optional("dispatch", s.serving.dispatch);
    serving.optional("two_batch_overlap", s.serving.two_batch_overlap);
  });
  v.optional_group("state", [&](V& state) { describe_numbers(state, s, "state."); });
  v.optional_group("quantisation", [&](V& casts) { describe_numbers(casts, s, "quantisation."); });
  v.optional_group("kept", [&](V& kept) {
    kept.optional("attention_output", s.kept.attention_output);
    kept.optional("activation_inputs", s.kept.activation_inputs);
    kept.optional("fp8_weights", s.kept.fp8_weights);
  });
  v.optional_group("experts", [&](V& experts) {
    experts.optional("dispatch", s.experts.dispatch);
    describe_numbers(experts, s, "experts.");
    experts.optional("fp8_dispatch", s.experts.fp8_dispatch);
    experts.optional("shared_overlap", s.experts.shared_overlap);
    experts.optional("fused_bias", s.experts.fused_bias);
  });
  v.optional_group("head", [&](V& head) {
    head.optional("deferred_weight_gradient", s.head.deferred_weight_gradient);
    describe_numbers(head, s, "head.");
  });
  v.optional_group("memory", [&](V& memory) { describe_numbers(memory, s, "memory."); });
  v.words("software", s.tables.software);
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
