// Laws that every simulated run of a load obeys, on replicas or on two pools.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

#include "engine/serving/live/load_record.h"
#include "engine/serving/live/tally.h"

namespace shardscape::test {

/// Each request is served once, with the tokens that it was drawn with, one after the other; times add up.
inline void expect_conserved(const LoadSpec& load, const serving::LiveMeasured& m,
                             const serving::LoadRecord& record) {
  const serving::DrawnRequests draws(load, 1);
  std::int64_t prompts = 0, outputs = 0, steps = 0;
  double in_system = 0;
  std::set<std::int64_t> numbers;
  for (const serving::RequestRecord& r : record.requests) {
    const serving::DrawnRequest drawn = draws.request(r.request.number);
    EXPECT_EQ(drawn.prompt, r.request.prompt);
    EXPECT_EQ(drawn.output, r.request.output);
    prompts += drawn.prompt;
    outputs += drawn.output;
    steps += r.request.steps;
    in_system += r.done - r.request.sent;
    // Moments of two pools are equal up to rounding (network::kTie).
    EXPECT_LE(r.request.ready, r.admitted * (1 + 1e-12));
    EXPECT_LT(r.admitted, r.first_token);
    EXPECT_LE(r.first_token, r.done * (1 + 1e-12));
    numbers.insert(r.request.number);
  }
  EXPECT_EQ(static_cast<std::int64_t>(numbers.size()), load.requests.number) << "each of them once";
  EXPECT_EQ(m.prompt_tokens, prompts);
  EXPECT_EQ(m.output_tokens, outputs);
  EXPECT_EQ(m.gaps, steps) << "a decode iteration ends a gap";
  if (load.speculation.draft_tokens == 0) {
    EXPECT_EQ(steps, outputs - m.requests) << "and gives a token";
  }
  // Little: the integral of the number in the system is the sum of times in it.
  EXPECT_NEAR(m.e2e.mean * static_cast<double>(m.requests), in_system, 1e-9 * in_system);
  EXPECT_NEAR(m.e2e.mean, serving::total(m.classes) + m.waiting + m.exposed_transfer, 1e-9 * m.e2e.mean);
  EXPECT_LE(m.kv_peak, 1);
}

}  // namespace shardscape::test
