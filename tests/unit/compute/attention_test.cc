// Does the attention core cost the FLOPs and bytes that its closed forms say?
#include "engine/compute/attention.h"

#include <gtest/gtest.h>

#include "tests/support/a100.h"

namespace shardscape::compute {
namespace {

/// A device where only matrix products take time.
DeviceSpec matrix_only() {
  DeviceSpec device = test::a100();
  device.sm.vector_flops_per_clock = 1e12;
  device.hbm.bandwidth_per_stack = BytesPerSecond(1e21);
  device.kernel_latency = Seconds(0);
  return device;
}

/// A device where only HBM takes time.
DeviceSpec hbm_only() {
  DeviceSpec device = test::a100();
  device.sm.vector_flops_per_clock = 1e12;
  device.sm.tensor_flops_per_clock.fill(1e15);
  device.sm.sram_bytes_per_clock = 1e15;
  device.l2.bytes_per_clock = 1e18;
  device.kernel_latency = Seconds(0);
  return device;
}

AttentionShape self_attention(double visible) {
  AttentionShape shape;
  shape.batch = 2;
  shape.heads = 16;
  shape.kv_heads = 4;
  shape.head_dim = 128;
  shape.queries = shape.keys = 4096;
  shape.visible = visible;
  return shape;
}

TEST(FlashAttention, ForwardAndBackwardFlops) {
  // Dao 2023, section 4.1: forward 4 s^2 d heads, halved by a causal mask; backward 2.5 times the forward.
  const DeviceSpec device = matrix_only();
  const double full = 4.0 * 4096 * 4096 * 128 * 16 * 2;
  const double rate = 0.85 * device.tensor_peak(Precision::bf16).value();
  const double forward = flash_forward(self_attention(1), Precision::bf16, device).time.value();
  EXPECT_NEAR(forward, full / rate, 1e-6 * forward);
  const double causal = flash_forward(self_attention(0.5), Precision::bf16, device).time.value();
  EXPECT_NEAR(causal, 0.5 * forward, 1e-6 * forward);
  const double backward = flash_backward(self_attention(0.5), Precision::bf16, device).time.value();
  EXPECT_NEAR(backward, 2.5 * causal, 1e-6 * backward);
}

TEST(FlashAttention, NeverFasterThanItsFlops) {
  const DeviceSpec device = test::a100();
  const double rate = device.tensor_peak(Precision::bf16).value();
  const OperatorCost cost = flash_forward(self_attention(1), Precision::bf16, device);
  EXPECT_GT(cost.time.value(), 4.0 * 4096 * 4096 * 128 * 32 / rate);
  EXPECT_EQ(cost.bound, Bound::compute);
}

TEST(FlashAttention, TrafficIsTheTensorsOnce) {
  // Q and O: 16 heads, K and V: 4 heads; 2 batch x 4096 tokens x 128 x 2 B each. Backward moves their
  // gradients as well: twice that. The score matrix is in neither.
  const DeviceSpec device = hbm_only();
  const double bytes = 2.0 * (16 + 16 + 4 + 4) * 4096 * 128 * 2;
  const OperatorCost forward = flash_forward(self_attention(1), Precision::bf16, device);
  EXPECT_NEAR(forward.time.value(), bytes / (0.8 * 2039e9), 1e-3 * forward.time.value());
  EXPECT_EQ(forward.bound, Bound::hbm);
  const double backward = flash_backward(self_attention(1), Precision::bf16, device).time.value();
  EXPECT_NEAR(backward, 2 * bytes / (0.8 * 2039e9), 1e-3 * backward);
}

TEST(NaiveAttention, ScoreTraffic) {
  // Korthikanti et al. 2022, section 4.1: per score, softmax reads and writes 2 bytes, dropout reads and
  // writes 2 bytes and a 1-byte mask: 9 forward, 4 without dropout; backward softmax reads its output and the
  // gradient and writes one: 6, dropout 5 more: 11. Growing the sequence fourfold, this part grows 16 times;
  // what dropout adds is exactly 5 bytes per score on HBM and nothing else.
  const DeviceSpec device = hbm_only();
  AttentionShape shape = self_attention(0.5);
  const double scores = 2.0 * 16 * 4096 * 4096;
  const auto seconds = [&](auto core, bool dropout) {
    shape.dropout = dropout;
    return core(shape, Precision::bf16, device).time.value();
  };
  const double five = 5 * scores / (0.8 * 2039e9);
  EXPECT_NEAR(seconds(naive_forward, true) - seconds(naive_forward, false), five, 1e-6 * five);
  EXPECT_NEAR(seconds(naive_backward, true) - seconds(naive_backward, false), five, 1e-6 * five);
  // The products read or write the scores, too: QK^T writes them, PV reads them (2 B each): 4 + 4 B forward.
  // Backward: dP written, dS read for dQ and for dK, P read for dV: 4 x 2 B beside the softmax's 6.
  const double projections = 2.0 * 16 * 4096 * 128 * 2;  // one of Q, K, V, O in bytes
  const double forward = (8 * scores + 4 * projections) / (0.8 * 2039e9);
  EXPECT_NEAR(seconds(naive_forward, false), forward, 0.02 * forward);
  const double backward = (14 * scores + 8 * projections) / (0.8 * 2039e9);
  EXPECT_NEAR(seconds(naive_backward, false), backward, 0.02 * backward);
}

TEST(NaiveAttention, TheMaskSavesNothing) {
  const DeviceSpec device = test::a100();
  EXPECT_EQ(naive_forward(self_attention(0.5), Precision::bf16, device).time,
            naive_forward(self_attention(1), Precision::bf16, device).time);
  EXPECT_GT(naive_forward(self_attention(0.5), Precision::bf16, device).time,
            flash_forward(self_attention(0.5), Precision::bf16, device).time);
}

TEST(DecodeAttention, StreamsTheCache) {
  // K and V of 64 sequences x 2000 tokens x 8 KV heads x 128 in bf16: 2 x 2 x 64 x 2000 x 8 x 128 bytes.
  const DeviceSpec device = test::a100();
  AttentionShape shape;
  shape.batch = 64;
  shape.heads = 32;
  shape.kv_heads = 8;
  shape.head_dim = 128;
  shape.queries = 1;
  shape.keys = 2000;
  const double bytes = 4.0 * 64 * 2000 * 8 * 128;
  const OperatorCost cost = decode(shape, Precision::bf16, device);
  EXPECT_NEAR(cost.time.value(), 3e-6 + bytes / (0.8 * 2039e9), 1e-9);
  EXPECT_EQ(cost.bound, Bound::hbm);
  // A short cache is a kernel launch.
  shape.batch = 1;
  shape.keys = 10;
  EXPECT_EQ(decode(shape, Precision::bf16, device).bound, Bound::launch);
}

TEST(FlashAttention, NotAboveTheCapOfTheDevice) {
  DeviceSpec device = matrix_only();
  device.attention = {0.73, 0.6};
  const double peak = device.tensor_peak(Precision::bf16).value();
  const double full = 4.0 * 4096 * 4096 * 128 * 16 * 2;
  const double forward = flash_forward(self_attention(1), Precision::bf16, device).time.value();
  EXPECT_NEAR(forward, full / (0.73 * peak), 1e-6 * forward);
  const double backward = flash_backward(self_attention(1), Precision::bf16, device).time.value();
  EXPECT_NEAR(backward, 2.5 * full / (0.6 * peak), 1e-6 * backward);
}

TEST(FlashAttention, FewBlocksLeaveMultiprocessorsIdle) {
  // 1 sequence, 4 heads, 512 tokens: 4 x 4 blocks of 128 rows on 108 SMs.
  const DeviceSpec device = matrix_only();
  AttentionShape shape = self_attention(1);
  shape.batch = 1;
  shape.heads = shape.kv_heads = 4;
  shape.queries = shape.keys = 512;
  const double rate = 0.85 * device.tensor_peak(Precision::bf16).value() * 16 / 108;
  const double forward = flash_forward(shape, Precision::bf16, device).time.value();
  EXPECT_NEAR(forward, 4.0 * 512 * 512 * 128 * 4 / rate, 1e-9 * forward);
}

TEST(FlashAttention, SoftmaxRunsBetweenTheProducts) {
  // 10 vector operations per score at 19.5 TFLOP/s come on top of 512 matrix FLOPs.
  DeviceSpec device = matrix_only();
  const double products = flash_forward(self_attention(1), Precision::bf16, device).time.value();
  device.sm.vector_flops_per_clock = 128;
  const double scores = 2.0 * 16 * 4096 * 4096;
  const double both = flash_forward(self_attention(1), Precision::bf16, device).time.value();
  EXPECT_NEAR(both - products, 10 * scores / (108 * 128 * 1.41e9), 1e-6 * both);
}

TEST(FlashAttention, SmallOnesAreLaunches) {
  AttentionShape shape = self_attention(0.5);
  shape.batch = 1;
  shape.queries = shape.keys = 16;
  const DeviceSpec device = test::a100();
  const OperatorCost forward = flash_forward(shape, Precision::bf16, device);
  const OperatorCost backward = flash_backward(shape, Precision::bf16, device);
  EXPECT_EQ(forward.bound, Bound::launch);
  EXPECT_EQ(backward.bound, Bound::launch);
  EXPECT_GE(backward.time.value(), 9e-6);  // three kernels
}

AttentionShape one_long_sequence() {
  AttentionShape shape;
  shape.batch = 1;
  shape.heads = 8;
  shape.kv_heads = 1;
  shape.head_dim = 128;
  shape.queries = 1;
  shape.keys = 131072;
  return shape;
}

TEST(DecodeAttention, LongSequencesAreSplitOverTheMultiprocessors) {
  // One KV head: a single CTA would stream 67 MB at 64 B x 1.41 GHz, 744 us. 18 of them get 1.62 TB/s, 19 get
  // all that HBM gives, 1.63 TB/s: 41 us; their products need less (the matrix units of 19 SMs 23 us at 85 %
  // of the peak, the vector units 3 us). More would only leave more parts to the second kernel, which
  // combines 19 of 8 heads x 129 fp32.
  const DeviceSpec device = test::a100();
  const double bytes = 4.0 * 131072 * 128;
  const OperatorCost cost = decode(one_long_sequence(), Precision::bf16, device);
  const double parts = 2 * 4.0 * 8 * 19 * 129;
  EXPECT_NEAR(cost.time.value(), 6e-6 + bytes / (0.8 * 2039e9) + parts / (0.8 * 5120 * 1.41e9), 1e-10);
  EXPECT_EQ(cost.bound, Bound::hbm);
}

TEST(DecodeAttention, SplitsUntilTheirPartsCostWhatTheySave) {
  // Neither memory nor arithmetic is short: s CTAs stream 16.8 MB at s x 64 B x 1.41 GHz and leave s parts of
  // 1,024 heads x 129 fp32 that L2 takes and gives again at 5.78 TB/s. K / s + p s with K = 185.9 us and
  // p = 0.183 us is least at s = sqrt(K / p) = 31.9: 11.670 us with 31, 11.665 us with 32, 11.672 us with 33.
  DeviceSpec device = matrix_only();
  device.sm.tensor_flops_per_clock.fill(1e12);
  device.kernel_latency = Seconds(3e-6);
  AttentionShape shape = one_long_sequence();
  shape.heads = 1024;
  shape.keys = 32768;
  const double stream = 4.0 * 32768 * 128 / (32 * 64 * 1.41e9);
  const double parts = 2 * 4.0 * 1024 * 32 * 129 / (0.8 * 5120 * 1.41e9);
  EXPECT_NEAR(decode(shape, Precision::bf16, device).time.value(), 6e-6 + stream + parts, 1e-11);
}

TEST(DecodeAttention, StreamsThroughNoMorePortsThanThereAre) {
  // 64 sequences x 8 KV heads are 512 CTAs, which share the ports of 4 SMs.
  DeviceSpec device = matrix_only();
  device.sm.tensor_flops_per_clock.fill(1e12);
  device.sm.count = 4;
  AttentionShape shape = one_long_sequence();
  shape.batch = 64;
  shape.kv_heads = 8;
  shape.keys = 2000;
  const double bytes = 4.0 * 64 * 2000 * 8 * 128;
  const double time = decode(shape, Precision::bf16, device).time.value();
  EXPECT_NEAR(time, bytes / (4 * 64 * 1.41e9), 1e-9 * time);
}

TEST(DecodeAttention, ShortOnesAreNotWorthASecondKernel) {
  AttentionShape shape = one_long_sequence();
  shape.keys = 256;  // 131 kB through one port: 1.5 us
  const double bytes = 4.0 * 256 * 128;
  EXPECT_NEAR(decode(shape, Precision::bf16, test::a100()).time.value(), 3e-6 + bytes / (64 * 1.41e9), 1e-12);
}

TEST(DecodeAttention, QueriesOfAGroupShareTheStream) {
  // Up to 16 query heads per KV head cost the same matrix work and the same stream.
  AttentionShape shape = one_long_sequence();
  shape.kv_heads = 64;
  shape.heads = 64;
  DeviceSpec device = test::a100();
  device.sm.vector_flops_per_clock = 1e12;
  const double alone = decode(shape, Precision::bf16, device).time.value();
  shape.heads = 64 * 8;
  EXPECT_DOUBLE_EQ(decode(shape, Precision::bf16, device).time.value(), alone);
}

}  // namespace
}  // namespace shardscape::compute
