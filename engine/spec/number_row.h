// A row of a table of numbers: where a number of a spec stands, what it may be, what it means, and whether and how far
// measurements may move it. Validation, YAML in and out and calibration read the rows, so that each number is said
// once.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "engine/base/enum_names.h"
#include "engine/base/quantity.h"
#include "engine/base/range.h"

namespace shardscape {

/// How a number moves with u, a deviation in units of its prior's width around its prior value p.
///   logarithmic  p * exp(width * u)   durations, bytes, achieved fractions: a log-normal prior
///   linear       p + width * u        shares and ratios whose zero has a meaning: a normal prior
enum class FitScale : std::uint8_t { logarithmic, linear };
SHARDSCAPE_ENUM_NAMES(FitScale, "logarithmic", "linear");

/// The measurements that a number affects. Times do not depend on memory's numbers, nor memory on the others.
enum class FitActsOn : std::uint8_t { time, memory };
SHARDSCAPE_ENUM_NAMES(FitActsOn, "time", "memory");

/// How far a fit to measurements may move a number.
struct FitRule {
  FitActsOn acts_on;
  FitScale scale;
  double low, high;         ///< where it is physically possible, in base units; within the row's range
  std::string_view reason;  ///< why no further
  double width;             ///< standard deviation of the prior, of ln(value) or of the value (see FitScale)
};

template <class Spec>
struct NumberRow {
  template <class T>
  using Field = T& (*)(Spec&);

  std::string_view path;  ///< of the YAML key, such as "host.forward_layer"
  std::variant<Field<double>, Field<std::int64_t>, Field<Seconds>, Field<Bytes>> field;
  Range range;
  std::string_view meaning;
  std::optional<FitRule> fit = std::nullopt;  ///< nothing: measurements leave it as it is
  bool required = false;                      ///< whether a file must state it

  /// The value in base units.
  [[nodiscard]] double get(const Spec& spec) const {
    return visit(spec, [](const auto& value) {
      if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(value)>>) {
        return static_cast<double>(value);
      } else {
        return value.value();
      }
    });
  }
  void set(Spec& spec, double value) const {
    visit(spec, [&](auto& held) { held = static_cast<std::remove_cvref_t<decltype(held)>>(value); });
  }
  /// What `visitor` makes of the field itself.
  template <class F>
  decltype(auto) visit(Spec& spec, F&& visitor) const {
    return std::visit([&](auto access) -> decltype(auto) { return visitor(access(spec)); }, field);
  }
  template <class F>
  decltype(auto) visit(const Spec& spec, F&& visitor) const {
    return std::visit(
        [&](auto access) -> decltype(auto) {
          return visitor(std::as_const(access(const_cast<Spec&>(spec))));
        },
        field);
  }
};

}  // namespace shardscape
