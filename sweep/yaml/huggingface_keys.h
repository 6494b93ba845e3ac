// What the keys of a Hugging Face config mean here, beside those that shape the computation.
#pragma once

#include <span>
#include <string_view>

namespace shardscape::yaml {

/// Keys without effect on time and memory, and why.
struct IdleKeys {
  std::string_view reason;
  std::span<const std::string_view> keys;
};
std::span<const IdleKeys> idle_keys();
bool is_idle_key(std::string_view key);

/// A key that changes time or memory in a way that is not modelled, unless it is switched off (null, false, 0
/// or empty).
struct RefusedKey {
  std::string_view key;
  std::string_view reason;  ///< with what would be right
};
std::span<const RefusedKey> refused_keys();
/// Its reason, or nothing.
std::string_view refusal_of(std::string_view key);

}  // namespace shardscape::yaml
