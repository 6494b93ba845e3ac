// Everything that a plan, its workload, its stack and its model say, item by item. Plan axes come from their table,
// keys of stack and model from their files' descriptions, fields of a workload by structured bindings, so that a new
// one is an item as soon as it is there: a launch lists it as not expressed until a framework's row expresses it.
// stack_keys.yaml has which keys of a stack are choices, and when these have no effect.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sweep/launch/framework.h"

namespace shardscape::launch {

struct Item {
  std::string key;    ///< "tp", "workload.global_batch", "stack.communication.bucket", "model.layers"
  std::string value;  ///< as studies write it
  bool axis = false;  ///< an axis of plans
  bool idle = false;  ///< has no effect on this case: nothing need be said
};

/// Whether a row's key says that key: the same, or, with a dot at its end, one that begins so.
inline bool covers_key(std::string_view row, std::string_view key) {
  return row == key || (row.ends_with('.') && key.starts_with(row));
}

/// The items of a case with these facts that a framework may be asked for. Left out are the stack's measured constants,
/// which no option sets.
std::vector<Item> said_items(const Case& of, const Facts& facts);

/// Whether a key of a stack ("communication.bucket") is a constant of its programs and machines, which is measured and
/// not chosen; or a choice. Nothing: the tables know no such key.
std::optional<bool> is_measured(std::string_view stack_key);

}  // namespace shardscape::launch
