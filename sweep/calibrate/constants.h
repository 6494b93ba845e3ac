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

/// What is fitted: a profile and, where asked for, the device below it.
struct Candidate {
  StackProfile stack;
  std::optional<DeviceSpec> device;
};

enum class Scale : std::uint8_t { logarithmic, linear };
/// Measurements that the constant shows in. Times do not depend on memory constants, nor memory on the
/// others.
enum class ActsOn : std::uint8_t { time, memory };

struct Constant {
  std::string_view path;                     ///< of the YAML key; after "device." for one of the device
  std::optional<yaml::Dimension> dimension;  ///< nothing: a plain number
  ActsOn acts_on;
  Scale scale;
  double low, high;  ///< base units; the physical range
  std::string_view range_reason;
  double width;             ///< standard deviation of the prior, in ln(value) or in value (see Scale)
  std::string_view effect;  ///< what it acts on
  double (*get)(const Candidate&);
  void (*set)(Candidate&, double);

  [[nodiscard]] bool of_device() const { return path.starts_with("device."); }
  /// Whether the candidate's machine has the mechanism at all: kernels of products by energy and latency are
  /// those of a device whose `energy` is known.
  [[nodiscard]] bool acts_in(const Candidate& candidate) const;
  /// The value at `u` prior widths from `prior`, kept inside the range, and back.
  [[nodiscard]] double value_at(double u, double prior) const;
  [[nodiscard]] double u_of(double value, double prior) const;
  /// d value / d u at a value.
  [[nodiscard]] double slope(double value) const;
};

/// Every fittable constant, the stack's first.
std::span<const Constant> constants();
/// Null where there is none of that path.
const Constant* find_constant(std::string_view path);

/// The value with its unit and at most three significant digits: "0.64 ms", "12 us", "0.735".
std::string format_value(const Constant& constant, double value);
/// The value so that parse_value() gives exactly it: as format_value() where that is enough.
std::string exact_value(const Constant& constant, double value);
/// Reads what format_value() writes, and any other way to write the quantity.
tl::expected<double, std::string> parse_value(const Constant& constant, std::string_view text);

}  // namespace shardscape::calibrate

namespace shardscape {
SHARDSCAPE_ENUM_NAMES(calibrate::Scale, "logarithmic", "linear");
SHARDSCAPE_ENUM_NAMES(calibrate::ActsOn, "time", "memory");
}  // namespace shardscape
