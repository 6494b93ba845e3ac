#include "engine/step/serving/draft_costs.h"

#include <gtest/gtest.h>

namespace shardscape::step {
namespace {

constexpr double kToken = 3e-5, kAccepted = 1.2e-4, kDraftDevice = 2e-3;

serving::Timer counting_host() {
  return [](const serving::Iteration& iteration) {
    serving::IterationTime time;
    time[TimeClass::host] = kToken * iteration.decoding;
    return time;
  };
}
serving::Timer draft_of_one_time() {
  return [](const serving::Iteration& /*iteration*/) {
    serving::IterationTime time;
    time[TimeClass::compute] = kDraftDevice;
    return time;
  };
}

// An iteration without drafts costs the host a token of each sequence. With n drafts it verifies 1 + n tokens of each,
// but samples and streams once, takes what the host does with accepted tokens, and n runs of the drafting model.
TEST(DraftCosts, HostWorksOncePerSequence) {
  for (const std::int64_t drafts : {1, 2, 5}) {
    const serving::Timer timer =
        with_drafts(drafts, {kToken, kAccepted}, counting_host(), draft_of_one_time());
    serving::Iteration iteration;
    iteration.decoding = 24;
    const serving::IterationTime time = timer(iteration);
    EXPECT_NEAR(time[TimeClass::host], 24 * (kToken + kAccepted), 1e-15);
    EXPECT_NEAR(time[TimeClass::compute], static_cast<double>(drafts) * kDraftDevice, 1e-15);
  }
}

// Where nothing decodes, nothing is verified: one run of the drafting model reads the prompts.
TEST(DraftCosts, PromptsAloneVerifyNothing) {
  const serving::Timer timer = with_drafts(3, {kToken, kAccepted}, counting_host(), draft_of_one_time());
  serving::Iteration iteration;
  iteration.prompt_tokens = 1000;
  const serving::IterationTime time = timer(iteration);
  EXPECT_EQ(time[TimeClass::host], 0);
  EXPECT_EQ(time[TimeClass::compute], kDraftDevice);
}

}  // namespace
}  // namespace shardscape::step
