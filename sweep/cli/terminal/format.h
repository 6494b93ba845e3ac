// Formats numbers for people. Files and JSON have plain SI values instead.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace shardscape::cli {

/// A count, which is not negative, with separators: "1,234,567".
std::string format_whole(std::uint64_t count);
template <std::integral Count>
std::string format_count(Count count) {
  return format_whole(static_cast<std::uint64_t>(count));
}
/// So many things of a name: "1 row", "1,234 rows".
template <std::integral Count>
std::string counted(Count count, std::string_view name, std::string_view plural = "s") {
  return (format_count(count) + ' ').append(name).append(count == 1 ? "" : plural);
}
/// A number with `digits` decimals, from 10,000 on with separators.
std::string format_fixed(double value, int digits);
/// A rate per second with three decimals, a small one with three digits: "8.000", "0.000389".
std::string format_rate(double per_second);
/// A number with four significant digits and an SI prefix: "312.0 TFLOP/s", "12.35 ms".
std::string format_si(double value, std::string_view unit);
/// A number of parameters: "70.55 B parameters".
std::string format_parameters(double count);
/// An amount of data in binary multiples: "71.25 GiB".
std::string format_bytes(double bytes);
/// A time, from nanoseconds to seconds, with minutes and hours for long ones: "6.643 s", "12.35 ms".
std::string format_seconds(double seconds);
/// A wall-clock time: "156.0 ms", "45 s", "3 min 20 s", "2 h 5 min".
std::string format_duration(double seconds);
/// A share as "41.3 %", with `digits` decimals.
std::string format_percent(double share, int digits = 1);
/// A share with its sign: "+41.3 %", "-0.2 %".
std::string format_signed_percent(double share, int digits = 1);
/// A time over another, less 1: a share, from ten times that time on a factor: "41.32 %", "12.5x", "1,001x".
std::string format_slowdown(double slowdown, int digits);
/// A value of a column with the given UDUNITS unit ("s", "byte", "byte s-1", "s-1", "1").
std::string format_value(double value, std::string_view unit);
/// A bar of `width` characters, of which the share `share` (0..1) is filled.
std::string bar(double share, std::size_t width);

}  // namespace shardscape::cli
