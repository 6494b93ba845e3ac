// Parses JSON text into a document, or says what is wrong with it and at which line and column.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "engine/base/words.h"

namespace shardscape::network_case {

/// The first error in a text that is no valid JSON, such as a number that no double can hold or a key that an object
/// has twice.
struct SyntaxError : TextPlace {
  std::string message;
};

/// Parses the text; the first error ends it. In the result, objects have no duplicate keys and numbers are finite.
tl::expected<nlohmann::json, SyntaxError> parse_json(std::string_view text);

}  // namespace shardscape::network_case
