#include "engine/schedule/pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "engine/schedule/pipeline_memo.h"
#include "engine/schedule/pipeline_timer.h"
#include "tests/support/pipeline_oracle.h"

namespace shardscape::schedule {
namespace {

using enum ScheduleKind;

std::string describe(const PipelineShape& shape) {
  return std::string(name_of(shape.kind)) + " p " + std::to_string(shape.stages) + " v " +
         std::to_string(shape.virtual_stages) + " m " + std::to_string(shape.microbatches);
}

std::vector<PipelineShape> shapes() {
  std::vector<PipelineShape> all;
  for (const int p : {1, 2, 3, 4, 7, 8}) {
    for (const int m : {1, 2, 3, 5, 8, 16, 33}) {
      all.push_back({gpipe, p, 1, m});
      all.push_back({one_f_one_b, p, 1, m});
    }
    for (const int v : {2, 3, 4}) {
      for (const int groups : {1, 2, 3, 5}) all.push_back({interleaved, p, v, groups * p});
    }
  }
  return all;
}

TEST(StageOrder, HoldsEachOperationOnceForwardFirst) {
  for (const PipelineShape& shape : shapes()) {
    for (int s = 0; s < shape.stages; ++s) {
      SCOPED_TRACE(describe(shape) + " stage " + std::to_string(s));
      std::vector<PipelineOperation> order;
      stage_order(shape, s, order);
      std::set<std::pair<int, int>> forwards, backwards;
      for (const PipelineOperation& op : order) {
        ASSERT_TRUE(op.chunk >= 0 && op.chunk < shape.virtual_stages);
        ASSERT_TRUE(op.microbatch >= 0 && op.microbatch < shape.microbatches);
        if (op.backward) {
          EXPECT_TRUE(forwards.contains({op.chunk, op.microbatch}));
          EXPECT_TRUE(backwards.insert({op.chunk, op.microbatch}).second);
        } else {
          EXPECT_TRUE(forwards.insert({op.chunk, op.microbatch}).second);
        }
      }
      const auto all = static_cast<std::size_t>(shape.virtual_stages * shape.microbatches);
      EXPECT_EQ(forwards.size(), all);
      EXPECT_EQ(backwards.size(), all);
    }
  }
}

TEST(StageOrder, InFlightIsTheMaximumOfTheWalk) {
  for (const PipelineShape& shape : shapes()) {
    for (int s = 0; s < shape.stages; ++s) {
      std::vector<PipelineOperation> order;
      stage_order(shape, s, order);
      int held = 0, most = 0;
      for (const PipelineOperation& op : order) most = std::max(most, held += op.backward ? -1 : 1);
      EXPECT_EQ(held, 0);
      EXPECT_EQ(in_flight(shape, s), most) << describe(shape) << " stage " << s;
    }
  }
}

TEST(StageOrder, HeadInFlightIsTheMaximumOfTheLastChunk) {
  for (const PipelineShape& shape : shapes()) {
    std::vector<PipelineOperation> order;
    stage_order(shape, shape.stages - 1, order);
    int held = 0, most = 0;
    for (const PipelineOperation& op : order) {
      if (op.chunk + 1 == shape.virtual_stages) most = std::max(most, held += op.backward ? -1 : 1);
    }
    EXPECT_EQ(head_in_flight(shape), most) << describe(shape);
  }
}

// Megatron-LM's published schedule for p = 2, v = 2, m = 4 on stage 0: warm-up of 2 (p - s - 1) + (v - 1) p =
// 4 forwards, then one forward and one backward in turn.
TEST(StageOrder, InterleavedByHand) {
  std::vector<PipelineOperation> order;
  stage_order({interleaved, 2, 2, 4}, 0, order);
  std::string text;
  for (const PipelineOperation& op : order) {
    text += (op.backward ? 'B' : 'F') + std::to_string(op.chunk) + std::to_string(op.microbatch) + ' ';
  }
  EXPECT_EQ(text, "F00 F01 F10 F11 F02 B10 F03 B11 F12 B00 F13 B01 B12 B13 B02 B03 ");
}

double end_of(const PipelineShape& shape, double forward, double backward) {
  const std::vector<StageTime> times(static_cast<std::size_t>(shape.stages), {forward, backward});
  PipelineTimer timer;
  const auto ends = timer.run(shape, times, {});
  return *std::ranges::max_element(ends);
}

// Equal stages, free transfers: the step takes m (f + b) of work and a bubble of (p - 1)(f + b) under gpipe
// and 1f1b (Huang et al. 2019; Narayanan et al. 2021, section 2.2): share (p - 1) / m. Interleaved: chunk
// times are f / v and b / v, and the bubble shrinks to (p - 1)(f + b) / v.
TEST(Bubble, IsTheClosedForm) {
  const double f = 1.25, b = 2.75;
  for (const PipelineShape& shape : shapes()) {
    const double v = shape.virtual_stages, work = shape.microbatches * (f + b);
    const double bubble = (shape.stages - 1) * (f + b) / v;
    EXPECT_NEAR(end_of(shape, f / v, b / v), work + bubble, 1e-12 * work) << describe(shape);
  }
}

TEST(Bubble, TwoStagesByHand) {
  // 1f1b, p = 2, m = 2, f = 1, b = 2, blocking transfers of 0.5:
  //   stage 0: F0 0..1 sends ..1.5, F1 1.5..2.5 ..3; stage 1: F0 1.5..2.5, B0 2.5..4.5 ..5, F1 5..6, B1 6..8
  //   ..8.5; stage 0: B0 5..7, B1 8.5..10.5.
  const std::vector<StageTime> times(2, {1, 2});
  PipelineTimer timer;
  const auto ends = timer.run({one_f_one_b, 2, 1, 2}, times, {0.5, true});
  EXPECT_DOUBLE_EQ(ends[0], 10.5);
  EXPECT_DOUBLE_EQ(ends[1], 8.5);
  // Asynchronous: stage 0 F1 1..2; stage 1 F0 1.5..2.5, B0 2.5..4.5, F1 4.5..5.5, B1 5.5..7.5; stage 0
  // B0 5..7, B1 8..10.
  const auto overlapped = timer.run({one_f_one_b, 2, 1, 2}, times, {0.5, false});
  EXPECT_DOUBLE_EQ(overlapped[0], 10);
  EXPECT_DOUBLE_EQ(overlapped[1], 7.5);
}

TEST(RunInOrder, SpansAreTheScheduleWithoutOverlaps) {
  const PipelineShape shape{interleaved, 4, 2, 8};
  const std::vector<StageTime> times = {{1, 2}, {1.5, 2.5}, {0.5, 3}, {1, 1}};
  std::vector<PipelineSpan> spans;
  const std::vector<double> ends = run_in_order(shape, times, {0.25, true}, &spans);
  EXPECT_EQ(spans.size(), 2U * 4 * 2 * 8);
  std::vector<double> busy_until(4, 0);
  for (const PipelineSpan& span : spans) {
    const auto s = static_cast<std::size_t>(span.stage);
    EXPECT_GE(span.start, busy_until[s]);
    EXPECT_DOUBLE_EQ(span.end - span.start, span.operation.backward ? times[s].backward : times[s].forward);
    EXPECT_GE(span.sent, span.end);
    busy_until[s] = span.sent;
  }
  EXPECT_EQ(busy_until, ends);
}

TEST(PipelineMemo, RemembersExactlyWhatTheTimerSays) {
  PipelineMemo memo;
  PipelineTimer timer;
  for (int round = 0; round < 2; ++round) {
    for (const PipelineShape& shape : shapes()) {
      for (const bool blocking : {false, true}) {
        std::vector<StageTime> times(static_cast<std::size_t>(shape.stages), {1, 2});
        times.back() = {1.5, 2};
        const auto fresh = timer.run(shape, times, {0.1, blocking});
        const auto kept = memo.run(shape, times, {0.1, blocking});
        EXPECT_TRUE(std::ranges::equal(fresh, kept)) << describe(shape);
      }
    }
  }
}

}  // namespace
}  // namespace shardscape::schedule
