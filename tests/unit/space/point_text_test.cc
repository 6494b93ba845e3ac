// Does a plan written by hand become the plan that was meant?
#include "sweep/space/point_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace shardscape::sweep {
namespace {

SpaceSpec example_space() {
  SpaceSpec spec;
  spec[PlanKey::tensor].values = {4, 8};
  spec[PlanKey::pipeline].values = {2, 4};
  spec[PlanKey::zero_stage].values = {1, 0};
  spec[PlanKey::recompute].values = codes_of({Recompute::full});
  spec[PlanKey::microbatch].values = {2};
  spec[PlanKey::sequence_parallel].values = {true};
  return spec;
}

std::string problems_of(std::string_view text, Phase phase = Phase::training) {
  const auto point = parse_point(text, example_space(), 64, phase);
  if (point) return "";
  std::string all;
  for (const Problem& problem : point.error().list()) all += problem.field + ": " + problem.message + "\n";
  return all;
}

TEST(PointText, TakesEveryKey) {
  const auto point = parse_point(
      "tp=8, "
      "sp=0,cp=2,pp=2,dp=2,zero=3,recompute=selective,mbs=4,schedule=interleaved,vpp=5,order=cp-tp-dp-pp",
      example_space(), 64, Phase::training);
  ASSERT_TRUE(point) << problems_of("");
  EXPECT_EQ(point->plan,
            (ParallelPlan{8,
                          2,
                          2,
                          2,
                          false,
                          3,
                          Recompute::selective,
                          4,
                          ScheduleKind::interleaved,
                          5,
                          {PlanAxis::context, PlanAxis::tensor, PlanAxis::data, PlanAxis::pipeline}}));
  EXPECT_FALSE(point->concurrency);
}

TEST(PointText, ExpertsFoldIntoTheOtherDegrees) {
  const auto point = parse_point("tp=4,pp=2,ep=8,etp=2", example_space(), 64, Phase::training);
  ASSERT_TRUE(point);
  EXPECT_EQ(point->plan.expert, 8);
  EXPECT_EQ(point->plan.expert_tensor, 2);
  EXPECT_EQ(point->plan.data, 8);
  EXPECT_EQ(point->plan.gpus(), 64);
  const std::string text = to_point_text(point->plan, Phase::training);
  EXPECT_NE(text.find("dp=8,ep=8,etp=2,"), std::string::npos) << text;
  // Experts split over the tensor group alone are what a plan without a word for them has.
  const auto plain = parse_point("tp=4,pp=2,ep=1,etp=4", example_space(), 64, Phase::training);
  ASSERT_TRUE(plain);
  EXPECT_FALSE(plain->plan.folds_experts());
}

TEST(PointText, AxesLeftOutTakeTheFirstValueAndTheFill) {
  const auto point = parse_point("", example_space(), 64, Phase::training);
  ASSERT_TRUE(point);
  EXPECT_EQ(point->plan, (ParallelPlan{4, 1, 8, 2, true, 1, Recompute::full, 2}));  // dp = 64 / (4 * 2)
}

TEST(PointText, AxesWithoutEffectGoIdle) {
  const auto point = parse_point("tp=1,pp=1,dp=1,cp=64,zero=0,vpp=1,schedule=gpipe,sp=1", example_space(), 64,
                                 Phase::training);
  ASSERT_TRUE(point);
  EXPECT_FALSE(point->plan.sequence_parallel);
  EXPECT_EQ(point->plan.schedule, ScheduleKind::one_f_one_b);
}

TEST(PointText, InferenceTakesAPoolThatPrefills) {
  const auto point =
      parse_point("tp=8,pp=1,prefill_tp=4,prefill_dp=4", example_space(), 64, Phase::inference);
  ASSERT_TRUE(point);
  EXPECT_EQ(point->plan.prefill, (PrefillPool{4, 1, 4}));
  EXPECT_EQ(point->plan.data, 6);  // (64 - 16) / 8
  EXPECT_EQ(point->plan.gpus(), 64);
  const std::string text = to_point_text(point->plan, Phase::inference);
  EXPECT_EQ(text, "tp=8,pp=1,dp=6,prefill_tp=4,prefill_pp=1,prefill_dp=4");
  EXPECT_EQ(parse_point(text, example_space(), 64, Phase::inference)->plan, point->plan);
  const auto experts = parse_point("tp=8,pp=1,ep=8,prefill_tp=4,prefill_dp=4,prefill_ep=2,prefill_etp=2",
                                   example_space(), 64, Phase::inference);
  ASSERT_TRUE(experts);
  EXPECT_EQ(experts->plan.prefill, (PrefillPool{4, 1, 4, 2, 2}));
  EXPECT_EQ(to_point_text(experts->plan, Phase::inference),
            "tp=8,pp=1,dp=6,ep=8,prefill_tp=4,prefill_pp=1,prefill_dp=4,prefill_ep=2,prefill_etp=2");
  const auto problem = [](const char* bad) { return problems_of(bad, Phase::inference); };
  EXPECT_NE(problem("prefill_tp=4").find("no effect without prefill_dp"), std::string::npos);
  EXPECT_NE(problem("prefill_tp=8,prefill_dp=8").find("less than the number of GPUs, 64"), std::string::npos);
  EXPECT_NE(problem("tp=32,pp=1,prefill_dp=16").find("48 beside those that prefill"), std::string::npos);
  EXPECT_NE(problems_of("prefill_dp=2").find("no meaning for training"), std::string::npos);
}

TEST(PointText, InferenceTakesConcurrency) {
  const auto point = parse_point("tp=8,pp=1,concurrency=32", example_space(), 64, Phase::inference);
  ASSERT_TRUE(point);
  EXPECT_EQ(point->concurrency, 32);
  EXPECT_EQ(parse_point("request_rate=2.5", example_space(), 64, Phase::inference)->request_rate, 2.5);
  EXPECT_EQ(parse_point("request_rate=2.5 /s", example_space(), 64, Phase::inference)->request_rate, 2.5);
  EXPECT_EQ(parse_point("request_rate=150/min", example_space(), 64, Phase::inference)->request_rate, 2.5);
  const auto one = parse_point("prefill_tp=1", SpaceSpec{}, 1, Phase::inference);
  ASSERT_FALSE(one);
  EXPECT_EQ(one.error().list().front().message, "has no value on 1 GPU");
  EXPECT_NE(problems_of("request_rate=0", Phase::inference).find("requests per second from"),
            std::string::npos);
  EXPECT_EQ(point->plan.data, 8);
  EXPECT_EQ(point->plan.recompute, Recompute::none);
  EXPECT_NE(problems_of("zero=1", Phase::inference).find("no meaning for inference"), std::string::npos);
  EXPECT_NE(problems_of("concurrency=4").find("no meaning for training"), std::string::npos);
  EXPECT_NE(problems_of("concurrency=9000000000000000000", Phase::inference).find("from 1 to 1000000"),
            std::string::npos);
}

TEST(PointText, ReportsEveryProblemWithWhatWouldBeRight) {
  const std::string all =
      problems_of("tpp=8,tp=x,pp=2,pp=4,zero=4,recompute=ful,sp=maybe,order=tp-tp-dp-pp,mbs=0,junk");
  for (const char* part :
       {"tpp: unknown key (did you mean 'tp'?)", "tp: 'x' is not a whole number from 1 to 64",
        "pp: is given twice", "zero: '4' is not a whole number from 0 to 3",
        "recompute: 'ful' is not one of none, selective, full (did you mean 'full'?)", "sp: 'maybe'",
        "order: 'tp-tp-dp-pp'", "mbs: '0' is not a whole number from 1 to", "junk: write it as key=value"}) {
    EXPECT_NE(all.find(part), std::string::npos) << part << " not in\n" << all;
  }
  EXPECT_EQ(std::ranges::count(all, '\n'), 9);
}

TEST(PointText, DegreesMustMultiplyToTheGpus) {
  EXPECT_NE(problems_of("tp=8,pp=4,dp=4").find("tp*cp*pp*dp = 8*1*4*4 must be the number of GPUs, 64"),
            std::string::npos);
  EXPECT_NE(problems_of("tp=5").find("5*1*2*dp must be"), std::string::npos);  // nothing fills this
  EXPECT_NE(problems_of("tp=64,pp=64,cp=64,dp=64"), "");
  EXPECT_EQ(problems_of("tp=1,pp=64"), "");  // not in the space, but a plan for these GPUs
}

TEST(PointText, VirtualStagesNeedInterleaving) {
  EXPECT_NE(problems_of("vpp=2").find("schedule=interleaved"), std::string::npos);
  EXPECT_EQ(problems_of("vpp=1"), "");
  EXPECT_EQ(problems_of("vpp=2,schedule=interleaved"), "");
}

TEST(PointText, ReadsBackWhatItWrites) {
  const ParallelPlan plan{8,
                          2,
                          2,
                          2,
                          true,
                          3,
                          Recompute::selective,
                          4,
                          ScheduleKind::interleaved,
                          5,
                          {PlanAxis::context, PlanAxis::tensor, PlanAxis::data, PlanAxis::pipeline}};
  const std::string text = to_point_text(plan, Phase::training);
  EXPECT_EQ(text,
            "tp=8,sp=1,cp=2,pp=2,dp=2,zero=3,recompute=selective,mbs=4,schedule=interleaved,vpp=5,order=cp-"
            "tp-dp-pp");
  EXPECT_EQ(parse_point(text, SpaceSpec{}, 64, Phase::training)->plan, plan);
}

}  // namespace
}  // namespace shardscape::sweep
