// Search against the plain truth: every point of a small space evaluated, ranked and compared.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/simulate.h"
#include "sweep/search/best_first.h"
#include "sweep/search/floors.h"
#include "sweep/space/point_text.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/ranks_of_threads.h"
#include "tests/support/search_truth.h"
#include "tests/support/seeds.h"

namespace shardscape::sweep {
namespace {

/// Two capacities of memory, two bandwidths of it and two of the links, times two batches: groups of settings that
/// share floors and settings that don't.
Study random_search_study(std::uint64_t seed) {
  test::ScenarioGenerator random(seed);
  Setting setting = random.setting(Phase::training);
  setting.workload.global_batch = 32;
  setting.system.fabric = {"nodes",
                           {test::dimension("inner", DimensionKind::switched, {8}, random.between(5e9, 300e9),
                                            random.between(0, 5e-6))}};
  setting.system.stack.head.deferred_weight_gradient = random.coin();
  Study study;
  study.title = "search";
  study.gpus = 8;
  study.model = setting.model;
  const auto axis = [](const char* path, const char* column) {
    HardwareAxis result;
    result.path = path;
    result.column = column;
    result.unit = "1";
    result.labels = {"1", "2"};
    result.values = {1, 2};
    return result;
  };
  study.hardware = {axis("device.hbm.capacity", "capacity"), axis("device.hbm.bandwidth", "bandwidth"),
                    axis("fabric.inner.bandwidth", "links")};
  const double capacity = random.pick({0.05, 0.2, 1.0});
  for (std::size_t i = 0; i < 8; ++i) {
    System system = setting.system;
    system.device.hbm.capacity_per_stack *= capacity * (i / 4 == 0 ? 1 : 2);
    system.device.hbm.bandwidth_per_stack *= i / 2 % 2 == 0 ? 1 : 2;
    system.fabric.dimensions[0].bandwidth *= i % 2 == 0 ? 1 : 2;
    study.systems.push_back(system);
  }
  study.workloads = {setting.workload, setting.workload};
  study.workloads[1].global_batch = 64;
  SpaceSpec& space = study.space;
  for (const PlanKey key : {PlanKey::tensor, PlanKey::context, PlanKey::pipeline})
    space[key].values = {1, 2, 4, 8};
  space[PlanKey::sequence_parallel].values = {0, 1};
  space[PlanKey::zero_stage].values = {0, 1, 3};
  space[PlanKey::recompute].values = codes_of({Recompute::none, Recompute::full});
  space[PlanKey::microbatch].values = {1, 2};
  space[PlanKey::schedule].values =
      codes_of({ScheduleKind::one_f_one_b, ScheduleKind::interleaved, ScheduleKind::zero_bubble});
  space[PlanKey::virtual_stages].values = {2};
  space[PlanKey::order].values = {0, static_cast<std::int32_t>(1 + random.below(kRankOrders - 1))};
  if (random.coin()) space.constraints = {"tp * cp <= 4 or zero == 3"};
  study.objectives = {random.pick({"step_time_s", "tokens_per_s_per_gpu", "mfu"}), "memory_peak_bytes"};
  study.resolved_yaml = "study: search\n";
  return study;
}

TEST(SearchProperty, FindsWhatAllPointsSay) {
  std::uint64_t points = 0, visited = 0, studies = 0;
  for (std::uint64_t seed = 1; seed <= test::seeds(20); ++seed) {
    SCOPED_TRACE(seed);
    const Study study = random_search_study(seed);
    const SweepJob job(study);
    const std::vector<Truth> truth = all_points(job);
    const std::vector<Truth> best = ranked(job, truth);
    for (const std::uint64_t count : {1UL, 10UL, 100UL}) {
      const SearchOutcome outcome = search(job, {count, false, {study.objectives.front()}, 0}, {});
      EXPECT_TRUE(outcome.info.complete);
      expect_same(outcome.best, best, count);
      expect_certified(job, outcome, truth);
      if (count != 10) continue;
      points += job.space().size();
      visited += outcome.visited.size();
      ++studies;
    }
    const SearchOutcome front = search(job, {0, true, study.objectives, 0}, {});
    const std::vector<Truth> expected = front_of(job, truth);
    expect_same(front.best, expected, expected.size());
    expect_certified(job, front, truth);
    if (HasFailure()) return;
  }
  // Spaces of some thousand points are no hard case for a search, but it must save something.
  EXPECT_LT(visited, points / 4) << studies;
}

/// A few degrees and settings of a random study, executed.
Study random_executed_study(std::uint64_t seed) {
  Study study = random_search_study(seed);
  study.mode = ExecutionMode::flattened;
  study.model.layers = std::min<std::int64_t>(study.model.layers, 4);
  study.workloads.resize(1);
  study.workloads.front().global_batch = 8;
  // Capacities that tell no execution apart, and links that do.
  study.systems = {study.systems[0], study.systems[1], study.systems[4], study.systems[5]};
  study.hardware.erase(study.hardware.begin() + 1);
  SpaceSpec& space = study.space;
  space[PlanKey::context].values = {1, 2};
  space[PlanKey::zero_stage].values = {1, 2, 3};
  space[PlanKey::microbatch].values = {1};
  space[PlanKey::order].values = {0};
  return study;
}

/// The same in three orders of ranks, with sick links, of fewer degrees.
Study random_executed_orders(std::uint64_t seed) {
  test::ScenarioGenerator random(seed + 1000);
  Study study = random_executed_study(seed);
  for (System& system : study.systems) {
    system.fabric.dimensions = {
        test::dimension("inner", DimensionKind::switched, {4}, 200e9, 1e-6),
        test::dimension("outer", DimensionKind::switched, {2}, random.between(5e9, 50e9), 5e-6)};
  }
  SpaceSpec& space = study.space;
  space[PlanKey::tensor].values = {1, 2, 4};
  space[PlanKey::pipeline].values = {1, 2, 4};
  space[PlanKey::zero_stage].values = {1, 2};
  std::vector<std::int32_t>& orders = space[PlanKey::order].values;
  while (orders.size() < 3) {
    orders.push_back(static_cast<std::int32_t>(1 + random.below(kRankOrders - 1)));
    std::ranges::sort(orders);
    orders.erase(std::unique(orders.begin(), orders.end()), orders.end());
  }
  FaultStudy faults;
  faults.kinds = {{FaultKind::soft_link, 1}};
  faults.samples = 3;
  study.faults = faults;
  study.stored_rows = {};
  return study;
}

SearchOptions executing(int threads = 1) {
  SearchOptions options;
  options.evaluator = simulator_factory({.mode = ExecutionMode::flattened});
  options.threads = threads;
  return options;
}

TEST(SearchProperty, FindsTheBestExecutedSteps) {
  std::uint64_t points = 0, visited = 0;
  for (std::uint64_t seed = 1; seed <= test::seeds(2); ++seed) {
    SCOPED_TRACE(seed);
    const Study study = random_executed_study(seed);
    const SweepJob job(study);
    const std::vector<Truth> truth = all_points(job);
    const std::vector<Truth> best = ranked(job, truth);
    for (const std::uint64_t count : {1UL, 10UL}) {
      const SearchOutcome outcome =
          search(job, {count, false, {study.objectives.front()}, 0}, executing(count == 10 ? 2 : 1));
      EXPECT_TRUE(outcome.info.complete);
      expect_same(outcome.best, best, count);
      expect_certified(job, outcome, truth);
      points += truth.size();
      visited += outcome.visited.size();
    }
    const SearchOutcome front = search(job, {0, true, study.objectives, 0}, executing());
    const std::vector<Truth> expected = front_of(job, truth);
    expect_same(front.best, expected, expected.size());
    const SearchOutcome near = search(job, {3, false, {study.objectives.front()}, 0.1}, executing());
    expect_certified(job, near, truth);
    if (HasFailure()) return;
  }
  RecordProperty("visited_per_mille", static_cast<int>(1000 * visited / std::max<std::uint64_t>(1, points)));
  EXPECT_LT(visited, points / 2);
}

/// Bounds in executions, hints and rounds change nothing of the answer, whoever does them.
TEST(SearchProperty, ExecutedStepsAreThoseOfAllPointsInAnyOrderOfRanksForAnyThreadsAndRanks) {
  std::uint64_t given_up = 0;
  for (std::uint64_t seed = 1; seed <= test::seeds(2); ++seed) {
    SCOPED_TRACE(seed);
    const Study study = random_executed_orders(seed);
    const SweepJob job(study);
    ASSERT_NE(job.fault_draws(), nullptr);
    const std::vector<Truth> truth = all_points(job), best = ranked(job, truth);
    for (const SearchGoal& goal : {SearchGoal{1, false, {study.objectives.front()}, 0},
                                   SearchGoal{10, false, {study.objectives.front()}, 0}}) {
      const SearchOutcome one = search(job, goal, executing());
      EXPECT_TRUE(one.info.complete);
      expect_same(one.best, best, goal.count);
      expect_certified(job, one, truth);
      given_up += one.given_up;
      const SearchOutcome threads = search(job, goal, executing(3));
      expect_same_outcome(one, threads);
      EXPECT_EQ(one.given_up, threads.given_up);
      SearchOutcome of_ranks;
      test::on_ranks(3, [&](ranks::Ranks& ranks) {
        SearchOptions options = executing();
        options.together = &ranks;
        SearchOutcome outcome = search(job, goal, options);
        if (ranks.rank() == 0) of_ranks = std::move(outcome);
      });
      expect_same_outcome(one, of_ranks);
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(given_up, 0U);
}

/// Whatever is asked within executions, nothing better than the bound was left out.
TEST(SearchProperty, ExecutedStepsStoppedAnywhereKeepTheirBound) {
  const Study study = random_executed_orders(1);
  const SweepJob job(study);
  const std::vector<Truth> truth = all_points(job);
  const SearchGoal goal{3, false, {study.objectives.front()}, 0};
  for (const int steps : {0, 5, 60, 400, 3000}) {
    int asked = 0;
    SearchOptions options = executing();
    options.go_on = [&](const SearchProgress&) { return asked++ < steps; };
    const SearchOutcome outcome = search(job, goal, options);
    EXPECT_EQ(outcome.info.complete, asked <= steps);
    expect_certified(job, outcome, truth);
  }
  // Hints that are cut short are executed all the same, and the answer is the same.
  SearchOptions hasty = executing();
  int asked = 0;
  hasty.seek_hints = [&] { return asked++ < 30; };
  const SearchOutcome outcome = search(job, goal, hasty);
  EXPECT_TRUE(outcome.info.complete);
  expect_same(outcome.best, ranked(job, truth), 3);
}

/// The points with the best prices, which are executed first, are points like others then.
TEST(SearchProperty, EachExecutionCountsOnceAgainstABudgetOfPoints) {
  const Study study = random_executed_orders(1);
  std::uint64_t asked = 0;
  SearchOptions options = executing();
  options.may_visit = [&] { return ++asked > 0; };
  const SearchOutcome outcome = search(SweepJob(study), {10, false, {study.objectives.front()}, 0}, options);
  EXPECT_TRUE(outcome.info.complete);
  EXPECT_EQ(asked, outcome.visited.size() + outcome.given_up);
}

/// One that has a price within a constraint and is executed without is no exception.
TEST(SearchProperty, EachExecutionCountsOnceWhereItMissesAConstraint) {
  Study study = random_executed_orders(1), priced = study;
  study.objectives.front() = priced.objectives.front() = "step_time_s";
  priced.mode = ExecutionMode::hierarchical;
  std::map<std::uint64_t, double> prices;
  for (const Truth& point : all_points(SweepJob(priced))) prices[point.id] = point.value;
  double bound = 0, least = HUGE_VAL;
  for (const Truth& point : all_points(SweepJob(study))) {
    const double above = prices[point.id] - point.value;
    if (above <= 0 || above >= least) continue;
    bound = point.value;
    least = above;
  }
  ASSERT_GT(bound, 0);
  study.limits = {{"step_time_s", results::Relation::above, bound, false}};
  std::uint64_t asked = 0;
  SearchOptions options = executing();
  options.may_visit = [&] { return ++asked > 0; };
  const SearchOutcome outcome = search(SweepJob(study), {10, false, {"step_time_s"}, 0}, options);
  EXPECT_TRUE(outcome.info.complete);
  ASSERT_FALSE(outcome.best.empty());
  EXPECT_GT(outcome.best.front().objective, bound);
  EXPECT_EQ(asked, outcome.visited.size() + outcome.given_up);
}

/// Plans of more events than are allowed are no part of a certificate.
TEST(SearchProperty, PlansTooLargeToExecuteAreLeftOpen) {
  const Study study = random_executed_orders(1);
  const SweepJob job(study);
  const std::vector<Truth> truth = all_points(job);
  SearchOptions options = executing();
  options.evaluator = simulator_factory({.mode = ExecutionMode::flattened, .most_events = 1});
  const SearchOutcome outcome = search(job, {3, false, {study.objectives.front()}, 0}, options);
  EXPECT_FALSE(outcome.info.complete);
  EXPECT_GT(outcome.too_large, 0U);
  EXPECT_TRUE(outcome.best.empty());
  expect_certified(job, outcome, truth);
}

/// An optimised placement of what differs in its capacity alone is searched once.
TEST(SearchProperty, PlacedStepsAreExecutedOnce) {
  Study study = random_executed_orders(2);
  study.faults.reset();
  study.space[PlanKey::order].values = {0};
  study.space[PlanKey::schedule].values = codes_of({ScheduleKind::one_f_one_b});
  study.space[PlanKey::recompute].values = codes_of({Recompute::none});
  study.space[PlanKey::sequence_parallel].values = {0};
  study.space[PlanKey::tensor].values = {2};
  study.space[PlanKey::context].values = {1};
  study.space[PlanKey::pipeline].values = {2};
  study.space.constraints.clear();
  study.systems = {study.systems.front(), study.systems.front()};
  study.systems[0].device.hbm.capacity_per_stack *= 100;
  study.systems[1].device.hbm.capacity_per_stack *= 200;
  study.hardware = {study.hardware.front(), study.hardware.front()};
  study.hardware[1].path = study.hardware[1].column = "placement";
  study.hardware[1].labels = {"optimised"};
  study.hardware[1].values = {static_cast<double>(PlacementChoice::optimised)};
  const SweepJob job(study);
  /// Counts evaluations of placed plans.
  class Counting final : public Evaluator {
   public:
    Counting(std::unique_ptr<Evaluator> own, std::atomic<int>& count) : own_(std::move(own)), count_(count) {}
    Prediction evaluate(const ParallelPlan& plan) override { return ++count_, own_->evaluate(plan); }
    Prediction judge(const ParallelPlan& plan) override { return own_->judge(plan); }
    Prediction evaluate_again(const FaultSet& faults) override { return own_->evaluate_again(faults); }
    void watch(StepWatch watch) override { own_->watch(std::move(watch)); }

   private:
    std::unique_ptr<Evaluator> own_;
    std::atomic<int>& count_;
  };
  std::atomic<int> executed = 0;
  SearchOptions options;
  options.evaluator = [&, own = simulator_factory({.mode = ExecutionMode::flattened})](
                          const Setting& setting, PlacementChoice choice) -> std::unique_ptr<Evaluator> {
    EXPECT_EQ(choice, PlacementChoice::optimised);
    return std::make_unique<Counting>(own(setting, choice), executed);
  };
  const SearchOutcome outcome = search(job, {1000, false, {study.objectives.front()}, 0}, options);
  std::uint64_t feasible = outcome.best.size();
  EXPECT_GE(feasible, 4U);
  // Two capacities, and ZeRO 1 and 2 where both send the same.
  EXPECT_LE(executed, static_cast<int>(feasible / 2));
}

/// Points of one setting that differ in the order of ranks alone and need different memory, by id.
std::vector<std::vector<Truth>> orders_apart(const SweepJob& job, const std::vector<Truth>& points) {
  std::map<std::string, std::vector<Truth>> of_plan;
  for (const Truth& point : points) {
    PointIndex at = job.space().point(point.id);
    at.plan.order = kDefaultRankOrder;
    of_plan[std::to_string(at.setting) + " " + to_point_text(at.plan, Phase::training)].push_back(point);
  }
  std::vector<std::vector<Truth>> apart;
  for (const auto& [plan, orders] : of_plan) {
    const auto [least, most] = std::ranges::minmax(orders, {}, &Truth::memory);
    if (least.memory < most.memory) apart.push_back(orders);
  }
  return apart;
}

/// Experts whose exchanges run in pairs where they leave a domain, which the order of ranks decides: plans that differ
/// in nothing else need different memory. The devices have just what the leanest order of such a plan needs, of one
/// whose first order needs more where there is one.
Study random_expert_study(std::uint64_t seed) {
  test::ScenarioGenerator random(seed);
  Study study = random_search_study(seed);
  study.model = test::llama_of_experts(9, 2, static_cast<std::int64_t>(random.below(2)));
  study.hardware.resize(1);
  System system = study.systems.front();
  system.device = test::round_device();
  system.fabric = {"nodes",
                   {test::dimension("inner", DimensionKind::switched, {4}, 100e9, 1e-6),
                    test::dimension("outer", DimensionKind::switched, {2}, random.between(5e9, 50e9), 5e-6)}};
  system.fabric.dimensions[0].scope = LinkScope::scale_up;
  system.fabric.dimensions[1].scope = LinkScope::scale_out;
  StackProfile::Communication& stack = system.stack.communication;
  stack.expert_overlap = random.between(0.3, 1);
  stack.overlapped_exchanges = OverlappedExchanges::between_domains;
  study.systems = {system, system};
  for (WorkloadSpec& workload : study.workloads) workload.precision = PolicyName::bf16;
  SpaceSpec& space = study.space;
  space[PlanKey::expert].values = {2, 4, 8};
  space[PlanKey::zero_stage].values = {1};
  space[PlanKey::schedule].values = codes_of({ScheduleKind::one_f_one_b, ScheduleKind::interleaved});
  for (int i = 0; i < 3; ++i)
    space[PlanKey::order].values.push_back(static_cast<std::int32_t>(random.below(kRankOrders)));
  std::vector<std::int32_t>& codes = space[PlanKey::order].values;
  std::ranges::sort(codes);
  codes.erase(std::unique(codes.begin(), codes.end()), codes.end());
  const SweepJob roomy(study);
  std::vector<std::vector<Truth>> apart = orders_apart(roomy, all_points(roomy));
  const auto is_lean_first = [](const std::vector<Truth>& orders) {
    return orders.front().memory == std::ranges::min(orders, {}, &Truth::memory).memory;
  };
  if (!std::ranges::all_of(apart, is_lean_first)) std::erase_if(apart, is_lean_first);
  for (System& one : study.systems) {
    if (apart.empty()) break;
    const Truth lean = std::ranges::min(apart[random.below(apart.size())], {}, &Truth::memory);
    one.device.hbm.capacity_per_stack = Bytes(lean.memory / static_cast<double>(one.device.hbm.stacks));
  }
  return study;
}

TEST(SearchProperty, TellsOrdersOfRanksApartWhereTheyTakeMemory) {
  std::uint64_t apart = 0;
  for (std::uint64_t seed = 1; seed <= test::seeds(20); ++seed) {
    SCOPED_TRACE(seed);
    const Study study = random_expert_study(seed);
    const SweepJob job(study);
    const std::vector<Truth> truth = all_points(job);
    const std::vector<Truth> best = ranked(job, truth);
    for (const std::uint64_t count : {1UL, 10UL, 1000UL}) {
      const SearchOutcome outcome = search(job, {count, false, {study.objectives.front()}, 0}, {});
      expect_same(outcome.best, best, count);
      expect_certified(job, outcome, truth);
    }
    const SearchOutcome front = search(job, {0, true, study.objectives, 0}, {});
    const std::vector<Truth> expected = front_of(job, truth);
    expect_same(front.best, expected, expected.size());
    expect_certified(job, front, truth);
    apart += orders_apart(job, truth).size();
    if (HasFailure()) return;
  }
  EXPECT_GT(apart, 100U);
}

TEST(SearchProperty, SettingsShareFloorsWhereAllThatTheseReadIsEqual) {
  Study study = random_search_study(1);
  study.workloads.resize(1);
  const System one = study.systems.front();
  System other = one, larger = one;
  other.stack.fused_loss = !one.stack.fused_loss;  // equal in all numbers
  larger.device.hbm.capacity_per_stack = 2 * one.device.hbm.capacity_per_stack;
  study.systems = {one, other, one, larger, other};
  const SettingGroups groups(study, FloorKind::steps);
  EXPECT_EQ(groups.count(), 2U);
  EXPECT_EQ(groups.of(2), groups.of(0));
  EXPECT_EQ(groups.of(3), groups.of(0));
  EXPECT_EQ(groups.of(4), groups.of(1));
  EXPECT_NE(groups.of(1), groups.of(0));
}

TEST(SearchProperty, TheSameForAnyNumberOfThreads) {
  for (std::uint64_t seed = 1; seed <= test::seeds(6); ++seed) {
    SCOPED_TRACE(seed);
    const Study study = random_search_study(seed);
    const SweepJob job(study);
    for (const SearchGoal& goal :
         {SearchGoal{10, false, {study.objectives.front()}, 0}, SearchGoal{0, true, study.objectives, 0},
          SearchGoal{3, false, {study.objectives.front()}, 0.05}}) {
      const SearchOutcome serial = search(job, goal, {});
      for (const int threads : {2, 5}) {
        SearchOptions options;
        options.threads = threads;
        expect_same_outcome(serial, search(job, goal, options));
      }
    }
    if (HasFailure()) return;
  }
}

TEST(SearchProperty, KeepsWhatASweepWouldPredict) {
  for (std::uint64_t seed = 1; seed <= test::seeds(4); ++seed) {
    SCOPED_TRACE(seed);
    const Study study = random_search_study(seed);
    const SweepJob job(study);
    const SearchOutcome outcome = search(job, {10, false, {study.objectives.front()}, 0}, {});
    ASSERT_EQ(outcome.predictions.size(), outcome.visited.size());
    for (std::size_t i = 0; i < outcome.visited.size(); ++i) {
      const PointIndex point = job.space().point(outcome.visited[i]);
      const Setting setting = job.study().setting(point.setting);
      const Prediction out = Simulator(setting).run(point.plan);
      EXPECT_EQ(out.status, outcome.predictions[i].status);
      EXPECT_EQ(out.step_time, outcome.predictions[i].step_time);
      EXPECT_EQ(out.memory_peak, outcome.predictions[i].memory_peak);
      EXPECT_EQ(out.contended_share, outcome.predictions[i].contended_share);
    }
    if (HasFailure()) return;
  }
}

TEST(SearchProperty, WithinAShareIsWithinIt) {
  for (std::uint64_t seed = 1; seed <= test::seeds(10); ++seed) {
    SCOPED_TRACE(seed);
    const Study study = random_search_study(seed);
    const SweepJob job(study);
    const std::vector<Truth> truth = all_points(job), best = ranked(job, truth);
    if (best.size() < 10) continue;
    const SearchOutcome exact = search(job, {10, false, {study.objectives.front()}, 0}, {});
    const SearchOutcome outcome = search(job, {10, false, {study.objectives.front()}, 0.1}, {});
    EXPECT_LE(outcome.visited.size(), exact.visited.size());
    const double found = outcome.best.back().objective, true_one = best[9].value;
    EXPECT_LE(std::max(found / true_one, true_one / found), 1.1);
    expect_certified(job, outcome, truth);
  }
}

TEST(SearchProperty, StoppedItStillKnowsItsBound) {
  for (std::uint64_t seed = 1; seed <= test::seeds(10); ++seed) {
    SCOPED_TRACE(seed);
    const Study study = random_search_study(seed);
    const SweepJob job(study);
    const std::vector<Truth> truth = all_points(job);
    for (const int steps : {0, 10, 50, 300}) {
      int asked = 0;
      SearchOptions options;
      options.go_on = [&](const SearchProgress&) { return asked++ < steps; };
      const SearchOutcome outcome = search(job, {10, false, {study.objectives.front()}, 0}, options);
      EXPECT_EQ(outcome.info.complete, asked <= steps);
      expect_certified(job, outcome, truth);
    }
  }
}

/// Of one setting it shows results wherever it is stopped, if there are any.
TEST(SearchProperty, StoppedAnywhereItHasAnAnswerWhereThereIsOne) {
  int answered = 0;
  for (std::uint64_t seed = 1; seed <= test::seeds(10); ++seed) {
    SCOPED_TRACE(seed);
    Study study = random_search_study(seed);
    study.hardware.clear();
    study.systems.resize(1);
    study.workloads.resize(1);
    const SweepJob job(study);
    const std::vector<Truth> truth = all_points(job);
    for (const int steps : {0, 1, 3, 10, 50}) {
      int asked = 0;
      SearchOptions options;
      options.go_on = [&](const SearchProgress&) { return asked++ < steps; };
      const SearchOutcome outcome = search(job, {10, false, {study.objectives.front()}, 0}, options);
      expect_certified(job, outcome, truth);
      EXPECT_EQ(outcome.best.empty(), ranked(job, truth).empty());
      answered += outcome.best.empty() ? 0 : 1;
    }
  }
  EXPECT_GT(answered, 10);
}

}  // namespace
}  // namespace shardscape::sweep
