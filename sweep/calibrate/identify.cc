#include "sweep/calibrate/identify.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

namespace shardscape::calibrate {

namespace {

/// Added to keep F invertible where the data say nothing: a prior a thousand times as wide as the real one.
constexpr double kFaint = 1e-6;
/// Distance from a bound that counts as at the bound, in prior widths.
constexpr double kAtBound = 1e-3;

double correlation(const Eigen::MatrixXd& covariance, Eigen::Index a, Eigen::Index b) {
  return covariance(a, b) / std::sqrt(covariance(a, a) * covariance(b, b));
}

/// The index of the other parameter with the largest |correlation| to j.
Eigen::Index strongest(const Eigen::MatrixXd& covariance, Eigen::Index j) {
  Eigen::Index best = j;
  double largest = -1;
  for (Eigen::Index k = 0; k < covariance.rows(); ++k) {
    const double size = k == j ? -1 : std::abs(correlation(covariance, j, k));
    if (size <= largest) continue;
    largest = size;
    best = k;
  }
  return best;
}

Eigen::MatrixXd inverse(const Eigen::MatrixXd& matrix) {
  return matrix.ldlt().solve(Eigen::MatrixXd::Identity(matrix.rows(), matrix.cols()));
}

Eigen::MatrixXd square(std::span<const double> row_major, std::size_t parameters) {
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const auto n = static_cast<Eigen::Index>(parameters);
  return Eigen::Map<const RowMajor>(row_major.data(), n, n);
}

}  // namespace

std::vector<Judgement> judge(std::span<const double> information, std::span<const double> point,
                             std::span<const double> low, std::span<const double> high) {
  const auto n = static_cast<Eigen::Index>(point.size());
  std::vector<Judgement> judgements(point.size());
  if (n == 0) return judgements;
  const Eigen::MatrixXd data = square(information, point.size());
  const Eigen::MatrixXd unit = Eigen::MatrixXd::Identity(n, n);
  const Eigen::MatrixXd posterior = inverse(data + unit);
  const Eigen::MatrixXd of_data = inverse(data + kFaint * unit);
  for (Eigen::Index j = 0; j < n; ++j) {
    const auto at = static_cast<std::size_t>(j);
    Judgement& judgement = judgements[at];
    const Eigen::Index other = strongest(of_data, j);
    judgement.deviation = std::sqrt(posterior(j, j));
    judgement.with = static_cast<std::size_t>(other);
    judgement.correlation = other == j ? 0 : correlation(of_data, j, other);
    const bool at_end = point[at] - low[at] < kAtBound || high[at] - point[at] < kAtBound;
    if (at_end) {
      judgement.verdict = Verdict::at_bound;
    } else if (1 / std::sqrt(data(j, j) + 1) > kNarrowed) {
      judgement.verdict = Verdict::silent;
    } else if (judgement.deviation > kNarrowed || std::abs(judgement.correlation) > kTied) {
      judgement.verdict = Verdict::tied;
    }
  }
  return judgements;
}

std::vector<double> deviations(std::span<const double> information, std::size_t parameters, double ratio) {
  std::vector<double> result(parameters);
  if (parameters == 0) return result;
  constexpr double kSmallest = 1e-6;  // errors of zero would make the data infinitely certain
  const double scale = 1 / (std::max(ratio, kSmallest) * std::max(ratio, kSmallest));
  const auto n = static_cast<Eigen::Index>(parameters);
  const Eigen::MatrixXd left =
      inverse(scale * square(information, parameters) + Eigen::MatrixXd::Identity(n, n));
  for (std::size_t j = 0; j < parameters; ++j) {
    const auto at = static_cast<Eigen::Index>(j);
    result[j] = std::sqrt(left(at, at));
  }
  return result;
}

std::vector<std::size_t> to_give_up(std::span<const Judgement> judgements, std::span<const double> point) {
  std::vector<std::size_t> silent;
  std::size_t bound = judgements.size(), tied = judgements.size();
  for (std::size_t j = 0; j < judgements.size(); ++j) {
    switch (judgements[j].verdict) {
      case Verdict::identified:
        break;
      case Verdict::silent:
        silent.push_back(j);
        break;
      case Verdict::at_bound:
        if (bound == judgements.size() || std::abs(point[j]) > std::abs(point[bound])) bound = j;
        break;
      case Verdict::tied:
        if (tied == judgements.size() || judgements[j].deviation > judgements[tied].deviation) tied = j;
        break;
    }
  }
  if (!silent.empty()) return silent;
  if (bound < judgements.size()) return {bound};
  if (tied < judgements.size()) return {tied};
  return {};
}

}  // namespace shardscape::calibrate
