// What the standard library of Debian 12's emscripten (libc++ 13) lacks of C++20 and the sources use. Included before
// every file of a build for the browser, and of no other.
#pragma once

#define __riscv \
  1  // Random123 names the processors it was tested on; its own test (known answers) passes here, too
#include <Random123/philox.h>
#undef __riscv

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <compare>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <range/v3/algorithm.hpp>
#include <ranges>
#include <string>
#include <system_error>

namespace std {  // NOLINT: the names are the standard's own

template <class To, class From>
constexpr To bit_cast(const From& from) noexcept {
  return __builtin_bit_cast(To, from);
}

template <class T>
unique_ptr<T> make_unique_for_overwrite(size_t count) {
  return unique_ptr<T>(new remove_extent_t<T>[count]);
}

/// Lexicographical order of arrays.
template <class T, size_t N>
constexpr auto operator<=>(const array<T, N>& a, const array<T, N>& b) -> decltype(a[0] <=> b[0]) {
  for (size_t i = 0; i < N; ++i) {
    const auto order = a[i] <=> b[i];
    if (order != 0) return order;
  }
  return strong_ordering::equal;
}

/// Shortest text that reads back as the same number: fixed where that is no longer than scientific.
inline to_chars_result to_chars(char* first, char* last, double value) {
  const auto text = [&]() -> string {
    const string sign = __builtin_signbit(value) ? "-" : "";
    if (value != value) return sign + "nan";
    if (value - value != 0) return sign + "inf";
    if (value == 0) return sign + "0";
    const auto shortest = fmt::detail::dragonbox::to_decimal(__builtin_fabs(value));
    string digits = fmt::format("{}", shortest.significand);
    int exponent = shortest.exponent;
    while (digits.size() > 1 && digits.back() == '0') digits.pop_back(), ++exponent;
    const int point = static_cast<int>(digits.size()) + exponent;  // digits ahead of the point
    string fixed;
    if (exponent >= 0) {
      // As printf writes it: beyond 2^53 the digits of the number itself, not zeros.
      fixed = exponent == 0 ? digits : fmt::format("{:.0f}", __builtin_fabs(value));
    } else if (point > 0) {
      fixed = digits.substr(0, point) + "." + digits.substr(point);
    } else {
      fixed = "0." + string(static_cast<size_t>(-point), '0') + digits;
    }
    const string mantissa = digits.substr(0, 1) + (digits.size() > 1 ? "." + digits.substr(1) : "");
    const string scientific =
        fmt::format("{}e{}{:02}", mantissa, point > 0 ? '+' : '-', point > 0 ? point - 1 : 1 - point);
    return sign + (fixed.size() <= scientific.size() ? fixed : scientific);
  }();
  if (last - first < static_cast<ptrdiff_t>(text.size())) return {last, errc::value_too_large};
  memcpy(first, text.data(), text.size());
  return {first + text.size(), errc()};
}
inline to_chars_result to_chars(char* first, char* last, float value) {
  const string text = fmt::format("{}", value);
  if (last - first < static_cast<ptrdiff_t>(text.size())) return {last, errc::value_too_large};
  memcpy(first, text.data(), text.size());
  return {first + text.size(), errc()};
}

/// A decimal number as far as it goes: no sign of plus, no space before it.
inline from_chars_result from_chars(const char* first, const char* last, double& value) {
  const auto digits = [&](const char* at) {
    while (at != last && *at >= '0' && *at <= '9') ++at;
    return at;
  };
  const char* begin = first != last && *first == '-' ? first + 1 : first;
  const char* end = digits(begin);
  bool any = end != begin;
  if (end != last && *end == '.') {
    const char* fraction = digits(end + 1);
    any = any || fraction != end + 1;
    if (any) end = fraction;
  }
  if (!any) return {first, errc::invalid_argument};
  if (end != last && (*end == 'e' || *end == 'E')) {
    const char* sign = end + 1;
    if (sign != last && (*sign == '+' || *sign == '-')) ++sign;
    if (const char* exponent = digits(sign); exponent != sign) end = exponent;
  }
  errno = 0;
  const double read = strtod(string(first, end).c_str(), nullptr);
  if (errno == ERANGE) return {end, errc::result_out_of_range};
  value = read;
  return {end, errc()};
}

/// Algorithms over ranges, from the library that the standard took them over from.
namespace ranges {
using ::ranges::adjacent_find;
using ::ranges::all_of;
using ::ranges::any_of;
using ::ranges::binary_search;
using ::ranges::copy;
using ::ranges::copy_if;
using ::ranges::count;
using ::ranges::count_if;
using ::ranges::equal;
using ::ranges::fill;
using ::ranges::find;
using ::ranges::find_if;
using ::ranges::for_each;
using ::ranges::is_sorted;
using ::ranges::is_sorted_until;
using ::ranges::lower_bound;
using ::ranges::max;
using ::ranges::max_element;
using ::ranges::min;
using ::ranges::min_element;
using ::ranges::minmax;
using ::ranges::move;
using ::ranges::none_of;
using ::ranges::replace;
using ::ranges::reverse;
using ::ranges::sort;
using ::ranges::stable_sort;
using ::ranges::transform;
using ::ranges::upper_bound;

struct NextPermutation {
  struct Result {
    bool found;
  };
  template <range R>
  constexpr Result operator()(R&& range) const {
    return {::ranges::next_permutation(range)};
  }
};
inline constexpr NextPermutation next_permutation;

}  // namespace ranges
}  // namespace std
