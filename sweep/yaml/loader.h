// Follows references to models, devices, clusters, stacks and technologies: a name, a path, or the thing
// itself written in place.
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sweep/technology/build_device.h"
#include "sweep/technology/technology.h"
#include "sweep/yaml/catalog.h"
#include "sweep/yaml/device_sheet.h"
#include "sweep/yaml/diagnostics.h"
#include "sweep/yaml/load.h"
#include "sweep/yaml/node.h"

namespace shardscape::yaml {

/// The keys of technology::Choice.
inline constexpr std::array kTechnologyKeys = {"logic", "memory", "network", "area", "power"};

/// The device rebuilt from the floor plan that belongs to it.
tl::expected<technology::BuiltDevice, Problems> build_device(
    const DeviceSpec& device, const std::vector<technology::Floorplan>& floorplans,
    const technology::Choice& choice);

/// The most files that may refer to one another in a chain (by `base`, or as the older of two logic nodes).
inline constexpr std::size_t kLongestChain = 64;

/// A file that results depend on: its name in results ("models/llama3.1-70b.yaml") and its text.
struct InputFile {
  std::string name;
  std::string text;
  std::filesystem::path path;  ///< path from which it was read
  friend bool operator==(const InputFile&, const InputFile&) = default;
};

/// The text of a file, or why it cannot be read.
tl::expected<std::string, std::string> read_text(const std::filesystem::path& file);

/// The problems, sorted by place, as the error that a load returns.
tl::unexpected<Diagnostics> refused(Diagnostics diagnostics);
/// The error that a load returns for a file that cannot be read at all.
tl::unexpected<Diagnostics> refused_file(const std::filesystem::path& file, const std::string& why);

/// What is to be loaded: a scalar (a name or a path, relative to `folder`) or a map, and where that stands in its own
/// file.
struct Reference {
  const Node& node;
  std::string path;
  std::filesystem::path folder;
};

class Loader {
 public:
  /// Both references must outlive the loader. Problems go to `diagnostics`; a load with problems returns nothing.
  Loader(const Catalog& catalog, Diagnostics& diagnostics) : catalog_(catalog), diagnostics_(diagnostics) {}

  /// A model, a device, a cluster or a stack may also be a map of a `base` and of keys whose values differ from it,
  /// whose own may be one, and so on for kLongestChain files.
  std::optional<ModelSpec> model(const Reference& at);
  std::optional<DevicePreset> device(const Reference& at);
  std::optional<Cluster> cluster(const Reference& at);
  std::optional<StackPreset> stack(const Reference& at);

  std::optional<technology::LogicNode> logic(const Reference& at);
  std::optional<technology::MemoryTechnology> memory(const Reference& at);
  std::optional<technology::NetworkTechnology> network(const Reference& at);
  std::optional<technology::Floorplan> floorplan(const Reference& at);
  /// The floor plan or plans that `references` gives; where it is null, all among the presets.
  std::optional<std::vector<technology::Floorplan>> floorplans(const Node* references, const Location& where,
                                                               const std::string& path,
                                                               const std::filesystem::path& folder);
  /// One field of technology::Choice by its name ("logic", "area", ...), from what the node refers to or says.
  std::optional<technology::Choice> technology_choice(std::string_view key, const Reference& at);

  /// Every file read so far, in the order in which files were first read.
  [[nodiscard]] const std::vector<InputFile>& files() const { return files_; }

  /// The devices read so far whose data sheets say `links`.
  [[nodiscard]] const std::set<std::string>& linked_devices() const { return linked_devices_; }
  /// The devices read so far whose files leave out shares of their peaks.
  [[nodiscard]] const std::vector<AssumedShares>& assumed_shares() const { return assumed_shares_; }

 private:
  /// The tree that a reference leads to, and the prefix of its paths in messages.
  struct Target {
    Node node;
    std::string prefix;
    std::filesystem::path folder;
    std::vector<const DeviceNumber*> typical = {};  ///< shares of peaks that are those of a data sheet
    bool own_links = false;                         ///< whether a data sheet says `links`
  };
  std::optional<std::string> text_of(PresetKind kind, const std::filesystem::path& file, const Reference& at);
  std::optional<Target> follow(PresetKind kind, const Reference& at);

  /// The tree of a reference in which `base: NAME` is replaced by those keys of that preset which the tree lacks, at
  /// any depth of maps; lists are taken as a whole.
  std::optional<Target> follow_over_base(PresetKind kind, const Reference& at);
  /// The key `base` of a map; nothing, with a diagnostic, where it is no name or path.
  std::optional<Reference> base_of(PresetKind kind, const Node& map, const std::string& prefix,
                                   const std::filesystem::path& folder);

  /// The model in a model file or a Hugging Face config, or of its `also` list the checkpoint of a name that has keys
  /// of its own. What is wrong with any of that list is a problem of the file.
  std::optional<ModelSpec> model_of_file(const std::string& text, const std::filesystem::path& file,
                                         std::string_view checkpoint);
  /// The model of a file that has a `base` and what differs from it.
  std::optional<ModelSpec> model_over_base(const Node& node, const std::filesystem::path& file);
  /// The model of `{base: NAME, layers: 12, ...}`: the named one with other values of some keys.
  std::optional<ModelSpec> changed_model(const Reference& at);
  /// The model with the keys of an item of its `also` list.
  std::optional<ModelSpec> checkpoint_of(const ModelSpec& whole, const Node& item);
  std::optional<ModelSpec> with_keys(const ModelSpec& whole, const std::vector<Entry>& keys,
                                     const Location& where, const std::string& path);

  /// Gives the dimensions of a cluster's scale-up network that say no bandwidth that of the device's links, which are
  /// returned; nothing where there is no such dimension.
  std::optional<BytesPerSecond> take_links(Target& cluster);

  /// Keeps what is assumed of a device, once for each.
  void assume(AssumedShares shares);
  /// The device whose parts are listed in a file.
  std::optional<DevicePreset> parts_device(const Target& target);
  /// The device of `technology: {base:, logic:, memory:, network:, area:, power:}`, given in place of parts.
  std::optional<DevicePreset> built_device(const Target& target);
  std::shared_ptr<const technology::LogicNode> shared_logic(const Reference& at);

  /// Marks a file as being read, whose contents may lead back to it. False, with a diagnostic, where it is being read
  /// already.
  bool enter(const Reference& at, const Target& target);
  void leave(const Reference& at);

  const Catalog& catalog_;
  Diagnostics& diagnostics_;
  std::vector<InputFile> files_;
  std::vector<AssumedShares> assumed_shares_;
  std::set<std::string> linked_devices_;
  std::vector<std::filesystem::path> chain_;  ///< files being followed, as canonical paths
};

}  // namespace shardscape::yaml
