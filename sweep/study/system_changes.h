// Changes of a system: whole parts by reference ("cluster", "device", "stack", "prefill_device"), single settings by
// their path ("device.hbm.bandwidth", "fabric.rail.latency", "stack.attention"), and technologies ("technology.logic",
// ".memory", ".network", ".area", ".power"), which rebuild the device under its budgets
// (sweep/technology/build_device.h); a network also sets the bandwidth of the scale-out dimensions.
//
// A change patches the YAML tree of the part and reads it again, strictly: a what-if obeys every rule that a
// file obeys.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/spec/scenario.h"
#include "sweep/technology/technology.h"
#include "sweep/yaml/diagnostics.h"
#include "sweep/yaml/loader.h"
#include "sweep/yaml/node.h"
#include "sweep/yaml/visitors.h"

namespace shardscape::sweep {

/// The beginning of the paths of technologies.
inline constexpr std::string_view kTechnology = "technology.";

/// The parts of a system.
enum class Part : std::uint8_t { device, fabric, stack, prefill_device };
inline constexpr std::array kParts = {Part::device, Part::fabric, Part::stack, Part::prefill_device};
/// The path of the device of the pool that prefills.
inline constexpr std::string_view kPrefillDevice = "prefill_device";

/// The system that changes start from.
struct BaseSystem {
  System system;
  FabricTemplate fabric;             ///< the template that system.fabric was made from
  std::optional<std::int64_t> gpus;  ///< nothing where the study's number of GPUs is invalid
  std::optional<Phase> phase;        ///< nothing where the study's phase is invalid
  std::filesystem::path folder;      ///< folder at which relative paths start
};

struct Change {
  yaml::Leaf leaf;    ///< the setting; for a whole part only its path has a meaning
  std::string shown;  ///< the path inside `hardware`, for messages: "variant.B.device.l2.capacity"
  yaml::Node value;   ///< the value as written
  double number = 0;  ///< in SI units, or the code of a choice; no meaning for a whole part
  // The whole part that `value` refers to, where it does.
  std::shared_ptr<const yaml::Cluster> cluster;
  std::shared_ptr<const DeviceSpec> device;
  std::shared_ptr<const StackProfile> stack;
  /// A technology (one field of a Choice), with the floor plans to choose from.
  std::optional<technology::Choice> technology;
  std::shared_ptr<const std::vector<technology::Floorplan>> floorplans;

  /// Whether the change is of a whole part or a technology, rather than of a single setting.
  [[nodiscard]] bool whole() const { return cluster || device || stack || technology; }
  [[nodiscard]] bool touches(Part part) const;
  /// The name of the whole part or of the technology.
  [[nodiscard]] std::string name() const;
  /// The value as written, with a whole part written in full.
  [[nodiscard]] yaml::Node resolved() const;
};

/// Whether the path takes a reference: "cluster", "device", "stack", and technologies that have files.
bool is_reference(std::string_view path);

/// The settings that may be changed one by one; `cluster`, if given, replaces the base's own.
std::vector<yaml::Leaf> changeable_leaves(const BaseSystem& base, const yaml::Cluster* cluster);

/// The value of a setting in SI units, or the code of a choice.
yaml::Parsed<double> numeric_value(const yaml::Leaf& leaf, const yaml::Node& node);

/// Builds one part of the system with the changes that touch it, whole parts first, then the others in order. Fills
/// that part of `system`, or reports problems at the last of the changes.
bool build_part(Part part, const BaseSystem& base, std::span<const Change* const> changes, System& system,
                yaml::Diagnostics& diagnostics);

/// One part of a system as YAML.
std::string part_text(Part part, const System& system);
void copy_part(Part part, const System& from, System& to);

}  // namespace shardscape::sweep
