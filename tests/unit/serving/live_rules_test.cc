// What single rules of a simulated server add to the time to first token, in cases that need no simulation to know.
#include <gtest/gtest.h>

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
  LoadRecord record;
  serve_load({load, 1, 1}, rules, by_second(), stride, &record);
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

TEST(LiveRules, WhatLiesInTheCacheIsNotRead) {
  LiveRules rules = roomy();
  rules.cached_prompt = 900;
  EXPECT_DOUBLE_EQ(first_token(served({0}, rules, Stride::runs)[0]), 1.1);
  rules.cached_prompt = 5000;
  EXPECT_DOUBLE_EQ(first_token(served({0}, rules, Stride::runs)[0]), 1.001) << "one token at least is read";
}

TEST(LiveRules, WhatLiesInTheCacheTakesItsBlocks) {
  // Two requests of 63 + 7 blocks of 16 tokens; 75 blocks hold one of them.
  LiveRules rules = roomy();
  rules.policy = ServingPolicy::trtllm;
  rules.on_demand = false;
  rules.cached_prompt = 900;
  rules.kv_blocks = 75;
  const auto records = served({0, 0}, rules, Stride::runs);
  EXPECT_GT(first_token(records[1]), 99) << "it waits for the first one's last token";
}

TEST(LiveRules, ARequestIsAdmittedWithRoomForWhatLiesInTheCache) {
  // As above, but blocks are taken as sequences grow: 63 for a prompt, of which a request that reads 100 tokens at once
  // needs all. A server that asked for the 7 of what is read alone would admit and preempt without end.
  LiveRules rules = roomy();
  rules.cached_prompt = 900;
  rules.kv_blocks = 75;
  const auto records = served({0, 0}, rules, Stride::runs);
  ASSERT_EQ(records.size(), 2U);
  EXPECT_GT(first_token(records[1]), 99);
}

}  // namespace
}  // namespace shardscape::serving
