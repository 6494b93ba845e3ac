// Do the ranges keep what is computed from them finite and whole, and does every spec hold to them?
#include "engine/spec/ranges.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "engine/spec/device.h"
#include "engine/spec/model.h"
#include "engine/spec/workload.h"
#include "tests/support/a100.h"

namespace shardscape {
namespace {

TEST(Ranges, ProductsStayFiniteAndCountsWhole) {
  using ranges::kScaling, ranges::kHeads, ranges::kHeadDim, ranges::kRows;
  using ranges::kTokens, ranges::kSamples, ranges::kMostParameters, ranges::kLayers, ranges::kHidden;
  using ranges::kUnits, ranges::kPerClock, ranges::kClock, ranges::kShare, ranges::kCapacity,
      ranges::kBandwidth;
  // A model's work: parameters, 6 FLOPs each, over all tokens of a batch; attention takes their square.
  const double tokens = kTokens.high, samples = kSamples.high;
  const double work =
      6 * kMostParameters * tokens * samples + 12 * kLayers.high * kHidden.high * tokens * tokens * samples;
  // The slowest device that passes, and the fastest.
  const double slowest = kUnits.low * kPerClock.low * kClock.low * std::pow(kShare.low, 2);
  EXPECT_TRUE(std::isfinite(work / slowest));
  EXPECT_LT(work / slowest, 1e100);
  EXPECT_GT(1 / (kUnits.high * kPerClock.high * kClock.high), 0);
  EXPECT_TRUE(std::isfinite(kCapacity.high * kUnits.high / (kBandwidth.low * kShare.low * kShare.low)));
  // What is left of a link on 2^30 nodes (scale_out_scaling to the power of their logarithm).
  EXPECT_GT(kShare.low * std::pow(kScaling.low, 30) * kBandwidth.low, std::numeric_limits<double>::min());
  // Integers: columns of the widest projections, tokens of a batch.
  constexpr double kInt64 = 9.2e18;
  EXPECT_LT(3 * kHeads.high * kHeadDim.high, kInt64);
  EXPECT_LT(2 * kRows.high, kInt64);
  EXPECT_LT(tokens * samples, kInt64);
}

TEST(Ranges, SayTheirEndsAndTheirUnit) {
  EXPECT_EQ(ranges::kTime.text(), "from 1e-15 s to 1e+09 s, or 0");
  EXPECT_EQ(ranges::kUnits.violated_by(0), "must be from 1 to 1e+06, not 0");
  EXPECT_TRUE(ranges::kTime.holds(0));
  EXPECT_FALSE(ranges::kPositiveTime.holds(0));
  for (const double value : {std::nan(""), std::numeric_limits<double>::infinity(), -1.0, 1e-320})
    EXPECT_FALSE(ranges::kTime.holds(value)) << value;
}

template <class Spec>
bool refuses(const Spec& spec, const std::string& field, const std::string& text) {
  const Problems problems = spec.validate();
  for (const Problem& problem : problems.list()) {
    if (problem.field == field && problem.message.find(text) != std::string::npos) return true;
  }
  return false;
}

// Each of them once reached the kernel model and aborted there.
TEST(Ranges, ValuesThatOverflowAreRefused) {
  ModelSpec model;
  model.layers = 32;
  model.hidden = 4096;
  model.heads = model.kv_heads = 32;
  model.head_dim = 128;
  model.ffn_hidden = 14336;
  model.vocabulary = 128256;
  model.position = PositionKind::rotary;
  model.mlp = MlpKind::swiglu;
  ASSERT_TRUE(model.validate().empty());
  ModelSpec wide = model;
  wide.ffn_hidden = std::int64_t{1} << 62;  // 2^63 columns of gate and up
  EXPECT_TRUE(refuses(wide, "ffn_hidden", "must be from 1 to 1e+09"));
  ModelSpec wordy = model;
  wordy.vocabulary = std::numeric_limits<std::int64_t>::max();
  EXPECT_TRUE(refuses(wordy, "vocabulary", "must be from 1 to 1e+09"));
  ModelSpec large = model;
  large.layers = 100'000;
  large.hidden = 10'000'000;
  EXPECT_TRUE(refuses(large, "layers", "parameters, at most 1e+15 are modelled"));

  DeviceSpec device = test::a100();
  ASSERT_TRUE(device.validate().empty());
  device.sustained.hbm = 1e-320;  // its inverse is infinite
  EXPECT_TRUE(refuses(device, "sustained.hbm", "must be from 1e-06 to 1"));

  WorkloadSpec workload;
  workload.sequence_length = 2'000'000'000;
  workload.global_batch = 1;
  EXPECT_TRUE(refuses(workload, "sequence_length", "must be from 1 to 1e+09"));
}

}  // namespace
}  // namespace shardscape
