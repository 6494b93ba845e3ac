// Texts taken apart: what stands between blanks or separators, the number that a text is, the place of a byte, and the
// paths of keys.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace shardscape {

/// The text without the spaces and tabs around it.
constexpr std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

/// The parts between separators, one more than there are of these.
inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t end = text.find(separator); end != std::string_view::npos; end = text.find(separator)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

/// The lines of a text, without their ends.
inline std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines = split(text, '\n');
  if (lines.back().empty()) lines.pop_back();
  return lines;
}

/// The same as texts of their own.
inline std::vector<std::string> split_lines(std::string_view text) {
  const std::vector<std::string_view> lines = lines_of(text);
  return {lines.begin(), lines.end()};
}

/// Where a byte of a text stands: line and column from 1 on, columns in bytes.
struct TextPlace {
  int line = 1, column = 1;
};
inline TextPlace place_of(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const std::size_t begin = before.rfind('\n') + 1;  // of the line; npos + 1 is 0
  return {static_cast<int>(std::ranges::count(before, '\n')) + 1,
          static_cast<int>(before.size() - begin) + 1};
}

/// The path of a key of the map at `path`, with dots between keys; an empty `path` is the document itself.
inline std::string key_path(std::string path, std::string_view key) {
  if (!path.empty()) path += '.';
  path += key;
  return path;
}

/// The number that the whole text is, as std::from_chars reads it; nothing where it is none, or beyond T.
template <class T>
std::optional<T> to_number(std::string_view text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

/// The text with the letters A to Z in lower case.
inline std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

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
