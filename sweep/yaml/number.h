// Reads and writes plain numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace shardscape::yaml {

/// A finite decimal number that takes up the whole text ("0.85", "-3", "1e-6"); nothing otherwise (no
/// hexadecimal, no inf, no nan).
std::optional<double> parse_finite(std::string_view text);

/// An integer in [low, high]. Exponents are allowed where the value is exact ("1e6"); errors say what is wrong.
tl::expected<std::int64_t, std::string> parse_integer(std::string_view text, std::int64_t low,
                                                      std::int64_t high);

/// A number; errors distinguish "not finite", "no number" and a superfluous unit.
tl::expected<double, std::string> parse_number(std::string_view text);

/// The shortest text that parses back to exactly `value`.
std::string format_number(double value);

}  // namespace shardscape::yaml
