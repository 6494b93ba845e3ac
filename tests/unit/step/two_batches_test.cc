// Do iterations in two half batches take what follows by hand, in both modes?
#include "engine/step/layers/two_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "engine/model/block_kinds.h"
#include "engine/simulate.h"
#include "engine/step/serving/price_iterations.h"
#include "tests/support/engine_fixture.h"

namespace shardscape {
namespace {

constexpr std::int64_t kHalvesPrompt = 800, kHalvesOutput = 100, kHalvesSequences = 32;

/// 16 experts, of which a token goes through 4, and one for all tokens, over four replicas.
Setting halves_setting(std::int64_t layers, double wire) {
  Setting s;
  s.model = test::llama(layers, 1024, 16, 16, 4096, 32000);
  s.model.moe = MixtureOfExperts{.experts = 16, .top_k = 4, .expert_ffn_hidden = 512};
  s.model.moe->shared_experts = 1;
  s.model.moe->shared_ffn_hidden = 512;
  s.system.device = test::round_device();
  s.system.fabric = test::crossbar(4, wire);
  s.system.stack = test::plain_stack();
  s.system.stack.serving.dispatch = ServedDispatch::all_to_all;
  s.system.stack.serving.two_batch_overlap = true;
  s.system.stack.communication.expert_overlap = 1;
  s.workload = test::inference(kHalvesPrompt, kHalvesOutput, 4 * kHalvesSequences);
  return s;
}

ParallelPlan halves_plan() {
  ParallelPlan plan = test::plan_of(1, 1, 1, 4);
  plan.expert = 4;
  return plan;
}

Prediction predict_halves(const Setting& setting, ExecutionMode mode = ExecutionMode::hierarchical,
                          const ParallelPlan& plan = halves_plan()) {
  Simulator simulator(setting, {.mode = mode});
  const Prediction out = simulator.run(plan);
  EXPECT_EQ(out.status, Status::ok) << name_of(out.reason);
  return out;
}

/// What a half batch does in one layer of a decode step, half of the output done.
struct HalfLayer {
  double head = 0, experts = 0, tail = 0, dispatch = 0, combine = 0;
};
HalfLayer half_layer(const Setting& setting, double wire) {
  constexpr double kLength = kHalvesPrompt + 0.5 * kHalvesOutput, kHalf = kHalvesSequences / 2;
  step::TokenCosts costs(setting, halves_plan());
  HalfLayer layer;
  double* piece = &layer.head;
  const model::LayerKey key = model::serving_layer_key(halves_plan(), kHalvesSequences / 2);
  for (const model::Operator& op : model::decode_block_operators(setting, 0, key, 1)) {
    // Each of four ranks keeps the quarter that its own experts get.
    const double comm = op.forward_comm.bytes.value() * 0.75 / wire;
    if (op.name == "dispatch") {
      layer.dispatch = comm, piece = &layer.experts;
    } else if (op.name == "combine") {
      layer.combine = comm, piece = &layer.tail;
    } else if (op.attention_core) {
      *piece += costs.attention(0, {.decoding = kHalf, .cached = kHalf * kLength}).decode;
    } else {
      *piece += step::price_forward(op, setting).value();
    }
  }
  return layer;
}

/// A call beside compute: the share `overlap` of it can hide, of which `hidden` is not lost again.
double beside(double comm, double compute, double overlap, double hidden) {
  return comm + compute - hidden * std::min(overlap * comm, compute);
}

// Each layer but the first takes the longer of combine and what lies between two exchanges (tail and next head), of
// dispatch and the same, of dispatch and experts, and of combine and experts; two layers more take twice that.
TEST(TwoBatches, ALayerTakesTheLongerOfWhatGoesOnTogether) {
  for (const double wire : {0.5e9, 5e9, 100e9}) {
    for (const auto& shares : {std::array{1.0, 1.0}, std::array{0.5, 0.8}}) {
      Setting few = halves_setting(4, wire), many = halves_setting(6, wire);
      for (Setting* s : {&few, &many}) {
        s->system.stack.communication.expert_overlap = shares[0];
        s->system.stack.communication.expert_hidden = shares[1];
      }
      const HalfLayer l = half_layer(few, wire);
      const double between = l.tail + l.head;
      const auto takes = [&](double comm, double compute) {
        return beside(comm, compute, shares[0], shares[1]);
      };
      const double layer = takes(l.combine, between) + takes(l.dispatch, between) +
                           takes(l.dispatch, l.experts) + takes(l.combine, l.experts);
      SCOPED_TRACE(testing::PrintToString(std::pair(wire, shares)));
      EXPECT_NEAR((predict_halves(many).step_time - predict_halves(few).step_time).value(), 2 * layer,
                  1e-9 * layer);
      EXPECT_NEAR((predict_halves(many, ExecutionMode::flattened).step_time -
                   predict_halves(few, ExecutionMode::flattened).step_time)
                      .value(),
                  2 * layer, 1e-9 * layer);
    }
  }
}

// The first layer has nothing under way beside its first head, and the last one's tails lie behind its combines.
TEST(TwoBatches, ALoneLayerHasItsEndsBesideIt) {
  const double wire = 5e9;
  const Setting s = halves_setting(1, wire);
  const HalfLayer l = half_layer(s, wire);
  const double layer = l.head + std::max(l.dispatch, l.head) + std::max(l.dispatch, l.experts) +
                       std::max(l.combine, l.experts) + std::max(l.combine, l.tail) + l.tail;
  step::TokenCosts costs(s, halves_plan());
  const double ends = (costs.at(step::TokenTable::decode, kHalvesSequences).end.device +
                       costs.at(step::TokenTable::head, kHalvesSequences).end.device)
                          .value();
  EXPECT_NEAR(predict_halves(s).step_time.value(), layer + ends, 1e-9 * layer);
  EXPECT_NEAR(predict_halves(s, ExecutionMode::flattened).step_time.value(), layer + ends, 1e-9 * layer);
}

// A wire that takes nothing leaves nothing to hide, and both halves read the weights; a slow one hides all of them.
TEST(TwoBatches, CostWhereThereIsNothingToHideAndGainWhereThereIs) {
  const auto gain = [](double wire) {
    Setting plain = halves_setting(6, wire);
    const Prediction halves = predict_halves(plain);
    plain.system.stack.serving.two_batch_overlap = false;
    plain.system.stack.communication.expert_overlap = 0;
    const Prediction whole = predict_halves(plain);
    EXPECT_GE(halves.breakdown[TimeClass::compute], whole.breakdown[TimeClass::compute]);
    EXPECT_LE(halves.breakdown[TimeClass::expert_comm].value(),
              whole.breakdown[TimeClass::expert_comm].value() * (1 + 1e-9));
    return whole.step_time / halves.step_time;
  };
  EXPECT_LT(gain(1e15), 1);
  EXPECT_GT(gain(5e9), 1);
}

// The host launches both halves, and what lies between kernels is paid twice.
TEST(TwoBatches, AreLaunchedTwice) {
  for (const ExecutionMode mode : {ExecutionMode::hierarchical, ExecutionMode::flattened}) {
    Setting s = halves_setting(6, 100e9);
    s.system.stack.host.decode_layer = Seconds(1);
    s.system.stack.host.decode_gap = Seconds(0.25);
    const double compute = predict_halves(halves_setting(6, 100e9), mode).step_time.value();
    const double step = predict_halves(s, mode).step_time.value();
    EXPECT_GT(step, 6 * (2 + 0.5));
    EXPECT_LT(step, 6 * (2 + 0.5) + compute);
  }
}

// Dense layers, layers whose experts lie in a tensor group, and iterations of one token are as without.
TEST(TwoBatches, LeaveTheRestAsItIs) {
  const auto same = [](Setting s, const ParallelPlan& plan) {
    const Prediction on = predict_halves(s, ExecutionMode::hierarchical, plan);
    s.system.stack.serving.two_batch_overlap = false;
    const Prediction off = predict_halves(s, ExecutionMode::hierarchical, plan);
    return on.step_time == off.step_time;
  };
  const Setting s = halves_setting(4, 5e9);
  EXPECT_FALSE(same(s, halves_plan()));
  EXPECT_TRUE(same(s, test::plan_of(1, 1, 1, 4)));
  ParallelPlan group = test::plan_of(4, 1, 1, 1);
  group.expert = 4;
  EXPECT_TRUE(same(s, group));
  Setting lone = s;
  lone.workload.concurrency = 4;  // one sequence on each replica
  EXPECT_TRUE(same(lone, halves_plan()));
  Setting dense_first = s;
  dense_first.model.moe->first_dense_layers = 3;
  EXPECT_FALSE(same(dense_first, halves_plan()));
}

// Stages alike: where one has more to do than the other, what it sends meets the other's exchanges on the way, which no
// price has, with half batches or without.
TEST(TwoBatches, ModesAgreeOnWholeRequests) {
  for (const double wire : {2e9, 20e9, 200e9}) {
    for (const std::int32_t stages : {1, 2}) {
      Setting s = halves_setting(6, wire);
      s.model.moe->first_dense_layers = stages == 1 ? 1 : 0;
      s.system.fabric = test::crossbar(4 * stages, wire, 1e-6);
      ParallelPlan plan = halves_plan();
      plan.pipeline = stages;
      const Prediction fast = predict_halves(s, ExecutionMode::hierarchical, plan);
      const Prediction slow = predict_halves(s, ExecutionMode::flattened, plan);
      SCOPED_TRACE(testing::PrintToString(std::pair(wire, stages)));
      EXPECT_NEAR(slow.itl / fast.itl, 1, 0.02);
      EXPECT_NEAR(slow.ttft / fast.ttft, 1, 0.02);
      EXPECT_NEAR(fast.breakdown.total().value(), fast.e2e.value(), 1e-9 * fast.e2e.value());
    }
  }
}

// Rows other than links add up to the compute of the breakdown.
TEST(TwoBatches, AreExplainedOperatorByOperator) {
  const Setting s = halves_setting(4, 20e9);
  Simulator simulator(s, SimulateOptions{});
  Details details;
  const Prediction out = simulator.run(halves_plan(), {}, &details);
  double sum = 0, links = 0;
  for (const OperatorRow& row : details.operators)
    (row.bound == "link" ? links : sum) += row.count * row.time.value();
  EXPECT_NEAR(sum, out.breakdown[TimeClass::compute].value(), 1e-6 * sum);
  EXPECT_GT(links, out.breakdown[TimeClass::expert_comm].value());  // the table shows hidden exchanges, too
}

}  // namespace
}  // namespace shardscape
