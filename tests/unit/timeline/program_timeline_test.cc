// Does the timeline of an executed step say what its slices are, and stay of a size that viewers open?
#include "engine/timeline/program_timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/support/drawn_program.h"

namespace shardscape::timeline {
namespace {

using nlohmann::json;
using test::Drawn, test::drawn, test::drawn_text;

enum Track { kPasses, kHost, kCompute, kWait };

TEST(ProgramTimeline, SlicesSayWhatTheyAre) {
  const Drawn d = drawn(ScheduleKind::interleaved, 8);
  std::set<std::string> passes;
  std::size_t calls = 0, operators = 0;
  for (const json& event : d.document.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const int track = event.at("tid");
    if (track == kPasses && event.at("pid") == 0) passes.insert(event.at("name"));
    if (track == kCompute) {
      ++operators;
      EXPECT_FALSE(event.at("args").at("bound").get<std::string>().empty());
      EXPECT_FALSE(event.at("name").get<std::string>().empty());
    }
    if (track > kWait) {
      ++calls;
      EXPECT_GT(event.at("args").at("bytes").get<double>(), 0);
      EXPECT_EQ(event.at("args").at("bound"), "link");
    }
  }
  EXPECT_GT(operators, 0U);
  EXPECT_GT(calls, 0U);
  // 4 microbatches through 2 chunks, forward and backward, and the end.
  EXPECT_EQ(passes.size(), 4U * 2 * 2 + 1);
  EXPECT_TRUE(passes.contains("F0 chunk 1") && passes.contains("B3 chunk 0") &&
              passes.contains("end of step"));
}

TEST(ProgramTimeline, LongStepsStayBounded) {
  constexpr int kBatch = 2048;
  // Read as text: a document of so many slices takes a checked build longer than the step.
  const std::string text = drawn_text(ScheduleKind::one_f_one_b, kBatch).text;
  const std::string slice = R"({"ph":"X")", before = R"("otherData":)";
  std::size_t slices = 0;
  for (std::size_t at = text.find(slice); at != std::string::npos; at = text.find(slice, at + 1)) ++slices;
  // Calls that lie across the end of the detail are drawn whole.
  EXPECT_LE(slices, kMostTimelineSlices + kMostTimelineSlices / 10);
  EXPECT_GT(slices, kMostTimelineSlices / 4);
  const std::size_t begin = text.find(before) + before.size();
  const json other = json::parse(text.substr(begin, text.find(R"(,"traceEvents":)") - begin));
  EXPECT_LT(other.at("operators_of_passes").get<int>(), kBatch);
  // One rank of each stage, the critical one among them.
  const std::vector<int> ranks = other.at("operators_of_ranks");
  EXPECT_EQ(ranks.size(), 2U);
  EXPECT_NE(std::ranges::find(ranks, other.at("ends_last").get<int>()), ranks.end());
}

}  // namespace
}  // namespace shardscape::timeline
