// Do the attention kernels by name keep to what they are made of, and each to its own device?
#include "engine/compute/fused_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "engine/compute/kernel_alone.h"
#include "tests/support/a100.h"

namespace shardscape::compute {
namespace {

DeviceSpec hopper() {
  DeviceSpec device = test::a100();
  device.architecture = Architecture::hopper;
  device.sm.count = 132;
  device.sm.clock = Hertz(1.83e9);
  device.sm.tensor_flops_per_clock[static_cast<std::size_t>(Precision::bf16)] = 4096;
  device.hbm.bandwidth_per_stack = BytesPerSecond(670e9);
  device.sustained.tensor = 1;
  return device;
}

AttentionShape prompt(double batch, double heads, double kv_heads, double tokens, double dim = 128) {
  return {batch, heads, kv_heads, dim, tokens, tokens, 0.5, false, 0};
}
AttentionShape token(double batch, double heads, double kv_heads, double cached, double dim = 128) {
  return {batch, heads, kv_heads, dim, 1, cached, 1, false, 0};
}

double forward(const AttentionShape& shape, const DeviceSpec& device) {
  return fused_forward(shape, AttentionKernel::trtllm, Precision::bf16, device).time.value();
}
double decoded(const AttentionShape& shape, const DeviceSpec& device) {
  return fused_decode(shape, AttentionKernel::trtllm, Precision::bf16, device).time.value();
}

TEST(FusedAttention, PiecesOfARingHaveTheScoresOfTheWhole) {
  // 1,024 queries of 4,096 keys, causally balanced: their own triangle, and three pieces of which they see half. So
  // 1/2 + 3/2 squares of 1,024 scores, the half of 4 that one kernel over all keys has.
  AttentionShape whole = prompt(2, 8, 4, 4096);
  whole.queries = 1024;
  AttentionShape ring = whole;
  ring.pieces = 4;
  std::vector<AttentionShape> met;
  const auto cost = [&](const AttentionShape& shape) {
    met.push_back(shape);
    return OperatorCost{
        Seconds(1 + shape.scores()), Bound::compute, {Flops(shape.scores() * shape.visible), {}}};
  };
  EXPECT_EQ(in_pieces(whole, cost).time, Seconds(1 + whole.scores()));
  EXPECT_EQ(met.size(), 1);
  const OperatorCost sum = in_pieces(ring, cost);
  ASSERT_EQ(met.size(), 3);
  EXPECT_EQ(sum.work.flops, Flops(whole.scores() / 2));
  EXPECT_EQ(sum.time, Seconds(4 + whole.scores() / 4 + 3 * whole.scores() / 8));
  EXPECT_EQ(met[1].keys, 1024);
  EXPECT_EQ(met[1].visible, 0.5);
  EXPECT_EQ(met[2].queries * met[2].keys * met[2].visible, 1024 * 512);
}

TEST(FusedAttention, OneBlockIsItsStartAndItsScores) {
  // 128 queries on 128 keys: 3.37 us and 16,384 scores, each the 4.59-norm of 1 / (8.52 a clock) and 512 FLOPs at
  // 0.612 of an SM's 4,096 a clock.
  const double clock = 1.83e9;
  const double score =
      std::pow(std::pow(1 / 8.52, 4.59) + std::pow(512 / (0.612 * 4096), 4.59), 1 / 4.59) / clock;
  EXPECT_NEAR(forward(prompt(1, 1, 1, 128), hopper()), 3e-6 + 3.37e-6 + 128 * 128 * score, 1e-10);
}

TEST(FusedAttention, LongPromptsReachTheirShareOfThePeak) {
  // 128 wide the products take 0.204 clocks of a score and exponentials 0.117: the norm adds 1.6 %, starts and
  // the diagonal a little more.
  const DeviceSpec device = hopper();
  const AttentionShape shape = prompt(4, 32, 8, 32768);
  const double flops = 4 * 128 * shape.scores() / 2;
  const double share = flops / forward(shape, device) / device.tensor_peak(Precision::bf16).value();
  EXPECT_LT(share, 0.612);
  EXPECT_GT(share, 0.97 * 0.612 / 1.016);
}

TEST(FusedAttention, MoreHeadsThanSmsTakeTurns) {
  DeviceSpec device = hopper();
  device.hbm.bandwidth_per_stack = BytesPerSecond(1e18);
  const double one = forward(prompt(1, 1, 1, 128), device) - 3e-6;
  // A block on each SM lasts as long as half a longest block more than one; ten on each twice as long as five.
  EXPECT_NEAR(forward(prompt(132, 1, 1, 128), device) - 3e-6, 1.5 * one, 1e-9);
  const double five = forward(prompt(660, 1, 1, 128), device), ten = forward(prompt(1320, 1, 1, 128), device);
  EXPECT_NEAR(ten - five, 5 * one, 1e-8);
}

TEST(FusedAttention, UnknownArchitecturesHaveFlashAttention2) {
  const DeviceSpec device = test::a100();
  const AttentionShape shape = prompt(2, 16, 4, 2048);
  for (const AttentionKernel kernel :
       {AttentionKernel::flash3, AttentionKernel::cudnn, AttentionKernel::trtllm}) {
    EXPECT_EQ(fused_forward(shape, kernel, Precision::bf16, device).time,
              flash_forward(shape, Precision::bf16, device).time);
    EXPECT_EQ(fused_backward(shape, kernel, Precision::bf16, device).time,
              flash_backward(shape, Precision::bf16, device).time);
    EXPECT_EQ(fused_decode(token(2, 16, 4, 2048), kernel, Precision::bf16, device).time,
              decode(token(2, 16, 4, 2048), Precision::bf16, device).time);
  }
  // flash is FlashAttention-2 wherever it runs.
  EXPECT_EQ(fused_forward(shape, AttentionKernel::flash, Precision::bf16, hopper()).time,
            flash_forward(shape, Precision::bf16, hopper()).time);
}

TEST(FusedAttention, BackwardRunsAtTheShareOfItsKernel) {
  const AttentionShape shape = prompt(4, 32, 32, 8192);
  const double flops = 10 * 128 * shape.scores() / 2;
  const DeviceSpec device = hopper();
  const double peak = device.tensor_peak(Precision::bf16).value();
  const auto share = [&](AttentionKernel kernel) {
    return flops / (fused_backward(shape, kernel, Precision::bf16, device).time.value() - 9e-6) / peak;
  };
  EXPECT_NEAR(share(AttentionKernel::cudnn), 0.45, 1e-3);
  EXPECT_NEAR(share(AttentionKernel::flash_alibi), 0.15 / (1 + 400.0 / 8192), 1e-3);
}

TEST(FusedAttention, LargeBatchesStreamTheirCache) {
  const DeviceSpec device = hopper();
  const double bytes = 2 * 2.0 * 256 * 8 * 8192 * 128 + 4.0 * 256 * 32 * 128;
  const double stream = bytes / (0.95 * 3350e9);
  EXPECT_GE(decoded(token(256, 32, 8, 8192), device), stream);
  EXPECT_LT(decoded(token(256, 32, 8, 8192), device), 1.1 * stream);
}

TEST(FusedAttention, LargeGroupsLoseTheSharedStream) {
  const DeviceSpec device = hopper();
  EXPECT_GT(decoded(token(64, 64, 1, 4096), device), 5 * decoded(token(64, 32, 1, 4096), device));
}

TEST(FusedAttention, LongKeysAreCutWhereSmsIdle) {
  // One KV head of one sequence: uncut, its 65,536 keys would go through one SM.
  const DeviceSpec device = hopper();
  const double one = decoded(token(1, 8, 1, 65536), device), many = decoded(token(132, 8, 1, 65536), device);
  EXPECT_LT(one, many / 5);
  for (double cached = 64; cached < 1e5; cached *= 1.3) {
    EXPECT_LE(decoded(token(1, 8, 1, cached), device),
              decoded(token(1, 8, 1, 1.3 * cached), device) * (1 + 1e-12));
  }
}

TEST(FusedAttention, TilesOfKeysAreDealtToEightWavesOfHopper) {
  // Memory without end, so that a call is its CTAs. One group of 8 heads, d = 128: a CTA starts in 3.46 us + 128 x
  // (5.34 ns + 8 x 0.35 ns) and takes 256 x (2 x 128 x 2 / (420 x clock) + 8 x 128 x 5.75 ps) for a tile.
  DeviceSpec device = hopper();
  device.hbm.bandwidth_per_stack = BytesPerSecond(1e18);
  const double start = 3.46e-6 + 128 * (5.34e-9 + 8 * 0.35e-9);
  const double tile = 256 * (512 / (420 * device.sm.clock.value()) + 8 * 128 * 5.75e-12);
  const double call = 4.99e-6 - device.kernel_latency.value(), merge = 6.77e-6;
  ASSERT_EQ(device.sm.count, 132);
  const auto expect = [&](double keys, double rounds, double tiles, bool cut) {
    EXPECT_NEAR(decoded(token(1, 8, 1, keys), device),
                call + rounds * (start + tiles * tile) + (cut ? merge : 0), 1e-10)
        << keys;
  };
  expect(256, 1, 1, false);
  expect(512, 1, 1, true);             // two CTAs of a tile each
  expect(132 * 256, 1, 1, true);       // one for every SM
  expect(133 * 256, 2, 1, true);       // a second round
  expect(8 * 132 * 256, 8, 1, true);   // as many splits as the kernel aims at
  expect(16 * 132 * 256, 8, 2, true);  // then each takes more
}

TEST(FusedAttention, KeysOfLoneHeadsAreDealtToTheTwoCtasOfAnSmOfHopper) {
  // 33 heads: 264 CTAs are eight for each, of 4,096 keys 32 tiles of 128, four a CTA. All are resident at once; their
  // starts follow each other two by two.
  DeviceSpec device = hopper();
  device.hbm.bandwidth_per_stack = BytesPerSecond(1e18);
  device.l2.capacity = Bytes(1e18);
  const double clock = device.sm.clock.value(), start = 1.19e-6 + 128 * 5e-10;
  const double work = std::max(2 * start, start + 4 * 128 * 512 / (25 * clock)) + 14.3e-6;
  const double l2 = 33 * 4096 * 512.0 / (24 * 132 * clock);
  const double both = std::pow(std::pow(work, 2.23) + std::pow(l2, 2.23), 1 / 2.23);
  EXPECT_NEAR(decoded(token(1, 33, 33, 4096), device), 6.72e-6 - device.kernel_latency.value() + both, 1e-10);
}

TEST(FusedAttention, AKernelAloneAlsoPreparesItsInputs) {
  const DeviceSpec device = hopper();
  const AttentionShape shape = prompt(4, 32, 8, 4096);
  const auto alone = prompt_attention_alone(shape, AttentionKernel::trtllm, Precision::bf16, device);
  // 4 bytes of queries per element of two bytes and 2.13 of keys, at 0.92 of HBM, and a call of 11.6 us.
  const double stream = 2 * 4.0 * 4096 * 128 * (4 * 32 + 2.13 * 8) / (0.92 * 3350e9);
  EXPECT_NEAR(alone.time.value() - forward(shape, device), 11.6e-6 - 3e-6 + stream, 1e-10);
  DeviceSpec ampere = test::a100();
  ampere.architecture = Architecture::ampere;
  const AttentionShape one = token(64, 32, 8, 4096);
  EXPECT_EQ(decode_attention_alone(one, AttentionKernel::trtllm, Precision::bf16, ampere).time,
            decode_attention_alone(one, AttentionKernel::trtllm, Precision::fp8, ampere).time);
}

double decoded_alone(const AttentionShape& shape, const DeviceSpec& device) {
  return fused_decode(shape, AttentionKernel::trtllm, Precision::bf16, device, LaunchedBy::itself)
      .time.value();
}

TEST(FusedAttention, OnAmpereALaunchFindsWhatTheOneBeforeLeft) {
  DeviceSpec device = test::a100();
  device.architecture = Architecture::ampere;
  const double rate = 0.849 * device.hbm_peak().value(), l2 = device.l2.capacity.value();
  // Many single heads stream their cache; 0.732 of the L2 is there already.
  const AttentionShape single = token(64, 40, 40, 4096);
  EXPECT_NEAR(decoded(single, device) - decoded_alone(single, device), 0.732 * l2 / rate, 2e-7);
  // A group's first bytes take longer, by 48.6 us once L2 is full.
  const AttentionShape group = token(64, 32, 8, 32768);
  EXPECT_NEAR(decoded_alone(group, device) - decoded(group, device), 48.6e-6, 1e-6);
  // On Hopper kernels have neither of these costs.
  for (const AttentionShape& shape : {single, group})
    EXPECT_EQ(decoded(shape, hopper()), decoded_alone(shape, hopper()));
}

TEST(FusedAttention, TwoLoneCtasShareAnSmOfAmpere) {
  // 216 single heads: both CTAs of an SM start one after the other (1.92 us each) and stream side by side: a step
  // of 64 keys is 64 x 512 bytes at 14.3 a clock.
  DeviceSpec device = test::a100();
  device.architecture = Architecture::ampere;
  device.hbm.bandwidth_per_stack = BytesPerSecond(1e18);
  device.l2.capacity = Bytes(1e18);
  const double clock = device.sm.clock.value(), stream = 16 * 64 * 512 / (14.3 * clock);
  const double work = 1.92e-6 + stream, l2 = 216 * 1024 * 512.0 / (31 * 108 * clock);
  const double both = std::pow(std::pow(work, 6) + std::pow(l2, 6), 1.0 / 6);
  const double call = 8.79e-6 - device.kernel_latency.value();
  ASSERT_EQ(device.sm.count, 108);
  EXPECT_NEAR(decoded(token(1, 216, 216, 1024), device), call + both, 1e-10);
}

TEST(FusedAttention, RatesOfADeviceScaleTheWorkOfItsKernels) {
  DeviceSpec device = hopper(), fast = hopper();
  fast.attention.prompt_rate = 2;
  fast.attention.decode_rate = 4;
  const AttentionShape read = prompt(4, 32, 8, 4096), made = token(64, 32, 8, 4096);
  EXPECT_NEAR(forward(read, device) - 3e-6, 2 * (forward(read, fast) - 3e-6), 1e-10);
  const double call = 4.99e-6 - 3e-6;
  EXPECT_NEAR(decoded(made, device) - call, 4 * (decoded(made, fast) - call), 1e-10);
}

}  // namespace
}  // namespace shardscape::compute
