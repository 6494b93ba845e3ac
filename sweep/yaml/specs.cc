// THE table of keys: one description per spec, walked by Reader, Writer and Lister alike (visitors.h).
#include "sweep/yaml/specs.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "engine/base/words.h"
#include "engine/spec/fabric_numbers.h"
#include "engine/spec/spec_numbers.h"

namespace shardscape::yaml {

using technology::Floorplan;
using technology::LogicNode;
using technology::MemoryTechnology;
using technology::NetworkTechnology;

namespace {

/// Describes keys that are called as the members which have them: each by `call`, which is v.optional or the like.
#define SHARDSCAPE_KEYS(call, spec, ...)                                               \
  {                                                                                    \
    auto& described = spec;                                                            \
    const auto describe_key = [&](const char* key, auto& value) { call(key, value); }; \
    NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(SHARDSCAPE_KEY, __VA_ARGS__))             \
  }
#define SHARDSCAPE_KEY(member) describe_key(#member, described.member);

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
  SHARDSCAPE_KEYS(v.optional, moe, shared_gate, router, normalise_top_k, weights_alone, router_bias)
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
  SHARDSCAPE_KEYS(v.optional, m, mlp, norm, norm_bias, norm_place, qk_norm, position, window_pattern,
                  attention_sinks, fp8_block_scales, attention_soft_cap, logit_soft_cap, parallel_residual,
                  shared_norm, embedding_norm, tied_embeddings, head_bias, linear_bias, qkv_bias, output_bias,
                  mlp_bias)
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
  SHARDSCAPE_KEYS(v.optional, s, attention, fused_sinks_from, graphs_from, partition)
  v.fact("pipeline_layout", s.pipeline_layout);
  SHARDSCAPE_KEYS(v.optional, s, zero2_gradients, fused_loss, fused_pointwise, fused_residual, keep_gathered)
  v.choices("selective_recompute", s.selective_recompute,
            {RecomputePart::attention_core, RecomputePart::norms, RecomputePart::latent_up,
             RecomputePart::activations, RecomputePart::mlp, RecomputePart::experts});
  v.optional_group("kept", [&](V& kept) {
    SHARDSCAPE_KEYS(kept.optional, s.kept, attention_output, activation_inputs, fp8_weights)
  });
  describe_numbers(v, s, stack_numbers(), [&](V& group, std::string_view path) {
    if (path == "communication.") {
      SHARDSCAPE_KEYS(group.optional, s.communication, context_exchange, overlapped_exchanges, pipeline_async,
                      scatter_boundaries, protocols, all_reduce)
      group.choices("algorithms", s.communication.algorithms, StackProfile::Communication::all_algorithms());
    } else if (path == "serving.") {
      SHARDSCAPE_KEYS(group.optional, s.serving, scheduler, kv_growth, queue, routing, prefix_cache,
                      attention_ranks, fp8_cache, fp8_cache_blackwell, kv_transfer, prefill_precision,
                      dispatch, prompts_summed, two_batch_overlap)
    } else if (path == "experts.") {
      SHARDSCAPE_KEYS(group.optional, s.experts, dispatch, fp8_dispatch, shared_overlap, fused_bias)
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
  SHARDSCAPE_KEYS(v.fact, s.tables, expert_software_from, expert_software_on, years, usual_zero_stage,
                  usual_recompute, usual_sequence_parallel, usual_offload, usual_expert_parallel,
                  usual_expert_tensor)
}

// Of technologies; references to other specs are read and written separately.

template <class V>
void describe(V& v, LogicNode& logic) {
  v.required("name", logic.name);
  v.comment("source");
  v.required("density", logic.step.density);
  v.required("clock_at_equal_power", logic.step.clock_at_equal_power);
  v.required("power_at_equal_clock", logic.step.power_at_equal_clock);
  v.required("sram_cell", logic.sram_cell);
}

template <class V>
void describe(V& v, MemoryTechnology& memory) {
  v.required("name", memory.name);
  v.comment("source");
  SHARDSCAPE_KEYS(v.required, memory, capacity_per_stack, bandwidth_per_stack, energy, edge)
}

template <class V>
void describe(V& v, NetworkTechnology& network) {
  v.required("name", network.name);
  v.comment("source");
  v.required("bandwidth", network.bandwidth);
  v.required("energy", network.energy);
}

template <class V>
void describe(V& v, Floorplan& plan) {
  v.required("name", plan.name);
  v.required("device", plan.device);
  v.comment("source");
  SHARDSCAPE_KEYS(v.required, plan, area, sm_share, l2_share, sm_sram_share, l2_sram_share, memory_edge,
                  power)
  v.group("clock", [&](V& clock) {
    clock.required("least", plan.least_clock);
    clock.required("most", plan.most_clock);
  });
}

/// The spec of a map if it passes its own validate(); otherwise nothing, with every problem in `diagnostics`.
/// `take_references` first reads the keys that refer to other specs, and returns false where one of them is bad.
/// `paths`: as in ReadState::set_paths().
template <class Spec, class Take>
std::optional<Spec> read_spec(const Node& node, const std::string& prefix, Diagnostics& diagnostics,
                              const Take& take_references, std::vector<std::string> (*paths)() = nullptr) {
  Spec spec;
  ReadState state(node.where, prefix, diagnostics);
  state.set_paths(paths);
  Reader reader(node, "", state);
  if (!node.is_map()) return std::nullopt;
  const bool references = take_references(reader, spec);
  describe(reader, spec);
  reader.finish();
  if (!references) return std::nullopt;
  state.report(spec.validate());
  if (state.failed()) return std::nullopt;
  return spec;
}

template <class Spec>
std::optional<Spec> read_spec(const Node& node, const std::string& prefix, Diagnostics& diagnostics) {
  return read_spec<Spec>(node, prefix, diagnostics, [](Reader&, Spec&) { return true; });
}

template <class Spec>
Node write_spec(Spec spec) {
  Node node = Node::map();
  Writer writer(node);
  describe(writer, spec);
  return node;
}

template <class Spec>
std::vector<Leaf> leaves(const std::string& prefix) {
  std::vector<Leaf> result;
  Lister lister(prefix, result);
  Spec spec;
  describe(lister, spec);
  return result;
}

#undef SHARDSCAPE_KEYS
#undef SHARDSCAPE_KEY

}  // namespace

std::optional<ModelSpec> read_model(const Node& node, const std::string& prefix, Diagnostics& diagnostics) {
  return read_spec<ModelSpec>(node, prefix, diagnostics);
}

std::optional<DevicePreset> read_device(const Node& node, const std::string& prefix,
                                        Diagnostics& diagnostics) {
  return read_spec<DevicePreset>(node, prefix, diagnostics);
}

std::optional<StackPreset> read_stack(const Node& node, const std::string& prefix, Diagnostics& diagnostics) {
  constexpr auto paths = [] {
    std::vector<std::string> all;
    for (const Leaf& leaf : leaves<StackPreset>("")) all.push_back(leaf.path);
    return all;
  };
  return read_spec<StackPreset>(
      node, prefix, diagnostics, [](Reader&, StackPreset&) { return true; }, paths);
}

std::optional<FabricTemplate> read_fabric(const Node& node, const std::string& prefix,
                                          Diagnostics& diagnostics, const Node** device) {
  FabricTemplate result;
  ReadState state(node.where, prefix, diagnostics);
  Reader reader(node, "", state);
  *device = nullptr;
  if (!node.is_map()) return std::nullopt;
  *device = reader.take_required("device");
  describe(reader, result.fabric);
  reader.finish();
  state.report(result.fabric.validate());
  if (state.failed()) return std::nullopt;
  return result;
}

std::optional<LogicNode> read_logic(const Node& node, const std::string& prefix, Diagnostics& diagnostics,
                                    const LogicReference& load_older) {
  return read_spec<LogicNode>(node, prefix, diagnostics, [&](Reader& reader, LogicNode& logic) {
    const Node* older = reader.take("relative_to");
    if (older == nullptr) return true;
    logic.relative_to = load_older(*older, key_path(prefix, "relative_to"));
    return logic.relative_to != nullptr;
  });
}

std::optional<MemoryTechnology> read_memory(const Node& node, const std::string& prefix,
                                            Diagnostics& diagnostics) {
  return read_spec<MemoryTechnology>(node, prefix, diagnostics);
}

std::optional<NetworkTechnology> read_network(const Node& node, const std::string& prefix,
                                              Diagnostics& diagnostics) {
  return read_spec<NetworkTechnology>(node, prefix, diagnostics);
}

std::optional<Floorplan> read_floorplan(const Node& node, const std::string& prefix, Diagnostics& diagnostics,
                                        const LogicReference& load_logic,
                                        const MemoryReference& load_memory) {
  return read_spec<Floorplan>(node, prefix, diagnostics, [&](Reader& reader, Floorplan& plan) {
    const Node* logic_node = reader.take_required("logic");
    const Node* memory_node = reader.take_required("memory");
    if (logic_node == nullptr || memory_node == nullptr) return false;
    const auto logic = load_logic(*logic_node, key_path(prefix, "logic"));
    const auto memory = load_memory(*memory_node, key_path(prefix, "memory"));
    if (!logic || !memory) return false;
    plan.logic = *logic;
    plan.memory = *memory;
    return true;
  });
}

Node write(const ModelSpec& model) { return write_spec(model); }
Node write(const DeviceSpec& device) { return write_spec(device); }
Node write(const StackProfile& stack) { return write_spec(stack); }
Node write(const DevicePreset& device) { return write_spec(device); }
Node write(const StackPreset& stack) { return write_spec(stack); }
Node write(const FabricSpec& fabric) { return write_spec(fabric); }
Node write(const Cluster& cluster) {
  Node node = write(cluster.fabric.fabric);
  node.set("device", write(cluster.device));
  return node;
}

Node write(const LogicNode& logic) {
  Node node = write_spec(logic);
  if (logic.relative_to) node.set("relative_to", write(*logic.relative_to));
  return node;
}

Node write(const MemoryTechnology& memory) { return write_spec(memory); }
Node write(const NetworkTechnology& network) { return write_spec(network); }

Node write(const Floorplan& floorplan) {
  Node node = write_spec(floorplan);
  node.set("logic", write(floorplan.logic));
  node.set("memory", write(floorplan.memory));
  return node;
}

std::vector<Leaf> device_leaves(const std::string& prefix) { return leaves<DevicePreset>(prefix); }
std::vector<Leaf> stack_leaves(const std::string& prefix) { return leaves<StackPreset>(prefix); }
std::vector<Leaf> model_leaves(const std::string& prefix) { return leaves<ModelSpec>(prefix); }

}  // namespace shardscape::yaml
