// Reads the lists of keys in huggingface_keys.txt.
#include "sweep/yaml/huggingface_keys.h"

#include <algorithm>

#include "engine/base/check.h"
#include "engine/base/words.h"
#include "sweep/yaml/huggingface_data.h"

namespace shardscape::yaml {

namespace {

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
