#include "engine/network/rank_group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "engine/spec/zero.h"

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

}  // namespace
}  // namespace shardscape::network
