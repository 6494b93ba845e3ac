// Quantities as text: a number with a unit ("80 GiB", "25 GB/s", "400 Gb/s", "5 us", "1.41 GHz", "312
// TFLOP/s").
//
// Decimal prefixes are powers of ten (GB = 1e9 B), binary ones powers of two (GiB = 2^30 B); B is a byte, b a
// bit. Values are base SI units: seconds, hertz, bytes, bytes per second, floating-point operations (per
// second), watts, metres, square metres, joules per bit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "engine/base/quantity.h"

namespace shardscape::yaml {

enum class Dimension : std::uint8_t {
  time,
  frequency,
  data,
  bandwidth,
  work,
  work_rate,
  power,
  length,
  area,
  energy_per_bit
};

/// How a dimension is named.
struct DimensionRow {
  std::string_view name;     ///< in messages: "a bandwidth"
  std::string_view example;  ///< in messages: "25 GB/s"
  std::string_view unit;     ///< UDUNITS name of the base unit: "byte s-1"
  std::string_view suffix;   ///< ending of column names: "_bytes_per_s"
};
const DimensionRow& row_of(Dimension dimension);

/// The value in base units. Errors (no unit, an unknown unit, a unit of another dimension, no number, not finite) say
/// what is expected.
tl::expected<double, std::string> parse_quantity(std::string_view text, Dimension dimension);

/// The shortest text that parses back to exactly `value` (finite): "80 GiB", "5 us", "2039 GB/s".
std::string format_quantity(double value, Dimension dimension);

}  // namespace shardscape::yaml

namespace shardscape {

/// The dimension of a type of quantities, found in the namespace of the type.
constexpr yaml::Dimension dimension_of(Seconds) { return yaml::Dimension::time; }
constexpr yaml::Dimension dimension_of(Hertz) { return yaml::Dimension::frequency; }
constexpr yaml::Dimension dimension_of(Bytes) { return yaml::Dimension::data; }
constexpr yaml::Dimension dimension_of(BytesPerSecond) { return yaml::Dimension::bandwidth; }
constexpr yaml::Dimension dimension_of(Flops) { return yaml::Dimension::work; }
constexpr yaml::Dimension dimension_of(FlopsPerSecond) { return yaml::Dimension::work_rate; }
constexpr yaml::Dimension dimension_of(Watts) { return yaml::Dimension::power; }

}  // namespace shardscape

namespace shardscape::yaml {

/// Types with a physical dimension, which are written with a unit.
template <class T>
concept Dimensional = requires(T value) {
  dimension_of(value);
};

}  // namespace shardscape::yaml
