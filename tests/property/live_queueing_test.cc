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

// ---- servers of many requests ----

/// An iteration takes a fixed time, and more with every token that it reads and every sequence that decodes.
double seconds_of(const Iteration& i) { return 4e-3 + 2.1e-5 * i.prompt_tokens + 2e-5 * i.decoding; }

/// Prompts of 500 tokens and answers of 50; with the cache full each server has up to 150 of them.
struct Many {
  explicit Many(ServingPolicy policy, double rate) {
    load.prompt = Lengths::fixed(500);
    load.output = Lengths::fixed(50);
    load.request_rate = rate;
    load.requests = {600, false};
    rules.policy = policy;
    rules.on_demand = policy != ServingPolicy::trtllm;
    rules.token_budget = 8192;
    rules.max_batch = 200;
    rules.kv_block = 1;
    rules.kv_blocks = 150 * 550;
    rules.servers = 3;
  }
  [[nodiscard]] LiveMeasured measured(LoadRecord* record = nullptr) const {
    const Timer timer = [](const Iteration& i) {
      IterationTime time{};
      time[TimeClass::compute] = seconds_of(i);
      return time;
    };
    return serve_load({load, 1, 1}, rules, timer, Stride::runs, record);
  }
  LoadSpec load;
  LiveRules rules;
};

/// What holds is what is served where more comes, however much more: of a run that is long beside its begin and its
/// end, in which servers are not full.
TEST(LiveQueueing, SustainedRateIsWhatIsServedUnderOverload) {
  for (const ServingPolicy policy : enum_values<ServingPolicy>()) {
    SCOPED_TRACE(name_of(policy));
    Many longest(policy, 1000);
    longest.load.requests = {60'000, false};
    const double served = longest.measured().requests_per_s;
    std::vector<double> holds;
    for (const double more : {1.05, 1.2, 1.5, 2.0, 4.0, 10.0}) {
      Many many(policy, more * served);
      many.load.requests = {4000, false};
      holds.push_back(many.measured().sustained_per_s);
      EXPECT_NEAR(holds.back() / served, 1, 0.02) << more;
    }
    EXPECT_EQ(holds, std::vector(holds.size(), holds.front())) << "whatever the rate asked for";
    Many less(policy, 0.9 * served);
    less.load.requests = {4000, false};
    EXPECT_FALSE(less.measured().overloaded());
  }
}

/// In steady state as many are done as come. The moments at which requests come are drawn anew here, and those at which
/// they are done are recorded.
TEST(LiveQueueing, SteadyStateServesWhatComesOrIsNone) {
  int steady = 0, unsteady = 0;
  for (const ServingPolicy policy : enum_values<ServingPolicy>()) {
    for (const double rate : {10.0, 100.0, 150.0, 200.0, 300.0}) {
      for (const std::int64_t requests : {20, 60, 200, 600, 2000, 10'000}) {
        Many many(policy, rate);
        LoadSpec& load = many.load;
        load.requests = {requests, false};
        load.warm_up = {requests / 10, false};
        load.statistic = ClientStatistic::steady;
        load.arrivals = requests % 3 == 0 ? ArrivalProcess::constant : ArrivalProcess::poisson;
        SCOPED_TRACE(std::string(name_of(policy)) + " " + std::to_string(rate) + " " +
                     std::to_string(requests));
        LoadRecord record;
        const LiveMeasured m = many.measured(&record);
        if (m.unsteady) {
          ++unsteady;
          EXPECT_TRUE(requests < 2000 || m.overloaded()) << "ten times what is in flight";
          continue;
        }
        ++steady;
        const double begin = m.begun, end = record.requests.back().done;
        double come = 0;
        for (DrawnRequests draws(load, 1);;) {
          const double sent = draws.next_arrival().sent;
          if (sent > end) break;
          come += sent > begin ? 1 : 0;
        }
        if (m.overloaded()) {
          EXPECT_LE(m.requests_per_s, 1.1 * m.sustained_per_s);
        } else {
          EXPECT_LE(m.requests_per_s * (end - begin), come * (1 + 1e-9));
          EXPECT_LE(come, 1.1 * static_cast<double>(requests));
        }
        EXPECT_GE(m.requests_per_s * (end - begin), 0.9 * static_cast<double>(requests));
        EXPECT_GE(m.itl.mean, seconds_of({.decoding = 1}) * (1 - 1e-9));
        EXPECT_LE(m.kv_mean, m.kv_peak);
        EXPECT_NEAR(total(m.classes) + m.waiting, m.e2e.mean, 1e-9 * m.e2e.mean);
        if (requests < 10'000 || m.overloaded()) continue;
        load.statistic = ClientStatistic::run;
        const LiveMeasured run = many.measured();
        EXPECT_NEAR(m.requests_per_s / run.requests_per_s, 1, 0.02) << "long runs are both";
        EXPECT_NEAR(m.e2e.mean / run.e2e.mean, 1, 0.05);
      }
    }
  }
  EXPECT_GT(steady, 40);
  EXPECT_GT(unsteady, 20);
}

/// Servers that read whatever comes before they decode end all their requests at once: however long the warm-up is, as
/// many requests as end together show nothing.
TEST(LiveQueueing, RequestsThatEndTogetherAreNoSteadyState) {
  Many many(ServingPolicy::sglang, 300);
  many.load.statistic = ClientStatistic::steady;
  many.load.requests = {200, false};
  for (const std::int64_t warm_up : {0, 20, 100, 200}) {
    many.load.warm_up = {warm_up, false};
    const LiveMeasured m = many.measured();
    EXPECT_TRUE(m.unsteady || m.requests_per_s < 330) << warm_up << ": " << m.requests_per_s;
  }
  many.load.warm_up = {20, false};
  EXPECT_TRUE(many.measured().unsteady);
  many.load.statistic = ClientStatistic::run;
  EXPECT_FALSE(many.measured().unsteady);
}

}  // namespace
}  // namespace shardscape::serving
