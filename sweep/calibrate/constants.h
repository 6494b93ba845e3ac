// The constants that measurements may move: ONE table of what each is, how far it may go and how firmly the
// profile's own value is believed.
//
// A constant is fitted in units of its prior width around its prior value p (the profile's own):
//   logarithmic  value = p * exp(width * u)     durations, bytes, achieved fractions: a log-normal prior
//   linear       value = p + width * u          shares and ratios whose zero has a meaning: a normal prior
// so that u has a standard normal prior. The range is where the value is physically possible; its reason
// stands beside it. Ranges never depend on the data.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "engine/base/enum_names.h"
#include "engine/spec/device.h"
#include "engine/spec/stack.h"
#include "sweep/yaml/quantity_text.h"

namespace shardscape::calibrate {

/// What is fitted: a stack profile and, if asked for, the device below it.
struct Candidate {
  StackProfile stack;
  std::optional<DeviceSpec> device;
};

enum class Scale : std::uint8_t { logarithmic, linear };
/// The measurements that a constant affects. Times do not depend on memory constants, nor memory on the others.
enum class ActsOn : std::uint8_t { time, memory };

struct Constant {
  std::string_view path;                     ///< of the YAML key; after "device." for one of the device
  std::optional<yaml::Dimension> dimension;  ///< dimension of the value; nothing: a plain number
  ActsOn acts_on;
  Scale scale;
  double low, high;  ///< physical range, in base units
  std::string_view range_reason;
  double width;             ///< standard deviation of the prior, of ln(value) or of the value (see Scale)
  std::string_view effect;  ///< description of what it acts on
  double (*get)(const Candidate&);
  void (*set)(Candidate&, double);

  [[nodiscard]] bool of_device() const { return path.starts_with("device."); }
  /// Whether the candidate's machine has the mechanism at all: constants of products by energy and latency only act on
  /// devices whose `energy` is known.
  [[nodiscard]] bool acts_in(const Candidate& candidate) const;
  /// The value at `u` prior widths from `prior`, kept inside the range, and the inverse.
  [[nodiscard]] double value_at(double u, double prior) const;
  [[nodiscard]] double u_of(double value, double prior) const;
  /// The derivative d value / d u at a value.
  [[nodiscard]] double slope(double value) const;
};

/// All fittable constants, the stack's first.
std::span<const Constant> constants();
/// The constant with that path; null where there is none.
const Constant* find_constant(std::string_view path);

/// The value with its unit and at most three significant digits: "0.64 ms", "12 us", "0.735".
std::string format_value(const Constant& constant, double value);
/// The value as a text that parse_value() reads exactly; equal to format_value() where that suffices.
std::string exact_value(const Constant& constant, double value);
/// Reads the texts of format_value(), and any other way to write the quantity.
tl::expected<double, std::string> parse_value(const Constant& constant, std::string_view text);

}  // namespace shardscape::calibrate

namespace shardscape {
SHARDSCAPE_ENUM_NAMES(calibrate::Scale, "logarithmic", "linear");
SHARDSCAPE_ENUM_NAMES(calibrate::ActsOn, "time", "memory");
}  // namespace shardscape
