// Gives typed access to a JSON document, and notes what is wrong with it and where.
#include "sweep/network_case/readers.h"

#include <cmath>
#include <limits>

#include "engine/base/safe_text.h"
#include "engine/base/words.h"

namespace shardscape::network_case {

void JsonReader::fail(const std::string& message) const { problems_->add(path_, message); }

/// The value as it stands in the file, cut where it is long, for messages.
std::string JsonReader::shown() const {
  constexpr std::size_t kLongest = 40;
  if (value_->is_object()) return "an object";
  if (value_->is_array()) return "a list";
  std::string text = json_text(*value_);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

bool JsonReader::object_at_all() const {
  if (value_->is_object()) return true;
  fail("must be an object, not " + shown());
  return false;
}

bool JsonReader::object(const std::vector<std::string_view>& keys) const {
  if (!object_at_all()) return false;
  bool known = true;
  for (const auto& [key, member] : value_->items()) {
    if (std::ranges::find(keys, key) != keys.end()) continue;
    known = false;
    problems_->add(key_path(path_, key),
                   "unknown key" + did_you_mean(key, keys) + "; keys here: " + join_names(keys));
  }
  return known;
}

std::optional<JsonReader> JsonReader::optional_member(std::string_view key) const {
  if (!value_->is_object()) return std::nullopt;
  const auto found = value_->find(key);
  if (found == value_->end()) return std::nullopt;
  return JsonReader(*found, key_path(path_, key), *problems_);
}

std::optional<JsonReader> JsonReader::member(std::string_view key) const {
  std::optional<JsonReader> found = optional_member(key);
  if (!found && value_->is_object()) {
    problems_->add(key_path(path_, key), "is missing");
  }
  return found;
}

std::optional<std::vector<JsonReader>> JsonReader::elements() const {
  if (!value_->is_array()) {
    fail("must be a list, not " + shown());
    return std::nullopt;
  }
  std::vector<JsonReader> list;
  list.reserve(value_->size());
  for (std::size_t i = 0; i < value_->size(); ++i) {
    list.emplace_back((*value_)[i], fmt::format("{}[{}]", path_, i), *problems_);
  }
  return list;
}

std::optional<std::string> JsonReader::string() const {
  if (value_->is_string()) return value_->get<std::string>();
  fail("must be a text, not " + shown());
  return std::nullopt;
}

std::optional<bool> JsonReader::boolean() const {
  if (value_->is_boolean()) return value_->get<bool>();
  fail("must be true or false, not " + shown());
  return std::nullopt;
}

std::optional<double> JsonReader::number() const {
  if (value_->is_number()) {
    const double number = value_->get<double>();
    if (std::isfinite(number)) return number;
  }
  fail("must be a number, not " + shown());
  return std::nullopt;
}

std::optional<double> JsonReader::within(const Range& range) const {
  const std::optional<double> value = number();
  if (!value || range.holds(*value)) return value;
  fail("must be " + range.text() + ", not " + shown());
  return std::nullopt;
}

std::optional<std::int32_t> JsonReader::integer() const {
  const std::optional<double> value = number();
  if (!value) return std::nullopt;
  if (*value >= std::numeric_limits<std::int32_t>::min() &&
      *value <= std::numeric_limits<std::int32_t>::max() && std::floor(*value) == *value) {
    return static_cast<std::int32_t>(*value);
  }
  fail("must be a whole number of at most 32 bits, not " + shown());
  return std::nullopt;
}

std::optional<std::vector<std::int32_t>> JsonReader::integers() const {
  const auto list = elements();
  if (!list) return std::nullopt;
  std::vector<std::int32_t> values;
  values.reserve(list->size());
  bool sound = true;
  for (const JsonReader& element : *list) {
    if (const auto value = element.integer()) {
      values.push_back(*value);
    } else {
      sound = false;
    }
  }
  if (!sound) return std::nullopt;
  return values;
}

std::string plain_name(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c == '_' || c == '-') continue;
    plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return plain;
}

}  // namespace shardscape::network_case
