// Do the kernels of latent attention keep to what they are made of?
#include "engine/compute/latent_attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/a100.h"

namespace shardscape::compute {
namespace {

DeviceSpec of(Architecture architecture) {
  DeviceSpec device = test::a100();
  device.architecture = architecture;
  return device;
}

LatentShape asks(double batch, double heads, double queries, double keys) {
  LatentShape shape;
  shape.batch = batch, shape.heads = heads, shape.queries = queries, shape.keys = keys;
  return shape;
}
double decoded(double batch, double heads, double keys, Architecture architecture,
               Precision cache = Precision::bf16) {
  return latent_decode(asks(batch, heads, 1, keys), cache, of(architecture)).time.value();
}

TEST(LatentDecode, OnAmpereASequenceIsOneCta) {
  // 16,384 keys are 256 steps of 7.66 us, whatever the batch as long as half of the SMs are free.
  const double alone = 3.18e-6 + 3.81e-6 + 16 * 28e-9 + 256 * 7.66e-6;
  EXPECT_NEAR(decoded(1, 16, 16384, Architecture::ampere), alone, 1e-9);
  EXPECT_NEAR(decoded(54, 16, 16384, Architecture::ampere), alone, 0.02 * alone);
  // More share pairs of SMs: 1.4 times as long; and a 109th takes a round of its own.
  const double shared = 3.81e-6 + 16 * 28e-9 + 1.4 * 256 * 7.66e-6;
  EXPECT_NEAR(decoded(108, 16, 16384, Architecture::ampere), shared, 0.02 * shared);
  EXPECT_NEAR(decoded(109, 16, 16384, Architecture::ampere), shared + alone, 0.02 * shared);
}

TEST(LatentDecode, LongCachesStreamAtTheShareOfHbm) {
  // 576 values a token for all heads: 256 sequences of 32,768 tokens in two bytes are 9.66 GB.
  const double bytes = 2.0 * 576 * 256 * 32768;
  DeviceSpec device = of(Architecture::hopper);
  device.hbm.bandwidth_per_stack = BytesPerSecond(20e9);  // slow, so that it counts alone
  const auto cost = latent_decode(asks(256, 16, 1, 32768), Precision::bf16, device);
  EXPECT_NEAR(cost.time.value(), bytes / (0.882 * 100e9), 0.02 * cost.time.value());
  EXPECT_EQ(cost.bound, Bound::hbm);
  EXPECT_NEAR(cost.work.bytes.value(), bytes, 0.01 * bytes);
  const auto eight = latent_decode(asks(256, 16, 1, 32768), Precision::fp8, device);
  EXPECT_NEAR(eight.time / cost.time, 0.5, 0.01);
}

TEST(LatentDecode, KeysAreCutFromHopperOn) {
  const double ampere = decoded(1, 16, 65536, Architecture::ampere);
  const double hopper = decoded(1, 16, 65536, Architecture::hopper);
  EXPECT_GT(ampere, 20 * hopper);
  // Flops: scores over 576 values, sums over 512.
  const auto cost = latent_decode(asks(3, 16, 1, 1000), Precision::bf16, of(Architecture::hopper));
  EXPECT_EQ(cost.work.flops.value(), 2.0 * 3 * 16 * 1000 * (576 + 512));
}

TEST(LatentDecode, MoreOfAnythingIsNotFaster) {
  for (const Architecture architecture :
       {Architecture::ampere, Architecture::hopper, Architecture::blackwell}) {
    double before = 0;
    for (double keys = 1; keys < 1e5; keys *= 1.7) {
      const double now = decoded(8, 16, std::floor(keys), architecture);
      EXPECT_GE(now, before * 0.999) << keys;
      before = now;
    }
    before = 0;
    for (double batch = 1; batch < 2000; batch *= 1.5) {
      const double now = decoded(std::floor(batch), 16, 4096, architecture);
      EXPECT_GE(now, before * 0.8) << batch;  // rounds of cut keys are coarse
      before = now;
    }
  }
}

TEST(LatentPrompt, LongOnesReachTheirShareOfThePeak) {
  // 640 FLOPs a score. The norm of exponentials and products keeps it below the share of products alone.
  const DeviceSpec device = of(Architecture::ampere);
  const auto cost = latent_prompt(asks(1, 128, 32768, 32768), Precision::bf16, device);
  const double flops = 640.0 * 128 * 32768 * 32768 / 2;
  EXPECT_EQ(cost.work.flops.value(), flops);
  const double share = flops / cost.time.value() / device.tensor_peak(Precision::bf16).value();
  EXPECT_LT(share, 0.587);
  EXPECT_GT(share, 0.8 * 0.587);
  EXPECT_EQ(cost.bound, Bound::compute);
}

TEST(LatentPrompt, OneBlockIsItsCallAndItsScores) {
  // 64 queries on 64 keys of one head: 2.37 us and 4,096 scores, each the 2.99-norm of 1 / (6.89 a clock) and
  // 640 FLOPs at 0.587 of an SM's 2,048 a clock; 82 kB of Q, K, V and O, 0.801 times, and 4.73 x 576 of cache each.
  const double clock = 1.41e9;
  const double score =
      std::pow(std::pow(1 / 6.89, 2.99) + std::pow(640 / (0.587 * 2048), 2.99), 1 / 2.99) / clock;
  const double stream = (0.801 * 1280 * 64 + 64 * 4.73 * 576) / 2039e9;
  const auto cost = latent_prompt(asks(1, 1, 64, 64), Precision::bf16, of(Architecture::ampere));
  EXPECT_NEAR(cost.time.value(), 11.5e-6 + 2.37e-6 + 4096 * score + stream + (2.37e-6 + 4096 * score) * 0,
              5e-8);
}

TEST(LatentPrompt, CachesOfOneByteConvertFirst) {
  const DeviceSpec device = of(Architecture::hopper);
  const auto two = latent_prompt(asks(64, 16, 128, 128), Precision::bf16, device);
  const auto one = latent_prompt(asks(64, 16, 128, 128), Precision::fp8, device);
  EXPECT_NEAR((one.work.bytes - two.work.bytes).value(), (1.86 - 0.594) * 1280 * 64 * 128 * 16, 1);
}

}  // namespace
}  // namespace shardscape::compute
