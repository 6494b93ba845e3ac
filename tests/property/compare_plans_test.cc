// Do the bars of a comparison add up, class by class, and is each the cause that it is said to be?
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/counter_rng.h"
#include "engine/simulate.h"
#include "sweep/compare/waterfall.h"
#include "sweep/space/point_text.h"
#include "sweep/study/load_study.h"
#include "tests/support/paths.h"
#include "tests/support/seeds.h"

namespace shardscape::compare {
namespace {

namespace fs = std::filesystem;

/// A point with its prediction; stays where it is.
struct Evaluated {
  std::string name;
  Setting setting;
  ParallelPlan plan;
  Prediction prediction = {};
  Details details = {};

  [[nodiscard]] Side side() const { return {setting, plan, prediction, details}; }
};
std::unique_ptr<Evaluated> evaluated(std::string name, Setting setting, const ParallelPlan& plan) {
  auto made = std::make_unique<Evaluated>(Evaluated{std::move(name), std::move(setting), plan});
  Simulator simulator(made->setting, {.time_infeasible = true});
  made->prediction = simulator.run(plan, {}, &made->details);
  return made;
}

/// Random points with a time, of the studies whose servers are in their steady state and of those that train.
std::vector<std::unique_ptr<Evaluated>> random_points() {
  const fs::path root = test::source_dir();
  const yaml::Catalog catalog({root});
  std::vector<std::unique_ptr<Evaluated>> points;
  for (const auto& file : fs::directory_iterator(root / "sweep/studies")) {
    if (file.path().extension() != ".yaml") continue;
    const auto study = sweep::load_study(file.path(), catalog);
    EXPECT_TRUE(study) << file.path();
    if (!study || study->workloads.front().load) continue;
    const sweep::DesignSpace space = study->design_space();
    CounterRng random(space.size(), 1);
    std::uint64_t found = 0;
    for (int tries = 0; tries < 200 && found < test::seeds(5); ++tries) {
      const sweep::PointIndex point = space.point(random.below(space.size()));
      auto made = evaluated(study->title + ' ' + sweep::to_point_text(point.plan, study->phase()),
                            study->setting(point.setting), point.plan);
      if (!made->prediction.has_times()) continue;
      points.push_back(std::move(made));
      ++found;
    }
  }
  return points;
}

TEST(ComparePlans, BarsAddUpToTheDifference) {
  const auto points = random_points();
  std::size_t pairs = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::size_t j = 0; j < points.size(); ++j) {
      const Evaluated &a = *points[i], &b = *points[j];
      if (a.setting.workload.phase != b.setting.workload.phase) continue;
      ++pairs;
      SCOPED_TRACE(a.name + " to " + b.name);
      const std::vector<Bar> bars = waterfall(a.side(), b.side());
      EXPECT_TRUE(i != j || bars.empty());
      const double large = std::max(a.side().whole(), b.side().whole()).value();
      double sum = 0, largest = large;
      Breakdown by_class;
      for (const Bar& bar : bars) {
        sum += bar.difference.value();
        largest = std::max(largest, std::abs(bar.difference.value()));
        by_class[bar.time_class] += bar.difference;
        EXPECT_EQ(bar.links.empty(), !is_communication(bar.time_class)) << name_of(bar.time_class);
      }
      EXPECT_NEAR(sum, (b.side().whole() - a.side().whole()).value(), 1e-9 * largest);
      for (const TimeClass c : enum_values<TimeClass>())
        EXPECT_NEAR(by_class[c].value(), (b.prediction.breakdown[c] - a.prediction.breakdown[c]).value(),
                    1e-12 * largest)
            << name_of(c);
    }
  }
  EXPECT_GT(pairs, static_cast<std::size_t>(test::at_least(1000)));
}

