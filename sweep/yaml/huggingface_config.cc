// Reads single keys of a config by type, remembers which were read, finds their places in the text for messages, and
// reports those that nothing has read.
#include "sweep/yaml/huggingface_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "engine/base/check.h"
#include "engine/base/safe_text.h"
#include "engine/base/suggest.h"
#include "engine/base/words.h"
#include "sweep/yaml/closest_names.h"
#include "sweep/yaml/huggingface_data.h"

namespace shardscape::yaml {

namespace {

using Json = nlohmann::json;

/// The functions that transformers has under these names and that are modelled, by kind (with one projection in). Those
/// of one kind differ only in their vector instructions.
struct Activation {
  std::string_view name;
  MlpKind kind;
};
constexpr std::array<Activation, 12> kActivations = {{{"gelu", MlpKind::gelu},
                                                      {"gelu_10", MlpKind::gelu},
                                                      {"gelu_accurate", MlpKind::gelu},
                                                      {"gelu_fast", MlpKind::gelu},
                                                      {"gelu_new", MlpKind::gelu},
                                                      {"gelu_python", MlpKind::gelu},
                                                      {"gelu_pytorch_tanh", MlpKind::gelu},
                                                      {"quick_gelu", MlpKind::gelu},
                                                      {"relu", MlpKind::relu},
                                                      {"relu2", MlpKind::squared_relu},
                                                      {"silu", MlpKind::silu},
                                                      {"swish", MlpKind::silu}}};

/// The most layers of a list of kinds; a config with more is nonsense and not worth the memory.
constexpr std::size_t kMostLayers = 100'000;

/// Whether a value (null, false, 0 or empty) switches off what the key would add.
bool switched_off(const Json& value) {
  return value.is_null() || (value.is_boolean() && !value.get<bool>()) ||
         (value.is_number() && value.get<double>() == 0) || (!value.is_number() && value.empty()) ||
         (value.is_string() && value.get<std::string>().empty());
}

bool fits_integer(const Json& entry) {
  return entry.is_number_integer() &&
         !(entry.is_number_unsigned() && entry.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX));
}

/// Takes a value of the right type; returns what is due where it has another.
const char* take(const Json& list, std::int64_t& value) {
  // Some families say for each layer what is the same in all.
  const bool alike = list.is_array() && !list.empty() &&
                     std::ranges::all_of(list, [&](const Json& item) { return item == list.front(); });
  const Json& entry = alike ? list.front() : list;
  if (!fits_integer(entry)) return "an integer";
  value = entry.get<std::int64_t>();
  return nullptr;
}

const char* take(const Json& entry, bool& value) {
  if (!entry.is_boolean()) return "true or false";
  value = entry.get<bool>();
  return nullptr;
}

const char* take(const Json& entry, double& value) {
  if (!entry.is_number()) return "a number";
  value = entry.get<double>();
  return nullptr;
}

/// What a quantization_config says of weights alone: without the maps and keys of caches, which may have a format of
/// their own (ModelOpt's kv_cache_quant_algo, compressed-tensors' kv_cache_scheme).
Json without_caches(const Json& quantisation) {
  Json result = Json::object();
  for (const auto& [key, value] : quantisation.items())
    if (!key.starts_with("kv_cache")) result[key] = value.is_object() ? without_caches(value) : value;
  return result;
}

struct KeyLists {
  std::vector<IdleKeys> idle;
  std::vector<RefusedKey> refused;
};

const KeyLists& key_lists() {
  static const KeyLists kLists = [] {
    KeyLists lists;
    std::string_view refusal;  // of the keys that follow; empty: they are idle
    for (const std::string_view line : split(data::huggingface_keys(), '\n')) {
      const std::size_t colon = line.find(": ");
      if (line.starts_with("idle: ")) {
        lists.idle.push_back({line.substr(colon + 2), {}});
        refusal = {};
      } else if (line.starts_with("refused: ")) {
        refusal = line.substr(colon + 2);
      } else if (line.starts_with("  ")) {
        SHARDSCAPE_CHECK(!lists.idle.empty(), "huggingface_keys.txt: ", line);
        for (const std::string_view key : split(trimmed(line), ' ')) {
          if (refusal.empty()) {
            lists.idle.back().keys.push_back(key);
          } else {
            lists.refused.push_back({key, refusal});
          }
        }
      }
    }
    return lists;
  }();
  return kLists;
}

}  // namespace

HuggingFaceConfig::HuggingFaceConfig(const Json& json, const std::string& text, std::string source,
                                     Diagnostics& diagnostics)
    : json_(json),
      text_(text),
      source_(std::make_shared<const std::string>(std::move(source))),
      diagnostics_(diagnostics) {}

