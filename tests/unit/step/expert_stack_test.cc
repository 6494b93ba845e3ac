// What a stack does with layers of experts in training: kernels of their own that move tokens, waits for loads, and
// launches of the host.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/network/collectives/expert_dispatch.h"
#include "engine/simulate.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/outcome_of_plan.h"

namespace shardscape {
namespace {

constexpr double kWireRate = 100e9;
constexpr double kRankTokens = 1024, kTokenValues = 1024, kExpertBlocks = 4;

Setting stack_setting() {
  Setting s;
  s.model = test::llama(4, 1024, 16, 4, 512, 32000);
  s.model.moe = MixtureOfExperts{.experts = 8, .top_k = 2, .expert_ffn_hidden = 512};
  s.system.device = test::round_device();
  s.system.fabric = test::crossbar(8, kWireRate);
  s.system.stack = test::plain_stack();
  s.system.stack.experts.dispatch = ExpertDispatcher::kernels;
  s.workload = test::training(1024, 16);
  return s;
}

ParallelPlan dealt(std::int32_t expert) {
  ParallelPlan plan = test::plan_of(1, 1, 1, 8);
  plan.expert = expert;
  return plan;
}

void expect_modes_agree(const Setting& setting, const ParallelPlan& plan, double tolerance) {
  const double fast = test::outcome_of(setting, plan).prediction.step_time.value();
  const double slow = test::outcome_of(setting, plan, ExecutionMode::flattened).prediction.step_time.value();
  EXPECT_NEAR(fast / slow, 1, tolerance);
}

ExpertDispatch::Normal round_kernels() {
  ExpertDispatch::Normal k;
  k.dispatch_start = Seconds(30e-6);
  k.combine_start = Seconds(50e-6);
  k.row_bandwidth = BytesPerSecond(1e9);
  k.copy = Seconds(0.1e-6);
  k.sm_bandwidth = BytesPerSecond(2e9);
  k.bandwidth = BytesPerSecond(50e9);
  k.local_copies = 1;
  return k;
}

TEST(ExpertStack, KernelsSendATokenOnceToEachRank) {
  // Two choices among 4 ranks meet 4 (1 - (3/4)^2) = 1.75 of them. Two microbatches, four calls a layer; a rank
  // keeps a quarter. Where the device has no constants, the links alone count.
  const test::PlanOutcome outcome = test::outcome_of(stack_setting(), dealt(4));
  const double sent = 2 * kExpertBlocks * 4 * (1.75 * kRankTokens * kTokenValues * 2) * 3 / 4;
  EXPECT_NEAR(outcome.bytes[ParallelGroup::expert].value(), sent, 1e-6 * sent);
  EXPECT_NEAR(outcome.prediction.breakdown[TimeClass::expert_comm].value(), sent / kWireRate, 1e-12);
}

TEST(ExpertStack, KernelsTakeTheirClosedForm) {
  Setting setting = stack_setting();
  setting.system.device.node.experts.normal = round_kernels();
  network::ExpertExchange call;
  call.tokens = kRankTokens;
  call.hidden = kTokenValues;
  call.top_k = 2;
  call.experts = 8;
  call.ranks = 4;
  call.value_bytes = 2;
  const auto one = [&](network::DispatchWay way) {
    return network::expert_exchange_time(setting.system.device.node.experts, DispatchKernels::normal, way,
                                         call)
        ->value();
  };
  // Dispatch, combine, and each as the other's backward.
  const double both = one(network::DispatchWay::dispatch) + one(network::DispatchWay::combine);
  const test::PlanOutcome outcome = test::outcome_of(setting, dealt(4));
  EXPECT_NEAR(outcome.prediction.breakdown[TimeClass::expert_comm].value(), 2 * kExpertBlocks * 2 * both,
              1e-9);
  for (const std::int32_t expert : {2, 4, 8}) expect_modes_agree(setting, dealt(expert), 1e-3);
}

TEST(ExpertStack, HybridKernelsTakeWhatTheLinksDo) {
  // As a device without constants (above), whatever this one's are, within a domain and over two.
  Setting setting = stack_setting();
  for (const bool domains : {false, true}) {
    if (domains) {
      setting.system.fabric = test::crossbar(2, kWireRate);
      setting.system.fabric.dimensions.push_back(
          test::dimension("rail", DimensionKind::switched, {4}, kWireRate / 4));
      setting.system.fabric.dimensions.back().scope = LinkScope::scale_out;
    }
    setting.system.device.node.experts.normal = {};
    setting.system.stack.experts.dispatch = ExpertDispatcher::kernels;
    const test::PlanOutcome links = test::outcome_of(setting, dealt(4));
    setting.system.device.node.experts.normal = round_kernels();
    EXPECT_GT(test::outcome_of(setting, dealt(4)).prediction.step_time, links.prediction.step_time);
    setting.system.stack.experts.dispatch = ExpertDispatcher::hybrid;
    const test::PlanOutcome hybrid = test::outcome_of(setting, dealt(4));
    EXPECT_EQ(hybrid.prediction.step_time, links.prediction.step_time);
    EXPECT_EQ(hybrid.bytes[ParallelGroup::expert], links.bytes[ParallelGroup::expert]);
    expect_modes_agree(setting, dealt(4), 1e-3);
  }
}

TEST(ExpertStack, ExchangesMayOverlapBetweenDomainsAlone) {
  // Two GPUs a domain: experts over 2 ranks stay inside one, over 4 they leave it.
  Setting setting = stack_setting();
  setting.system.fabric = test::crossbar(2, kWireRate);
  setting.system.fabric.dimensions.push_back(
      test::dimension("rail", DimensionKind::switched, {4}, kWireRate / 4));
  setting.system.fabric.dimensions.back().scope = LinkScope::scale_out;
  StackProfile::Communication& communication = setting.system.stack.communication;
  const auto seconds = [&](std::int32_t expert, double overlap, OverlappedExchanges which) {
    communication.expert_overlap = overlap;
    communication.overlapped_exchanges = which;
    return test::outcome_of(setting, dealt(expert)).prediction.step_time.value();
  };
  using enum OverlappedExchanges;
  EXPECT_LT(seconds(2, 1, everywhere), seconds(2, 0, everywhere));
  EXPECT_EQ(seconds(2, 1, between_domains), seconds(2, 0, everywhere));
  EXPECT_LT(seconds(4, 1, between_domains), seconds(4, 0, everywhere));
  EXPECT_EQ(seconds(4, 1, between_domains), seconds(4, 1, everywhere));
  expect_modes_agree(setting, dealt(2), 1e-3);
  expect_modes_agree(setting, dealt(4), 0.01);
}

TEST(ExpertStack, MoreProcessorsMoveTokensFaster) {
  Setting setting = stack_setting();
  setting.system.device.node.experts.normal = round_kernels();
  const double few = test::outcome_of(setting, dealt(8)).prediction.step_time.value();
  setting.system.stack.experts.dispatch_sms = 80;
  EXPECT_LT(test::outcome_of(setting, dealt(8)).prediction.step_time.value(), few);
}

TEST(ExpertStack, NarrowDispatchSendsHalfOnTheWayOutOfForward) {
  // Of four calls a layer, all of bf16, one takes 1 + 4 / 128 bytes a value instead of 2.
  Setting setting = stack_setting();
  setting.system.device.sm.tensor_flops_per_clock[static_cast<std::size_t>(Precision::fp8)] = 2048;
  setting.workload.precision = PolicyName::fp8;
  const double wide =
      test::outcome_of(setting, dealt(4)).prediction.breakdown[TimeClass::expert_comm].value();
  setting.system.stack.experts.fp8_dispatch = true;
  const double narrow =
      test::outcome_of(setting, dealt(4)).prediction.breakdown[TimeClass::expert_comm].value();
  EXPECT_NEAR(narrow / wide, (3 + (1 + 4.0 / 128) / 2) / 4, 1e-9);
  setting.workload.precision = PolicyName::bf16;
  EXPECT_DOUBLE_EQ(test::outcome_of(setting, dealt(4)).prediction.breakdown[TimeClass::expert_comm].value(),
                   wide);
}

/// With a shared expert of that width, over wires of that rate.
Setting sharing(std::int64_t width, double wire, bool overlap) {
  Setting setting = stack_setting();
  setting.model.moe->shared_experts = 1;
  setting.model.moe->shared_ffn_hidden = width;
  setting.system.fabric = test::crossbar(8, wire);
  setting.system.stack.experts.dispatch = ExpertDispatcher::library;
  setting.system.stack.experts.shared_overlap = overlap;
  return setting;
}

TEST(ExpertStack, WideSharedExpertsHideTheExchanges) {
  // Products of 1024 x 1024 x 65536 and more last longer than exchanges of 4 MB on wires of 100 GB/s.
  const Prediction plain = test::outcome_of(sharing(65536, kWireRate, false), dealt(4)).prediction;
  const Prediction beside = test::outcome_of(sharing(65536, kWireRate, true), dealt(4)).prediction;
  EXPECT_GT(plain.breakdown[TimeClass::expert_comm], Seconds(1e-4));
  EXPECT_NEAR(beside.breakdown[TimeClass::expert_comm].value(), 0, 1e-12);
  EXPECT_NEAR((plain.step_time - beside.step_time).value(), plain.breakdown[TimeClass::expert_comm].value(),
              1e-9);
}

TEST(ExpertStack, SlowExchangesHideNoMoreThanTheSharedExpertsTake) {
  // What is hidden then is the work of the shared experts, the same on wires of any rate; none of it is gone.
  const auto hidden = [&](double wire) {
    const Prediction plain = test::outcome_of(sharing(512, wire, false), dealt(4)).prediction;
    const Prediction beside = test::outcome_of(sharing(512, wire, true), dealt(4)).prediction;
    EXPECT_DOUBLE_EQ(plain.breakdown[TimeClass::compute].value(),
                     beside.breakdown[TimeClass::compute].value());
    return (plain.step_time - beside.step_time).value();
  };
  EXPECT_GT(hidden(1e9), 0);
  EXPECT_NEAR(hidden(1e9) / hidden(2e9), 1, 1e-9);
}

TEST(ExpertStack, SharedExpertsRunBesideExchangesInBothModes) {
  for (const std::int64_t width : {512, 65536}) {
    for (const Recompute recompute : {Recompute::none, Recompute::full}) {
      ParallelPlan plan = dealt(4);
      plan.recompute = recompute;
      expect_modes_agree(sharing(width, kWireRate, true), plan, 1e-6);
    }
  }
}

TEST(ExpertStack, NothingRunsBesideExchangesThatNobodyMakes) {
  const ParallelPlan plan = dealt(1);
  EXPECT_DOUBLE_EQ(test::outcome_of(sharing(512, kWireRate, true), plan).prediction.step_time.value(),
                   test::outcome_of(sharing(512, kWireRate, false), plan).prediction.step_time.value());
}

TEST(ExpertStack, TheDeviceWaitsForLoadsOnceAForwardAndLayer) {
  Setting setting = stack_setting();
  const double without = test::outcome_of(setting, dealt(4)).prediction.step_time.value();
  setting.system.stack.experts.load_wait = Seconds(3e-3);
  EXPECT_NEAR(test::outcome_of(setting, dealt(4)).prediction.step_time.value(),
              without + 2 * kExpertBlocks * 3e-3, 1e-9);
  expect_modes_agree(setting, dealt(4), 1e-3);
  // Full recompute runs forward, and waits, again.
  ParallelPlan plan = dealt(4);
  plan.recompute = Recompute::full;
  const double again = test::outcome_of(setting, plan).prediction.step_time.value();
  setting.system.stack.experts.load_wait = Seconds(0);
  EXPECT_NEAR(again - test::outcome_of(setting, plan).prediction.step_time.value(),
              2 * 2 * kExpertBlocks * 3e-3, 1e-9);
}

TEST(ExpertStack, TheHostIsNotAheadOfLayersWhoseLoadsItReads) {
  // A host that takes H for each of four layers of experts in forward, longer than they run, and nothing for all else.
  // Where it reads their loads it meets the device in each: it is waited for H - d in each of them, whatever lies
  // before them. Where it does not, it is ahead of them by the dense layers and the embedding.
  constexpr double kMicrobatches = 2, kSlow = 0.1, kSlower = 0.15;
  const auto waited = [](std::int64_t dense, double launches, double wait, Recompute recompute) {
    Setting setting = stack_setting();
    setting.model.layers = static_cast<std::int64_t>(kExpertBlocks) + dense;
    setting.model.moe->first_dense_layers = dense;
    setting.system.stack.host = {};
    setting.system.stack.experts.forward_layer = Seconds(launches);
    setting.system.stack.experts.load_wait = Seconds(wait);
    ParallelPlan plan = dealt(4);
    plan.recompute = recompute;
    expect_modes_agree(setting, plan, 1e-3);
    return test::outcome_of(setting, plan).prediction.breakdown[TimeClass::host].value();
  };
  for (const Recompute recompute : {Recompute::none, Recompute::full}) {
    const double forwards = kMicrobatches * kExpertBlocks * (recompute == Recompute::full ? 2 : 1);
    const double meets = waited(0, kSlow, 1e-3, recompute);
    EXPECT_NEAR(waited(2, kSlow, 1e-3, recompute), meets, 1e-9);
    EXPECT_NEAR(waited(2, kSlower, 1e-3, recompute) - meets, forwards * (kSlower - kSlow), 1e-9);
    EXPECT_NEAR(meets - waited(0, kSlow, 2e-3, recompute), forwards * 1e-3, 1e-9);
    const double ahead = waited(0, kSlow, 0, recompute);
    EXPECT_LT(ahead, meets + forwards * 1e-3 - 1e-6);
    EXPECT_LT(waited(2, kSlow, 0, recompute), ahead - 1e-4);
  }
}

TEST(ExpertStack, PairsAreLaunchedWithoutAStop) {
  // Launches take about as long as layers run: a host that met the device within a pair would lose what it had launched
  // of the other pass by then.
  Setting setting = stack_setting();
  setting.workload.global_batch *= 4;
  setting.system.stack.communication.expert_overlap = 1;
  setting.system.stack.experts.load_wait = Seconds(1e-5);
  setting.system.stack.host = {};
  const ParallelPlan plan = dealt(4);
  const double layers = static_cast<double>(setting.workload.global_batch) / plan.data * kExpertBlocks;
  const Seconds layer = (1 / layers) * test::outcome_of(setting, plan).prediction.step_time;
  for (const double share : {0.2, 0.4, 0.8}) {
    setting.system.stack.experts.forward_layer = share * layer;
    setting.system.stack.experts.backward_layer = 2 * share * layer;
    expect_modes_agree(setting, plan, 1e-3);
  }
}

TEST(ExpertStack, TheHostLaunchesWhatExpertsAdd) {
  // A host that is slower than all else sets the pace: forward 100 ms and 8 experts of 5 ms, backward 200 ms and
  // again 8 of 5 ms, for each of four layers of two microbatches.
  Setting setting = stack_setting();
  setting.system.stack.host = {};
  StackProfile::Experts& experts = setting.system.stack.experts;
  experts.forward_layer = Seconds(0.1);
  experts.backward_layer = Seconds(0.2);
  experts.per_expert = Seconds(5e-3);
  const Prediction slow = test::outcome_of(setting, dealt(4)).prediction;
  const double launched = 2 * kExpertBlocks * (0.1 + 0.2 + 2 * 8 * 5e-3);
  EXPECT_GT(slow.step_time.value(), launched);
  EXPECT_LT(slow.step_time.value(), 1.05 * launched);
  expect_modes_agree(setting, dealt(4), 0.01);
  // A dense model has none of it.
  setting.model.moe.reset();
  const double dense = test::outcome_of(setting, dealt(1)).prediction.step_time.value();
  experts = {};
  EXPECT_DOUBLE_EQ(test::outcome_of(setting, dealt(1)).prediction.step_time.value(), dense);
}

TEST(ExpertStack, BiasesOfExpertsArePlainOperators) {
  // Two bytes a value, copies of 1,024 tokens for two experts of width 512 each: 2 x 1,024 rows. By the counts of
  // model/mlp/expert_biases.h: gated activation 34 bytes a value forward and 2 * 2 + 72 backward in place of the fused
  // 6 and 10, second bias 28 and 40 for each of 1,024 values; at 2 TB/s. Two experts of 8 on each of 4 ranks, so that
  // per layer and microbatch 7 - 1 and 11 + 2 - 1 kernels of 2 us are more, and 2 * 2 + 2 and 4 * 2 + 3 beside.
  Setting setting = stack_setting();
  setting.model.mlp_bias = true;
  const double fused = test::outcome_of(setting, dealt(4)).prediction.step_time.value();
  const double fused_memory = test::outcome_of(setting, dealt(4)).prediction.memory_peak.value();
  setting.system.stack.experts.fused_bias = false;
  const test::PlanOutcome plain = test::outcome_of(setting, dealt(4));
  const double rows = 2 * kRankTokens, inner = rows * 512, hidden = rows * kTokenValues;
  const double bytes = (34 - 6 + 76 - 10) * inner + (28 + 40) * hidden;
  const double kernels = (7 - 1) + (11 + 2 - 1) + 2 * 2 + 2 + 4 * 2 + 3;
  const double layers = 2 * kExpertBlocks;
  EXPECT_NEAR(plain.prediction.step_time.value() - fused, layers * (bytes / 2e12 + kernels * 2e-6), 1e-9);
  // Six tensors in place of two wait for the backward of one microbatch.
  EXPECT_NEAR(plain.prediction.memory_peak.value() - fused_memory, kExpertBlocks * 4 * 2 * inner, 1);
  expect_modes_agree(setting, dealt(4), 1e-3);
  // A host slower than all else launches their kernels, 7 and 2 * 2 + 2 of forward, 11 + 2 and 4 * 2 + 3 of backward.
  Setting slow = setting;
  slow.system.stack.experts.plain_launch = Seconds(10e-3);
  const double launched = layers * (7 + 2 * 2 + 2 + 11 + 2 + 4 * 2 + 3) * 10e-3;
  const double waited = test::outcome_of(slow, dealt(4)).prediction.step_time.value();
  EXPECT_GT(waited, launched);
  EXPECT_LT(waited, 1.05 * launched);
  expect_modes_agree(slow, dealt(4), 0.01);
  // Experts without biases, and MLPs that are none of them, run as before.
  setting.model.mlp_bias = false;
  const double without = test::outcome_of(setting, dealt(4)).prediction.step_time.value();
  setting.system.stack.experts.fused_bias = true;
  EXPECT_EQ(test::outcome_of(setting, dealt(4)).prediction.step_time.value(), without);
  setting.model.mlp_bias = true;
  setting.model.moe.reset();
  const double dense = test::outcome_of(setting, dealt(1)).prediction.step_time.value();
  setting.system.stack.experts.fused_bias = false;
  EXPECT_EQ(test::outcome_of(setting, dealt(1)).prediction.step_time.value(), dense);
}

TEST(ExpertStack, SinksAreFusedFromAnArchitectureOn) {
  Setting setting = stack_setting();
  setting.model.attention_sinks = true;
  setting.system.stack.attention = AttentionKernel::flash;
  setting.system.device.architecture = Architecture::hopper;
  const auto seconds = [&] { return test::outcome_of(setting, dealt(1)).prediction; };
  const Prediction fused = seconds();
  setting.system.stack.fused_sinks_from = Architecture::blackwell;
  const Prediction before = seconds();
  setting.system.stack.attention = AttentionKernel::naive;
  const Prediction naive = seconds();
  EXPECT_DOUBLE_EQ(before.step_time.value(), naive.step_time.value());
  EXPECT_DOUBLE_EQ(before.memory_peak.value(), naive.memory_peak.value());
  EXPECT_GT(before.step_time, fused.step_time);
  setting.system.stack.attention = AttentionKernel::flash;
  setting.system.stack.fused_sinks_from = Architecture::hopper;
  EXPECT_EQ(seconds().step_time, fused.step_time);
  setting.model.attention_sinks = false;
  const Prediction without = seconds();
  setting.system.stack.fused_sinks_from = Architecture::blackwell;
  EXPECT_EQ(seconds().memory_peak, without.memory_peak);
  EXPECT_EQ(seconds().step_time, without.step_time);
}

}  // namespace
}  // namespace shardscape
