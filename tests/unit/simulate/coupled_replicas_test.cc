// Do replicas that share experts have the caches, the messages and the iterations that follow by hand?
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "engine/compute/expert_products.h"
#include "engine/model/block_kinds.h"
#include "engine/model/mlp/moe.h"
#include "engine/simulate.h"
#include "engine/step/layers/price_layers.h"
#include "tests/support/engine_fixture.h"

namespace shardscape {
namespace {

constexpr std::int64_t kCoupledPrompt = 800, kCoupledOutput = 100, kCoupledHidden = 1024, kCoupledLayers = 6;

/// Latent attention, 16 experts of which a token goes through 4.
Setting coupled_setting(std::int64_t ranks, std::int64_t concurrency) {
  Setting s;
  s.model = test::llama(kCoupledLayers, kCoupledHidden, 16, 16, 4096, 32000);
  s.model.moe = MixtureOfExperts{};
  s.model.moe->experts = 16;
  s.model.moe->top_k = 4;
  s.model.moe->expert_ffn_hidden = 512;
  s.model.latent = LatentAttention{AttentionKind::mla, 256, 128, 32, 64, 64};
  s.model.head_dim = 96;
  s.system.device = test::round_device();
  s.system.fabric = test::crossbar(ranks, 100e9, 1e-6);
  s.system.stack = test::plain_stack();
  s.workload = test::inference(kCoupledPrompt, kCoupledOutput, concurrency);
  return s;
}

ParallelPlan coupled_plan(std::int32_t tensor, std::int32_t data, std::int32_t expert,
                          std::int32_t split = 1) {
  ParallelPlan plan = test::plan_of(tensor, 1, 1, data);
  plan.expert = expert;
  plan.expert_tensor = split;
  return plan;
}

Prediction predict_coupled(const Setting& setting, const ParallelPlan& plan,
                           ExecutionMode mode = ExecutionMode::hierarchical) {
  Simulator simulator(setting, {.mode = mode});
  const Prediction out = simulator.run(plan);
  EXPECT_EQ(out.status, Status::ok) << name_of(out.reason);
  return out;
}

Reason refused(const Setting& setting, const ParallelPlan& plan) {
  return Simulator(setting, SimulateOptions{}).run(plan).reason;
}

// Six layers, 900 tokens in blocks of 16 (912), latent vectors of 128 + 32 values of 2 bytes. A tensor group has
// those of all 8 requests on each of its 4 ranks, 4 coupled replicas have those of 2.
TEST(CoupledReplicas, EachHasTheCacheOfItsOwnRequests) {
  const Setting s = coupled_setting(4, 8);
  const double request = 912 * 6 * 160 * 2.0;
  EXPECT_DOUBLE_EQ(predict_coupled(s, coupled_plan(4, 1, 4)).memory.kv_cache.value(), 8 * request);
  EXPECT_DOUBLE_EQ(predict_coupled(s, coupled_plan(1, 4, 4)).memory.kv_cache.value(), 2 * request);
  EXPECT_DOUBLE_EQ(predict_coupled(s, coupled_plan(2, 2, 4)).memory.kv_cache.value(), 4 * request);
}

// Experts are held once by the four ranks, however they are dealt and split; all else by each of them.
TEST(CoupledReplicas, ExpertsAreHeldOnceTogether) {
  const Setting s = coupled_setting(4, 8);
  const double expert = 3.0 * 512 * kCoupledHidden * 2, all = 16 * kCoupledLayers * expert;
  const double alone = predict_coupled(s, coupled_plan(1, 4, 1)).memory.weights.value();
  for (const auto& [dealt, split] : {std::pair{4, 1}, {2, 2}, {1, 4}})
    EXPECT_NEAR(predict_coupled(s, coupled_plan(1, 4, dealt, split)).memory.weights.value(),
                alone - 0.75 * all, 1e-6 * all)
        << dealt << " x " << split;
}

double call_bytes(const Setting& setting, const ParallelPlan& plan, std::int32_t sequences,
                  std::string_view name) {
  const model::LayerKey key = model::serving_layer_key(plan, sequences);
  for (const model::Operator& op : model::decode_block_operators(setting, 0, key, 1000)) {
    if (op.name == name) return op.forward_comm.repeats * op.forward_comm.bytes.value();
  }
  return -1;
}

// 8 sequences on each of 4 ranks, 1,024 values of 2 bytes. Gathered: all 32 tokens. Sent: of 4 choices among 4
// ranks a rank is met with 1 - (3/4)^4, so that 4 (1 - (3/4)^4) = 2.734 copies of each of 8 leave.
TEST(CoupledReplicas, DispatchSendsWhatTheStackSays) {
  Setting s = coupled_setting(4, 32);
  const double token = 2.0 * kCoupledHidden;
  const ParallelPlan dealt = coupled_plan(1, 4, 4), split = coupled_plan(1, 4, 1, 4),
                     both = coupled_plan(1, 4, 2, 2);
  EXPECT_DOUBLE_EQ(call_bytes(s, dealt, 8, "dispatch"), 32 * token);
  EXPECT_DOUBLE_EQ(call_bytes(s, dealt, 8, "combine"), 32 * token);
  EXPECT_DOUBLE_EQ(call_bytes(s, dealt, 8, "expert_gather"), 0);
  EXPECT_DOUBLE_EQ(call_bytes(s, split, 8, "dispatch"), 0);
  EXPECT_DOUBLE_EQ(call_bytes(s, split, 8, "expert_gather"), 32 * token);
  EXPECT_DOUBLE_EQ(call_bytes(s, both, 8, "dispatch"), 16 * token);
  EXPECT_DOUBLE_EQ(call_bytes(s, both, 8, "expert_gather"), 32 * token);
  s.system.stack.serving.dispatch = ServedDispatch::all_to_all;
  const double copies = 4 * (1 - std::pow(0.75, 4));
  EXPECT_NEAR(call_bytes(s, dealt, 8, "dispatch"), 8 * copies * token, 1e-9 * token);
  EXPECT_NEAR(call_bytes(s, dealt, 8, "combine"), 8 * copies * token, 1e-9 * token);
  // A tensor group has the same tokens everywhere, and nothing to send.
  EXPECT_DOUBLE_EQ(call_bytes(s, coupled_plan(4, 1, 4), 8, "dispatch"), -1);
}

// Four ranks for four choices: all get all tokens, by all-reduces where prompts are read, but as
// gathered where all decode. Eight ranks of four: each gets its own. In 4 bits with a scale for each 16 values 0.5625
// bytes of a value go out, 2 come back.
TEST(CoupledReplicas, TensorRtLlmChoosesByTheRanks) {
  Setting s = coupled_setting(8, 64);
  s.system.stack.serving.dispatch = ServedDispatch::trtllm;
  const double token = 2.0 * kCoupledHidden;
  const auto calls_of_prompts = [&](const ParallelPlan& plan) {
    std::vector<network::CollectiveOp> calls;
    for (const model::Operator& op :
         model::block_operators(s, 0, model::serving_layer_key(plan, 1), 800, model::Mode::prefill)) {
      if (op.name == "dispatch" || op.name == "combine") calls.push_back(op.forward_comm.op);
    }
    return calls;
  };
  const ParallelPlan few = coupled_plan(1, 4, 4), many = coupled_plan(1, 8, 8);
  using enum network::CollectiveOp;
  EXPECT_EQ(calls_of_prompts(few), (std::vector{all_reduce, all_reduce}));
  EXPECT_EQ(calls_of_prompts(many), (std::vector{all_to_all, all_to_all}));
  EXPECT_DOUBLE_EQ(call_bytes(s, few, 8, "dispatch"), 32 * token);
  EXPECT_NEAR(call_bytes(s, many, 8, "dispatch"), 8 * 8 * (1 - std::pow(7.0 / 8, 4)) * token, 1e-9 * token);
  s.workload.precision = PolicyName::fp4;
  auto& rates = s.system.device.sm.tensor_flops_per_clock;
  rates[static_cast<std::size_t>(Precision::fp4)] = rates[static_cast<std::size_t>(Precision::fp8)] =
      rates[static_cast<std::size_t>(Precision::bf16)];
  EXPECT_EQ(calls_of_prompts(few), (std::vector{all_gather, reduce_scatter}));
  EXPECT_DOUBLE_EQ(call_bytes(s, few, 8, "dispatch"), 32 * 0.5625 * kCoupledHidden);
  EXPECT_DOUBLE_EQ(call_bytes(s, few, 8, "combine"), 32 * token);
}

// What the stack sums where prompts are read it sends as it always does where all decode.
TEST(CoupledReplicas, PromptsAreSummedWhereTheStackSaysSo) {
  Setting s = coupled_setting(4, 32);
  s.system.stack.serving.prompts_summed = true;
  const ParallelPlan plan = coupled_plan(1, 4, 4);
  for (const ServedDispatch dispatch : {ServedDispatch::all_gather, ServedDispatch::kernels}) {
    s.system.stack.serving.dispatch = dispatch;
    const model::LayerKey key = model::serving_layer_key(plan, 1);
    std::size_t summed = 0;
    for (const model::Operator& op : model::block_operators(s, 0, key, 800, model::Mode::prefill)) {
      if (op.name != "dispatch" && op.name != "combine") continue;
      EXPECT_EQ(op.forward_comm.op, network::CollectiveOp::all_reduce);
      EXPECT_DOUBLE_EQ(op.forward_comm.bytes.value(), 4 * 800 * 2.0 * kCoupledHidden);
      ++summed;
    }
    EXPECT_EQ(summed, 2);
    for (const model::Operator& op : model::decode_block_operators(s, 0, key, 1000))
      EXPECT_TRUE(op.name != "dispatch" || op.forward_comm.op != network::CollectiveOp::all_reduce);
  }
}

// The replica with most sets the pace: 5 sequences on 4 replicas take the step of 8, one less that of 4.
TEST(CoupledReplicas, TheBusiestSetsThePace) {
  const ParallelPlan plan = coupled_plan(1, 4, 4);
  const auto step = [&](std::int64_t requests) {
    return predict_coupled(coupled_setting(4, requests), plan).step_time.value();
  };
  EXPECT_DOUBLE_EQ(step(5), step(8));
  EXPECT_DOUBLE_EQ(step(3), step(4));
  EXPECT_GT(step(5), step(4));
}

// Each replica reads its own prompts as they come, whole ones or not: with more requests in flight none of them waits
// for more than before. A prompt of 800 tokens fills a budget of 1,000 neither once nor twice.
TEST(CoupledReplicas, MoreRequestsDoNotLowerTheThroughput) {
  const auto rate = [](std::int64_t each, std::int64_t budget, ServingPolicy policy) {
    Setting s = coupled_setting(4, 4 * each);
    s.workload.output_tokens = 2;
    s.system.stack.serving.token_budget = budget;
    s.system.stack.serving.scheduler = policy;
    return predict_coupled(s, coupled_plan(1, 4, 4)).tokens_per_s_per_gpu;
  };
  for (const ServingPolicy policy : enum_values<ServingPolicy>()) {
    for (const std::int64_t budget : {800, 1000, 2000}) {
      double before = 0;
      for (std::int64_t each = 1; each <= 8; ++each) {
        const double now = rate(each, budget, policy);
        EXPECT_GE(now, 0.97 * before) << name_of(policy) << " budget " << budget << " requests " << each;
        before = std::max(before, now);
      }
    }
  }
}

// What coupled replicas do in an iteration is what each does: as many requests each take as long as those of one, but
// for what is on the wires and the experts, which are the same for 4 replicas however many of them have requests.
TEST(CoupledReplicas, EachServesItsOwnRequests) {
  const ParallelPlan plan = coupled_plan(1, 4, 4);
  for (const std::int64_t each : {1, 2, 3, 5}) {
    const Prediction full = predict_coupled(coupled_setting(4, 4 * each), plan);
    const Prediction fewer = predict_coupled(coupled_setting(4, 4 * each - 3), plan);
    EXPECT_DOUBLE_EQ(full.e2e.value(), fewer.e2e.value());
    EXPECT_DOUBLE_EQ(full.ttft.value(), fewer.ttft.value());
    // Little's law, for all of them.
    const double requests = 4.0 * static_cast<double>(each), tokens = requests * kCoupledOutput;
    EXPECT_NEAR(full.tokens_per_s_per_gpu * 4 * full.e2e.value(), tokens, 1e-9 * tokens);
    EXPECT_NEAR(fewer.tokens_per_s_per_gpu / full.tokens_per_s_per_gpu, (requests - 3) / requests, 1e-9);
  }
}

// Clients that are no multiple of the replicas: what is simulated is the busiest, and all together have no more
// requests in flight than there are clients (Little).
TEST(CoupledReplicas, NoMoreRequestsAreInFlightThanClients) {
  const ParallelPlan plan = coupled_plan(1, 4, 4);
  for (const std::int64_t clients : {1, 2, 3, 5, 8}) {
    Setting setting = coupled_setting(4, clients);
    LoadSpec load;
    load.prompt = Lengths::fixed(setting.workload.prompt_tokens);
    load.output = Lengths::fixed(kCoupledOutput);
    load.requests = {20, true};
    load.statistic = ClientStatistic::steady;
    load.warm_up = {4, true};
    setting.workload.load = load;
    const Prediction p = predict_coupled(setting, plan);
    const double in_flight = p.load.requests_per_s * p.e2e.value();
    EXPECT_NEAR(in_flight / static_cast<double>(clients), 1, 0.01) << clients;
    EXPECT_LE(p.decode_batch, static_cast<double>(clients));
  }
}

// Long and short requests by turns, each alone: whichever replica stands for all, it meets as many of both, and the
// mean time to the first token is the mean of theirs.
TEST(CoupledReplicas, EachMeetsAllKindsOfRequestsOfATrace) {
  for (const std::int32_t ranks : {2, 4}) {
    const auto ttft = [&](std::int32_t even, std::int32_t odd) {
      Setting setting = coupled_setting(ranks, 0);
      const auto trace = std::make_shared<Trace>();
      for (std::int32_t i = 0; i < 200; ++i)
        trace->requests.push_back({60.0 * i, i % 2 == 0 ? even : odd, 20, 0});
      LoadSpec load;
      load.trace = trace;
      load.prompt = {LengthLaw::trace, 0.5 * (even + odd), 1, 0, std::max(even, odd), std::min(even, odd)};
      load.output = {LengthLaw::trace, 20, 1, 0, 20, 20};
      load.requests = {200, false};
      setting.workload.load = load;
      return predict_coupled(setting, coupled_plan(1, ranks, ranks)).ttft.value();
    };
    const double longer = ttft(8000, 8000), shorter = ttft(100, 100);
    ASSERT_GT(longer, 1.5 * shorter);
    EXPECT_NEAR(ttft(8000, 100), 0.5 * (longer + shorter), 1e-6 * longer) << ranks;
    EXPECT_NEAR(ttft(100, 8000), 0.5 * (longer + shorter), 1e-6 * longer) << ranks;
  }
}

// One prompt of 1,024 tokens is read by one of four ranks: the experts of each meet a quarter of its choices, all else
// takes as long as where each rank has such a prompt.
TEST(CoupledReplicas, ExpertsMeetNoMoreThanAllRanksRead) {
  const ParallelPlan plan = coupled_plan(1, 4, 4);
  Setting s = coupled_setting(4, 1);
  s.workload.prompt_tokens = 1024;
  LoadSpec load;
  load.prompt = Lengths::fixed(1024);
  load.output = Lengths::fixed(kCoupledOutput);
  load.requests = {2, false};
  s.workload.load = load;
  const auto experts = [&](double tokens) {
    const auto ops = model::block_operators(s, 0, model::serving_layer_key(plan, 1),
                                            static_cast<std::int64_t>(tokens), model::Mode::prefill);
    double seconds = 0;
    bool between = false;
    for (const model::Operator& op : ops) {
      if (op.name == "dispatch") between = true;
      if (op.name == "combine") between = false;
      if (between && op.kind != model::OperatorKind::collective)
        seconds += step::price_forward(op, s).value();
    }
    return seconds;
  };
  ASSERT_GT(experts(1024), 1.5 * experts(256));
  for (const ExecutionMode mode : {ExecutionMode::hierarchical, ExecutionMode::flattened}) {
    s.system.stack.serving.attention_ranks = AttentionRanks::alike;
    const double each = predict_coupled(s, plan, mode).ttft.value();
    s.system.stack.serving.attention_ranks = AttentionRanks::dealt;
    const double one = predict_coupled(s, plan, mode).ttft.value();
    EXPECT_NEAR(each - one, kCoupledLayers * (experts(1024) - experts(256)), 1e-9 * each);
  }
}

TEST(CoupledReplicas, BothModesAgree) {
  for (const ServedDispatch dispatch : enum_values<ServedDispatch>()) {
    for (const ParallelPlan& plan :
         {coupled_plan(1, 4, 4), coupled_plan(2, 2, 4), coupled_plan(1, 4, 2, 2), coupled_plan(1, 4, 2)}) {
      Setting s = coupled_setting(4, 8);
      s.system.stack.serving.dispatch = dispatch;
      const Prediction fast = predict_coupled(s, plan);
      const Prediction slow = predict_coupled(s, plan, ExecutionMode::flattened);
      SCOPED_TRACE(testing::PrintToString(std::array{plan.tensor, plan.expert, plan.expert_tensor}));
      EXPECT_NEAR(slow.itl / fast.itl, 1, 0.02);
      EXPECT_NEAR(slow.ttft / fast.ttft, 1, 0.02);
      EXPECT_GT(fast.breakdown[TimeClass::expert_comm], Seconds(0));
    }
  }
}

// Each pool has its own split of the experts. A request's latent cache of 800 tokens is sent once to each replica
// that decodes it, whoever of the coupled ones that is.
TEST(CoupledReplicas, PoolsHaveTheirOwn) {
  const Setting s = coupled_setting(6, 8);
  ParallelPlan plan = coupled_plan(1, 4, 4);
  plan.prefill = {2, 1, 1, 2, 1};
  for (const ExecutionMode mode : {ExecutionMode::hierarchical, ExecutionMode::flattened}) {
    const Prediction out = predict_coupled(s, plan, mode);
    EXPECT_DOUBLE_EQ(out.kv_bytes.value(), 800 * 6 * 160 * 2.0);
    EXPECT_GT(out.itl, Seconds(0));
    EXPECT_NEAR(out.breakdown.total().value(), out.e2e.value(), 1e-9 * out.e2e.value());
  }
  plan.prefill = {1, 1, 2, 2, 1};
  const Prediction coupled = predict_coupled(s, plan);
  plan.prefill = {1, 1, 2, 1, 1};
  const Prediction apart = predict_coupled(s, plan);
  EXPECT_LT(coupled.prefill_memory_peak, apart.prefill_memory_peak);
  EXPECT_NEAR(coupled.itl / apart.itl, 1, 0.05);  // the decoding pool is the same
}

// The last ranks of the machine may have nothing to do.
TEST(CoupledReplicas, PoolsNeedNotFillTheMachine) {
  ParallelPlan plan = coupled_plan(1, 4, 4);
  plan.prefill = {2, 1, 1, 2, 1};
  for (const ExecutionMode mode : {ExecutionMode::hierarchical, ExecutionMode::flattened}) {
    const Prediction full = predict_coupled(coupled_setting(6, 8), plan, mode);
    const Prediction part = predict_coupled(coupled_setting(8, 8), plan, mode);
    EXPECT_NEAR(part.itl / full.itl, 1, 1e-9);
    EXPECT_NEAR(part.ttft / full.ttft, 1, 1e-9);
    EXPECT_NEAR(part.tokens_per_s_per_gpu / full.tokens_per_s_per_gpu, 1, 1e-9);
  }
}

TEST(CoupledReplicas, OnlyWholeReplicasShareExperts) {
  const Setting s = coupled_setting(12, 12);
  EXPECT_EQ(refused(s, coupled_plan(1, 12, 8)), Reason::ranks_by_experts);
  EXPECT_EQ(refused(s, coupled_plan(4, 3, 2)), Reason::ranks_by_experts);
  ParallelPlan plan = coupled_plan(2, 6, 4);
  EXPECT_EQ(refused(s, plan), Reason::none);
  plan.order =
      *parse_rank_order("dp-tp-cp-pp");  // the ranks of an expert group would be of three replicas' halves
  EXPECT_EQ(refused(s, plan), Reason::ranks_by_experts);
  plan = coupled_plan(1, 8, 8);
  plan.prefill = {1, 1, 4, 8, 1};
  EXPECT_EQ(refused(s, plan), Reason::ranks_by_experts);
}

// The first of T tokens meets its k of E experts. The others make c = k (T - 1) / E choices for each expert in the
// mean: of exponential popularity x an expert is met by none of them with the chance that e^(-c x) has in the mean, the
// integral of e^(-x) e^(-c x). Of 4 ranks with 4 experts each the one with most has sqrt(2 ln 4) - 0.6 deviations more,
// of the binomial law.
TEST(ServedExperts, ABatchReadsTheExpertsThatItMeets) {
  const Setting s = coupled_setting(4, 8);
  const auto share = [&](const ParallelPlan& plan, std::int32_t tokens) {
    const model::OperatorBuilder b(s, model::serving_layer_key(plan, tokens), 1, 1000, model::Mode::decode);
    return model::expert_share(b);
  };
  const auto met = [](int tokens) {
    double left = 0;  // Simpson's rule
    constexpr int kSteps = 4000;
    for (int i = 0; i <= kSteps; ++i) {
      const double x = 40.0 * i / kSteps, weight = i == 0 || i == kSteps ? 1 : i % 2 == 1 ? 4 : 2;
      left += weight * std::exp(-x * (1 + (tokens - 1) * 4.0 / 16)) * (40.0 / kSteps) / 3;
    }
    return 1 - (1 - 4.0 / 16) * left;
  };
  EXPECT_NEAR(share(coupled_plan(1, 1, 1), 3).active, 16 * met(3), 1e-6);
  EXPECT_NEAR(share(coupled_plan(4, 1, 1), 3).active, 16 * met(3), 1e-6);
  const double deviation = std::sqrt(2 * std::log(4.0)) - 0.6;
  EXPECT_NEAR(share(coupled_plan(4, 1, 4), 2).active,
              4 * met(2) + deviation * std::sqrt(4 * met(2) * (1 - met(2))), 1e-6);
  EXPECT_NEAR(share(coupled_plan(1, 4, 4), 2).active,
              std::min(4.0, 4 * met(8) + deviation * std::sqrt(4 * met(8) * (1 - met(8)))), 1e-6);
  EXPECT_LE(share(coupled_plan(1, 4, 4), 200).active, 4);
}

// A checkpoint in 4 bits has its experts in 4 bits, with a scale of a byte for each 16 weights, and all else in 16.
TEST(ServedExperts, FourBitsAreOfExpertsAlone) {
  Setting s = coupled_setting(1, 1);
  const double wide = predict_coupled(s, coupled_plan(1, 1, 1)).memory.weights.value();
  s.workload.precision = PolicyName::fp4;
  s.system.device = test::round_device();  // which has no unit for it
  const double narrow = predict_coupled(s, coupled_plan(1, 1, 1)).memory.weights.value();
  const double weights = 16.0 * kCoupledLayers * 3 * 512 * kCoupledHidden;
  EXPECT_NEAR(wide - narrow, weights * (2 - 0.5625), 1);
  EXPECT_EQ(s.policy().expert_products, Precision::bf16);
  EXPECT_EQ(s.policy().products, Precision::bf16);
  Setting dense = s;
  dense.model.moe.reset();
  EXPECT_EQ(refused(dense, coupled_plan(1, 1, 1)), Reason::precision);
}

// Weights of 4 bits are converted where there are no units for them, and nowhere else.
TEST(ServedExperts, ConvertedWeightsTakeLonger) {
  Setting s = coupled_setting(1, 1);
  s.workload.precision = PolicyName::fp4;
  s.workload.prompt_tokens = 4096;
  s.system.device = test::round_device();
  s.system.device.architecture = Architecture::hopper;  // its kernels for experts have known constants
  const auto first = [&] { return predict_coupled(s, coupled_plan(1, 1, 1)).ttft.value(); };
  const double alone = first();
  s.system.stack.serving.converted_share = 0.5;
  EXPECT_GT(first(), 1.01 * alone);
  auto& rates = s.system.device.sm.tensor_flops_per_clock;
  const double bf16 = rates[static_cast<std::size_t>(Precision::bf16)];
  rates[static_cast<std::size_t>(Precision::fp8)] = 2 * bf16;
  rates[static_cast<std::size_t>(Precision::fp4)] = 4 * bf16;
  const double narrow = first();
  s.system.stack.serving.converted_share = 1;
  EXPECT_DOUBLE_EQ(first(), narrow);
}

// A checkpoint with scales of blocks: products in fp8 of every part but the routed experts run at the engine's share,
// where the matrix units do not scale blocks themselves; those of other formats, of other models and of training do
// not.
TEST(ServedExperts, ProductsWithScalesOfBlocksHaveTheirShare) {
  Setting s = coupled_setting(4, 8);
  s.model.moe->shared_experts = 1;
  s.model.moe->shared_ffn_hidden = 512;
  s.system.stack.serving.fp8_block_share = 0.6;
  s.system.stack.serving.fp8_expert_share = 1;
  const auto slowed = [&](PolicyName precision, Architecture architecture, bool blocks, model::Mode mode) {
    s.workload.precision = precision;
    s.system.device.architecture = architecture;
    s.model.fp8_block_scales = blocks;
    std::vector<std::string> names;
    for (const model::Operator& op :
         model::block_operators(s, 0, model::serving_layer_key(coupled_plan(1, 4, 4), 1), 800, mode))
      if (op.rate_share == 0.6) names.emplace_back(op.name);
    return names;
  };
  const std::vector<std::string> all = {"latent_down",       "query_up",  "key_value_up",
                                        "output_projection", "shared_in", "shared_out"};
  EXPECT_EQ(slowed(PolicyName::fp8, Architecture::hopper, true, model::Mode::prefill), all);
  EXPECT_TRUE(slowed(PolicyName::fp8, Architecture::blackwell, true, model::Mode::prefill).empty());
  EXPECT_TRUE(slowed(PolicyName::fp8, Architecture::hopper, false, model::Mode::prefill).empty());
  EXPECT_TRUE(slowed(PolicyName::bf16, Architecture::hopper, true, model::Mode::prefill).empty());
  EXPECT_TRUE(slowed(PolicyName::fp8, Architecture::hopper, true, model::Mode::training).empty());
}

// In fp8 products of experts run at the engine's share of other products, also where tokens are sent to their experts;
// but where DeepEP's kernels send them DeepGEMM has them.
TEST(ServedExperts, NarrowProductsHaveTheirShare) {
  using enum ServedDispatch;
  Setting s = coupled_setting(4, 8);
  s.workload.precision = PolicyName::fp8;
  const auto rate_share = [&](ServedDispatch dispatch, std::int32_t expert) {
    s.system.stack.serving.dispatch = dispatch;
    s.system.stack.serving.fp8_expert_share = 0.5;
    const ParallelPlan plan = coupled_plan(1, 4, expert);
    const auto ops = model::decode_block_operators(s, 0, model::serving_layer_key(plan, 8), 1000);
    double least = 1;
    for (const model::Operator& op : ops) least = std::min(least, op.rate_share);
    return least;
  };
  EXPECT_EQ(rate_share(all_to_all, 1), 0.5);
  EXPECT_EQ(rate_share(all_to_all, 4), 0.5);
  EXPECT_EQ(rate_share(kernels, 1), 0.5);
  EXPECT_EQ(rate_share(kernels, 4), 1);
  s.system.stack.serving.fp8_blackwell_share = 0.25;
  const auto of_prompts = [&](Architecture architecture) {
    s.system.device.architecture = architecture;
    double least = 1;
    for (const model::Operator& op : model::block_operators(
             s, 0, model::serving_layer_key(coupled_plan(1, 4, 4), 1), 800, model::Mode::prefill))
      least = std::min(least, op.rate_share);
    return least;
  };
  s.system.stack.serving.dispatch = all_to_all;
  EXPECT_EQ(of_prompts(Architecture::hopper), 0.5);
  EXPECT_EQ(of_prompts(Architecture::blackwell), 0.125);
  EXPECT_EQ(rate_share(all_to_all, 4), 0.5) << "decoding is bound by weights";
  s.system.stack.serving.dispatch = kernels;
  EXPECT_EQ(of_prompts(Architecture::blackwell), 1);
}

// Fewer kernels: no permutation, one choice, activation and sum within others; one product of 256 + 160 columns for
// the latent vectors. In fp8 each product but the shared experts' first has its input cast before: 3 bytes a value.
TEST(ServedExperts, KernelsAreFused) {
  Setting s = coupled_setting(1, 1);
  s.model.moe->shared_experts = 1;
  s.model.moe->shared_ffn_hidden = 512;
  const auto decode = [&] {
    return model::decode_block_operators(s, 0, model::serving_layer_key(coupled_plan(1, 1, 1), 8), 1000);
  };
  const auto count = [](const std::vector<model::Operator>& ops, std::string_view name) {
    return std::ranges::count(ops, name, &model::Operator::name);
  };
  const std::vector<model::Operator> plain = decode();
  EXPECT_EQ(count(plain, "permute"), 0);
  EXPECT_EQ(count(plain, "query_down"), 0);
  EXPECT_EQ(count(plain, "quantise"), 0);
  for (const model::Operator& op : plain) {
    if (op.name == "expert_choice") {
      EXPECT_EQ(op.forward.kernels, 1);
    } else if (op.name == "shared_sum") {
      EXPECT_EQ(op.forward.kernels, 0);
    } else if (op.name == "latent_down") {
      EXPECT_EQ(op.gemm, (compute::GemmShape{8, 256 + 160, kCoupledHidden, 1}));
    }
  }
  s.workload.precision = PolicyName::fp8;
  const std::vector<model::Operator> narrow = decode();
  EXPECT_EQ(count(narrow, "quantise"), 6);
  for (std::size_t i = 1; i < narrow.size(); ++i) {
    if (narrow[i].name == "latent_down") {
      EXPECT_DOUBLE_EQ(narrow[i - 1].forward.traffic.value(), 3.0 * 8 * kCoupledHidden);
    } else if (narrow[i].name == "shared_in") {
      EXPECT_NE(narrow[i - 1].name, "quantise");
    }
  }
}

// In fp4 a dense block casts the inputs of its four products, 2.5 bytes a value; mixtures of experts do so in the
// kernels of their experts, which alone are in fp4.
TEST(ServedExperts, DenseBlocksCastInputsToFourBits) {
  Setting s = coupled_setting(1, 1);
  s.system.device.sm.tensor_flops_per_clock[static_cast<std::size_t>(Precision::fp4)] = 4096;
  s.workload.precision = PolicyName::nvfp4;
  const auto decode = [&] {
    return model::decode_block_operators(s, 0, model::serving_layer_key(coupled_plan(1, 1, 1), 8), 1000);
  };
  const auto casts = [](const std::vector<model::Operator>& ops) {
    return std::ranges::count(ops, "quantise", &model::Operator::name);
  };
  EXPECT_EQ(casts(decode()), 0);
  s.model.moe.reset();
  s.model.latent.reset();
  const std::vector<model::Operator> dense = decode();
  EXPECT_EQ(casts(dense), 4);
  const auto product = std::ranges::find(dense, "qkv_projection", &model::Operator::name);
  ASSERT_TRUE(product != dense.begin() && product != dense.end());
  EXPECT_DOUBLE_EQ((product - 1)->forward.traffic.value(), 2.5 * 8 * kCoupledHidden);
  s.workload.precision = PolicyName::fp8;  // scaled ahead, in the kernels before the products
  EXPECT_EQ(casts(decode()), 0);
}

TEST(ServedExperts, RecipesHaveNarrowCachesWhereThereAreUnitsOfFourBits) {
  Setting s = coupled_setting(1, 1);
  s.workload.precision = PolicyName::fp8;
  s.system.stack.serving.fp8_cache_blackwell = true;
  EXPECT_EQ(s.policy().kv_cache, Precision::bf16);
  s.system.device.sm.tensor_flops_per_clock[static_cast<std::size_t>(Precision::fp4)] = 4096;
  EXPECT_EQ(s.policy().kv_cache, Precision::fp8);
  s.workload.precision = PolicyName::fp4;
  EXPECT_EQ(s.policy().kv_cache, Precision::fp8);
  s.workload.precision = PolicyName::bf16;
  EXPECT_EQ(s.policy().kv_cache, Precision::bf16);
  s.workload.precision = PolicyName::fp8;
  s.model.moe.reset();
  EXPECT_EQ(s.policy().kv_cache, Precision::bf16);
}

// What is read narrower than it is multiplied takes the bytes of the one and the math of the other.
TEST(ServedExperts, StoredWeightsAreReadAsTheyAre) {
  const DeviceSpec device = test::round_device();
  const compute::ExpertLoads loads{{{8, 3}}};
  const auto bytes = [&](std::optional<Precision> stored) {
    return compute::grouped_product(loads, 512, 1024, Precision::bf16, device, {false, false, stored})
        .work.bytes;
  };
  EXPECT_NEAR((bytes(std::nullopt) - bytes(Precision::fp4)).value(), 8 * 512 * 1024 * (2 - 0.5625), 1e-3);
}

}  // namespace
}  // namespace shardscape
