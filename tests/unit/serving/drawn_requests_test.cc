// Are drawn lengths and arrivals what their laws say, and the same whoever draws them?
#include "engine/serving/load/drawn_requests.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

namespace shardscape::serving {
namespace {

LoadSpec load_of(const Lengths& prompt, const Lengths& output) {
  LoadSpec load;
  load.prompt = prompt;
  load.output = output;
  load.seed = 5;
  return load;
}

struct Moments {
  double mean = 0, deviation = 0;
};
template <class Value>
Moments moments(std::int64_t count, const Value& value) {
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double x = value(i);
    sum += x;
    squares += x * x;
  }
  const double mean = sum / static_cast<double>(count);
  return {mean, std::sqrt(squares / static_cast<double>(count) - mean * mean)};
}

constexpr std::int64_t kMany = 50'000;

TEST(DrawnRequests, LengthsFollowTheirLaws) {
  const LoadSpec load = load_of(Lengths::uniform(1000, 0.8), Lengths::lognormal(200, 1.5));
  const DrawnRequests draws(load, 1);
  for (std::int64_t i = 0; i < kMany; ++i) {
    const DrawnRequest request = draws.request(i);
    ASSERT_GE(request.prompt, 800);
    ASSERT_LE(request.prompt, 1000);
    ASSERT_GE(request.output, 1);
    ASSERT_LE(request.output, load.output.longest);
  }
  const Moments prompt = moments(kMany, [&](std::int64_t i) { return draws.request(i).prompt; });
  EXPECT_NEAR(prompt.mean, 900, 1);
  EXPECT_NEAR(prompt.deviation, std::sqrt((201.0 * 201 - 1) / 12), 1);
  // The logarithm of a lognormal length is normal with variance ln(1 + cv^2).
  const double variance = std::log(1 + 1.5 * 1.5);
  const Moments logarithm = moments(kMany, [&](std::int64_t i) { return std::log(draws.request(i).output); });
  EXPECT_NEAR(logarithm.mean, std::log(200) - variance / 2, 0.02);
  EXPECT_NEAR(logarithm.deviation, std::sqrt(variance), 0.02);
  // Prompt and output of a request have nothing to do with each other.
  const Moments both = moments(kMany, [&](std::int64_t i) {
    return (draws.request(i).prompt - 900) * (std::log(draws.request(i).output) - logarithm.mean);
  });
  EXPECT_NEAR(both.mean / (prompt.deviation * logarithm.deviation), 0, 0.02);
}

TEST(DrawnRequests, FixedLengthsAreFixed) {
  const LoadSpec load = load_of(Lengths::fixed(7), Lengths::fixed(3));
  EXPECT_EQ(DrawnRequests(load, 1).request(99).prompt, 7);
  EXPECT_EQ(DrawnRequests(load, 1).request(12345).output, 3);
}

TEST(DrawnRequests, ArriveAtTheirRate) {
  LoadSpec load = load_of(Lengths::fixed(1), Lengths::fixed(1));
  load.request_rate = 4;
  const auto gaps = [&] {
    DrawnRequests draws(load, 1);
    double before = 0;
    return moments(kMany, [&](std::int64_t) {
      const double now = draws.next_arrival().sent;
      return now - std::exchange(before, now);
    });
  };
  EXPECT_NEAR(gaps().mean, 0.25, 0.004);
  EXPECT_NEAR(gaps().deviation, 0.25, 0.005);
  load.arrivals = ArrivalProcess::constant;
  EXPECT_NEAR(gaps().mean, 0.25, 1e-9);
  EXPECT_NEAR(gaps().deviation, 0, 1e-6);
  load.arrivals = ArrivalProcess::gamma;
  for (const double cv : {0.5, 2.0}) {
    load.arrivals_cv = cv;
    EXPECT_NEAR(gaps().mean, 0.25, 0.01 * cv);
    EXPECT_NEAR(gaps().deviation / gaps().mean, cv, 0.05 * cv);
  }
}

TEST(DrawnRequests, AreTheSameWhoeverDrawsThem) {
  const LoadSpec load = load_of(Lengths::uniform(5000, 0.1), Lengths::lognormal(200, 1));
  const DrawnRequests one(load, 1), other(load, 4);
  for (std::int64_t i = 999; i >= 0; --i) {
    EXPECT_EQ(one.request(i).prompt, other.request(i).prompt);
    EXPECT_EQ(one.request(i).output, other.request(i).output);
  }
}

TEST(DrawnRequests, OfEveryThirdArrivalTheRateIsAThird) {
  LoadSpec load = load_of(Lengths::fixed(1), Lengths::fixed(1));
  load.request_rate = 9;
  DrawnRequests all(load, 1), third(load, 3);
  for (int i = 0; i < 100; ++i) {
    for (int skipped = 0; skipped < 2; ++skipped) static_cast<void>(all.next_arrival());
    EXPECT_EQ(all.next_arrival().sent, third.next_arrival().sent);
  }
}

TEST(DrawnRequests, ATraceBeginsAgainAMeanGapAfterItsEnd) {
  LoadSpec load;
  const auto trace = std::make_shared<Trace>();
  trace->requests = {{0, 10, 1, 3}, {1, 20, 2, 2}, {4, 30, 3, 1}};
  load.trace = trace;
  load.prompt.law = load.output.law = LengthLaw::trace;
  load.speed_up = 2;
  DrawnRequests draws(load, 1);
  std::vector<double> sent;
  std::vector<std::int32_t> prompts;
  for (int i = 0; i < 5; ++i) {
    const DrawnRequest request = draws.next_arrival();
    sent.push_back(request.sent);
    prompts.push_back(request.prompt);
    EXPECT_EQ(request.output, request.prompt / 10);
  }
  EXPECT_EQ(sent, (std::vector<double>{0, 0.5, 2, 3, 3.5}));
  EXPECT_EQ(prompts, (std::vector<std::int32_t>{10, 20, 30, 10, 20}));
}

// Of a trace whose lengths return after every n requests, as long and short ones by turns do for n = 2: who gets one of
// every n has each length as often as the trace, and the n-th part of its rate.
TEST(DrawnRequests, OneOfEveryFewRequestsOfATraceIsAFairSample) {
  for (const std::int64_t every : {2, 3, 4, 7}) {
    LoadSpec load;
    const auto trace = std::make_shared<Trace>();
    const std::int64_t lines = every * every * 60;
    for (std::int64_t i = 0; i < lines; ++i)
      trace->requests.push_back({0.5 * static_cast<double>(i), static_cast<std::int32_t>(i % every) + 1,
                                 static_cast<std::int32_t>(i / every) + 1, 0});
    load.trace = trace;
    load.prompt.law = load.output.law = LengthLaw::trace;
    DrawnRequests draws(load, every);
    std::vector<std::int64_t> of_kind(static_cast<std::size_t>(every)),
        pairs(static_cast<std::size_t>(every * every));
    for (std::int64_t i = 0; i < lines / every; ++i) {
      const DrawnRequest request = draws.next_arrival();
      EXPECT_EQ(request.output, i + 1) << "one of each of the blocks, in their order";
      EXPECT_DOUBLE_EQ(request.sent, 0.5 * static_cast<double>(i * every));
      EXPECT_EQ(request.path.owner, i * every + request.prompt - 1) << "by its number in the trace";
      ++of_kind[static_cast<std::size_t>(request.prompt - 1)];
      // The place in a block for each block of a round: what returns only after a round is met, too.
      ++pairs[static_cast<std::size_t>(i % every * every + request.prompt - 1)];
    }
    for (const std::int64_t count : of_kind) EXPECT_EQ(count, 60) << every;
    for (const std::int64_t count : pairs) EXPECT_GT(count, 0) << every;
  }
}

/// Mean decode iterations of `tokens` tokens by the renewal equation: an iteration that gives j of them leaves
/// tokens - j.
double mean_steps(std::int64_t tokens, const std::vector<double>& shares) {
  std::vector<double> mean(1, 0.0);
  for (std::int64_t left = 1; left <= tokens; ++left) {
    double sum = 1;
    for (std::size_t j = 0; j <= shares.size(); ++j) {
      // Exactly j drafts are accepted.
      const double exactly = (j == 0 ? 1 : shares[j - 1]) - (j < shares.size() ? shares[j] : 0);
      const std::int64_t rest = left - 1 - static_cast<std::int64_t>(j);
      sum += rest > 0 ? exactly * mean[static_cast<std::size_t>(rest)] : 0;
    }
    mean.push_back(sum);
  }
  return mean.back();
}

TEST(DrawnRequests, DraftsAreAcceptedAsOftenAsTheyShould) {
  LoadSpec load;
  load.prompt = Lengths::fixed(10);
  for (const std::vector<double>& shares : {Speculation::independent(0.8), {0.85, 0.7, 0.5, 0.5}}) {
    for (const std::int64_t drafts : {1, 3, 4}) {
      load.speculation.draft_tokens = drafts;
      load.speculation.acceptance = shares;
      for (const std::int64_t output : {2, 30, 2000}) {
        load.output = Lengths::fixed(output);
        const DrawnRequests draws(load, 1);
        constexpr int kRequests = 2000;
        double sum = 0, squares = 0;
        for (int i = 0; i < kRequests; ++i) {
          const double steps = draws.request(i).steps;
          sum += steps;
          squares += steps * steps;
        }
        const std::vector<double> used(shares.begin(), shares.begin() + drafts);
        const double expected = mean_steps(output - 1, used), mean = sum / kRequests;
        const double deviation = std::sqrt(std::max(0.0, squares / kRequests - mean * mean) / kRequests);
        EXPECT_NEAR(mean, expected, 4.5 * deviation + 1e-12) << drafts << " " << output;
        // Long outputs: 1 + a + a^2 + ... tokens in each (Leviathan et al. 2023).
        double tokens = 1;
        for (const double share : used) tokens += share;
        if (output < 2000) continue;
        EXPECT_NEAR(1999 / mean, tokens, 0.01 * tokens);
      }
    }
  }
}

TEST(DrawnRequests, WithoutDraftsEachTokenHasAnIteration) {
  LoadSpec load;
  load.prompt = Lengths::fixed(10);
  load.output = Lengths::uniform(50, 0.2);
  const DrawnRequests plain(load, 1);
  load.speculation.acceptance = Speculation::independent(0.8);
  const DrawnRequests none(load, 1);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(plain.request(i).steps, plain.request(i).output - 1);
    EXPECT_EQ(none.request(i).steps, plain.request(i).steps);
  }
}

