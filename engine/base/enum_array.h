// An array with one element for each value of an enum.
#pragma once

#include <array>
#include <cstddef>

#include "engine/base/enum_names.h"

namespace shardscape {

/// An array with one element for each value of an enum that has a string table. Indexed by the values; iterates in
/// their order.
template <class E, class T>
struct EnumArray {
  std::array<T, EnumNames<E>::names.size()> values{};

  [[nodiscard]] constexpr T& operator[](E at) { return values[static_cast<std::size_t>(at)]; }
  [[nodiscard]] constexpr const T& operator[](E at) const { return values[static_cast<std::size_t>(at)]; }
  [[nodiscard]] constexpr auto begin() { return values.begin(); }
  [[nodiscard]] constexpr auto end() { return values.end(); }
  [[nodiscard]] constexpr auto begin() const { return values.begin(); }
  [[nodiscard]] constexpr auto end() const { return values.end(); }
  friend bool operator==(const EnumArray&, const EnumArray&) = default;
};

}  // namespace shardscape
