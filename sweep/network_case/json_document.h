// JSON text -> document, with the place of what is wrong in it.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace shardscape::network_case {

/// A violation of the syntax (or a number that no double can hold, or a key that an object has twice).
struct SyntaxError {
  std::size_t line = 1;
  std::size_t column = 1;  ///< in bytes
  std::string message;
};

/// Objects have no duplicate keys, numbers are finite. The first error ends the parse.
tl::expected<nlohmann::json, SyntaxError> parse_json(std::string_view text);

}  // namespace shardscape::network_case