// What changes the rates of a device changes no work, and what changes links changes no computation.
TEST(ComparePlans, CausesAreThoseThatChanged) {
  int compared = 0;
  for (const auto& point : random_points()) {
    if (point->setting.workload.phase != Phase::training) continue;
    SCOPED_TRACE(point->name);
    Setting slower = point->setting;
    for (DimensionSpec& dimension : slower.system.fabric.dimensions) dimension.bandwidth *= 0.5;
    const auto on_links = evaluated("", slower, point->plan);
    // Another stage may become the critical one, and have another share of the work.
    const bool one_stage = point->plan.pipeline == 1;
    const auto is_work = [&](const Bar& bar) {
      return bar.time_class == TimeClass::compute &&
             (bar.cause == Cause::work || (bar.cause == Cause::share && one_stage));
    };
    for (const Bar& bar : waterfall(point->side(), on_links->side())) EXPECT_FALSE(is_work(bar));
    Setting narrow = point->setting;
    narrow.system.device.hbm.bandwidth_per_stack *= 0.5;
    const auto on_device = evaluated("", narrow, point->plan);
    ASSERT_TRUE(on_device->prediction.has_times());
    double rate = 0;
    for (const Bar& bar : waterfall(point->side(), on_device->side())) {
      EXPECT_FALSE(is_work(bar));
      if (bar.time_class == TimeClass::compute) rate += bar.difference.value();
    }
    EXPECT_GT(rate, 0);
    // Twice the samples of a step on the same GPUs are twice the work, at the same rate.
    Setting twice = point->setting;
    twice.workload.global_batch *= 2;
    const auto of_batch = evaluated("", twice, point->plan);
    const double before = point->prediction.breakdown[TimeClass::compute].value();
    double work = 0, rest = 0;
    for (const Bar& bar : waterfall(point->side(), of_batch->side()))
      if (bar.time_class == TimeClass::compute)
        (bar.cause == Cause::work ? work : rest) += std::abs(bar.difference.value());
    EXPECT_NEAR(work, before, 1e-9 * before);
    EXPECT_LT(rest, 0.02 * before);
    ++compared;
  }
  EXPECT_GT(compared, test::at_least(30));
}

// The dimensions that a class crosses, by hand: eight GPUs in a node, nodes in a rail.
TEST(ComparePlans, LinksAreThoseThatTheGroupsCross) {
  const yaml::Catalog catalog({fs::path(test::source_dir())});
  const auto study = sweep::parse_study(R"(model: llama3.1-70b
cluster: dgx-h100
gpus: 64
stack: megatron-core
workload: {phase: training, sequence_length: 4096, global_batch: 64, precision: bf16}
space: {tensor_parallel: [8], pipeline_parallel: [2], data_parallel: fill}
)",
                                        "study.yaml", {}, catalog);
  ASSERT_TRUE(study);
  const Setting setting = study->setting(0);
  ParallelPlan plan;
  plan.tensor = 8, plan.data = 4, plan.pipeline = 2;
  EXPECT_EQ(crossed_links(setting, plan, TimeClass::tensor_comm), "nvswitch");
  EXPECT_EQ(crossed_links(setting, plan, TimeClass::data_comm), "rail");
  EXPECT_EQ(crossed_links(setting, plan, TimeClass::pipeline_comm), "rail");
  EXPECT_EQ(crossed_links(setting, plan, TimeClass::context_comm), "");
  plan.tensor = 4, plan.data = 8;
  EXPECT_EQ(crossed_links(setting, plan, TimeClass::data_comm), "nvswitch + rail");
  plan.order = *parse_rank_order("dp-tp-cp-pp");
  EXPECT_EQ(crossed_links(setting, plan, TimeClass::data_comm), "nvswitch");
  EXPECT_EQ(crossed_links(setting, plan, TimeClass::tensor_comm), "rail");
}

TEST(ComparePlans, LighterRecomputationSaysWhatMemoryForced) {
  const yaml::Catalog catalog({fs::path(test::source_dir())});
  const auto study =
      sweep::load_study(fs::path(test::source_dir()) / "sweep/studies/gpt-recompute-memory.yaml", catalog);
  ASSERT_TRUE(study);
  const Setting setting = study->setting(0);
  const auto text = sweep::parse_point("recompute=full", study->space, study->gpus, study->phase());
  ASSERT_TRUE(text);
  const auto lighter = lighter_recompute(setting, text->plan);
  ASSERT_EQ(lighter.size(), 2U);
  EXPECT_EQ(lighter[0].recompute, Recompute::none);
  EXPECT_GT(lighter[0].prediction.memory_peak, lighter[1].prediction.memory_peak);
  ParallelPlan none = text->plan;
  none.recompute = Recompute::none;
  EXPECT_TRUE(lighter_recompute(setting, none).empty());
}

}  // namespace
}  // namespace shardscape::compare
