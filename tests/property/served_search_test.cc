// Does a search among servers of a simulated load find what a look at every point finds, to the bit?
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "engine/simulate.h"
#include "sweep/search/served_search.h"
#include "tests/support/seeds.h"
#include "tests/unit/study/study_text.h"

namespace shardscape::sweep {
namespace {

std::string study_of(std::mt19937_64& random, const std::string& objective) {
  const auto pick = [&](auto... values) {
    const std::vector list{values...};
    return list[std::uniform_int_distribution<std::size_t>(0, list.size() - 1)(random)];
  };
  std::string text = std::string(kModel) + kSystem +
                     fmt::format(
                         "workload: {{phase: inference, prompt_tokens: [50, {}], output_tokens: {}, "
                         "request_rate: [{} /s, {} /s], "
                         "client: {{requests: 100}}}}\n"
                         "space: {{tensor_parallel: [1, 2, 4, 8], pipeline_parallel: [1, 2]}}\n"
                         "promises: {{ttft_p95: {} s}}\nconstraints: [\"pp <= {}\"]\nobjectives: [{}]\n",
                         pick("400", "{lognormal: {mean: 100, cv: 1}}"), pick("2", "30"), pick(5, 50),
                         pick(500, 5000), pick(0.01, 1.0, 100.0), pick(1, 2), objective);
  return replaced(text, "gpus: 16", std::string("gpus: ") + pick("8", "[4, 8, 16]"));
}

/// Every point that is a result, the best first.
std::vector<BestPoint> look_at_all(const SweepJob& job, const results::ColumnInfo& column) {
  std::vector<BestPoint> all;
  const auto place = static_cast<std::size_t>(&column - job.columns().columns().data());
  for (std::uint64_t id = 0; id < job.space().size(); ++id) {
    const PointIndex point = job.space().point(id);
    if (!job.admits(point.plan, job.workload(point.setting))) continue;
    const Setting setting = job.study().setting(point.setting);
    const Prediction p = job.judged(point.setting, point.plan, Simulator(setting).run(point.plan));
    if (p.status != Status::ok) continue;
    all.push_back(
        {job.columns().number(place, {id, point.plan, setting.workload, job.hardware(point.setting), p}),
         id});
  }
  std::ranges::sort(
      all, [&](const BestPoint& a, const BestPoint& b) { return ranks_before(a, b, column.better); });
  return all;
}

TEST(ServedSearch, IsALookAtEveryPoint) {
  std::uint64_t cut = 0;
  const std::vector<std::string> objectives = {
      "e2e_s", "ttft_p95_s", "tpot_p99_s", "itl_s", "goodput_requests_per_s_per_gpu", "requests_per_s"};
  for (std::uint64_t seed = 0; seed < test::seeds(18); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const std::string& objective = objectives[seed % objectives.size()];
    const Study study = good(study_of(random, objective));
    const SweepJob job(study);
    SearchGoal goal;
    goal.objectives = {objective};
    goal.count = 1 + seed % 4;
    ASSERT_EQ(why_unbounded(job, goal), "");
    std::vector<BestPoint> expected = look_at_all(job, *job.columns().find(objective));
    if (expected.size() > goal.count) expected.resize(goal.count);
    SearchOptions options;
    options.threads = seed % 2 == 0 ? 1 : 2;
    const SearchOutcome found = search(job, goal, options);
    ASSERT_EQ(found.best.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(found.best[i].point_id, expected[i].point_id);
      EXPECT_EQ(found.best[i].objective, expected[i].objective);
    }
    std::uint64_t points = 0;
    for (const std::uint64_t count : found.info.counts) points += count;
    EXPECT_EQ(points, job.space().size());
    cut += found.info.counts[static_cast<std::size_t>(results::Fate::bound)];
  }
  EXPECT_GE(cut, static_cast<std::uint64_t>(test::at_least(20))) << "floors cut something off";
}

// Wherever it is stopped, within a simulation, too, all points are accounted for, and what is left open can be no
// better than the bound says.
TEST(ServedSearch, StoppedAnywhereItSaysWhatIsOpen) {
  std::mt19937_64 random(3);
  const Study study = good(study_of(random, "e2e_s"));
  const SweepJob job(study);
  SearchGoal goal;
  goal.objectives = {"e2e_s"};
  const std::vector<BestPoint> all = look_at_all(job, *job.columns().find("e2e_s"));
  int stops = 0, within = 0;
  for (int most = 1; most < 100'000; ++most) {
    SearchOptions options;
    options.threads = 1 + stops % 2;  // of one thread the points of a round are looked at one after the other
    int asked = 0;
    options.go_on = [&](const SearchProgress&) { return ++asked <= most; };
    const SearchOutcome found = search(job, goal, options);
    std::uint64_t points = 0;
    for (const std::uint64_t count : found.info.counts) points += count;
    ASSERT_EQ(points, job.space().size()) << most;
    EXPECT_EQ(found.info.counts[static_cast<std::size_t>(results::Fate::visited)], found.visited.size());
    if (found.info.complete) break;
    EXPECT_EQ(asked, most + 1) << "once the answer is no it is not asked again";
    ++stops;
    const std::size_t visited = found.visited.size() + 1;
    within +=
        std::has_single_bit(visited) || found.visited.empty() ? 0 : 1;  // whole rounds are 1, 3, 7 ... points
    if (std::isnan(found.info.bound)) continue;
    for (const BestPoint& point : all) {
      const bool open = !std::ranges::binary_search(found.visited, point.point_id);
      EXPECT_TRUE(!open || point.objective * (1 + 1e-9) >= found.info.bound) << most;
    }
  }
  EXPECT_GE(stops, 5);
  EXPECT_GE(within, 1);
}

TEST(ServedSearch, SaysWhatHasNoFloors) {
  std::mt19937_64 random(1);
  const auto why = [](const Study& study, const std::string& objective, bool front = false) {
    const SweepJob job(study);
    SearchGoal goal;
    goal.objectives = {objective};
    goal.front = front;
    return why_unbounded(job, goal);
  };
  Study study = good(study_of(random, "e2e_s"));
  EXPECT_EQ(why(study, "e2e_s"), "");
  EXPECT_NE(why(study, "e2e_s", true), "");
  EXPECT_NE(why(study, "kv_use_peak"), "");
  for (WorkloadSpec& workload : study.workloads) workload.load->statistic = ClientStatistic::steady;
  EXPECT_NE(why(study, "goodput_requests_per_s_per_gpu"), "");
  EXPECT_EQ(why(study, "e2e_s"), "");
  EXPECT_NE(why(good(inference("")), "e2e_s").find("steady closed loop"), std::string::npos);
}

}  // namespace
}  // namespace shardscape::sweep
