// The meaning of config keys other than those that shape the computation, as huggingface_keys.txt has them.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace shardscape::yaml {

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
