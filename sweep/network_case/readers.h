// The functions that read the parts of a network case, and the typed access to a JSON document that they have.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/problems.h"
#include "engine/base/range.h"
#include "engine/base/suggest.h"
#include "engine/network/collectives/patterns.h"
#include "engine/network/fabric/fabric.h"
#include "engine/spec/fault.h"
#include "sweep/network_case/network_case.h"

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

/// Reads the `topology` of a case; empty where it has problems.
std::optional<FabricSpec> read_topology(const JsonReader& topology, const CaseLimits& limits,
                                        Problems& problems);

/// Reads the `faults` of a case.
FaultSet read_faults(const JsonReader& faults, const network::Fabric& fabric);

/// Reads one of the `patterns`, an object; empty where its operation is unknown. Malformed lists of ranks become empty
/// lists, and malformed sends become impossible ones, so that places keep their indices. Does not check that the
/// pattern can run.
std::optional<network::Pattern> read_pattern(const JsonReader& pattern);

/// Looks up the value that the text names in a table; `what` says in the message what is named.
template <class Table>
auto read_name(const JsonReader& reader, const Table& table, const std::string& what)
    -> std::optional<decltype(table[0].second)> {
  const auto text = reader.string();
  if (!text) return std::nullopt;
  std::vector<std::string_view> names;
  for (const auto& [name, value] : table) {
    if (name == plain_name(*text)) return value;
    names.push_back(name);
  }
  reader.fail(fmt::format("unknown {} '{}'{}; {}s: {}", what, *text, did_you_mean(plain_name(*text), names),
                          what, join_names(names)));
  return std::nullopt;
}

}  // namespace shardscape::network_case
