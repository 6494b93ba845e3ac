// Does flattened mode give the times of requests that follow from the ingredients by hand, and those of the
// hierarchical mode where that one's assumptions hold?
#include <gtest/gtest.h>

#include <cmath>

#include "engine/network/fabric/fabric.h"
#include "engine/network/fabric/faulty_fabric.h"
#include "engine/simulate.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/plain_simulator.h"

namespace shardscape {
namespace {

using test::plan_of;

Prediction predict_requests(const Setting& setting, const ParallelPlan& plan,
                            ExecutionMode mode = ExecutionMode::flattened) {
  const Prediction out = Simulator(setting, {.time_infeasible = true, .mode = mode}).run(plan);
  EXPECT_TRUE(out.status == Status::ok || out.status == Status::memory) << name_of(out.reason);
  EXPECT_NEAR(out.breakdown.total().value(), out.e2e.value(), 1e-9 * out.e2e.value());
  return out;
}

/// A stack without costs of its own.
Setting server(std::int64_t ranks, std::int64_t layers, std::int64_t concurrency) {
  Setting s;
  s.model = test::llama(layers, 1024, 16, 8, 2816, 32000);
  s.system.device = test::round_device();
  s.system.fabric = test::crossbar(ranks, 100e9);
  s.system.stack = test::plain_stack();
  s.workload = test::inference(512, 2, concurrency);
  return s;
}

void expect_same(const Prediction& a, const Prediction& b, double tolerance) {
  EXPECT_NEAR(a.ttft / b.ttft, 1, tolerance);
  EXPECT_NEAR(a.e2e / b.e2e, 1, tolerance);
  EXPECT_NEAR(a.breakdown[TimeClass::compute].value(), b.breakdown[TimeClass::compute].value(),
              tolerance * b.e2e.value());
  EXPECT_NEAR(a.breakdown[TimeClass::tensor_comm].value(), b.breakdown[TimeClass::tensor_comm].value(),
              tolerance * b.e2e.value());
  EXPECT_NEAR(a.breakdown[TimeClass::host].value(), b.breakdown[TimeClass::host].value(),
              tolerance * b.e2e.value());
}

// One layer on a tensor pair, one request at a time: the embedding, the attention and the MLP each end in an
// all-reduce of the hidden state of every token, B = 2 bytes x 1024 x tokens. A ring of two takes two steps,
// each of them half of B on a link and the latency of a rank step: call + B / bandwidth + 2 rank steps. The
// request reads 512 tokens at once and decodes one more: three such calls with 512 tokens, three with one.
TEST(FlattenedInference, OneLayerOnATensorPairIsItsSixAllReduces) {
  Setting setting = server(2, 1, 1);
  setting.system.stack.communication.call = Seconds(7e-6);
  setting.system.stack.communication.rank_step = Seconds(3e-6);
  setting.system.stack.communication.algorithms = {Algorithm::ring};
  const Prediction out = predict_requests(setting, plan_of(2, 1, 1, 1));
  const auto all_reduce = [](double tokens) { return 7e-6 + 2 * 1024 * tokens / 100e9 + 2 * 3e-6; };
  EXPECT_NEAR(out.breakdown[TimeClass::tensor_comm].value(), 3 * (all_reduce(512) + all_reduce(1)), 1e-12);
  EXPECT_EQ(out.breakdown[TimeClass::host].value(), 0);
  EXPECT_EQ(out.breakdown[TimeClass::bubble].value(), 0);
}

// The host of a decode step: each block takes as long as its launch where that is longer than the device's
// work, the gap is always paid, and the step's own cost and that of each sequence come on top.
TEST(FlattenedInference, TheHostSetsThePaceOfShortBlocks) {
  Setting setting = server(1, 4, 1);
  setting.system.stack.host.decode_layer = Seconds(5e-2);  // longer than any block, the prompt's included
  setting.system.stack.host.decode_gap = Seconds(1e-3);
  setting.system.stack.host.decode_step_fixed = Seconds(2e-3);
  setting.system.stack.host.decode_sequence = Seconds(3e-3);
  const Prediction out = predict_requests(setting, plan_of(1, 1, 1, 1));
  // Beside blocks there are the embedding and the head.
  const double blocks = 4 * (5e-2 + 1e-3);
  EXPECT_GT(out.itl.value(), blocks + 5e-3);
  EXPECT_LT(out.itl.value(), blocks + 5e-3 + 1e-3);
  expect_same(out, predict_requests(setting, plan_of(1, 1, 1, 1), ExecutionMode::hierarchical), 1e-9);
}

// One process hands the tokens of all replicas to their clients: 3 requests on each of 4 cost 12 times 1 ms an
// iteration.
TEST(FlattenedInference, TheTokensOfAllReplicasGoThroughOneFrontEnd) {
  Setting setting = server(4, 4, 12);
  const ParallelPlan plan = plan_of(1, 1, 1, 4);
  for (const ExecutionMode mode : {ExecutionMode::hierarchical, ExecutionMode::flattened}) {
    setting.system.stack.host.decode_stream = {};
    const Seconds without = predict_requests(setting, plan, mode).itl;
    setting.system.stack.host.decode_stream = Seconds(1e-3);
    EXPECT_NEAR((predict_requests(setting, plan, mode).itl - without).value(), 12e-3, 1e-9);
  }
}

TEST(FlattenedInference, LoneReplicasAreAsPriced) {
  for (const std::int32_t tensor : {1, 2, 4}) {
    for (const std::int64_t concurrency : {1, 3, 8}) {
      Setting setting = server(tensor, 4, concurrency);
      setting.workload.output_tokens = 40;
      setting.system.stack.host.decode_layer = Seconds(1e-5);
      const ParallelPlan plan = plan_of(tensor, 1, 1, 1);
      expect_same(predict_requests(setting, plan),
                  predict_requests(setting, plan, ExecutionMode::hierarchical), 1e-3);
    }
  }
}

// Two stages of two groups without cost of transfer: while one group is on the second stage the other is on
// the first, so each iteration takes its trip where the stages are equal. A head that takes longer than all
// blocks makes the last stage set the pace: an iteration lasts as long as two passes of it, and what is more
// than the trip is waiting.
TEST(FlattenedInference, GroupsTakeTurnsOnTheStages) {
  Setting setting = server(2, 8, 2);
  setting.model.vocabulary = 1000;
  setting.system.fabric = test::crossbar(2, 1e18);
  setting.workload.output_tokens = 100;
  const ParallelPlan plan = plan_of(1, 1, 2, 1);
  Setting lone = setting;
  lone.system.fabric = test::crossbar(1);
  lone.workload.concurrency = 1;
  const auto itl = [&](const Setting& s, const ParallelPlan& p, ExecutionMode mode) {
    return predict_requests(s, p, mode).itl.value();
  };
  for (const ExecutionMode mode : {ExecutionMode::hierarchical, ExecutionMode::flattened}) {
    EXPECT_NEAR(itl(setting, plan, mode) / itl(lone, plan_of(1, 1, 1, 1), mode), 1, 0.02);
  }
  lone.model.vocabulary = 4'000'000;
  lone.model.layers = 4;
  const double half = itl(lone, plan_of(1, 1, 1, 1), ExecutionMode::flattened);
  setting.model.vocabulary = 4'000'000;
  for (const ExecutionMode mode : {ExecutionMode::hierarchical, ExecutionMode::flattened}) {
    // The last stage: four blocks and the head (the lone one's embedding is a few microseconds more).
    EXPECT_NEAR(itl(setting, plan, mode) / (2 * half), 1, 0.01);
    EXPECT_GT(predict_requests(setting, plan, mode).breakdown[TimeClass::bubble], Seconds(0));
  }
}

TEST(FlattenedInference, MemoryOfIterationsChangesNothing) {
  Setting setting = server(4, 4, 5);
  setting.workload.output_tokens = 30;
  setting.system.stack.serving.token_budget = 700;
  setting.system.stack.serving.max_batch = 4;
  const ParallelPlan plan = plan_of(2, 1, 2, 1);
  const SimulateOptions options{.time_infeasible = true, .mode = ExecutionMode::flattened};
  const Prediction fast = predict_requests(setting, plan),
                   plain = test::PlainSimulator(setting, options).run(plan);
  EXPECT_NEAR(fast.e2e / plain.e2e, 1, 1e-9);
  EXPECT_NEAR(fast.ttft / plain.ttft, 1, 1e-9);
  EXPECT_NEAR(fast.itl_spread.p95 / plain.itl_spread.p95, 1, 1e-9);
}

TEST(FlattenedInference, FaultsActOnTheFabric) {
  Setting setting = server(4, 4, 4);
  setting.system.fabric = {"ring", {test::dimension("ring", DimensionKind::ring, {4}, 50e9, 1e-6)}};
  setting.system.stack.communication.algorithms = {Algorithm::ring};
  const network::Fabric fabric(setting.system.fabric);
  FaultSet sick, cut;
  network::add_fault(sick, fabric, {fabric.find_link(0, 1), 0.5, {}}, network::FaultDirections::both);
  for (std::size_t link = 0; link < fabric.links().size(); ++link)
    cut.links.push_back({static_cast<std::int32_t>(link), 1, {}, true});
  Simulator simulator(setting, {.mode = ExecutionMode::flattened});
  const Prediction well = simulator.run(plan_of(4, 1, 1, 1));
  EXPECT_GT(simulator.run(plan_of(4, 1, 1, 1), sick).e2e, well.e2e);
  for (const ParallelPlan& plan : {plan_of(4, 1, 1, 1), plan_of(1, 1, 4, 1), plan_of(2, 1, 2, 1)})
    EXPECT_EQ(simulator.run(plan, cut).status, Status::unreachable);
}

}  // namespace
}  // namespace shardscape
