#include <gtest/gtest.h>

#include <algorithm>

#include "engine/spec/plan.h"
#include "engine/spec/stack.h"
#include "engine/spec/workload.h"
#include "tests/support/settings.h"
#include "tests/support/violations.h"

namespace shardscape {
namespace {

using test::violations;

TEST(RankOrder, AllTwentyFourOrdersSurviveARoundTrip) {
  RankOrder order = {PlanAxis::tensor, PlanAxis::context, PlanAxis::data, PlanAxis::pipeline};
  int orders = 0;
  do {
    ++orders;
    EXPECT_EQ(parse_rank_order(to_string(order)), order) << to_string(order);
  } while (std::ranges::next_permutation(order).found);
  EXPECT_EQ(orders, 24);
  EXPECT_EQ(to_string(kDefaultRankOrder), "tp-cp-dp-pp");
}

TEST(RankOrder, NothingElseParses) {
  for (const char* text : {"", "tp", "tp-cp-dp", "tp-cp-dp-dp", "tp-cp-dp-pp-", "-tp-cp-dp-pp",
                           "tp-cp-dp-pp-tp", "tp_cp_dp_pp", "TP-cp-dp-pp", "tp-cp-dp-xx", "tp--cp-dp-pp"}) {
    EXPECT_FALSE(parse_rank_order(text).has_value()) << text;
  }
}

TEST(ParallelPlan, DegreesAndGpus) {
  ParallelPlan plan;
  plan.tensor = 8, plan.context = 2, plan.data = 3, plan.pipeline = 5;
  EXPECT_EQ(plan.degree(PlanAxis::tensor), 8);
  EXPECT_EQ(plan.degree(PlanAxis::context), 2);
  EXPECT_EQ(plan.degree(PlanAxis::data), 3);
  EXPECT_EQ(plan.degree(PlanAxis::pipeline), 5);
  EXPECT_EQ(plan.gpus(), 240);
}

TEST(StackValidate, EveryRuleOnce) {
  const auto broken = [](auto change) {
    StackProfile stack = test::full_stack();
    change(stack);
    return violations(stack);
  };
  using S = StackProfile;
  EXPECT_EQ(broken([](S&) {}), "");
  EXPECT_EQ(broken([](S& s) { s.zero_slice = Seconds(-1); }), "zero_slice");
  EXPECT_EQ(broken([](S& s) { s.host.forward_layer = Seconds(-1); }), "host.forward_layer");
  EXPECT_EQ(broken([](S& s) { s.host.backward_layer = Seconds(-1); }), "host.backward_layer");
  EXPECT_EQ(broken([](S& s) { s.host.per_collective = Seconds(-1); }), "host.per_collective");
  EXPECT_EQ(broken([](S& s) { s.host.step_fixed = Seconds(-1); }), "host.step_fixed");
  EXPECT_EQ(broken([](S& s) { s.host.decode_layer = Seconds(-1); }), "host.decode_layer");
  EXPECT_EQ(broken([](S& s) { s.host.decode_step_fixed = Seconds(-1); }), "host.decode_step_fixed");
  EXPECT_EQ(broken([](S& s) { s.communication.call = Seconds(-1); }), "communication.call");
  EXPECT_EQ(broken([](S& s) { s.communication.rank_step = Seconds(-1); }), "communication.rank_step");
  EXPECT_EQ(broken([](S& s) { s.communication.scale_up_fraction = 0; }), "communication.scale_up_fraction");
  EXPECT_EQ(broken([](S& s) { s.communication.scale_out_fraction = 2; }), "communication.scale_out_fraction");
  EXPECT_EQ(broken([](S& s) { s.communication.tensor_overlap = 1.1; }), "communication.tensor_overlap");
  EXPECT_EQ(broken([](S& s) { s.communication.context_overlap = -1; }), "communication.context_overlap");
  EXPECT_EQ(broken([](S& s) { s.communication.data_overlap = 9; }), "communication.data_overlap");
  EXPECT_EQ(broken([](S& s) { s.communication.bucket = Bytes(0); }), "communication.bucket");
  EXPECT_EQ(broken([](S& s) { s.state.gradient_bytes = -1; }), "state.gradient_bytes");
  EXPECT_EQ(broken([](S& s) { s.state.gradient_comm_bytes = -1; }), "state.gradient_comm_bytes");
  EXPECT_EQ(broken([](S& s) { s.state.master_bytes = -1; }), "state.master_bytes");
  EXPECT_EQ(broken([](S& s) { s.state.moment_bytes = -1; }), "state.moment_bytes");
  EXPECT_EQ(broken([](S& s) { s.memory.reserve = Bytes(-1); }), "memory.reserve");
  EXPECT_EQ(broken([](S& s) { s.memory.fragmentation = 0.9; }), "memory.fragmentation");
}

TEST(WorkloadValidate, EachPhaseNeedsItsOwnNumbers) {
  EXPECT_EQ(violations(test::training(2048, 8)), "");
  EXPECT_EQ(violations(test::training(0, 8)), "sequence_length");
  EXPECT_EQ(violations(test::training(1, 0)), "global_batch");
  EXPECT_EQ(violations(test::inference(1, 1, 1)), "");
  EXPECT_EQ(violations(test::inference(0, 0, 0)), "prompt_tokens output_tokens concurrency");
}

}  // namespace
}  // namespace shardscape
