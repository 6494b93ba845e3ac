// A search by expected time against the plain truth: every feasible point of a small space under every sample.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "engine/network/fabric/fabric.h"
#include "engine/simulate.h"
#include "sweep/search/best_first.h"
#include "sweep/search/fault_race.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/seeds.h"

namespace shardscape::sweep {
namespace {

using results::Fate;

FaultStudy race_faults(test::ScenarioGenerator& random) {
  FaultStudy faults;
  const std::vector<std::vector<WeightedKind>> kinds = {
      {{FaultKind::soft_link, 1}},
      {{FaultKind::slow_device, 1}},
      {{FaultKind::soft_link, 1}, {FaultKind::slow_device, 1}, {FaultKind::hbm_derate, 1}}};
  faults.kinds = kinds[random.below(kinds.size())];
  faults.samples = static_cast<std::int64_t>(20 + random.below(60));
  faults.simultaneous = static_cast<std::int64_t>(1 + random.below(2));
  faults.derate.kind = DistributionKind::uniform;
  faults.derate.min = 0.1;
  faults.derate.max = 0.9;
  faults.seed = random.below(1000);
  if (random.below(4) == 0) faults.target_ci = 0.2;
  return faults;
}

/// Two bandwidths of memory: settings with floors of their own and the same links.
Study race_study(std::uint64_t seed) {
  test::ScenarioGenerator random(seed + 9000);
  Setting setting = random.setting(Phase::training);
  setting.workload.global_batch = 32;
  const DimensionKind inner =
      random.pick({DimensionKind::ring, DimensionKind::switched, DimensionKind::mesh});
  setting.system.fabric = {
      "nodes",
      {test::dimension("inner", inner, {4}, random.between(5e9, 100e9), random.between(0, 5e-6)),
       test::dimension("outer", DimensionKind::ring, {2}, random.between(2e9, 50e9),
                       random.between(0, 5e-6))}};
  Study study;
  study.title = "race";
  study.gpus = 8;
  study.model = setting.model;
  HardwareAxis axis;
  axis.path = "device.hbm.bandwidth";
  axis.column = "bandwidth";
  axis.unit = "1";
  axis.labels = {"1", "2"};
  axis.values = {1, 2};
  study.hardware = {axis};
  study.systems = {setting.system, setting.system};
  study.systems[1].device.hbm.bandwidth_per_stack *= 2;
  study.workloads = {setting.workload};
  SpaceSpec& space = study.space;
  for (const PlanKey key : {PlanKey::tensor, PlanKey::context, PlanKey::pipeline})
    space[key].values = {1, 2, 4, 8};
  space[PlanKey::sequence_parallel].values = {1};
  space[PlanKey::zero_stage].values = {0, 3};
  space[PlanKey::recompute].values = codes_of({Recompute::none, Recompute::full});
  space[PlanKey::microbatch].values = {1, 2};
  space[PlanKey::schedule].values = codes_of({ScheduleKind::one_f_one_b, ScheduleKind::interleaved});
  space[PlanKey::virtual_stages].values = {2};
  space[PlanKey::order].values = {0, static_cast<std::int32_t>(1 + random.below(kRankOrders - 1))};
  study.faults = race_faults(random);
  study.objectives = {"expected_step_time_s", "memory_peak_bytes"};
  study.resolved_yaml = "study: race\n";
  return study;
}

struct RaceTruth {
  std::uint64_t id = 0;
  double value = 0, memory = 0;
};

struct RaceTruths {
  std::vector<RaceTruth> points;  ///< best first
  std::uint64_t draws = 0;
  double least_slowdown = 0;
};

/// Samples faults of all points in the way that a sweep does.
RaceTruths race_all(const SweepJob& job) {
  RaceTruths all;
  std::optional<Setting> setting;
  std::unique_ptr<Evaluator> evaluator;
  std::optional<std::uint64_t> current;
  for (std::uint64_t id = 0; id < job.space().size(); ++id) {
    const PointIndex point = job.space().point(id);
    if (!job.admits(point.plan, job.workload(point.setting))) continue;
    if (current != point.setting) {
      evaluator.reset();
      setting.emplace(job.study().setting(point.setting));
      evaluator = simulator_factory()(*setting, PlacementChoice::plain);
      current = point.setting;
    }
    const Prediction healthy = evaluator->evaluate(point.plan);
    if (healthy.status != Status::ok) continue;
    std::vector<results::FaultSampleRecord> rows;
    const auto summary = sample_faults(*job.fault_draws(), id, healthy, Phase::training, *evaluator, rows);
    all.draws += static_cast<std::uint64_t>(summary.samples);
    for (const results::FaultSampleRecord& row : rows)
      if (!std::isnan(row.slowdown)) all.least_slowdown = std::min(all.least_slowdown, row.slowdown);
    const double expected = summary.expected(healthy.step_time.value());
    if (!std::isnan(expected)) all.points.push_back({id, expected, healthy.memory_peak.value()});
  }
  std::ranges::sort(all.points, [](const RaceTruth& a, const RaceTruth& b) {
    return a.value == b.value ? a.id < b.id : a.value < b.value;
  });
  return all;
}

/// Points that no other beats in both, by rising time; of equal ones the first.
std::vector<RaceTruth> race_front(std::vector<RaceTruth> points) {
  std::ranges::sort(points, [](const RaceTruth& a, const RaceTruth& b) {
    if (a.value != b.value) return a.value < b.value;
    return a.memory == b.memory ? a.id < b.id : a.memory < b.memory;
  });
  std::vector<RaceTruth> front;
  for (const RaceTruth& point : points)
    if (front.empty() || point.memory < front.back().memory) front.push_back(point);
  return front;
}

void expect_race(const SweepJob& job, const SearchOutcome& outcome, const std::vector<RaceTruth>& answer,
                 const std::vector<RaceTruth>& truth) {
  ASSERT_EQ(outcome.best.size(), answer.size());
  for (std::size_t i = 0; i < answer.size(); ++i) {
    EXPECT_EQ(outcome.best[i].point_id, answer[i].id) << i;
    EXPECT_EQ(outcome.best[i].objective, answer[i].value) << i;
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t count : outcome.info.counts) sum += count;
  EXPECT_EQ(sum, job.space().size());
  EXPECT_EQ(outcome.info.counts[static_cast<std::size_t>(Fate::visited)], outcome.visited.size());
  for (const RaceTruth& point : truth) {
    if (!std::ranges::binary_search(outcome.visited, point.id)) {
      ASSERT_LE(outcome.info.bound, point.value) << point.id;
    }
  }
}

TEST(FaultRaceProperty, FindsWhatAllSamplesOfAllPointsSay) {
  std::uint64_t made = 0, all = 0;
  for (std::uint64_t seed = 1; seed <= test::seeds(16); ++seed) {
    SCOPED_TRACE(seed);
    const Study study = race_study(seed);
    const SweepJob job(study);
    const RaceTruths truth = race_all(job);
    EXPECT_GE(truth.least_slowdown, kLeastExpected - 1);  // the search's bounds rest on this
    for (const std::size_t count : {std::size_t{1}, std::size_t{10}}) {
      const SearchGoal goal{count, false, {study.objectives.front()}, 0};
      ASSERT_EQ(why_unbounded(job, goal), "");
      const SearchOutcome outcome = search(job, goal, {});
      std::vector<RaceTruth> best = truth.points;
      best.resize(std::min(best.size(), count));
      expect_race(job, outcome, best, truth.points);
      ASSERT_TRUE(outcome.draws.has_value());
      if (count != 1) continue;
      made += outcome.draws->made;
      all += truth.draws;
    }
    const SearchOutcome front = search(job, {0, true, study.objectives, 0}, {});
    expect_race(job, front, race_front(truth.points), truth.points);
    if (HasFailure()) return;
  }
  EXPECT_LT(made, all / 4);
}

TEST(FaultRaceProperty, DeadLinksAreNotRaced) {
  Study study = race_study(1);
  const SearchGoal goal{10, false, {"expected_step_time_s"}, 0};
  for (const FaultKind kind : enum_values<FaultKind>()) {
    study.faults->kinds = {{FaultKind::soft_link, 1}};
    if (kind != FaultKind::soft_link) study.faults->kinds.push_back({kind, 0.1});
    const bool dead = !row_of(kind).derates;
    EXPECT_EQ(why_unbounded(SweepJob(study), goal).empty(), !dead) << name_of(kind);
  }
  study.faults.reset();
  study.objectives = {"step_time_s"};
  EXPECT_NE(why_unbounded(SweepJob(study), goal), "");
}

TEST(FaultRaceProperty, StoppedItStillKnowsItsBound) {
  for (std::uint64_t seed = 1; seed <= test::seeds(6); ++seed) {
    SCOPED_TRACE(seed);
    const Study study = race_study(seed);
    const SweepJob job(study);
    const RaceTruths truth = race_all(job);
    for (const int steps : {5, 40, 150}) {
      int asked = 0;
      SearchOptions options;
      options.go_on = [&](const SearchProgress&) { return asked++ < steps; };
      const SearchOutcome outcome = search(job, {10, false, {study.objectives.front()}, 0}, options);
      std::uint64_t sum = 0;
      for (const std::uint64_t fate : outcome.info.counts) sum += fate;
      EXPECT_EQ(sum, job.space().size());
      for (const RaceTruth& point : truth.points) {
        if (!std::ranges::binary_search(outcome.visited, point.id)) {
          ASSERT_LE(outcome.info.bound, point.value) << point.id;
        }
      }
    }
  }
}

}  // namespace
}  // namespace shardscape::sweep
