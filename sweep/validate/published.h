// Published measurements that the project carries: a citation, tolerances, and rows in the columns of a measurement
// table.
// measurement table.
//
//   title: Megatron-LM on DGX A100
//   source: Korthikanti et al. 2022, arXiv:2205.05198, Table 5
//   tolerances: {step_time.mape: 4 %, step_time.max: 9 %}      # of the predictions, see evaluation.h
//   common: {phase: training, cluster: dgx-a100, ...}          # cells that all rows share
//   rows:
//     - {id: gpt-22b-full, model: gpt-22b, ...}
#pragma once

#include <filesystem>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "sweep/validate/evaluation.h"
#include "sweep/validate/measured_table.h"
#include "sweep/yaml/diagnostics.h"

namespace shardscape::validate {

struct PublishedSet {
  std::string title;
  std::string source;
  std::vector<Bar> bars;
  Table table;  ///< has every column of the kind; its rows have their lines in the file
};

/// Loads a set. Every problem of the file is reported with its place, also keys of rows that are not columns.
tl::expected<PublishedSet, yaml::Diagnostics> load_published(const std::filesystem::path& file);

/// The files (*.yaml) of the sets in a folder, by name.
std::vector<std::filesystem::path> list_published(const std::filesystem::path& folder);

}  // namespace shardscape::validate
