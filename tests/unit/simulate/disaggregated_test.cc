// Do two pools give the times, the bytes and the memory that follow from the two kinds of replicas by hand?
#include <gtest/gtest.h>

#include <cmath>

#include "engine/network/fabric/fabric.h"
#include "engine/simulate.h"
#include "engine/step/serving/kv_transfer.h"
#include "tests/support/engine_fixture.h"

namespace shardscape {
namespace {

using test::plan_of;

constexpr std::int64_t kPrompt = 1000, kOutput = 50;
constexpr double kLink = 20e9, kLatency = 3e-6;

Setting server(std::int64_t ranks, std::int64_t concurrency) {
  Setting s;
  s.model = test::llama(8, 1024, 16, 8, 2816, 32000);
  s.system.device = test::round_device();
  s.system.fabric = test::crossbar(ranks, kLink, kLatency);
  s.system.stack = test::plain_stack();
  s.workload = test::inference(kPrompt, kOutput, concurrency);
  return s;
}

ParallelPlan pools(const ParallelPlan& decode, PrefillPool prefill) {
  ParallelPlan plan = decode;
  plan.prefill = prefill;
  return plan;
}

Prediction predict_pools(const Setting& setting, const ParallelPlan& plan,
                         ExecutionMode mode = ExecutionMode::hierarchical) {
  const Prediction out = Simulator(setting, {.mode = mode}).run(plan);
  EXPECT_EQ(out.status, Status::ok) << name_of(out.reason);
  EXPECT_NEAR(out.breakdown.total().value(), out.e2e.value(), 1e-9 * out.e2e.value());
  return out;
}

/// Keys and values of the prompt: 2 x 2 bytes x 1000 tokens x 8 layers x 8 heads x 64.
constexpr double kCache = 2.0 * 2 * kPrompt * 8 * 8 * 64;

// One rank in each pool, one request at a time. Prefill and decode cost what they cost where a rank does
// both; between them the cache crosses one link out of a rank and one into another.
TEST(Disaggregated, OneAtATimeIsPrefillTransferAndSteps) {
  for (const ExecutionMode mode : {ExecutionMode::hierarchical, ExecutionMode::flattened}) {
    const Setting setting = server(2, 1);
    const Prediction out = predict_pools(setting, pools(plan_of(1, 1, 1, 1), {1, 1, 1}), mode);
    const Prediction alone = predict_pools(server(1, 1), plan_of(1, 1, 1, 1), mode);
    EXPECT_DOUBLE_EQ(out.kv_bytes.value(), kCache);
    const network::Fabric fabric(setting.system.fabric);
    std::vector<std::int32_t> path;
    fabric.append_route(0, 1, path);
    double latency = 0;
    for (const std::int32_t link : path)
      latency += fabric.links()[static_cast<std::size_t>(link)].latency.value();
    EXPECT_GE(latency, kLatency);
    const double transfer = kCache / kLink + latency;
    EXPECT_NEAR(out.kv_transfer.value(), transfer, 1e-9 * transfer);
    EXPECT_NEAR(out.breakdown[TimeClass::kv_transfer].value(), transfer, 1e-9 * transfer);
    EXPECT_NEAR(out.ttft.value(), alone.ttft.value() + transfer, 1e-9);
    EXPECT_NEAR(out.itl / alone.itl, 1, 1e-6);
    EXPECT_NEAR(out.tokens_per_s_per_gpu, kOutput / out.e2e.value() / 2, 1e-6 * out.tokens_per_s_per_gpu);
  }
}

// From 2 x 2 ranks to 4: each of the four that decode takes two heads of eight layers, from the two stages of
// the rank that has those heads. The two stages of a tensor rank serve two ranks each: every link out carries
// half of a quarter twice, every link in a quarter.
TEST(Disaggregated, EveryRankTakesItsHeadsAndLayers) {
  const Setting setting = server(8, 1);
  const Prediction out = predict_pools(setting, pools(plan_of(4, 1, 1, 1), {2, 2, 1}));
  EXPECT_DOUBLE_EQ(out.kv_bytes.value(), kCache);
  EXPECT_NEAR(out.kv_transfer.value(), kCache / 4 / kLink, 2.1 * kLatency);
}

// Conservation, whatever the layouts: each rank of a decoding replica gets its part once, so a cache is sent
// as often as its heads are replicated; and no rank sends what it does not hold.
TEST(Disaggregated, CachesAreWholeWhateverTheLayouts) {
  for (const std::int32_t tensor : {1, 2, 4, 8, 16}) {
    for (const std::int32_t pipeline : {1, 2, 4}) {
      for (const ParallelPlan& decode :
           {plan_of(1, 1, 1, 2), plan_of(2, 2, 2, 1), plan_of(16, 1, 1, 1), plan_of(8, 1, 4, 1)}) {
        const ParallelPlan plan = pools(decode, {tensor, pipeline, 2});
        Setting setting = server(plan.gpus(), 1);
        const Prediction out = predict_pools(setting, plan);
        const double copies = std::max(1, decode.tensor / 8);
        EXPECT_NEAR(out.kv_bytes.value(), copies * kCache, 1e-6 * kCache);
        EXPECT_GT(out.kv_transfer, Seconds(0));
      }
    }
  }
}

TEST(Disaggregated, StacksSayWhenCachesLeave) {
  Setting setting = server(2, 1);
  const ParallelPlan plan = pools(plan_of(1, 1, 1, 1), {1, 1, 1});
  const Prediction after = predict_pools(setting, plan);
  setting.system.stack.serving.kv_transfer = KvTransfer::per_layer;
  const Prediction layers = predict_pools(setting, plan);
  EXPECT_LT(layers.breakdown[TimeClass::kv_transfer], after.breakdown[TimeClass::kv_transfer]);
  EXPECT_LT(layers.ttft, after.ttft);
  EXPECT_NEAR(layers.itl / after.itl, 1, 1e-9);
}

/// A device twice as quick as another, with twice the memory.
DeviceSpec twice(DeviceSpec device) {
  device.name = "twice";
  device.sm.clock *= 2;
  device.hbm.bandwidth_per_stack *= 2;
  device.hbm.capacity_per_stack *= 2;
  return device;
}

// One request at a time on unequal pools: its first token takes what it does where both pools have the device and the
// precision of the one that reads, every further one what it does where both have those of the one that decodes.
TEST(Disaggregated, UnequalPoolsTakeTheirOwnTimes) {
  const ParallelPlan plan = pools(plan_of(1, 1, 1, 1), {1, 1, 1});
  for (const ExecutionMode mode : {ExecutionMode::hierarchical, ExecutionMode::flattened}) {
    const Setting slow = server(2, 1);
    Setting quick = slow, unequal = slow, reversed;
    quick.system.device = twice(slow.system.device);
    unequal.system.prefill_device = quick.system.device;
    reversed = quick;
    reversed.system.prefill_device = slow.system.device;
    const Prediction of_slow = predict_pools(slow, plan, mode), of_quick = predict_pools(quick, plan, mode);
    ASSERT_LT(of_quick.ttft, 0.8 * of_slow.ttft);
    ASSERT_LT(of_quick.itl, 0.8 * of_slow.itl);
    const Prediction one = predict_pools(unequal, plan, mode), other = predict_pools(reversed, plan, mode);
    EXPECT_NEAR(one.ttft / of_quick.ttft, 1, 1e-9);
    EXPECT_NEAR(one.itl / of_slow.itl, 1, 1e-6);
    EXPECT_NEAR(other.ttft / of_slow.ttft, 1, 1e-9);
    EXPECT_NEAR(other.itl / of_quick.itl, 1, 1e-6);

    Setting wide = slow;
    wide.system.device.sm.tensor_flops_per_clock[static_cast<std::size_t>(Precision::fp8)] = 2048;
    Setting narrow = wide, narrow_reads = wide;
    narrow.workload.precision = PolicyName::fp8;
    narrow_reads.system.stack.serving.prefill_precision = PrefillPrecision::fp8;
    const Prediction of_narrow = predict_pools(narrow, plan, mode),
                     reads = predict_pools(narrow_reads, plan, mode);
    ASSERT_LT(of_narrow.ttft, 0.9 * of_slow.ttft);
    EXPECT_NEAR(reads.ttft / of_narrow.ttft, 1, 1e-9);
    EXPECT_NEAR(reads.itl / of_slow.itl, 1, 1e-6);
  }
}

// Tokens pay for the GPUs of both pools, each at the price and the power of its own.
TEST(Disaggregated, TokensPayForBothPools) {
  const ParallelPlan plan = pools(plan_of(1, 1, 1, 1), {1, 1, 3});
  Setting setting = server(4, 1);
  setting.system.device.price_per_hour = 2;
  setting.system.device.power = Watts(400);
  setting.system.prefill_device = setting.system.device;
  setting.system.prefill_device->price_per_hour = 6;
  setting.system.prefill_device->power = Watts(800);
  const Prediction out = predict_pools(setting, plan);
  const double rate = out.tokens_per_s_per_gpu;  // of four GPUs, three of which read
  EXPECT_NEAR(out.cost_per_million_tokens, (2 + 3 * 6) / 4.0 / 3600 / rate * 1e6,
              1e-9 * out.cost_per_million_tokens);
  EXPECT_NEAR(out.joules_per_token, (400 + 3 * 800) / 4.0 / rate, 1e-9 * out.joules_per_token);
  setting.system.prefill_device->price_per_hour = 0;
  EXPECT_TRUE(std::isnan(predict_pools(setting, plan).cost_per_million_tokens));
}

// A pool that is told to have what it has anyway is no other pool.
TEST(Disaggregated, EqualPoolsMayBeSpeltOut) {
  const ParallelPlan plan = pools(plan_of(2, 1, 1, 2), {2, 1, 2});
  const Setting setting = server(8, 12);
  Setting told = setting;
  told.system.prefill_device = setting.system.device;
  told.system.stack.serving.prefill_precision = PrefillPrecision::bf16;
  EXPECT_TRUE(pools_differ(told));
  EXPECT_FALSE(pools_differ(prefill_setting(told)));
  const Prediction out = predict_pools(setting, plan), same = predict_pools(told, plan);
  EXPECT_EQ(out.ttft, same.ttft);
  EXPECT_EQ(out.e2e, same.e2e);
  EXPECT_EQ(out.memory_peak, same.memory_peak);
}

// Each pool has the memory of its own device: weights that fit in the one may not fit in the other.
TEST(Disaggregated, UnequalPoolsHaveTheirOwnMemory) {
  const ParallelPlan plan = pools(plan_of(1, 1, 1, 1), {1, 1, 1});
  Setting setting = server(2, 1);
  const Prediction fits = predict_pools(setting, plan);
  DeviceSpec small = setting.system.device;
  small.hbm.capacity_per_stack *= 0.9 * (fits.prefill_memory_peak / small.memory_capacity());
  setting.system.prefill_device = small;
  const Prediction out = Simulator(setting, {}).run(plan);
  EXPECT_EQ(out.status, Status::memory);
  EXPECT_EQ(out.memory_peak, fits.prefill_memory_peak) << "of the device that is over-full";
  EXPECT_EQ(memory_of_fullest(setting.system, out.peak_in_prefill), small.memory_capacity());
  // The pool that decodes is fuller in bytes, but not by what it has.
  setting.system.prefill_device = twice(twice(setting.system.device));
  const Prediction large = Simulator(setting, {}).run(plan);
  EXPECT_EQ(large.status, Status::ok);
  EXPECT_EQ(memory_of_fullest(setting.system, large.peak_in_prefill),
            setting.system.device.memory_capacity());
}

TEST(Disaggregated, EachPoolNeedsUnitsForItsPrecision) {
  const ParallelPlan plan = pools(plan_of(1, 1, 1, 1), {1, 1, 1});
  Setting setting = server(2, 1);
  ASSERT_FALSE(setting.system.device.supports(Precision::fp4));
  setting.system.stack.serving.prefill_precision = PrefillPrecision::nvfp4;
  const Prediction out = Simulator(setting, {}).run(plan);
  EXPECT_EQ(out.status, Status::unsupported);
  EXPECT_EQ(out.reason, Reason::precision);
  static_assert(enum_names<PrefillPrecision>().size() == enum_names<PolicyName>().size() + 1);
  for (std::size_t i = 0; i < enum_names<PolicyName>().size(); ++i)
    EXPECT_EQ(enum_names<PolicyName>()[i], enum_names<PrefillPrecision>()[i + 1]);
}

// Caches of whole requests in the one pool, of prompts in the other; a pool that decodes two at a time lets
// the others wait; a plan without room for one request is rejected for memory.
TEST(Disaggregated, MemoryOfEachPoolIsItsOwn) {
  Setting setting = server(2, 8);
  const ParallelPlan plan = pools(plan_of(1, 1, 1, 1), {1, 1, 1});
  const Prediction roomy = predict_pools(setting, plan);
  // With their last token, in blocks of 16: 1056 tokens; prompts alone 1008.
  Details details;
  Simulator(setting).run(plan, {}, &details);
  EXPECT_DOUBLE_EQ(details.stage_memory.at(0).kv_cache.value(), 8 * kCache / kPrompt * 1056);
  EXPECT_DOUBLE_EQ(details.prefill.stage_memory.at(0).kv_cache.value(), 8 * kCache / kPrompt * 1008);
  EXPECT_EQ(roomy.prefill_memory_peak, details.prefill.stage_memory.at(0).total());
  EXPECT_EQ(roomy.memory_peak, std::max(roomy.prefill_memory_peak, details.stage_memory.at(0).total()));
  setting.system.stack.serving.max_batch = 2;
  const Prediction narrow = predict_pools(setting, plan);
  EXPECT_LE(narrow.decode_batch, 2);
  EXPECT_GT(narrow.breakdown[TimeClass::bubble], roomy.breakdown[TimeClass::bubble]);

  setting.system.device.hbm.capacity_per_stack = Bytes(1e6);
  const Prediction out = Simulator(setting).run(plan);
  EXPECT_EQ(out.status, Status::memory);
  EXPECT_EQ(out.reason, Reason::memory_capacity);
}

TEST(Disaggregated, BothPoolsHaveToDivide) {
  const Setting setting = server(6, 2);
  Simulator simulator(setting);
  const auto reason = [&](const ParallelPlan& plan) { return simulator.run(plan).reason; };
  EXPECT_EQ(reason(pools(plan_of(3, 1, 1, 1), {1, 1, 3})), Reason::heads_by_tensor);
  EXPECT_EQ(reason(pools(plan_of(1, 1, 1, 3), {3, 1, 1})), Reason::heads_by_tensor);
  EXPECT_EQ(reason(pools(plan_of(1, 1, 1, 3), {1, 3, 1})), Reason::layers_by_pipeline);
}

// A sick link on the way of the caches slows their transfer; one that cuts a pool off is said so.
TEST(Disaggregated, FaultsActOnTheTransfer) {
  Setting setting = server(2, 1);
  const ParallelPlan plan = pools(plan_of(1, 1, 1, 1), {1, 1, 1});
  const network::Fabric fabric(setting.system.fabric);
  std::vector<std::int32_t> path;
  fabric.append_route(0, 1, path);
  Simulator simulator(setting);
  const Prediction well = simulator.run(plan);
  FaultSet half, dead;
  half.links.push_back({path.front(), 0.5, {}, false});
  dead.links.push_back({path.front(), 1, {}, true});
  const Prediction again = simulator.rerun(half);
  EXPECT_NEAR(again.kv_transfer / well.kv_transfer, 2, 1e-2);
  EXPECT_NEAR(again.itl / well.itl, 1, 1e-9);
  EXPECT_EQ(simulator.run(plan, dead).status, Status::unreachable);
}

// The first pool's tensor groups and the second's lie on ranks of their own, whatever the sizes.
TEST(Disaggregated, PoolsOfAnySizeFlattenedAsPriced) {
  for (const auto& plan : {pools(plan_of(2, 1, 1, 1), {4, 1, 1}), pools(plan_of(4, 1, 1, 1), {1, 2, 3}),
                           pools(plan_of(2, 1, 2, 2), {2, 1, 3})}) {
    Setting setting = server(plan.gpus(), 12);
    setting.system.stack.host.decode_layer = Seconds(2e-5);
    const Prediction h = predict_pools(setting, plan);
    const Prediction f = predict_pools(setting, plan, ExecutionMode::flattened);
    EXPECT_NEAR(f.itl / h.itl, 1, 0.05) << plan.gpus();
    EXPECT_NEAR(f.e2e / h.e2e, 1, 0.05) << plan.gpus();
  }
}

}  // namespace
}  // namespace shardscape