void HuggingFaceConfig::problem(const std::string& key, const std::string& message) {
  failed_ = true;
  // Problems that are not kept need no place.
  diagnostics_.add(diagnostics_.full() ? Location{source_, 1, 1} : locate(key), key, message);
}

bool HuggingFaceConfig::given(HuggingFaceNames names) {
  if (!names) return false;
  read_.insert(names.first);
  return json_.contains(names.first);
}

void HuggingFaceConfig::first_layers(const char* key, std::int64_t& count) {
  if (!present(key)) return;
  const Json& list = json_.at(key);
  std::int64_t next = 0;
  const auto is_next = [&](const Json& layer) {
    return fits_integer(layer) && layer.get<std::int64_t>() == next++;
  };
  if (!list.is_array() || !std::ranges::all_of(list, is_next))
    return problem(key, "only the first layers may be without experts: [], [0], [0, 1], ...");
  if (next > 0) count = next;
}

std::optional<PolicyName> number_format(const Json& quantisation) {
  // What methods and formats are called (transformers, ModelOpt, compressed-tensors), the narrowest first, as some of
  // the weights may have a wider one.
  constexpr std::pair<std::string_view, PolicyName> kFormats[] = {
      {"nvfp4", PolicyName::nvfp4},        {"modelopt_fp4", PolicyName::nvfp4},
      {"mxfp4", PolicyName::fp4},          {"mxfp8", PolicyName::mxfp8},
      {"\"fp8\"", PolicyName::fp8},        {"fbgemm_fp8", PolicyName::fp8},
      {"float-quantized", PolicyName::fp8}};
  if (!quantisation.is_object()) return std::nullopt;
  const std::string said = lower_case(json_text(without_caches(quantisation)));
  for (const auto& [format, policy] : kFormats)
    if (said.find(format) != std::string::npos) return policy;
  return std::nullopt;
}

void HuggingFaceConfig::skip_number_format(const char* key) {
  if (const auto at = json_.find(key); at != json_.end() && number_format(*at)) skip(key);
}

bool HuggingFaceConfig::has_block_scales(const char* key) const {
  const auto at = json_.find(key);
  return at != json_.end() && at->is_object() && at->contains("weight_block_size") &&
         at->at("weight_block_size").is_array();
}

bool HuggingFaceConfig::is_null(const char* key) const { return json_.at(key).is_null(); }

const char* HuggingFaceConfig::present_name(HuggingFaceNames names) {
  const bool other = present(names.other);  // both keys count as read
  return present(names) || !other ? names.first : names.other;
}

void HuggingFaceConfig::required(const char* field, HuggingFaceNames names, std::int64_t& value) {
  const std::string key = present_name(names), map = key.substr(0, key.find('/'));
  if (map != key) {  // a key inside a map
    value = 0;
    read(field, names, value);
    if (value == 0) problem(map, key.substr(map.size() + 1) + " is missing; it is required");
  } else if (present(key.c_str())) {
    read(field, key.c_str(), value);
  } else if (value == 0) {
    problem(key, "missing; this key is required");
  }
}

template <typename T>
void HuggingFaceConfig::read(const char* field, HuggingFaceNames names, T& value) {
  if (!names) return;
  const std::string path = present_name(names), key = path.substr(0, path.find('/'));
  const bool whole = key == path;
  if (whole) keys_.emplace_back(field, key);
  if (!present(key.c_str())) return;
  const Json* entry = &json_.at(key);
  const std::string inner = whole ? "" : path.substr(key.size() + 1);
  if (!whole) {
    if (!entry->is_object() || !entry->contains(inner) || entry->at(inner).is_null()) return;
    entry = &entry->at(inner);
  }
  const char* const due = take(*entry, value);
  if (due == nullptr) return;
  problem(key, fmt::format("{}{}must be {}, not {}", inner, whole ? "" : " ", due, json_text(*entry)));
}

template void HuggingFaceConfig::read(const char*, HuggingFaceNames, std::int64_t&);
template void HuggingFaceConfig::read(const char*, HuggingFaceNames, bool&);
template void HuggingFaceConfig::read(const char*, HuggingFaceNames, double&);

std::string HuggingFaceConfig::text(const char* key) {
  return present(key) && json_.at(key).is_string() ? json_.at(key).get<std::string>() : std::string();
}

std::vector<std::string> HuggingFaceConfig::texts(const char* key) {
  std::vector<std::string> result;
  if (!present(key)) return result;
  const Json& list = json_.at(key);
  const bool good = list.is_array() && std::ranges::all_of(list, [](const Json& v) { return v.is_string(); });
  if (good) return list.get<std::vector<std::string>>();
  problem(key, "must be a list of texts, not " + json_text(list));
  return result;
}

