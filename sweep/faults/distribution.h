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
  double mean = 0.5, deviation = 0.1;  ///< normal
  double alpha = 1, beta = 1;          ///< beta, on [0, 1]
  double value = 1;                    ///< constant
  std::vector<double> values;          ///< empirical: each as likely as any other
  double min = 0, max = 1;             ///< the range; of `uniform` its ends. No meaning for constant

  /// What is wrong with it, in words: parameters out of range, or no mass between min and max.
  [[nodiscard]] std::optional<std::string> problem() const;
};

/// Draws from a valid distribution. Immutable.
class DistributionSampler {
 public:
  explicit DistributionSampler(const Distribution& distribution);
  /// `uniform` in [0, 1). The result lies in [min, max].
  [[nodiscard]] double at(double uniform) const;

 private:
  Distribution distribution_;
  std::vector<double> kept_;   ///< empirical: the values inside the range, ascending
  double low_ = 0, high_ = 1;  ///< F(min), F(max); of the upper tail where `upper_`
  bool upper_ = false;         ///< the range lies above the median: work with 1 - F, which is precise there
};

}  // namespace shardscape::sweep

namespace shardscape {
SHARDSCAPE_ENUM_NAMES(sweep::DistributionKind, "normal", "uniform", "beta", "constant", "empirical");
}  // namespace shardscape
