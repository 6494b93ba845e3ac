// Is a load cut off at the longest request that a run of it sends, and otherwise left as it was?
#include "engine/serving/load/longest_drawn.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>

#include "engine/serving/load/drawn_requests.h"

namespace shardscape::serving {
namespace {

LoadSpec lengths(const Lengths& prompt, const Lengths& output) {
  LoadSpec load;
  load.prompt = prompt;
  load.output = output;
  return load;
}

// The longest of so many draws, found one by one.
TEST(LongestDrawn, NoneIsLongerThanTheLongestOfARun) {
  for (const std::uint64_t seed : {0U, 1U, 2U}) {
    LoadSpec load = lengths(Lengths::lognormal(2000, 1), Lengths::lognormal(250, 0.8));
    load.seed = seed;
    load.requests = {10, true};
    load.warm_up = {2, true};
    for (const ClientStatistic statistic : {ClientStatistic::run, ClientStatistic::steady}) {
      load.statistic = statistic;
      LoadSpec kept = load;
      keep_to_drawn(kept, 8);
      const std::int64_t sent = statistic == ClientStatistic::run ? 80 : 80 + 16 + 8;
      const DrawnRequests before(load, 1), after(kept, 1);
      std::int64_t prompt = 0, output = 0;
      for (std::int64_t i = 0; i < sent; ++i) {
        prompt = std::max<std::int64_t>(prompt, before.request(i).prompt);
        output = std::max<std::int64_t>(output, before.request(i).output);
        EXPECT_EQ(before.request(i).prompt, after.request(i).prompt);
        EXPECT_EQ(before.request(i).output, after.request(i).output);
      }
      EXPECT_EQ(kept.prompt.longest, prompt);
      EXPECT_EQ(kept.output.longest, output);
      EXPECT_LT(5 * prompt, 2 * load.prompt.longest) << "five deviations do not come in a hundred draws";
      for (std::int64_t i = 0; i < 5000; ++i) EXPECT_LE(after.request(i).prompt, prompt);
    }
  }
  LoadSpec fixed = lengths(Lengths::fixed(10), Lengths::uniform(200, 0.5)), as_it_was = fixed;
  keep_to_drawn(fixed, 4);
  EXPECT_EQ(fixed, as_it_was);
}

TEST(LongestDrawn, OfMoreRequestsTheFirstQuarterOfAMillionIsLookedAt) {
  for (const std::uint64_t seed : {0U, 1U, 2U}) {
    LoadSpec few = lengths(Lengths::lognormal(2000, 1), Lengths::lognormal(250, 0.8));
    few.seed = seed;
    few.requests = {262'144, false};
    LoadSpec many = few;
    many.requests = {1'000'000, false};
    const LengthLaws laws(many);
    keep_to_drawn(few, 0);
    keep_to_drawn(many, 0);
    EXPECT_EQ(many.prompt, few.prompt) << seed;
    EXPECT_EQ(many.output, few.output) << seed;
    laws.give_to(many);
    EXPECT_EQ(many.prompt, Lengths::lognormal(2000, 1)) << "what was cut off";
    EXPECT_EQ(many.output, Lengths::lognormal(250, 0.8));
  }
}

// Every session, turn by turn.
TEST(LongestDrawn, SessionsOfRandomLengthsGrowNoFurtherThanThoseOfARun) {
  LoadSpec load = lengths(Lengths::lognormal(500, 1), Lengths::lognormal(100, 1));
  load.requests = {300, false};
  load.sessions.emplace();
  load.sessions->turns = Lengths::lognormal(4, 1);
  load.sessions->new_tokens = Lengths::lognormal(50, 1);
  begin_sessions(load);
  LoadSpec kept = load;
  keep_to_drawn(kept, 20);
  const auto longest = [](const LoadSpec& of, std::int64_t sessions) {
    const DrawnRequests draws(of, 1);
    std::int64_t prompt = 0, output = 0, turns = 0;
    for (std::int64_t i = 0; i < sessions; ++i) {
      for (std::optional<DrawnRequest> turn = draws.request(i); turn;
           turn = draws.turn_after(*turn), ++turns) {
        prompt = std::max<std::int64_t>(prompt, turn->prompt);
        output = std::max<std::int64_t>(output, turn->output);
      }
    }
    return std::array{prompt, output, turns};
  };
  const auto before = longest(load, 300);
  EXPECT_EQ(longest(kept, 300), before) << "of those of a run nothing changes";
  EXPECT_EQ(kept.prompt.longest, before[0]);
  EXPECT_EQ(kept.output.longest, before[1]);
  EXPECT_LT(10 * before[0], load.prompt.longest);
  EXPECT_LE(longest(kept, 5000)[0], before[0]);
  // Where the context ends sessions, servers are made for it.
  load.sessions->context = load.prompt.longest = 900;
  kept = load;
  keep_to_drawn(kept, 20);
  EXPECT_EQ(kept, load);
}

}  // namespace
}  // namespace shardscape::serving
