// Errors of rows that have something in common.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "sweep/validate/evaluation.h"

namespace shardscape::validate {

struct ErrorGroup {
  std::vector<std::string> key;  ///< one part of the regime for each name asked for
  std::string metric;            ///< Metric::key
  ErrorStatistics errors;        ///< at least one row
};

/// "device,precision": names of regime_keys(), each once. The error says what there is.
tl::expected<std::vector<std::string>, std::string> parse_regime_keys(std::string_view text);

/// Errors of every metric by the parts of the regime, in the order of the metrics, then of the keys.
std::vector<ErrorGroup> error_groups(const Evaluation& evaluation, const std::vector<std::string>& keys);

}  // namespace shardscape::validate
