// Conservation on random models: no FLOP, parameter or byte is lost or made by splitting.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "engine/model/block_kinds.h"
#include "engine/model/head.h"
#include "engine/model/parameters.h"
#include "engine/model/partition.h"
#include "engine/simulate.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/seeds.h"

namespace shardscape {
namespace {

double forward_flops(const std::vector<model::Operator>& operators) {
  double sum = 0;
  for (const model::Operator& op : operators) {
    if (op.kind == model::OperatorKind::gemm) sum += op.gemm.flops().value();
    if (op.kind == model::OperatorKind::attention) sum += 4 * op.attention.head_dim * op.attention.scores();
  }
  return sum;
}

TEST(Conservation, RanksTogetherComputeTheModel) {
  // Without replicated KV heads and with a vocabulary that divides, t * c ranks do the model's FLOPs exactly.
  for (std::uint64_t seed = 1; seed <= test::seeds(300); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::ScenarioGenerator generator(seed);
    Setting setting = generator.setting(Phase::training);
    setting.model.vocabulary = 32 * 1000;
    const auto t = static_cast<std::int32_t>(
        std::min<std::int64_t>(generator.pick<std::int64_t>({1, 2, 8}), setting.model.kv_heads));
    const model::LayerKey key{t, generator.pick({1, 2, 8}), generator.pick({1, 3}), t > 1};
    const std::int64_t s = setting.workload.sequence_length;
    const double rank = static_cast<double>(setting.model.layers) *
                            forward_flops(block_operators(setting, 0, key, s, model::Mode::training)) +
                        forward_flops(head_operators(setting, key, s, model::Mode::training));
    const double model = model::model_flops_per_sequence(setting.model, s).value() * key.microbatch;
    EXPECT_NEAR(3 * rank * key.tensor * key.context / model, 1, 1e-12);
  }
}

TEST(Conservation, SequenceParallelGroupHoldsTheActivationsOnce) {
  for (std::uint64_t seed = 1; seed <= test::seeds(300); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::ScenarioGenerator generator(seed);
    Setting setting = generator.setting(Phase::training);
    setting.system.stack.keep_gathered = false;
    const std::int64_t s = setting.workload.sequence_length;
    const auto saved = [&](const model::LayerKey& key, Recompute recompute) {
      return saved_bytes(block_operators(setting, 0, key, s, model::Mode::training), recompute, setting, key,
                         s)
          .value();
    };
    const auto t = static_cast<std::int32_t>(setting.model.kv_heads);
    const std::int32_t c = generator.pick({1, 2, 4});
    for (const Recompute r : {Recompute::none, Recompute::selective, Recompute::full}) {
      EXPECT_NEAR(t * c * saved({t, c, 2, t > 1}, r) / saved({1, 1, 2, false}, r), 1, 1e-12) << name_of(r);
    }
  }
}

TEST(Conservation, StagesHoldTheParametersOnce) {
  for (std::uint64_t seed = 1; seed <= test::seeds(300); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::ScenarioGenerator generator(seed);
    const Setting setting = generator.setting(Phase::training);
    const ModelSpec& model = setting.model;
    const std::int32_t stages = generator.pick({1, 2, 3, 4, 7});
    StackProfile stack;
    stack.partition = PartitionRule::balanced;
    model::Partition split;
    ASSERT_TRUE(model::partition_layers(model, stack, {stages, 1}, split));
    const std::vector<model::StageLayers>& layers = split.stages;
    const model::StageParameters parameters = model::stage_parameters(model, setting.workload.policy(), {});
    double sum = 0;
    for (std::size_t i = 0; i < layers.size(); ++i) sum += parameters.of_stage(layers, i).total().count;
    const bool copied = model.tied_embeddings && stages > 1;
    const double table = static_cast<double>(model.vocabulary * model.hidden);
    EXPECT_NEAR((model.parameters() + (copied ? table : 0)) / sum, 1, 1e-14);
  }
}

TEST(Conservation, OperatorTableAddsUpToTheBreakdown) {
  int tables = 0;
  for (const Phase phase : {Phase::training, Phase::inference}) {
    for (std::uint64_t seed = 1; seed <= test::seeds(100); ++seed) {
      test::ScenarioGenerator generator(seed);
      Setting setting = generator.setting(phase);
      setting.system.stack.communication.tensor_overlap = 0;
      setting.system.stack.communication.context_overlap = 0;
      SimulateOptions options;
      options.time_infeasible = true;
      Simulator simulator(setting, options);
      for (int i = 0; i < 5; ++i) {
        const ParallelPlan plan = generator.plan(setting);
        SCOPED_TRACE(test::describe(seed, plan));
        Details details;
        const Prediction out = simulator.run(plan, {}, &details);
        if (out.status != Status::ok && out.status != Status::memory) continue;
        ++tables;
        double device = 0, recompute = 0, links = 0, step = 0;
        for (const OperatorRow& row : details.operators) {
          double& sum = row.phase == "step"        ? step
                        : row.bound == "link"      ? links
                        : row.phase == "recompute" ? recompute
                                                   : device;
          sum += row.count * row.time.value();
        }
        const double slack = 1e-9 * out.breakdown.total().value();
        EXPECT_NEAR(device, out.breakdown[TimeClass::compute].value(), slack);
        EXPECT_NEAR(recompute, out.breakdown[TimeClass::recompute].value(), slack);
        EXPECT_NEAR(step, out.breakdown[TimeClass::optimizer].value(), slack);
        EXPECT_NEAR(links,
                    (out.breakdown[TimeClass::tensor_comm] + out.breakdown[TimeClass::context_comm]).value(),
                    slack);
      }
    }
  }
  EXPECT_GE(tables, test::at_least(301));
}

}  // namespace
}  // namespace shardscape
