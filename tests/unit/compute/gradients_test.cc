// Accumulation and the optimizer are streams on top of products whose time is known.
#include "engine/compute/gradients.h"

#include <gtest/gtest.h>

#include "tests/support/a100.h"

namespace shardscape::compute {
namespace {

TEST(OptimizerStep, StreamsItsState) {
  // Adam on 1e9 parameters in bf16 with fp32 state: reads gradient 4, master copy 4 and moments 8, writes
  // master copy 4, moments 8 and weights 2: 30 bytes each at 80 % of 2,039 GB/s, in one kernel of 3 us.
  const OperatorCost cost = optimizer_step(1e9, {}, test::a100());
  EXPECT_DOUBLE_EQ(cost.time.value(), 3e-6 + 30e9 / (0.8 * 2039e9));
  EXPECT_EQ(cost.bound, Bound::hbm);
  // All in fp32 the weights take 4; without a master copy 8 bytes less.
  EXPECT_DOUBLE_EQ((OptimizerState{4, 0, 8, 4}.traffic()), 24);
}

TEST(OptimizerStep, SmallOnesAreALaunchAndNoneIsNothing) {
  const OperatorCost cost = optimizer_step(1000, {}, test::a100());
  EXPECT_DOUBLE_EQ(cost.time.value(), 3e-6 + 30e3 / (0.8 * 2039e9));
  EXPECT_EQ(cost.bound, Bound::launch);
  EXPECT_EQ(optimizer_step(0, {}, test::a100()).time.value(), 0);
}

TEST(OptimizerStep, ArithmeticBoundsWhereMemoryIsFastEnough) {
  DeviceSpec device = test::a100();
  device.hbm.bandwidth_per_stack = 100 * device.hbm.bandwidth_per_stack;
  const OperatorCost cost = optimizer_step(1e9, {}, device);
  EXPECT_EQ(cost.bound, Bound::compute);
  EXPECT_DOUBLE_EQ(cost.time.value(), 3e-6 + 22e9 / (108 * 128 * 1.41e9));
}

TEST(WeightGradient, ProductAndAccumulationAreTheFusedKernel) {
  const DeviceSpec device = test::a100();
  for (const GemmShape& shape :
       {GemmShape{4096, 12288, 2048, 1}, {8192, 1024, 512, 1}, {128, 128, 8192, 1}}) {
    for (const Precision precision : {Precision::bf16, Precision::fp16, Precision::tf32}) {
      const WeightGradientCost cost = weight_gradient(shape, precision, 4, device);
      const double fused = gemm(shape, precision, device, {4, true}).time.value();
      EXPECT_NEAR((cost.product.time + cost.accumulation.time).value() / fused, 1, 1e-14);
      EXPECT_GE(cost.accumulation.time.value(), 0);
    }
  }
}

TEST(WeightGradient, AProductBoundByItsOutputPaysTheBytesOfTheBuffer) {
  // 16,384 x 16,384 over 64 tokens: 0.14 TFLOP take 0.5 ms, while the operands are 4 MB and the output 0.5 GB
  // in bf16, 2.1 GB when fp32 is read and written. So the kernel is bound by HBM, and accumulation adds
  // 8 - 2 bytes per element at least at the sustained bandwidth.
  const DeviceSpec device = test::a100();
  const WeightGradientCost cost = weight_gradient({16384, 16384, 64, 1}, Precision::bf16, 4, device);
  EXPECT_EQ(cost.accumulation.bound, Bound::hbm);
  const double elements = 16384.0 * 16384.0;
  EXPECT_GE(cost.accumulation.time.value(), 0.5 * 6 * elements / (0.8 * 2039e9));
  EXPECT_LE(cost.accumulation.time.value(), 1.01 * 8 * elements / (0.8 * 2039e9));
}

}  // namespace
}  // namespace shardscape::compute
