// Do groups of ranks lie where the rank order puts them, those of experts and of copies of parameters included?
#include "engine/network/groups/rank_group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <vector>

#include "engine/network/fabric/fabric.h"
#include "engine/network/groups/sibling_groups.h"
#include "engine/network/groups/slices.h"
#include "engine/spec/zero.h"
#include "tests/support/engine_fixture.h"

namespace shardscape::network {
namespace {

ParallelPlan plan_in(const RankOrder& order) {
  ParallelPlan plan;
  plan.tensor = 2;
  plan.context = 3;
  plan.data = 4;
  plan.pipeline = 5;
  plan.order = order;
  return plan;
}

/// Ranks that agree with rank 0 in every axis but the given ones, by division alone.
std::set<std::int32_t> peers(const ParallelPlan& plan, const std::set<PlanAxis>& axes) {
  std::set<std::int32_t> ranks;
  for (std::int32_t rank = 0; rank < plan.gpus(); ++rank) {
    bool same = true;
    std::int32_t rest = rank;
    for (const PlanAxis axis : plan.order) {
      const std::int32_t degree = plan.degree(axis);
      same = same && (axes.contains(axis) || rest % degree == 0);
      rest /= degree;
    }
    if (same) ranks.insert(rank);
  }
  return ranks;
}

std::set<std::int32_t> members(const RankGroup& group) {
  std::set<std::int32_t> ranks = {0};
  for (std::int32_t l = 0; l < group.depth; ++l) {
    const RankGroup::Level& level = group.levels[static_cast<std::size_t>(l)];
    std::set<std::int32_t> more;
    for (const std::int32_t rank : ranks)
      for (std::int32_t i = 0; i < level.extent; ++i) more.insert(rank + i * level.stride);
    ranks = more;
  }
  return ranks;
}

/// The members of the group that a rank lies in.
std::set<std::int32_t> members_with(const RankGroup& group, std::int32_t rank) {
  std::int32_t first = rank;
  for (const RankGroup::Level& level : std::span(group.levels).first(static_cast<std::size_t>(group.depth)))
    first -= rank / level.stride % level.extent * level.stride;
  std::set<std::int32_t> ranks;
  for (const std::int32_t offset : members(group)) ranks.insert(first + offset);
  return ranks;
}

TEST(PlanGroups, HoldThoseThatLieWithinThem) {
  int held = 0, tensor_by_experts = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    test::ScenarioGenerator random(seed);
    ParallelPlan plan = plan_in(
        random.coin() ? kDefaultRankOrder
                      : RankOrder{PlanAxis::data, PlanAxis::context, PlanAxis::tensor, PlanAxis::pipeline});
    plan.tensor = random.pick({1, 2, 8});
    plan.context = random.pick({1, 2, 3});
    plan.data = random.pick({2, 5, 8});
    plan.pipeline = 2;
    plan.expert = random.pick({1, 2, 5, 8});
    plan.expert_tensor = 1;
    if (plan.tensor * plan.context * plan.data % plan.expert != 0) continue;
    const RankGroups groups = PlanLayout(plan).groups();
    for (const ParallelGroup outer : enum_values<ParallelGroup>()) {
      for (const ParallelGroup inner : enum_values<ParallelGroup>()) {
        if (!groups[outer].holds(groups[inner]) || groups[inner].alone()) continue;
        ++held;
        tensor_by_experts += outer == ParallelGroup::expert && inner == ParallelGroup::tensor ? 1 : 0;
        for (std::int32_t rank = 0; rank < plan.gpus(); ++rank)
          EXPECT_TRUE(
              std::ranges::includes(members_with(groups[outer], rank), members_with(groups[inner], rank)))
              << "seed " << seed << ": " << name_of(outer) << ", " << name_of(inner) << ", rank " << rank;
      }
    }
  }
  EXPECT_GT(held, 500);
  EXPECT_GT(tensor_by_experts, 10);
}

// Expert groups {0..19}, {20..39}, ...: of the context groups {r, r + 8} that of rank 16 lies in two of them.
TEST(PlanGroups, HoldNoneThatCrossTheirEnds) {
  RankGroup experts, context;
  experts.push(20, 1);
  context.push(2, 8);
  EXPECT_FALSE(experts.holds(context));
  RankGroup wider;
  wider.push(32, 1);
  EXPECT_TRUE(wider.holds(context));
  EXPECT_FALSE(context.holds(wider));
}

TEST(PlanGroups, SpanTheirAxesInEveryRankOrder) {
  using enum PlanAxis;
  RankOrder order = {tensor, context, data, pipeline};
  int orders = 0;
  do {
    SCOPED_TRACE(to_string(order));
    const ParallelPlan plan = plan_in(order);
    const PlanLayout layout(plan);
    EXPECT_EQ(members(layout.group(ParallelGroup::tensor)), peers(plan, {tensor}));
    EXPECT_EQ(members(layout.group(ParallelGroup::context)), peers(plan, {context}));
    EXPECT_EQ(members(layout.group(ParallelGroup::data_shard)), peers(plan, {data, context}));
    EXPECT_EQ(members(layout.group(ParallelGroup::pipeline)), peers(plan, {pipeline}));
    for (const ParallelGroup group : {ParallelGroup::tensor, ParallelGroup::context,
                                      ParallelGroup::data_shard, ParallelGroup::pipeline}) {
      EXPECT_EQ(layout.group(group).size(), ranks_of(plan, group)) << name_of(group);
    }
    ++orders;
  } while (std::ranges::next_permutation(order).found);
  EXPECT_EQ(orders, 24);
}

/// Ranks of rank 0's stage in the plan's order: those whose pipeline coordinate is 0.
std::vector<std::int32_t> stage_of(const ParallelPlan& plan) {
  const std::int32_t stride = PlanLayout(plan).stride(PlanAxis::pipeline);
  std::vector<std::int32_t> ranks;
  for (std::int32_t rank = 0; rank < plan.gpus(); ++rank)
    if (rank / stride % plan.pipeline == 0) ranks.push_back(rank);
  return ranks;
}

// Megatron-Core's folding, by listing the ranks of a stage and counting in that list.
TEST(PlanGroups, ExpertsFoldIntoTheRanksOfAStage) {
  using enum PlanAxis;
  RankOrder order = {tensor, context, data, pipeline};
  int checked = 0;
  do {
    for (const std::int32_t expert_tensor : {1, 2, 3, 4}) {
      for (const std::int32_t expert : {1, 2, 3, 4, 6, 8}) {
        ParallelPlan plan = plan_in(order);
        plan.expert = expert;
        plan.expert_tensor = expert_tensor;
        if (!plan.folds_experts() || !folds_evenly(plan)) continue;
        SCOPED_TRACE(testing::Message() << to_string(order) << " ep " << expert << " etp " << expert_tensor);
        const std::vector<std::int32_t> stage = stage_of(plan);
        const auto listed = [&](std::int32_t stride, std::int32_t extent) {
          std::set<std::int32_t> ranks;
          for (std::int32_t i = 0; i < extent; ++i) ranks.insert(stage[static_cast<std::size_t>(i * stride)]);
          return ranks;
        };
        const PlanLayout layout(plan);
        const std::int32_t both = expert * expert_tensor, copies = 24 / both;
        EXPECT_EQ(members(layout.group(ParallelGroup::expert_tensor)), listed(1, expert_tensor));
        EXPECT_EQ(members(layout.group(ParallelGroup::expert)), listed(expert_tensor, expert));
        EXPECT_EQ(members(layout.group(ParallelGroup::expert_data)), listed(both, copies));
        EXPECT_EQ(ranks_of(plan, ParallelGroup::expert), expert);
        EXPECT_EQ(ranks_of(plan, ParallelGroup::expert_data), copies);
        ++checked;
      }
    }
  } while (std::ranges::next_permutation(order).found);
  EXPECT_GT(checked, 24 * 6);
}

TEST(PlanGroups, WithoutAWordForExpertsTheyAreSplitAsAllElse) {
  const ParallelPlan plan = plan_in(kDefaultRankOrder);
  const PlanLayout layout(plan);
  EXPECT_EQ(layout.group(ParallelGroup::expert_tensor), layout.group(ParallelGroup::tensor));
  EXPECT_EQ(layout.group(ParallelGroup::expert_data), layout.group(ParallelGroup::data_shard));
  EXPECT_EQ(layout.group(ParallelGroup::expert).size(), 1);
  EXPECT_EQ(ranks_of(plan, ParallelGroup::expert_data), 12);
}

TEST(PlanGroups, ExpertsThatDoNotTileTheRanksAreTold) {
  ParallelPlan plan = plan_in(kDefaultRankOrder);  // 2 * 3 * 4 ranks of a stage
  plan.expert = 5;
  EXPECT_FALSE(folds_evenly(plan));
  plan.expert = 4;  // ranks 0 .. 3 of six, and then 4, 5, 6, 7: side by side
  EXPECT_TRUE(folds_evenly(plan));
  plan.order = {PlanAxis::tensor, PlanAxis::context, PlanAxis::pipeline, PlanAxis::data};
  EXPECT_FALSE(folds_evenly(plan));  // six ranks lie on one side of the pipeline
  plan.expert = 12;
  EXPECT_TRUE(folds_evenly(plan));
}

// Rajbhandari et al. 2020, figure 1: stage 1 the optimizer's state, 2 gradients, too, 3 weights, too.
TEST(Zero, ShardsOneStateMoreWithEveryStage) {
  StackProfile at_once, at_the_end;
  at_the_end.zero2_gradients = Zero2Gradients::last_microbatch;
  ParallelPlan plan;
  for (plan.zero_stage = 0; plan.zero_stage <= 3; ++plan.zero_stage) {
    EXPECT_EQ(zero_shards(plan, ZeroState::optimizer), plan.zero_stage > 0);
    EXPECT_EQ(zero_shards(plan, ZeroState::gradients), plan.zero_stage > 1);
    EXPECT_EQ(zero_shards(plan, ZeroState::weights), plan.zero_stage > 2);
    EXPECT_EQ(scatters_each_microbatch(plan, at_once), plan.zero_stage > 1);
    EXPECT_EQ(scatters_each_microbatch(plan, at_the_end), plan.zero_stage > 2);
  }
}

// Every part of the model lies on stages c and 5 - c: copies are held by the ranks of both, in every rank order. Listed
// by division alone; the groups tile the machine, and each stage's slice has all groups with a member in it.
TEST(PlanGroups, CopiesLieOnAStageAndItsMirror) {
  using enum PlanAxis;
  const Fabric fabric(test::crossbar(144));
  RankOrder order = {tensor, context, data, pipeline};
  do {
    ParallelPlan plan = plan_in(order);
    plan.pipeline = 6;
    plan.schedule = ScheduleKind::dualpipe;
    SCOPED_TRACE(to_string(order));
    const PlanLayout layout(plan);
    const std::int32_t stride = layout.stride(pipeline);
    const auto stage = [&](std::int32_t rank) { return rank / stride % 6; };
    for (const ParallelGroup kind : {ParallelGroup::data_shard, ParallelGroup::expert_data}) {
      plan.expert = kind == ParallelGroup::expert_data ? 2 : 1;
      if (!folds_evenly(plan)) continue;
      const RankGroup both = layout.group(kind);
      EXPECT_EQ(both.size(), 2 * ranks_of(plan, kind));
      EXPECT_FALSE(both.alone());
      const SiblingGroups groups = sibling_groups(both, fabric, {});
      std::set<std::int32_t> seen;
      for (std::size_t g = 0; g < groups.count(); ++g) {
        const std::span<const std::int32_t> group = groups.group(g);
        const std::size_t half = group.size() / 2;
        for (std::size_t i = 0; i < group.size(); ++i) {
          EXPECT_TRUE(seen.insert(group[i]).second);
          EXPECT_EQ(stage(group[i]), i < half ? stage(group[0]) : 5 - stage(group[0]));
          // The same place in the stage.
          if (i < half) {
            EXPECT_EQ(group[i] - stage(group[i]) * stride, group[i + half] - stage(group[i + half]) * stride);
          }
        }
      }
      EXPECT_EQ(seen.size(), 144U);
      for (std::int32_t s = 0; s < 6; ++s)
        EXPECT_EQ(sibling_groups(both, fabric, {}, stage_slice(s, layout, plan)).count(), groups.count() / 3);
    }
    EXPECT_EQ(layout.group(ParallelGroup::tensor).mirror.extent, 1);
  } while (std::ranges::next_permutation(order).found);
}

}  // namespace
}  // namespace shardscape::network
