// Gives typed access to a JSON document, and notes what is wrong with it and where.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/problems.h"
#include "engine/base/range.h"

namespace shardscape::network_case {

/// A value and its path ("patterns[0].groups[2]"). Every failed access adds one problem. Refers to the
/// document and the problems, which must outlive it.
class JsonReader {
 public:
  JsonReader(const nlohmann::json& value, std::string path, Problems& problems)
      : value_(&value), path_(std::move(path)), problems_(&problems) {}

  [[nodiscard]] const std::string& path() const { return path_; }
  void fail(const std::string& message) const;

  /// Whether the value is an object without keys other than these; a problem where it is not.
  [[nodiscard]] bool object(const std::vector<std::string_view>& keys) const;
  /// Whether the value is an object, with any keys; a problem where it is not.
  [[nodiscard]] bool object_at_all() const;
  [[nodiscard]] bool has(std::string_view key) const { return value_->contains(key); }
  /// Returns the member of an object; a problem where it is missing.
  [[nodiscard]] std::optional<JsonReader> member(std::string_view key) const;
  /// Returns the member of an object; empty, without a problem, where it is missing.
  [[nodiscard]] std::optional<JsonReader> optional_member(std::string_view key) const;

  /// Returns the elements of an array; a problem where the value is none.
  [[nodiscard]] std::optional<std::vector<JsonReader>> elements() const;

  [[nodiscard]] std::optional<std::string> string() const;
  [[nodiscard]] std::optional<bool> boolean() const;
  [[nodiscard]] std::optional<double> number() const;
  [[nodiscard]] std::optional<double> within(const Range& range) const;
  /// Returns a whole number of 32 bits; a problem where the value is none.
  [[nodiscard]] std::optional<std::int32_t> integer() const;
  /// Returns an array of whole numbers of 32 bits; a problem where the value is none.
  [[nodiscard]] std::optional<std::vector<std::int32_t>> integers() const;

 private:
  [[nodiscard]] std::string shown() const;

  const nlohmann::json* value_;
  std::string path_;
  Problems* problems_;
};

/// Lower-cases a name and drops '_' and '-': names of kinds, operations and algorithms are compared in this form.
std::string plain_name(std::string_view name);

}  // namespace shardscape::network_case
