// Which plans are listed, and in which order?
#include "sweep/space/design_space.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sweep/space/point_text.h"

namespace shardscape::sweep {
namespace {

std::vector<std::string> point_texts(const DesignSpace& space, Phase phase = Phase::training) {
  std::vector<std::string> texts;
  for (std::uint64_t id = 0; id < space.size(); ++id) {
    texts.push_back(to_point_text(space.point(id).plan, phase, ' '));
  }
  return texts;
}

TEST(DesignSpace, ListsNestedLoopsWithTheFillBuilt) {
  SpaceSpec spec;
  spec[PlanKey::tensor].values = {1, 2, 3, 4};  // 3 divides nothing
  spec[PlanKey::pipeline].values = {1, 2};
  const DesignSpace space(spec, 4, Phase::training, 1);
  EXPECT_EQ(space.tuples(), 5U);
  EXPECT_EQ(point_texts(space), (std::vector<std::string>{
                                    "tp=1 pp=1 dp=4 recompute=none mbs=1",
                                    "tp=1 pp=2 dp=2 recompute=none mbs=1 schedule=1f1b",
                                    "tp=2 pp=1 dp=2 recompute=none mbs=1",
                                    "tp=2 pp=2 dp=1 recompute=none mbs=1 schedule=1f1b",
                                    "tp=4 pp=1 dp=1 recompute=none mbs=1",
                                }));
}

TEST(DesignSpace, AnyDegreeMayFill) {
  SpaceSpec spec;
  spec[PlanKey::tensor] = {true, {}};
  spec[PlanKey::data] = {false, {4, 1}};  // the study's order, not ascending
  spec[PlanKey::pipeline].values = {2, 1};
  const DesignSpace space(spec, 8, Phase::inference, 1);
  EXPECT_EQ(
      point_texts(space, Phase::inference),
      (std::vector<std::string>{"tp=1 pp=2 dp=4", "tp=4 pp=2 dp=1", "tp=2 pp=1 dp=4", "tp=8 pp=1 dp=1"}));
}

TEST(DesignSpace, WithoutFillOnlyExactProductsCount) {
  SpaceSpec spec;
  spec[PlanKey::tensor].values = {1, 2, 4};
  spec[PlanKey::data] = {false, {1, 2, 4}};
  const DesignSpace space(spec, 4, Phase::inference, 1);
  EXPECT_EQ(point_texts(space, Phase::inference),
            (std::vector<std::string>{"tp=1 pp=1 dp=4", "tp=2 pp=1 dp=2", "tp=4 pp=1 dp=1"}));
  spec[PlanKey::tensor].values = {3};
  EXPECT_EQ(DesignSpace(spec, 4, Phase::inference, 1).size(), 0U);
}

TEST(DesignSpace, HangingAxesVaryOnlyWhereTheyAct) {
  SpaceSpec spec;
  spec[PlanKey::tensor].values = {1, 2};
  spec[PlanKey::pipeline].values = {1, 2};
  spec[PlanKey::sequence_parallel].values = {true, false};
  spec[PlanKey::zero_stage].values = {1, 0};
  spec[PlanKey::schedule].values = codes_of({ScheduleKind::interleaved, ScheduleKind::one_f_one_b});
  spec[PlanKey::virtual_stages].values = {2, 1, 3};  // interleaved with one chunk is 1f1b
  const DesignSpace space(spec, 2, Phase::training, 1);
  EXPECT_EQ(point_texts(space), (std::vector<std::string>{
                                    "tp=1 pp=1 dp=2 zero=1 recompute=none mbs=1",
                                    "tp=1 pp=1 dp=2 recompute=none mbs=1",
                                    "tp=1 pp=2 dp=1 recompute=none mbs=1 schedule=interleaved vpp=2",
                                    "tp=1 pp=2 dp=1 recompute=none mbs=1 schedule=1f1b",
                                    "tp=1 pp=2 dp=1 recompute=none mbs=1 schedule=interleaved vpp=3",
                                    "tp=2 sp=1 pp=1 dp=1 recompute=none mbs=1",
                                    "tp=2 pp=1 dp=1 recompute=none mbs=1",
                                }));
}

TEST(DesignSpace, RankOrdersThatDifferInIdleAxesAreOnePlan) {
  SpaceSpec spec;
  spec[PlanKey::tensor].values = {2};
  spec[PlanKey::order].values = codes_of(
      {*parse_rank_order("pp-dp-tp-cp"), *parse_rank_order("dp-cp-tp-pp"), *parse_rank_order("tp-cp-dp-pp")});
  const DesignSpace space(spec, 4, Phase::training, 1);  // tp 2, dp 2
  ASSERT_EQ(space.size(), 2U);
  EXPECT_EQ(to_string(space.point(0).plan.order), "pp-dp-tp-cp");
  EXPECT_EQ(to_string(space.point(1).plan.order), "tp-cp-dp-pp");
  ParallelPlan plan = space.point(0).plan;
  plan.order = *parse_rank_order("dp-tp-pp-cp");
  EXPECT_EQ(space.find(0, plan), 0U);
}

TEST(DesignSpace, SettingsAreSlowestAndMicrobatchFastest) {
  SpaceSpec spec;
  spec[PlanKey::recompute].values = codes_of({Recompute::full, Recompute::none});
  spec[PlanKey::microbatch].values = {1, 2, 4};
  const DesignSpace space(spec, 1, Phase::training, 3);
  ASSERT_EQ(space.plans(), 6U);
  ASSERT_EQ(space.size(), 18U);
  const PointIndex last_of_second = space.point(11);
  EXPECT_EQ(last_of_second.setting, 1U);
  EXPECT_EQ(last_of_second.plan.recompute, Recompute::none);
  EXPECT_EQ(last_of_second.plan.microbatch, 4);
  EXPECT_EQ(space.point(7).plan.microbatch, 2);
  EXPECT_EQ(space.point(7).plan.recompute, Recompute::full);
}

TEST(DesignSpace, TrainingAxesAreIdleForInference) {
  SpaceSpec spec;
  spec[PlanKey::tensor].values = {2};
  spec[PlanKey::sequence_parallel].values = {true};
  spec[PlanKey::zero_stage].values = {3, 1};
  spec[PlanKey::recompute].values = codes_of({Recompute::full, Recompute::none});
  spec[PlanKey::microbatch].values = {4, 8};
  const DesignSpace space(spec, 4, Phase::inference, 1);
  ASSERT_EQ(space.size(), 1U);
  ParallelPlan expected;
  expected.tensor = 2;
  expected.data = 2;
  EXPECT_EQ(space.point(0).plan, expected);
}

TEST(DesignSpace, FindKnowsWhatIsNotThere) {
  SpaceSpec spec;
  spec[PlanKey::tensor].values = {2};
  const DesignSpace space(spec, 4, Phase::training, 2);
  const ParallelPlan plan = space.point(0).plan;
  EXPECT_EQ(space.find(1, plan), 1U);
  EXPECT_FALSE(space.find(2, plan));
  for (const auto& change : std::vector<void (*)(ParallelPlan&)>{
           [](ParallelPlan& p) { p.microbatch = 2; }, [](ParallelPlan& p) { p.zero_stage = 1; },
           [](ParallelPlan& p) { p.tensor = 4; }, [](ParallelPlan& p) { p.recompute = Recompute::full; }}) {
    ParallelPlan other = plan;
    change(other);
    EXPECT_FALSE(space.find(0, other)) << to_point_text(other, Phase::training);
  }
  ParallelPlan idle = plan;  // no pipeline: its schedule says nothing
  idle.schedule = ScheduleKind::gpipe;
  EXPECT_EQ(space.find(0, idle), 0U);
}

TEST(DesignSpace, WithMoreEntriesThanAreListedItIsEmptyAndNamesTheLongestAxis) {
  SpaceSpec spec;
  const auto count_to = [](std::int32_t n) {
    std::vector<std::int32_t> values;
    for (std::int32_t i = 1; i <= n; ++i) values.push_back(i);
    return values;
  };
  spec[PlanKey::expert].values = count_to(1024);
  spec[PlanKey::expert_tensor].values = count_to(1025);
  const DesignSpace space(spec, 2, Phase::training, 1);
  EXPECT_EQ(space.size(), 0U);
  EXPECT_EQ(space.problem(),
            "makes too many combinations of its axes, recompute and microbatch_size aside: more than 1048576 "
            "on one "
            "(tp, cp, pp, dp); give fewer values of expert_tensor_parallel, which has 1025 values");
  // None are kept, also where degrees that come later have too many.
  spec[PlanKey::expert].values = spec[PlanKey::expert_tensor].values = count_to(512);
  spec[PlanKey::pipeline].values = {1, 2};
  spec[PlanKey::schedule].values = {0, 1, 2, 3, 4};
  const DesignSpace later(spec, {4, 8}, Phase::training, 2);
  EXPECT_NE(later.problem(), "");
  EXPECT_EQ(later.size(), 0U);
  EXPECT_EQ(later.points_on(1), (std::pair<std::uint64_t, std::uint64_t>{0, 0}));
}

// A bound on the number of entries that is too high does not refuse a space: 28 combinations of degrees, none of which
// has the virtual stages.
TEST(DesignSpace, EntriesAreCountedBeforeTheyAreListed) {
  SpaceSpec spec;
  spec[PlanKey::tensor].values = spec[PlanKey::pipeline].values = {1, 2, 4, 8, 16, 32, 64};
  spec[PlanKey::virtual_stages].values.clear();
  for (std::int32_t v = 2; v < 700'000; ++v) spec[PlanKey::virtual_stages].values.push_back(v);
  const DesignSpace whole(spec, 64, Phase::training, 1);
  EXPECT_EQ(whole.problem(), "");
  EXPECT_EQ(whole.tuples(), 28U);
  EXPECT_EQ(whole.plans(), 28U);
  EXPECT_EQ(whole.point(27).plan.gpus(), 64);
}

}  // namespace
}  // namespace shardscape::sweep
