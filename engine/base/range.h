// A range of allowed values for a number of a specification, and the messages about values outside of it.
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

/// A Quantity or an Amount: a number of base units.
template <class Q>
concept Measured = requires(Q quantity) {
  quantity.value();
};

/// Allows low .. high in base units, both included, or without `high` where `below_high` is set, and also 0 where
/// `or_zero` is.
struct Range {
  double low = 0;
  double high = 0;
  std::string_view unit = "";
  bool or_zero = false;
  std::string_view why = "";  ///< what `low` stands for, for the message about a smaller value
  bool below_high = false;

  [[nodiscard]] constexpr bool holds(double value) const {
    return (value >= low && value <= high && !(below_high && value == high)) || (or_zero && value == 0);
  }
  template <Measured Q>
  [[nodiscard]] constexpr bool holds(Q value) const {
    return holds(value.value());
  }

  /// The range in words, such as "from 1e-15 s to 1e+09 s, or 0".
  [[nodiscard]] std::string text() const {
    return "from " + number(low) + (below_high ? " to below " : " to ") + number(high) +
           (or_zero ? ", or 0" : "");
  }
  /// The message about a value outside, such as "must be from 1 to 1e+06, not 0".
  [[nodiscard]] std::string violated_by(double value) const {
    return "must be " + text() + ", not " + number(value) +
           (value < low && !why.empty() ? ": " + number(low) + " are " + std::string(why) : "");
  }
  /// A number followed by the unit.
  [[nodiscard]] std::string number(double value) const {
    std::array<char, 32> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    return std::string(digits.data(), end) + (unit.empty() ? "" : " ") + std::string(unit);
  }
};

/// The same range, in which 0 is allowed as well.
constexpr Range or_zero(Range range) {
  range.or_zero = true;
  return range;
}

inline void require_range(Problems& problems, double value, const std::string& field, const Range& range) {
  if (!range.holds(value)) problems.add(field, range.violated_by(value));
}
inline void require_range(Problems& problems, std::int64_t value, const std::string& field,
                          const Range& range) {
  if (range.holds(static_cast<double>(value))) return;
  // Prints all digits of the value: a short format could round it into the range.
  problems.add(field, fmt::format("must be {}, not {}", range.text(), value));
}
template <Measured Q>
void require_range(Problems& problems, Q value, const std::string& field, const Range& range) {
  require_range(problems, value.value(), field, range);
}

}  // namespace shardscape
