// Two operations on one link, against filling it in small steps; and what they keep over several links.
#include "engine/network/prices/link_loads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <vector>

#include "tests/support/engine_fixture.h"

namespace shardscape::network {
namespace {

/// Max-min fair by its definition: all flows grow alike, those that have enough stop, until the link is full.
KeptPaces filled(const LinkLoad& a, const LinkLoad& b) {
  constexpr int kSteps = 200000;
  double got_a = 0, got_b = 0;
  const double step = 1.0 / kSteps;
  while (got_a + got_b < 1 && (got_a < a.use || got_b < b.use)) {
    const double flows = (got_a < a.use ? a.flows : 0) + (got_b < b.use ? b.flows : 0);
    if (got_a < a.use) got_a += step * a.flows / flows;
    if (got_b < b.use) got_b += step * b.flows / flows;
  }
  return {std::min(1.0, got_a / a.use), std::min(1.0, got_b / b.use)};
}

TEST(LinkLoads, OneLinkIsSharedMaxMinFairly) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    test::ScenarioGenerator draw(seed);
    const LinkLoad a{3, static_cast<double>(1 + draw.below(8)), draw.between(0.05, 1)};
    const LinkLoad b{3, static_cast<double>(1 + draw.below(8)), draw.between(0.05, 1)};
    const KeptPaces paces = kept_paces({a}, {b}), expected = filled(a, b);
    EXPECT_NEAR(paces.one, expected.one, 1e-3) << seed;
    EXPECT_NEAR(paces.other, expected.other, 1e-3) << seed;
    EXPECT_LE(paces.one * a.use + paces.other * b.use, 1 + 1e-9) << seed;
  }
}

// An operation made again and again, which has a link for a share of its time, beside one that has it for a share of
// its own, in far longer stages. Alone each has the whole link then, and half of it while both use it: by small steps
// of time.
TEST(LinkLoads, StagesMeetOnlyWhileTheyUseTheLink) {
  for (const double active : {0.25, 0.5, 1.0}) {
    for (const double theirs : {0.3, 1.0}) {
      constexpr double kTick = 2e-3;
      double seconds = 0, mine = 0, all = 0;  // `mine`, `all`: what is done of both, by their seconds alone
      for (; all < 400; seconds += kTick) {
        const bool a_there = std::fmod(mine, 1) < active, b_there = std::fmod(all, 200) < 200 * theirs;
        const double pace = a_there && b_there ? 0.5 : 1;
        mine += a_there ? pace * kTick : kTick;
        all += b_there ? pace * kTick : kTick;
      }
      const KeptPaces paces = kept_paces({{3, 1, active, active}}, {{3, 1, theirs, theirs}});
      EXPECT_NEAR(paces.one, mine / seconds, 5e-3) << active << ' ' << theirs;
      EXPECT_NEAR(paces.other, all / seconds, 5e-3) << active << ' ' << theirs;
    }
  }
  // Two stages on links of their own: each of them is on its link for half of the time, and fills it then.
  const auto first = std::make_shared<const LinkLoads>(LinkLoads{{1, 1, 1}}),
             second = std::make_shared<const LinkLoads>(LinkLoads{{2, 1, 1}});
  const LinkLoads means = mean_loads(std::vector<StageLoads>{{2, first}, {2, second}});
  EXPECT_EQ(means, (LinkLoads{{1, 1, 0.5, 0.5}, {2, 1, 0.5, 0.5}}));
  EXPECT_DOUBLE_EQ(kept_paces(means, {{2, 1, 1}}).one, 1 / (0.5 + 0.5 * 2));
}

// What 1 s of an operation on a link adds to another one, whatever the first one does elsewhere, too.
TEST(LinkLoads, ShorterStagesElsewhereCostTheOtherOperationNoMore) {
  for (const double active : {0.2, 0.7, 1.0}) {
    double before = 0;
    for (const double elsewhere : {9.0, 2.0, 0.5, 0.0}) {
      const double share = 1 / (1 + elsewhere);
      const KeptPaces paces = kept_paces({{3, 1, active, active}}, {{3, 1, share, share}});
      const double added = (1 + elsewhere) * (1 - paces.one) / paces.other;
      if (before > 0) {
        EXPECT_NEAR(added, before, 1e-9) << active << ' ' << elsewhere;
      }
      before = added;
    }
  }
}

TEST(LinkLoads, TheSlowestFlowIsThePace) {
  // Links 1 and 9 are not shared; 4 and 6 are, and 6 more heavily.
  const LinkLoads a = {{1, 1, 1}, {4, 1, 0.8}, {6, 1, 1}}, b = {{4, 1, 0.5}, {6, 3, 1}, {9, 1, 1}};
  const KeptPaces paces = kept_paces(a, b);
  EXPECT_DOUBLE_EQ(paces.one, 0.25);
  EXPECT_DOUBLE_EQ(paces.other, 0.75);
  EXPECT_EQ(kept_paces(a, {{2, 5, 1}, {5, 5, 1}}), KeptPaces());
  EXPECT_EQ(kept_paces({{4, 1, 0.5}}, {{4, 9, 0.5}}), (KeptPaces{1, 1, true}));
  EXPECT_EQ(kept_paces({}, b), KeptPaces());
}

TEST(LinkLoads, OfALinkTheHeaviestLoadCounts) {
  const LinkLoads heaviest = heaviest_by_link({{7, 2, 0.5}, {3, 1, 1}, {7, 1, 1}, {7, 1, 0.25}});
  ASSERT_EQ(heaviest.size(), 2U);
  EXPECT_EQ(heaviest[0].link, 3);
  EXPECT_EQ(heaviest[1].link, 7);
  EXPECT_DOUBLE_EQ(heaviest[1].use, 1);
}

