// The rows of a table of numbers as the READMEs of presets print them.
#pragma once

#include <fmt/format.h>

#include <string>
#include <type_traits>

#include "engine/spec/number_row.h"
#include "sweep/yaml/value.h"

namespace shardscape::test {

/// "| `path` | what holds where a file leaves it out | range | meaning |".
template <class Spec>
std::string readme_line(const NumberRow<Spec>& row) {
  const std::string left_out = row.visit(Spec{}, [&](const auto& value) -> std::string {
    if constexpr (requires { value.has_value(); }) {
      return "none";
    } else {
      if (row.fallback != nullptr && row.fallback(Spec{})) return "follows";
      return row.use == KeyUse::required ? "required" : yaml::make_scalar(value).text;
    }
  });
  return fmt::format("| `{}` | {} | {} | {} |\n", row.path, left_out, row.range.text(), row.meaning);
}

}  // namespace shardscape::test
