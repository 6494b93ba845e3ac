// Is the chart of a schedule the one that follows from its times?
#include "engine/timeline/schedule_text.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

namespace shardscape::timeline {
namespace {

using schedule::PipelineShape;

std::string chart(const PipelineShape& shape, const std::vector<schedule::StageTime>& times,
                  schedule::Transfer transfer, std::int32_t width,
                  const std::vector<StageTailSpan>& tails = {}) {
  std::vector<schedule::PipelineSpan> spans;
  const std::vector<double> ends = schedule::run_in_order(shape, times, transfer, &spans);
  return schedule_text({shape, transfer, spans, ends, tails}, width);
}

TEST(ScheduleText, OneForwardOneBackward) {
  // F = 1 s, B = 2 s, 3 microbatches: (3 + 1) * 3 = 12 s in 24 columns. Stage 0 runs F at 0 and 1, B0 at 4,
  // F2 at 6, B1 at 7, B2 at 10; stage 1 F0 at 1, B0 at 2, F1 at 4, B1 at 5, F2 at 7, B2 at 8. Busy 9 of 12 s.
  EXPECT_EQ(chart({ScheduleKind::one_f_one_b, 2, 1, 3}, {{1, 2}, {1, 2}}, {}, 47),
            "1f1b, 2 stages, 3 microbatches; a column is 500 ms\n"
            "         |0 s\n"
            "stage 0  F0F1....B0--F2B1--..B2--  idle 25.0 %\n"
            "stage 1  ..F0B0--F1B1--F2B2--....  idle 25.0 %\n"
            "F forward, B backward; the number is the microbatch\n"
            ". idle\n");
}

TEST(ScheduleText, ZeroBubble) {
  // F = B = W = 1 s, 2 stages, 2 microbatches: 2 * 3 + 1 = 7 s in 28 columns.
  // Stage 0: F1 F2 . B1 W1 B2 W2, stage 1: . F1 B1 F2 B2 W1 W2.
  EXPECT_EQ(chart({ScheduleKind::zero_bubble, 2, 1, 2}, {{1, 2, 1}, {1, 2, 1}}, {}, 51),
            "zero_bubble, 2 stages, 2 microbatches; a column is 250 ms\n"
            "         |0 s\n"
            "stage 0  F0--F1--....B0--W0--B1--W1--  idle 14.3 %\n"
            "stage 1  ....F0--B0--F1--B1--W0--W1--  idle 14.3 %\n"
            "F forward, B input gradient, W weight gradient; the number is the microbatch\n"
            ". idle\n");
}

TEST(ScheduleText, ChunksTransfersAndTails) {
  // Two stages of two chunks, one group of 2 microbatches, F = B = 1 s, a blocking message of 1 s; then 2 s
  // of communication and 1 s of optimizer on stage 0. With m = p all forwards come first.
  const std::string text =
      chart({ScheduleKind::interleaved, 2, 2, 2}, {{1, 1}, {1, 1}}, {1, true}, 400, {{2, 1}, {0, 0}});
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  EXPECT_TRUE(line.starts_with("interleaved, 2 stages of 2 chunks, 2 microbatches; a column is ")) << line;
  std::getline(lines, line);
  std::getline(lines, line);
  EXPECT_TRUE(line.starts_with("stage 0  F0a-")) << line;
  EXPECT_NE(line.find(">>>>"), std::string::npos);
  EXPECT_NE(line.find("D-------"), std::string::npos);
  EXPECT_LT(line.find("D-------"), line.find("O---"));
  EXPECT_NE(text.find("> sending, D data-parallel communication, O optimizer, . idle\n"), std::string::npos);
}

TEST(ScheduleText, DeferredWeightGradientsOfTheHead) {
  // As OneForwardOneBackward; behind its last backward, 10 s in, stage 1 has 2 s of them. Busy 9 and 11 of 12 s.
  EXPECT_EQ(chart({ScheduleKind::one_f_one_b, 2, 1, 3}, {{1, 2}, {1, 2}}, {}, 47, {{0, 0}, {0, 0, 2}}),
            "1f1b, 2 stages, 3 microbatches; a column is 500 ms\n"
            "         |0 s\n"
            "stage 0  F0F1....B0--F2B1--..B2--  idle 25.0 %\n"
            "stage 1  ..F0B0--F1B1--F2B2--W---  idle 8.3 %\n"
            "F forward, B backward; the number is the microbatch\n"
            "W weight gradients of the head, . idle\n");
}

TEST(ScheduleText, FitsItsWidth) {
  for (const std::int32_t width : {1, 40, 46, 100, 250}) {
    const std::string text = chart({ScheduleKind::one_f_one_b, 12, 1, 64},
                                   std::vector<schedule::StageTime>(12, {1, 2}), {0.1, true}, width);
    std::istringstream lines(text);
    std::string line;
    int rows = 0;
    while (std::getline(lines, line)) {
      if (!line.starts_with("stage ")) continue;
      ++rows;
      EXPECT_LE(line.size(), static_cast<std::size_t>(std::max(width, kNarrowestChart)));
    }
    EXPECT_EQ(rows, 12);
  }
}

}  // namespace
}  // namespace shardscape::timeline
