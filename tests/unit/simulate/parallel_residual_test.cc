// A parallel block saves communication of its tensor group, and nothing else.
#include <gtest/gtest.h>

#include "engine/simulate.h"
#include "tests/support/engine_fixture.h"

namespace shardscape {
namespace {

enum class Block { sequential, parallel, shared_norm };

Setting blocks_of(Block kind, std::int64_t layers, std::int64_t ranks) {
  Setting s;
  s.model = test::gpt(layers, 1024, 16, 32000, 1024);
  s.model.dropout = 0;
  s.model.parallel_residual = kind != Block::sequential;
  s.model.shared_norm = kind == Block::shared_norm;
  s.system.device = test::round_device();
  s.system.fabric = test::crossbar(ranks, 100e9, 1e-6);
  s.system.stack = test::plain_stack();
  s.workload = test::training(1024, 4);
  return s;
}

Prediction step_of(const Setting& setting, ExecutionMode mode) {
  Simulator simulator(setting, {.time_infeasible = true, .mode = mode});
  return simulator.run(test::plan_of(static_cast<std::int32_t>(setting.system.fabric.size()), 1, 1, 1));
}

/// Tensor communication that a layer adds to a step.
double per_layer(Block kind, ExecutionMode mode) {
  const auto seconds = [&](std::int64_t layers) {
    return step_of(blocks_of(kind, layers, 4), mode).breakdown[TimeClass::tensor_comm].value();
  };
  return (seconds(6) - seconds(2)) / 4;
}

// All reductions of a block are of one size: two each way in a sequential block (Shoeybi et al. 2019), one of
// them fewer in forward with two norms, one fewer each way with one norm.
TEST(ParallelResidual, SavesReductions) {
  for (const ExecutionMode mode : {ExecutionMode::hierarchical, ExecutionMode::flattened}) {
    const double sequential = per_layer(Block::sequential, mode);
    EXPECT_GT(sequential, 0);
    EXPECT_NEAR(per_layer(Block::parallel, mode) / sequential, 3.0 / 4, 1e-9);
    EXPECT_NEAR(per_layer(Block::shared_norm, mode) / sequential, 2.0 / 4, 1e-9);
  }
}

// On one rank its operators are those of a sequential block in another order.
TEST(ParallelResidual, CostsTheSameOnOneRank) {
  for (const ExecutionMode mode : {ExecutionMode::hierarchical, ExecutionMode::flattened}) {
    const double sequential = step_of(blocks_of(Block::sequential, 4, 1), mode).step_time.value();
    EXPECT_NEAR(step_of(blocks_of(Block::parallel, 4, 1), mode).step_time.value(), sequential,
                1e-12 * sequential);
  }
}

// A norm less: reads and writes 2 + 2 bytes of 1,024 x 1,024 elements forward, 6 backward, each a kernel of
// 2 us at 2 TB/s, in 4 layers for 4 microbatches. Its 2 h parameters are 1 of 6,300, which the optimizer
// sees.
TEST(ParallelResidual, ASharedNormIsOneNormLess) {
  const auto mode = ExecutionMode::hierarchical;
  const Prediction apart = step_of(blocks_of(Block::parallel, 4, 1), mode);
  const Prediction shared = step_of(blocks_of(Block::shared_norm, 4, 1), mode);
  const double elements = 1024.0 * 1024;
  const double norm = 2 * 2e-6 + (4 + 6) * elements / 2e12;
  EXPECT_NEAR((apart.breakdown[TimeClass::compute] - shared.breakdown[TimeClass::compute]).value(),
              4 * 4 * norm, 1e-12);
}

}  // namespace
}  // namespace shardscape
