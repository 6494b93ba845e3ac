// Closed forms of continuous batching: loads whose course can be written down by hand.
#include "engine/serving/server.h"

#include <gtest/gtest.h>

namespace shardscape::serving {
namespace {

constexpr double kPrefill = 0.5, kDecode = 0.01;

/// A token of a prompt costs `per_token`, an iteration that decodes `decode`, whatever the batch.
Timer costs(double per_token, double decode) {
  return [=](const Iteration& i) {
    return IterationTime{per_token * i.prompt_tokens + (i.decoding > 0 ? decode : 0)};
  };
}

Measured serve(const Load& load, const Rules& rules, const Timer& timer) {
  return measure(trajectory(load, rules), load, timer);
}

TEST(Server, OneClientPaysItsPrefillAndItsDecodeSteps) {
  for (const ServingPolicy policy : {ServingPolicy::chunked, ServingPolicy::prefill_priority}) {
    const Load load{1, 100, 21};
    const Measured m = serve(load, {policy, 1000, 8}, costs(kPrefill / 100, kDecode));
    EXPECT_DOUBLE_EQ(m.ttft.mean, kPrefill);
    EXPECT_NEAR(m.itl.mean, kDecode, 1e-15);
    EXPECT_NEAR(m.itl.p95, kDecode, 1e-12);
    EXPECT_NEAR(m.e2e.mean, kPrefill + 20 * kDecode, 1e-12);
    EXPECT_DOUBLE_EQ(m.decode_batch, 1);
    EXPECT_EQ(m.waiting, 0);
  }
}

TEST(Server, APromptInChunksTakesAsManyIterations) {
  // 100 tokens at 30 an iteration: 4 iterations, each with a fixed second.
  const Timer timer = [](const Iteration&) { return IterationTime{0, 0, 0, 0, 1, 0}; };
  const Measured m = serve({1, 100, 11}, {ServingPolicy::chunked, 30, 8}, timer);
  EXPECT_DOUBLE_EQ(m.ttft.mean, 4);
  EXPECT_DOUBLE_EQ(m.itl.mean, 1);
  EXPECT_DOUBLE_EQ(m.e2e.mean, 14);
}

TEST(Server, FreePromptsLeaveTheDecodeStep) {
  // Without a price on prompts c clients differ from one in nothing but throughput.
  for (const std::int64_t clients : {1, 3, 16}) {
    const Measured m = serve({clients, 50, 101}, {ServingPolicy::chunked, 100'000, 64}, costs(0, kDecode));
    EXPECT_NEAR(m.ttft.mean, 0, 1e-12);
    EXPECT_NEAR(m.itl.mean, kDecode, 1e-12);
    EXPECT_NEAR(m.requests_per_s, static_cast<double>(clients) / (100 * kDecode), 1e-9);
    EXPECT_DOUBLE_EQ(m.decode_batch, static_cast<double>(clients));
  }
}

TEST(Server, WholePromptsOneByOneDelayTheFirstTokens) {
  // 4 clients, a budget of one prompt: first tokens after 1, 2, 3 and 4 prefills, then 20 common steps.
  const Measured m =
      serve({4, 100, 21}, {ServingPolicy::prefill_priority, 100, 8}, costs(kPrefill / 100, kDecode));
  EXPECT_NEAR(m.ttft.mean, 2.5 * kPrefill, 1e-12);
  EXPECT_NEAR(m.ttft.p50, 2 * kPrefill, 1e-12);
  EXPECT_NEAR(m.ttft.p95, 4 * kPrefill, 1e-12);
  EXPECT_NEAR(m.e2e.mean, 4 * kPrefill + 20 * kDecode, 1e-12);
  EXPECT_NEAR(m.itl.p50, kDecode, 1e-12);
  // 3 of 80 gaps hold other prefills, 3.75 %.
  EXPECT_NEAR(m.itl.p95, kDecode, 1e-12);
  // Nothing is done for a request while the other three are read.
  EXPECT_NEAR(m.waiting, 3 * kPrefill, 1e-12);
}

TEST(Server, PlacesBoundTheBatch) {
  // 6 clients, 2 places: pairs take turns, a request waits for two other pairs.
  const Measured m = serve({6, 10, 11}, {ServingPolicy::chunked, 1000, 2}, costs(0, kDecode));
  EXPECT_DOUBLE_EQ(m.decode_batch, 2);
  EXPECT_NEAR(m.e2e.mean, 3 * 10 * kDecode, 1e-12);
  EXPECT_NEAR(m.requests_per_s, 2 / (10 * kDecode), 1e-9);
}

TEST(Server, OneTokenOfOutputHasNoGaps) {
  const Measured m = serve({3, 10, 1}, {ServingPolicy::chunked, 30, 8}, costs(0.1, kDecode));
  EXPECT_DOUBLE_EQ(m.ttft.mean, 3.0);
  EXPECT_DOUBLE_EQ(m.e2e.mean, 3.0);
  EXPECT_EQ(m.itl.mean, 0);
  EXPECT_EQ(m.decode_batch, 0);
}

// Iterations of 1,000 s whatever they do. 64 clients that began together drift apart until no two prompts meet, which
// takes them some 20 requests each: then each prompt of 700 tokens is read in the iteration after it was sent, and
// every gap is one iteration. While they drift prompts wait for each other.
TEST(Server, TheSteadyStateIsThatOfTheLongRun) {
  const Timer timer = [](const Iteration&) { return IterationTime{0, 0, 0, 0, 1000, 0}; };
  const Measured m = serve({64, 700, 100}, {ServingPolicy::chunked, 1024, 64}, timer);
  EXPECT_NEAR(m.ttft.mean, 1000, 10);
  EXPECT_NEAR(m.itl.mean, 1000, 1e-6);
  EXPECT_NEAR(m.e2e.mean, m.ttft.mean + 99 * m.itl.mean, 1e-6);
  EXPECT_NEAR(m.requests_per_s * m.e2e.mean, 64, 1e-9);
}

TEST(Server, ChunkedKeepsGapsShorterThanWholePrompts) {
  // The point of chunked prefill (Agrawal et al. 2024): no gap is longer than an iteration of the budget.
  const Load load{4, 2000, 100};
  const Timer timer = costs(1e-4, kDecode);
  const Measured chunked = serve(load, {ServingPolicy::chunked, 256, 8}, timer);
  const Measured whole = serve(load, {ServingPolicy::prefill_priority, 2000, 8}, timer);
  EXPECT_LE(chunked.itl.p95, kDecode + 256e-4 + 1e-12);
  EXPECT_LT(chunked.ttft.mean, whole.ttft.mean);
}

}  // namespace
}  // namespace shardscape::serving
