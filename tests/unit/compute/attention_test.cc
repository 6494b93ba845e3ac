#include "engine/compute/attention.h"

#include <gtest/gtest.h>

#include "tests/support/settings.h"

namespace shardscape::compute {
namespace {

constexpr Precision kBf16 = Precision::bf16;

/// A100 with vector units and memory so fast that only the matrix products take time.
DeviceSpec only_products() {
  DeviceSpec device = test::a100();
  device.sm.vector_flops_per_clock = 1e12;
  device.hbm.bandwidth_per_stack = BytesPerSecond(1e20);
  device.kernel_latency = Seconds(0);
  return device;
}

AttentionShape shape_of(double batch, double heads, double kv_heads, double dim, double queries, double keys,
                        double visible) {
  return {batch, heads, kv_heads, dim, queries, keys, visible, false};
}

// Q K^T and P V are 2 s^2 d FLOPs per head each: 4 b a s^2 d forward (Dao 2023), half of it under a causal
// mask. Backward repeats Q K^T and adds dV, dP, dQ, dK: 5 products instead of 2.
TEST(Flash, FlopsAreTheClosedForm) {
  const DeviceSpec device = only_products();
  const double rate = 0.85 * device.tensor_peak(kBf16).value();
  const AttentionShape full = shape_of(2, 16, 16, 128, 4096, 4096, 1);
  AttentionShape causal = full;
  causal.visible = 0.5;
  const double forward = 4.0 * 2 * 16 * 4096.0 * 4096 * 128 / rate;
  EXPECT_NEAR(flash_forward(full, kBf16, device).time.value(), forward, 1e-6 * forward);
  EXPECT_NEAR(flash_forward(causal, kBf16, device).time.value(), forward / 2, 1e-6 * forward);
  EXPECT_NEAR(flash_backward(causal, kBf16, device).time.value(), 2.5 * forward / 2, 1e-6 * forward);
  EXPECT_EQ(flash_forward(full, kBf16, device).bound, Bound::compute);
}

// Few queries against many keys: Q and O are small, K and V stream once, 2 x 2 bytes per key element and KV
// head (not per query head).
TEST(Flash, ShortQueriesStreamKeysAndValuesOfTheKvHeads) {
  const DeviceSpec device = test::a100();
  const AttentionShape shape = shape_of(1, 8, 2, 128, 8, 1e6, 1);
  const double bytes = 2.0 * 128 * (2 * 8 * 8 + 2 * 2 * 1e6);
  EXPECT_NEAR(flash_forward(shape, kBf16, device).time.value(), 3e-6 + bytes / device.hbm_sustained().value(),
              1e-12);
  EXPECT_EQ(flash_forward(shape, kBf16, device).bound, Bound::hbm);
}

// Streaming kernels of unfused attention move 4 bytes per score forward (softmax in place: read, write), and
// with dropout 4 more and the 1-byte mask; backward 6, with dropout 5 more.
TEST(Naive, ScoreTrafficIsTheClosedForm) {
  DeviceSpec device = test::a100();
  device.kernel_latency = Seconds(0);
  AttentionShape shape = shape_of(1, 96, 96, 128, 2048, 2048, 0.5);
  const double scores = 96.0 * 2048 * 2048;
  const double plain_forward = naive_forward(shape, kBf16, device).time.value();
  const double plain_backward = naive_backward(shape, kBf16, device).time.value();
  shape.dropout = true;
  const double per_byte = scores / device.hbm_sustained().value();
  EXPECT_NEAR(naive_forward(shape, kBf16, device).time.value() - plain_forward, 5 * per_byte,
              1e-9 * per_byte);
  EXPECT_NEAR(naive_backward(shape, kBf16, device).time.value() - plain_backward, 5 * per_byte,
              1e-9 * per_byte);
  // The products are two batched products forward and four backward; the rest is the softmax.
  const double forward_products =
      (gemm({2048, 2048, 128, 96}, kBf16, device).time + gemm({2048, 128, 2048, 96}, kBf16, device).time)
          .value();
  EXPECT_NEAR(plain_forward - forward_products, 4 * per_byte, 1e-9 * per_byte);
  EXPECT_NEAR(plain_backward - 2 * forward_products, 6 * per_byte, 1e-9 * per_byte);
}

TEST(Naive, TheMaskSavesNothing) {
  AttentionShape shape = shape_of(1, 8, 8, 128, 1024, 1024, 0.5);
  const Seconds causal = naive_forward(shape, kBf16, test::a100()).time;
  shape.visible = 1;
  EXPECT_EQ(naive_forward(shape, kBf16, test::a100()).time, causal);
  EXPECT_LT(flash_forward(shape, kBf16, test::a100()).time, causal);
}

// 16 requests of 2000 cached tokens, 8 KV heads of 128, bf16: 2 x 2 x 16 x 2000 x 8 x 128 bytes.
TEST(Decode, StreamsTheCache) {
  const DeviceSpec device = test::a100();
  const OperatorCost cost = decode(shape_of(16, 64, 8, 128, 1, 2000, 1), kBf16, device);
  EXPECT_DOUBLE_EQ(cost.time.value(), 3e-6 + 4.0 * 16 * 2000 * 8 * 128 / device.hbm_sustained().value());
  EXPECT_EQ(cost.bound, Bound::hbm);
  // One query head per KV head: an fp8 cache is half the stream.
  const OperatorCost half = decode(shape_of(16, 8, 8, 128, 1, 2000, 1), Precision::fp8, device);
  EXPECT_DOUBLE_EQ((half.time - device.kernel_latency).value(),
                   (cost.time - device.kernel_latency).value() / 2);
}

}  // namespace
}  // namespace shardscape::compute
