// The keys of a Hugging Face config, read one by one with their types and places; keys that are not read are reported.
// What further keys mean stands in huggingface_keys.txt.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/problems.h"
#include "engine/spec/model.h"
#include "engine/spec/precision_policy.h"
#include "sweep/yaml/diagnostics.h"

namespace shardscape::yaml {

/// The name of a key, and its name in older or newer configs; `map/key` stands for a key inside a map, whose other keys
/// are ignored. Without names there is no such key, and reading it leaves everything as it is.
struct HuggingFaceNames {
  // NOLINTNEXTLINE(google-explicit-constructor): most keys have one name
  constexpr HuggingFaceNames(const char* name = nullptr, const char* other_name = nullptr)
      : first(name), other(other_name) {}
  constexpr explicit operator bool() const { return first != nullptr; }
  const char* first;
  const char* other;
};

/// The precision in which a quantization_config stores weights; nothing where it is one that is not modelled.
std::optional<PolicyName> number_format(const nlohmann::json& quantisation);

/// Reads typed keys of a config and remembers which field of the spec each of them gave. A key that is absent or null
/// leaves the value as it is. References must outlive the object.
class HuggingFaceConfig {
 public:
  using Json = nlohmann::json;

  HuggingFaceConfig(const Json& json, const std::string& text, std::string source, Diagnostics& diagnostics);

  void problem(const std::string& key, const std::string& message);

  /// `field`: the field of the spec; empty where the value is none by itself. The first of the two names that is
  /// present counts; where none is, a value that is not 0 stays.
  void required(const char* field, HuggingFaceNames names, std::int64_t& value);
  /// T: an integer of 64 bits, a flag or a number.
  template <typename T>
  void read(const char* field, HuggingFaceNames names, T& value);
  /// Counts a key as read.
  void skip(HuggingFaceNames names) { (void)given(names); }
  /// The text of a key; empty where it is absent.
  std::string text(const char* key);
  /// A list of texts; anything else is a problem.
  std::vector<std::string> texts(const char* key);

  /// Reads the kind of the MLP's activation, and returns the key that gave it.
  const char* activation(HuggingFaceNames names, MlpKind& kind);

  /// The kinds of attention by layer, as letters of ModelSpec::window_pattern: L for the name `local`, G for `whole`;
  /// other names are problems, and so are more or fewer than `layers`. The value is a list of names, or of pairs of a
  /// list and its number of repeats. Empty where the key is absent.
  std::string layer_pattern(HuggingFaceNames names, std::string_view local, std::string_view whole,
                            std::int64_t layers);

  /// Checks a key whose text must contain `part`, as nothing else is modelled.
  void expect(const char* key, std::string_view part);

  /// Reads a list of single layers into the number of the first ones that it names; a list of others is a problem.
  void first_layers(const char* key, std::int64_t& count);
  /// Counts the format of a checkpoint's weights as read where it is a narrow floating point (fp8, mxfp4, nvfp4), which
  /// the study chooses by its precision.
  void skip_number_format(const char* key);
  /// Whether a number format there has a scale for each block of a weight (weight_block_size).
  [[nodiscard]] bool has_block_scales(const char* key) const;

  [[nodiscard]] bool present(HuggingFaceNames names) { return given(names) && !is_null(names.first); }
  /// Whether the key of the first name is there, even if it is null.
  [[nodiscard]] bool given(HuggingFaceNames names);

  /// Reports every key that was not read, unless it is known to have no effect.
  void finish();
  /// Reports broken rules of the spec at the config's keys.
  void report(const Problems& problems);

  [[nodiscard]] bool failed() const { return failed_; }

 private:
  [[nodiscard]] bool is_null(const char* key) const;
  [[nodiscard]] const char* present_name(HuggingFaceNames names);
  [[nodiscard]] std::string meant(const std::string& key) const;
  [[nodiscard]] Location locate(const std::string& key) const;

  const Json& json_;
  const std::string& text_;
  std::shared_ptr<const std::string> source_;
  Diagnostics& diagnostics_;
  std::vector<std::pair<std::string, std::string>> keys_;  ///< the field of the spec and the key that gave it
  std::set<std::string, std::less<>> read_;                ///< keys that were asked for
  bool failed_ = false;
};

/// Keys without effect on time and memory, with the reason.
struct IdleKeys {
  std::string_view reason;
  std::vector<std::string_view> keys;
};
std::span<const IdleKeys> idle_keys();
bool is_idle_key(std::string_view key);

/// A key that changes time or memory in a way that is not modelled, unless its value switches it off (null, false, 0 or
/// empty).
struct RefusedKey {
  std::string_view key;
  std::string_view reason;  ///< what is wrong and what would be right
};
std::span<const RefusedKey> refused_keys();
/// The reason for which a key is refused; empty where it is not.
std::string_view refusal_of(std::string_view key);

}  // namespace shardscape::yaml
