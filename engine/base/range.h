// The values that a number of a specification may have.
#pragma once

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/problems.h"
#include "engine/base/quantity.h"

namespace shardscape {

/// low .. high in base units, both included; `or_zero`: 0 as well.
struct Range {
  double low = 0;
  double high = 0;
  std::string_view unit = "";
  bool or_zero = false;

  [[nodiscard]] constexpr bool holds(double value) const {
    return (value >= low && value <= high) || (or_zero && value == 0);
  }
  template <int T, int B, int F>
  [[nodiscard]] constexpr bool holds(Quantity<T, B, F> value) const {
    return holds(value.value());
  }

  /// "from 1e-15 s to 1e+09 s, or 0".
  [[nodiscard]] std::string text() const {
    return "from " + number(low) + " to " + number(high) + (or_zero ? ", or 0" : "");
  }
  /// "must be from 1 to 1e+06, not 0".
  [[nodiscard]] std::string violated_by(double value) const {
    return "must be " + text() + ", not " + number(value);
  }
  /// A value with the unit.
  [[nodiscard]] std::string number(double value) const {
    std::array<char, 32> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    return std::string(digits.data(), end) + (unit.empty() ? "" : " ") + std::string(unit);
  }
};

inline void require_range(Problems& problems, double value, const std::string& field, const Range& range) {
  if (!range.holds(value)) problems.add(field, range.violated_by(value));
}
inline void require_range(Problems& problems, std::int64_t value, const std::string& field,
                          const Range& range) {
  if (range.holds(static_cast<double>(value))) return;
  problems.add(field, fmt::format("must be {}, not {}", range.text(), value));  // every digit of it
}
template <int T, int B, int F>
void require_range(Problems& problems, Quantity<T, B, F> value, const std::string& field,
                   const Range& range) {
  require_range(problems, value.value(), field, range);
}

}  // namespace shardscape
