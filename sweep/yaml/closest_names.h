// Suggests known names that are close to a misspelt one ("did you mean ...").
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardscape::yaml {

/// Of paths with dots the one with the same last keys, the closest of several, or all of two or three between quotes;
/// empty where there is none.
std::string same_key(std::string_view path, std::span<const std::string> paths);

/// The end of a message: `; did you mean "x"?` where a candidate is close, else `; known <what>: a, b, c` (shortened
/// where there are many).
std::string suggestion(std::string_view text, std::span<const std::string> candidates, std::string_view what);

/// The names with commas: "a, b, c".
std::string join(std::span<const std::string> names);

}  // namespace shardscape::yaml
