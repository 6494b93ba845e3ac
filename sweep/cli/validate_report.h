// What `validate` says: tables for people, one JSON document for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "sweep/validate/bars.h"
#include "sweep/validate/evaluation.h"
#include "sweep/validate/hold_out.h"

namespace shardscape::cli {

struct ValidatedFile {
  std::string path;
  std::string title, source;  ///< of published figures; else empty
  validate::Evaluation evaluation;
  std::vector<validate::Bar> bars;
};

struct ValidateView {
  bool rows = false;      ///< every row, measured against predicted
  std::size_t worst = 5;  ///< rows shown per metric otherwise
  bool check = false;     ///< the bars, too
  std::optional<validate::HoldOut> hold_out;
  std::vector<std::string> by;  ///< parts of regimes to group errors by
};

std::vector<validate::BarResult> bar_results(const ValidatedFile& file);

void print_validation(std::ostream& out, std::span<const ValidatedFile> files, const ValidateView& view);
nlohmann::ordered_json validation_json(std::span<const ValidatedFile> files, const ValidateView& view);

}  // namespace shardscape::cli
