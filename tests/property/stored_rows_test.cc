// Is a file that stores some of its rows the file of all of them, filtered, however it came about? The oracle is the
// definition of each choice, applied to the values of the full file by sorting and by comparing every pair.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "results_schema/reading/reader.h"
#include "results_schema/reading/verify.h"
#include "results_schema/segments/assemble.h"
#include "sweep/runner/run_sweep.h"
#include "tests/support/datasets_equal.h"
#include "tests/support/seeds.h"
#include "tests/unit/runner/sweep_fixture.h"

namespace shardscape::sweep {
namespace {

using results::ResultReader;
using results::RowChoice;
using results::SegmentStore;
using results::StoredRows;
namespace fs = std::filesystem;

/// How a file comes about: in one go, in runs that each end after a few blocks, or in shards.
struct Way {
  int threads = 1;
  int blocks_per_run = 1'000'000;
  std::uint64_t shards = 1;
  std::uint64_t rows_per_segment = 300;
};

void sweep_into(const SweepJob& job, const fs::path& output, const Way& way) {
  for (bool complete = false; !complete;) {
    std::atomic<std::uint64_t> calls = 0;
    std::atomic<bool> stop = false;
    int blocks = 0;
    SegmentStore store = SegmentStore::resume(results::parts_folder(output), job.manifest(example_run()));
    SweepOptions options;
    options.threads = way.threads;
    options.evaluator = fake_factory(calls);
    options.seal.rows = way.rows_per_segment;
    options.stop = &stop;
    options.observer = [&](const SweepProgress&) { stop = ++blocks >= way.blocks_per_run; };
    complete = run_sweep(job, store, options).complete;
    if (!complete) {  // the part there is has rows of the whole, and counts all of its points
      const ResultReader part(results::parts_folder(output));
      std::uint64_t points = 0;
      for (const results::CodeCount& status : part.summary().statuses) points += status.count;
      EXPECT_EQ(points, part.point_count());
      EXPECT_LE(part.row_count(), part.point_count());
    } else {
      results::assemble(std::move(store), output, example_run());
    }
  }
}

void make_file(const Study& study, const fs::path& output, const Way& way) {
  if (way.shards == 1) return sweep_into(SweepJob(study), output, way);
  std::vector<fs::path> files;
  for (std::uint64_t i = 1; i <= way.shards; ++i) {
    files.push_back(output);
    files.back() += "." + std::to_string(i);
    sweep_into(SweepJob(study, std::nullopt, {i, way.shards}), files.back(), way);
  }
  const auto parts = results::open_parts(files);
  ASSERT_EQ(results::merge_problems(parts), std::vector<std::string>());
  results::merge(parts, output, example_run());
}

/// A column that decides, smaller values being better; of feasible points.
using Costs = std::vector<std::vector<double>>;

/// Rows of the full file that the choice names, by the definition alone.
std::vector<std::size_t> chosen_rows(const ResultReader& full, const StoredRows& stored) {
  const auto status = full.read("status");
  std::vector<std::string> names = stored.front;
  if (stored.choice == RowChoice::top) names = full.objectives();
  Costs costs;
  for (const std::string& name : names) {
    costs.push_back(full.read(name));
    if (full.find(name)->better != results::Better::larger) continue;
    for (double& value : costs.back()) value = -value;
  }
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < status.size(); ++row) {
    const bool ranked =
        std::ranges::none_of(costs, [&](const std::vector<double>& cost) { return std::isnan(cost[row]); });
    if (status[row] == static_cast<double>(Status::ok) && ranked) rows.push_back(row);
  }
  if (stored.choice == RowChoice::top) {
    std::ranges::stable_sort(rows, {}, [&](std::size_t row) { return costs.front()[row]; });
    rows.resize(std::min<std::size_t>(rows.size(), stored.count));
    std::ranges::sort(rows);
  }
  if (stored.choice == RowChoice::pareto) {
    const auto beats = [&](std::size_t a, std::size_t b) {
      bool differs = false;
      for (const std::vector<double>& cost : costs) {
        if (cost[a] > cost[b]) return false;
        differs = differs || cost[a] < cost[b];
      }
      return differs || a < b;
    };
    std::vector<std::size_t> front;
    for (const std::size_t row : rows) {
      if (std::ranges::none_of(rows, [&](std::size_t other) { return beats(other, row); }))
        front.push_back(row);
    }
    rows = std::move(front);
  }
  return rows;
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// What verify says beside that breakdowns do not add up: the made-up evaluator gives none.
std::vector<std::string> problems_of(const fs::path& file) {
  std::vector<std::string> problems = results::verify(file).problems;
  std::erase_if(problems, [](const std::string& line) { return line.starts_with("the breakdown"); });
  return problems;
}

void expect_filtered(const fs::path& full_file, const fs::path& some_file, const StoredRows& stored) {
  const ResultReader full(full_file), some(some_file);
  const std::vector<std::size_t> rows = chosen_rows(full, stored);
  ASSERT_EQ(some.stored_rows(), stored);
  ASSERT_EQ(some.point_count(), full.row_count());
  ASSERT_EQ(some.columns(), full.columns());
  const auto all_ids = full.point_ids();
  std::vector<std::uint64_t> ids;
  for (const std::size_t row : rows) ids.push_back(all_ids[row]);
  ASSERT_EQ(some.point_ids(), ids);
  for (const results::ColumnInfo& column : full.columns()) {
    const auto there = full.read(column.name), here = some.read(column.name);
    for (std::size_t i = 0; i < rows.size(); ++i)
      ASSERT_TRUE(same(here[i], there[rows[i]])) << column.name << " of point " << ids[i];
  }
  const results::Summary expected = full.summary(), summary = some.summary();
  EXPECT_EQ(summary.statuses, expected.statuses);
  EXPECT_EQ(summary.reasons, expected.reasons);
  EXPECT_EQ(summary.top, expected.top);
  EXPECT_EQ(summary.pareto, expected.pareto);
  for (const results::ColumnInfo& column : full.samples().columns()) {
    const auto there = full.samples().read(column.name);
    const auto points = full.samples().point_ids();
    std::vector<double> kept;
    for (std::size_t i = 0; i < there.size(); ++i)
      if (std::ranges::binary_search(ids, points[i])) kept.push_back(there[i]);
    const auto here = some.samples().read(column.name);
    ASSERT_TRUE(std::ranges::equal(here, kept, same)) << column.name;
  }
  EXPECT_EQ(problems_of(some_file), std::vector<std::string>());
}

/// Every choice, in every way.
void expect_every_choice(Study study, const std::vector<std::string>& objectives,
                         const std::vector<StoredRows>& choices) {
  study.objectives = objectives;
  const ScratchFolder folder;
  make_file(study, folder / "full.h5", {});
  int number = 0;
  for (const StoredRows& stored : test::some_of(choices, 2)) {
    SCOPED_TRACE(to_string(stored) + " by " + objectives.front());
    study.stored_rows = stored;
    const fs::path first = folder / ("some" + std::to_string(++number) + ".h5");
    make_file(study, first, {});
    expect_filtered(folder / "full.h5", first, stored);
    int other = 0;
    const std::vector<Way> ways = {{2, 7, 2, 1000}, {3}, {2, 40}, {2, 1'000'000, 3}, {1, 1'000'000, 1, 1}};
    for (const Way& way : test::some_of(ways, 4)) {
      const fs::path again = folder / ("some" + std::to_string(number) + "-" + std::to_string(++other));
      make_file(study, again, way);
      std::string difference;
      EXPECT_TRUE(test::datasets_equal(first, again, &difference))
          << way.threads << " threads, " << way.shards << " shards: " << difference;
    }
  }
}

/// Two settings of some thousand points each.
Study small_study() {
  Study study = example_study();
  study.workloads.resize(1);
  return study;
}

StoredRows top(std::uint64_t count) { return {RowChoice::top, count, {}}; }
StoredRows front(std::vector<std::string> columns) { return {RowChoice::pareto, 0, std::move(columns)}; }
const StoredRows kFeasible{RowChoice::feasible, 0, {}};

TEST(StoredRows, AreThoseOfTheFullFile) {
  expect_every_choice(small_study(), {"step_time_s", "memory_peak_bytes"},
                      {kFeasible, top(1), top(100), top(1'000'000),
                       front({"step_time_s", "memory_peak_bytes"}), front({"memory_peak_bytes"})});
}

// Four values of memory, so that most of what is compared is equal and the ids decide.
TEST(StoredRows, TiesGoToTheSmallestId) {
  expect_every_choice(
      small_study(), {"memory_peak_bytes"},
      {top(3), top(777), front({"memory_peak_bytes"}), front({"memory_peak_bytes", "step_time_s"})});
}

// Some feasible points have no finite time under faults: those are not ranked.
TEST(StoredRows, TakeTheirFaultSamplesAlong) {
  Study study = small_study();
  for (System& system : study.systems) system.fabric.dimensions.front().kind = DimensionKind::ring;
  FaultStudy faults;
  faults.kinds = {{FaultKind::hard_link, 1}};
  faults.samples = 7;
  faults.seed = 11;
  study.faults = faults;
  expect_every_choice(study, {"slowdown_mean", "step_time_s"},
                      {kFeasible, top(40), front({"slowdown_mean", "step_time_s"})});
}

TEST(StoredRows, OfASweepWithoutAFeasiblePoint) {
  Study study = small_study();
  study.space[PlanKey::pipeline].values = {8};
  expect_every_choice(study, {"step_time_s"}, {kFeasible, top(10), front({"step_time_s"})});
}

TEST(StoredRows, OfASampleAndAPrefix) {
  Study study = small_study();
  const ScratchFolder folder;
  const auto make = [&](const std::string& name, std::optional<std::uint64_t> limit,
                        std::optional<Sample> sample) {
    sweep_into(SweepJob(study, limit, {}, sample), folder / name, {2});
  };
  make("prefix.h5", 1000, std::nullopt);
  make("sample.h5", std::nullopt, Sample{1000, 3});
  study.stored_rows = top(50);
  make("some-prefix.h5", 1000, std::nullopt);
  make("some-sample.h5", std::nullopt, Sample{1000, 3});
  expect_filtered(folder / "prefix.h5", folder / "some-prefix.h5", study.stored_rows);
  expect_filtered(folder / "sample.h5", folder / "some-sample.h5", study.stored_rows);
}

}  // namespace
}  // namespace shardscape::sweep
