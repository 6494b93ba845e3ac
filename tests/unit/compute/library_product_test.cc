// Do the products of a device whose energy is known follow their closed forms?
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/base/counter_rng.h"
#include "engine/compute/gemm.h"
#include "engine/compute/kernel_alone.h"
#include "engine/compute/power.h"
#include "tests/support/a100.h"

namespace shardscape::compute {
namespace {

/// 400 W, 60 of them idle; 1 pJ a FLOP and 30 pJ a byte; bursts of 500 W.
DeviceSpec powered() {
  DeviceSpec device = test::a100();
  device.power = Watts(400);
  device.energy = {60, 1, 0.5, 0.25, 30, 500};
  device.products = {Seconds(3e-6), Seconds(200e-9), Seconds(3e-6), 1.5, 64, false};
  return device;
}

double four_norm(double a, double b, double c) {
  return std::pow(std::pow(a, 4) + std::pow(b, 4) + std::pow(c, 4), 0.25);
}

TEST(LibraryProduct, OneRoundInClosedForm) {
  // 9 x 12 tiles of 128 x 128 on 108 SMs: one round of 64 steps. A step of 64 takes 2 x 128 x 128 x 64 / 2048 =
  // 1024 clocks at 1.41 GHz; its 256 rows of 128 bytes come in 512 clocks of the port. C leaves in 512.
  const DeviceSpec device = powered();
  const GemmShape shape{9 * 128, 12 * 128, 4096};
  const GemmTile tile{128, 128, 64, 0};
  const double compute = 64 * 1024 / 1.41e9 + 512 / 1.41e9;
  const double operands = 2.0 * 4096 * (1152 + 1536), c = 2.0 * 1152 * 1536;
  const double hbm = (operands + 1.5 * c) / (0.8 * 2039e9);
  const double power = (shape.flops().value() * 1e-12 + (operands + c) * 30e-12) / 340;
  const GemmCost cost = gemm(shape, Precision::bf16, device, {}, {tile, {}, false});
  EXPECT_NEAR(cost.time.value(), 3e-6 + four_norm(compute, hbm, power), 1e-12);
  EXPECT_EQ(cost.split_k, 1);
  EXPECT_EQ(cost.waves, 1);
  EXPECT_DOUBLE_EQ(cost.hbm_bytes.value(), operands + c);
  // A burst has 440 W in place of 340.
  const GemmCost alone = gemm(shape, Precision::bf16, device, {}, {tile, {}, true});
  EXPECT_NEAR(alone.time.value(), 3e-6 + four_norm(compute, hbm, power * 340 / 440), 1e-12);
  EXPECT_LE(gemm_alone(shape, Precision::bf16, device).time, alone.time);
}

TEST(LibraryProduct, PowerAloneLimitsLargeProducts) {
  // At 100 pJ a FLOP nothing else counts: energy over watts.
  DeviceSpec device = powered();
  device.energy.flop_pj = 100;
  const GemmShape shape{8192, 8192, 8192};
  const double energy = shape.flops().value() * 100e-12;
  EXPECT_NEAR(gemm(shape, Precision::bf16, device).time.value() / (energy / 340), 1, 0.01);
  EXPECT_NEAR(gemm_alone(shape, Precision::bf16, device).time.value() / (energy / 440), 1, 0.01);
}

TEST(LibraryProduct, StepsMayKeepTheirShare) {
  // Only the kernel alone goes by energy then.
  DeviceSpec device = powered();
  device.energy.steps = false;
  const GemmShape shape{4096, 4096, 4096};
  EXPECT_EQ(gemm(shape, Precision::bf16, device).time, gemm(shape, Precision::bf16, test::a100()).time);
  EXPECT_EQ(device.tensor_sustained(Precision::bf16), test::a100().tensor_sustained(Precision::bf16));
  EXPECT_EQ(gemm_alone(shape, Precision::bf16, device).time,
            gemm_alone(shape, Precision::bf16, powered()).time);
}

TEST(LibraryProduct, ALockedClockKnowsNoPower) {
  const GemmRequest locked{{}, Hertz(1e9), false};
  const GemmShape shape{4096, 4096, 4096};
  EXPECT_EQ(gemm(shape, Precision::bf16, powered(), {}, locked).time,
            gemm(shape, Precision::bf16, test::a100(), {}, locked).time);
}

TEST(LibraryProduct, ShortKDeepensWithNarrowOperands) {
  // A step is 128 bytes deep: 128 columns of fp8. At twice the rate per clock its math takes as long, so that K
  // of 8,192 has 64 steps in fp8 and 128 in bf16.
  DeviceSpec device = powered();
  device.energy.flop_pj = device.energy.byte_pj = 1e-6;
  device.hbm.bandwidth_per_stack = BytesPerSecond(1e18);
  device.sm.tensor_flops_per_clock[static_cast<std::size_t>(Precision::fp8)] = 4096;
  const GemmTile tile{128, 128, 64, 0};
  const GemmShape shape{9 * 128, 12 * 128, 8192};
  const auto body = [&](Precision precision) {
    return gemm(shape, precision, device, {}, {tile, {}, false}).time.value() - 3e-6;
  };
  const double store = 512 / 1.41e9;
  EXPECT_NEAR((body(Precision::bf16) - store) / (body(Precision::fp8) - store), 2, 1e-6);
}

TEST(LibraryProduct, PairsShareATile) {
  // One tile of 256 x 256 for a pair: each SM does half the math and loads half of the operands.
  DeviceSpec device = powered();
  device.sm.fragment = {128, 256, 1};
  device.sm.tensor_flops_per_clock[static_cast<std::size_t>(Precision::bf16)] = 8192;
  const GemmShape shape{16384, 16384, 8192};
  const Seconds single = gemm(shape, Precision::bf16, device).time;
  device.products.pairs = true;
  const GemmCost pairs = gemm(shape, Precision::bf16, device);
  EXPECT_LT(pairs.time, single);
  EXPECT_EQ(pairs.tile.m * pairs.tile.n, 256 * 256);
  EXPECT_EQ(pairs.waves, std::ceil(64.0 * 64 / 54));
}

/// Every tile and every number of splits, one by one.
double slow_product(const GemmShape& s, const DeviceSpec& d, bool burst) {
  const double m = static_cast<double>(s.m), n = static_cast<double>(s.n), k = static_cast<double>(s.k),
               batch = static_cast<double>(s.batch);
  const double clock = d.sm.clock.value(), steps = std::ceil(k / 64);
  const double operands = 2 * batch * k * (m + n), c = 2 * batch * m * n;
  const double hbm = (operands + d.products.output * c) / (0.8 * d.hbm_peak().value());
  const double power = power_time(d, Precision::bf16, 2 * batch * m * n * k, operands + c, burst);
  double best = std::numeric_limits<double>::infinity();
  for (const LibraryTile& tile : library_tiles(d)) {
    const double units = std::max(1.0, std::floor(static_cast<double>(d.sm.count) / tile.sms));
    const double ctas = batch * std::ceil(m / tile.m) * std::ceil(n / tile.n);
    const double rows = std::min<double>(tile.m, m), columns = std::min<double>(tile.n, n);
    const double math =
        2.0 * tile.m * tile.n * 64 /
        (d.sm.tensor_flops_per_clock[static_cast<std::size_t>(Precision::bf16)] * clock * tile.sms);
    const double load = (rows + columns) * 128 / (d.products.port * clock * tile.sms);
    const double step = std::max({math, load, d.products.step.value()});
    for (double split = 1; split <= 64; ++split) {
      if (split > 1 && (ctas * split > 2 * units || steps / split < 2)) break;
      const double store = rows * columns * (split > 1 ? 4 : 2) / (d.products.port * clock * tile.sms);
      const double compute = std::ceil(ctas * split / units) * (std::ceil(steps / split) * step + store);
      best = std::min(best, four_norm(compute, hbm, power) + (split > 1 ? d.products.reduction.value() : 0));
    }
  }
  return d.products.latency.value() + best;
}

TEST(LibraryProduct, FewCandidatesFindWhatAllOfThemDo) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    CounterRng random(seed, 40);
    const auto extent = [&] { return static_cast<std::int64_t>(std::exp2(14 * random.uniform())); };
    const GemmShape shape{extent(), extent(), extent(), random.below(4) == 0 ? 3 : 1};
    DeviceSpec device = powered();
    device.sm.count = 20 + static_cast<std::int64_t>(random.below(180));
    if (random.below(2) == 0) device.sm.fragment = {64, 256, 1};
    device.products.pairs = device.sm.fragment.per_cta == 1 && random.below(2) == 0;
    device.products.step = Seconds(600e-9 * random.uniform());
    const bool burst = random.below(2) == 0;
    const double slow = slow_product(shape, device, burst);
    EXPECT_NEAR(gemm(shape, Precision::bf16, device, {}, {{}, {}, burst}).time.value() / slow, 1, 1e-12)
        << "seed " << seed << ": " << shape.m << " x " << shape.n << " x " << shape.k << " x " << shape.batch;
  }
}

}  // namespace
}  // namespace shardscape::compute
