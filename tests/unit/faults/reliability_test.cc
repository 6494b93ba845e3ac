// Are checkpoint intervals and goodput those of the published closed forms?
#include "sweep/faults/reliability.h"

#include <gtest/gtest.h>

#include <boost/math/special_functions/lambert_w.hpp>
#include <cmath>

#include "engine/base/counter_rng.h"

namespace shardscape::sweep {
namespace {

TEST(Reliability, YoungsInterval) {
  // sqrt(2 * 50 s * 10,000 s) = 1,000 s.
  EXPECT_DOUBLE_EQ(young_interval(Seconds(50), Seconds(10'000)).value(), 1000);
}

TEST(Reliability, DalysIntervalByHand) {
  // d / 2M = 200 / 20,000 = 0.01: sqrt(4e6) (1 + 0.1 / 3 + 0.01 / 9) - 200 = 2,000 * 1.034444.. - 200.
  EXPECT_NEAR(daly_interval(Seconds(200), Seconds(10'000)).value(), 2000 * (1 + 0.1 / 3 + 0.01 / 9) - 200,
              1e-9);
  EXPECT_EQ(daly_interval(Seconds(300), Seconds(100)).value(), 100);
}

TEST(Reliability, DalysIntervalIsTheBest) {
  // The derivative of the share vanishes where 1 - exp(-(t + d) / M) = t / M; found here by a fine search.
  for (const double write : {1.0, 30.0, 300.0}) {
    const Seconds m(20'000), d(write);
    double best = 0, at = 0;
    for (double t = 1; t < 40'000; t *= 1.001) {
      const double share = work_share(Seconds(t), d, Seconds(60), m);
      if (share > best) best = share, at = t;
    }
    const double share = work_share(daly_interval(d, m), d, Seconds(60), m);
    EXPECT_NEAR(share / best, 1, 1e-5) << at;
    EXPECT_GE(share, work_share(young_interval(d, m), d, Seconds(60), m) * (1 - 1e-9));
  }
}

TEST(Reliability, DalysIntervalIsNearTheExactOptimum) {
  // t / M = 1 - exp(-(t + d) / M) (above) has the solution t = M (1 + W(-exp(-1 - d / M))), W the Lambert
  // function's principal branch. Daly 2006 expands it in sqrt(d / 2M): three terms leave an error of the
  // order of (d / 2M)^(3/2) of the leading one.
  const Seconds m(10'000);
  for (const double write : {1.0, 10.0, 100.0, 1000.0}) {
    const double exact = m.value() * (1 + boost::math::lambert_w0(-std::exp(-1 - write / m.value())));
    const double half = write / (2 * m.value());
    const double leading = young_interval(Seconds(write), m).value();
    EXPECT_NEAR(daly_interval(Seconds(write), m).value(), exact, leading * std::pow(half, 1.5)) << write;
    EXPECT_GT(std::abs(leading - exact), std::abs(daly_interval(Seconds(write), m).value() - exact)) << write;
  }
}

TEST(Reliability, WorkShareIsWhatASimulatedRunGets) {
  // Failures as a Poisson process, work and checkpoint lost back to the last one, then the restart (during
  // which, as in the formula, failures start the restart again).
  const double m = 5'000, t = 1'000, d = 60, r = 300;
  CounterRng rng(11, 0);
  const auto next_failure = [&] { return -m * std::log1p(-rng.uniform()); };
  double clock = 0, work = 0, failure = next_failure();
  const auto passes = [&](double length) {  // whether no failure comes within it
    if (failure > length) {
      clock += length;
      failure -= length;
      return true;
    }
    clock += failure;
    failure = next_failure();
    return false;
  };
  constexpr int kIntervals = 400'000;
  for (int i = 0; i < kIntervals; ++i) {
    while (!passes(t + d)) {
      while (!passes(r)) {
      }
    }
    work += t;
  }
  // Daly's exp(R / M) counts each restart with its own failures: exact for this process.
  const double share = work_share(Seconds(t), Seconds(d), Seconds(r), Seconds(m));
  EXPECT_NEAR(work / clock / share, 1, 0.003);
}

TEST(Reliability, RareFailuresCostWhatYoungSays) {
  // To first order the loss is d / t + t / 2M + R / M.
  const double m = 1e8, d = 10, r = 100, t = 50'000;
  const double loss = 1 - work_share(Seconds(t), Seconds(d), Seconds(r), Seconds(m));
  EXPECT_NEAR(loss, d / t + t / (2 * m) + r / m, 1e-6);
}

TEST(Reliability, GoodputTakesTheMachineAndItsFaults) {
  Reliability reliability;
  reliability.device_failure_interval = Seconds(1.8e8);
  reliability.checkpoint_interval = Seconds(1800);
  reliability.checkpoint_write = Seconds(60);
  reliability.restart = Seconds(600);
  const double m = 1.8e8 / 1024;
  const double share = 1800 / (m * std::exp(600 / m) * (std::exp(1860 / m) - 1));
  EXPECT_NEAR(goodput_share(reliability, 1024, 0), share, 1e-12);
  reliability.fault_share = 0.5;
  EXPECT_NEAR(goodput_share(reliability, 1024, 0.2), share / 1.1, 1e-12);
  reliability.checkpoint_interval.reset();
  EXPECT_GT(goodput_share(reliability, 1024, 0.2), share / 1.1);
}

}  // namespace
}  // namespace shardscape::sweep