const char* HuggingFaceConfig::activation(HuggingFaceNames names, MlpKind& kind) {
  const char* const key = present_name(names);
  if (!present(key)) return key;
  const std::string name = text(key);
  const auto at = std::ranges::find(kActivations, name, &Activation::name);
  if (at != kActivations.end()) {
    kind = at->kind;
    return key;
  }
  std::vector<std::string> known;
  for (const Activation& activation : kActivations) known.emplace_back(activation.name);
  problem(key, "unsupported activation " + json_text(json_.at(key)) + "; supported: " + join(known));
  return key;
}

std::string HuggingFaceConfig::layer_pattern(HuggingFaceNames names, std::string_view local,
                                             std::string_view whole, std::int64_t layers) {
  const char* const key = names.first;
  if (!present(key)) return "";
  bool bad = false;
  const auto expand = [&](const auto& self, const Json& value) -> std::string {
    if (bad) return "";
    if (value.is_string() && value.get<std::string>() == local) return "L";
    if (value.is_string() && value.get<std::string>() == whole) return "G";
    const bool repeats =
        value.is_array() && value.size() == 2 && value[0].is_array() && fits_integer(value[1]);
    std::string letters;
    if (repeats) {
      const std::string once = self(self, value[0]);
      const std::int64_t times = value[1].get<std::int64_t>();
      for (std::int64_t i = 0; i < times && letters.size() < kMostLayers && !once.empty(); ++i)
        letters += once;
      return letters;
    }
    if (value.is_array()) {
      for (const Json& item : value) letters += self(self, item);
      return letters;
    }
    bad = true;
    problem(key, fmt::format("unsupported kind of attention {}; supported: {}, {}", json_text(value), whole,
                             local));
    return "";
  };
  std::string pattern = expand(expand, json_.at(key));
  if (!bad && std::ssize(pattern) != layers && layers >= 1)
    problem(key, fmt::format("has {} kinds of attention for {} layers; must have one for each",
                             pattern.size(), layers));
  return pattern;
}

void HuggingFaceConfig::expect(const char* key, std::string_view part) {
  if (present(key) && text(key).find(part) == std::string::npos)
    problem(key, fmt::format("unsupported: {}; supported: {}", json_text(json_.at(key)), part));
}

void HuggingFaceConfig::finish() {
  for (const auto& [key, value] : json_.items()) {
    if (value.is_null() || read_.contains(key) || is_idle_key(key)) continue;
    const std::string_view refusal = refusal_of(key);
    if (refusal.empty() && diagnostics_.full()) return problem(key, "unknown key");
    if (refusal.empty()) {
      problem(key, "unknown key" + meant(key) +
                       "; whether it changes time or memory is not known: take it out where it doesn't");
    } else if (!switched_off(value)) {
      problem(key, std::string(refusal));
    }
  }
}

void HuggingFaceConfig::report(const Problems& problems) {
  for (const Problem& found : problems.list()) {
    // Of several keys that a field may come from, the one that is there.
    const auto of_field = [&](const auto& key) { return key.first == found.field; };
    auto it = std::ranges::find_if(
        keys_, [&](const auto& key) { return of_field(key) && json_.contains(key.second); });
    if (it == keys_.end()) it = std::ranges::find_if(keys_, of_field);
    problem(it == keys_.end() ? found.field : it->second, found.message);
  }
}

/// The known key that a misspelt one probably means, as the end of a message.
std::string HuggingFaceConfig::meant(const std::string& key) const {
  std::vector<std::string> known(read_.begin(), read_.end());
  for (const IdleKeys& group : idle_keys()) known.insert(known.end(), group.keys.begin(), group.keys.end());
  const auto near = nearest_name(key, known);
  return near ? "; did you mean \"" + *near + "\"?" : "";
}

/// The place of a key's first appearance; the start of the file where it is absent.
Location HuggingFaceConfig::locate(const std::string& key) const {
  const std::size_t offset = text_.find('"' + key + '"');
  if (key.empty() || offset == std::string::npos) return {source_, 1, 1};
  const TextPlace place = place_of(text_, offset);
  return {source_, place.line, place.column};
}

std::span<const IdleKeys> idle_keys() { return key_lists().idle; }

bool is_idle_key(std::string_view key) {
  // transformers marks keys for its own use so: _name_or_path, _attn_implementation_autoset, ...
  if (key.starts_with('_')) return true;
  return std::ranges::any_of(idle_keys(), [&](const IdleKeys& group) {
    return std::ranges::find(group.keys, key) != group.keys.end();
  });
}

std::span<const RefusedKey> refused_keys() { return key_lists().refused; }

std::string_view refusal_of(std::string_view key) {
  const auto at = std::ranges::find(refused_keys(), key, &RefusedKey::key);
  return at == refused_keys().end() ? std::string_view() : at->reason;
}

}  // namespace shardscape::yaml
