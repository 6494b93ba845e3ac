// A row of a table of numbers: where a number of a spec stands, what it may be, what it means, whether a file must have
// it, and whether and how far measurements may move it. Validation, YAML in and out, what-ifs, calibration and the
// READMEs' tables read the rows, so that each number is said once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "engine/base/enum_names.h"
#include "engine/base/problems.h"
#include "engine/base/quantity.h"
#include "engine/base/range.h"

namespace shardscape {

/// How a number moves with u, a deviation in units of its prior's width around its prior value p.
///   logarithmic  p * exp(width * u)   durations, bytes, achieved fractions: a log-normal prior
///   linear       p + width * u        shares and ratios whose zero has a meaning: a normal prior
enum class FitScale : std::uint8_t { logarithmic, linear };

/// The measurements that a number affects. Times do not depend on memory's numbers, nor memory on the others.
enum class FitActsOn : std::uint8_t { time, memory };

/// Reasons that numbers of devices and of stacks share.
inline constexpr std::string_view kLinkShareRange =
    "a share of the link's bandwidth; below a tenth the link is broken";
inline constexpr std::string_view kStepLatencyRange = "from one write over the link to a host in every step";

/// How far a fit to measurements may move a number.
struct FitRule {
  FitActsOn acts_on;
  FitScale scale;
  double low, high;         ///< limits of what is physically possible, in base units; within the row's range
  std::string_view reason;  ///< why no further
  double width;             ///< standard deviation of the prior, of ln(value) or of the value (see FitScale)
};

/// Whether a file must have the key of a number, and what it means to leave it out:
///   optional        the number stays as the spec has it, or becomes the row's `fallback`
///   required        an error, unless the row has a `fallback` for this spec
///   peak_if_absent  a share of a peak stays 1, which no kernel reaches: the reader of results is told
///   none_if_absent  0 stands for something that is not there, and is not written
///   for_the_reader  the same of a fact that models of time have no use for; no what-if
enum class KeyUse : std::uint8_t { optional, required, peak_if_absent, none_if_absent, for_the_reader };

template <class Spec>
struct NumberRow {
  template <class T>
  using Field = T& (*)(Spec&);

  std::string_view path;  ///< path of the YAML key, such as "host.forward_layer"
  std::variant<Field<double>, Field<std::int64_t>, Field<Seconds>, Field<Bytes>, Field<Hertz>, Field<Watts>,
               Field<BytesPerSecond>, Field<std::optional<double>>, Field<std::optional<std::int64_t>>,
               Field<std::optional<Seconds>>, Field<std::optional<BytesPerSecond>>>
      field;
  Range range;
  std::string_view meaning;
  std::optional<FitRule> fit = std::nullopt;  ///< nothing: measurements leave it as it is
  KeyUse use = KeyUse::optional;
  /// Another key for the same number: the total over all stacks of memory, or over all links of a GPU; empty: none.
  std::string_view total = {};
  /// The value of a number that is left out, from others, in base units; nothing: it does not follow for this spec.
  std::optional<double> (*fallback)(const Spec&) = nullptr;
  /// Why the key has no effect on this spec, whose number is the `fallback` then; null: it has one.
  const char* (*idle)(const Spec&) = nullptr;

  /// The value in base units; 0 where there is none.
  [[nodiscard]] double get(const Spec& spec) const {
    return visit(spec, [](const auto& value) { return number(value); });
  }
  template <class T>
  static double number(const T& value) {
    if constexpr (std::is_arithmetic_v<T>) {
      return static_cast<double>(value);
    } else if constexpr (requires { value.has_value(); }) {
      return value ? number(*value) : 0;
    } else {
      return value.value();
    }
  }
  [[nodiscard]] bool same(const Spec& a, const Spec& b) const {
    return std::visit(
        [&](auto access) { return access(const_cast<Spec&>(a)) == access(const_cast<Spec&>(b)); }, field);
  }
  /// Checks the number, where there is one, against its range; problems are reported at `place`.
  void check(Problems& problems, const Spec& spec, const std::string& place) const {
    visit(spec, [&](const auto& value) {
      if constexpr (!requires { value.has_value(); }) {
        require_range(problems, value, place, range);
      } else if (value) {
        require_range(problems, *value, place, range);
      }
    });
  }
  void set(Spec& spec, double value) const {
    visit(spec, [&](auto& held) { held = static_cast<std::remove_cvref_t<decltype(held)>>(value); });
  }
  /// Calls visitor(field) and returns its result.
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

/// Holds every number that is there against its range; problems are reported at `prefix` and the row's path. `whole`:
/// the beginnings of paths ("nccl.") of groups that a spec has in full, or, where all of their numbers are 0, not at
/// all.
template <class Spec>
void require_ranges(Problems& problems, const Spec& spec, std::span<const NumberRow<Spec>> table,
                    const std::string& prefix = "", std::initializer_list<std::string_view> whole = {}) {
  std::vector<std::string_view> absent;
  std::ranges::copy_if(whole, std::back_inserter(absent), [&](std::string_view group) {
    return std::ranges::all_of(
        table, [&](const auto& row) { return !row.path.starts_with(group) || row.get(spec) == 0; });
  });
  for (const NumberRow<Spec>& row : table) {
    const auto inside = [&](std::string_view group) { return row.path.starts_with(group); };
    if (std::ranges::none_of(absent, inside)) row.check(problems, spec, prefix + std::string(row.path));
  }
}

}  // namespace shardscape
