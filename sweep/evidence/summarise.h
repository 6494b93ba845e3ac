// Summarises the residuals of measured rows as evidence.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sweep/evidence/evidence_table.h"

namespace shardscape::evidence {

/// The error of one measured row's prediction.
struct Residual {
  Regime regime;
  std::string plan;  ///< rows of one plan have the same text; empty: the row counts as a plan of its own
  double error = 0;  ///< predicted / measured - 1, above -1
  Degrees degrees = degrees_of({});  ///< degrees of the plan
};

/// One cell for each regime and band of GPUs (up to 8, 64, 512, and above) that has rows, in order of the phase,
/// device, precision, kind, stack and band. Every plan has the same weight, shared by its rows. Sigma is the
/// plain quantile of absolute errors at kOneSigma: that few plans say little about others is counted in by
/// assess() (kPriorPlans), and widened here as well it would hold 78 to 81 % of held-out rows. Figures are
/// rounded to four digits after the point. The order of the residuals has no effect.
Table summarise(std::span<const Residual> residuals);

/// The smallest value that at least a share `q` (0..1) of the weights does not exceed. `values` are (value,
/// weight), not empty, weights above 0.
double weighted_quantile(std::vector<std::pair<double, double>> values, double q);

}  // namespace shardscape::evidence
