// Does a design point answer a load that is simulated request by request: its cache, its replicas, its overload?
#include <gtest/gtest.h>

#include <cmath>

#include "engine/simulate.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/prediction_fields.h"

namespace shardscape {
namespace {

Setting loaded(std::int64_t ranks, std::int64_t concurrency) {
  Setting s;
  s.model = test::llama(8, 4096, 32, 8, 14336, 128256);
  s.system.device = test::round_device();
  s.system.fabric = test::crossbar(ranks, 300e9, 1e-6);
  s.system.stack = test::plain_stack();
  s.system.stack.serving.scheduler = ServingPolicy::vllm;
  s.workload = test::inference(1000, 200, concurrency);
  LoadSpec load;
  load.prompt = Lengths::fixed(1000);
  load.output = Lengths::fixed(200);
  s.workload.load = load;
  return s;
}

Prediction answer_to(const Setting& setting, const ParallelPlan& plan, bool reference = false) {
  SimulateOptions options;
  options.reference = reference;
  const Prediction out = Simulator(setting, options).run(plan);
  EXPECT_EQ(out.status, Status::ok) << name_of(out.reason);
  return out;
}

TEST(SimulatedLoad, OneClientIsServedAsInTheSteadyState) {
  Setting setting = loaded(1, 1);
  const Prediction live = answer_to(setting, test::plan_of(1, 1, 1, 1));
  setting.workload.load.reset();
  const Prediction closed = answer_to(setting, test::plan_of(1, 1, 1, 1));
  EXPECT_NEAR(live.ttft / closed.ttft, 1, 1e-9);
  EXPECT_NEAR(live.itl / closed.itl, 1, 1e-9);
  EXPECT_NEAR(live.e2e / closed.e2e, 1, 1e-9);
  EXPECT_NEAR(live.tokens_per_s_per_gpu / closed.tokens_per_s_per_gpu, 1, 1e-9);
  EXPECT_NEAR(live.load.requests_per_s * closed.e2e.value(), 1, 1e-9);
  EXPECT_EQ(live.load.preemptions, 0);
  EXPECT_EQ(closed.load.requests_per_s, 0) << "the steady state has none of this";
}

TEST(SimulatedLoad, TheFrontEndAndTheFloorAreInTheTimeToFirstToken) {
  Setting setting = loaded(1, 1);
  const ParallelPlan plan = test::plan_of(1, 1, 1, 1);
  const double without = answer_to(setting, plan).ttft.value();
  setting.system.stack.serving.frontend = Seconds(0.125);
  EXPECT_NEAR(answer_to(setting, plan).ttft.value(), without + 0.125, 1e-9);
  setting.system.stack.serving.eager_floor = Seconds(without + 1);
  EXPECT_NEAR(answer_to(setting, plan).ttft.value(), without + 1.125, 1e-9);
  setting.system.stack.serving.first_prompts = Seconds(3);
  const double requests = static_cast<double>(setting.workload.load->requests.of(1));
  EXPECT_NEAR(answer_to(setting, plan).ttft.value(), without + 1.125 + 3 / requests, 1e-9)
      << "one of them meets it";
}

TEST(SimulatedLoad, TheReferencePathIsTheSame) {
  Setting setting = loaded(4, 12);
  setting.workload.load->prompt = Lengths::uniform(1000, 0.5);
  setting.workload.load->output = Lengths::lognormal(200, 0.5);
  for (const ServingPolicy policy : enum_values<ServingPolicy>()) {
    setting.system.stack.serving.scheduler = policy;
    const ParallelPlan plan = test::plan_of(2, 1, 1, 2);
    const auto fast = test::fields_of(answer_to(setting, plan)),
               slow = test::fields_of(answer_to(setting, plan, true));
    ASSERT_EQ(fast.size(), slow.size());
    for (std::size_t i = 0; i < fast.size(); ++i) {
      if (std::isnan(fast[i].value) && std::isnan(slow[i].value)) continue;  // what the device does not say
      EXPECT_NEAR(fast[i].value, slow[i].value, 1e-9 * std::max(1.0, std::abs(slow[i].value)))
          << name_of(policy) << ' ' << fast[i].name;
    }
  }
}

TEST(SimulatedLoad, ReplicasShareRequestsWhateverTheirNumber) {
  // Seven clients on two replicas: a lock-step closed loop has no such point.
  const Setting setting = loaded(2, 7);
  const Prediction out = answer_to(setting, test::plan_of(1, 1, 1, 2));
  EXPECT_GT(out.load.requests_per_s, answer_to(loaded(1, 7), test::plan_of(1, 1, 1, 1)).load.requests_per_s);
}

TEST(SimulatedLoad, PipelineGroupsAreServersOfTheirOwn) {
  const Setting setting = loaded(2, 8);
  const Prediction out = answer_to(setting, test::plan_of(1, 1, 2, 1));
  EXPECT_GT(out.load.kv_peak, 0);
  EXPECT_NEAR(out.load.requests_per_s * out.e2e.value(), 8, 2) << "Little, but for the end of the run";
}

TEST(SimulatedLoad, BreakdownAddsUp) {
  Setting setting = loaded(2, 24);
  setting.workload.load->statistic = ClientStatistic::steady;
  setting.workload.load->prompt = Lengths::uniform(1000, 0.5);
  const Prediction out = answer_to(setting, test::plan_of(1, 1, 1, 2));
  double sum = 0;
  for (const Seconds part : out.breakdown) sum += part.value();
  EXPECT_NEAR(sum / out.e2e.value(), 1, 1e-9);
}

TEST(SimulatedLoad, OverloadIsAValueAndTheRateThatHoldsHolds) {
  Setting setting = loaded(1, 0);
  LoadSpec& load = *setting.workload.load;
  load.requests = {400, false};
  load.request_rate = 1e6;
  setting.system.stack.serving.max_batch = 16;
  const ParallelPlan plan = test::plan_of(1, 1, 1, 1);
  const double holds = answer_to(setting, plan).load.sustained_per_s;
  ASSERT_GT(holds, 0);
  load.request_rate = 0.8 * holds;
  EXPECT_EQ(answer_to(setting, plan).load.sustained_per_s, 0);
  load.request_rate = 1.3 * holds;
  EXPECT_NEAR(answer_to(setting, plan).load.sustained_per_s, holds, 1e-9 * holds);
}

TEST(SimulatedLoad, ARequestThatNeverFitsFailsForMemory) {
  Setting setting = loaded(1, 1);
  LoadSpec& load = *setting.workload.load;
  const auto trace = std::make_shared<Trace>();
  trace->requests = {{0, 1000, 200, 0}, {1, 50'000'000, 200, 0}};
  load.trace = trace;
  load.prompt = {LengthLaw::trace, 1000, 1, 0, 50'000'000, 1000};
  load.output = {LengthLaw::trace, 200, 1, 0, 200, 200};
  const Prediction out = Simulator(setting).run(test::plan_of(1, 1, 1, 1));
  EXPECT_EQ(out.status, Status::memory);
}

// The cache is its share of what weights and activations leave. Where that share holds no request nothing is served,
// whether or not all that is free would hold it.
TEST(SimulatedLoad, AShareThatHoldsNoRequestFailsForMemory) {
  Setting setting = loaded(1, 2);
  for (const bool simulated : {true, false}) {
    if (!simulated) setting.workload.load.reset();
    setting.system.stack.serving.kv_share = 1;
    const ParallelPlan plan = test::plan_of(1, 1, 1, 1);
    const MemoryUse two = answer_to(setting, plan).memory;
    const Bytes capacity = setting.system.device.memory_capacity();
    // One request of 1,200 tokens: half of what two have.
    const double free = (capacity - two.total() + two.kv_cache).value(), one = two.kv_cache.value() / 2;
    ASSERT_GT(free, 4 * one);
    setting.system.stack.serving.kv_share = 1.01 * one / free;
    EXPECT_EQ(answer_to(setting, plan).status, Status::ok) << simulated;
    setting.system.stack.serving.kv_share = 0.99 * one / free;
    const Prediction out = Simulator(setting).run(plan);
    EXPECT_EQ(out.status, Status::memory) << simulated;
    EXPECT_NEAR(out.memory.kv_cache.value() / free, 1 / 0.99, one / free) << "as much as has this share";
    EXPECT_GT(out.memory_peak, capacity);
  }
}

// Four servers for three clients, and half a second for the first prompt of each: a run has it, the steady state is
// what it would be without. Throughput x time in the system = clients (Little).
TEST(SimulatedLoad, ColdStartsAreNoSteadyState) {
  Setting setting = loaded(4, 3);
  setting.workload.load->prompt = Lengths::fixed(10);
  setting.workload.load->output = Lengths::fixed(10);
  setting.workload.load->requests = {10, true};
  setting.workload.load->warm_up = {2, true};
  const ParallelPlan plan = test::plan_of(1, 1, 1, 4);
  const auto e2e = [&](ClientStatistic statistic, double first_prompts) {
    setting.workload.load->statistic = statistic;
    setting.system.stack.serving.first_prompts = Seconds(first_prompts);
    const Prediction out = answer_to(setting, plan);
    if (statistic == ClientStatistic::steady) {
      EXPECT_NEAR(out.load.requests_per_s * out.e2e.value() / 3, 1, 0.01) << first_prompts;
    }
    return out.e2e.value();
  };
  EXPECT_EQ(e2e(ClientStatistic::steady, 0.5), e2e(ClientStatistic::steady, 0));
  EXPECT_GT(e2e(ClientStatistic::run, 0.5), e2e(ClientStatistic::run, 0) + 4 * 0.5 / 30)
      << "one of the 30 on each server, and who comes behind it";
}

// Whoever reads prompts and whoever decodes, every request is served once, and its cache goes over the fabric.
TEST(SimulatedLoad, PoolsServeIt) {
  ParallelPlan plan = test::plan_of(1, 1, 1, 1);
  plan.prefill.data = 1;
  plan.prefill.tensor = 1;
  const Prediction out = Simulator(loaded(2, 4)).run(plan);
  ASSERT_EQ(out.status, Status::ok);
  EXPECT_GT(out.kv_transfer, Seconds(0));
  EXPECT_GE(out.ttft, out.kv_transfer) << "the first token is given when the cache has arrived";
  EXPECT_GT(out.load.requests_per_s, 0);
}

// So it is of the pool that decodes.
TEST(SimulatedLoad, AShareThatHoldsNoRequestOfAPoolFailsForMemory) {
  ParallelPlan plan = test::plan_of(1, 1, 1, 1);
  plan.prefill.data = 1;
  for (const bool simulated : {true, false}) {
    Setting setting = loaded(2, 2);
    if (!simulated) setting.workload.load.reset();
    setting.system.stack.serving.kv_share = 1;
    Details details;
    ASSERT_EQ(Simulator(setting).run(plan, {}, &details).status, Status::ok);
    const MemoryUse two = details.stage_memory.front();
    const Bytes capacity = setting.system.device.memory_capacity();
    const double free = (capacity - two.total() + two.kv_cache).value(), one = two.kv_cache.value() / 2;
    ASSERT_GT(free, 4 * one);
    setting.system.stack.serving.kv_share = 1.1 * one / free;
    EXPECT_EQ(answer_to(setting, plan).status, Status::ok) << simulated;
    setting.system.stack.serving.kv_share = 0.9 * one / free;
    const Prediction out = Simulator(setting).run(plan);
    EXPECT_EQ(out.status, Status::memory) << simulated;
    EXPECT_GT(out.memory_peak, capacity);
  }
}

// One server reads for three clients: its first prompt takes half a second longer, in a run and nowhere else.
TEST(SimulatedLoad, ColdStartsOfPoolsAreNoSteadyState) {
  Setting setting = loaded(2, 3);
  setting.workload.load->requests = {10, true};
  setting.workload.load->warm_up = {2, true};
  ParallelPlan plan = test::plan_of(1, 1, 1, 1);
  plan.prefill.data = 1;
  const auto ttft = [&](ClientStatistic statistic, double first_prompts) {
    setting.workload.load->statistic = statistic;
    setting.system.stack.serving.first_prompts = Seconds(first_prompts);
    return answer_to(setting, plan).ttft.value();
  };
  EXPECT_EQ(ttft(ClientStatistic::steady, 0.5), ttft(ClientStatistic::steady, 0));
  EXPECT_GE(ttft(ClientStatistic::run, 0.5), ttft(ClientStatistic::run, 0) + 0.5 / 30) << "one of the 30";
}

/// A server whose cache has room for four whole requests, and which begins as many as come, so that the youngest are
/// preempted and read again without end.
Setting thrashing() {
  Setting setting = loaded(1, 0);
  setting.system.device.hbm.capacity_per_stack = Bytes(24e9 / 5);
  setting.workload.concurrency = 0;
  setting.workload.prompt_tokens = setting.workload.output_tokens = 10000;
  LoadSpec& load = *setting.workload.load;
  load.prompt = load.output = Lengths::fixed(10000);
  load.request_rate = 50;
  load.requests = {2000, false};
  return setting;
}

TEST(SimulatedLoad, ServersThatFallBehindAreFollowedUntilTheirRateIsKnown) {
  const Setting setting = thrashing();
  Simulator simulator(setting);
  int asked = 0;  // once in 4,096 events
  simulator.watch([&](Seconds) { return ++asked < 2000; });
  const Prediction out = simulator.run(test::plan_of(1, 1, 1, 1));
  ASSERT_EQ(out.status, Status::ok) << asked;
  EXPECT_GT(out.load.preemptions, 10);
  EXPECT_GT(out.load.sustained_per_s, 0);
  EXPECT_LT(out.load.sustained_per_s, 1);
  EXPECT_EQ(out.load.done, 1);
  EXPECT_LE(out.breakdown.total(), out.e2e * (1 + 1e-9));
}

}  // namespace
}  // namespace shardscape