// The rate of a run is that of its own arrivals, which few requests leave some percent off the one asked for.
TEST(DrawnRequests, TheRateOfARunIsThatOfItsArrivals) {
  LoadSpec load = load_of(Lengths::fixed(100), Lengths::fixed(10));
  load.request_rate = 4;
  load.requests = {200, false};
  load.arrivals = ArrivalProcess::constant;
  EXPECT_DOUBLE_EQ(drawn_rate(load), 4);
  load.arrivals = ArrivalProcess::poisson;
  DrawnRequests draws(load, 1);
  std::vector<double> sent;
  for (int i = 0; i < 250; ++i) sent.push_back(draws.next_arrival().sent);
  EXPECT_DOUBLE_EQ(drawn_rate(load), 200 / sent[199]);
  EXPECT_GT(std::abs(drawn_rate(load) / 4 - 1), 0.001);
  load.warm_up = {50, false};  // over before a run begins, sent before those that count in steady state
  EXPECT_DOUBLE_EQ(drawn_rate(load), 200 / sent[199]);
  load.statistic = ClientStatistic::steady;
  EXPECT_DOUBLE_EQ(drawn_rate(load), 200 / (sent[249] - sent[49]));
  // A sum of n exponential times varies by 1 / sqrt(n).
  const Moments rates = moments(2000, [&](std::int64_t seed) {
    load.seed = static_cast<std::uint64_t>(seed);
    return 4 / drawn_rate(load);
  });
  EXPECT_NEAR(rates.mean, 1, 0.01);
  EXPECT_NEAR(rates.deviation, 1 / std::sqrt(200.0), 0.005);
}

}  // namespace
}  // namespace shardscape::serving
