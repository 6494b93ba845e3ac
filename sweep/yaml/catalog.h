// Finds models and hardware presets by name in a list of preset directories.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "engine/base/enum_names.h"
#include "sweep/yaml/node.h"

namespace shardscape::yaml {

enum class PresetKind : std::uint8_t { model, device, cluster, stack, logic, memory, network, floorplan };
SHARDSCAPE_ENUM_NAMES(PresetKind, "model", "device", "cluster", "stack", "logic node", "memory technology",
                      "network technology", "floor plan");

/// The folder of a kind inside a preset directory: "models", "hw_presets/devices", ...
std::string_view preset_folder(PresetKind kind);

/// The presets of a list of directories, each with `models/`, `hw_presets/devices|clusters|stacks/` and
/// `hw_presets/technology/logic|memory|network|floorplans/`; each preset is a file NAME.yaml there. If several
/// directories have a name, the first directory of the list wins. Immutable after construction: look-ups are safe from
/// any thread (they read the file system).
class Catalog {
 public:
  struct Entry {
    std::string name;
    std::filesystem::path file;
  };

  Catalog() = default;
  explicit Catalog(std::vector<std::filesystem::path> directories) : directories_(std::move(directories)) {}

  /// All presets of a kind, by name. Directories that do not exist count as empty.
  [[nodiscard]] std::vector<Entry> list(PresetKind kind) const;

  /// The file behind a name. A name that contains '/' or ends in .yaml, .yml or .json is a path, looked up in
  /// `relative_to` first and in the working directory second. The error says what was looked for and names
  /// the closest and all available presets.
  [[nodiscard]] tl::expected<std::filesystem::path, std::string> find(
      PresetKind kind, std::string_view name, const std::filesystem::path& relative_to) const;

  /// Finds a model, which may have more names: those of its `also` list (as hubs call it; case does not matter), and
  /// each of these with `-lN` for the model with its number of layers changed to N.
  struct Model {
    std::filesystem::path file;
    std::optional<std::int64_t> layers;  ///< N of a name NAME-lN
    std::string also = {};  ///< the name of the `also` list that was meant; empty: the file's own
  };
  [[nodiscard]] tl::expected<Model, std::string> find_model(std::string_view name,
                                                            const std::filesystem::path& relative_to) const;

  [[nodiscard]] const std::vector<std::filesystem::path>& directories() const { return directories_; }

 private:
  [[nodiscard]] std::filesystem::path preset(PresetKind kind, std::string_view name) const;
  [[nodiscard]] std::filesystem::path also_named(std::string_view name) const;
  [[nodiscard]] std::string model_advice(std::string_view name,
                                         const std::filesystem::path& relative_to) const;

  std::vector<std::filesystem::path> directories_;
};

/// The item of a model's `also` list with this name: the name, or a map of it and of keys in which that checkpoint
/// differs; null where there is none, and for an empty name.
const Node* also_entry(const Node& model, std::string_view name);
/// The name of such an item; empty where it has none.
std::string_view also_name(const Node& item);

/// Whether `name` is taken as a path rather than looked up.
bool is_path(std::string_view name);

}  // namespace shardscape::yaml
