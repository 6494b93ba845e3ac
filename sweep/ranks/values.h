// Values as bytes in the texts that ranks exchange: they can be copied as they are, as all ranks run the same program.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace shardscape::ranks {

template <class T>
void append_value(const T& value, std::string& text) {
  static_assert(std::is_trivially_copyable_v<T>);
  text.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

/// Takes a value from the front of a text.
template <class T>
void take_value(T& value, std::string_view& text) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(&value, text.data(), sizeof(T));
  text.remove_prefix(sizeof(T));
}

template <class T>
void append_value(const std::vector<T>& values, std::string& text) {
  append_value(std::uint64_t{values.size()}, text);
  for (const T& value : values) append_value(value, text);
}

template <class T>
void take_value(std::vector<T>& values, std::string_view& text) {
  std::uint64_t size = 0;
  take_value(size, text);
  values.resize(size);
  for (T& value : values) take_value(value, text);
}

}  // namespace shardscape::ranks
