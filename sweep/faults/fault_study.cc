#include "sweep/faults/fault_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/beta.hpp>
#include <boost/math/distributions/normal.hpp>
#include <cmath>

#include "engine/base/check.h"
#include "engine/spec/ranges.h"

namespace shardscape::sweep {

namespace {

/// Less mass than this counts as none, since quantiles would be rounding noise.
constexpr double kLeastMass = 1e-12;

/// Calls `use` with boost's distribution for a normal or a beta distribution.
template <class Use>
auto with_continuous(const Distribution& d, const Use& use) {
  if (d.kind == DistributionKind::normal) return use(boost::math::normal(d.mean, d.deviation));
  return use(boost::math::beta_distribution<>(d.alpha, d.beta));
}

double clamped_to_support(const Distribution& d, double x) {
  return d.kind == DistributionKind::beta ? std::clamp(x, 0.0, 1.0) : x;
}

struct TailRange {
  double low = 0, high = 1;
  bool upper = false;
};

/// F at the ends of the range, in the tail (lower or upper) where the range lies.
TailRange range_of(const Distribution& d) {
  const double min = clamped_to_support(d, d.min), max = clamped_to_support(d, d.max);
  return with_continuous(d, [&](const auto& continuous) {
    TailRange range;
    range.low = boost::math::cdf(continuous, min);
    range.upper = range.low > 0.5;
    if (range.upper) {
      range.low = boost::math::cdf(boost::math::complement(continuous, min));
      range.high = boost::math::cdf(boost::math::complement(continuous, max));
    } else {
      range.high = boost::math::cdf(continuous, max);
    }
    return range;
  });
}

bool is_continuous(DistributionKind kind) {
  return kind == DistributionKind::normal || kind == DistributionKind::beta;
}

bool inside(const Distribution& d, double value) { return value >= d.min && value <= d.max; }

}  // namespace

std::optional<std::string> Distribution::problem() const {
  if (kind == DistributionKind::constant) return std::nullopt;
  if (!(min <= max)) return "min must not exceed max";
  const auto outside = [](const char* name, double number, const Range& range) {
    return range.holds(number) ? std::string() : fmt::format("{} {}", name, range.violated_by(number));
  };
  std::string problem;
  if (kind == DistributionKind::normal) {
    problem = outside("mean", mean, ranges::kMean);
    if (problem.empty()) problem = outside("std", deviation, ranges::kDeviation);
  } else if (kind == DistributionKind::beta) {
    problem = outside("alpha", alpha, ranges::kShape);
    if (problem.empty()) problem = outside("beta", beta, ranges::kShape);
  }
  if (!problem.empty()) return problem;
  if (kind == DistributionKind::empirical) {
    if (values.empty()) return "values must hold a number at least";
    if (std::ranges::none_of(values, [&](double v) { return inside(*this, v); }))
      return "none of the values lies between min and max";
  }
  if (!is_continuous(kind)) return std::nullopt;
  const TailRange range = range_of(*this);
  if (std::abs(range.high - range.low) < kLeastMass) return "has no mass between min and max";
  return std::nullopt;
}

DistributionSampler::DistributionSampler(const Distribution& distribution) : distribution_(distribution) {
  SHARDSCAPE_CHECK(!distribution.problem(), name_of(distribution.kind));
  if (distribution.kind == DistributionKind::empirical) {
    std::ranges::copy_if(distribution.values, std::back_inserter(kept_),
                         [&](double v) { return inside(distribution, v); });
    std::ranges::sort(kept_);
  }
  if (is_continuous(distribution.kind)) {
    const TailRange range = range_of(distribution);
    low_ = range.low;
    high_ = range.high;
    upper_ = range.upper;
  }
}

double DistributionSampler::at(double uniform) const {
  const Distribution& d = distribution_;
  switch (d.kind) {
    case DistributionKind::constant:
      return d.value;
    case DistributionKind::uniform:
      return std::min(d.max, d.min + uniform * (d.max - d.min));
    case DistributionKind::empirical: {
      const auto index = static_cast<std::size_t>(uniform * static_cast<double>(kept_.size()));
      return kept_[std::min(index, kept_.size() - 1)];
    }
    case DistributionKind::normal:
    case DistributionKind::beta:
      break;
  }
  const double p = low_ + uniform * (high_ - low_);
  if (p <= 0) return upper_ ? d.max : d.min;
  if (p >= 1) return upper_ ? d.min : d.max;
  const double x = with_continuous(d, [&](const auto& continuous) {
    return upper_ ? boost::math::quantile(boost::math::complement(continuous, p))
                  : boost::math::quantile(continuous, p);
  });
  return std::clamp(x, d.min, d.max);
}

}  // namespace shardscape::sweep
