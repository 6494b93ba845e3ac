// Does `check` know what searches for placements cost without doing them?
#include "sweep/runner/search_cost.h"

#include <gtest/gtest.h>

#include <numeric>

#include "sweep/runner/block_worker.h"
#include "tests/unit/runner/sweep_fixture.h"

namespace shardscape::sweep {
namespace {

/// The example with its placement plain, plain and optimised, or optimised.
Study placed_study(const std::vector<PlacementChoice>& choices) {
  Study study = example_study();
  HardwareAxis axis;
  axis.path = axis.column = "placement";
  for (const PlacementChoice choice : choices) {
    axis.labels.emplace_back(name_of(choice));
    axis.values.push_back(static_cast<double>(choice));
  }
  study.hardware.push_back(axis);
  std::vector<System> systems;
  for (const System& system : study.systems) systems.insert(systems.end(), choices.size(), system);
  study.systems = std::move(systems);
  return study;
}

/// Counts evaluations of plans in plain order, and of plans that were placed.
struct Counts {
  std::atomic<std::uint64_t> plain = 0, searched = 0;
  [[nodiscard]] EvaluatorFactory factory() {
    return [this](const Setting& setting, PlacementChoice choice) -> std::unique_ptr<Evaluator> {
      return std::make_unique<FakeEvaluator>(setting, choice == PlacementChoice::plain ? plain : searched);
    };
  }
};

std::vector<std::uint64_t> points_of(const SweepJob& job) {
  std::vector<std::uint64_t> points(job.space().size());
  std::iota(points.begin(), points.end(), 0);
  return points;
}

TEST(SearchCost, VerdictsAreCountedWithoutASearch) {
  const Study study = placed_study({PlacementChoice::plain, PlacementChoice::optimised});
  const SweepJob job(study);
  Counts counts;
  const EvaluatorFactory factory = on_plain_order(counts.factory());
  BlockWorker worker(job, job.layout(), factory);
  for (std::uint64_t block = 0; block < 4; ++block) worker.run(block);
  EXPECT_GT(counts.plain, 0);
  EXPECT_EQ(counts.searched, 0);
}

TEST(SearchCost, OnlyAFewFeasiblePointsAreSearched) {
  const Study study = placed_study({PlacementChoice::plain, PlacementChoice::optimised});
  const SweepJob job(study);
  EXPECT_DOUBLE_EQ(searched_share(study), 0.5);
  Counts counts;
  const SearchCost cost = measure_searches(job, points_of(job), counts.factory(), 5);
  EXPECT_EQ(cost.searches, 5);
  EXPECT_GT(cost.seconds, 0);
  EXPECT_EQ(counts.plain, 0);
  // Those with pp = 8 are refused for their memory before anything is searched: they cost an evaluation.
  EXPECT_GE(counts.searched, 5);
}

TEST(SearchCost, NothingIsMeasuredWhereNothingIsSearched) {
  const Study study = placed_study({PlacementChoice::plain});
  const SweepJob job(study);
  EXPECT_EQ(searched_share(study), 0);
  EXPECT_EQ(searched_share(example_study()), 0);
  Counts counts;
  const SearchCost cost = measure_searches(job, points_of(job), counts.factory());
  EXPECT_EQ(cost.searches + counts.plain + counts.searched, 0);
  EXPECT_EQ(cost.seconds, 0);
}

}  // namespace
}  // namespace shardscape::sweep
