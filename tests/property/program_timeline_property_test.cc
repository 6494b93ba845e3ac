// Is the timeline of an executed step a Chrome trace whose tracks don't overlap and whose classes add up to
// the breakdown, with any schedule and a sick device?
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/timeline/step_timeline.h"
#include "tests/support/drawn_program.h"

namespace shardscape::timeline {
namespace {

using nlohmann::json;
using test::Drawn, test::drawn;

constexpr ScheduleKind kSchedules[] = {ScheduleKind::interleaved, ScheduleKind::gpipe,
                                       ScheduleKind::one_f_one_b, ScheduleKind::zero_bubble};
enum Track { kPasses, kHost, kCompute, kWait };

TEST(ProgramTimelineProperty, TracksDoNotOverlap) {
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

TEST(ProgramTimelineProperty, ClassesOfTheCriticalRankAreTheBreakdown) {
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

TEST(StepTimelineProperty, LongStepsStayBoundedByDefault) {
  constexpr int kBatch = 4096;
  Setting s;
  s.model = test::llama(8, 1024, 16, 4, 4096, 32000);
  s.system.device = test::round_device();
  s.system.fabric = test::crossbar(8, 50e9, 1e-6);
  s.system.stack = test::plain_stack();
  s.workload = test::training(1024, kBatch);
  ParallelPlan plan = test::plan_of(2, 1, 2, 2);
  plan.schedule = ScheduleKind::one_f_one_b;
  Details details;
  details.want_timeline = true;
  Simulator(s).run(plan, {}, &details);
  const json document = json::parse(details.timeline);
  EXPECT_LT(document.at("otherData").at("operators_of_microbatches").get<int>(), kBatch / 2);
  std::size_t slices = 0;
  for (const json& event : document.at("traceEvents")) slices += event.at("pid") > 0 ? 1 : 0;
  EXPECT_LE(slices, kMostOperatorSlices + 100);
  EXPECT_GT(slices, kMostOperatorSlices / 4);
}

}  // namespace
}  // namespace shardscape::timeline
