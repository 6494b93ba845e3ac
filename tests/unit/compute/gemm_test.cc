#include "engine/compute/gemm.h"

#include <gtest/gtest.h>

#include "engine/compute/pointwise.h"
#include "tests/support/settings.h"

namespace shardscape::compute {
namespace {

constexpr Precision kBf16 = Precision::bf16;

double seconds(const GemmShape& shape, const DeviceSpec& device = test::a100()) {
  return gemm(shape, kBf16, device).time.value();
}

TEST(Gemm, FlopsAreTwoPerMultiplyAdd) {
  EXPECT_DOUBLE_EQ((GemmShape{3, 5, 7, 2}.flops().value()), 2.0 * 2 * 3 * 5 * 7);
}

// 8192^3: 32 x 64 tiles of 256 x 128 on 108 SMs are 18.96 waves in 19: quantisation costs 0.2 %, the k-loop
// is 256 steps long, and the sustained tensor rate is the limit.
TEST(Gemm, LargeSquareRunsAtTheSustainedPeak) {
  const GemmShape shape{8192, 8192, 8192};
  const DeviceSpec device = test::a100();
  const double ideal = (shape.flops() / (device.sustained.tensor * device.tensor_peak(kBf16))).value();
  const GemmCost cost = gemm(shape, kBf16, device);
  EXPECT_GE(cost.time.value(), ideal);
  EXPECT_LT(cost.time.value(), 1.03 * ideal);
  EXPECT_EQ(cost.bound, Bound::compute);
}

// One row times a 8192 x 8192 matrix is a stream of 128 MiB.
TEST(Gemm, OneRowIsAStreamOfTheWeights) {
  const GemmShape shape{1, 8192, 8192};
  const DeviceSpec device = test::a100();
  const GemmCost cost = gemm(shape, kBf16, device);
  const double stream = (Bytes(2.0 * 8192 * 8192) / device.hbm_sustained()).value();
  EXPECT_EQ(cost.bound, Bound::hbm);
  EXPECT_GE(cost.time.value(), stream);
  EXPECT_LT(cost.time.value(), 1.15 * stream);
}

TEST(Gemm, TinyProductsAreAllLaunch) {
  const GemmCost cost = gemm({16, 16, 16}, kBf16, test::a100());
  EXPECT_EQ(cost.bound, Bound::launch);
  EXPECT_LT(cost.time.value(), 2 * test::a100().kernel_latency.value());
}

// A device on which only the 32 x 64 tile fits: half of 32 KiB of registers holds its accumulators (32 x 64 x
// 4 B = 8 KiB) and just those of 64 x 64 (16 KiB), whose four stages of 64 x (64 + 64) x 2 B = 16 KiB need 64
// KiB of shared memory; there are 52 KiB, enough for the 48 KiB of 32 x 64.
DeviceSpec one_tile_device() {
  DeviceSpec device = test::a100();
  device.sm.sram = Bytes(52 * 1024);
  device.sm.registers = Bytes(32 * 1024);
  device.sm.sram_bytes_per_clock = 1e9;  // only compute may limit
  device.l2 = {Bytes(1e12), 1e12};
  device.hbm.bandwidth_per_stack = BytesPerSecond(1e18);
  device.kernel_latency = Seconds(0);
  return device;
}

// With the tile forced, K too short to split (k < 2 x 2 x 64): 108 CTAs are a full wave, the 109th costs as
// much again (beside the fixed fill of the pipeline), and then nothing until 217.
TEST(Gemm, OneTileTooManyCostsAWholeWave) {
  const DeviceSpec device = one_tile_device();
  const auto columns = [&](std::int64_t tiles) { return GemmShape{32, 64 * tiles, 192}; };
  ASSERT_EQ(gemm(columns(108), kBf16, device).tile.m, 32);
  ASSERT_EQ(gemm(columns(108), kBf16, device).split_k, 1);
  const double fill = 400 / device.sm.clock.value();
  const double one = seconds(columns(108), device) - fill;
  EXPECT_NEAR(seconds(columns(1), device) - fill, one, 1e-12 * one);
  EXPECT_NEAR(seconds(columns(109), device) - fill, 2 * one, 1e-9 * one);
  EXPECT_NEAR(seconds(columns(216), device) - fill, 2 * one, 1e-9 * one);
  EXPECT_NEAR(seconds(columns(217), device) - fill, 3 * one, 1e-9 * one);
  // Part of a tile is a tile.
  EXPECT_NEAR(seconds({17, 64 * 108 - 5, 192}, device) - fill, one, 1e-12 * one);
}

TEST(Gemm, SplitKFillsTheDeviceWhereTheGridIsSmall) {
  const GemmCost cost = gemm({128, 128, 65536}, kBf16, test::a100());
  EXPECT_GT(cost.split_k, 1);
}

// An accumulated fp32 output is read and written: 8 bytes per element instead of 2.
TEST(Gemm, AccumulationMovesTheOutputTwice) {
  const GemmShape shape{4096, 4096, 256};
  const double elements = 4096.0 * 4096;
  const Bytes plain = gemm(shape, kBf16, test::a100(), {2, false}).hbm_bytes;
  const Bytes accumulated = gemm(shape, kBf16, test::a100(), {4, true}).hbm_bytes;
  EXPECT_NEAR((accumulated - plain).value(), 6 * elements, 1e-6 * elements);
}

// 20 MFLOP at 19.5 TFLOP/s take 1.03 us; 200 MB at 0.8 x 2039 GB/s take 122.6 us.
TEST(Pointwise, IsARoofline) {
  const DeviceSpec device = test::a100();
  const OperatorCost stream = pointwise(Bytes(200e6), Flops(20e6), 2, device);
  EXPECT_DOUBLE_EQ(stream.time.value(), 2 * 3e-6 + 200e6 / (0.8 * 2039e9));
  EXPECT_EQ(stream.bound, Bound::hbm);
  const OperatorCost arithmetic = pointwise(Bytes(1e3), Flops(1e9), 1, device);
  EXPECT_DOUBLE_EQ(arithmetic.time.value(), 3e-6 + 1e9 / (108 * 128 * 1.41e9));
  EXPECT_EQ(arithmetic.bound, Bound::compute);
  EXPECT_EQ(pointwise(Bytes(1e3), Flops(1e3), 1, device).bound, Bound::launch);
}

}  // namespace
}  // namespace shardscape::compute
