// Is the split that decode attention takes the fastest of all, and is no better device slower?
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/counter_rng.h"
#include "engine/compute/attention.h"
#include "tests/support/a100.h"
#include "tests/support/seeds.h"

namespace shardscape::decode_splits {
namespace {

using compute::AttentionShape;

constexpr double kSplitRounding = 1e-12;

double between(CounterRng& random, double low, double high) {
  return low * std::pow(high / low, random.uniform());
}

/// One sequence or many, a cache of 1 to 256 Ki tokens, groups of up to 128 query heads.
AttentionShape random_decode(CounterRng& random) {
  const auto power = [&](std::uint64_t most) {
    return std::exp2(static_cast<double>(random.below(most + 1)));
  };
  AttentionShape shape;
  shape.batch = random.below(2) == 0 ? 1 : std::floor(between(random, 1, 300));
  shape.kv_heads = power(4);
  shape.heads = shape.kv_heads * power(7);
  shape.head_dim = 32 * power(3);
  shape.queries = 1;
  shape.keys = std::floor(between(random, 1, 262144));
  return shape;
}

/// An A100 with every part that decode meets drawn anew.
DeviceSpec decoding_device(CounterRng& random) {
  DeviceSpec d = test::a100();
  d.sm.count = 1 + static_cast<std::int64_t>(random.below(1000));
  d.sm.clock *= between(random, 0.3, 3);
  d.sm.l2_bytes_per_clock *= between(random, 0.02, 4);
  d.sm.vector_flops_per_clock *= between(random, 0.1, 8);
  d.sm.tensor_flops_per_clock[static_cast<std::size_t>(Precision::bf16)] *= between(random, 0.02, 8);
  d.l2.bytes_per_clock *= between(random, 0.05, 4);
  d.hbm.bandwidth_per_stack *= between(random, 0.05, 50);
  d.kernel_latency *= between(random, 0.001, 3);
  return d;
}

std::string describe_decode(std::uint64_t seed, const AttentionShape& s) {
  return "seed " + std::to_string(seed) + ": " + std::to_string(s.batch) + " sequences of " +
         std::to_string(s.keys) + " keys, " + std::to_string(s.heads) + " heads on " +
         std::to_string(s.kv_heads);
}

TEST(DecodeSplits, TheFastestOfAllIsTaken) {
  int between_the_ends = 0;
  for (std::uint64_t seed = 1; seed <= test::seeds(3000); ++seed) {
    CounterRng random(seed, 1);
    const AttentionShape shape = random_decode(random);
    const DeviceSpec device = decoding_device(random);
    double fastest = 0, splits = 0;
    const double most = compute::most_decode_splits(shape);
    for (double s = 1; s <= most; ++s) {
      const double seconds = compute::decode_split(shape, Precision::bf16, device, s).time.value();
      if (s == 1 || seconds < fastest) fastest = seconds, splits = s;
    }
    const double fills = std::ceil(static_cast<double>(device.sm.count) / (shape.batch * shape.kv_heads));
    if (splits > 1 && splits < std::min(most, fills)) ++between_the_ends;
    EXPECT_NEAR(compute::decode(shape, Precision::bf16, device).time.value(), fastest,
                kSplitRounding * fastest)
        << describe_decode(seed, shape);
  }
  EXPECT_GE(between_the_ends, test::at_least(100));
}

using BetterPart = std::pair<const char*, std::function<void(DeviceSpec&, double)>>;

TEST(DecodeSplits, NoBetterDeviceIsSlower) {
  const std::vector<BetterPart> parts = {
      {"SMs", [](DeviceSpec& d, double) { d.sm.count += 1; }},
      {"many SMs",
       [](DeviceSpec& d, double k) {
         d.sm.count = std::llround(std::ceil(k * static_cast<double>(d.sm.count)));
       }},
      {"clock", [](DeviceSpec& d, double k) { d.sm.clock *= k; }},
      {"L2 port", [](DeviceSpec& d, double k) { d.sm.l2_bytes_per_clock *= k; }},
      {"L2", [](DeviceSpec& d, double k) { d.l2.bytes_per_clock *= k; }},
      {"HBM", [](DeviceSpec& d, double k) { d.hbm.bandwidth_per_stack *= k; }},
      {"vector units", [](DeviceSpec& d, double k) { d.sm.vector_flops_per_clock *= k; }},
      {"kernels", [](DeviceSpec& d, double k) { d.kernel_latency *= 1 / k; }}};
  for (std::uint64_t seed = 1; seed <= test::seeds(3000); ++seed) {
    CounterRng random(seed, 2);
    const AttentionShape shape = random_decode(random);
    const DeviceSpec device = decoding_device(random);
    const double before = compute::decode(shape, Precision::bf16, device).time.value();
    const double factor = 1 + random.uniform();
    for (const auto& [name, improve] : parts) {
      DeviceSpec better = device;
      improve(better, factor);
      EXPECT_LE(compute::decode(shape, Precision::bf16, better).time.value(), before * (1 + kSplitRounding))
          << name << ", " << describe_decode(seed, shape);
    }
  }
}

}  // namespace
}  // namespace shardscape::decode_splits
