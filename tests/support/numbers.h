// Every number of a machine and its software by its path in YAML, with the direction of its law: which way it
// can never make a step longer. The paths come from the descriptions that files are read by (specs.cc), so
// that a number which is new there has no direction here and fails NumberLaws.EveryNumberHasItsLaw.
#pragma once

#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/spec/scenario.h"
#include "sweep/yaml/specs.h"
#include "sweep/yaml/value.h"
#include "tests/support/engine_fixture.h"

namespace shardscape::test {

enum class Direction : std::uint8_t {
  more_is_faster,  ///< never slower
  more_is_slower,  ///< never faster
  no_time,         ///< a training step keeps its time, bit for bit
  none             ///< neither, for the reason given
};

struct NumberLaw {
  std::string_view path;  ///< without the part; for a fabric only the key
  Direction direction = Direction::none;
  std::string_view why = {};  ///< the reason for `none`
  bool share = false;         ///< 1 at most
  bool whole = false;         ///< integers
};

inline constexpr Direction kFaster = Direction::more_is_faster, kSlower = Direction::more_is_slower,
                           kNoTime = Direction::no_time, kNone = Direction::none;

inline constexpr std::string_view kOtherProtocol = "larger messages go by another protocol, faster or slower";
inline constexpr NumberLaw kDeviceLaws[] = {
    {"sm.count", kFaster, "", false, true},
    {"sm.clock", kFaster},
    {"sm.tensor_flops_per_clock.fp32", kFaster},
    {"sm.tensor_flops_per_clock.tf32", kFaster},
    {"sm.tensor_flops_per_clock.fp16", kFaster},
    {"sm.tensor_flops_per_clock.bf16", kFaster},
    {"sm.tensor_flops_per_clock.fp8", kFaster},
    {"sm.tensor_flops_per_clock.fp4", kFaster},
    {"sm.vector_flops_per_clock", kFaster},
    {"sm.registers", kFaster},
    {"sm.sram", kFaster},
    {"sm.sram_bytes_per_clock", kFaster},
    {"sm.tensor_efficiency", kFaster, "", true},
    {"sm.load_latency_clocks", kSlower},
    {"sm.l2_bytes_per_clock", kFaster},
    {"sm.fragment.m", kNone, "how tiles are cut: neither larger nor smaller fragments fit all shapes better"},
    {"sm.fragment.n", kNone, "likewise"},
    {"sm.fragment.per_cta", kNone, "likewise"},
    {"sm.cluster", kNone, "CTAs that load together also leave together: fewer loads, coarser waves"},
    {"l2.capacity", kFaster},
    {"l2.bytes_per_clock", kFaster},
    {"hbm.stacks", kFaster, "", false, true},
    {"hbm.capacity_per_stack", kNoTime},
    {"hbm.capacity", kNoTime},
    {"hbm.bandwidth_per_stack", kFaster},
    {"hbm.bandwidth", kFaster},
    {"sustained.tensor", kFaster, "", true},
    {"sustained.hbm", kFaster, "", true},
    {"sustained.l2", kFaster, "", true},
    {"attention.forward", kFaster, "", true},
    {"attention.backward", kFaster, "", true},
    {"attention.prompt_rate", kFaster},
    {"attention.decode_rate", kNoTime},
    {"power", kFaster},
    {"price_per_hour", kNone, "what tokens cost follows from their rate"},
    {"energy.idle_watts", kSlower},
    {"energy.flop_pj", kSlower},
    {"energy.fp8", kSlower},
    {"energy.fp4", kSlower},
    {"energy.byte_pj", kSlower},
    {"energy.burst_watts", kNoTime},
    {"products.latency", kSlower},
    {"products.step", kSlower},
    {"products.reduction", kSlower},
    {"products.output", kSlower},
    {"products.port", kFaster},
    {"kernel_latency", kSlower},
    {"cold_start", kNoTime},
    {"nccl.start", kSlower},
    {"nccl.ll.step", kSlower},
    {"nccl.ll.bandwidth", kFaster},
    {"nccl.ll.limit", kNone, kOtherProtocol},
    {"nccl.ll128.start", kSlower},
    {"nccl.ll128.step", kSlower},
    {"nccl.ll128.bandwidth", kFaster},
    {"nccl.ll128.limit", kNone, kOtherProtocol},
    {"nccl.simple.start", kSlower},
    {"nccl.simple.step", kSlower},
    {"nccl.simple.link_share", kFaster, "", true},
    {"nccl.simple.own_bandwidth", kFaster},
    {"nccl.all_to_all.start", kSlower},
    {"nccl.all_to_all.small_peer", kSlower},
    {"nccl.all_to_all.small_bandwidth", kFaster},
    {"nccl.all_to_all.large_start", kSlower},
    {"nccl.all_to_all.large_peer", kSlower},
    {"nccl.all_to_all.large_link_share", kFaster, "", true},
    {"nccl.all_to_all.own_bandwidth", kFaster},
    {"custom_all_reduce.vllm.start", kSlower},
    {"custom_all_reduce.vllm.rank", kSlower},
    {"custom_all_reduce.vllm.one_shot_bandwidth", kFaster},
    {"custom_all_reduce.vllm.second_start", kSlower},
    {"custom_all_reduce.vllm.two_shot_bandwidth", kFaster},
    {"custom_all_reduce.vllm.pair_limit", kNone, kOtherProtocol},
    {"custom_all_reduce.vllm.two_shot_limit", kNone, kOtherProtocol},
    {"custom_all_reduce.vllm.eager_floor", kNoTime},
    {"custom_all_reduce.trtllm.start", kSlower},
    {"custom_all_reduce.trtllm.rank", kSlower},
    {"custom_all_reduce.trtllm.one_shot_bandwidth", kFaster},
    {"custom_all_reduce.trtllm.second_start", kSlower},
    {"custom_all_reduce.trtllm.two_shot_bandwidth", kFaster},
    {"custom_all_reduce.trtllm.pair_limit", kNone, kOtherProtocol},
    {"custom_all_reduce.trtllm.two_shot_limit", kNone, kOtherProtocol},
    {"custom_all_reduce.trtllm.eager_floor", kNoTime},
    {"custom_all_reduce.multimem_start", kSlower},
    {"custom_all_reduce.multimem_bandwidth", kFaster},
    {"expert_dispatch.low_latency.dispatch_start", kNoTime},
    {"expert_dispatch.low_latency.combine_start", kNoTime},
    {"expert_dispatch.low_latency.dispatch_expert", kNoTime},
    {"expert_dispatch.low_latency.combine_expert", kNoTime},
    {"expert_dispatch.low_latency.dispatch_bandwidth", kNoTime},
    {"expert_dispatch.low_latency.combine_bandwidth", kNoTime},
    {"expert_dispatch.low_latency.queue_bandwidth", kNoTime},
    {"expert_dispatch.low_latency.dispatch_node", kNoTime},
    {"expert_dispatch.low_latency.combine_node", kNoTime},
    {"expert_dispatch.low_latency.node_bandwidth", kNoTime},
    {"expert_dispatch.normal.dispatch_start", kSlower},
    {"expert_dispatch.normal.combine_start", kSlower},
    {"expert_dispatch.normal.row_bandwidth", kFaster},
    {"expert_dispatch.normal.copy", kSlower},
    {"expert_dispatch.normal.sm_bandwidth", kFaster},
    {"expert_dispatch.normal.bandwidth", kFaster},
    {"expert_dispatch.normal.local_copies", kSlower},
    {"expert_dispatch.normal.dispatch_node", kSlower},
    {"expert_dispatch.normal.combine_node", kSlower},
    {"expert_dispatch.normal.node_bandwidth", kFaster},
};

inline constexpr NumberLaw kStackLaws[] = {
    {"zero_slice", kSlower},
    {"host.forward_layer", kSlower},
    {"host.backward_layer", kSlower},
    {"host.per_collective", kSlower},
    {"host.per_collective_rank", kSlower},
    {"host.stage_pass", kSlower},
    {"host.step_fixed", kSlower},
    {"host.graph_step", kNone, "graphs take the launches with them"},
    {"host.decode_layer", kNoTime},
    {"host.decode_step_fixed", kNoTime},
    {"host.decode_gap", kNoTime},
    {"host.decode_sequence", kNoTime},
    {"host.decode_stream", kNoTime},
    {"host.draft_sequence", kNone, "of servers that draft; training never has it"},
    {"communication.call", kSlower},
    {"communication.rank_step", kSlower},
    {"communication.rank_step_scale_out", kSlower},
    {"communication.local_copy", kSlower},
    {"communication.scale_out_scaling", kFaster, "", true},
    {"communication.zero_bucket", kNone, "larger buckets are fewer calls, and hide less"},
    {"communication.bucket_per_rank", kNone, "larger buckets are fewer calls, and hide less"},
    {"communication.scale_up_fraction", kFaster, "", true},
    {"communication.scale_out_fraction", kFaster, "", true},
    {"communication.tensor_overlap", kFaster, "", true},
    {"communication.context_overlap", kFaster, "", true},
    {"communication.data_overlap", kFaster, "", true},
    {"communication.data_hidden", kFaster, "", true},
    {"communication.data_sms", kSlower},
    {"communication.gather_overlap", kFaster, "", true},
    {"communication.expert_overlap", kNone, "passes in pairs wait for the inputs of both", true},
    {"communication.expert_hidden", kFaster, "", true},
    {"experts.dispatch_sms", kFaster, "", false, true},
    {"experts.forward_layer", kSlower},
    {"experts.backward_layer", kSlower},
    {"experts.per_expert", kSlower},
    {"experts.load_wait", kSlower},
    {"experts.plain_launch", kSlower},
    {"quantisation.passes", kSlower},
    {"quantisation.weight_bytes", kSlower},
    {"head.deferral_limit", kNone, "what leaves the backwards comes after them", false, true},
    {"communication.bucket", kNone, "larger buckets are fewer calls, and hide less"},
    {"serving.converted_share", kNoTime, "", true},
    {"serving.token_budget", kNoTime, "", false, true},
    {"serving.max_batch", kNoTime, "", false, true},
    {"serving.kv_block", kNoTime, "", false, true},
    {"serving.kv_share", kNoTime, "", true},
    {"serving.ffn_batches", kNoTime, "", false, true},
    {"serving.kv_watermark", kNoTime, "", true},
    {"serving.balance_wait", kNoTime, "", false, true},
    {"serving.host_cache", kNoTime},
    {"serving.disk_cache", kNoTime},
    {"serving.host_bandwidth", kNoTime},
    {"serving.disk_bandwidth", kNoTime},
    {"serving.poll_interval", kNoTime, "", false, true},
    {"serving.schedule_ahead", kNoTime, "", false, true},
    {"serving.answer_after", kNoTime, "", false, true},
    {"serving.pool_prompts", kNoTime, "", false, true},
    {"serving.frontend", kNoTime},
    {"serving.eager_floor", kNoTime},
    {"serving.first_prompts", kNoTime},
    {"serving.fp8_expert_share", kNoTime, "", true},
    {"serving.fp8_block_share", kNoTime, "", true},
    {"serving.fp8_blackwell_share", kNoTime, "", true},
    {"serving.eager_layer", kNoTime},
    {"serving.eager_expert_layer", kNoTime},
    {"serving.eager_fp4_layer", kNoTime},
    {"serving.graph_tokens", kNoTime, "", false, true},
    {"serving.redundant_experts", kNoTime, "", false, true},
    {"serving.prefill_redundant_experts", kNoTime, "", false, true},
    {"state.gradient_bytes", kSlower},
    {"state.gradient_comm_bytes", kSlower},
    {"state.master_bytes", kSlower},
    {"state.moment_bytes", kSlower},
    {"memory.reserve", kNoTime},
    {"memory.workspace", kNoTime},
    {"memory.fragmentation", kNoTime},
};

inline constexpr std::string_view kWiring = "another size or other wires: another machine";
inline constexpr NumberLaw kFabricLaws[] = {
    {"bandwidth", kFaster},
    {"bandwidth_per_gpu", kFaster},
    {"uplink_bandwidth", kFaster},
    {"global_bandwidth", kFaster},
    {"latency", kSlower},
    {"uplink_latency", kSlower},
    {"global_latency", kSlower},
    {"size", kNone, kWiring},
    {"shape", kNone, kWiring},
    {"levels", kNone, kWiring},
    {"radix", kNone, kWiring},
    {"oversubscription", kNone, kWiring},
    {"rails", kNone, kWiring},
    {"nics_per_node", kNone, kWiring},
    {"gpus_per_tray", kNone, kWiring},
    {"groups", kNone, kWiring},
    {"routers_per_group", kNone, kWiring},
    {"hosts_per_router", kNone, kWiring},
    {"switches", kNone, kWiring},
    {"between", kNone, kWiring},
    {"from", kNone, kWiring},
    {"to", kNone, kWiring},
};

/// By their whole path, the numbers whose law is another where requests are served instead of a training
/// step.
inline constexpr std::string_view kAdmission = "who is admitted, and what an iteration works on";
inline constexpr NumberLaw kServingLaws[] = {
    {"device.attention.backward", kNoTime},
    {"device.attention.decode_rate", kFaster},
    {"device.expert_dispatch.normal.dispatch_start", kNoTime},
    {"device.expert_dispatch.normal.combine_start", kNoTime},
    {"device.expert_dispatch.normal.copy", kNoTime},
    {"device.expert_dispatch.normal.local_copies", kNoTime},
    {"device.expert_dispatch.normal.dispatch_node", kNoTime},
    {"device.expert_dispatch.normal.combine_node", kNoTime},
    {"device.expert_dispatch.normal.row_bandwidth", kNoTime},
    {"device.expert_dispatch.normal.sm_bandwidth", kNoTime},
    {"device.expert_dispatch.normal.bandwidth", kNoTime},
    {"device.expert_dispatch.normal.node_bandwidth", kNoTime},
    {"stack.zero_slice", kNoTime},
    {"stack.host.forward_layer", kNoTime},
    {"stack.host.backward_layer", kNoTime},
    {"stack.host.per_collective_rank", kNoTime},
    {"stack.host.stage_pass", kNoTime},
    {"stack.host.step_fixed", kNoTime},
    {"stack.host.graph_step", kNoTime},
    {"stack.host.decode_layer", kSlower},
    {"stack.host.decode_step_fixed", kSlower},
    {"stack.host.decode_gap", kSlower},
    {"stack.host.decode_sequence", kSlower},
    {"stack.host.decode_stream", kSlower},
    {"stack.host.draft_sequence", kNoTime},
    {"stack.communication.data_overlap", kNoTime},
    {"stack.communication.data_hidden", kNoTime},
    {"stack.communication.data_sms", kNoTime},
    {"stack.communication.gather_overlap", kNoTime},
    {"stack.communication.expert_overlap", kNoTime},
    {"stack.communication.expert_hidden", kNoTime},
    {"stack.experts.dispatch_sms", kNoTime},
    {"stack.experts.forward_layer", kNoTime},
    {"stack.experts.backward_layer", kNoTime},
    {"stack.experts.per_expert", kNoTime},
    {"stack.experts.load_wait", kNoTime},
    {"stack.experts.plain_launch", kNoTime},
    {"stack.quantisation.passes", kNoTime},
    {"stack.quantisation.weight_bytes", kNoTime},
    {"stack.serving.converted_share", kNoTime},
    {"stack.serving.fp8_expert_share", kNoTime},
    {"stack.serving.fp8_block_share", kNoTime},
    {"stack.serving.fp8_blackwell_share", kNoTime},
    {"stack.serving.token_budget", kNone, kAdmission},
    {"stack.serving.max_batch", kNone, kAdmission},
    {"stack.state.gradient_bytes", kNoTime},
    {"stack.state.gradient_comm_bytes", kNoTime},
    {"stack.state.master_bytes", kNoTime},
    {"stack.state.moment_bytes", kNoTime},
};

inline const NumberLaw* law_of(std::span<const NumberLaw> laws, std::string_view path) {
  for (const NumberLaw& law : laws) {
    if (law.path == path) return &law;
  }
  return nullptr;
}

/// A number of a part of the system; `node` holds it in a tree that the part is read from.
struct Number {
  std::string path;
  std::optional<yaml::Dimension> dimension;
  double value = 0;
  yaml::Node* node = nullptr;
};

/// Numbers of a tree, lists included; texts and names are passed over.
inline void list_numbers(yaml::Node& node, const std::string& path, std::vector<Number>& numbers) {
  for (yaml::Entry& entry : node.entries)
    list_numbers(entry.value, path.empty() ? entry.key : path + "." + entry.key, numbers);
  for (yaml::Node& item : node.items) list_numbers(item, path + "[]", numbers);
  if (!node.is_scalar()) return;
  if (const auto value = yaml::parse_number_node(node)) {
    numbers.push_back({path, std::nullopt, *value, &node});
    return;
  }
  for (const yaml::Dimension d : {yaml::Dimension::time, yaml::Dimension::bandwidth, yaml::Dimension::data,
                                  yaml::Dimension::frequency}) {
    if (const auto value = yaml::parse_quantity_node(node, d)) {
      numbers.push_back({path, d, *value, &node});
      return;
    }
  }
}

inline void set(const Number& number, const NumberLaw& law, double value) {
  *number.node = law.whole          ? yaml::make_scalar(static_cast<std::int64_t>(value))
                 : number.dimension ? yaml::Node::scalar(yaml::format_quantity(value, *number.dimension))
                                    : yaml::make_scalar(value);
}

/// The last key of a path of a fabric.
inline std::string_view last_key(std::string_view path) {
  while (path.ends_with("[]")) path.remove_suffix(2);
  return path.substr(path.rfind('.') + 1);
}

/// The larger value of a number, by an amount from little more than rounding to several times.
inline double grown(const Number& number, const NumberLaw& law, ScenarioGenerator& draw) {
  if (law.share) return number.value + (1 - number.value) * draw.pick({0.01, 0.5, 1.0});
  if (law.whole) return std::ceil(number.value * draw.pick({1.001, 1.5, 4.0}));
  const double more = number.dimension == yaml::Dimension::time   ? draw.pick({1e-8, 1e-6, 1e-4})
                      : number.dimension == yaml::Dimension::data ? draw.pick({1e3, 1e6, 1e9})
                                                                  : draw.pick({0.01, 1.0, 3.0});
  if (law.direction != Direction::more_is_faster) return number.value * draw.pick({1.0, 1.1, 2.0}) + more;
  if (number.value == 0) return 64 * more;
  return number.value * draw.pick({1.001, 1.1, 1.7, 8.0});
}

/// The setting with one more of a number, and the number's name; the law says what it may do.
struct GrownSetting {
  std::string number;
  const NumberLaw* law = nullptr;
  Setting setting;
};

namespace numbers {

template <class Spec, class Read, class Put>
void grow_part(const Spec& part, std::string_view prefix, std::span<const NumberLaw> laws, bool by_last_key,
               ScenarioGenerator& draw, const Read& read, const Put& put) {
  const yaml::Node tree = yaml::write(part);
  yaml::Node count = tree;
  std::vector<Number> all;
  list_numbers(count, "", all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const NumberLaw* law = law_of(laws, by_last_key ? last_key(all[i].path) : std::string_view(all[i].path));
    if (law == nullptr || law->direction == Direction::none) continue;
    yaml::Node changed = tree;
    std::vector<Number> numbers;
    list_numbers(changed, "", numbers);
    set(numbers[i], *law, grown(numbers[i], *law, draw));
    yaml::Diagnostics problems;
    if (const auto spec = read(changed, problems); spec && problems.empty())
      put(std::string(prefix) + all[i].path, *law, *spec);
  }
}

}  // namespace numbers

/// Every number with a law that the setting's device, fabric or stack may have more of, one at a time.
template <class Visit>
void for_each_grown(const Setting& setting, ScenarioGenerator& draw, const Visit& visit) {
  const auto with = [&](auto System::*part) {
    return [&, part](const std::string& name, const NumberLaw& law, const auto& spec) {
      GrownSetting grown{name, &law, setting};
      grown.setting.system.*part = spec;
      visit(grown);
    };
  };
  numbers::grow_part(
      setting.system.device, "device.", kDeviceLaws, false, draw,
      [](const yaml::Node& n, yaml::Diagnostics& p) { return yaml::read_device(n, "", p); },
      with(&System::device));
  numbers::grow_part(
      setting.system.stack, "stack.", kStackLaws, false, draw,
      [](const yaml::Node& n, yaml::Diagnostics& p) { return yaml::read_stack(n, "", p); },
      with(&System::stack));
  numbers::grow_part(
      setting.system.fabric, "fabric.", kFabricLaws, true, draw,
      [](yaml::Node n, yaml::Diagnostics& p) -> std::optional<FabricSpec> {
        const yaml::Node* device = nullptr;
        n.set("device", yaml::Node::scalar("any"));
        const auto fabric = yaml::read_fabric(n, "", p, &device);
        return fabric ? std::optional(fabric->fabric) : std::nullopt;
      },
      with(&System::fabric));
}

}  // namespace shardscape::test
