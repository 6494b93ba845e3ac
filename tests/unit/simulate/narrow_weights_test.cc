// What do weights that are kept in fp8 alone save, in memory and on the network?
#include <gtest/gtest.h>

#include "engine/simulate.h"
#include "tests/support/engine_fixture.h"

namespace shardscape {
namespace {

constexpr double kHidden = 1024, kLayers = 4;
// Matrices of the blocks; embedding and head stay bf16.
constexpr double kMatrices = kLayers * 12 * kHidden * kHidden;

struct Run {
  Prediction prediction;
  Details details;
};

Run run_of(PolicyName precision, bool narrow, Architecture architecture, const ParallelPlan& plan) {
  Setting s;
  s.model = test::gpt(4, 1024, 8, 32000, 512);
  s.system.device = test::round_device();
  s.system.device.architecture = architecture;
  s.system.device.sm.tensor_flops_per_clock[static_cast<std::size_t>(Precision::fp8)] = 2048;
  s.system.device.sm.tensor_flops_per_clock[static_cast<std::size_t>(Precision::fp4)] = 4096;
  s.system.fabric = test::crossbar(plan.gpus(), 100e9);
  s.system.stack = test::plain_stack();
  s.system.stack.kept.fp8_weights = narrow;
  s.workload = test::training(512, 16);
  s.workload.precision = precision;
  Run run;
  run.prediction = Simulator(s).run(plan, {}, &run.details);
  EXPECT_EQ(run.prediction.status, Status::ok) << name_of(run.prediction.reason);
  return run;
}

// bf16 and two copies are 4 bytes a weight. Units that read either way need 1, others 2; nothing else changes.
TEST(NarrowWeights, TakeOneByteOrTwoInsteadOfFour) {
  for (const auto& [architecture, saved] :
       {std::pair{Architecture::blackwell, 3}, {Architecture::hopper, 2}}) {
    for (const std::int32_t tensor : {1, 4}) {
      ParallelPlan plan = test::plan_of(tensor, 1, 1, 2);
      plan.zero_stage = 1;
      const MemoryUse wide = run_of(PolicyName::fp8, false, architecture, plan).prediction.memory;
      const MemoryUse narrow = run_of(PolicyName::fp8, true, architecture, plan).prediction.memory;
      EXPECT_DOUBLE_EQ((wide.weights - narrow.weights).value(), saved * kMatrices / tensor);
      EXPECT_EQ(wide.gradients, narrow.gradients);
      EXPECT_EQ(wide.optimizer, narrow.optimizer);
      EXPECT_EQ(wide.activations, narrow.activations);
    }
  }
}

// Each of two replicas sends half of what it gathers.
TEST(NarrowWeights, AreGatheredInOneByte) {
  ParallelPlan plan = test::plan_of(1, 1, 1, 2);
  plan.zero_stage = 1;
  const auto sent = [&](bool narrow) {
    return run_of(PolicyName::fp8, narrow, Architecture::hopper, plan)
        .details.group_bytes[ParallelGroup::data_shard];
  };
  EXPECT_DOUBLE_EQ((sent(false) - sent(true)).value(), kMatrices / 2);
}

TEST(NarrowWeights, AreNoneOfOtherPrecisions) {
  ParallelPlan plan = test::plan_of(2, 1, 1, 2);
  plan.zero_stage = 1;
  for (const PolicyName precision : {PolicyName::bf16, PolicyName::mxfp8, PolicyName::nvfp4}) {
    const Prediction wide = run_of(precision, false, Architecture::blackwell, plan).prediction;
    const Prediction narrow = run_of(precision, true, Architecture::blackwell, plan).prediction;
    EXPECT_EQ(wide.memory_peak, narrow.memory_peak);
    EXPECT_EQ(wide.step_time, narrow.step_time);
  }
}

}  // namespace
}  // namespace shardscape
