// "Did you mean ...": the closest known names to a misspelt one.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardscape::yaml {

/// Letters A to Z made small.
std::string lower(std::string_view text);

/// Up to `limit` candidates close enough to be meant, closest first. Letter case counts for little.
std::vector<std::string> closest(std::string_view text, std::span<const std::string> candidates,
                                 std::size_t limit = 1);

/// `; did you mean "x"?` where something is close, else `; known <what>: a, b, c` (shortened where there are
/// many).
std::string suggestion(std::string_view text, std::span<const std::string> candidates, std::string_view what);

/// "a, b, c".
std::string join(std::span<const std::string> names);

}  // namespace shardscape::yaml
