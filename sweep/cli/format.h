// Numbers for human readers. Files and JSON hold plain SI values instead.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shardscape::cli {

/// "1,234,567".
std::string format_count(std::uint64_t count);
/// `digits` digits after the point.
std::string format_fixed(double value, int digits);
/// Four significant digits with an SI prefix before the unit: "312.0 TFLOP/s", "12.35 ms".
std::string format_si(double value, std::string_view unit);
/// "70.55 B parameters".
std::string format_parameters(double count);
/// Binary multiples: "71.25 GiB".
std::string format_bytes(double bytes);
/// From nanoseconds to seconds; minutes and hours for long ones: "6.643 s", "12.35 ms".
std::string format_seconds(double seconds);
/// Wall time for people: "156.0 ms", "45 s", "3 min 20 s", "2 h 5 min".
std::string format_duration(double seconds);
/// "41.3 %", with `digits` digits after the point.
std::string format_percent(double share, int digits = 1);
/// The same with its sign: "+41.3 %", "-0.2 %".
std::string format_signed_percent(double share, int digits = 1);
/// A value of a column with that UDUNITS unit ("s", "byte", "byte s-1", "s-1", "1").
std::string format_value(double value, std::string_view unit);
/// `width` characters, `share` (0..1) of them filled.
std::string bar(double share, std::size_t width);

}  // namespace shardscape::cli
