#include "sweep/network_case/json_document.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace shardscape::network_case {

namespace {

using nlohmann::json;

/// The parser's error, as the library words it but without its prefix and position.
std::string plain_message(std::string text) {
  if (text.starts_with("[json.exception")) text = text.substr(text.find("] ") + 2);
  const std::size_t colon = text.starts_with("parse error at ") ? text.find(": ") : std::string::npos;
  return colon == std::string::npos ? text : text.substr(colon + 2);
}

/// Ends the parser where an object has a key twice, of which the library would keep the last.
struct DuplicateKey {
  std::string key;
};

/// Iterates over the text and counts bytes: the parser does not say where it met a duplicate key.
class CountingIterator {
 public:
  using difference_type = std::ptrdiff_t;
  using value_type = char;
  using pointer = const char*;
  using reference = const char&;
  using iterator_category = std::input_iterator_tag;

  CountingIterator(const char* at, std::size_t* count) : at_(at), count_(count) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*count_;
    return *this;
  }
  CountingIterator operator++(int) {
    const CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  std::size_t* count_;
};

}  // namespace

tl::expected<json, SyntaxError> parse_json(std::string_view text) {
  std::size_t read = 0;
  const CountingIterator begin(text.data(), &read), end(text.data() + text.size(), &read);
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto look = [&](int /*depth*/, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second)
      throw DuplicateKey{value.get<std::string>()};
    return true;
  };
  SyntaxError error;
  try {
    return json::parse(begin, end, look);
  } catch (const json::exception& failure) {
    error.message = plain_message(failure.what());
  } catch (const DuplicateKey& twice) {
    error.message = "the object has the key '" + twice.key + "' twice";
  }
  const std::size_t stop = std::min(text.size(), read);
  const std::string_view before = text.substr(0, stop == 0 ? 0 : stop - 1);
  error.line = 1 + static_cast<std::size_t>(std::ranges::count(before, '\n'));
  const std::size_t line_start = before.rfind('\n');
  error.column = before.size() - (line_start == std::string_view::npos ? 0 : line_start + 1) + 1;
  return tl::unexpected(std::move(error));
}

}  // namespace shardscape::network_case
