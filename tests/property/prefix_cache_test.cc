// Does the cache of prefixes hold what a list of single blocks would, and do servers find what they should?
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "engine/base/counter_rng.h"
#include "engine/serving/live/prefix_cache.h"
#include "engine/serving/live/serve_load.h"
#include "tests/support/block_list.h"
#include "tests/support/prefix_trace.h"
#include "tests/support/seeds.h"

namespace shardscape::serving {
namespace {

TEST(PrefixCache, RangesAreTheBlocksOfAList) {
  std::int64_t lower = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(400); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    CounterRng rng(seed, 41);
    const Trace trace = test::random_trace(rng, 40, 60);
    const auto block = static_cast<std::int64_t>(1 + rng.below(5));
    const std::array<std::int64_t, 2> room = {static_cast<std::int64_t>(rng.below(3) * 7),
                                              static_cast<std::int64_t>(rng.below(3) * 9)};
    PrefixCache cache(block, room);
    BlockList list(block, room);
    std::vector<std::pair<PrefixPath, std::int64_t>> running;
    for (std::size_t i = 0; i < trace.requests.size(); ++i) {
      const TraceRequest& request = trace.requests[i];
      const PrefixPath path{trace.pieces_of(i), 0, static_cast<std::int64_t>(i),
                            std::int64_t{request.prompt} + request.output};
      const std::int64_t most = (request.prompt - 1) / block;
      const TierBlocks found = cache.match(path, most);
      ASSERT_EQ(found, list.match(path, most));
      lower += found[1] + found[2];
      const std::int64_t there = found[0] + found[1] + found[2];
      cache.pin(path, 0, there);
      list.pin(path, 0, there);
      const std::int64_t all = path.end / block;
      cache.pin(path, there, all);
      list.pin(path, there, all);
      running.emplace_back(path, all);
      while (!running.empty() && rng.below(3) > 0) {
        const auto one = running.begin() + static_cast<std::ptrdiff_t>(rng.below(running.size()));
        cache.unpin(one->first, one->second);
        list.unpin(one->first, one->second);
        running.erase(one);
      }
      const auto left = static_cast<std::int64_t>(rng.below(30));
      cache.shrink(left);
      list.shrink(left);
      ASSERT_EQ(cache.pinned(), list.count(true, 0));
      ASSERT_EQ(cache.idle(), list.count(false, 0));
    }
  }
  EXPECT_GT(lower, 100) << "blocks come back from host and disk";
}

Timer by_tokens() {
  return [](const Iteration& i) {
    return IterationTime{1e-3 + 1e-5 * i.prompt_tokens + 1e-4 * i.decoding + 1e-7 * i.cached};
  };
}

/// One at a time, with room for all: what is found follows from the trace alone.
TEST(PrefixCache, AServerFindsWhatIsThere) {
  for (const ServingPolicy policy : enum_values<ServingPolicy>()) {
    for (const bool on_demand : {true, false}) {
      CounterRng rng(7, 42);
      auto trace = std::make_shared<Trace>(test::random_trace(rng, 200, 300));
      for (std::size_t i = 0; i < trace->requests.size(); ++i)
        trace->requests[i].arrival = 10 * static_cast<double>(i);
      LoadSpec load;
      load.trace = trace;
      load.prompt = trace->prompt;
      load.output = trace->output;
      load.requests = {200, false};
      LiveRules rules;
      rules.policy = policy;
      rules.on_demand = on_demand;
      rules.token_budget = 64;
      rules.max_batch = 8;
      rules.kv_block = 4;
      rules.kv_blocks = 1 << 20;
      rules.keeps_prefixes = true;
      std::int64_t prompts = 0, found = 0;
      for (std::size_t i = 0; i < trace->requests.size(); ++i) {
        const std::int64_t prompt = trace->requests[i].prompt;
        prompts += prompt;
        // Of the common tokens whole blocks count, and the last token of a prompt is read.
        const auto pieces = trace->pieces_of(i);
        const std::int64_t common = pieces.empty() ? 0 : pieces.back().end / 4;
        found += 4 * std::min(common, (prompt - 1) / 4);
      }
      const LiveMeasured m = serve_load({load, 1, 1}, rules, by_tokens());
      EXPECT_NEAR(m.hits[0], static_cast<double>(found) / static_cast<double>(prompts), 1e-12)
          << name_of(policy);
      EXPECT_EQ(m.prompt_tokens, prompts);
      rules.keeps_prefixes = false;
      const LiveMeasured without = serve_load({load, 1, 1}, rules, by_tokens());
      EXPECT_EQ(without.hits[0], 0);
      EXPECT_LT(m.ttft.mean, without.ttft.mean);
    }
  }
}

/// Under pressure nothing is lost or counted twice (the server checks its blocks when it is idle), tiers catch what
/// falls out, and more room never finds less over the whole trace.
TEST(PrefixCache, BlocksAreConservedUnderPressure) {
  for (std::uint64_t seed = 0; seed < test::seeds(300); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    CounterRng rng(seed, 43);
    auto trace = std::make_shared<Trace>(test::random_trace(rng, 80, 60));
    LoadSpec load;
    load.trace = trace;
    load.speed_up = 0.1 + 10 * rng.uniform();
    load.prompt = trace->prompt;
    load.output = trace->output;
    load.requests = {80, false};
    LiveRules rules;
    rules.policy = static_cast<ServingPolicy>(rng.below(enum_names<ServingPolicy>().size()));
    rules.on_demand = rng.below(2) == 0;
    rules.max_batch = 1 + static_cast<std::int64_t>(rng.below(8));
    rules.token_budget = rules.max_batch + static_cast<std::int64_t>(rng.below(60));
    rules.kv_block = 1 + static_cast<std::int64_t>(rng.below(6));
    rules.kv_blocks = 70 / rules.kv_block + 1 + static_cast<std::int64_t>(rng.below(60));
    rules.servers = 1 + static_cast<std::int64_t>(rng.below(3));
    rules.routing = static_cast<Routing>(rng.below(3));
    rules.keeps_prefixes = true;
    const LiveMeasured small = serve_load({load, 1, 1}, rules, by_tokens());
    EXPECT_EQ(small.requests, 80);
    EXPECT_LE(small.kv_peak, 1);
    EXPECT_LE(small.kv_mean, small.kv_peak + 1e-12);
    EXPECT_LE(small.hits[0], 1);
    rules.lower_blocks = {1000, 0};
    rules.seconds_per_block = {1e-9, 0};
    const LiveMeasured tiered = serve_load({load, 1, 1}, rules, by_tokens());
    EXPECT_EQ(tiered.requests, 80);
    EXPECT_EQ(tiered.hits[2], 0);
    EXPECT_GE(tiered.hits[0] + tiered.hits[1] + 1e-9, small.hits[0] - 0.05);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace shardscape::serving
