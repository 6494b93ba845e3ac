// One string table per enum: used for parsing, printing, HDF5 flag meanings and documentation alike.
//
// An enum whose values run 0, 1, 2, ... has its names in that order. They are its enumerators as the code spells them,
// so that a new spelling of one is a new word in files and reports; other names are given in the same namespace by
// SHARDSCAPE_ENUM_NAMES, or come from the rows of a table: list_of_names() of the enum.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace shardscape {

namespace detail {

/// An enumerator as the code spells it, out of the compiler's text for this function: "[with auto Value =
/// shardscape::Phase::training]" (g++; clang++ likewise). That of a value without one is "(shardscape::Phase)2".
template <auto Value>
constexpr std::string_view spelling() {
  constexpr std::string_view text = __PRETTY_FUNCTION__;
  constexpr std::string_view value = text.substr(0, text.find_first_of(";]", text.find("Value = ")));
  return value.substr(value.find_last_of(":)") + 1);
}

/// How many values have an enumerator: all up to the first that has none.
template <class E, std::size_t Found = 0>
constexpr std::size_t enumerators() {
  constexpr char first = spelling<static_cast<E>(Found)>().front();
  if constexpr (first >= '0' && first <= '9') {
    static_assert(Found > 0, "an enum whose values do not begin at 0 lists its names");
    return Found;
  } else {
    return enumerators<E, Found + 1>();
  }
}

/// The spellings of the values 0, 1, 2, ...
template <class E, std::size_t... Values>
constexpr auto spellings(std::index_sequence<Values...> /*of all enumerators*/) {
  return std::array<std::string_view, sizeof...(Values)>{spelling<static_cast<E>(Values)>()...};
}

template <class E>
constexpr auto names_of_enum() {
  if constexpr (requires { list_of_names(E{}); }) {
    return list_of_names(E{});  // found in the namespace of the enum
  } else {
    return spellings<E>(std::make_index_sequence<enumerators<E>()>());
  }
}

}  // namespace detail

template <class E>
struct EnumNames {
  static constexpr auto names = detail::names_of_enum<E>();
};

/// All names of an enum, in the order of its values.
template <class E>
constexpr std::span<const std::string_view> enum_names() {
  return EnumNames<E>::names;
}

/// All values of an enum, in order.
template <class E>
constexpr auto enum_values() {
  std::array<E, EnumNames<E>::names.size()> values{};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<E>(i);
  return values;
}

/// The name of a value; values outside the table read "?".
template <class E>
constexpr std::string_view name_of(E value) {
  const auto index = static_cast<std::size_t>(value);
  return index < EnumNames<E>::names.size() ? EnumNames<E>::names[index] : std::string_view("?");
}

/// The value of a name, or nothing where the name is not in the table.
template <class E>
constexpr std::optional<E> parse_enum(std::string_view name) {
  const auto& names = EnumNames<E>::names;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<E>(i);
  }
  return std::nullopt;
}

/// The names of a table whose rows, in the order of the enum, have a `name`; a row that stands elsewhere does
/// not compile.
template <class E, std::size_t N, class Row>
consteval std::array<std::string_view, N> names_of_table(const std::array<Row, N>& rows, E Row::*value) {
  std::array<std::string_view, N> names{};
  for (std::size_t i = 0; i < N; ++i) {
    if (rows[i].*value != static_cast<E>(i)) throw "the rows stand in another order than the enum";
    names[i] = rows[i].name;
  }
  return names;
}

}  // namespace shardscape

/// Declares the string table of an enum whose names are other than its enumerators; place it right after the enum.
#define SHARDSCAPE_ENUM_NAMES(Enum, ...) \
  constexpr auto list_of_names(Enum /*value*/) { return std::to_array<std::string_view>({__VA_ARGS__}); }
