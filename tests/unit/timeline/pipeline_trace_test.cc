// Does a timeline parse as a Chrome trace, with every operation once and none on top of another?
#include "engine/timeline/timed_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace shardscape::timeline {
namespace {

using nlohmann::json;
using schedule::PipelineShape;

struct Traced {
  std::vector<schedule::PipelineSpan> spans;
  std::vector<double> ends;
  std::string text;
  json document;
};

std::string traced_text(const std::vector<schedule::PipelineSpan>& spans, const std::vector<double>& ends,
                        const std::vector<StageTailSpan>& tails) {
  ChromeTrace trace;
  draw_pipeline(trace, spans, ends, tails);
  return trace.document({{"title", "a \"title\"\n"}});
}

Traced traced(const PipelineShape& shape, schedule::Transfer transfer, std::vector<StageTailSpan> tails) {
  Traced result;
  std::vector<schedule::StageTime> times;
  for (std::int32_t s = 0; s < shape.stages; ++s) times.push_back({1e-3 + 1e-4 * s, 2e-3});
  result.ends = schedule::run_in_order(shape, times, transfer, &result.spans);
  result.text = traced_text(result.spans, result.ends, tails);
  result.document = json::parse(result.text);
  return result;
}

std::vector<json> slices(const json& document) {
  std::vector<json> result;
  for (const json& event : document.at("traceEvents")) {
    if (event.at("ph") == "X") result.push_back(event);
  }
  return result;
}

TEST(PipelineTrace, OneSlicePerOperation) {
  const PipelineShape shape{ScheduleKind::interleaved, 4, 2, 8};
  const Traced t = traced(shape, {1e-4, false}, {});
  EXPECT_EQ(t.document.at("otherData").at("title"), "a \"title\"\n");
  std::map<std::tuple<int, std::string, int, int>, int> seen;
  for (const json& slice : slices(t.document)) {
    ++seen[{slice.at("tid"), slice.at("cat"), slice.at("args").at("chunk"),
            slice.at("args").at("microbatch")}];
  }
  EXPECT_EQ(seen.size(), 2U * 4 * 2 * 8);
  for (const auto& [key, count] : seen) EXPECT_EQ(count, 1);
}

TEST(PipelineTrace, SlicesOfAStageDoNotOverlapAndEndWithTheStage) {
  const std::vector<StageTailSpan> tails = {{2e-3, 1e-3}, {0, 5e-3}, {1e-3, 0}};
  for (const bool blocking : {false, true}) {
    const Traced t = traced({ScheduleKind::one_f_one_b, 3, 1, 9}, {3e-4, blocking}, tails);
    std::map<int, std::vector<std::pair<double, double>>> tracks;
    for (const json& slice : slices(t.document)) {
      EXPECT_GT(slice.at("dur").get<double>(), 0);
      tracks[slice.at("tid")].emplace_back(slice.at("ts"),
                                           slice.at("ts").get<double>() + slice.at("dur").get<double>());
    }
    ASSERT_EQ(tracks.size(), 3U);
    for (auto& [stage, track] : tracks) {
      std::ranges::sort(track);
      for (std::size_t i = 1; i < track.size(); ++i) EXPECT_LE(track[i - 1].second, track[i].first + 1e-6);
      const auto s = static_cast<std::size_t>(stage);
      const double end = t.ends[s] + tails[s].data_comm + tails[s].optimizer;  // seconds; a trace has us
      EXPECT_NEAR(track.back().second, end * 1e6, 1e-6);
    }
    // Slices without duration are left out: 54 operations, tails of stages 0 (two), 1 and 2 (one each).
    EXPECT_EQ(slices(t.document).size(), 2U * 27 + 4);
  }
}

TEST(PipelineTrace, TracksAreNamedInOrder) {
  const Traced t = traced({ScheduleKind::gpipe, 3, 1, 2}, {}, {});
  std::map<int, std::string> names;
  for (const json& event : t.document.at("traceEvents")) {
    if (event.at("name") == "thread_name") names[event.at("tid")] = event.at("args").at("name");
  }
  EXPECT_EQ(names, (std::map<int, std::string>{{0, "stage 0"}, {1, "stage 1"}, {2, "stage 2"}}));
}

TEST(PipelineTrace, SameInputSameText) {
  const Traced t = traced({ScheduleKind::one_f_one_b, 2, 1, 4}, {1e-4, false}, {});
  EXPECT_EQ(traced_text(t.spans, t.ends, {}), t.text);
}

}  // namespace
}  // namespace shardscape::timeline
