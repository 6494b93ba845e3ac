#include "sweep/network_case/json_document.h"

#include <algorithm>
#include <set>
#include <vector>

namespace shardscape::network_case {

namespace {

using nlohmann::json;

/// The parser's error, as the library words it but without its prefix and position.
std::string failure_of(const json::exception& error) {
  std::string text = error.what();
  if (text.starts_with("[json.exception")) text = text.substr(text.find("] ") + 2);
  if (text.starts_with("parse error at ")) {
    const std::size_t colon = text.find(": ");
    if (colon != std::string::npos) text = text.substr(colon + 2);
  }
  return text;
}

/// A key that an object has twice.
struct Duplicate {
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
  const auto note = [&](int /*depth*/, json::parse_event_t event, const json& parsed) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second)
      throw Duplicate{parsed.get<std::string>()};
    return true;
  };
  std::string failure;
  try {
    return json::parse(begin, end, note);
  } catch (const Duplicate& found) {
    failure = "the object has the key '" + found.key + "' twice";
  } catch (const json::exception& error) {
    failure = failure_of(error);
  }
  const TextPlace place = place_of(text, std::max<std::size_t>(1, std::min(text.size(), read)) - 1);
  return tl::unexpected(SyntaxError{place, failure});
}

}  // namespace shardscape::network_case
