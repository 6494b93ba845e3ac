// Do truncated distributions follow their conditional laws?
#include "sweep/faults/fault_study.h"

#include <gtest/gtest.h>

#include <cmath>

namespace shardscape::sweep {
namespace {

Distribution normal(double mean, double deviation, double min, double max) {
  Distribution d;
  d.kind = DistributionKind::normal;
  d.mean = mean;
  d.deviation = deviation;
  d.min = min;
  d.max = max;
  return d;
}

/// The standard normal law, by the error function.
double phi(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

/// The mean of f(x(u)) over u by the midpoint rule.
template <class F>
double moment(const DistributionSampler& sampler, const F& f) {
  constexpr int kSteps = 20'000;
  double sum = 0;
  for (int i = 0; i < kSteps; ++i) sum += f(sampler.at((i + 0.5) / kSteps));
  return sum / kSteps;
}

double mean_of(const DistributionSampler& sampler) {
  return moment(sampler, [](double x) { return x; });
}

TEST(Distribution, TruncatedNormalInvertsItsConditionalLaw) {
  const DistributionSampler sampler(normal(0.5, 0.1, 0.35, 0.9));
  const double low = phi(-1.5), high = phi(4);
  for (const double u : {0.0, 1e-6, 0.1, 0.5, 0.9, 0.999999}) {
    const double x = sampler.at(u);
    EXPECT_NEAR((phi((x - 0.5) / 0.1) - low) / (high - low), u, 1e-9) << u;
  }
}

TEST(Distribution, TruncatedNormalHasItsClosedFormMean) {
  // E[x | a < x < b] = mean + sigma (pdf(alpha) - pdf(beta)) / (Phi(beta) - Phi(alpha)), here alpha = -1,
  // beta = 2.
  const auto pdf = [](double z) { return std::exp(-z * z / 2) / std::sqrt(2 * M_PI); };
  const double expected = 0.5 + 0.1 * (pdf(-1) - pdf(2)) / (phi(2) - phi(-1));
  EXPECT_NEAR(mean_of(DistributionSampler(normal(0.5, 0.1, 0.4, 0.7))), expected, 1e-6);
}

TEST(Distribution, FarUpperTailStaysPreciseAndInRange) {
  // Between 6 and 7 sigma the law is nearly exponential: the mean lies about 1/6 sigma above the lower end
  // (Mills' ratio: E - a = sigma * (1/z - 2/z^3 + ..) = 0.1585 sigma at z = 6).
  const DistributionSampler sampler(normal(0, 0.1, 0.6, 0.7));
  EXPECT_NEAR(mean_of(sampler), 0.6 + 0.1 * 0.158, 0.1 * 0.005);
  for (const double u : {0.0, 0.5, 0.9999999}) {
    EXPECT_GE(sampler.at(u), 0.6);
    EXPECT_LE(sampler.at(u), 0.7);
  }
}

TEST(Distribution, BetaInvertsItsLaw) {
  // Beta(2, 2) has F(x) = 3 x^2 - 2 x^3.
  Distribution d;
  d.kind = DistributionKind::beta;
  d.alpha = d.beta = 2;
  d.min = 0.25;
  d.max = 0.75;
  const DistributionSampler sampler(d);
  const auto law = [](double x) { return 3 * x * x - 2 * x * x * x; };
  for (const double u : {0.0, 0.2, 0.5, 0.8}) {
    EXPECT_NEAR((law(sampler.at(u)) - law(0.25)) / (law(0.75) - law(0.25)), u, 1e-9);
  }
  EXPECT_NEAR(sampler.at(0.5), 0.5, 1e-12);
}

TEST(Distribution, TruncatedNormalHasItsClosedFormVariance) {
  // sigma^2 (1 + (a pdf(a) - b pdf(b)) / Z - ((pdf(a) - pdf(b)) / Z)^2), Z = Phi(b) - Phi(a); here a = -1.5,
  // b = 0.5.
  const auto pdf = [](double z) { return std::exp(-z * z / 2) / std::sqrt(2 * M_PI); };
  const double a = -1.5, b = 0.5, z = phi(b) - phi(a), shift = (pdf(a) - pdf(b)) / z;
  const double expected = 0.01 * (1 + (a * pdf(a) - b * pdf(b)) / z - shift * shift);
  const DistributionSampler sampler(normal(0.5, 0.1, 0.35, 0.55));
  const double mean = mean_of(sampler);
  EXPECT_NEAR(moment(sampler, [&](double x) { return (x - mean) * (x - mean); }), expected, 1e-7);
}

TEST(Distribution, BetaHasItsClosedFormMoments) {
  // Mean a / (a + b), variance a b / ((a + b)^2 (a + b + 1)).
  for (const auto& [a, b] : {std::pair(2.0, 5.0), std::pair(5.0, 1.5), std::pair(0.7, 0.9)}) {
    Distribution d;
    d.kind = DistributionKind::beta;
    d.alpha = a;
    d.beta = b;
    d.min = 0;
    d.max = 1;
    const DistributionSampler sampler(d);
    const double mean = a / (a + b);
    EXPECT_NEAR(mean_of(sampler), mean, 1e-5);
    EXPECT_NEAR(moment(sampler, [&](double x) { return (x - mean) * (x - mean); }),
                a * b / ((a + b) * (a + b) * (a + b + 1)), 1e-5);
  }
}

TEST(Distribution, TruncatedBetaHasItsClosedFormMean) {
  // Beta(2, 1) has the density 2 x: its mean on [l, h] is 2/3 (h^3 - l^3) / (h^2 - l^2).
  Distribution d;
  d.kind = DistributionKind::beta;
  d.alpha = 2;
  d.beta = 1;
  d.min = 0.3;
  d.max = 0.8;
  EXPECT_NEAR(mean_of(DistributionSampler(d)), 2.0 / 3 * (0.512 - 0.027) / (0.64 - 0.09), 1e-7);
}

TEST(Distribution, UniformConstantAndEmpirical) {
  Distribution d;
  d.kind = DistributionKind::uniform;
  d.min = 0.2;
  d.max = 0.6;
  EXPECT_DOUBLE_EQ(DistributionSampler(d).at(0.25), 0.3);
  d.kind = DistributionKind::constant;
  d.value = 0.7;
  EXPECT_EQ(DistributionSampler(d).at(0.99), 0.7);
  d.kind = DistributionKind::empirical;
  d.values = {0.9, 0.5, 0.3, 0.3};  // 0.9 lies outside the range
  const DistributionSampler sampler(d);
  EXPECT_EQ(sampler.at(0.0), 0.3);
  EXPECT_EQ(sampler.at(0.6), 0.3);
  EXPECT_EQ(sampler.at(0.7), 0.5);
}

TEST(Distribution, MonotoneInTheUniformNumber) {
  Distribution d = normal(0.9, 0.3, 0.05, 1);
  const DistributionSampler sampler(d);
  double before = 0;
  for (int i = 0; i < 1000; ++i) {
    const double x = sampler.at(i / 1000.0);
    EXPECT_GE(x, before);
    before = x;
  }
}

TEST(Distribution, SaysWhatIsWrong) {
  EXPECT_FALSE(normal(0.5, 0.1, 0.05, 1).problem());
  EXPECT_EQ(normal(0.5, 0.1, 0.9, 0.2).problem(), "min must not exceed max");
  EXPECT_EQ(normal(0.5, 0, 0.1, 1).problem(), "std must be from 1e-06 to 1e+06, not 0");
  EXPECT_EQ(normal(-5, 0.1, 0.1, 1).problem(), "has no mass between min and max");
  EXPECT_EQ(normal(5, 0.1, 0.1, 1).problem(), "has no mass between min and max");
  Distribution d;
  d.kind = DistributionKind::empirical;
  d.values = {0.5};
  d.min = 0.6;
  EXPECT_EQ(d.problem(), "none of the values lies between min and max");
}

}  // namespace
}  // namespace shardscape::sweep
