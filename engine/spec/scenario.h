// One design point in full: everything simulate() needs, and nothing it could not be given.
#pragma once

#include <optional>

#include "engine/spec/device.h"
#include "engine/spec/fabric_spec.h"
#include "engine/spec/fault.h"
#include "engine/spec/model.h"
#include "engine/spec/plan.h"
#include "engine/spec/prediction.h"
#include "engine/spec/stack.h"
#include "engine/spec/workload.h"

namespace shardscape {

/// Bytes per value that dispatch kernels send to an expert; on the way back a value has the type of other messages.
inline double dispatched_value_bytes(const PrecisionPolicy& policy, const StackProfile::Experts& stack) {
  constexpr double kScales = 4.0 / 128;  // four bytes for each 128 values, as DeepEP sends them
  const bool narrow = operand_bytes(policy.products) <= operand_bytes(Precision::fp8);
  return stack.fp8_dispatch && narrow ? bytes_per_element(Precision::fp8) + kScales
                                      : bytes_per_element(policy.wire);
}

/// A machine and its software: one combination of the study's hardware axes.
struct System {
  DeviceSpec device;
  FabricSpec fabric;
  StackProfile stack;
  /// The device of the pool that prefills, on the same fabric; nothing: `device`, as in the pool that decodes.
  std::optional<DeviceSpec> prefill_device = {};
  [[nodiscard]] const DeviceSpec& prefilling() const { return prefill_device ? *prefill_device : device; }
  friend bool operator==(const System&, const System&) = default;
};

/// Whether a workload gives the experts of a model unequal loads.
inline bool loads_differ(const ModelSpec& model, const WorkloadSpec& workload) {
  return model.moe && model.moe->routes() && model.moe->capacity_factor == 0 &&
         !workload.expert_load.balanced();
}

/// The plan with the redundant experts that the stack's server keeps, where experts are dealt over ranks.
inline ParallelPlan with_replicas(ParallelPlan plan, const ModelSpec& model,
                                  const StackProfile::Serving& stack) {
  const auto replicas = [&](std::int64_t wanted, std::int32_t ranks) {
    return model.moe && ranks > 1 ? static_cast<std::int32_t>(wanted) : 0;
  };
  plan.redundant_experts = replicas(stack.redundant_experts, std::max(plan.expert, plan.ffn));
  if (plan.disaggregated())
    plan.prefill.redundant_experts = replicas(stack.prefill_redundant_experts, plan.prefill.expert);
  return plan;
}

/// All that stays fixed while plans vary. Validated: simulate() does not check it again.
struct Setting {
  ModelSpec model;
  System system;
  WorkloadSpec workload;

  /// The policy of all tensors: the workload's, with the weights that the stack trains, or the cache and the attention
  /// of its server.
  [[nodiscard]] PrecisionPolicy policy() const { return policy_on(system.device, workload.precision); }
  /// That of the pool that prefills, which may have a device or a precision of its own.
  [[nodiscard]] PrecisionPolicy prefill_policy() const {
    return policy_on(system.prefilling(),
                     policy_name(system.stack.serving.prefill_precision, workload.precision));
  }

  /// Whether the passes of a training step are CUDA graphs.
  [[nodiscard]] bool trains_on_graphs() const {
    const StackProfile& stack = system.stack;
    return stack.host.graph_step > Seconds(0) && !model.moe &&
           system.device.architecture >= stack.graphs_from;
  }
  /// What the host takes in training. Where the passes are CUDA graphs, it launches none of their kernels.
  [[nodiscard]] StackProfile::Host training_host() const {
    StackProfile::Host host = system.stack.host;
    if (!trains_on_graphs()) return host;
    host.forward_layer = host.backward_layer = host.per_collective = host.per_collective_rank = Seconds(0);
    host.step_fixed = host.graph_step;
    return host;
  }

  /// The policy of a server, or of training, on this device.
  [[nodiscard]] PrecisionPolicy policy_on(const DeviceSpec& device, PolicyName name) const {
    PrecisionPolicy policy = policy_of(name, workload.phase);
    if (workload.phase == Phase::training) {
      if (system.stack.kept.fp8_weights)
        policy.keep_narrow_weights(device.architecture != Architecture::blackwell);
      return policy;
    }
    const bool narrow = operand_bytes(policy.products) <= operand_bytes(Precision::fp8);
    const StackProfile::Serving& stack = system.stack.serving;
    const bool recipe = stack.fp8_cache_blackwell && model.moe && device.supports(Precision::fp4);
    if ((stack.fp8_cache || recipe) && narrow) policy.attention = policy.kv_cache = Precision::fp8;
    if (model.moe && policy.products == Precision::fp4)
      policy.serve_experts(device.supports(Precision::fp4), model.moe->weights_alone);
    return policy;
  }
};

/// Whether the pool that prefills has a device or a precision of its own.
inline bool pools_differ(const Setting& setting) {
  return setting.system.prefill_device ||
         setting.system.stack.serving.prefill_precision != PrefillPrecision::alike;
}
/// The setting as the pool that prefills has it: with its device and its precision.
inline Setting prefill_setting(Setting setting) {
  if (setting.system.prefill_device) setting.system.device = *setting.system.prefill_device;
  PrefillPrecision& precision = setting.system.stack.serving.prefill_precision;
  setting.workload.precision = policy_name(precision, setting.workload.precision);
  precision = PrefillPrecision::alike;
  setting.system.prefill_device.reset();
  return setting;
}
/// Whether both pools keep the key-value cache in one type; caches that move from one to the other are not converted.
inline bool caches_agree(const Setting& setting) {
  return setting.prefill_policy().kv_cache == setting.policy().kv_cache;
}
/// The bytes that the device has whose use is Prediction::memory_peak.
inline Bytes memory_of_fullest(const System& system, bool peak_in_prefill) {
  return (peak_in_prefill ? system.prefilling() : system.device).memory_capacity();
}

}  // namespace shardscape
