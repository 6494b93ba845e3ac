// Bounded, robust least squares with priors, on Ceres.
//
//   minimise  sum_i rho(r_i(u)^2 / s^2) + sum_j u_j^2      over low <= u <= high
//
// r: residuals (logarithms of predicted over measured); s: what the model errs by typically;
// rho(x) = 2 (sqrt(1 + x) - 1), the "soft L1" loss: quadratic for errors below s, linear far above it, so
// that broken measurements pull with a constant force (Triggs et al. 2000; Ceres' SoftLOneLoss). u:
// parameters in widths of their standard normal priors. Levenberg-Marquardt within bounds; derivatives by
// forward differences of kStep prior widths, all points of one Jacobian as one batch.
//
// Deterministic: the same problem takes the same steps whatever evaluates the batch.
#pragma once

#include <cmath>
#include <functional>
#include <vector>

namespace shardscape::calibrate {

/// Range of s, relative: at most what good performance models reach on unseen programs, at least what
/// rounded figures and repeated runs scatter by.
inline constexpr double kLargestError = 0.05, kSmallestError = 0.002;
/// Step of forward differences, in prior widths.
inline constexpr double kStep = 1e-3;

/// Computes residuals at several points; the lists of all points have equal lengths.
using BatchResiduals =
    std::function<std::vector<std::vector<double>>(const std::vector<std::vector<double>>& points)>;

struct FitProgress {
  int iteration = 0;
  double objective = 0;
  std::size_t evaluations = 0;  ///< number of points evaluated so far
};

struct FitProblem {
  std::size_t rows = 0;                  ///< number of residuals
  std::vector<double> low, high, start;  ///< one entry per parameter; low <= start <= high
  BatchResiduals residuals;
  double typical_error = kLargestError;  ///< s, where the loss turns linear; it weighs rows against priors
  int max_iterations = 40;
  std::function<void(const FitProgress&)> progress;  ///< may be empty
};

struct Fit {
  std::vector<double> point;
  double objective = 0;  ///< value of the sum that is minimised
  int iterations = 0;
  std::size_t evaluations = 0;
  bool converged = true;
  /// The information of the data about the parameters, row-major: J^T W J / s^2 with the weights of the loss at the
  /// point, without the priors.
  std::vector<double> information;
  /// The scatter of the residuals: 1.4826 times the median of |r| (which is the standard deviation of normal errors,
  /// Rousseeuw and Croux 1993) times sqrt(n / (n - parameters)). Residuals of exactly 0 are verdicts that hold, and do
  /// not count.
  double error = 0;
};

/// Minimises. Without parameters it evaluates the only point. Opens a module, which contains Ceres; throws
/// std::runtime_error where that does not exist.
Fit fit(const FitProblem& problem);

/// The loss of a squared residual in units of the typical error.
inline double loss(double squared) { return 2 * (std::sqrt(1 + squared) - 1); }
/// The derivative of the loss, which weights a residual.
inline double weight(double squared) { return 1 / std::sqrt(1 + squared); }

/// The sum of the losses of all residuals.
inline double loss_of(const std::vector<double>& residuals, double typical_error) {
  double sum = 0;
  for (const double residual : residuals) sum += loss(residual * residual / (typical_error * typical_error));
  return sum;
}

// The interface between fit() and its module.
inline constexpr const char* kFitModule = "shardscape_fit.so";
/// The number in the name must change whenever FitProblem or Fit does.
inline constexpr const char* kFitEntry = "shardscape_fit_1";
using FitEntry = void(const FitProblem& problem, Fit& found);

}  // namespace shardscape::calibrate
