// Changes of a system: whole parts by reference ("cluster", "device", "stack"), single settings by their path
// ("device.hbm.bandwidth", "fabric.rail.latency", "stack.attention"), and technologies ("technology.logic",
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

/// Paths of technologies begin so.
inline constexpr std::string_view kTechnology = "technology.";

/// The parts of a system.
enum class Part : std::uint8_t { device, fabric, stack };
inline constexpr std::array kParts = {Part::device, Part::fabric, Part::stack};

/// What the changes start from.
struct BaseSystem {
  System system;
  FabricTemplate fabric;             ///< that system.fabric comes from
  std::optional<std::int64_t> gpus;  ///< nothing where the study's number is bad
  std::optional<Phase> phase;        ///< likewise
  std::filesystem::path folder;      ///< where relative paths start
};

struct Change {
  yaml::Leaf leaf;    ///< its path; of a whole part only the path has a meaning
  std::string shown;  ///< the path inside `hardware`, for messages: "variant.B.device.l2.capacity"
  yaml::Node value;   ///< as written
  double number = 0;  ///< in SI units, or the code of a choice; no meaning for a whole part
  // The whole part that `value` refers to.
  std::shared_ptr<const yaml::Cluster> cluster;
  std::shared_ptr<const DeviceSpec> device;
  std::shared_ptr<const StackProfile> stack;
  /// One key of it, with the floor plans there are.
  std::optional<technology::Choice> technology;
  std::shared_ptr<const std::vector<technology::Floorplan>> floorplans;

  /// No single setting of a part.
  [[nodiscard]] bool whole() const { return cluster || device || stack || technology; }
  [[nodiscard]] bool touches(Part part) const;
  /// The name of the whole part or the technology.
  [[nodiscard]] std::string name() const;
  /// `value`, a whole part written in full.
  [[nodiscard]] yaml::Node resolved() const;
};

/// True for "cluster", "device" and "stack", and for the technologies that have files.
bool is_reference(std::string_view path);

/// The settings that may be changed one by one; `cluster` replaces the base's own where it is given.
std::vector<yaml::Leaf> changeable_leaves(const BaseSystem& base, const yaml::Cluster* cluster);

/// A value of a path in SI units, or the code of a choice.
yaml::Parsed<double> numeric_value(const yaml::Leaf& leaf, const yaml::Node& node);

/// One part of the system with the changes that touch it, whole parts first, then in order. Fills that part
/// of `system`, or reports problems against the last of the changes.
bool build_part(Part part, const BaseSystem& base, std::span<const Change* const> changes, System& system,
                yaml::Diagnostics& diagnostics);

/// The part as YAML.
std::string part_text(Part part, const System& system);
void copy_part(Part part, const System& from, System& to);

}  // namespace shardscape::sweep
