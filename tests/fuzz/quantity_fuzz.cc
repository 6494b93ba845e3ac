// Do numbers and quantities survive any bytes? The first byte chooses the dimension. What is read is finite
// and reads back as itself.
#include <cmath>
#include <cstdint>
#include <string_view>

#include "engine/base/check.h"
#include "sweep/yaml/number.h"
#include "sweep/yaml/quantity_text.h"

using namespace shardscape;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  constexpr int kDimensions = static_cast<int>(yaml::Dimension::energy_per_bit) + 1;
  const auto dimension = static_cast<yaml::Dimension>(data[0] % kDimensions);
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (const auto value = yaml::parse_quantity(text, dimension)) {
    SHARDSCAPE_CHECK(std::isfinite(*value), text);
    const auto again = yaml::parse_quantity(yaml::format_quantity(*value, dimension), dimension);
    SHARDSCAPE_CHECK(again && *again == *value, text, *value);
  }
  if (const auto value = yaml::parse_number(text)) {
    const auto again = yaml::parse_number(yaml::format_number(*value));
    SHARDSCAPE_CHECK(again && *again == *value, text, *value);
  }
  constexpr std::int64_t kLow = -1000, kHigh = 1'000'000'000'000;
  if (const auto value = yaml::parse_integer(text, kLow, kHigh))
    SHARDSCAPE_CHECK(*value >= kLow && *value <= kHigh, text, *value);
  return 0;
}
