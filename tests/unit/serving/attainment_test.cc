// Is a request counted that keeps all of its promises by its own latencies, and no other?
#include "engine/serving/live/attainment.h"

#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "engine/serving/live/tally.h"

namespace shardscape::serving {
namespace {

/// A request sent at `sent`, whose first token comes `ttft` later and the others `gap` apart.
RequestRecord record(double sent, double ttft, std::int32_t output, double gap) {
  RequestRecord r;
  r.request.sent = sent;
  r.request.output = output;
  r.first_token = sent + ttft;
  r.done = r.first_token + gap * (output - 1);
  return r;
}

constexpr double kNone = std::numeric_limits<double>::infinity();

TEST(Attainment, EachBoundCountsByItself) {
  const RequestRecord r = record(10, 0.5, 11, 0.125);  // e2e = 0.5 + 10 x 0.125 = 1.75 s
  EXPECT_TRUE(keeps(r, {}));
  EXPECT_TRUE(keeps(r, {0.5, kNone, kNone}));
  EXPECT_FALSE(keeps(r, {0.499, kNone, kNone}));
  EXPECT_TRUE(keeps(r, {kNone, 0.125, kNone}));
  EXPECT_FALSE(keeps(r, {kNone, 0.124, kNone}));
  EXPECT_TRUE(keeps(r, {kNone, kNone, 1.75}));
  EXPECT_FALSE(keeps(r, {kNone, kNone, 1.749}));
}

TEST(Attainment, ARequestOfOneTokenHasNoTimePerToken) {
  EXPECT_TRUE(keeps(record(0, 1, 1, 0), {kNone, 1e-9, kNone}));
}

/// The attainment of four requests: one keeps both of 2 s and 0.2 s, one misses the first, one the second, one both.
double attainment(const LatencyBounds& bounds) {
  LiveRules rules;
  Tally tally(rules, bounds);
  for (const auto& [ttft, gap] : {std::pair(1.0, 0.1), {3.0, 0.1}, {1.0, 0.3}, {3.0, 0.3}}) {
    const RequestRecord r = record(5, ttft, 3, gap);
    Sequence sequence;
    sequence.request = r.request;
    sequence.first_token = r.first_token;
    tally.done(sequence, r.done);
  }
  return tally.result(100).attainment;
}

TEST(Attainment, IsTheShareThatKeepsAllAtOnce) {
  EXPECT_EQ(attainment({2, 0.2, kNone}), 0.25);
  EXPECT_EQ(attainment({2, kNone, kNone}), 0.5);
  EXPECT_EQ(attainment({}), 1);
  LiveRules rules;
  EXPECT_EQ(Tally(rules, {1, 1, 1}).result(1).attainment, 1);
}

}  // namespace
}  // namespace shardscape::serving
