// Maps the names of devices, software and number formats in public tables to presets of ours.
//
// A device preset says which names it stands for (`also:`) and which machine it is sold in (`cluster:`), a stack preset
// which software it describes (`software:`).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "engine/spec/device.h"
#include "engine/spec/precision_policy.h"
#include "sweep/validate/presets.h"

namespace shardscape::validate {

/// Why a name cannot be resolved.
struct Nameless {
  std::string why;
  /// The name is understood but nothing can be predicted for it: a reason, not a mistake of the table.
  bool understood = false;
};

/// What decides between several profiles of one software; nothing where the row does not say.
struct SoftwareRun {
  std::optional<double> release;  ///< from stated_release()
  Architecture architecture = Architecture::other;
  std::string source = {};  ///< where the row is from
};

/// Reads every device and stack preset once, when first needed. `presets` must outlive the object. `own_device`: a
/// device preset or a path, to which its own name refers even where no preset has the name.
class TableNames {
 public:
  explicit TableNames(Presets& presets, std::string own_device = {})
      : presets_(presets), own_device_(std::move(own_device)) {}

  using Named = tl::expected<std::string, Nameless>;

  /// The device preset for the name of a preset, for a further name that a preset lists, or for a path.
  Named device(const std::string& text);
  /// The preset of the cluster in which a device of this name is measured.
  Named cluster(const std::string& device_text);
  /// The generation of a device that device() knows; `other` for the rest.
  Architecture architecture(const std::string& device_text);
  /// The stack preset for the name of a preset, for software that a preset describes, or for a path. What follows the
  /// first word of software is a version. `experts`: for a run of a mixture of experts.
  Named stack(const std::string& text, bool experts = false, const SoftwareRun& run = {});
  PoolRecipes& pool_recipes() { return presets_.pool_recipes(); }
  /// What runs of a stack usually have in common; null where there is no such stack.
  const yaml::StackTables* usual(const std::string& stack_preset) {
    const auto found = presets_.stack(stack_preset);
    return found ? &(*found)->tables : nullptr;
  }
  /// The number format of a kernel by our name or by that of public tables ("bfloat16", "half").
  static std::optional<Precision> precision(std::string_view text);
  /// The precision policy of a plan by our name or by that of public tables ("bf16", "fp8-mx").
  static std::optional<PolicyName> policy(std::string_view text);
  /// Lists of the names that precision() and policy() know.
  static std::string precisions();
  static std::string policies();

 private:
  void read();

  void add_device(const std::string& preset);

  Presets& presets_;
  std::string own_device_;
  bool read_ = false;
  std::map<std::string, std::string> devices_;   ///< name in tables -> device preset
  std::map<std::string, std::string> clusters_;  ///< device preset -> cluster preset
  std::map<std::string, std::string> stacks_;    ///< software -> preset
  /// The stack of software where it differs for mixtures of experts: from a release and an architecture on.
  struct OfExperts {
    double from = 0;
    Architecture on = Architecture::other;
    std::string preset;
  };
  std::map<std::string, std::vector<OfExperts>> of_experts_;
  /// The stack of software in runs whose source begins so.
  struct OfSource {
    std::string software, source, preset;
  };
  std::vector<OfSource> of_sources_;
};

/// Whether a model of this name in public tables is a mixture of experts.
bool has_experts(std::string_view model);

}  // namespace shardscape::validate
