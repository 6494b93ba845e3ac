#include "sweep/network_case/json_document.h"

#include <algorithm>
#include <boost/iterator/transform_iterator.hpp>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

namespace shardscape::network_case {

namespace {

using nlohmann::json;

/// An object has a key twice.
struct DuplicateKey : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The parser's error, as the library words it but without its prefix and position.
std::string plain_message(std::string text) {
  if (text.starts_with("[json.exception")) text = text.substr(text.find("] ") + 2);
  if (text.starts_with("parse error at ")) {
    const std::size_t colon = text.find(": ");
    if (colon != std::string::npos) text = text.substr(colon + 2);
  }
  return text;
}

}  // namespace

tl::expected<json, SyntaxError> parse_json(std::string_view text) {
  std::size_t read = 0;  // bytes: the parser does not say where it met a key or a number that is too large
  const auto counted = [&](const char* at) {
    return boost::make_transform_iterator(at, [&](char c) {
      ++read;
      return c;
    });
  };
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto refuse_twice = [&](int /*depth*/, json::parse_event_t event, const json& parsed) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(parsed).second)
      throw DuplicateKey("the object has the key '" + parsed.get<std::string>() + "' twice");
    return true;
  };
  std::string message;
  try {
    return json::parse(counted(text.data()), counted(text.data() + text.size()), refuse_twice);
  } catch (const json::exception& error) {
    message = plain_message(error.what());
  } catch (const DuplicateKey& twice) {
    message = twice.what();
  }
  const TextPlace place = place_of(text, std::max<std::size_t>(1, std::min(text.size(), read)) - 1);
  return tl::unexpected(SyntaxError{place, std::move(message)});
}

}  // namespace shardscape::network_case
