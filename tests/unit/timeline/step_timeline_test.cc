// Is the timeline of a step a Chrome trace whose tracks don't overlap and whose slices add up?
#include "engine/timeline/step_timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/simulate.h"
#include "tests/support/engine_fixture.h"

namespace shardscape::timeline {
namespace {

using nlohmann::json;

struct DrawnStep {
  Prediction prediction;
  std::string text;
  json document;
};

Setting drawn_setting(std::int64_t batch, bool async) {
  Setting s;
  s.model = test::llama(8, 1024, 16, 4, 4096, 32000);
  s.system.device = test::round_device();
  s.system.fabric = test::crossbar(8, 50e9, 1e-6);
  s.system.stack = test::plain_stack();
  s.system.stack.communication.tensor_overlap = 0.25;
  s.system.stack.communication.pipeline_async = async;
  s.system.stack.host.step_fixed = Seconds(1e-3);
  s.workload = test::training(1024, batch);
  return s;
}

DrawnStep drawn(const Setting& setting, const ParallelPlan& plan) {
  Details details;
  details.want_timeline = true;
  DrawnStep d;
  d.prediction = Simulator(setting).run(plan, {}, &details);
  d.text = details.timeline;
  d.document = json::parse(d.text);
  return d;
}

DrawnStep drawn(ScheduleKind kind, std::int64_t batch, bool async) {
  ParallelPlan plan = test::plan_of(2, 1, 2, 2);
  plan.schedule = kind;
  return drawn(drawn_setting(batch, async), plan);
}

TEST(StepTimeline, EveryEventIsOneOfTheFormat) {
  for (const ScheduleKind kind : {ScheduleKind::one_f_one_b, ScheduleKind::zero_bubble}) {
    const DrawnStep d = drawn(kind, 16, false);
    std::set<std::pair<int, std::string>> tracks;
    std::map<std::string, int> overview;  // slices of the pipeline by category
    for (const json& event : d.document.at("traceEvents")) {
      const std::string phase = event.at("ph");
      ASSERT_TRUE(event.at("pid").is_number_integer() && event.at("tid").is_number_integer() &&
                  event.at("name").is_string());
      if (phase == "X") {
        EXPECT_GE(event.at("ts").get<double>(), 0);
        EXPECT_GT(event.at("dur").get<double>(), 0);
        if (event.at("pid") == 0) ++overview[event.at("cat")];
        if (event.at("cat") == "communication" && event.at("pid") > 0) {
          EXPECT_TRUE(event.at("args").contains("bytes"));
          EXPECT_EQ(event.at("args").at("bound"), "link");
        }
        if (event.at("cat") == "compute") {
          EXPECT_FALSE(event.at("args").at("bound").get<std::string>().empty());
        }
      } else {
        EXPECT_EQ(phase, "M");
        if (event.at("name") == "thread_name") tracks.emplace(event.at("pid"), event.at("args").at("name"));
      }
    }
    // 2 stages, 16 / 2 microbatches; a cut backward is two slices.
    EXPECT_EQ(overview["forward"], 2 * 8);
    EXPECT_EQ(overview["backward"], 2 * 8);
    EXPECT_EQ(overview["weight"], kind == ScheduleKind::zero_bubble ? 2 * 8 : 0);
    for (const int process : {1, 2}) {
      for (const char* track : {"host", "compute", "communication", "wait"}) {
        EXPECT_TRUE(tracks.contains({process, track})) << process << track;
      }
    }
  }
}

TEST(StepTimeline, ComputeAndWaitsFillTheStep) {
  // On a device's compute and wait tracks together nothing overlaps, and they are all of its time but for what links
  // that messages share with calls add to the step.
  for (const bool async : {false, true}) {
    for (const ScheduleKind kind :
         {ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::zero_bubble}) {
      const DrawnStep d = drawn(kind, 16, async);
      std::map<int, std::vector<std::pair<double, double>>> devices;
      for (const json& event : d.document.at("traceEvents")) {
        if (event.at("ph") != "X" || event.at("pid") == 0) continue;
        if (event.at("cat") != "compute" && event.at("cat") != "wait" && event.at("cat") != "host") continue;
        const double start = event.at("ts");
        devices[event.at("pid")].emplace_back(start, start + event.at("dur").get<double>());
      }
      ASSERT_EQ(devices.size(), 2U);
      double last = 0;
      for (auto& [process, slices] : devices) {
        std::ranges::sort(slices);
        double covered = 0;
        for (const auto& [start, end] : slices) {
          EXPECT_NEAR(start, covered, 1e-3) << "process " << process;  // a nanosecond
          covered = end;
        }
        last = std::max(last, covered);
      }
      EXPECT_NEAR(last, (d.prediction.step_time - d.prediction.contention).value() * 1e6, 1e-2);
      EXPECT_EQ(d.prediction.contention > Seconds(0),
                async);  // messages that block their senders meet no call
    }
  }
}

TEST(StepTimeline, ClassesAddUpToTheBreakdown) {
  // Where nothing is averaged and no link is shared, the programs take what the closed forms of the prediction say: on
  // the stage that ends last each class of time is that of its breakdown. Gathers of ZeRO-3 that outlast their passes,
  // and hosts that launch more slowly than devices work, show in theirs.
  Setting slow_host = drawn_setting(16, false);
  slow_host.system.stack.host.forward_layer = slow_host.system.stack.host.backward_layer = Seconds(5e-3);
  for (const Setting& setting : {drawn_setting(16, false), slow_host}) {
    for (const ScheduleKind kind : {ScheduleKind::one_f_one_b, ScheduleKind::zero_bubble}) {
      for (const std::int32_t zero : {0, 1, 3}) {
        ParallelPlan plan = test::plan_of(2, 1, 2, 2);
        plan.schedule = kind;
        plan.zero_stage = zero;
        plan.recompute = Recompute::full;
        SCOPED_TRACE(test::describe(0, plan));
        const DrawnStep d = drawn(setting, plan);
        std::map<int, std::map<std::string, double>> classes;  // microseconds, by process and class
        std::map<int, double> ends;
        for (const json& event : d.document.at("traceEvents")) {
          if (event.at("ph") != "X" || event.at("pid") == 0) continue;
          const double end = event.at("ts").get<double>() + event.at("dur").get<double>();
          ends[event.at("pid")] = std::max(ends[event.at("pid")], end);
          if (event.at("args").contains("class"))
            classes[event.at("pid")][event.at("args").at("class")] += event.at("dur").get<double>();
        }
        const int last = ends[1] > ends[2] ? 1 : 2;
        const double step = d.prediction.step_time.value() * 1e6;
        EXPECT_NEAR(ends[last], step, 1e-9 * step);
        Breakdown expected = d.prediction.breakdown;
        expected[TimeClass::host] -= setting.system.stack.host.step_fixed;
        for (const TimeClass c : {TimeClass::compute, TimeClass::recompute, TimeClass::tensor_comm,
                                  TimeClass::data_comm, TimeClass::host, TimeClass::optimizer})
          EXPECT_NEAR(classes[last][std::string(name_of(c))], expected[c].value() * 1e6, 1e-9 * step)
              << name_of(c);
      }
    }
  }
}

TEST(StepTimeline, WhatArrivesDoesSoAfterItsPassAndBeforeTheNextStageTakesIt) {
  // All times are on the trace's clock, which includes the host's millisecond before the pipeline.
  const DrawnStep d = drawn(ScheduleKind::one_f_one_b, 16, false);
  std::map<int, double> arrives, taken;  // activations of stage 0 by microbatch, and when stage 1 begins
  for (const json& event : d.document.at("traceEvents")) {
    if (event.at("ph") != "X" || event.at("pid") != 0 || !event.at("args").contains("arrives_us")) continue;
    const double start = event.at("ts"), end = start + event.at("dur").get<double>();
    const double arrival = event.at("args").at("arrives_us");
    EXPECT_GE(arrival, end - 1e-6) << event.dump();
    if (event.at("cat") != "forward") continue;
    (event.at("tid") == 0 ? arrives : taken)[event.at("args").at("microbatch")] =
        event.at("tid") == 0 ? arrival : start;
  }
  ASSERT_EQ(arrives.size(), 8U);
  for (const auto& [microbatch, time] : arrives) EXPECT_LE(time, taken.at(microbatch) + 1e-6);
  EXPECT_NEAR(arrives.at(0), taken.at(0), 1e-6);  // nothing else for stage 1 to do
}

TEST(StepTimeline, SameStepSameText) {
  EXPECT_EQ(drawn(ScheduleKind::one_f_one_b, 16, false).text,
            drawn(ScheduleKind::one_f_one_b, 16, false).text);
}

}  // namespace
}  // namespace shardscape::timeline
