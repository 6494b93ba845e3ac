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

/// The words for a dimension in messages: "a bandwidth", and an example such as "25 GB/s".
std::string_view dimension_name(Dimension dimension);
std::string_view dimension_example(Dimension dimension);
/// The UDUNITS name of the base unit: "s", "Hz", "byte", "byte s-1", "1", "s-1", "W", "m", "m2", "J bit-1".
std::string_view dimension_unit(Dimension dimension);
/// The ending of column names: "_s", "_hz", "_bytes", "_bytes_per_s", "_flops", "_flops_per_s", "_w", "_m", "_m2",
/// "_j_per_bit".
std::string_view dimension_suffix(Dimension dimension);

/// The value in base units. Errors (no unit, an unknown unit, a unit of another dimension, no number, not finite) say
/// what is expected.
tl::expected<double, std::string> parse_quantity(std::string_view text, Dimension dimension);

/// The shortest text that parses back to exactly `value` (finite): "80 GiB", "5 us", "2039 GB/s".
std::string format_quantity(double value, Dimension dimension);

template <class Q>
struct DimensionOf;
template <>
struct DimensionOf<Seconds> {
  static constexpr Dimension value = Dimension::time;
};
template <>
struct DimensionOf<Hertz> {
  static constexpr Dimension value = Dimension::frequency;
};
template <>
struct DimensionOf<Bytes> {
  static constexpr Dimension value = Dimension::data;
};
template <>
struct DimensionOf<BytesPerSecond> {
  static constexpr Dimension value = Dimension::bandwidth;
};
template <>
struct DimensionOf<Flops> {
  static constexpr Dimension value = Dimension::work;
};
template <>
struct DimensionOf<Watts> {
  static constexpr Dimension value = Dimension::power;
};
template <>
struct DimensionOf<FlopsPerSecond> {
  static constexpr Dimension value = Dimension::work_rate;
};

/// Types with a physical dimension, which are written with a unit.
template <class T>
concept Dimensional = requires {
  DimensionOf<T>::value;
};

}  // namespace shardscape::yaml
