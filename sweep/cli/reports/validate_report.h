// Output of `validate`: tables for people, a JSON document for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "sweep/evidence/evidence_table.h"
#include "sweep/validate/evaluation.h"

namespace shardscape::cli {

/// How the measured plans of a table keep what evidence promises of their predictions: the error of one sigma that
/// `simulate` would say beside each.
struct KeptPromises {
  std::size_t rows = 0;                ///< that evidence promises something of
  std::size_t within = 0, beyond = 0;  ///< rows within their expected error, and beyond twice of it
  std::size_t slower = 0, faster = 0;  ///< of those not within: measured slower, faster than predicted
};
KeptPromises kept_promises(const validate::Evaluation& evaluation, const evidence::Table& evidence);

struct ValidatedFile {
  std::string path;
  std::string title, source;  ///< of published figures; otherwise empty
  validate::Evaluation evaluation;
  std::vector<validate::Bar> bars;
  KeptPromises promises = {};
};

struct ValidateView {
  bool rows = false;      ///< print every row, with measured and predicted values
  std::size_t worst = 5;  ///< otherwise the number of worst rows printed per metric
  bool check = false;     ///< print the bars, too
  std::optional<validate::HoldOut> hold_out;
  std::vector<std::vector<std::string>> by;  ///< each: parts of the regime by which errors are grouped
};

/// The statistics by section and name. `undefined`: those without a value are there, too, as null.
enum class Undefined : std::uint8_t { as_null, left_out };
nlohmann::ordered_json statistics_json(const validate::Evaluation& evaluation, Undefined undefined);
/// Number, mean, median, p90, maximum and bias, as tables of errors show them.
std::vector<std::string> error_texts(const validate::ErrorStatistics& errors);

std::vector<validate::BarResult> bar_results(const ValidatedFile& file);

void print_validation(std::ostream& out, std::span<const ValidatedFile> files, const ValidateView& view);
nlohmann::ordered_json validation_json(std::span<const ValidatedFile> files, const ValidateView& view);

}  // namespace shardscape::cli
