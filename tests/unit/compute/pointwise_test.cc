// Pointwise operators are a roofline with a price per kernel.
#include "engine/compute/pointwise.h"

#include <gtest/gtest.h>

#include "tests/support/a100.h"

namespace shardscape::compute {
namespace {

TEST(Pointwise, TheLargerOfTrafficAndArithmetic) {
  const DeviceSpec device = test::a100();
  const double stream = 1e9 / (0.8 * 2039e9), arithmetic = 1e11 / (108 * 128 * 1.41e9);
  const OperatorCost traffic = pointwise(Bytes(1e9), Flops(1e9), 1, device);
  EXPECT_DOUBLE_EQ(traffic.time.value(), 3e-6 + stream);
  EXPECT_EQ(traffic.bound, Bound::hbm);
  const OperatorCost dense = pointwise(Bytes(1e9), Flops(1e11), 1, device);
  EXPECT_DOUBLE_EQ(dense.time.value(), 3e-6 + arithmetic);
  EXPECT_EQ(dense.bound, Bound::compute);
}

TEST(Pointwise, KernelsArePaidEach) {
  const DeviceSpec device = test::a100();
  const OperatorCost cost = pointwise(Bytes(1000), Flops(0), 5, device);
  EXPECT_DOUBLE_EQ(cost.time.value(), 15e-6 + 1000 / (0.8 * 2039e9));
  EXPECT_EQ(cost.bound, Bound::launch);
}

TEST(Pointwise, RidgePoint) {
  // Both sides equal at vector peak / bandwidth FLOPs per byte.
  const DeviceSpec device = test::a100();
  const double ridge = device.vector_peak().value() / device.hbm_sustained().value();
  EXPECT_EQ(pointwise(Bytes(1e9), Flops(0.99 * ridge * 1e9), 1, device).bound, Bound::hbm);
  EXPECT_EQ(pointwise(Bytes(1e9), Flops(1.01 * ridge * 1e9), 1, device).bound, Bound::compute);
}

}  // namespace
}  // namespace shardscape::compute
