// Tables of the reference measurements with their predictions, each evaluated once in a process: some take a
// dozen seconds.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "sweep/validate/evaluation.h"
#include "tests/support/paths.h"

namespace shardscape::test {

/// The table of that name, which is there, with the presets that come with the program.
inline const validate::Evaluation& evaluated(const std::string& table) {
  static std::map<std::string, validate::Evaluation> known;
  static validate::Presets presets(yaml::Catalog({source_dir()}));
  const auto [place, added] = known.try_emplace(table);
  if (added) {
    const std::filesystem::path file =
        std::filesystem::path(reference_dir()) / "measurements" / (table + ".csv");
    place->second = validate::evaluate(validate::parse_csv(validate::read_table(file).value(), file.string()),
                                       presets, {});
  }
  return place->second;
}

}  // namespace shardscape::test
