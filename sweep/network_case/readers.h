// The functions that read the parts of a network case.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/suggest.h"
#include "engine/network/collectives/patterns.h"
#include "engine/network/fabric/fabric.h"
#include "engine/spec/fault.h"
#include "sweep/network_case/json_reader.h"
#include "sweep/network_case/network_case.h"

namespace shardscape::network_case {

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
