// The constants of a stack and of a device, out of the tables of their numbers; then the texts of values.
#include "sweep/calibrate/constants.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "engine/spec/spec_numbers.h"
#include "sweep/yaml/number.h"

namespace shardscape::calibrate {

namespace {

using enum FitScale;
using yaml::Dimension;

/// Adds the rows of a table that a fit may move; `part` gives the spec of a candidate, whose paths begin with `prefix`.
template <class Spec, class Part>
void add(std::vector<Constant>& list, std::span<const NumberRow<Spec>> table, std::string_view prefix,
         Part part) {
  for (const NumberRow<Spec>& number : table) {
    if (!number.fit) continue;
    const auto dimension = std::visit(
        [](auto access) -> std::optional<Dimension> {
          using Value = std::remove_cvref_t<decltype(access(std::declval<Spec&>()))>;
          if constexpr (yaml::Dimensional<Value>) return dimension_of(Value{});
          return std::nullopt;
        },
        number.field);
    list.push_back({*number.fit, std::string(prefix).append(number.path), dimension, number.meaning,
                    [&number, part](const Candidate& c) { return number.get(part(c)); },
                    [&number, part](Candidate& c, double value) { number.set(part(c), value); }});
  }
}

const std::vector<Constant>& all_constants() {
  static const std::vector<Constant> all = [] {
    std::vector<Constant> list;
    add(
        list, stack_numbers(), "", [](auto& c) -> auto& { return c.stack; });
    add(
        list, device_numbers(), kOfDevice, [](auto& c) -> auto& { return *c.device; });
    return list;
  }();
  return all;
}

struct Unit {
  double size;
  const char* name;
};
constexpr Unit kTimeUnits[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
constexpr Unit kRateUnits[] = {{1e12, "TB/s"}, {1e9, "GB/s"}, {1e6, "MB/s"}};
constexpr Unit kDataUnits[] = {{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {1, "B"}};

std::span<const Unit> units_of(Dimension dimension) {
  if (dimension == Dimension::time) return kTimeUnits;
  return dimension == Dimension::bandwidth ? std::span<const Unit>(kRateUnits) : kDataUnits;
}

/// The value with three significant digits and no exponent, for values >= 1e-4.
std::string three_digits(double value) {
  const std::string text = fmt::format("{:.3g}", value);
  const bool exponent = text.find('e') != std::string::npos;  // "1e+03"
  return exponent ? fmt::format("{:.0f}", std::stod(text)) : text;
}

}  // namespace

bool Constant::acts_in(const Candidate& candidate) const {
  if (path.starts_with("device.products.")) return candidate.device && candidate.device->knows_energy();
  // A rate of 1 does not mean that the mechanism is off: without tables for the device's architecture it has no effect.
  if (path.starts_with("device.attention.") && path.ends_with("_rate"))
    return candidate.device && candidate.device->architecture != Architecture::other;
  return true;
}

double Constant::value_at(double u, double prior) const {
  const double value = scale == logarithmic ? prior * std::exp(width * u) : prior + width * u;
  return std::clamp(value, low, high);
}

double Constant::u_of(double value, double prior) const {
  return (scale == logarithmic ? std::log(value / prior) : value - prior) / width;
}

double Constant::slope(double value) const { return scale == logarithmic ? width * value : width; }

std::span<const Constant> constants() { return all_constants(); }

const Constant* find_constant(std::string_view path) {
  const auto found = std::ranges::find(all_constants(), path, &Constant::path);
  return found == all_constants().end() ? nullptr : &*found;
}

std::string format_value(const Constant& constant, double value) {
  if (!constant.dimension) return three_digits(value);
  const std::span<const Unit> units = units_of(*constant.dimension);
  for (const Unit& unit : units) {
    if (value >= 0.9995 * unit.size) return three_digits(value / unit.size) + ' ' + unit.name;
  }
  return three_digits(value / units.back().size) + ' ' + units.back().name;
}

std::string exact_value(const Constant& constant, double value) {
  const std::string shown = format_value(constant, value);
  const auto read = parse_value(constant, shown);
  if (read && *read == value) return shown;
  std::array<char, 32> digits{};
  const std::to_chars_result end = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  std::string text(digits.data(), end.ptr);
  if (constant.dimension) {
    const bool rate = *constant.dimension == Dimension::bandwidth;
    text += *constant.dimension == Dimension::time ? " s" : rate ? " B/s" : " B";
  }
  return text;
}

tl::expected<double, std::string> parse_value(const Constant& constant, std::string_view text) {
  return constant.dimension ? yaml::parse_quantity(text, *constant.dimension) : yaml::parse_number(text);
}

}  // namespace shardscape::calibrate
