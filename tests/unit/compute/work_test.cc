// Do the costs of kernels come with the operations and bytes that they are of?
#include "engine/base/work.h"

#include <gtest/gtest.h>

#include "engine/compute/attention.h"
#include "engine/compute/gradients.h"
#include "tests/support/a100.h"

namespace shardscape::compute {
namespace {

/// Two sequences of 1,024 tokens, 8 query and 2 KV heads of 64.
AttentionShape grouped_queries() {
  AttentionShape shape;
  shape.batch = 2;
  shape.heads = 8;
  shape.kv_heads = 2;
  shape.head_dim = 64;
  shape.queries = shape.keys = 1024;
  shape.visible = 0.5;
  return shape;
}
constexpr double kPairs = 2 * 8 * 1024.0 * 1024;
constexpr double kSoftmaxPerPair = 10;

TEST(KernelWork, StreamsAreWhatTheyWereAskedFor) {
  const OperatorCost cost = pointwise(Bytes(3e9), Flops(7e9), 2, test::a100());
  EXPECT_EQ(cost.work, (Work{Flops(7e9), Bytes(3e9)}));
  OptimizerState state;  // reads 4, reads and writes 12, writes 2 bytes
  EXPECT_DOUBLE_EQ(optimizer_step(1e6, state, test::a100()).work.bytes.value(), 30e6);
}

TEST(KernelWork, FusedAttention) {
  // 4 flops per visible pair and dimension forward, 10 backward; Q and O of all heads, K and V of the KV
  // heads in 2 bytes, backward twice as many tensors.
  const AttentionShape shape = grouped_queries();
  const double tensors = 2.0 * 2 * 64 * (2 * 8 * 1024 + 2 * 2 * 1024);
  const Work forward = flash_forward(shape, Precision::bf16, test::a100()).work;
  EXPECT_DOUBLE_EQ(forward.flops.value(), 0.5 * kPairs * (4 * 64 + kSoftmaxPerPair));
  EXPECT_DOUBLE_EQ(forward.bytes.value(), tensors);
  const Work backward = flash_backward(shape, Precision::bf16, test::a100()).work;
  EXPECT_DOUBLE_EQ(backward.flops.value(), 0.5 * kPairs * (10 * 64 + kSoftmaxPerPair));
  EXPECT_DOUBLE_EQ(backward.bytes.value(), 2 * tensors);
}

TEST(KernelWork, UnfusedAttention) {
  // Two products forward and four backward, of all pairs; the scores go to memory and back at least once.
  const AttentionShape shape = grouped_queries();
  const Work forward = naive_forward(shape, Precision::bf16, test::a100()).work;
  EXPECT_DOUBLE_EQ(forward.flops.value(), kPairs * (4 * 64 + kSoftmaxPerPair));
  EXPECT_GE(forward.bytes.value(), kPairs * 4);
  const Work backward = naive_backward(shape, Precision::bf16, test::a100()).work;
  EXPECT_DOUBLE_EQ(backward.flops.value(), kPairs * (8 * 64 + kSoftmaxPerPair));
}

TEST(KernelWork, WeightGradientsAddUpToTheFusedKernel) {
  const GemmShape shape{4096, 1024, 2048, 1};
  const WeightGradientCost cost = weight_gradient(shape, Precision::bf16, 4, test::a100());
  const Work whole = cost.product.work + cost.accumulation.work;
  EXPECT_DOUBLE_EQ(whole.flops.value(), 2.0 * 4096 * 1024 * 2048);
  // Both operands in 2 bytes once, the sum read and written in 4.
  EXPECT_GE(whole.bytes.value(), 2.0 * 2048 * (4096 + 1024) + 8.0 * 4096 * 1024);
}

TEST(KernelWork, IsAddedAndShared) {
  Work work{Flops(6), Bytes(4)};
  work += {Flops(2), Bytes(4)};
  EXPECT_EQ(work, (Work{Flops(8), Bytes(8)}));
  EXPECT_EQ(0.25 * work - Work({Flops(1), Bytes(1)}), (Work{Flops(1), Bytes(1)}));
}

}  // namespace
}  // namespace shardscape::compute
