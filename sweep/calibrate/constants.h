// The constants that measurements may move: the rows with a fit rule in the tables of the numbers of stacks and devices
// (spec/spec_numbers.h). A rule says how far a constant may go, and how firmly the profile's own value is believed.
//
// A constant is fitted in units of its prior width around its prior value, the profile's own (FitScale), so that this
// deviation u has a standard normal prior. The range is where the value is physically possible; its reason stands
// beside it. Ranges never depend on the data.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "engine/spec/number_row.h"
#include "sweep/yaml/preset_specs.h"
#include "sweep/yaml/quantity_text.h"

namespace shardscape::calibrate {

/// The specs that are fitted: a stack profile and, if asked for, the device below it.
struct Candidate {
  yaml::StackPreset stack;
  std::optional<yaml::DevicePreset> device;
};

inline constexpr std::string_view kOfDevice = "device.";

/// A constant with the fit rule of its row, which says how far it may go.
struct Constant : FitRule {
  std::string path;                          ///< path of the YAML key; after kOfDevice for one of the device
  std::optional<yaml::Dimension> dimension;  ///< dimension of the value; nothing: a plain number
  std::string_view effect;                   ///< description of what it acts on
  std::function<double(const Candidate&)> get;
  std::function<void(Candidate&, double)> set;

  [[nodiscard]] bool of_device() const { return path.starts_with(kOfDevice); }
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
