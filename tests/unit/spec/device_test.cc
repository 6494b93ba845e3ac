// Do the parts of a device multiply to the peaks of its data sheet?
#include "engine/spec/device.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/a100.h"

namespace shardscape {
namespace {

TEST(DevicePeaks, A100DataSheet) {
  const DeviceSpec device = test::a100();
  // 312 TFLOP/s bf16, 156 tf32, 19.5 fp32 vector, 2039 GB/s: the data sheet's three digits.
  EXPECT_NEAR(device.tensor_peak(Precision::bf16).value(), 312e12, 0.5e12);
  EXPECT_NEAR(device.tensor_peak(Precision::tf32).value(), 156e12, 0.5e12);
  EXPECT_NEAR(device.vector_peak().value(), 19.5e12, 0.05e12);
  EXPECT_DOUBLE_EQ(device.hbm_peak().value(), 2039e9);
  EXPECT_EQ(device.memory_capacity().value(), 85'899'345'920.0);  // 80 GiB
  EXPECT_DOUBLE_EQ(device.hbm_sustained().value(), 0.8 * 2039e9);
  EXPECT_DOUBLE_EQ(device.l2_sustained().value(), 0.8 * 5120 * 1.41e9);
}

TEST(DevicePeaks, OnlyUnitsThatExistAreSupported) {
  const DeviceSpec device = test::a100();
  EXPECT_TRUE(device.supports(Precision::bf16));
  EXPECT_FALSE(device.supports(Precision::fp8));
  EXPECT_EQ(device.tensor_peak(Precision::fp8).value(), 0);
}

TEST(DevicePeaks, EachPartMovesOnlyItsPeak) {
  const DeviceSpec base = test::a100();
  DeviceSpec device = base;
  device.hbm.stacks = 10;
  EXPECT_DOUBLE_EQ(device.hbm_peak() / base.hbm_peak(), 2);
  EXPECT_DOUBLE_EQ(device.memory_capacity() / base.memory_capacity(), 2);
  EXPECT_EQ(device.tensor_peak(Precision::bf16), base.tensor_peak(Precision::bf16));
  device = base;
  device.sm.clock = 2 * base.sm.clock;
  EXPECT_DOUBLE_EQ(device.tensor_peak(Precision::bf16) / base.tensor_peak(Precision::bf16), 2);
  EXPECT_DOUBLE_EQ(device.vector_peak() / base.vector_peak(), 2);
  EXPECT_DOUBLE_EQ(device.l2_sustained() / base.l2_sustained(), 2);
  EXPECT_EQ(device.hbm_peak(), base.hbm_peak());
}

TEST(DevicePower, TheLimitAndTheUnitsMeetInA4Norm) {
  DeviceSpec device = test::a100();
  device.sustained.tensor = 1;
  const double peak = device.tensor_peak(Precision::bf16).value();
  EXPECT_DOUBLE_EQ(device.tensor_sustained(Precision::bf16).value(), peak);
  // 340 W at such an energy pay for as many FLOPs as the units do: the 4-norm of two equal times is 2^(1/4).
  device.power = Watts(400);
  device.energy = {60, 340 / peak * 1e12, 0.5, 0.25, 30, 400};
  EXPECT_NEAR(device.tensor_sustained(Precision::bf16).value(), peak / std::pow(2, 0.25), 1e-6 * peak);
  // Half the rate per clock takes as much power. fp8 is as its key says.
  EXPECT_DOUBLE_EQ(device.flop_joules(Precision::tf32), 2 * device.flop_joules(Precision::bf16));
  EXPECT_DOUBLE_EQ(device.flop_joules(Precision::fp16), device.flop_joules(Precision::bf16));
  EXPECT_DOUBLE_EQ(device.flop_joules(Precision::fp8), 0.5 * device.flop_joules(Precision::bf16));
  EXPECT_DOUBLE_EQ(device.flop_joules(Precision::fp4), 0.25 * device.flop_joules(Precision::bf16));
}

}  // namespace
}  // namespace shardscape
