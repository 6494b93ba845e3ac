// Do copies of experts lie where EPLB puts them, and is that as good as it can be?
#include "engine/compute/expert_replicas.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "engine/base/counter_rng.h"
#include "engine/compute/expert_loads.h"

namespace shardscape::compute {
namespace {

double heaviest_slot(const std::vector<double>& loads, const std::vector<std::int64_t>& copies) {
  double most = 0;
  for (std::size_t i = 0; i < loads.size(); ++i)
    most = std::max(most, loads[i] / static_cast<double>(copies[i]));
  return most;
}

/// The lightest that the heaviest slot can be, over all ways to give `left` copies to the experts from `expert` on.
double lightest_by_trying(const std::vector<double>& loads, std::vector<std::int64_t>& copies,
                          std::size_t expert, std::int64_t left) {
  if (expert + 1 == loads.size()) {
    copies[expert] = 1 + left;
    return heaviest_slot(loads, copies);
  }
  double best = 1e300;
  for (std::int64_t here = 0; here <= left; ++here) {
    copies[expert] = 1 + here;
    best = std::min(best, lightest_by_trying(loads, copies, expert + 1, left - here));
  }
  return best;
}

/// The least that the busiest rank can have, over all ways to deal slots of these loads, `each` to every rank.
double fairest_by_trying(const std::vector<double>& slots, std::size_t at, std::size_t each,
                         std::vector<std::pair<double, std::size_t>>& ranks) {
  if (at == slots.size()) return std::ranges::max(ranks).first;
  double best = 1e300;
  for (auto& [load, count] : ranks) {
    if (count == each) continue;
    load += slots[at], ++count;
    best = std::min(best, fairest_by_trying(slots, at + 1, each, ranks));
    load -= slots[at], --count;
  }
  return best;
}

std::vector<double> drawn_loads(CounterRng& random, std::size_t count) {
  std::vector<double> loads;
  for (std::size_t i = 0; i < count; ++i) loads.push_back(1 / (0.02 + random.uniform()));
  return loads;
}

double load_of_busiest(const std::vector<std::vector<double>>& slots) {
  const std::vector<double>& most = slots[busiest_of(slots)];
  return std::accumulate(most.begin(), most.end(), 0.0);
}

// 10, 6, 3, 1 and two copies: 10 becomes 5 and 5, then 6 becomes 3 and 3. Of the slots 5, 5, 3, 3, 3, 1 the ranks take
// 5 / 5 / 3, then 3 to the third (3 < 5), which is full, 3 to the first of the fives, 1 to the other.
TEST(ExpertReplicas, FollowTheGreedyRuleByHand) {
  const std::vector<double> loads = {3, 10, 1, 6};
  EXPECT_EQ(replicated(loads, 2), (std::vector<std::int64_t>{1, 2, 1, 2}));
  const std::vector<std::vector<double>> slots = dealt_slots(loads, 2, 3);
  EXPECT_EQ(slots, (std::vector<std::vector<double>>{{5, 3}, {5, 1}, {3, 3}}));
  EXPECT_EQ(busiest_of(slots), 0U);
  EXPECT_DOUBLE_EQ(busiest_share(slots), 8.0 / 20);
}

TEST(ExpertReplicas, NoOtherCopiesLeaveTheHeaviestSlotLighter) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    CounterRng random(seed, 0);
    const std::vector<double> loads = drawn_loads(random, 5);
    for (std::int64_t copies = 0; copies <= 6; ++copies) {
      std::vector<std::int64_t> tried(loads.size(), 1);
      EXPECT_DOUBLE_EQ(heaviest_slot(loads, replicated(loads, copies)),
                       lightest_by_trying(loads, tried, 0, copies));
    }
  }
}

// The rule that deals them is at most (4 m - 1) / (3 m) above the best for m ranks of three slots each (Kellerer and
// Woeginger 1993, "A tight bound for 3-partitioning").
TEST(ExpertReplicas, AreDealtAlmostAsWellAsCanBe) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    CounterRng random(seed, 1);
    for (const std::int64_t ranks : {2, 3}) {
      const std::vector<double> loads = drawn_loads(random, static_cast<std::size_t>(2 * ranks));
      const auto dealt = dealt_slots(loads, ranks, ranks);
      std::vector<double> slots;
      for (const std::vector<double>& rank : dealt) {
        EXPECT_EQ(rank.size(), 3U);
        slots.insert(slots.end(), rank.begin(), rank.end());
      }
      std::vector<std::pair<double, std::size_t>> empty(static_cast<std::size_t>(ranks));
      const double best = fairest_by_trying(slots, 0, 3, empty);
      const double m = static_cast<double>(ranks);
      EXPECT_GE(load_of_busiest(dealt), best * (1 - 1e-12));
      EXPECT_LE(load_of_busiest(dealt), best * (4 * m - 1) / (3 * m) * (1 + 1e-12));
    }
  }
}

// DeepSeek-V3's experts with the copies that DeepSeek says it keeps: 32 beside 256, on 32 and on 144 ranks.
TEST(ExpertReplicas, TakeTheLoadOfTheBusiestRankTowardsTheMean) {
  for (const double exponent : {0.5, 1.01, 1.2, 2.0}) {
    ExpertLoad law;
    law.distribution = LoadDistribution::power_law;
    law.exponent = exponent;
    const std::vector<double> popular = popularity(law, 256, 8);
    const double in_order = std::ranges::max(member_shares(popular, 32));
    EXPECT_GT(in_order, 1.1 / 32);
    double heaviest = 1e300;
    for (const std::int64_t copies : {32, 96, 256}) {
      const std::vector<std::vector<double>> slots = dealt_slots(popular, copies, 32);
      EXPECT_LT(busiest_share(slots), in_order) << exponent << ' ' << copies;
      EXPECT_GE(busiest_share(slots), (1 - 1e-12) / 32);
      // More copies never make the heaviest slot heavier; how slots fall on ranks is a matter of luck, too.
      double most = 0;
      for (const std::vector<double>& rank : slots) most = std::max(most, std::ranges::max(rank));
      EXPECT_LE(most, heaviest);
      heaviest = most;
    }
    EXPECT_GE(busiest_share(dealt_slots(popular, 32, 144)), (1 - 1e-12) / 144);
  }
}

TEST(ExpertReplicas, OfEqualExpertsFillTheRanksEvenly) {
  // 4 ranks of 4 experts and 1, 2 or 5 copies each: what is halved (and then cut in three) falls evenly on all ranks.
  for (const std::int64_t copies : {4, 8, 20})
    EXPECT_NEAR(busiest_share(dealt_slots(std::vector<double>(16, 0.25), copies, 4)), 0.25, 1e-12);
  // 16 and 2 on 6 ranks: 14 whole ones, two for each rank and three for two of them, 3 of 16.
  EXPECT_NEAR(busiest_share(dealt_slots(std::vector<double>(16, 0.25), 2, 6)), 3.0 / 16, 1e-12);
}

}  // namespace
}  // namespace shardscape::compute
