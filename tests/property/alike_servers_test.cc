// Is a closed loop of alike requests, of which one server is followed and periods are added up, what the same servers
// do event by event?
#include "engine/serving/live/alike_servers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "engine/base/counter_rng.h"
#include "engine/serving/live/serve_load.h"
#include "tests/support/seeds.h"

namespace shardscape::serving {
namespace {

struct Case {
  LoadSpec load;
  LiveRules rules;
  std::int64_t each = 1;  ///< clients of a server
  double fixed = 0, per_sequence = 0, per_cached = 0, per_prompt_token = 0;

  [[nodiscard]] Timer timer() const {
    return [c = *this](const Iteration& i) {
      IterationTime time{};
      time[TimeClass::compute] = c.fixed + c.per_sequence * i.decoding + c.per_prompt_token * i.prompt_tokens;
      time[TimeClass::host] = c.per_cached * i.cached;
      return time;
    };
  }
  [[nodiscard]] Offered offered() const { return {load, each * rules.servers, 1}; }
  [[nodiscard]] std::string text() const {
    return std::string(name_of(rules.policy)) + " servers " + std::to_string(rules.servers) + " clients " +
           std::to_string(each) + " each, requests " + std::to_string(load.requests.number) + " after " +
           std::to_string(load.warm_up.number) + " " + std::string(name_of(load.statistic)) + " prompt " +
           std::to_string(load.prompt.longest) + " output " + std::to_string(load.output.longest) +
           " budget " + std::to_string(rules.token_budget) + " batch " + std::to_string(rules.max_batch) +
           " blocks " + std::to_string(rules.kv_blocks) + " frontend " + std::to_string(rules.frontend);
  }
};

Case random_case(std::uint64_t seed) {
  CounterRng rng(seed, 41);
  const auto whole = [&](std::uint64_t low, std::uint64_t high) {
    return static_cast<std::int64_t>(low + rng.below(high - low + 1));
  };
  const auto coin = [&] { return rng.below(2) == 0; };
  Case c;
  c.load.prompt = Lengths::fixed(whole(1, 60));
  c.load.output = Lengths::fixed(whole(1, 40));
  c.load.statistic = coin() ? ClientStatistic::run : ClientStatistic::steady;
  c.load.requests = {whole(1, coin() ? 100 : 2000), false};
  c.load.warm_up = {whole(0, coin() ? 10 : 300), false};
  c.load.promised.ttft = 0.05 * rng.uniform();
  c.each = rng.below(20) == 0 ? whole(100, 2000) : whole(1, 12);  // also far more than run at once
  for (double* cost : {&c.fixed, &c.per_sequence, &c.per_prompt_token}) *cost = 1e-3 * rng.uniform();
  c.per_cached = 1e-5 * rng.uniform();
  c.rules.policy = static_cast<ServingPolicy>(rng.below(enum_names<ServingPolicy>().size()));
  c.rules.on_demand = coin();
  c.rules.max_batch = whole(1, 14);
  c.rules.token_budget = c.rules.max_batch + whole(0, rng.below(3) == 0 ? 4 : 100);
  c.rules.kv_block = whole(1, 20);
  const std::int64_t longest = c.load.prompt.longest + c.load.output.longest;
  c.rules.kv_blocks = (longest + c.rules.kv_block - 1) / c.rules.kv_block;
  c.rules.kv_blocks = coin() ? c.rules.kv_blocks + whole(0, 10) : c.rules.kv_blocks * 14;
  c.rules.watermark = rng.below(3) == 0 ? whole(0, 3) : 0;
  c.rules.poll_interval = coin() ? 1 : whole(2, 12);
  c.rules.schedule_ahead = coin() ? 0 : whole(1, 3);
  c.rules.queue = coin() ? QueueOrder::fcfs : QueueOrder::shortest;
  c.rules.routing = static_cast<Routing>(rng.below(enum_names<Routing>().size()));
  c.rules.servers = coin() ? 1 : whole(2, 9);
  c.rules.frontend = coin() && c.rules.servers == 1 ? 0 : 1e-4 + 1e-2 * rng.uniform();
  c.rules.eager_floor = coin() ? 0 : 2e-2 * rng.uniform();
  c.rules.first_prompts = rng.below(3) == 0 ? 0.1 * rng.uniform() : 0;
  if (rng.below(4) == 0) {
    c.rules.ranks = whole(2, 4);
    if (coin()) c.rules.balance_wait = whole(1, 30);
    c.rules.balanced = c.rules.ranks;
  }
  return c;
}

void expect_near(const Percentiles& quick, const Percentiles& slow, double tolerance, const char* what) {
  EXPECT_NEAR(quick.mean, slow.mean, tolerance) << what;
  EXPECT_NEAR(quick.p50, slow.p50, tolerance) << what;
  EXPECT_NEAR(quick.p90, slow.p90, tolerance) << what;
  EXPECT_NEAR(quick.p95, slow.p95, tolerance) << what;
  EXPECT_NEAR(quick.p99, slow.p99, tolerance) << what;
}

void expect_alike(const LiveMeasured& quick, const LiveMeasured& slow) {
  const double tolerance = 1e-9 * slow.e2e.mean;
  expect_near(quick.ttft, slow.ttft, tolerance, "ttft");
  expect_near(quick.itl, slow.itl, tolerance, "itl");
  expect_near(quick.tpot, slow.tpot, tolerance, "tpot");
  expect_near(quick.e2e, slow.e2e, tolerance, "e2e");
  EXPECT_NEAR(quick.queue, slow.queue, tolerance);
  EXPECT_NEAR(quick.waiting, slow.waiting, tolerance);
  EXPECT_NEAR(quick.requests_per_s / slow.requests_per_s, 1, 1e-9);
  EXPECT_NEAR(quick.output_tokens_per_s / slow.output_tokens_per_s, 1, 1e-9);
  EXPECT_NEAR(quick.decode_batch, slow.decode_batch, 1e-9 * slow.decode_batch);
  for (const TimeClass c : kServingClasses) EXPECT_NEAR(quick.classes[c], slow.classes[c], tolerance);
  EXPECT_NEAR(quick.kv_mean, slow.kv_mean, 1e-9);
  EXPECT_EQ(quick.kv_peak, slow.kv_peak);
  EXPECT_EQ(quick.requests, slow.requests);
  EXPECT_EQ(quick.preemptions, slow.preemptions);
  EXPECT_EQ(quick.prompt_tokens, slow.prompt_tokens);
  EXPECT_EQ(quick.output_tokens, slow.output_tokens);
  EXPECT_EQ(quick.at_once, slow.at_once);
  EXPECT_EQ(quick.gaps, slow.gaps);
  EXPECT_EQ(quick.unsteady, slow.unsteady);
  EXPECT_EQ(quick.attainment, slow.attainment);
  EXPECT_DOUBLE_EQ(quick.accepted, slow.accepted);
}

TEST(AlikeServers, OneStandsForAllAndPeriodsAreAddedUp) {
  std::int64_t quick_calls = 0, slow_calls = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(3000); ++seed) {
    const Case c = random_case(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + c.text());
    ASSERT_TRUE(all_alike(c.offered(), c.rules));
    const Timer timer = c.timer();
    std::int64_t* calls = &quick_calls;
    const Timer counted = [&](const Iteration& i) {
      ++*calls;
      return timer(i);
    };
    const LiveMeasured quick = serve_load(c.offered(), c.rules, counted);
    calls = &slow_calls;
    LoadRecord record;  // keeping all that happens has each server followed by itself
    const LiveMeasured slow = serve_load(c.offered(), c.rules, counted, Stride::runs, &record);
    expect_alike(quick, slow);
    if (HasFailure()) return;
  }
  EXPECT_LT(5 * quick_calls, slow_calls) << "no use is made of it";
}

}  // namespace
}  // namespace shardscape::serving
