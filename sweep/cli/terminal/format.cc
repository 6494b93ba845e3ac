#include "sweep/cli/terminal/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace shardscape::cli {

namespace {

/// The value with as many decimals as leave four significant digits.
std::string four_digits(double value) {
  const double size = std::abs(value);
  return format_fixed(value, size >= 999.95 ? 0 : size >= 99.995 ? 1 : size >= 9.9995 ? 2 : 3);
}

std::string not_a_number() { return "-"; }

}  // namespace

std::string format_whole(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string format_fixed(double value, int digits) {
  std::string text = fmt::format("{:.{}f}", value, digits);
  constexpr double kPlain = 1e4, kLong = 1e15;
  if (std::abs(value) < kPlain || !(std::abs(value) < kLong)) return text;
  const std::size_t first = value < 0 ? 1 : 0;
  for (std::size_t at = std::min(text.find('.'), text.size()); at > first + 3; at -= 3)
    text.insert(at - 3, ",");
  return text;
}

std::string format_rate(double per_second) {
  constexpr double kSmall = 0.01;
  const bool small = per_second > 0 && per_second < kSmall;
  return small ? fmt::format("{:.3g}", per_second) : format_fixed(per_second, 3);
}

std::string format_si(double value, std::string_view unit) {
  if (!std::isfinite(value)) return not_a_number();
  struct Prefix {
    double factor;
    const char* name;
  };
  static constexpr std::array<Prefix, 9> kPrefixes = {{{1e15, "P"},
                                                       {1e12, "T"},
                                                       {1e9, "G"},
                                                       {1e6, "M"},
                                                       {1e3, "k"},
                                                       {1, ""},
                                                       {1e-3, "m"},
                                                       {1e-6, "u"},
                                                       {1e-9, "n"}}};
  const double size = std::abs(value);
  for (const Prefix& prefix : kPrefixes) {
    if (size >= prefix.factor * 0.99995) {
      return fmt::format("{} {}{}", four_digits(value / prefix.factor), prefix.name, unit);
    }
  }
  return fmt::format("{:.3g} {}", value, unit);
}

std::string format_parameters(double count) {
  return count < 1e9 ? four_digits(count / 1e6) + " M parameters"
                     : four_digits(count / 1e9) + " B parameters";
}

std::string format_bytes(double bytes) {
  if (!std::isfinite(bytes)) return not_a_number();
  static constexpr std::array<const char*, 6> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  while (std::abs(bytes) >= 1024 && unit + 1 < kUnits.size()) bytes /= 1024, ++unit;
  return format_fixed(bytes, unit == 0 ? 0 : 2) + " " + kUnits[unit];
}

std::string format_seconds(double seconds) {
  if (!std::isfinite(seconds)) return not_a_number();
  if (seconds == 0) return "0 s";
  return std::abs(seconds) < 999.95 ? format_si(seconds, "s") : format_fixed(seconds, 0) + " s";
}

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds)) return not_a_number();
  if (seconds < 1) return format_seconds(seconds);
  if (seconds < 10) return format_fixed(seconds, 1) + " s";
  const auto whole = static_cast<std::uint64_t>(std::llround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", format_count(whole / 3600), whole / 60 % 60);
}

std::string format_percent(double share, int digits) {
  return std::isfinite(share) ? format_fixed(100 * share, digits) + " %" : not_a_number();
}

std::string format_signed_percent(double share, int digits) {
  return std::isfinite(share) ? (share < 0 ? "-" : "+") + format_percent(std::abs(share), digits)
                              : not_a_number();
}

std::string format_slowdown(double slowdown, int digits) {
  constexpr double kFactors = 9;
  if (!(slowdown >= kFactors && std::isfinite(slowdown))) return format_percent(slowdown, digits);
  const double factor = 1 + slowdown;
  return (factor < 100 ? format_fixed(factor, 1) : format_count(std::llround(factor))) + "x";
}

std::string format_value(double value, std::string_view unit) {
  if (!std::isfinite(value)) return not_a_number();
  if (unit == "s") return format_seconds(value);
  if (unit == "byte") return format_bytes(value);
  if (unit == "byte s-1") return format_si(value, "B/s");
  if (unit == "s-1") return format_si(value, "/s");
  if (unit == "Hz") return format_si(value, "Hz");
  if (unit == "m2") return four_digits(value * 1e6) + " mm2";  // a prefix of the unit would be squared, too
  if (unit != "1") return format_si(value, unit);
  if (value == std::floor(value) && std::abs(value) < 1e15) return format_fixed(value, 0);
  return fmt::format("{:.4g}", value);
}

std::string bar(double share, std::size_t width) {
  const double filled = std::clamp(std::isnan(share) ? 0.0 : share, 0.0, 1.0) * static_cast<double>(width);
  const auto full = static_cast<std::size_t>(std::lround(filled));
  return std::string(full, '#') + std::string(width - full, '.');
}

}  // namespace shardscape::cli
