// Follows references to models, devices, clusters, stacks and technologies: a name, a path, or the thing
// itself written in place.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sweep/technology/build_device.h"
#include "sweep/technology/technology.h"
#include "sweep/yaml/catalog.h"
#include "sweep/yaml/device_shares.h"
#include "sweep/yaml/diagnostics.h"
#include "sweep/yaml/load.h"
#include "sweep/yaml/node.h"

namespace shardscape::yaml {

/// The keys of technology::Choice.
inline constexpr std::array kTechnologyKeys = {"logic", "memory", "network", "area", "power"};

/// `device` rebuilt by the floor plan that is its own.
tl::expected<technology::BuiltDevice, Problems> build_device(
    const DeviceSpec& device, const std::vector<technology::Floorplan>& floorplans,
    const technology::Choice& choice);

/// Files that rest on each other (`base`, the older of two logic nodes), one after the other.
inline constexpr std::size_t kLongestChain = 64;

/// A file that went into a result: its name there ("models/llama3.1-70b.yaml") and its text.
struct InputFile {
  std::string name;
  std::string text;
  std::filesystem::path path;  ///< where it was read
  friend bool operator==(const InputFile&, const InputFile&) = default;
};

/// The text of a file, or why it cannot be read.
tl::expected<std::string, std::string> read_text(const std::filesystem::path& file);

/// The problems as what a load gives back instead of its result, in the order of their places.
tl::unexpected<Diagnostics> refused(Diagnostics diagnostics);
/// The same of a file that cannot be read at all.
tl::unexpected<Diagnostics> refused_file(const std::filesystem::path& file, const std::string& why);

class Loader {
 public:
  /// Both references outlive the loader. Problems go to `diagnostics`; a load that has any gives nothing.
  Loader(const Catalog& catalog, Diagnostics& diagnostics) : catalog_(catalog), diagnostics_(diagnostics) {}

  /// `reference` is a scalar (name or path, relative to `folder`) or a map; `path` is where it stands in its
  /// own file. A model, a device, a cluster or a stack may also be a map of a `base` and of keys whose values
  /// differ from it, whose own may be one, and so on for kLongestChain files.
  std::optional<ModelSpec> model(const Node& reference, const std::string& path,
                                 const std::filesystem::path& folder);
  std::optional<DeviceSpec> device(const Node& reference, const std::string& path,
                                   const std::filesystem::path& folder);
  std::optional<Cluster> cluster(const Node& reference, const std::string& path,
                                 const std::filesystem::path& folder);
  std::optional<StackProfile> stack(const Node& reference, const std::string& path,
                                    const std::filesystem::path& folder);

  std::optional<technology::LogicNode> logic(const Node& reference, const std::string& path,
                                             const std::filesystem::path& folder);
  std::optional<technology::MemoryTechnology> memory(const Node& reference, const std::string& path,
                                                     const std::filesystem::path& folder);
  std::optional<technology::NetworkTechnology> network(const Node& reference, const std::string& path,
                                                       const std::filesystem::path& folder);
  std::optional<technology::Floorplan> floorplan(const Node& reference, const std::string& path,
                                                 const std::filesystem::path& folder);
  /// The floor plan or the list of them that `references` gives; where it is null, all among the presets.
  std::optional<std::vector<technology::Floorplan>> floorplans(const Node* references, const Location& where,
                                                               const std::string& path,
                                                               const std::filesystem::path& folder);
  /// One key of technology::Choice by its name ("logic", "area", ...) with what the node refers to or says.
  std::optional<technology::Choice> technology_choice(std::string_view key, const Node& node,
                                                      const std::string& path,
                                                      const std::filesystem::path& folder);

  /// Every file read so far, in the order of first reading.
  [[nodiscard]] const std::vector<InputFile>& files() const { return files_; }

  /// The devices read so far that leave shares of their peaks out.
  [[nodiscard]] const std::vector<AssumedShares>& assumed_shares() const { return assumed_shares_; }

 private:
  /// A reference followed: the tree to read and what its paths start with.
  struct Target {
    Node node;
    std::string prefix;
    std::filesystem::path folder;
  };
  std::optional<std::filesystem::path> find(PresetKind kind, const Node& reference, const std::string& path,
                                            const std::filesystem::path& folder);
  std::optional<std::string> text_of(PresetKind kind, const std::filesystem::path& file,
                                     const Node& reference, const std::string& path);
  std::optional<Target> follow(PresetKind kind, const Node& reference, const std::string& path,
                               const std::filesystem::path& folder);

  /// The tree of a reference in which `base: NAME` is replaced by what that preset says and this one does
  /// not: keys of maps at any depth; a list stands for itself.
  std::optional<Target> follow_over_base(PresetKind kind, const Node& reference, const std::string& path,
                                         const std::filesystem::path& folder);

  /// A model file or a Hugging Face config.
  std::optional<ModelSpec> model_of_file(const std::string& text, const std::filesystem::path& file);
  /// `{base: NAME, layers: 12, ...}`: the model of that name with other values of some keys.
  std::optional<ModelSpec> changed_model(const Node& node, const std::string& path,
                                         const std::filesystem::path& folder);
  std::optional<ModelSpec> with_keys(const ModelSpec& whole, const std::vector<Entry>& keys,
                                     const Location& where, const std::string& path);

  /// A device whose parts stand in its file.
  std::optional<DeviceSpec> parts_device(const Target& target);

  /// `technology: {base:, logic:, memory:, network:, area:, power:}` in place of a device's parts.
  std::optional<DeviceSpec> built_device(const Node& node, const std::string& path,
                                         const std::filesystem::path& folder);

  /// The file of a reference that its own contents may lead back to, while they are read. False, with a
  /// diagnostic, where it is being read already.
  bool enter(const Node& reference, const std::string& path, const Target& target);
  void leave(const Node& reference);

  const Catalog& catalog_;
  Diagnostics& diagnostics_;
  std::vector<InputFile> files_;
  std::vector<AssumedShares> assumed_shares_;
  std::vector<std::filesystem::path> chain_;  ///< files being followed, each written one way only
};

}  // namespace shardscape::yaml
