// What tables of other people call devices, software and number formats, as presets of ours.
//
// A device preset says which names it stands for (`also:`) and which machine it is sold in (`cluster:`), a
// stack preset which software it describes (`software:`).
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

/// Why a name means nothing here.
struct Nameless {
  std::string why;
  /// The name is understood, but there is nothing to predict with: a reason, no mistake of the table.
  bool understood = false;
};

/// Of a run, what decides between profiles of one software: nothing where its row does not say.
struct SoftwareRun {
  std::optional<double> release;  ///< stated_release()
  Architecture architecture = Architecture::other;
};

/// Reads every device and stack preset once, when first asked. `presets` outlives it. `own_device`: a device
/// preset or a path, whose name stands for it even where no preset has it.
class TableNames {
 public:
  explicit TableNames(Presets& presets, std::string own_device = {})
      : presets_(presets), own_device_(std::move(own_device)) {}

  using Named = tl::expected<std::string, Nameless>;

  /// The device preset of a preset's name, of a name it goes by, or of a path.
  Named device(const std::string& text);
  /// The cluster preset that a device of this name is measured in.
  Named cluster(const std::string& device_text);
  /// The generation of a device that device() knows; `other` for the rest.
  Architecture architecture(const std::string& device_text);
  /// The stack preset of a preset's name, of software that it stands for, or of a path. What follows the
  /// first word is a version. `experts`: of a run of a mixture of experts.
  Named stack(const std::string& text, bool experts = false, const SoftwareRun& run = {});
  /// What runs of a stack have in common; null where there is no such stack.
  const StackProfile::Tables* usual(const std::string& stack_preset) {
    const auto found = presets_.stack(stack_preset);
    return found ? &(*found)->tables : nullptr;
  }
  /// The number format of a kernel, by our name or that of common tables ("bfloat16", "half").
  static std::optional<Precision> precision(std::string_view text);
  /// The precision policy of a plan, likewise ("bf16", "fp8-mx").
  static std::optional<PolicyName> policy(std::string_view text);
  /// Names that precision() and policy() know.
  static std::string precisions();
  static std::string policies();

 private:
  void read();

  void add_device(const std::string& preset);

  Presets& presets_;
  std::string own_device_;
  bool read_ = false;
  std::map<std::string, std::string> devices_;   ///< name in tables -> preset
  std::map<std::string, std::string> clusters_;  ///< device preset -> cluster preset
  std::map<std::string, std::string> stacks_;    ///< software -> preset
  /// Likewise, where it is another for mixtures of experts: of the first release on, on the first architecture on.
  struct OfExperts {
    double from = 0;
    Architecture on = Architecture::other;
    std::string preset;
  };
  std::map<std::string, std::vector<OfExperts>> of_experts_;
};

/// Whether a model of this name, in tables of others, is a mixture of experts.
bool has_experts(std::string_view model);

}  // namespace shardscape::validate
