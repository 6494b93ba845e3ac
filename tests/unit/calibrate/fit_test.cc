// Does the fit minimise what its header says, within bounds and robustly?
#include "sweep/calibrate/fit.h"

#include <gtest/gtest.h>

#include <cmath>

namespace shardscape::calibrate {
namespace {

using Points = std::vector<std::vector<double>>;

/// Residuals slope_i * (u_j(i) - target_i): one parameter per row.
struct Line {
  std::size_t parameter;
  double slope, target;
};

FitProblem problem_of(const std::vector<Line>& lines, std::size_t parameters, double low = -10,
                      double high = 10) {
  FitProblem problem;
  problem.rows = lines.size();
  problem.low.assign(parameters, low);
  problem.high.assign(parameters, high);
  problem.start.assign(parameters, 0);
  problem.residuals = [lines](const Points& points) {
    Points values;
    for (const std::vector<double>& u : points) {
      std::vector<double>& residuals = values.emplace_back();
      for (const Line& line : lines) residuals.push_back(line.slope * (u[line.parameter] - line.target));
    }
    return values;
  };
  return problem;
}

/// d/du of sum rho(r^2 / s^2) + u^2 for rho(x) = 2 (sqrt(1 + x) - 1), written out: 2 r r' / (s^2 sqrt(1 +
/// r^2 / s^2)) per row.
double gradient(const std::vector<Line>& lines, double u) {
  const double s = kLargestError;
  double sum = 2 * u;
  for (const Line& line : lines) {
    const double r = line.slope * (u - line.target);
    sum += 2 * r * line.slope / (s * s * std::sqrt(1 + r * r / (s * s)));
  }
  return sum;
}

TEST(Fit, SmallErrorsAreLeastSquaresWithAPrior) {
  // n rows of r = c (u - t), c = s: minimum of n (u - t)^2 + u^2 is u = n t / (n + 1); information n c^2 /
  // s^2 = n. t = 0.02 keeps residuals at a thousandth of s, where the loss is its parabola to 1e-6.
  const std::vector<Line> lines(8, Line{0, kLargestError, 0.02});
  const Fit found = fit(problem_of(lines, 1));
  EXPECT_TRUE(found.converged);
  EXPECT_NEAR(found.point[0], 8 * 0.02 / 9, 1e-5);
  EXPECT_NEAR(found.information[0], 8, 1e-3);
  const double error =
      1.4826 * 0.02 / 9 * kLargestError * std::sqrt(8 / 7.0);  // all rows miss by t / (n + 1)
  EXPECT_NEAR(found.error / error, 1, 1e-2);
}

TEST(Fit, ABrokenMeasurementPullsWithConstantForce) {
  std::vector<Line> lines(9, Line{0, 0.5, 1});
  lines.push_back({0, 0.5, 9});  // least squares would go to (9 * 1 + 9) / 10 = 1.8
  const Fit found = fit(problem_of(lines, 1));
  EXPECT_NEAR(gradient(lines, found.point[0]), 0, 0.05 * 10);  // each row alone pulls with up to 2 c / s = 20
  EXPECT_NEAR(found.point[0], 1, 0.05);
  lines.back().target = 8;  // farther or nearer: the same force
  EXPECT_NEAR(fit(problem_of(lines, 1)).point[0], found.point[0], 1e-3);
}

TEST(Fit, StopsAtBounds) {
  const std::vector<Line> lines(20, Line{0, 0.5, 3});
  EXPECT_DOUBLE_EQ(fit(problem_of(lines, 1, -1, 1.5)).point[0], 1.5);
  const std::vector<Line> other(20, Line{0, 0.5, -3});
  EXPECT_DOUBLE_EQ(fit(problem_of(other, 1, -1, 1.5)).point[0], -1);
}

TEST(Fit, NeverAsksOutsideBounds) {
  const std::vector<Line> lines = {{0, 0.5, 3}, {1, 0.5, -3}, {0, 0.2, 1}};
  FitProblem problem = problem_of(lines, 2, -1, 1);
  const BatchResiduals inner = problem.residuals;
  std::size_t asked = 0;
  problem.residuals = [&](const Points& points) {
    for (const std::vector<double>& point : points) {
      ++asked;
      for (const double u : point) EXPECT_LE(std::abs(u), 1 + 1e-12);
    }
    return inner(points);
  };
  const Fit found = fit(problem);
  EXPECT_EQ(found.evaluations, asked);
  EXPECT_DOUBLE_EQ(found.point[0], 1);
  EXPECT_DOUBLE_EQ(found.point[1], -1);
}

TEST(Fit, WhatNoRowShowsStaysAtItsPrior) {
  const std::vector<Line> lines(5, Line{0, 0.5, 1});
  const Fit found = fit(problem_of(lines, 2));
  EXPECT_NEAR(found.point[1], 0, 1e-9);
  EXPECT_NEAR(found.information[3], 0, 1e-12);  // row-major 2 x 2
}

TEST(Fit, NoParametersIsAnObjective) {
  FitProblem problem;
  problem.rows = 2;
  problem.residuals = [](const Points& points) { return Points(points.size(), {0.05, 0.0}); };
  const Fit found = fit(problem);
  EXPECT_TRUE(found.point.empty());
  EXPECT_NEAR(found.objective, 2 * (std::sqrt(2.0) - 1), 1e-12);  // r / s = 1
  EXPECT_EQ(found.objective, loss_of({0.05, 0.0}, 0.05));
  EXPECT_NEAR(found.error, 1.4826 * 0.05, 1e-12);  // the 0 does not count
}

TEST(Fit, TheSameProblemTakesTheSameSteps) {
  const std::vector<Line> lines = {{0, 0.5, 1}, {1, 0.3, -0.4}, {0, 0.1, 3}, {1, 0.7, 0.2}};
  const Fit a = fit(problem_of(lines, 2)), b = fit(problem_of(lines, 2));
  EXPECT_EQ(a.point, b.point);
  EXPECT_EQ(a.evaluations, b.evaluations);
}

}  // namespace
}  // namespace shardscape::calibrate
