// Does a matrix product keep to the roofline, quantise over the SMs, and name what limits it?
#include "engine/compute/gemm.h"

#include <gtest/gtest.h>

#include "tests/support/a100.h"

namespace shardscape::compute {
namespace {

GemmCost bf16(GemmShape shape, const DeviceSpec& device = test::a100()) {
  return gemm(shape, Precision::bf16, device);
}

TEST(Gemm, LargeSquareReachesTheSustainedPeak) {
  // 16384^3: thousands of CTAs, so the last wave and the prologue are below 2 %.
  const DeviceSpec device = test::a100();
  const GemmShape shape{16384, 16384, 16384};
  const double ideal = shape.flops().value() / (0.85 * device.tensor_peak(Precision::bf16).value());
  const double time = bf16(shape).time.value();
  EXPECT_GE(time, ideal);
  EXPECT_LE(time, 1.03 * ideal);
}

TEST(Gemm, HalfTheTensorRateTakesTwiceAsLong) {
  // tf32 has half of bf16's FLOPs per clock; a large product is bound by nothing else.
  const DeviceSpec device = test::a100();
  const GemmShape shape{8192, 8192, 8192};
  const double ratio = gemm(shape, Precision::tf32, device, {4, false}).time / bf16(shape).time;
  EXPECT_NEAR(ratio, 2, 0.06);
}

TEST(Gemm, AShareOfTheRateIsThatOfProductsBoundByIt) {
  // Half of the units' rate: twice the time of a large product, by its own kernels and by a library's; what streams
  // weights for one row is as it was.
  DeviceSpec library = test::a100();
  library.power = Watts(400);
  library.energy = {60, 1e-6, 0.5, 0.25, 1e-6, 500};  // so little for FLOPs and bytes that no limit is met
  library.products = {Seconds(3e-6), Seconds(200e-9), Seconds(3e-6), 1.5, 64, false};
  ASSERT_TRUE(library.steps_by_energy());
  for (const DeviceSpec& device : {test::a100(), library}) {
    const auto time = [&](const GemmShape& shape, double share) {
      return gemm(shape, Precision::bf16, device, {}, {.share = share}).time.value();
    };
    const GemmShape large{8192, 8192, 8192}, row{1, 16384, 16384};
    EXPECT_NEAR(time(large, 0.5) / time(large, 1), 2, 0.06);
    EXPECT_NEAR(time(row, 0.5) / time(row, 1), 1, 0.01);
  }
}

TEST(Gemm, BoundsOfTypicalShapes) {
  EXPECT_EQ(bf16({1, 16384, 16384}).bound, Bound::hbm);  // decode: every weight read for one row
  EXPECT_EQ(bf16({8192, 8192, 8192}).bound, Bound::compute);
  EXPECT_EQ(bf16({64, 64, 64}).bound, Bound::launch);
}

TEST(Gemm, OneRowStreamsTheWeights) {
  // 2 n k bytes of weights dwarf the vectors; time = bytes / sustained bandwidth + kernel latency.
  const GemmCost cost = bf16({1, 16384, 16384});
  const double bytes = 2.0 * 16384 * 16384 + 2 * 16384 + 2 * 16384;
  EXPECT_DOUBLE_EQ(cost.hbm_bytes.value(), bytes);
  EXPECT_NEAR(cost.time.value(), 3e-6 + bytes / (0.8 * 2039e9), 1e-9);
}

TEST(Gemm, OneCtaMoreThanAWaveCostsAnotherWave) {
  // 108 SMs. With the registers cut to the accumulators of one small tile (64 x 64 x 4 B / 0.5), only the two
  // smallest tiles are left; rows of 64 tiles: m = 64, n = 64 c gives c CTAs of 64 x 64 or 2 c of 32 x 64.
  // k = 32768 makes launch and prologue negligible, and more splits than 2 waves are not tried. From 108 to
  // 109 tiles: 64 x 64 takes two rounds instead of one; 32 x 64 three half rounds instead of two: 1.5 times.
  DeviceSpec device = test::a100();
  device.sm.registers = Bytes(64 * 64 * 4 / 0.5);
  device.l2.bytes_per_clock = 1e9;  // nothing but the tensor cores counts
  device.l2.capacity = Bytes(1e12);
  device.hbm.bandwidth_per_stack = BytesPerSecond(1e18);
  device.sm.sram_bytes_per_clock = 1e9;
  device.sm.tensor_flops_per_clock[static_cast<std::size_t>(Precision::bf16)] = 64;  // math hides latency
  const double full = bf16({64, 64 * 108, 32768}, device).time.value();
  const double over = bf16({64, 64 * 109, 32768}, device).time.value();
  EXPECT_NEAR(over / full, 1.5, 0.01);
  // Up to the next half round nothing changes: 109 .. 162 tiles of 64 are 218 .. 324 = 3 x 108 halves.
  EXPECT_NEAR(bf16({64, 64 * 162, 32768}, device).time.value(), over, 1e-3 * over);
  EXPECT_NEAR(bf16({64, 64 * 163, 32768}, device).time.value() / full, 2, 0.01);
}

TEST(Gemm, SplitKFillsTheMachineForSmallGrids) {
  // 128 x 128 x 65536 has at most a handful of tiles; without splitting K at most 8 of 108 SMs would work.
  const DeviceSpec device = test::a100();
  const GemmShape shape{128, 128, 65536};
  const GemmCost cost = bf16(shape, device);
  EXPECT_GT(cost.split_k, 1);
  const double eight_sms = shape.flops().value() / (device.sustained.tensor * 8 / 108.0 *
                                                    device.tensor_peak(Precision::bf16).value());
  EXPECT_LT(cost.time.value(), eight_sms);
}

TEST(Gemm, AccumulationReadsTheOutputFirst) {
  const DeviceSpec device = test::a100();
  const GemmShape shape{4096, 4096, 4096};
  const double written = gemm(shape, Precision::bf16, device, {4, false}).hbm_bytes.value();
  const double accumulated = gemm(shape, Precision::bf16, device, {4, true}).hbm_bytes.value();
  EXPECT_DOUBLE_EQ(accumulated - written, 4.0 * 4096 * 4096);
}

TEST(Gemm, BatchOfManyIsOneLaunch) {
  // 64 products of 1024^3 fill the machine as one product of the same work does, within the waves' rounding.
  const double batched = bf16({1024, 1024, 1024, 64}).time.value();
  const double one = bf16({8192, 8192, 1024}).time.value();
  EXPECT_NEAR(batched / one, 1, 0.1);
  EXPECT_LT(batched, 64 * bf16({1024, 1024, 1024}).time.value());
}

TEST(Gemm, SramLimitsTheTiles) {
  // With 64 KiB per SM a 256 x 128 x 32 tile's three stages (72 KiB of bf16) do not fit; the chosen tile
  // does: (m + n) k stages 2 B <= 64 KiB.
  DeviceSpec device = test::a100();
  device.sm.sram = Bytes(64 * 1024);
  const GemmTile tile = bf16({8192, 8192, 8192}, device).tile;
  EXPECT_LE((tile.m + tile.n) * tile.k * tile.stages * 2, 64 * 1024);
}

TEST(Gemm, EveryDeviceThatValidatesHasATile) {
  // 16 KiB of shared memory and 8 KiB of registers, the least that validate() lets pass, and one byte less.
  DeviceSpec device = test::a100();
  device.sm.sram = Bytes(16 * 1024);
  device.sm.registers = Bytes(8 * 1024);
  device.sm.tensor_flops_per_clock.fill(1024);
  EXPECT_TRUE(device.validate().empty());
  const GemmShape shape{4096, 4096, 4096};
  for (std::size_t p = 0; p < kPrecisionCount; ++p) {
    const auto precision = static_cast<Precision>(p);
    const GemmCost cost = gemm(shape, precision, device);
    EXPECT_EQ(cost.tile.m, 32) << p;
    EXPECT_GT(cost.time.value(), shape.flops() / device.tensor_peak(precision) / Seconds(1)) << p;
  }
  device.sm.sram -= Bytes(1);
  device.sm.registers -= Bytes(1);
  EXPECT_EQ(device.validate().list().size(), 2U);
}

// One CTA per SM of an A100: 9 x 12 tiles of 128 x 128.
constexpr GemmShape kOneWave = {9 * 128, 12 * 128, 4096};
constexpr GemmTile kTile128 = {128, 128, 32, 4};

TEST(Gemm, OneWaveInClosedForm) {
  // At 0.85 x 1.41 GHz a k-step of 2 x 128 x 128 x 32 FLOPs takes 512 clocks, a third of the load latency
  // 267; 128 steps. The epilogue moves 32 KiB per SM: 512 clocks through its port of 64 bytes, but 108 of
  // them through 0.8 x 5120 bytes per clock (at 1.41 GHz) take longer. The first load is waited for.
  const GemmCost cost = gemm(kOneWave, Precision::bf16, test::a100(), {}, {kTile128, {}});
  const double clock = 0.85 * 1.41e9;
  const double epilogue = 108 * 32768 / (0.8 * 5120 * 1.41e9);
  EXPECT_NEAR(cost.time.value(), 3e-6 + (128 * 512 + 800) / clock + epilogue, 1e-12);
  EXPECT_EQ(cost.waves, 1);
  EXPECT_EQ(cost.split_k, 1);
  EXPECT_EQ(cost.bound, Bound::compute);
  // Every CTA reads 256 x 4096 operands of 2 bytes through L2 and writes its part of C.
  EXPECT_DOUBLE_EQ(cost.l2_bytes.value(), 108 * 256.0 * 4096 * 2 + 2.0 * 1152 * 1536);
  // Four warps of 64 x 64: each operand comes twice out of shared memory.
  EXPECT_DOUBLE_EQ(cost.sram_bytes.value(), 2 * 108 * 256.0 * 4096 * 2);
  // 22 MB of operands fit into 40 MiB.
  EXPECT_DOUBLE_EQ(cost.hbm_bytes.value(), 2.0 * 4096 * (1152 + 1536) + 2.0 * 1152 * 1536);
}

TEST(Gemm, ALockedClockScalesThePeakAndStartsCold) {
  DeviceSpec device = test::a100();
  device.cold_start = Seconds(5e-6);
  device.sm.tensor_efficiency = 0.9;
  const GemmCost cost = gemm(kOneWave, Precision::bf16, device, {}, {kTile128, Hertz(1e9)});
  // Nothing throttles: 1 GHz; L2 at the same clock.
  const double epilogue = 108 * 32768 / (0.8 * 5120 * 1e9);
  EXPECT_NEAR(cost.time.value(), 3e-6 + 5e-6 + (128 * 512 / 0.9 + 800) / 1e9 + epilogue, 1e-12);
}

TEST(Gemm, WavesStep) {
  // Tiles of 128 x 128 in a row, and memory that is for nothing: 108 c CTAs take c waves, one more takes
  // another: 256 k-steps of 512 clocks, and 32 KiB of C through a port of 64 bytes per clock.
  DeviceSpec device = test::a100();
  device.l2.bytes_per_clock = 1e9;
  device.hbm.bandwidth_per_stack = BytesPerSecond(1e18);
  for (const std::int64_t waves : {1, 2, 5, 40}) {
    const auto of = [&](std::int64_t tiles) {
      return gemm({128, 128 * tiles, 8192}, Precision::bf16, device, {}, {kTile128, {}});
    };
    const GemmCost full = of(108 * waves), over = of(108 * waves + 1);
    EXPECT_EQ(full.waves, waves);
    EXPECT_EQ(over.waves, waves + 1);
    EXPECT_NEAR((over.time - full.time).value(), (256 * 512 + 512) / (0.85 * 1.41e9), 1e-10);
  }
}

TEST(Gemm, ARequestedTileLiesEitherWay) {
  // C of 8192 x 128: tiles of 64 x 256 waste half of their columns, 256 x 64 fit.
  const GemmShape shape{8192, 128, 1024};
  const GemmCost cost = gemm(shape, Precision::bf16, test::a100(), {}, {GemmTile{64, 256, 32, 4}, {}});
  EXPECT_EQ(cost.tile.m, 256);
  EXPECT_EQ(cost.tile.n, 64);
  EXPECT_EQ(cost.waves, 1);
}

TEST(Gemm, LatencyBoundLoopInClosedForm) {
  // One CTA with two stages, K too short to split: each of 3 steps waits 800 clocks for its load, against 32
  // of math; 2 KiB of C leave through a port of 64 bytes.
  const GemmCost cost = gemm({32, 32, 96}, Precision::bf16, test::a100(), {}, {GemmTile{32, 32, 32, 2}, {}});
  const double clock = 0.85 * 1.41e9;
  EXPECT_EQ(cost.split_k, 1);
  EXPECT_NEAR(cost.time.value(), 3e-6 + ((3 + 1) * 800 + 2048.0 / 64) / clock, 1e-12);
}

TEST(Gemm, AClusterLoadsOneSideOnce) {
  DeviceSpec device = test::a100();
  device.sm.cluster = 2;
  const GemmCost cost = gemm(kOneWave, Precision::bf16, device, {}, {kTile128, {}});
  // 108 CTAs read 128 rows of A each, 54 pairs 128 columns of B.
  EXPECT_DOUBLE_EQ(cost.l2_bytes.value(), (108 + 54) * 128.0 * 4096 * 2 + 2.0 * 1152 * 1536);
}

TEST(Gemm, WideFragmentsSpareSharedMemory) {
  DeviceSpec device = test::a100();
  device.sm.fragment = {64, 256, 1};
  // One fragment spans the tile's 128 columns, two its rows: A comes once, B twice.
  const GemmCost cost = gemm(kOneWave, Precision::bf16, device, {}, {kTile128, {}});
  EXPECT_DOUBLE_EQ(cost.sram_bytes.value(), 108 * (128 + 2 * 128.0) * 4096 * 2);
}

TEST(Gemm, EightAndFourBits) {
  DeviceSpec device = test::a100();
  device.sm.tensor_flops_per_clock = {128, 1024, 2048, 2048, 4096, 8192};
  const GemmShape shape{1, 16384, 16384};
  const auto bytes = [&](Precision precision) {
    return gemm(shape, precision, device, {output_bytes(precision), false}).hbm_bytes.value();
  };
  // Operands of 1 byte, or half a byte and a 16th for its scale; bf16 comes out.
  const double operands = 16384.0 * 16384 + 16384;
  EXPECT_DOUBLE_EQ(bytes(Precision::fp8), operands + 2 * 16384);
  EXPECT_DOUBLE_EQ(bytes(Precision::fp4), 0.5625 * operands + 2 * 16384);
  EXPECT_NEAR(bytes(Precision::fp32) / (4 * operands + 4 * 16384), 1, 1e-3);  // the row comes again at times
  // Compute-bound: twice the rate, half the time.
  const GemmShape square{8192, 8192, 8192};
  const double ratio = gemm(square, Precision::bf16, device, {2, false}).time /
                       gemm(square, Precision::fp8, device, {2, false}).time;
  EXPECT_GT(ratio, 1.5);
  EXPECT_LE(ratio, 2);
}

TEST(Gemm, SplitKPaysForItsReduction) {
  // 8 CTAs of 128 x 128 and K = 65536. However it is split, partial sums of 4 bytes are written and read.
  const GemmCost cost = gemm({256, 512, 65536}, Precision::bf16, test::a100(), {}, {kTile128, {}});
  ASSERT_GT(cost.split_k, 1);
  const double c = 256.0 * 512;
  EXPECT_DOUBLE_EQ(cost.l2_bytes.value(),
                   2.0 * 65536 * (256 * 4 + 512 * 2) + 2 * 4 * c * cost.split_k + 2 * c);
}

}  // namespace
}  // namespace shardscape::compute
