// What files of devices, stacks and clusters hold: specs of the engine, and the keys by which sweep/validate reads
// tables of measurements. No prediction depends on those, so that the engine's specs do without.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/problems.h"
#include "engine/spec/device.h"
#include "engine/spec/plan.h"
#include "engine/spec/stack.h"

namespace shardscape::yaml {

/// How tables of measurements name the software of a stack, and the settings of its runs that they leave blank.
struct StackTables {
  std::string years;                  ///< years of the software: "2022", "2024 on"; for the reader
  std::vector<std::string> software;  ///< names that stand for this profile, each for one profile only
  /// Beginnings of the `source` of those runs of the software that are meant; none: of all.
  std::vector<std::string> software_of;
  /// Names that stand for this profile, before any other, in runs of mixtures of experts.
  std::vector<std::string> expert_software;
  /// For those runs of mixtures of experts: the first release, YY.MM, and the architecture from which on the profile
  /// applies. Of several profiles for the same software, the one with the latest release that fits a run stands for it.
  std::string expert_software_from;
  Architecture expert_software_on = Architecture::other;
  std::int64_t usual_zero_stage = 0;  ///< ZeRO stage of runs that state none, 0..3
  /// Recomputation of runs that state none; a stronger one where it does not fit.
  Recompute usual_recompute = Recompute::none;
  bool usual_sequence_parallel = false;  ///< runs with tp above 1 use sequence parallelism
  /// Whether activations that do not fit go to host memory; otherwise more of them are computed again.
  bool usual_offload = false;
  bool usual_expert_parallel = false;  ///< experts are dealt over as many ranks as divide them
  bool usual_expert_tensor = false;    ///< etp is tp (Megatron Core's default), else 1

  void validate(Problems& problems) const;
};

/// How tables of measurements that name a device alone are read: the machine that they mean, and further names of the
/// device.
struct DeviceTables {
  std::string cluster;            ///< preset of the machine
  std::vector<std::string> also;  ///< further names of the device
};

struct StackPreset : StackProfile {
  StackTables tables;
  [[nodiscard]] Problems validate() const;
};

struct DevicePreset : DeviceSpec {
  DeviceTables tables;
};

/// A cluster: one kind of GPU on one fabric, whose outermost dimension may be open (see FabricTemplate).
struct Cluster {
  std::string name;
  DeviceSpec device;
  FabricTemplate fabric;
};

}  // namespace shardscape::yaml
