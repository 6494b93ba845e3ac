// The keys of a Hugging Face config, read one by one: typed, located, and none of them overlooked.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/problems.h"
#include "engine/spec/model.h"
#include "sweep/yaml/diagnostics.h"

namespace shardscape::yaml {

/// What a key is called, and what configs of another age call it.
struct HuggingFaceNames {
  // NOLINTNEXTLINE(google-explicit-constructor): most keys have one name
  HuggingFaceNames(const char* name, const char* other_name = nullptr) : first(name), other(other_name) {}
  const char* first;
  const char* other;
};

/// Reads typed keys of a config and remembers which of them each field of the spec came from. Absent and null
/// both leave a value as it is. References outlive it.
class HuggingFaceConfig {
 public:
  using Json = nlohmann::json;

  HuggingFaceConfig(const Json& json, const std::string& text, std::string source, Diagnostics& diagnostics);

  void problem(const std::string& key, const std::string& message);

  /// `field`: of the spec. Of two names the first that is there counts.
  void required(const char* field, HuggingFaceNames names, std::int64_t& value);
  void optional(const char* field, HuggingFaceNames names, std::int64_t& value);
  /// A key that no field of the spec has for itself.
  void flag(const char* key, bool& value) { flag("", key, value); }
  void flag(const char* field, const char* key, bool& value);
  void number(const char* field, const char* key, double& value);
  /// The text of a key, or nothing.
  std::string text(const char* key);
  /// A list of texts; others are problems.
  std::vector<std::string> texts(const char* key);

  /// The same of a key inside a map; whatever else the map says stays unread.
  void number_inside(const char* key, const char* inner, double& value);
  void integer_inside(const char* key, const char* inner, std::int64_t& value);
  void flag_inside(const char* key, const char* inner, bool& value);

  /// The kind of the MLP's activation.
  void activation(const char* key, MlpKind& kind);

  /// The kinds of attention of the layers, a letter for each as in ModelSpec::window_pattern: L for those of
  /// the name `local`, G for those of the name `whole`; others are problems. The value is a list of names, or
  /// of pairs of a list and how often it repeats. Empty where the key is absent.
  std::string layer_pattern(const char* key, std::string_view local, std::string_view whole);

  /// A key whose only text that is modelled holds `part`; others are problems.
  void expect(const char* key, std::string_view part);

  /// The key is absent, null or an empty list.
  [[nodiscard]] bool empty(const char* key);
  [[nodiscard]] bool present(const char* key) { return given(key) && !is_null(key); }
  /// The key is there, be it null.
  [[nodiscard]] bool given(const char* key);

  /// Every key that was not read is known to be without effect, or is a problem.
  void finish();
  /// Rules of the spec, reported against the config's own keys.
  void report(const Problems& problems);

  [[nodiscard]] bool failed() const { return failed_; }

 private:
  [[nodiscard]] bool is_null(const char* key) const;
  [[nodiscard]] const Json* inside(const char* key, const char* inner);
  [[nodiscard]] const char* present_name(HuggingFaceNames names);
  void assign(const std::string& key, const std::string& shown, const Json& entry, std::int64_t& value);
  void assign(const std::string& key, const std::string& shown, const Json& entry, bool& value);
  void assign(const std::string& key, const std::string& shown, const Json& entry, double& value);
  [[nodiscard]] std::string meant(const std::string& key) const;
  [[nodiscard]] Location locate(const std::string& key) const;

  const Json& json_;
  const std::string& text_;
  std::shared_ptr<const std::string> source_;
  Diagnostics& diagnostics_;
  std::vector<std::pair<std::string, std::string>> keys_;  ///< field of the spec, key of the config
  std::set<std::string, std::less<>> read_;                ///< keys that were asked for
  bool failed_ = false;
};

}  // namespace shardscape::yaml
