// What local attention saves: scores, streams and caches beyond the window, and nothing else.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "engine/model/block_kinds.h"
#include "engine/model/partition.h"
#include "engine/simulate.h"
#include "engine/spec/causal_window.h"
#include "tests/support/engine_fixture.h"

namespace shardscape {
namespace {

Setting windows_of(std::int64_t window, const std::string& pattern, Phase phase = Phase::training) {
  Setting s;
  s.model = test::llama(6, 1024, 16, 8, 4096, 32000);
  s.model.sliding_window = window;
  s.model.window_pattern = pattern;
  s.system.device = test::round_device();
  s.system.fabric = test::crossbar(2, 100e9, 1e-6);
  s.system.stack = test::plain_stack();
  s.workload = phase == Phase::training ? test::training(1024, 4) : test::inference(800, 100, 4);
  return s;
}

Prediction outcome(const Setting& setting, ExecutionMode mode = ExecutionMode::hierarchical,
                   std::int32_t stages = 1) {
  Simulator simulator(setting, {.time_infeasible = true, .mode = mode});
  return simulator.run(test::plan_of(2 / stages, 1, stages, 1));
}

TEST(VisiblePairs, AreTheSumOverTokens) {
  // A token at x meets min(x, window) others; the integral over a token is its mean.
  for (const double window : {0.0, 1.0, 7.0, 40.0, 64.0, 1000.0}) {
    for (const int before : {0, 3, 40, 200}) {
      double sum = 0;
      for (int i = 0; i < 64; ++i) {
        const double x = before + i;
        sum += window == 0 ? x + 0.5 : std::min(x + 0.5, window);
      }
      EXPECT_DOUBLE_EQ(visible_pairs(before, 64, window), sum) << window << ' ' << before;
    }
  }
  EXPECT_EQ(visible_share(64, 64), 0.5);
  EXPECT_EQ(visible_share(64, 0), 0.5);
  EXPECT_DOUBLE_EQ(visible_share(64, 16), (16 * 64 - 16 * 16 / 2) / (64.0 * 64));
}

TEST(Windows, LayersFollowThePattern) {
  ModelSpec model = windows_of(16, "LLG").model;
  model.layers = 8;  // L L G L L G L L
  EXPECT_EQ(model::block_kinds(model).size(), 2U);
  const model::StageLayers all = model::all_layers(model);
  EXPECT_EQ(all.begin()[0].count, 6);
  EXPECT_EQ(all.begin()[1].count, 2);
  StackProfile stack;
  model::Partition split;
  for (const PartitionRule rule : {PartitionRule::uniform, PartitionRule::balanced}) {
    stack.partition = rule;
    ASSERT_TRUE(model::partition_layers(model, stack, {4, 1}, split));
    std::int64_t layer = 0;
    for (const model::StageLayers& stage : split.stages) {
      std::int32_t global = 0, expected = 0;
      for (const model::BlockRun& run : stage)
        if (model::attention_window(model, run.kind) == 0) global += run.count;
      for (std::int32_t i = 0; i < stage.count(); ++i, ++layer) expected += layer % 3 == 2 ? 1 : 0;
      EXPECT_EQ(global, expected);
    }
    EXPECT_EQ(layer, 8);
  }
  model.layers = 2;  // none of the global ones is left
  EXPECT_EQ(model::block_kinds(model).size(), 1U);
  EXPECT_EQ(model::attention_window(model, 0), 16);
}

TEST(Windows, AsLongAsTheSequenceChangeNothing) {
  for (const Phase phase : {Phase::training, Phase::inference}) {
    for (const ExecutionMode mode : {ExecutionMode::hierarchical, ExecutionMode::flattened}) {
      for (const int stages : {1, 2}) {
        const Prediction plain = outcome(windows_of(0, "", phase), mode, stages);
        for (const char* pattern : {"", "LG", "LLLLLG"}) {
          const Prediction with = outcome(windows_of(1024, pattern, phase), mode, stages);
          // Executed iterations stand between samples of each kind's attention.
          const double share = mode == ExecutionMode::flattened ? 1e-3 : 1e-9;
          const auto near = [&](double a, double b) { EXPECT_NEAR(a, b, share * b) << pattern; };
          near(with.step_time.value(), plain.step_time.value());
          near(with.itl.value(), plain.itl.value());
          near(with.ttft.value(), plain.ttft.value());
          near(with.memory_peak.value(), plain.memory_peak.value());
          near(with.mfu, plain.mfu);
        }
      }
    }
  }
}

// Six layers, 600 of 900 tokens, which take 912 in blocks of 16, 8 KV heads of 64 on 2 ranks, a key and a value
// of 2 bytes: per sequence and local layer 312 tokens less.
TEST(Windows, BoundTheCache) {
  const auto cache = [](const std::string& pattern) {
    Setting s = windows_of(pattern == "G" ? 0 : 600, pattern == "G" ? "" : pattern, Phase::inference);
    return outcome(s).memory.kv_cache.value();
  };
  const double all = cache("G"), token = 4 * 2 * 64 * 2.0;
  EXPECT_NEAR(all - cache("LG"), 4 * 3 * 312 * token, 1e-9 * all);
  EXPECT_NEAR(all - cache(""), 4 * 6 * 312 * token, 1e-9 * all);
}

TEST(Windows, DecodeStreamsTheWindow) {
  const Setting s = windows_of(600, "LG", Phase::inference);
  for (const double cached : {100.0, 600.0, 900.0}) {
    for (const std::size_t kind : {std::size_t{0}, std::size_t{1}}) {
      const auto ops = model::decode_block_operators(s, kind, {2, 1, 4, false}, cached);
      const auto core = std::ranges::find(ops, true, &model::Operator::attention_core);
      ASSERT_NE(core, ops.end());
      EXPECT_EQ(core->attention.keys, kind == 0 ? std::min(cached, 600.0) : cached);
    }
  }
  // Shorter windows are faster in every phase, and both modes tell the same.
  const double whole = outcome(windows_of(0, "", Phase::inference)).itl.value();
  const double local = outcome(windows_of(64, "", Phase::inference)).itl.value();
  const double mixed = outcome(windows_of(64, "LG", Phase::inference)).itl.value();
  EXPECT_LT(local, whole);
  EXPECT_NEAR(mixed, 0.5 * (local + whole), 1e-3 * whole);  // three layers of each
  EXPECT_NEAR(outcome(windows_of(64, "LG", Phase::inference), ExecutionMode::flattened).itl.value(), mixed,
              1e-3 * mixed);
}

TEST(Windows, FlopsCountWhatTheyLeave) {
  // Forward and backward, scores and sums: 3 x 2 x 2 x 1024 wide, 1024^2 of them, and beyond a window of 256
  // twice the (256 x 1024 - 256^2 / 2) that the mask leaves.
  const auto flops = [](std::int64_t window) {
    return model::model_flops_per_sequence(windows_of(window, "").model, 1024).value();
  };
  const double pairs = 2 * (256 * 1024 - 256 * 256 / 2.0);
  EXPECT_NEAR(flops(0) - flops(256), 6 * 12 * 1024 * (1024.0 * 1024 - pairs), 1e-9 * flops(0));
  EXPECT_LT(outcome(windows_of(256, "")).step_time, outcome(windows_of(0, "")).step_time);
}

}  // namespace
}  // namespace shardscape
