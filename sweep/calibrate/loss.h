// The "soft L1" loss of a fit (see fit.h), of squared residuals in units of the typical error.
#pragma once

#include <cmath>
#include <vector>

namespace shardscape::calibrate {

inline double loss(double squared) { return 2 * (std::sqrt(1 + squared) - 1); }
/// The derivative of the loss, which weights a residual.
inline double weight(double squared) { return 1 / std::sqrt(1 + squared); }

/// The sum of the losses of all residuals.
inline double loss_of(const std::vector<double>& residuals, double typical_error) {
  double sum = 0;
  for (const double residual : residuals) sum += loss(residual * residual / (typical_error * typical_error));
  return sum;
}

}  // namespace shardscape::calibrate
