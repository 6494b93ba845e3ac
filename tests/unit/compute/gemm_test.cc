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

}  // namespace
}  // namespace shardscape::compute
