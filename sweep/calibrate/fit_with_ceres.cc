// Least squares with Ceres, in a module of its own (sweep/modules/module.h); fit.h says what is minimised. Rows are one
// cost function each, which reads from a batch that is evaluated once per point.
#include <ceres/ceres.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "engine/base/check.h"
#include "sweep/calibrate/fit.h"

namespace shardscape::calibrate {

namespace {

/// Residuals and Jacobian of all rows at Ceres' current point, evaluated in one batch per point; the rows' cost
/// functions only read them.
class Evaluations : public ceres::EvaluationCallback {
 public:
  explicit Evaluations(const FitProblem& problem) : problem_(problem), point_(problem.start) {}

  void PrepareForEvaluation(bool jacobians, bool new_point) override {
    const bool jacobian_due = jacobians && (new_point || jacobian_.empty());
    if (!new_point && !jacobian_due && !residuals_.empty()) return;
    evaluate(jacobian_due);
  }

  /// The memory in which Ceres keeps the parameters.
  std::vector<double>& point() { return point_; }
  [[nodiscard]] double residual(std::size_t row) const { return residuals_[row] / problem_.typical_error; }
  [[nodiscard]] const double* gradient(std::size_t row) const { return &jacobian_[row * point_.size()]; }
  [[nodiscard]] const std::vector<double>& residuals() const { return residuals_; }
  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  void evaluate(bool jacobian) {
    const std::size_t n = point_.size();
    std::vector<std::vector<double>> points = {point_};
    std::vector<double> steps(n);
    for (std::size_t j = 0; jacobian && j < n; ++j) {
      steps[j] = point_[j] + kStep > problem_.high[j] ? -kStep : kStep;
      points.push_back(point_);
      points.back()[j] += steps[j];
    }
    const std::vector<std::vector<double>> values = problem_.residuals(points);
    count_ += points.size();
    residuals_ = values[0];
    jacobian_.clear();
    if (!jacobian) return;
    jacobian_.resize(residuals_.size() * n);
    for (std::size_t i = 0; i < residuals_.size(); ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        jacobian_[i * n + j] = (values[j + 1][i] - values[0][i]) / (steps[j] * problem_.typical_error);
      }
    }
  }

  const FitProblem& problem_;
  std::vector<double> point_, residuals_, jacobian_;
  std::size_t count_ = 0;
};

/// The cost function of one row: its scaled residual from Evaluations.
class RowCost : public ceres::CostFunction {
 public:
  RowCost(const Evaluations& evaluations, std::size_t row) : evaluations_(evaluations), row_(row) {}
  void shape(int parameters) {
    set_num_residuals(1);
    mutable_parameter_block_sizes()->push_back(parameters);
  }
  bool Evaluate(double const* const*, double* residuals, double** jacobians) const override {
    residuals[0] = evaluations_.residual(row_);
    if (jacobians != nullptr && jacobians[0] != nullptr) {
      std::copy_n(evaluations_.gradient(row_), parameter_block_sizes()[0], jacobians[0]);
    }
    return std::isfinite(residuals[0]);
  }

 private:
  const Evaluations& evaluations_;
  std::size_t row_;
};

/// The cost function of a prior: u itself, as the prior is standard normal.
class PriorCost : public ceres::CostFunction {
 public:
  explicit PriorCost(int parameters) {
    set_num_residuals(parameters);
    mutable_parameter_block_sizes()->push_back(parameters);
  }
  bool Evaluate(double const* const* parameters, double* residuals, double** jacobians) const override {
    const int n = num_residuals();
    std::copy_n(parameters[0], n, residuals);
    if (jacobians == nullptr || jacobians[0] == nullptr) return true;
    std::fill_n(jacobians[0], n * n, 0.0);
    for (int i = 0; i < n; ++i) jacobians[0][i * n + i] = 1;
    return true;
  }
};

class Reporter : public ceres::IterationCallback {
 public:
  Reporter(const FitProblem& problem, const Evaluations& evaluations)
      : problem_(problem), evaluations_(evaluations) {}
  ceres::CallbackReturnType operator()(const ceres::IterationSummary& summary) override {
    if (problem_.progress) problem_.progress({summary.iteration, 2 * summary.cost, evaluations_.count()});
    return ceres::SOLVER_CONTINUE;
  }

