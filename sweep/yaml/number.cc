#include "sweep/yaml/number.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "engine/base/words.h"

namespace shardscape::yaml {

namespace {

constexpr double kExactIntegers = 9007199254740992.0;  // 2^53: above it doubles cannot hold every integer

std::string quoted(std::string_view text) { return fmt::format("\"{}\"", text); }

bool means_not_finite(std::string_view text) {
  const std::string lower = lower_case(text);
  const std::string_view bare =
      std::string_view(lower).substr(std::min(lower.size(), lower.find_first_not_of("+-.")));
  return bare == "inf" || bare == "infinity" || bare == "nan";
}

/// Whether a text has only digits, signs, points and exponents: from_chars would also take "inf" and "nan".
bool looks_decimal(std::string_view text) {
  return !text.empty() && text.find_first_not_of("+-.0123456789eE") == std::string_view::npos;
}

struct Decimal {
  double value = 0;
  bool valid = false;
  bool overflow = false;
};

Decimal read_decimal(std::string_view text) {
  if (!looks_decimal(text)) return {};
  if (text.front() == '+') {
    text.remove_prefix(1);
    if (text.empty() || text.front() == '-') return {};
  }
  Decimal result;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result.value);
  result.overflow = error == std::errc::result_out_of_range;
  result.valid = error != std::errc::invalid_argument && end == text.data() + text.size();
  return result;
}

}  // namespace

std::optional<double> parse_finite(std::string_view text) {
  const Decimal decimal = read_decimal(text);
  if (!decimal.valid || decimal.overflow) return std::nullopt;
  return decimal.value;
}

tl::expected<std::int64_t, std::string> parse_integer(std::string_view text, std::int64_t low,
                                                      std::int64_t high) {
  const auto out_of_range = [&] {
    return tl::unexpected(fmt::format("must be an integer from {} to {}, not {}", low, high, text));
  };
  std::int64_t value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (end != last || error == std::errc::invalid_argument) {
    const Decimal decimal = read_decimal(text);
    if (!decimal.valid) return tl::unexpected("must be an integer, not " + quoted(text));
    if (decimal.overflow) return out_of_range();
    if (decimal.value != std::floor(decimal.value)) {
      return tl::unexpected(fmt::format("must be an integer, not {}", text));
    }
    if (std::abs(decimal.value) > kExactIntegers) return out_of_range();
    value = static_cast<std::int64_t>(decimal.value);
  } else if (error == std::errc::result_out_of_range) {
    return out_of_range();
  }
  if (value < low || value > high) return out_of_range();
  return value;
}

tl::expected<double, std::string> parse_number(std::string_view text) {
  const Decimal decimal = read_decimal(text);
  if (means_not_finite(text) || (decimal.valid && decimal.overflow)) {
    return tl::unexpected(fmt::format("must be a finite number, not {}", text));
  }
  if (!decimal.valid) return tl::unexpected("must be a bare number, not " + quoted(text));
  return decimal.value;
}

std::string format_number(double value) {
  std::array<char, 32> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), end};
}

}  // namespace shardscape::yaml
