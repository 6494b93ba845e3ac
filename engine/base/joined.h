// Joins lists for messages: "a, b, c", or "a, b and c".
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

namespace shardscape {

/// The items of a list with `between` between them, and `last`, where it is given, before the last one:
/// "a, b and c" with " and ". `item` (a function or a member) makes of an element what is shown, anything that
/// fmt can format. Where the elements themselves are shown inside a format, fmt::join does.
template <class List, class Item = std::identity>
std::string joined(const List& list, std::string_view between = ", ", Item item = {},
                   std::optional<std::string_view> last = std::nullopt) {
  std::string text;
  std::size_t left = std::size(list);
  bool first = true;
  for (const auto& element : list) {
    if (!first) text += left == 1 ? last.value_or(between) : between;
    text += fmt::format("{}", std::invoke(item, element));  // format_to is compiled anew in every file
    first = false;
    --left;
  }
  return text;
}

}  // namespace shardscape
