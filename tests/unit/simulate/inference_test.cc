// Do latencies and throughput of servers agree with sums written out by hand, and do they respond to requests, caches
// and plans as they must?
#include <gtest/gtest.h>

#include <cmath>

#include "engine/simulate.h"
#include "tests/support/engine_fixture.h"

namespace shardscape {
namespace {

constexpr std::int64_t kPromptTokens = 1000, kOutputTokens = 200;

Setting busy_server(std::int64_t ranks, std::int64_t concurrency) {
  Setting s;
  s.model = test::llama(8, 4096, 32, 8, 14336, 128256);
  s.system.device = test::round_device();
  s.system.fabric = test::crossbar(ranks, 300e9, 1e-6);
  s.system.stack = test::plain_stack();
  s.system.stack.host.decode_step_fixed = Seconds(1e-3);
  s.workload = test::inference(kPromptTokens, kOutputTokens, concurrency);
  return s;
}

Prediction predicted(const Setting& setting, const ParallelPlan& plan) {
  const Prediction out = Simulator(setting).run(plan);
  EXPECT_EQ(out.status, Status::ok) << name_of(out.reason);
  return out;
}

TEST(Inference, AloneOneTokenTakesOneDecodeStep) {
  // step_time is one decode trip and the step's fixed cost; no other request's prefill comes between.
  const Prediction out = predicted(busy_server(1, 1), test::plan_of(1, 1, 1, 1));
  EXPECT_NEAR(out.itl / out.step_time, 1, 1e-12);
  EXPECT_EQ(out.breakdown[TimeClass::bubble].value(), 0);
}

TEST(Inference, OtherPrefillsComeBetween) {
  // Prompts of exactly a budget beside one decoding token: of 8 that start at once, each is read in an
  // iteration of its own while those before it decode. From then on one request ends in each of 8 consecutive
  // iterations and the next prompt is read in the following one. In a request's 199 gaps the 7 others are
  // read.
  Setting setting = busy_server(1, 8);
  setting.system.stack.serving.max_batch = 8;
  setting.system.stack.serving.token_budget = kPromptTokens + 7;
  const Prediction out = predicted(setting, test::plan_of(1, 1, 1, 1));
  const Prediction alone = predicted(busy_server(1, 1), test::plan_of(1, 1, 1, 1));
  const double prefill = alone.ttft.value() - 1e-3;  // but for the step's fixed cost
  EXPECT_GT(out.itl.value(), out.step_time.value() + 0.9 * 7 / 199 * prefill);
  EXPECT_LT(out.itl.value(), out.step_time.value() + 1.1 * 7 / 199 * prefill);
  EXPECT_NEAR(out.ttft / alone.ttft, 1, 0.1);
  EXPECT_LT(out.itl_spread.p50, 1.05 * out.step_time);
  EXPECT_LT(out.itl_spread.p95, 1.05 * out.step_time);  // 7 of 199 are longer: 3.5 %
}

TEST(Inference, PromptsThatFitTogetherStayTogether) {
  // 8 prompts in one iteration of 8000 tokens: nobody waits for anybody, and every gap is a decode step.
  const Prediction out = predicted(busy_server(1, 8), test::plan_of(1, 1, 1, 1));
  EXPECT_NEAR(out.itl / out.step_time, 1, 1e-3);
  EXPECT_EQ(out.ttft_spread.p50, out.ttft_spread.p95);
  EXPECT_DOUBLE_EQ(out.decode_batch, 8);
  EXPECT_NEAR(out.breakdown[TimeClass::bubble].value(), 0, 1e-12);
}

TEST(Inference, WholePromptsFirstMakeTheLaterOnesWait) {
  // Budget of one prompt: 8 prompts one after the other, then all decode together. TTFT is 4.5 prefills in
  // the mean, 4 and 8 at the percentiles (nearest rank of 8), and the first one waits 7 prefills for its next
  // token.
  Setting setting = busy_server(1, 8);
  setting.system.stack.serving.scheduler = ServingPolicy::prefill_priority;
  setting.system.stack.serving.token_budget = kPromptTokens;
  const Prediction out = predicted(setting, test::plan_of(1, 1, 1, 1));
  const Seconds prefill = predicted(busy_server(1, 1), test::plan_of(1, 1, 1, 1)).ttft;
  EXPECT_NEAR(out.ttft / prefill, 4.5, 1e-9);
  EXPECT_NEAR(out.ttft_spread.p50 / prefill, 4, 1e-9);
  EXPECT_NEAR(out.ttft_spread.p95 / prefill, 8, 1e-9);
  EXPECT_NEAR(out.itl.value(), out.step_time.value() + (3.5 / 199 * prefill).value(), 1e-6);
}

TEST(Inference, RequestsBeyondTheCacheWaitTheirTurn) {
  // A cache for 3 requests and a bit: 12 clients are served in fours of three.
  Setting setting = busy_server(1, 12);
  setting.system.stack.serving.kv_share = 1;
  const double request = 2.0 * 2 * 8 * 8 * 128 * (kPromptTokens + kOutputTokens);
  const MemoryUse one = predicted(busy_server(1, 1), test::plan_of(1, 1, 1, 1)).memory;
  setting.system.device.hbm.capacity_per_stack =
      Bytes((one.weights + one.reserve).value() + 3.5 * request + 3e9) / 5;
  const MemoryUse use = predicted(setting, test::plan_of(1, 1, 1, 1)).memory;
  const double room = 5 * setting.system.device.hbm.capacity_per_stack.value() - use.total().value();
  EXPECT_GE(room, 0);
  EXPECT_DOUBLE_EQ(std::fmod(use.kv_cache.value(), request), 0);
  EXPECT_TRUE(use.kv_cache.value() == 12 * request || room < request);

  setting = busy_server(1, 12);
  setting.system.stack.serving.max_batch = 3;
  const Prediction out = predicted(setting, test::plan_of(1, 1, 1, 1));
  const Prediction three = predicted(busy_server(1, 3), test::plan_of(1, 1, 1, 1));
  EXPECT_LE(out.decode_batch, 3);
  EXPECT_DOUBLE_EQ(out.memory.kv_cache.value(), 3 * request);
  // The server is as busy as with 3 clients; the other 9 requests only wait (Little's law).
  EXPECT_NEAR(out.tokens_per_s_per_gpu / three.tokens_per_s_per_gpu, 1, 1e-3);
  EXPECT_NEAR(out.e2e / three.e2e, 4, 4e-3);
}

TEST(Inference, Fp8CacheHalvesItUnderNarrowProducts) {
  // A cache in fp8 takes half the bytes of one in bf16, exactly, and is read in half the time; beside bf16
  // products the server keeps it as it is.
  Setting setting = busy_server(1, 8);
  setting.workload.prompt_tokens = 20000;
  setting.system.device.sm.tensor_flops_per_clock[static_cast<std::size_t>(Precision::fp8)] = 2048;
  setting.workload.precision = PolicyName::fp8;
  const Prediction wide = predicted(setting, test::plan_of(1, 1, 1, 1));
  setting.system.stack.serving.fp8_cache = true;
  const Prediction narrow = predicted(setting, test::plan_of(1, 1, 1, 1));
  EXPECT_DOUBLE_EQ(2 * narrow.memory.kv_cache.value(), wide.memory.kv_cache.value());
  EXPECT_EQ(narrow.memory.weights, wide.memory.weights);
  // 8 sequences of 20,100 tokens, 8 layers, 8 heads of 128: 2.6 GB less per step, of keys and values.
  const Bytes less(8 * 20100.0 * 8 * 2 * 8 * 128);
  EXPECT_NEAR((wide.step_time - narrow.step_time) / (less / setting.system.device.hbm_sustained()), 1, 0.02);
  EXPECT_LT(narrow.ttft, wide.ttft);

  setting.workload.precision = PolicyName::bf16;
  const Prediction kept = predicted(setting, test::plan_of(1, 1, 1, 1));
  setting.system.stack.serving.fp8_cache = false;
  EXPECT_EQ(kept.itl, predicted(setting, test::plan_of(1, 1, 1, 1)).itl);
}

TEST(Inference, RequestIsFirstTokenAndTheOthers) {
  for (const auto& plan : {test::plan_of(1, 1, 1, 1), test::plan_of(4, 1, 2, 1), test::plan_of(2, 2, 1, 2)}) {
    const Prediction out = predicted(busy_server(plan.gpus(), 8), plan);
    EXPECT_NEAR(out.e2e.value(), (out.ttft + 199.0 * out.itl).value(), 1e-12);
    EXPECT_NEAR(out.tokens_per_s_per_gpu * out.e2e.value() * static_cast<double>(plan.gpus()), 8 * 200.0,
                1e-6);
  }
}

TEST(Inference, DecodeReadsTheWeightsAndTheCache) {
  // No step can be faster than reading every block's weights and the head once, and the KV cache.
  for (const int concurrency : {1, 16, 64}) {
    for (const int tp : {1, 2, 8}) {
      const Setting setting = busy_server(tp, concurrency);
      const Prediction out = predicted(setting, test::plan_of(tp, 1, 1, 1));
      const double weights =
          2 * (8 * (2 * 4096.0 * 4096 + 2 * 4096.0 * 1024 + 3 * 4096.0 * 14336) + 128256.0 * 4096) / tp;
      const double cache = 2 * 2 * 8 * (8.0 / tp) * 128 * (kPromptTokens + kOutputTokens / 2.0) * concurrency;
      EXPECT_GE(out.step_time.value(), (weights + cache) / 2e12);
      EXPECT_LE(out.step_time.value() - 1e-3, 3 * (weights + cache) / 2e12 + 2e-3);
    }
  }
}

TEST(Inference, TensorParallelSpeedsUp) {
  double ttft = 1e9, itl = 1e9;
  for (const int tp : {1, 2, 4, 8}) {
    Setting setting = busy_server(tp, 1);
    setting.system.fabric = test::crossbar(tp, 300e9, 0.5e-6);  // where latency does not eat what is gained
    const Prediction out = predicted(setting, test::plan_of(tp, 1, 1, 1));
    EXPECT_LT(out.ttft.value(), ttft) << tp;
    EXPECT_LT(out.itl.value(), itl) << tp;
    ttft = out.ttft.value();
    itl = out.itl.value();
  }
}

TEST(Inference, PipelineLatencyIsThatOfOneDevicePlusHops) {
  // A token crosses all layers whatever the split: only p - 1 messages are added, here free of charge.
  Setting alone = busy_server(1, 1), cut = busy_server(4, 1);
  cut.system.fabric = test::crossbar(4, 1e30, 0);
  const Prediction one = predicted(alone, test::plan_of(1, 1, 1, 1));
  const Prediction four = predicted(cut, test::plan_of(1, 1, 4, 1));
  EXPECT_NEAR(four.itl / one.itl, 1, 1e-12);
  EXPECT_NEAR(four.ttft / one.ttft, 1, 1e-12);
}

TEST(Inference, HopsTakeWhatTheirOwnLinksDo) {
  // 8 stages on two nodes of 4: a trip has 6 hops inside of nodes, two links of 1 us at 300 GB/s, and one
  // between them, over two more of 5 us at 10 GB/s. A request of 1000 + 200 tokens makes one trip with its
  // prompt and 199 with a token; a token takes 4096 elements of 2 bytes.
  Setting setting = busy_server(8, 1);
  setting.system.fabric = {"tiers", {}};
  setting.system.fabric.dimensions.push_back(
      test::dimension("node", DimensionKind::switched, {4}, 300e9, 1e-6));
  setting.system.fabric.dimensions.push_back(
      test::dimension("nodes", DimensionKind::switched, {2}, 10e9, 5e-6));
  const auto trip = [](double tokens) {
    const double bytes = tokens * 4096 * 2;
    return 6 * (2e-6 + bytes / 300e9) + (2e-6 + 10e-6 + bytes / 10e9);
  };
  const Prediction out = predicted(setting, test::plan_of(1, 1, 8, 1));
  EXPECT_NEAR(out.breakdown[TimeClass::pipeline_comm].value(), trip(1000) + 199 * trip(1), 1e-9);
}

TEST(Inference, ReplicasShareTheRequests) {
  // 4 replicas of 16 requests each serve 64 as one replica serves 16.
  const Prediction one = predicted(busy_server(1, 16), test::plan_of(1, 1, 1, 1));
  const Prediction four = predicted(busy_server(4, 64), test::plan_of(1, 1, 1, 4));
  EXPECT_NEAR(four.itl / one.itl, 1, 1e-12);
  EXPECT_NEAR(four.tokens_per_s_per_gpu / one.tokens_per_s_per_gpu, 1, 1e-12);
  EXPECT_DOUBLE_EQ(four.memory_peak.value(), one.memory_peak.value());
}

TEST(Inference, CacheGrowsWithRequestsAndTokens) {
  const auto cache = [](std::int64_t concurrency, std::int64_t prompt, std::int64_t output) {
    Setting setting = busy_server(1, concurrency);
    setting.workload = test::inference(prompt, output, concurrency);
    return predicted(setting, test::plan_of(1, 1, 1, 1)).memory.kv_cache.value();
  };
  EXPECT_DOUBLE_EQ(cache(1, 1000, 200), 2.0 * 2 * 8 * 8 * 128 * 1200);
  EXPECT_DOUBLE_EQ(cache(16, 1000, 200), 16 * cache(1, 1000, 200));
  EXPECT_DOUBLE_EQ(cache(1, 2000, 400), 2 * cache(1, 1000, 200));
}

}  // namespace
}  // namespace shardscape
