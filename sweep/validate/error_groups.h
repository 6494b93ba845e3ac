// Errors of rows, grouped by parts of their regime.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

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

}  // namespace shardscape::validate
