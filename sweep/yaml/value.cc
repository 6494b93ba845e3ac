#include "sweep/yaml/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "engine/base/safe_text.h"
#include "sweep/yaml/closest_names.h"

namespace shardscape::yaml {

Parsed<std::string> scalar_text(const Node& node, std::string_view due) {
  if (node.is_scalar()) return node.text;
  return tl::unexpected(fmt::format("must be {}, not {}", due, kind_name(node)));
}

Parsed<std::string> bare_text(const Node& node, std::string_view due) {
  if (node.is_scalar() && node.quoted) {
    return tl::unexpected(fmt::format("must be {}, not text in quotes", due));
  }
  return scalar_text(node, due);
}

std::string name_problem(std::string_view text) {
  if (text.size() > kLongestName) {
    return fmt::format("must be at most {} bytes long; this one has {}", kLongestName, text.size());
  }
  return printable(text) == text ? "" : "must be plain text on one line, not " + echo(text);
}

Parsed<std::string> parse_name(const Node& node) {
  return scalar_text(node, "text").and_then([](const std::string& text) -> Parsed<std::string> {
    const std::string problem = name_problem(text);
    if (!problem.empty()) return tl::unexpected(problem);
    return text;
  });
}

Parsed<bool> parse_flag(const Node& node) {
  return bare_text(node, "true or false").and_then([](const std::string& text) -> Parsed<bool> {
    if (text == "true") return true;
    if (text == "false") return false;
    return tl::unexpected("must be true or false, not \"" + text + '"');
  });
}

Parsed<double> parse_number_node(const Node& node) {
  return bare_text(node, "a number").and_then([](const std::string& text) { return parse_number(text); });
}

Parsed<std::int64_t> parse_integer_node(const Node& node, std::int64_t low, std::int64_t high) {
  return bare_text(node, "an integer").and_then([&](const std::string& text) {
    return parse_integer(text, low, high);
  });
}

Parsed<double> parse_quantity_node(const Node& node, Dimension dimension) {
  const std::string due = fmt::format("{} such as \"{}\"", row_of(dimension).name, row_of(dimension).example);
  return scalar_text(node, due).and_then(
      [&](const std::string& text) { return parse_quantity(text, dimension); });
}

Parsed<std::size_t> parse_choice(const Node& node, std::span<const std::string_view> names) {
  const std::vector<std::string> known(names.begin(), names.end());
  return scalar_text(node, "one of " + join(known))
      .and_then([&](const std::string& text) -> Parsed<std::size_t> {
        const auto it = std::ranges::find(known, text);
        if (it != known.end()) return static_cast<std::size_t>(it - known.begin());
        return tl::unexpected("unknown value \"" + text + '"' + suggestion(text, known, "values"));
      });
}

}  // namespace shardscape::yaml
