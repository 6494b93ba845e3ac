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
#include <functional>
#include <iterator>
#include <memory>
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

namespace ranges {
namespace shardscape_lacking {

template <class R>
constexpr auto last_of(R& range) {
  return std::ranges::next(std::ranges::begin(range), std::ranges::end(range));
}

// Each takes a range; those that the sources call so, an iterator and an end, too. Projections come last.

struct FindIf {
  template <std::ranges::range R, class F, class P = identity>
  constexpr auto operator()(R&& range, F test, P project = {}) const {
    auto at = std::ranges::begin(range);
    const auto end = std::ranges::end(range);
    while (at != end && !std::invoke(test, std::invoke(project, *at))) ++at;
    return at;
  }
};
inline constexpr FindIf find_if_;
struct Find {
  template <std::ranges::range R, class T, class P = identity>
  constexpr auto operator()(R&& range, const T& value, P project = {}) const {
    return find_if_(
        range, [&](const auto& other) { return other == value; }, project);
  }
  template <std::input_iterator I, std::sentinel_for<I> S, class T, class P = identity>
  constexpr auto operator()(I first, S last, const T& value, P project = {}) const {
    return (*this)(std::ranges::subrange<I, S>(first, last), value, project);
  }
};
struct AnyOf {
  template <std::ranges::range R, class F, class P = identity>
  constexpr bool operator()(R&& range, F test, P project = {}) const {
    return find_if_(range, test, project) != std::ranges::end(range);
  }
};
struct NoneOf {
  template <std::ranges::range R, class F, class P = identity>
  constexpr bool operator()(R&& range, F test, P project = {}) const {
    return find_if_(range, test, project) == std::ranges::end(range);
  }
};
struct AllOf {
  template <std::ranges::range R, class F, class P = identity>
  constexpr bool operator()(R&& range, F test, P project = {}) const {
    return find_if_(
               range, [&](auto&& value) { return !std::invoke(test, value); }, project) ==
           std::ranges::end(range);
  }
};
struct CountIf {
  template <std::ranges::range R, class F, class P = identity>
  constexpr std::ptrdiff_t operator()(R&& range, F test, P project = {}) const {
    std::ptrdiff_t count = 0;
    for (auto&& value : range) count += std::invoke(test, std::invoke(project, value)) ? 1 : 0;
    return count;
  }
};
struct Count {
  template <std::ranges::range R, class T, class P = identity>
  constexpr std::ptrdiff_t operator()(R&& range, const T& value, P project = {}) const {
    return CountIf()(
        range, [&](const auto& other) { return other == value; }, project);
  }
};
/// Order by a comparison of projections.
template <class C, class P>
constexpr auto by(C& compare, P& project) {
  return [&](auto&& a, auto&& b) {
    return std::invoke(compare, std::invoke(project, a), std::invoke(project, b));
  };
}
#define SHARDSCAPE_ORDERED(TYPE, CALL, RESULT)                                             \
  struct TYPE {                                                                            \
    template <std::ranges::range R, class C = std::ranges::less, class P = identity>       \
    constexpr auto operator()(R&& range, C compare = {}, P project = {}) const {           \
      return RESULT CALL(std::ranges::begin(range), last_of(range), by(compare, project)); \
    }                                                                                      \
    template <std::input_iterator I, std::sentinel_for<I> S, class C = std::ranges::less,  \
              class P = identity>                                                          \
    constexpr auto operator()(I first, S last, C compare = {}, P project = {}) const {     \
      return RESULT CALL(first, std::ranges::next(first, last), by(compare, project));     \
    }                                                                                      \
  };
SHARDSCAPE_ORDERED(Sort, std::sort, (void))
SHARDSCAPE_ORDERED(StableSort, std::stable_sort, (void))
SHARDSCAPE_ORDERED(MaxElement, std::max_element, )
SHARDSCAPE_ORDERED(MinElement, std::min_element, )
SHARDSCAPE_ORDERED(IsSorted, std::is_sorted, )
SHARDSCAPE_ORDERED(IsSortedUntil, std::is_sorted_until, )
struct NextPermutation {
  struct Result {
    bool found;
  };
  template <std::ranges::range R>
  constexpr Result operator()(R&& range) const {
    return {std::next_permutation(std::ranges::begin(range), last_of(range))};
  }
};
struct AdjacentFind {
  template <std::ranges::range R, class C = std::ranges::equal_to, class P = identity>
  constexpr auto operator()(R&& range, C compare = {}, P project = {}) const {
    return std::adjacent_find(std::ranges::begin(range), last_of(range), by(compare, project));
  }
};
template <class T>
struct MinMaxResult {
  T min, max;
};
struct Max {
  template <class T, class C = std::ranges::less>
  requires std::predicate<C&, const T&, const T&>
  constexpr const T& operator()(const T& a, const T& b, C compare = {}) const {
    return std::max(a, b, compare);
  }
  template <class T>
  constexpr T operator()(std::initializer_list<T> list) const {
    return std::max(list);
  }
  template <std::ranges::range R, class C = std::ranges::less, class P = identity>
  constexpr auto operator()(R&& range, C compare = {}, P project = {}) const {
    return *MaxElement()(range, compare, project);
  }
};
struct Min {
  template <class T, class C = std::ranges::less>
  requires std::predicate<C&, const T&, const T&>
  constexpr const T& operator()(const T& a, const T& b, C compare = {}) const {
    return std::min(a, b, compare);
  }
  template <class T>
  constexpr T operator()(std::initializer_list<T> list) const {
    return std::min(list);
  }
  template <std::ranges::range R, class C = std::ranges::less, class P = identity>
  constexpr auto operator()(R&& range, C compare = {}, P project = {}) const {
    return *MinElement()(range, compare, project);
  }
};
struct MinMax {
  template <std::ranges::range R, class C = std::ranges::less, class P = identity>
  constexpr auto operator()(R&& range, C compare = {}, P project = {}) const {
    using T = std::ranges::range_value_t<R>;
    return MinMaxResult<T>{*MinElement()(range, compare, project), *MaxElement()(range, compare, project)};
  }
};
struct LowerBound {
  template <std::ranges::range R, class T, class C = std::ranges::less, class P = identity>
  constexpr auto operator()(R&& range, const T& value, C compare = {}, P project = {}) const {
    return std::lower_bound(std::ranges::begin(range), last_of(range), value,
                            [&](auto&& element, const T& wanted) {
                              return std::invoke(compare, std::invoke(project, element), wanted);
                            });
  }
};
struct UpperBound {
  template <std::ranges::range R, class T, class C = std::ranges::less, class P = identity>
  constexpr auto operator()(R&& range, const T& value, C compare = {}, P project = {}) const {
    return std::upper_bound(std::ranges::begin(range), last_of(range), value,
                            [&](const T& wanted, auto&& element) {
                              return std::invoke(compare, wanted, std::invoke(project, element));
                            });
  }
};
struct BinarySearch {
  template <std::ranges::range R, class T, class C = std::ranges::less, class P = identity>
  constexpr bool operator()(R&& range, const T& value, C compare = {}, P project = {}) const {
    const auto at = LowerBound()(range, value, compare, project);
    return at != std::ranges::end(range) && !std::invoke(compare, value, std::invoke(project, *at));
  }
};
struct Replace {
  template <std::ranges::range R, class T, class N>
  constexpr void operator()(R&& range, const T& old, const N& next) const {
    for (auto& value : range)
      if (value == old) value = next;
  }
};
struct Fill {
  template <std::ranges::range R, class T>
  constexpr void operator()(R&& range, const T& value) const {
    for (auto& element : range) element = value;
  }
};
struct Reverse {
  template <std::ranges::range R>
  constexpr void operator()(R&& range) const {
    std::reverse(std::ranges::begin(range), last_of(range));
  }
};
struct CopyIf {
  template <std::ranges::range R, class O, class F>
  constexpr void operator()(R&& range, O out, F test) const {
    for (auto&& value : range)
      if (std::invoke(test, value)) *out++ = value;
  }
};
struct Copy {
  template <std::ranges::range R, class O>
  constexpr void operator()(R&& range, O out) const {
    for (auto&& value : range) *out++ = value;
  }
};
struct Move {
  template <std::ranges::range R, class O>
  constexpr void operator()(R&& range, O out) const {
    for (auto&& value : range) *out++ = std::move(value);
  }
};
struct Transform {
  template <std::ranges::range R, class O, class F>
  constexpr void operator()(R&& range, O out, F change) const {
    for (auto&& value : range) *out++ = std::invoke(change, value);
  }
};
struct ForEach {
  template <std::ranges::range R, class F>
  constexpr void operator()(R&& range, F act) const {
    for (auto&& value : range) std::invoke(act, value);
  }
};
struct Equal {
  template <std::ranges::range R, std::ranges::range S, class C = std::ranges::equal_to, class P = identity,
            class Q = identity>
  constexpr bool operator()(R&& a, S&& b, C compare = {}, P project = {}, Q other = {}) const {
    return std::equal(std::ranges::begin(a), last_of(a), std::ranges::begin(b), last_of(b),
                      [&](auto&& x, auto&& y) {
                        return std::invoke(compare, std::invoke(project, x), std::invoke(other, y));
                      });
  }
};
#undef SHARDSCAPE_ORDERED

}  // namespace shardscape_lacking

inline constexpr shardscape_lacking::FindIf find_if;
inline constexpr shardscape_lacking::Find find;
inline constexpr shardscape_lacking::AnyOf any_of;
inline constexpr shardscape_lacking::NoneOf none_of;
inline constexpr shardscape_lacking::AllOf all_of;
inline constexpr shardscape_lacking::CountIf count_if;
inline constexpr shardscape_lacking::Count count;
inline constexpr shardscape_lacking::Sort sort;
inline constexpr shardscape_lacking::StableSort stable_sort;
inline constexpr shardscape_lacking::MaxElement max_element;
inline constexpr shardscape_lacking::MinElement min_element;
inline constexpr shardscape_lacking::IsSorted is_sorted;
inline constexpr shardscape_lacking::IsSortedUntil is_sorted_until;
inline constexpr shardscape_lacking::NextPermutation next_permutation;
inline constexpr shardscape_lacking::AdjacentFind adjacent_find;
inline constexpr shardscape_lacking::Max max;
inline constexpr shardscape_lacking::Min min;
inline constexpr shardscape_lacking::MinMax minmax;
inline constexpr shardscape_lacking::LowerBound lower_bound;
inline constexpr shardscape_lacking::UpperBound upper_bound;
inline constexpr shardscape_lacking::BinarySearch binary_search;
inline constexpr shardscape_lacking::Replace replace;
inline constexpr shardscape_lacking::Fill fill;
inline constexpr shardscape_lacking::Reverse reverse;
inline constexpr shardscape_lacking::CopyIf copy_if;
inline constexpr shardscape_lacking::Copy copy;
inline constexpr shardscape_lacking::Move move;
inline constexpr shardscape_lacking::Transform transform;
inline constexpr shardscape_lacking::ForEach for_each;
inline constexpr shardscape_lacking::Equal equal;

}  // namespace ranges
}  // namespace std
