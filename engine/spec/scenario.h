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

/// What stays fixed while plans vary. Validated: simulate() does not check it again.
struct Setting {
  ModelSpec model;
  System system;
  WorkloadSpec workload;
};

}  // namespace shardscape
