// Typed access to a JSON document that notes what is wrong with it, and where.
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

  /// The value is an object with no keys but these.
  [[nodiscard]] bool object(const std::vector<std::string_view>& keys) const;
  /// The value is an object.
  [[nodiscard]] bool object_at_all() const;
  [[nodiscard]] bool has(std::string_view key) const { return value_->contains(key); }
  /// The member; a problem where it is missing.
  [[nodiscard]] std::optional<JsonReader> member(std::string_view key) const;
  /// The member, where it is there.
  [[nodiscard]] std::optional<JsonReader> optional_member(std::string_view key) const;

  /// The elements of an array.
  [[nodiscard]] std::optional<std::vector<JsonReader>> elements() const;

  [[nodiscard]] std::optional<std::string> string() const;
  [[nodiscard]] std::optional<bool> boolean() const;
  [[nodiscard]] std::optional<double> number() const;
  [[nodiscard]] std::optional<double> within(const Range& range) const;
  /// A whole number of 32 bits.
  [[nodiscard]] std::optional<std::int32_t> integer() const;
  /// An array of them.
  [[nodiscard]] std::optional<std::vector<std::int32_t>> integers() const;

 private:
  [[nodiscard]] std::string shown() const;

  const nlohmann::json* value_;
  std::string path_;
  Problems* problems_;
};

/// Lower case, without '_' and '-': the names of kinds, operations and algorithms are compared like that.
std::string plain_name(std::string_view name);

}  // namespace shardscape::network_case
