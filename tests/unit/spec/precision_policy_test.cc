#include "engine/spec/precision_policy.h"

#include <gtest/gtest.h>

#include <vector>

namespace shardscape {
namespace {

std::vector<Precision> all_of(const PrecisionPolicy& p) {
  return {p.weights, p.products, p.ends, p.activations, p.attention, p.kv_cache, p.wire, p.gradients};
}

TEST(PrecisionPolicy, WideNamesAreAllOfOneType) {
  for (const PolicyName name : {PolicyName::fp32, PolicyName::tf32, PolicyName::bf16, PolicyName::fp16}) {
    for (const Phase phase : {Phase::training, Phase::inference}) {
      const PrecisionPolicy policy = policy_of(name, phase);
      EXPECT_EQ(all_of(policy), std::vector<Precision>(8, format_of(name)));
      EXPECT_EQ(policy.weight_copies, 0);
    }
  }
}

TEST(PrecisionPolicy, NarrowNamesAreThoseOfTheProducts) {
  constexpr Precision kWide = Precision::bf16;
  for (const PolicyName policy : {PolicyName::fp8, PolicyName::fp4, PolicyName::mxfp8, PolicyName::nvfp4}) {
    const Precision name = format_of(policy);
    const PrecisionPolicy training = policy_of(policy, Phase::training);
    EXPECT_EQ(all_of(training), (std::vector{kWide, name, kWide, kWide, kWide, kWide, kWide, kWide}));
    EXPECT_EQ(training.weight_copies, 2);
    const PrecisionPolicy serving = policy_of(policy, Phase::inference);
    EXPECT_EQ(all_of(serving), (std::vector{name, name, kWide, kWide, kWide, kWide, kWide, kWide}));
    EXPECT_EQ(serving.weight_copies, 0);
  }
}

// Kept in fp8 alone: 1 byte, 2 with a transposed copy, instead of 2 and 2 copies of 1. Block scales go along one
// dimension and need what they are cast from; where nothing is cast, or a server keeps one copy, nothing changes.
TEST(PrecisionPolicy, NarrowWeightsAreThoseWithOneScalePerTensor) {
  for (const bool transposed : {false, true}) {
    PrecisionPolicy policy = policy_of(PolicyName::fp8, Phase::training);
    policy.keep_narrow_weights(transposed);
    EXPECT_EQ(
        policy.operand_bytes(policy.weights) + policy.weight_copies * policy.operand_bytes(policy.products),
        transposed ? 2 : 1);
    EXPECT_EQ(policy.activations, Precision::bf16);
    for (const PolicyName name : enum_values<PolicyName>()) {
      for (const Phase phase : {Phase::training, Phase::inference}) {
        if (phase == Phase::training && (name == PolicyName::fp8)) continue;
        PrecisionPolicy other = policy_of(name, phase);
        other.keep_narrow_weights(transposed);
        EXPECT_EQ(all_of(other), all_of(policy_of(name, phase)));
        EXPECT_EQ(other.weight_copies, policy_of(name, phase).weight_copies);
      }
    }
  }
}

// OCP Microscaling 1.0: 8 bits for 32 elements; NVFP4: 8 bits for 16.
TEST(PrecisionPolicy, BlockScaledOperandsCarryTheirScales) {
  const auto operand = [](PolicyName name) {
    const PrecisionPolicy policy = policy_of(name, Phase::training);
    return policy.operand_bytes(policy.products);
  };
  EXPECT_EQ(operand(PolicyName::fp8), 1);
  EXPECT_EQ(operand(PolicyName::mxfp8), 1 + 1.0 / 32);
  EXPECT_EQ(operand(PolicyName::fp4), 0.5 + 1.0 / 16);
  EXPECT_EQ(operand(PolicyName::nvfp4), operand(PolicyName::fp4));
  EXPECT_EQ(operand(PolicyName::bf16), 2);
}

}  // namespace
}  // namespace shardscape
