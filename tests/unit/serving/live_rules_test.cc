// What single rules of a simulated server add to the time to first token, in cases that need no simulation to know.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "engine/serving/live/serve_load.h"

namespace shardscape::serving {
namespace {

/// Every iteration takes a second, and one that reads a second more per 1,000 tokens.
Timer by_second() {
  return [](const Iteration& i) {
    IterationTime time{};
    time[TimeClass::compute] = 1 + i.prompt_tokens / 1000;
    return time;
  };
}

LiveRules roomy() {
  LiveRules rules;
  rules.policy = ServingPolicy::vllm;
  rules.token_budget = 100'000;
  rules.max_batch = 100;
  rules.kv_block = 16;
  rules.kv_blocks = 1'000'000;
  return rules;
}

/// Requests of 1,000 and 100 tokens that come at the moments given.
std::vector<RequestRecord> served(const std::vector<double>& moments, const LiveRules& rules, Stride stride) {
  auto trace = std::make_shared<Trace>();
  for (const double moment : moments) trace->requests.push_back({moment, 1000, 100, 0});
  LoadSpec load;
  load.trace = trace;
  load.prompt = Lengths::fixed(1000);
  load.output = Lengths::fixed(100);
  load.requests = {static_cast<std::int64_t>(moments.size()), false};
  if (rules.cached_prompt > 0) {
    // A load of moments of its own has no trace's: all come at once, which the requests of these tests do.
    load.trace = nullptr;
    load.common.end = rules.cached_prompt;
  }
  LoadRecord record;
  serve_load({load, static_cast<std::int64_t>(moments.size()), 1}, rules, by_second(), stride, &record);
  std::ranges::sort(record.requests, {}, [](const RequestRecord& r) { return r.request.number; });
  return record.requests;
}

double first_token(const RequestRecord& record) { return record.first_token - record.request.sent; }

TEST(LiveRules, ARequestWaitsForIterationsThatAreFixedWhenItComes) {
  // The first request is read in 2 s and then gets a token each second. The second one comes at 10.5 s, in the
  // iteration that ends at 11 s; its own takes 2 s.
  for (const Stride stride : {Stride::runs, Stride::plain}) {
    for (const std::int64_t ahead : {0, 1, 3}) {
      LiveRules rules = roomy();
      rules.schedule_ahead = ahead;
      const auto records = served({0, 10.5}, rules, stride);
      EXPECT_DOUBLE_EQ(first_token(records[0]), 2) << "an idle server has nothing fixed";
      EXPECT_DOUBLE_EQ(first_token(records[1]), 0.5 + static_cast<double>(ahead) + 2) << ahead;
    }
  }
}

TEST(LiveRules, IterationsAreFixedWhilePromptsAreRead) {
  // The second request comes at 1.5 s, while the first prompt is read until 2 s.
  LiveRules rules = roomy();
  rules.schedule_ahead = 1;
  const auto records = served({0, 1.5}, rules, Stride::runs);
  EXPECT_DOUBLE_EQ(first_token(records[1]), 0.5 + 1 + 2);
}

TEST(LiveRules, OnlyIterationsThatAreNoGraphsHaveTheFloor) {
  LiveRules rules = roomy();
  rules.eager_floor = 7;
  EXPECT_DOUBLE_EQ(first_token(served({0}, rules, Stride::runs)[0]), 7);
  rules.graph_tokens = 999;
  EXPECT_DOUBLE_EQ(first_token(served({0}, rules, Stride::runs)[0]), 7) << "1,000 tokens are more";
  rules.graph_tokens = 1000;
  EXPECT_DOUBLE_EQ(first_token(served({0}, rules, Stride::runs)[0]), 2);
}

TEST(LiveRules, AGraphHasTheTokensOfARank) {
  // The second request is read beside the first one, which decodes with two drafts: 1,003 tokens.
  LiveRules rules = roomy();
  rules.eager_floor = 7;
  rules.drafts = 2;
  rules.graph_tokens = 1002;
  EXPECT_DOUBLE_EQ(first_token(served({0, 10.5}, rules, Stride::runs)[1]), 0.5 + 7);
  rules.graph_tokens = 1003;
  EXPECT_DOUBLE_EQ(first_token(served({0, 10.5}, rules, Stride::runs)[1]), 0.5 + 2);
  // Of four ranks each has one of four sequences.
  rules.drafts = 0;
  rules.ranks = 4;
  rules.graph_tokens = 1001;
  EXPECT_DOUBLE_EQ(first_token(served({0, 0, 0, 0, 10.5}, rules, Stride::runs)[4]), 0.5 + 2);
  rules.graph_tokens = 1000;
  EXPECT_DOUBLE_EQ(first_token(served({0, 0, 0, 0, 10.5}, rules, Stride::runs)[4]), 0.5 + 7);
}

TEST(LiveRules, WhoeverComesLastLetsOthersInThatWaitForIt) {
  // Of two ranks one has a request. The second comes at 10.5 s and waits for a third, 20 iterations at most, which comes
  // at 15.5 s: both are read from 16 s on. Iterations that are fixed when the third comes do not hold up the second.
  for (const Stride stride : {Stride::runs, Stride::plain}) {
    LiveRules rules = roomy();
    rules.ranks = rules.balanced = 2;
    rules.balance_wait = 20;
    auto records = served({0, 10.5, 15.5}, rules, stride);
    EXPECT_DOUBLE_EQ(first_token(records[1]), 5.5 + 2);
    EXPECT_DOUBLE_EQ(first_token(records[2]), 0.5 + 2);
    rules.schedule_ahead = 3;
    records = served({0, 10.5, 15.5}, rules, stride);
    EXPECT_DOUBLE_EQ(first_token(records[1]), 5.5 + 2);
  }
}

TEST(LiveRules, WhoeverHasWaitedTakesOthersAlongAsFarAsThereIsRoom) {
  // Five were enough. The second request, at 10.5 s, could begin at 11 s and waits for 20 iterations of 1 s; the third
  // goes with it, as two ranks read one prompt each until 33 s. The fourth waits for 20 more from then on.
  for (const Stride stride : {Stride::runs, Stride::plain}) {
    LiveRules rules = roomy();
    rules.policy = ServingPolicy::trtllm;
    rules.on_demand = false;
    rules.token_budget = 1005;
    rules.ranks = 2;
    rules.balanced = 5;
    rules.balance_wait = 20;
    const auto records = served({0, 10.5, 15.5, 16.5}, rules, stride);
    EXPECT_DOUBLE_EQ(records[1].first_token, 33);
    EXPECT_DOUBLE_EQ(records[2].first_token, 33);
    EXPECT_DOUBLE_EQ(records[3].first_token, 33 + 20 + 2);
  }
}

LiveRules with_common_prompt(std::int64_t tokens) {
  LiveRules rules = roomy();
  rules.keeps_prefixes = true;
  rules.cached_prompt = tokens;
  return rules;
}

TEST(LiveRules, WhatLiesInTheCacheIsNotRead) {
  EXPECT_DOUBLE_EQ(first_token(served({0}, with_common_prompt(900), Stride::runs)[0]), 1 + 0.104)
      << "56 blocks of 16 tokens";
  EXPECT_DOUBLE_EQ(first_token(served({0}, with_common_prompt(5000), Stride::runs)[0]), 1 + 0.008)
      << "one token at least is read, and with it its block";
}

TEST(LiveRules, WhatLiesInTheCacheTakesItsBlocksOnce) {
  // A request of 1,100 tokens has 69 blocks, of which 56 lie in the cache: two of them need 56 + 13 + 13.
  LiveRules rules = with_common_prompt(900);
  rules.policy = ServingPolicy::trtllm;
  rules.on_demand = false;
  rules.kv_blocks = 81;
  EXPECT_GT(first_token(served({0, 0}, rules, Stride::runs)[1]), 99)
      << "it waits for the first one's last token";
  rules.kv_blocks = 82;
  EXPECT_DOUBLE_EQ(first_token(served({0, 0}, rules, Stride::runs)[1]), 1 + 0.208);
}

TEST(LiveRules, AnIterationIsThatOfTheRankWithMostAndSaysWhatTheOthersReadFewer) {
  Batch batch;
  LiveRules rules;
  rules.ranks = 4;
  batch.clear(rules);
  batch.of_ranks[1].prompt_tokens = 600;
  batch.of_ranks[3].prompt_tokens = 200;
  // 800 tokens of four ranks are 200 in the mean, 400 fewer than the rank with most has.
  const Iteration work = batch.work();
  EXPECT_EQ(work.prompt_tokens, 600);
  EXPECT_EQ(work.spare, 400);
  for (Iteration& rank : batch.of_ranks) rank.prompt_tokens = 600;
  EXPECT_EQ(batch.work().spare, 0);
}

}  // namespace
}  // namespace shardscape::serving
