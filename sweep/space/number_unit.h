// The units that numbers of an expression may have. Private to this folder.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace shardscape::sweep {

struct NumberUnit {
  std::string_view text;
  std::string_view unit;
  double factor = 1, divisor = 1;  ///< powers of ten on either side stay exact
};
inline constexpr auto kNumberUnits = std::to_array<NumberUnit>({
    {"ns", "s", 1, 1e9},
    {"us", "s", 1, 1e6},
    {"ms", "s", 1, 1e3},
    {"s", "s"},
    {"min", "s", 60},
    {"h", "s", 3600},
    {"B", "byte"},
    {"kB", "byte", 1e3},
    {"MB", "byte", 1e6},
    {"GB", "byte", 1e9},
    {"TB", "byte", 1e12},
    {"PB", "byte", 1e15},
    {"KiB", "byte", 0x1p10},
    {"MiB", "byte", 0x1p20},
    {"GiB", "byte", 0x1p30},
    {"TiB", "byte", 0x1p40},
    {"MB/s", "byte s-1", 1e6},
    {"GB/s", "byte s-1", 1e9},
    {"TB/s", "byte s-1", 1e12},
    {"Hz", "Hz"},
    {"MHz", "Hz", 1e6},
    {"GHz", "Hz", 1e9},
});

inline bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// The unit that a text begins with, as a whole word; null where there is none.
inline const NumberUnit* unit_at(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size() && (is_word_char(text[length]) || (text[length] == '/' && length > 0)))
    ++length;
  const auto known = std::ranges::find(kNumberUnits, text.substr(0, length), &NumberUnit::text);
  return known == kNumberUnits.end() ? nullptr : &*known;
}

}  // namespace shardscape::sweep
