// Does the fast course of a server agree with the plain loop over iterations, on random loads and rules, and do its
// times add up?
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/base/counter_rng.h"
#include "engine/serving/percentile.h"
#include "engine/serving/server.h"
#include "tests/support/plain_courses.h"
#include "tests/support/seeds.h"

namespace shardscape::serving {
namespace {

struct ServingCase {
  Load load;
  Rules rules;
  IterationTime fixed{};
  double per_sequence = 0, per_cached = 0, per_prompt_token = 0, per_pair = 0, floor = 0;

  /// Convex and piecewise linear in the cached tokens: the host's floor bends it.
  [[nodiscard]] Timer timer() const {
    return [c = *this](const Iteration& i) {
      IterationTime time = c.fixed;
      const double device = c.per_sequence * i.decoding + c.per_cached * i.cached +
                            c.per_prompt_token * i.prompt_tokens + c.per_pair * i.masked_pairs;
      time[TimeClass::compute] += device;
      time[TimeClass::host] += std::max(0.0, c.floor - device);
      return time;
    };
  }
  [[nodiscard]] std::string text() const {
    return std::string(name_of(rules.policy)) + " clients " + std::to_string(load.clients) + " prompt " +
           std::to_string(load.prompt_tokens) + " output " + std::to_string(load.output_tokens) + " budget " +
           std::to_string(rules.token_budget) + " slots " + std::to_string(rules.slots);
  }
};

ServingCase random_serving_case(std::uint64_t seed) {
  CounterRng rng(seed, 7);
  const auto whole = [&](std::uint64_t low, std::uint64_t high) {
    return static_cast<std::int64_t>(low + rng.below(high - low + 1));
  };
  ServingCase c;
  c.load = {whole(1, 12), whole(1, 60), whole(1, 40)};
  c.rules.policy = rng.below(2) == 0 ? ServingPolicy::chunked : ServingPolicy::prefill_priority;
  c.rules.slots = whole(1, 14);
  c.rules.token_budget = c.rules.slots + whole(0, rng.below(3) == 0 ? 4 : 100);
  for (const TimeClass part : kServingClasses) c.fixed[part] = 1e-3 * rng.uniform();
  c.per_sequence = 1e-4 * rng.uniform();
  c.per_cached = 1e-5 * rng.uniform();
  c.per_prompt_token = 1e-4 * rng.uniform();
  c.per_pair = 1e-6 * rng.uniform();
  c.floor = rng.below(2) == 0 ? 0 : 1e-2 * rng.uniform();
  return c;
}

void expect_equal(const Spread& fast, const Spread& slow, const char* what) {
  const double tolerance = 1e-9 * std::max(1e-6, slow.p95);
  EXPECT_NEAR(fast.mean, slow.mean, tolerance) << what;
  EXPECT_NEAR(fast.p50, slow.p50, tolerance) << what;
  EXPECT_NEAR(fast.p95, slow.p95, tolerance) << what;
}

TEST(Serving, EventsAgreeWithThePlainIterationLoop) {
  for (std::uint64_t seed = 0; seed < test::seeds(1500); ++seed) {
    const ServingCase c = random_serving_case(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + c.text());
    const Timer timer = c.timer();
    const Measured fast = measure(trajectory(c.load, c.rules), c.load, timer);
    const Measured slow = serve_plainly(c.load, c.rules, timer);
    EXPECT_EQ(fast.periodic, slow.periodic);
    expect_equal(fast.ttft, slow.ttft, "ttft");
    expect_equal(fast.itl, slow.itl, "itl");
    expect_equal(fast.e2e, slow.e2e, "e2e");
    EXPECT_NEAR(fast.requests_per_s / slow.requests_per_s, 1, 1e-9);
    EXPECT_NEAR(fast.decode_batch, slow.decode_batch, 1e-9);
    EXPECT_NEAR(fast.waiting, slow.waiting, 1e-9);
    for (const TimeClass part : enum_values<TimeClass>())
      EXPECT_NEAR(fast.classes[part], slow.classes[part], 1e-9) << name_of(part);
    if (HasFailure()) return;
  }
}

TEST(Serving, NothingIsLostAndEverySecondHasAClass) {
  int periodic = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(1000); ++seed) {
    const ServingCase c = random_serving_case(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + c.text());
    const Timer timer = c.timer();
    const Trajectory course = trajectory(c.load, c.rules);
    const Measured m = measure(course, c.load, timer);
    double sum = m.waiting;
    for (const double part : m.classes) sum += part;
    EXPECT_NEAR(sum / m.e2e.mean, 1, 1e-9);
    // All clients always have a request in flight: throughput x latency is their number (Little 1961).
    EXPECT_NEAR(m.requests_per_s * m.e2e.mean, static_cast<double>(c.load.clients), 1e-9);
    EXPECT_LE(m.ttft.p50, m.ttft.p95);
    EXPECT_LE(m.itl.p50, m.itl.p95);
    EXPECT_LE(m.e2e.p50, m.e2e.p95);
    EXPECT_LE(m.decode_batch, static_cast<double>(std::min(c.load.clients, c.rules.slots)) + 1e-9);
    if (!course.periodic) continue;
    ++periodic;
    // Over a period as many prompt and output tokens are worked on as requests are done.
    double prompts = 0, outputs = 0, done = 0;
    for (auto i = static_cast<std::size_t>(course.from); i < static_cast<std::size_t>(course.to); ++i) {
      const Trajectory::Segment& s = course.segments[i];
      prompts += s.first.prompt_tokens;
      outputs += s.first.first_tokens + s.first.decoding * static_cast<double>(s.iterations);
      EXPECT_LE(s.first.prompt_tokens + (c.rules.policy == ServingPolicy::chunked ? s.first.decoding : 0),
                static_cast<double>(std::max(c.rules.token_budget, c.load.prompt_tokens)));
    }
    for (const Trajectory::Request& r : course.requests) done += r.done > course.from && r.done <= course.to;
    EXPECT_DOUBLE_EQ(prompts, done * static_cast<double>(c.load.prompt_tokens));
    EXPECT_DOUBLE_EQ(outputs, done * static_cast<double>(c.load.output_tokens));
    if (HasFailure()) return;
  }
  EXPECT_GE(periodic, test::at_least(901));
}

// Gaps between tokens hold one iteration that decodes each, and under chunked nothing else.
TEST(Serving, MeansLieWithinTheIterationsAndAddUp) {
  int without_period = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(600); ++seed) {
    ServingCase c = random_serving_case(seed);
    if (seed % 10 == 0) {  // many clients, who take long to drift apart
      CounterRng random(seed, 8);
      const auto more = [&](std::int64_t least) {
        return least + static_cast<std::int64_t>(random.below(40));
      };
      c.load = {more(40), 10 * more(40), more(60)};
      c.rules = {ServingPolicy::chunked, 1024, c.load.clients};
    }
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + c.text());
    double fastest = 1e30, slowest = 0;
    const Timer timer = c.timer();
    const Measured m = serve_plainly(c.load, c.rules, [&](const Iteration& i) {
      const IterationTime time = timer(i);
      if (i.decoding > 0) fastest = std::min(fastest, total(time)), slowest = std::max(slowest, total(time));
      return time;
    });
    without_period += m.periodic ? 0 : 1;
    const double steps = static_cast<double>(c.load.output_tokens - 1);
    EXPECT_NEAR(m.requests_per_s * m.e2e.mean, static_cast<double>(c.load.clients), 1e-9);
    EXPECT_NEAR(m.ttft.mean + steps * m.itl.mean, m.e2e.mean, 1e-9 * m.e2e.mean);
    EXPECT_GT(m.ttft.mean, 0);
    if (steps > 0) {
      EXPECT_GE(m.itl.mean, fastest * (1 - 1e-9));
      const bool chunked = c.rules.policy == ServingPolicy::chunked;
      EXPECT_LE(m.itl.mean, chunked ? slowest * (1 + 1e-9) : m.e2e.mean);
    }
    if (HasFailure()) return;
  }
  EXPECT_GE(without_period, test::at_least(10));
}

TEST(Serving, PercentilesOfProgressionsAreThoseOfTheirValues) {
  for (std::uint64_t seed = 0; seed < test::seeds(500); ++seed) {
    CounterRng rng(seed, 3);
    std::vector<Progression> runs;
    std::vector<double> values;
    for (std::uint64_t n = 1 + rng.below(6); n > 0; --n) {
      const Progression p{rng.uniform(), rng.below(3) == 0 ? 0 : 0.1 * rng.uniform(),
                          static_cast<std::int64_t>(1 + rng.below(9)),
                          static_cast<std::int64_t>(1 + rng.below(4))};
      runs.push_back(p);
      for (std::int64_t i = 0; i < p.count * p.weight; ++i)
        values.push_back(p.first + p.step * static_cast<double>(i % p.count));
    }
    std::ranges::sort(values);
    for (const double share : {0.01, 0.5, 0.95, 1.0}) {
      const double position = std::ceil(share * static_cast<double>(values.size()) - 1e-9);
      EXPECT_NEAR(percentile(runs, share), values[static_cast<std::size_t>(std::max(1.0, position)) - 1],
                  1e-12)
          << "seed " << seed << " share " << share;
    }
  }
}

}  // namespace
}  // namespace shardscape::serving