 private:
  const FitProblem& problem_;
  const Evaluations& evaluations_;
};

double scatter(const std::vector<double>& residuals, std::size_t parameters) {
  std::vector<double> sizes;
  for (const double residual : residuals) {
    if (residual != 0) sizes.push_back(std::abs(residual));
  }
  if (sizes.empty()) return 0;
  const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
  std::ranges::nth_element(sizes, middle);
  const auto n = static_cast<double>(sizes.size());
  const double freedom = std::max(1.0, n - static_cast<double>(parameters));
  return 1.4826 * *middle * std::sqrt(n / freedom);
}

/// Computes objective, information and size of errors at the fitted point.
void conclude(const Evaluations& evaluations, double typical_error, Fit& fit) {
  const std::size_t n = fit.point.size();
  fit.information.assign(n * n, 0);
  fit.objective = loss_of(evaluations.residuals(), typical_error);
  for (const double u : fit.point) fit.objective += u * u;
  for (std::size_t i = 0; n > 0 && i < evaluations.residuals().size(); ++i) {
    const double w = weight(evaluations.residual(i) * evaluations.residual(i));
    const double* const g = evaluations.gradient(i);
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = 0; b < n; ++b) fit.information[a * n + b] += w * g[a] * g[b];
    }
  }
  fit.error = scatter(evaluations.residuals(), n);
}

ceres::Solver::Options solver_options(const FitProblem& problem, Reporter& reporter) {
  ceres::Solver::Options options;
  options.minimizer_type = ceres::TRUST_REGION;
  options.linear_solver_type = ceres::DENSE_QR;
  options.max_num_iterations = problem.max_iterations;
  options.function_tolerance = 1e-5;
  options.parameter_tolerance = 1e-6;
  options.num_threads = 1;
  options.logging_type = ceres::SILENT;
  options.callbacks.push_back(&reporter);
  return options;
}

Fit solve(const FitProblem& problem) {
  const std::size_t n = problem.start.size();
  SHARDSCAPE_CHECK(problem.low.size() == n && problem.high.size() == n, n);
  Evaluations evaluations(problem);
  Fit result;
  const std::size_t rows = problem.rows;
  if (n > 0) {
    ceres::Problem::Options problem_options;
    problem_options.evaluation_callback = &evaluations;
    ceres::Problem ceres_problem(problem_options);
    double* const point = evaluations.point().data();
    for (std::size_t i = 0; i < rows; ++i) {
      auto cost = std::make_unique<RowCost>(evaluations, i);
      cost->shape(static_cast<int>(n));
      ceres_problem.AddResidualBlock(cost.release(), new ceres::SoftLOneLoss(1.0), point);
    }
    ceres_problem.AddResidualBlock(new PriorCost(static_cast<int>(n)), nullptr, point);
    for (std::size_t j = 0; j < n; ++j) {
      ceres_problem.SetParameterLowerBound(point, static_cast<int>(j), problem.low[j]);
      ceres_problem.SetParameterUpperBound(point, static_cast<int>(j), problem.high[j]);
    }
    Reporter reporter(problem, evaluations);
    ceres::Solver::Summary summary;
    ceres::Solve(solver_options(problem, reporter), &ceres_problem, &summary);
    result.iterations = static_cast<int>(summary.iterations.size());
    result.converged = summary.termination_type == ceres::CONVERGENCE;
  }
  result.point = evaluations.point();
  constexpr bool kJacobians = true, kNewPoint = true;
  evaluations.PrepareForEvaluation(kJacobians, kNewPoint);
  conclude(evaluations, problem.typical_error, result);
  result.evaluations = evaluations.count();
  return result;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void shardscape_fit_1(const FitProblem& problem,
                                                                        Fit& found) {
  found = solve(problem);
}

}  // namespace shardscape::calibrate
