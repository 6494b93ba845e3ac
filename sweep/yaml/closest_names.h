// Suggests known names that are close to a misspelt one ("did you mean ...").
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace shardscape::yaml {

/// Of paths with dots the one that ends in the same keys as `path`, the longest such end first. Of several the one that
/// is spelt most like it; where none is, two or three as `a" or "b`, for a message that puts quotes around the whole.
/// Empty where there is none, or where there are more.
std::string same_key(std::string_view path, std::span<const std::string> paths);

/// The end of a message: `; did you mean "x"?` where a candidate is close, else `; known <what>: a, b, c` (shortened
/// where there are many).
std::string suggestion(std::string_view text, std::span<const std::string> candidates, std::string_view what);

/// The names with commas: "a, b, c".
std::string join(std::span<const std::string> names);

}  // namespace shardscape::yaml
