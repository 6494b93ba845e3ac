// Do executed schedules have the bubbles that their papers say?
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/schedule/pipeline.h"
#include "tests/support/execution_fixture.h"

namespace shardscape::execution {
namespace {

using schedule::PipelineOperation;
using schedule::PipelineShape;
using test::ExecutionBench;

struct PassSeconds {
  double forward = 0, input = 0, weight = 0;
};

/// Every stage runs its order of the schedule, with messages that take no time worth mentioning between them.
ExecutionResult execute(const PipelineShape& shape, const PassSeconds& seconds) {
  const std::int32_t p = shape.stages, v = shape.virtual_stages;
  FabricSpec fabric{"pairs", {test::dimension("links", DimensionKind::fully_connected, {p}, 1e15, 0)}};
  ExecutionBench bench(fabric, test::plain_stack().communication);
  const std::int32_t down = bench.builder().add_channel([=](std::int32_t rank) { return (rank + 1) % p; });
  const std::int32_t up = bench.builder().add_channel([=](std::int32_t rank) { return (rank + p - 1) % p; });
  for (std::int32_t stage = 0; stage < p; ++stage) {
    std::vector<PipelineOperation> order;
    schedule::stage_order(shape, stage, order);
    for (const PipelineOperation& op : order) {
      const bool first = stage == 0 && op.chunk == 0, last = stage == p - 1 && op.chunk == v - 1;
      if (op.weight) {
        bench.compute(seconds.weight);
      } else if (!op.backward) {
        if (!first) bench.receive(down);
        bench.compute(seconds.forward);
        if (!last) bench.send(down, 1);
      } else {
        if (!last) bench.receive(up);
        bench.compute(seconds.input + (shape.kind == ScheduleKind::zero_bubble ? 0 : seconds.weight));
        if (!first) bench.send(up, 1);
      }
    }
    bench.end_program({stage});
  }
  return bench.run();
}

void expect_bubble(const PipelineShape& shape, const PassSeconds& seconds, double bubble) {
  SCOPED_TRACE(std::string(name_of(shape.kind)) + " p " + std::to_string(shape.stages) + " v " +
               std::to_string(shape.virtual_stages) + " m " + std::to_string(shape.microbatches));
  const ExecutionResult result = execute(shape, seconds);
  ASSERT_TRUE(result.deadlock.empty()) << result.deadlock.front();
  const double ideal =
      shape.microbatches * shape.virtual_stages * (seconds.forward + seconds.input + seconds.weight);
  const double end = *std::ranges::max_element(result.end);
  EXPECT_NEAR(end, ideal + bubble, 1e-9 * end);
  for (std::size_t rank = 0; rank < result.end.size(); ++rank) {
    EXPECT_NEAR(result.accounts[rank][Account::compute], ideal, 1e-9 * ideal);
  }
}

TEST(ExecutedBubble, GPipe) {
  // Huang et al. 2019, section 2.3: (K - 1) / (M + K - 1) of the step is bubble, that is (p - 1) / m of the
  // ideal time.
  for (const std::int32_t p : {2, 3, 4, 8}) {
    for (const std::int32_t m : {1, 4, 16}) {
      expect_bubble({ScheduleKind::gpipe, p, 1, m}, {1, 1, 1}, 3.0 * m * (p - 1) / m);
    }
  }
}

TEST(ExecutedBubble, OneForwardOneBackward) {
  // Narayanan et al. 2021, section 2.2.1: (p - 1) / m, as GPipe's.
  for (const std::int32_t p : {2, 3, 4, 8}) {
    for (const std::int32_t m : {p, 2 * p, 17}) {
      expect_bubble({ScheduleKind::one_f_one_b, p, 1, m}, {1, 1, 1}, 3.0 * m * (p - 1) / m);
    }
  }
}

TEST(ExecutedBubble, Interleaved) {
  // Narayanan et al. 2021, section 2.2.2: (p - 1) / (v m) of the ideal time m v (f + b), f and b of one
  // chunk.
  for (const std::int32_t p : {2, 3, 4}) {
    for (const std::int32_t v : {2, 4}) {
      for (const std::int32_t m : {p, 2 * p, 4 * p}) {
        expect_bubble({ScheduleKind::interleaved, p, v, m}, {1, 1, 1}, 3.0 * m * v * (p - 1) / (v * m));
      }
    }
  }
}

TEST(ExecutedBubble, ZeroBubble) {
  // Qi et al. 2023, table 2, ZB-H1: (p - 1) (F + B - W).
  for (const PassSeconds& seconds : {PassSeconds{1, 1, 1}, PassSeconds{1, 1.5, 0.75}, PassSeconds{2, 2, 1}}) {
    for (const std::int32_t p : {2, 4, 8}) {
      for (const std::int32_t m : {p, 2 * p, 17}) {
        expect_bubble({ScheduleKind::zero_bubble, p, 1, m}, seconds,
                      (p - 1) * (seconds.forward + seconds.input - seconds.weight));
      }
    }
  }
}

}  // namespace
}  // namespace shardscape::execution
