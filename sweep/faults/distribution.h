// One-dimensional distributions, truncated to a range: the conditional distribution given that the value lies
// there. Drawn by inversion of the cumulative distribution F (Devroye 1986, "Non-Uniform Random Variate
// Generation", II.2):
//
//     x = F^-1( F(min) + u (F(max) - F(min)) ),  u uniform in [0, 1)
//
// so that one draw takes one uniform number whatever the distribution, and is monotone in it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/enum_names.h"

namespace shardscape::sweep {

enum class DistributionKind : std::uint8_t { normal, uniform, beta, constant, empirical };

struct Distribution {
  DistributionKind kind = DistributionKind::constant;
  double mean = 0.5, deviation = 0.1;  ///< parameters of a normal distribution
  double alpha = 1, beta = 1;          ///< parameters of a beta distribution, on [0, 1]
  double value = 1;                    ///< value of a constant distribution
  std::vector<double> values;          ///< values of an empirical distribution: all are equally likely
  /// The range of truncation; for `uniform` its ends; for a constant without meaning.
  double min = 0, max = 1;

  /// What is wrong with the distribution, in words: parameters out of range, or no mass between min and max.
  [[nodiscard]] std::optional<std::string> problem() const;
};

/// Draws from a valid distribution. Immutable.
class DistributionSampler {
 public:
  explicit DistributionSampler(const Distribution& distribution);
  /// The value for `uniform` in [0, 1). It lies in [min, max].
  [[nodiscard]] double at(double uniform) const;

 private:
  Distribution distribution_;
  std::vector<double> kept_;   ///< values of an empirical distribution inside the range, ascending
  double low_ = 0, high_ = 1;  ///< F(min), F(max); of the upper tail where `upper_`
  /// Whether the range lies above the median: 1 - F is then used, which is precise there.
  bool upper_ = false;
};

}  // namespace shardscape::sweep
