#include "engine/spec/precision_policy.h"

#include <gtest/gtest.h>

#include <vector>

namespace shardscape {
namespace {

std::vector<Precision> all_of(const PrecisionPolicy& p) {
  return {p.weights, p.products, p.ends, p.activations, p.attention, p.kv_cache, p.wire, p.gradients};
}

TEST(PrecisionPolicy, WideNamesAreAllOfOneType) {
  for (const Precision name : {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16}) {
    for (const Phase phase : {Phase::training, Phase::inference}) {
      const PrecisionPolicy policy = policy_of(name, phase);
      EXPECT_EQ(all_of(policy), std::vector<Precision>(8, name));
      EXPECT_EQ(policy.weight_copies, 0);
    }
  }
}

TEST(PrecisionPolicy, NarrowNamesAreThoseOfTheProducts) {
  constexpr Precision kWide = Precision::bf16;
  for (const Precision name : {Precision::fp8, Precision::fp4}) {
    const PrecisionPolicy training = policy_of(name, Phase::training);
    EXPECT_EQ(all_of(training), (std::vector{kWide, name, kWide, kWide, kWide, kWide, kWide, kWide}));
    EXPECT_EQ(training.weight_copies, 2);
    const PrecisionPolicy serving = policy_of(name, Phase::inference);
    EXPECT_EQ(all_of(serving), (std::vector{name, name, kWide, kWide, kWide, kWide, kWide, kWide}));
    EXPECT_EQ(serving.weight_copies, 0);
  }
}

}  // namespace
}  // namespace shardscape