TEST(LinkLoads, LoadsThatMightMeetAreAtLeastAsFastAsIfAllDid) {
  // On links 0 one uses 0.4 or all, the other half with four times the flows: 0.4 + 0.5 <= 1 slows neither; of 1 and
  // 0.5, 0.5 <= 4 / 5 of the flows keeps its pace and leaves 1 - 0.5. On links 1 only one of them sends.
  const LinkLoads one = {{0, 1, 0.4}, {1, 1, 1}, {0, 1, 1}}, other = {{0, 4, 0.5}};
  const KeptPaces paces = least_paces(one, other);
  EXPECT_TRUE(paces.meet);
  EXPECT_DOUBLE_EQ(paces.one, 0.5);
  EXPECT_DOUBLE_EQ(paces.other, 1);
  EXPECT_EQ(least_paces({{1, 1, 1}}, other), KeptPaces());
}

/// Loads of 60 links, in runs of equal ones.
LinkLoads drawn_runs(test::ScenarioGenerator& draw) {
  LinkLoads runs;
  for (std::int32_t link = 0; link < 60;) {
    const auto links = std::min(60 - link, static_cast<std::int32_t>(1 + draw.below(9)));
    if (draw.below(3) > 0) {
      const double use = 0.25 * static_cast<double>(1 + draw.below(4));
      runs.push_back({link, static_cast<double>(1 + draw.below(3)), use, 1, links});
    }
    link += links;
  }
  return runs;
}

LinkLoads one_by_one(const LinkLoads& runs) {
  LinkLoads single;
  for (const LinkLoad& run : runs) {
    for (std::int32_t link = run.link; link < run.end(); ++link)
      single.push_back({link, run.flows, run.use, run.active});
  }
  return single;
}

TEST(LinkLoads, RunsOfLinksCountAsTheirLinks) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    test::ScenarioGenerator draw(seed);
    std::vector<StageLoads> stages, plain;
    for (std::uint64_t i = 1 + draw.below(3); i > 0; --i) {
      const LinkLoads runs = drawn_runs(draw);
      const double seconds = draw.between(0.1, 2);
      stages.push_back({seconds, std::make_shared<const LinkLoads>(runs)});
      plain.push_back({seconds, std::make_shared<const LinkLoads>(one_by_one(runs))});
    }
    const LinkLoads mean = mean_loads(stages), plain_mean = mean_loads(plain), other = drawn_runs(draw);
    ASSERT_EQ(one_by_one(mean), plain_mean);
    ASSERT_EQ(kept_paces(mean, other), kept_paces(plain_mean, one_by_one(other)));
    ASSERT_EQ(kept_paces(other, mean), kept_paces(one_by_one(other), plain_mean));
    const LinkLoads one = one_by_one(other);
    const std::array<const LinkLoads*, 2> in_runs = {&mean, &other}, alone = {&plain_mean, &one};
    const std::array<Seconds, 2> sending = {Seconds(draw.between(0, 2)), Seconds(draw.between(0, 2))};
    ASSERT_EQ(LinkUses(in_runs).busiest(sending), LinkUses(alone).busiest(sending));
  }
}

TEST(LinkLoads, TheBusiestLinkIsThatOfSumsLinkByLink) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    test::ScenarioGenerator draw(seed);
    // Few values of few links, so that many links are alike and many outdone.
    std::vector<LinkLoads> operations(1 + static_cast<std::size_t>(draw.below(5)));
    std::vector<const LinkLoads*> asked;
    std::vector<Seconds> sending;
    std::map<std::int32_t, Seconds> busy;
    for (LinkLoads& loads : operations) {
      sending.emplace_back(draw.between(0, 2));
      for (std::int32_t link = 0; link < 30; ++link) {
        if (draw.below(2) == 0) continue;
        loads.push_back({link, 1, 0.25 * static_cast<double>(1 + draw.below(4))});
        busy[link] += loads.back().use * sending.back();
      }
      asked.push_back(&loads);
    }
    Seconds most;
    for (const auto& [link, seconds] : busy) most = std::max(most, seconds);
    EXPECT_NEAR(LinkUses(asked).busiest(sending).value(), most.value(), 1e-12) << seed;
  }
  EXPECT_EQ(LinkUses().busiest({}), Seconds(0));
}

TEST(LinkLoads, StagesAreWeighedByTheirTime) {
  // Three seconds, then one: link 1 is used (3 * 0.5 + 0) / 4 of the time's bandwidth, link 2 (3 * 1 + 0.5) / 4, link 5
  // 1 / 4.
  const auto first = std::make_shared<const LinkLoads>(LinkLoads{{1, 2, 0.5}, {2, 1, 1}}),
             second = std::make_shared<const LinkLoads>(LinkLoads{{2, 4, 0.5}, {5, 1, 1}});
  const std::vector<StageLoads> stages = {{3, first}, {1, second}};
  const LinkLoads mean = mean_loads(stages);
  ASSERT_EQ(mean.size(), 3U);
  EXPECT_EQ(mean[0].link, 1);
  EXPECT_DOUBLE_EQ(mean[0].use, 0.375);
  EXPECT_EQ(mean[1].link, 2);
  EXPECT_DOUBLE_EQ(mean[1].use, 0.875);
  EXPECT_DOUBLE_EQ(mean[1].flows, 4);
  EXPECT_EQ(mean[2].link, 5);
  EXPECT_DOUBLE_EQ(mean[2].use, 0.25);
}

}  // namespace
}  // namespace shardscape::network
