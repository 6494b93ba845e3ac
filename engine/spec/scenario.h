// One design point in full: everything simulate() needs, and nothing it could not be given.
#pragma once

#include "engine/spec/device.h"
#include "engine/spec/fabric_spec.h"
#include "engine/spec/fault.h"
#include "engine/spec/model.h"
#include "engine/spec/plan.h"
#include "engine/spec/stack.h"
#include "engine/spec/workload.h"

namespace shardscape {

/// A machine and its software: one combination of the study's hardware axes.
struct System {
  DeviceSpec device;
  FabricSpec fabric;
  StackProfile stack;
};

/// Whether a workload gives the experts of a model unequal loads.
inline bool loads_differ(const ModelSpec& model, const WorkloadSpec& workload) {
  return model.moe && model.moe->routes() && model.moe->capacity_factor == 0 &&
         !workload.expert_load.balanced();
}

/// What stays fixed while plans vary. Validated: simulate() does not check it again.
struct Setting {
  ModelSpec model;
  System system;
  WorkloadSpec workload;

  /// What everything is made of: the workload's policy, with the cache and the attention of the stack's server.
  [[nodiscard]] PrecisionPolicy policy() const {
    PrecisionPolicy policy = workload.policy();
    const bool narrow = operand_bytes(policy.products) <= operand_bytes(Precision::fp8);
    if (workload.phase == Phase::inference && system.stack.serving.fp8_cache && narrow)
      policy.attention = policy.kv_cache = Precision::fp8;
    return policy;
  }
};

}  // namespace shardscape
