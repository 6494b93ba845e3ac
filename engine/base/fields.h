// Visits and hashes all fields of a plain struct, which are found by structured bindings, so that code which has to
// handle every field cannot forget a new one.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ranges>
#include <type_traits>
#include <utility>

#include "engine/base/hash.h"

namespace shardscape {

namespace detail {

/// Stands for a value of any type where fields are counted.
struct AnyField {
  template <class T>
  operator T() const;  // NOLINT(google-explicit-constructor): it has to convert
};

template <class T, std::size_t... I>
constexpr bool takes_fields(std::index_sequence<I...> /*fields*/) {
  return requires { T{((void)I, AnyField{})...}; };
}

inline constexpr std::size_t kMostFields = 9;

template <class T, std::size_t N = kMostFields + 1>
constexpr std::size_t count_fields() {
  if constexpr (N == 0 || takes_fields<T>(std::make_index_sequence<N>())) {
    return N;
  } else {
    return count_fields<T, N - 1>();
  }
}

}  // namespace detail

/// Calls visit(field) for each field of an aggregate without bases, in order.
template <class T, class Visit>
constexpr void for_each_field(T& of, const Visit& visit) {
  constexpr std::size_t kFields = detail::count_fields<std::remove_const_t<T>>();
  static_assert(kFields >= 1 && kFields <= detail::kMostFields, "extend the list below");
  const auto all = [&](auto&... fields) { (visit(fields), ...); };
  if constexpr (kFields == 1) {
    auto& [a] = of;
    all(a);
  } else if constexpr (kFields == 2) {
    auto& [a, b] = of;
    all(a, b);
  } else if constexpr (kFields == 3) {
    auto& [a, b, c] = of;
    all(a, b, c);
  } else if constexpr (kFields == 4) {
    auto& [a, b, c, d] = of;
    all(a, b, c, d);
  } else if constexpr (kFields == 5) {
    auto& [a, b, c, d, e] = of;
    all(a, b, c, d, e);
  } else if constexpr (kFields == 6) {
    auto& [a, b, c, d, e, f] = of;
    all(a, b, c, d, e, f);
  } else if constexpr (kFields == 7) {
    auto& [a, b, c, d, e, f, g] = of;
    all(a, b, c, d, e, f, g);
  } else if constexpr (kFields == 8) {
    auto& [a, b, c, d, e, f, g, h] = of;
    all(a, b, c, d, e, f, g, h);
  } else {
    auto& [a, b, c, d, e, f, g, h, i] = of;
    all(a, b, c, d, e, f, g, h, i);
  }
}

/// Continues a hash with a value: a number, an enum, a quantity, a range of values, or a struct with all of its fields.
/// Equal values have equal hashes, but for 0 and -0. Addresses are refused: another object may come to lie there.
template <class T>
std::uint64_t hash_fields(std::uint64_t hash, const T& value) {
  static_assert(!std::is_pointer_v<T>, "an address is no key");
  if constexpr (std::is_enum_v<T> || std::is_integral_v<T>) {
    return hash_word(hash, static_cast<std::uint64_t>(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    return hash_word(hash, std::bit_cast<std::uint64_t>(value));
  } else if constexpr (requires {
                         { value.value() } -> std::same_as<double>;
                       }) {
    return hash_word(hash, std::bit_cast<std::uint64_t>(value.value()));
  } else if constexpr (std::has_unique_object_representations_v<T>) {  // its bytes are those of its fields
    constexpr std::size_t kWord = sizeof(std::uint64_t), kWords = (sizeof(T) + kWord - 1) / kWord;
    std::array<std::uint64_t, kWords> words{};
    std::memcpy(words.data(), &value, sizeof(T));
    // The products do not depend on each other, unlike those of hash_word(), so that a processor overlaps them.
    std::uint64_t sum = 0, odd = kGoldenHash;
    for (const std::uint64_t word : words) sum += word * (odd += 2 * kGoldenHash);
    return hash_word(hash, sum);
  } else if constexpr (std::ranges::range<T>) {
    hash = hash_word(hash, static_cast<std::uint64_t>(std::ranges::size(value)));
    for (const auto& element : value) hash = hash_fields(hash, element);
    return hash;
  } else {
    for_each_field(value, [&](const auto& field) { hash = hash_fields(hash, field); });
    return hash;
  }
}

/// Hashes keys of tables by all of their fields.
struct FieldsHash {
  template <class Key>
  std::size_t operator()(const Key& key) const {
    return hash_fields(0, key);
  }
};

}  // namespace shardscape
