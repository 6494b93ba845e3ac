// Errors of rows, grouped by parts of their regime, and as residuals, from which errors of similar predictions are
// estimated.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "sweep/evidence/summarise.h"
#include "sweep/validate/evaluation.h"

namespace shardscape::validate {

struct ErrorGroup {
  std::vector<std::string> key;  ///< one part of the regime for each name in the request
  std::string metric;            ///< Metric::key
  ErrorStatistics errors;        ///< of at least one row
};

/// Reads "device,precision": distinct names of regime_keys(). The error lists the known names.
tl::expected<std::vector<std::string>, std::string> parse_regime_keys(std::string_view text);

/// Errors of every metric by parts of the regime, in the order of the metrics, then of the keys.
std::vector<ErrorGroup> error_groups(const Evaluation& evaluation, const std::vector<std::string>& keys);

/// One residual for each row that was measured and predicted: of the step, of a token (ITL), or, if neither was
/// measured, of the whole request. Tables that are not of plans give none, as kernels are no whole steps.
std::vector<evidence::Residual> residuals(const Evaluation& evaluation);

}  // namespace shardscape::validate
