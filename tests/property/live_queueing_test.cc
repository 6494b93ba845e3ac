// Does a server that takes one request at a time wait as queueing theory has it?
//
// Pollaczek and Khinchine: requests come by a Poisson process of rate r and are served one after the other, each for a
// time S. One that comes waits for what is left of the one in service, and for all that wait before it. The former is
// r E[S^2] / 2 (with probability r E[S] one is in service, and what is left of it has the mean E[S^2] / 2 E[S], as a
// moment more often meets a long one), and the latter r W E[S] by Little's law. So W = r E[S^2] / 2 (1 - r E[S]), half
// as long with constant as with exponential times.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/counter_rng.h"
#include "engine/serving/live/serve_load.h"
#include "tests/support/seeds.h"

namespace shardscape::serving {
namespace {

/// A request is its prompt, which takes a second per kTokensPerSecond tokens.
constexpr double kTokensPerSecond = 1e4;

Timer by_prompt() {
  return [](const Iteration& i) {
    IterationTime time{};
    time[TimeClass::compute] = i.prompt_tokens / kTokensPerSecond;
    return time;
  };
}

/// The mean time in the queue, and the standard error that batches of requests show.
struct Waited {
  double mean, error;
};
Waited wait_of(const LoadSpec& load) {
  LiveRules rules;
  rules.policy = ServingPolicy::trtllm;
  rules.on_demand = false;
  rules.kv_block = 1;
  rules.kv_blocks = 1'000'000'000;
  LoadRecord record;
  const LiveMeasured m = serve_load({load, 1, 1}, rules, by_prompt(), Stride::runs, &record);
  const std::vector<RequestRecord>& records = record.requests;
  EXPECT_FALSE(m.overloaded());
  constexpr std::size_t kBatches = 50;
  const std::size_t each = records.size() / kBatches;
  double sum = 0, squares = 0;
  for (std::size_t b = 0; b < kBatches; ++b) {
    double batch = 0;
    for (std::size_t i = b * each; i < (b + 1) * each; ++i)
      batch += records[i].admitted - records[i].request.sent;
    batch /= static_cast<double>(each);
    sum += batch;
    squares += batch * batch;
  }
  const double mean = sum / kBatches, variance = squares / kBatches - mean * mean;
  EXPECT_NEAR(m.queue, mean, 1e-3 * mean);
  return {mean, std::sqrt(variance / (kBatches - 1))};
}

LoadSpec poisson(const Lengths& prompt, double utilisation) {
  LoadSpec load;
  load.prompt = prompt;
  load.output = Lengths::fixed(1);
  load.request_rate = utilisation * kTokensPerSecond / prompt.mean;
  load.requests = {static_cast<std::int64_t>(test::seeds(2'000'000)), false};
  return load;
}

void expect_formula(const LoadSpec& load, double squares) {
  const double service = load.prompt.mean / kTokensPerSecond;
  const double expected = load.request_rate * squares / 2 / (1 - load.request_rate * service);
  const Waited waited = wait_of(load);
  const double known_within = 1.96 * waited.error / expected;
  if (test::all_seeds()) {
    EXPECT_LT(known_within, 0.01) << "so many requests tell one per cent at 95 %";
  }
  EXPECT_NEAR(waited.mean / expected, 1, test::all_seeds() ? 0.01 : 2 * known_within);
}

TEST(LiveQueueing, ConstantServiceTimes) {
  for (const double utilisation : {0.3, 0.7}) {
    const double seconds = 0.1;
    expect_formula(poisson(Lengths::fixed(1000), utilisation), seconds * seconds);
  }
}

TEST(LiveQueueing, UniformServiceTimes) {
  const LoadSpec load = poisson(Lengths::uniform(2000, 0.1), 0.6);
  double squares = 0;
  for (std::int64_t i = 200; i <= 2000; ++i)
    squares += std::pow(static_cast<double>(i) / kTokensPerSecond, 2);
  expect_formula(load, squares / 1801);
}

TEST(LiveQueueing, LognormalServiceTimes) {
  // E[S^2] = E[S]^2 (1 + cv^2).
  expect_formula(poisson(Lengths::lognormal(1000, 0.8), 0.5), 0.01 * (1 + 0.64));
}

/// Exponential times, rounded to a thousandth of their mean, are the lengths of a trace.
TEST(LiveQueueing, ExponentialServiceTimes) {
  LoadSpec load = poisson(Lengths::fixed(1000), 0.5);
  DrawnRequests draws(load, 1);
  CounterRng rng(11, 0);
  const auto trace = std::make_shared<Trace>();
  for (std::int64_t i = 0; i < load.requests.number; ++i) {
    const auto tokens =
        static_cast<std::int32_t>(std::max(1.0, std::round(-1000 * std::log1p(-rng.uniform()))));
    trace->requests.push_back({draws.next_arrival().sent, tokens, 1, 0});
  }
  load.trace = trace;
  load.prompt = {LengthLaw::trace, 1000, 1, 0, 100'000, 1};
  // E[S^2] = 2 E[S]^2.
  expect_formula(load, 0.02);
}

TEST(LiveQueueing, OverloadIsAValue) {
  LoadSpec load = poisson(Lengths::fixed(1000), 3);
  load.requests = {2000, false};
  LiveRules rules;
  rules.policy = ServingPolicy::trtllm;
  rules.kv_block = 1;
  rules.kv_blocks = 1'000'000;
  for (const ClientStatistic statistic : {ClientStatistic::run, ClientStatistic::steady}) {
    load.statistic = statistic;
    load.request_rate = 30;
    const LiveMeasured over = serve_load({load, 1, 1}, rules, by_prompt());
    EXPECT_TRUE(over.overloaded());
    EXPECT_NEAR(over.sustained_per_s, 10, 0.1) << "a tenth of a second each";
    load.request_rate = 1e9;
    EXPECT_NEAR(serve_load({load, 1, 1}, rules, by_prompt()).sustained_per_s, 10, 0.1);
    load.request_rate = 5;
    EXPECT_FALSE(serve_load({load, 1, 1}, rules, by_prompt()).overloaded());
  }
}

/// Servers that fall behind for more iterations than are followed at first are judged by all requests of a trace: after
/// a burst at its beginning they keep up, and else those that were done are measured, a thousand iterations each.
TEST(LiveQueueing, TracesAreJudgedByAllOfTheirRequests) {
  const auto served = [](double later) {
    LoadSpec load = poisson(Lengths::fixed(1000), 1);
    load.requests = {2000, false};
    load.request_rate = 0;
    const auto trace = std::make_shared<Trace>();
    for (std::int32_t i = 0; i < 2000; ++i)
      trace->requests.push_back({(i < 1100 ? 0.01 : later) * i, 1000, 1, 0});
    load.trace = trace;
    LiveRules rules;  // a token an iteration
    rules.kv_block = 1;
    rules.kv_blocks = 1'000'000;
    return serve_load({load, 1, 1}, rules, by_prompt());
  };
  const LiveMeasured burst = served(0.2), over = served(0.01);
  EXPECT_FALSE(burst.overloaded()) << burst.sustained_per_s;
  EXPECT_EQ(burst.requests, 2000);
  EXPECT_EQ(burst.done, 1);
  EXPECT_NEAR(over.sustained_per_s, 10, 0.1);
  EXPECT_NEAR(over.done, 1048.0 / 2000, 0.001);
}

TEST(LiveQueueing, IterationsWithoutEndAreNoHang) {
  LoadSpec load = poisson(Lengths::fixed(10), 0.5);
  load.output = Lengths::fixed(20);
  load.requests = {50, false};
  LiveRules rules;
  rules.max_batch = 4;
  rules.token_budget = 100;
  rules.servers = 2;
  rules.kv_blocks = 1000;
  for (const double rate : {load.request_rate, 0.0}) {
    load.request_rate = rate;
    for (const double seconds : {std::numeric_limits<double>::infinity(), std::nan("")}) {
      const LiveMeasured m = serve_load({load, 8, 1}, rules, [&](const Iteration& i) {
        IterationTime time{};
        time[TimeClass::compute] = i.cached > 50 ? seconds : 1;
        return time;
      });
      EXPECT_TRUE(std::isinf(m.e2e.mean));
    }
  }
}

}  // namespace
}  // namespace shardscape::serving
