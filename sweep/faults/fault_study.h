// The `faults:` part of a study: which faults are drawn, how many, and where.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/enum_names.h"
#include "engine/base/quantity.h"
#include "engine/spec/fault.h"

namespace shardscape::sweep {

// One-dimensional distributions, truncated to a range: the conditional distribution given that the value lies
// there. Drawn by inversion of the cumulative distribution F (Devroye 1986, "Non-Uniform Random Variate
// Generation", II.2):
//
//     x = F^-1( F(min) + u (F(max) - F(min)) ),  u uniform in [0, 1)
//
// so that one draw takes one uniform number whatever the distribution, and is monotone in it.

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

struct WeightedKind {
  FaultKind kind = FaultKind::soft_link;
  double weight = 1;  ///< weight > 0, relative to the other kinds
};

/// Where link faults occur. Devices, adapters and switches are drawn uniformly, or all in turn under `exhaustive`;
/// `dimension` also restricts adapters and switches to its own.
enum class PlacementKind : std::uint8_t {
  uniform_links,  ///< any link
  dimension,      ///< any link of one dimension
  links,          ///< any link of a list
  exhaustive      ///< sample i is at place i: every link (or device, adapter, switch) in turn
};

struct FaultPlacement {
  PlacementKind kind = PlacementKind::uniform_links;
  std::string dimension;
  std::vector<std::pair<std::int32_t, std::int32_t>> links;  ///< as pairs of vertices (ranks, then switches)
};

/// A valid study (see study/faults_parser.h): every kind has enough places on the study's fabric.
struct FaultStudy {
  std::vector<WeightedKind> kinds;  ///< at least one, distinct
  std::int64_t samples = 200;       ///< samples per point; with a target, the most of them
  std::int64_t simultaneous = 1;    ///< faults per sample, at different places
  Distribution derate;              ///< share that remains, 0 < share <= 1, for kinds that derate
  Seconds added_latency;            ///< latency that soft link faults add
  bool both_directions = true;      ///< whether a link fault affects both directions
  FaultPlacement placement;
  std::uint64_t seed = 0;
  /// Stops sampling a point when the 95 % confidence interval of its mean slowdown is at most this wide.
  std::optional<double> target_ci;

  [[nodiscard]] bool exhaustive() const { return placement.kind == PlacementKind::exhaustive; }
};

}  // namespace shardscape::sweep
