#include "sweep/network_case/json_document.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace shardscape::network_case {

namespace {

using nlohmann::json;

/// Builds the document from the inside out, from the values that the parser reports. The library's own builder with a
/// callback, which could find keys that are there twice, searches the list around each object when it ends: a list of
/// n objects takes n^2 steps.
class DocumentBuilder : public nlohmann::json_sax<json> {
 public:
  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t& /*value*/) override { return false; }  // never called: text holds no binary values
  bool start_object(std::size_t /*size*/) override { return start(json::object()); }
  bool start_array(std::size_t /*size*/) override { return start(json::array()); }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }
  bool key(string_t& name) override {
    if (open_.back().value.contains(name)) {
      failure_ = "the object has the key '" + name + "' twice";
      return false;
    }
    open_.back().key = std::move(name);
    return true;
  }
  bool parse_error(std::size_t /*position*/, const std::string& /*last_token*/,
                   const nlohmann::detail::exception& error) override {
    failure_ = error.what();
    return false;
  }

  /// The parser's error, as the library words it but without its prefix and position.
  [[nodiscard]] std::string failure() const {
    std::string text = failure_;
    if (text.starts_with("[json.exception")) text = text.substr(text.find("] ") + 2);
    if (text.starts_with("parse error at ")) {
      const std::size_t colon = text.find(": ");
      if (colon != std::string::npos) text = text.substr(colon + 2);
    }
    return text;
  }
  [[nodiscard]] json take() { return std::move(root_); }

 private:
  struct Open {
    json value;
    std::string key;  ///< key of the value that is read next, where this is an object
  };

  bool start(json value) {
    open_.push_back({std::move(value), {}});
    return true;
  }
  bool end() {
    json value = std::move(open_.back().value);
    open_.pop_back();
    return put(std::move(value));
  }
  template <class T>
  bool put(T&& value) {
    if (open_.empty()) {
      root_ = std::forward<T>(value);
    } else if (open_.back().value.is_array()) {
      open_.back().value.push_back(std::forward<T>(value));
    } else {
      open_.back().value[open_.back().key] = std::forward<T>(value);
    }
    return true;
  }

  json root_;
  std::vector<Open> open_;
  std::string failure_;
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
  DocumentBuilder builder;
  std::size_t read = 0;
  const CountingIterator begin(text.data(), &read), end(text.data() + text.size(), &read);
  if (json::sax_parse(begin, end, &builder)) return builder.take();
  const TextPlace place = place_of(text, std::max<std::size_t>(1, std::min(text.size(), read)) - 1);
  return tl::unexpected(SyntaxError{place, builder.failure()});
}

}  // namespace shardscape::network_case
