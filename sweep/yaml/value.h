// Converts one YAML scalar to one C++ value, and back. Error messages say what is expected.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <tl/expected.hpp>
#include <type_traits>
#include <utility>

#include "engine/base/enum_names.h"
#include "sweep/yaml/node.h"
#include "sweep/yaml/number.h"
#include "sweep/yaml/quantity_text.h"

namespace shardscape::yaml {

template <class T>
using Parsed = tl::expected<T, std::string>;

/// The text of a scalar; otherwise an error that names the node's kind and `due` ("must be an integer, not a list").
Parsed<std::string> scalar_text(const Node& node, std::string_view due);
/// The text of a scalar that must not be in quotes.
Parsed<std::string> bare_text(const Node& node, std::string_view due);

inline constexpr std::size_t kLongestName = 200;  ///< most bytes of a name

/// Why `text` cannot be a name, which appears in result files, tables and pages; empty where it can. A name is one line
/// of visible characters of at most kLongestName bytes.
std::string name_problem(std::string_view text);
Parsed<std::string> parse_name(const Node& node);

Parsed<bool> parse_flag(const Node& node);
Parsed<double> parse_number_node(const Node& node);
Parsed<std::int64_t> parse_integer_node(const Node& node, std::int64_t low, std::int64_t high);
Parsed<double> parse_quantity_node(const Node& node, Dimension dimension);
/// The index of the node's text in `names`; the error suggests the closest name.
Parsed<std::size_t> parse_choice(const Node& node, std::span<const std::string_view> names);

/// Parses a value of type T: bool, text, an integer, a bare double, a quantity with its unit, or the name of
/// an enum's value.
template <class T>
Parsed<T> parse_value(const Node& node) {
  if constexpr (std::is_same_v<T, bool>) {
    return parse_flag(node);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return parse_name(node);
  } else if constexpr (std::is_enum_v<T>) {
    return parse_choice(node, enum_names<T>()).map([](std::size_t i) { return static_cast<T>(i); });
  } else if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    return parse_integer_node(node, Limits::min(), Limits::max()).map([](std::int64_t v) {
      return static_cast<T>(v);
    });
  } else if constexpr (std::is_same_v<T, double>) {
    return parse_number_node(node);
  } else {
    return parse_quantity_node(node, dimension_of(T{})).map([](double v) { return T(v); });
  }
}

/// The scalar that parse_value() reads as exactly `value`.
template <class T>
Node make_scalar(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return Node::scalar(value ? "true" : "false");
  } else if constexpr (std::is_same_v<T, std::string>) {
    return Node::scalar(value);
  } else if constexpr (std::is_enum_v<T>) {
    return Node::scalar(std::string(name_of(value)));
  } else if constexpr (std::is_integral_v<T>) {
    return Node::scalar(std::to_string(value));
  } else if constexpr (std::is_same_v<T, double>) {
    return Node::scalar(format_number(value));
  } else {
    return Node::scalar(format_quantity(value.value(), dimension_of(T{})));
  }
}

/// A map on one line.
inline Node flow_map(std::initializer_list<std::pair<const char*, Node>> entries) {
  Node map = Node::map();
  map.flow = true;
  for (const auto& [key, value] : entries) map.set(key, value);
  return map;
}

/// A list on one line with an item for each value, by default as make_scalar() writes it.
template <class Values, class Make>
Node flow_list(const Values& values, const Make& make) {
  Node list = Node::list();
  list.flow = true;
  for (const auto& value : values) list.items.push_back(make(value));
  return list;
}
template <class Values>
Node flow_list(const Values& values) {
  return flow_list(values, [](const auto& value) { return make_scalar(value); });
}
template <class T>
Node flow_list(std::initializer_list<T> values) {
  return flow_list(std::span(values.begin(), values.size()));
}

}  // namespace shardscape::yaml
