// Is the timeline of an executed step a Chrome trace whose tracks don't overlap and whose classes add up to
// the breakdown?
#include "engine/timeline/program_timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/simulate.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/seeds.h"

namespace shardscape::timeline {
namespace {

using nlohmann::json;

struct Drawn {
  Prediction prediction;
  json document;
};

/// All axes, on nodes of four; every class of Breakdown has something, recompute included.
Drawn drawn(ScheduleKind kind, std::int64_t batch, const FaultSet& faults = {}, bool async = false) {
  Setting s;
  s.model = test::llama(8, 1024, 16, 4, 4096, 32000);
  s.system.device = test::round_device();
  s.system.fabric = {"nodes",
                     {test::dimension("inner", DimensionKind::switched, {4}, 100e9, 1e-6),
                      test::dimension("outer", DimensionKind::ring, {4}, 10e9, 2e-6)}};
  s.system.stack = test::plain_stack();
  s.system.stack.communication.tensor_overlap = 0.25;
  s.system.stack.communication.data_overlap = 0.5;
  s.system.stack.communication.pipeline_async = async;
  s.system.stack.communication.call = Seconds(1e-5);
  s.system.stack.host.forward_layer = Seconds(2e-3);
  s.system.stack.host.step_fixed = Seconds(1e-3);
  s.workload = test::training(1024, batch);
  ParallelPlan plan = test::plan_of(2, 2, 2, 2);
  plan.schedule = kind;
  plan.zero_stage = 1;
  plan.recompute = Recompute::full;
  if (kind == ScheduleKind::interleaved) plan.virtual_stages = 2;
  Details details;
  details.want_timeline = true;
  Drawn d;
  Simulator simulator(s, {.time_infeasible = true, .mode = ExecutionMode::flattened});
  d.prediction = simulator.run(plan, faults, &details);
  d.document = json::parse(details.timeline);
  return d;
}

const std::vector<ScheduleKind> kSchedules = test::some_of<ScheduleKind>(
    {ScheduleKind::interleaved, ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::zero_bubble},
    4);
enum Track { kPasses, kHost, kCompute, kWait };

TEST(ProgramTimeline, TracksDoNotOverlap) {
  for (const ScheduleKind kind : kSchedules) {
    for (const bool async : {false, true}) {
      const Drawn d = drawn(kind, 8, {}, async);
      std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> tracks;
      std::map<std::pair<int, int>, std::string> names;
      for (const json& event : d.document.at("traceEvents")) {
        const std::pair<int, int> track(event.at("pid"), event.at("tid"));
        if (event.at("ph") == "X") {
          const double start = event.at("ts");
          EXPECT_GT(event.at("dur").get<double>(), 0);
          tracks[track].emplace_back(start, start + event.at("dur").get<double>());
        } else if (event.at("name") == "thread_name") {
          names[track] = event.at("args").at("name");
        }
      }
      std::set<std::string> used;
      for (auto& [track, slices] : tracks) {
        ASSERT_TRUE(names.contains(track)) << track.first << ' ' << track.second;
        used.insert(names[track]);
        std::ranges::sort(slices);
        for (std::size_t i = 1; i < slices.size(); ++i) {
          EXPECT_GE(slices[i].first, slices[i - 1].second - 1e-3) << names[track];  // a nanosecond
        }
        EXPECT_LE(slices.back().second, d.prediction.step_time.value() * 1e6 + 1e-3);
      }
      const std::set<std::string> all = {"passes",
                                         "host",
                                         "compute",
                                         "wait",
                                         "communication: tensor",
                                         "communication: context",
                                         "communication: data",
                                         "communication: to next stage",
                                         "communication: to previous stage"};
      EXPECT_EQ(used, all);
    }
  }
}

TEST(ProgramTimeline, ClassesOfTheCriticalRankAreTheBreakdown) {
  for (const ScheduleKind kind : kSchedules) {
    FaultSet sick;
    sick.devices = {{5, 0.5, 0.7}};
    for (const FaultSet& faults : {FaultSet(), sick}) {
      const Drawn d = drawn(kind, 8, faults);
      const int critical = d.document.at("otherData").at("ends_last");
      std::map<std::string, double> seconds;
      for (const json& event : d.document.at("traceEvents")) {
        if (event.at("ph") != "X" || event.at("pid") != critical) continue;
        if (event.at("tid") != kCompute && event.at("tid") != kWait) continue;
        seconds[event.at("args").at("class")] += event.at("dur").get<double>() * 1e-6;
      }
      const Breakdown& b = d.prediction.breakdown;
      const std::map<std::string, Seconds> expected = {{"compute", b[TimeClass::compute]},
                                                       {"recompute", b[TimeClass::recompute]},
                                                       {"tensor_comm", b[TimeClass::tensor_comm]},
                                                       {"context_comm", b[TimeClass::context_comm]},
                                                       {"pipeline_comm", b[TimeClass::pipeline_comm]},
                                                       {"data_comm", b[TimeClass::data_comm]},
                                                       {"bubble", b[TimeClass::bubble]},
                                                       {"optimizer", b[TimeClass::optimizer]},
                                                       {"host", b[TimeClass::host]}};
      for (const auto& [name, time] : expected) {
        EXPECT_NEAR(seconds[name], time.value(), 1e-9 + 1e-9 * time.value()) << name;
        seconds.erase(name);
      }
      EXPECT_TRUE(seconds.empty());
    }
  }
}

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
  const int batch = test::size_of_case(2048, 96);
  const Drawn d = drawn(ScheduleKind::one_f_one_b, batch);
  std::size_t slices = 0;
  for (const json& event : d.document.at("traceEvents")) slices += event.at("ph") == "X" ? 1 : 0;
  // Calls that lie across the end of the detail are drawn whole.
  EXPECT_LE(slices, kMostTimelineSlices + kMostTimelineSlices / 10);
  if (!test::all_seeds()) return;  // all that happens is drawn
  EXPECT_GT(slices, kMostTimelineSlices / 4);
  const json& other = d.document.at("otherData");
  EXPECT_LT(other.at("operators_of_passes").get<int>(), batch);
  // One rank of each stage, the critical one among them.
  const std::vector<int> ranks = other.at("operators_of_ranks");
  EXPECT_EQ(ranks.size(), 2U);
  EXPECT_NE(std::ranges::find(ranks, other.at("ends_last").get<int>()), ranks.end());
}

}  // namespace
}  // namespace shardscape::timeline
