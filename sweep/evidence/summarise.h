// From residuals of measured rows to evidence.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sweep/evidence/evidence_table.h"

namespace shardscape::evidence {

/// A measured row and its prediction.
struct Residual {
  Regime regime;
  std::string plan;  ///< rows of one plan have the same text; empty: the row alone
  double error = 0;  ///< predicted / measured - 1, above -1
};

/// One cell for each regime and band of GPUs (up to 8, 64, 512, and above) that has rows, in order of the phase,
/// device, precision, kind, stack and band. Sigma is the quantile of absolute errors at kOneSigma (n + 1) / n,
/// n the number of plans: what a plan not among the n stays within with that probability (split conformal
/// prediction; Lei et al. 2018, J. Am. Stat. Assoc. 113, section 2.2). Every plan has the same weight, shared by
/// its rows. Figures are rounded to four digits after the point. The order of the residuals has no effect.
Table summarise(std::span<const Residual> residuals);

/// The smallest value that at least a share `q` (0..1) of the weights does not exceed. `values` are (value,
/// weight), not empty, weights above 0.
double weighted_quantile(std::vector<std::pair<double, double>> values, double q);

}  // namespace shardscape::evidence
