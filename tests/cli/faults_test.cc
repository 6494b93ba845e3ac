// Do fault studies run from the command line: samples, rankings, export, one draw alone?
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "results_schema/compare.h"
#include "results_schema/reader.h"
#include "tests/cli/program_under_test.h"

namespace shardscape::cli {
namespace {

using nlohmann::json;

class FaultsTest : public ProgramTest {
 protected:
  /// The ready study at a reduced size.
  std::vector<std::string> sweep(const std::string& output, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {
        "sweep", std::string(SHARDSCAPE_SOURCE_DIR) + "/sweep/studies/llama3.1-70b-64xa100-faults.yaml",
        "-o",    output,
        "--set", "space.zero_stage=1",
        "--set", "space.microbatch_size=1",
        "--set", "faults.samples=25"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::string write_study(const std::string& name, const std::string& faults) {
    write(name, std::string(kSmallStudy) + faults);
    return name;
  }
};

TEST_F(FaultsTest, ReadyStudyIsTheSameForOneAndTwoThreads) {
  ASSERT_EQ(run(sweep("one.h5", {"--threads", "1"})).code, 0);
  ASSERT_EQ(run(sweep("two.h5", {"--threads", "2"})).code, 0);
  std::string difference;
  EXPECT_TRUE(results::datasets_equal(work() / "one.h5", work() / "two.h5", &difference)) << difference;
  const results::ResultReader reader(work() / "one.h5");
  const auto status = reader.read("status"), samples = reader.read("fault_samples");
  const auto mean = reader.read("slowdown_mean"), max = reader.read("slowdown_max");
  std::uint64_t rows = 0;
  for (std::size_t i = 0; i < status.size(); ++i) {
    EXPECT_EQ(samples[i], status[i] == 0 ? 25 : 0);
    rows += static_cast<std::uint64_t>(samples[i]);
    if (status[i] != 0) continue;
    EXPECT_GE(mean[i], 0);
    EXPECT_LE(mean[i], max[i]);
  }
  EXPECT_EQ(rows, reader.sample_count());
  EXPECT_GT(rows, 1000U);
}

TEST_F(FaultsTest, SensitivityRanksAsTheSamplesSay) {
  ASSERT_EQ(run(sweep("a.h5")).code, 0);
  const Finished finished = run({"sensitivity", "a.h5", "--format", "json"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const json report = json::parse(finished.out);

  // Brute force from the tables.
  const results::ResultReader reader(work() / "a.h5");
  std::map<std::uint64_t, std::pair<double, int>> by_point;
  std::map<double, std::pair<double, int>> by_link;
  const auto points = reader.sample_point_ids();
  const auto link = reader.read_samples("link"), slowdown = reader.read_samples("slowdown");
  for (std::size_t i = 0; i < points.size(); ++i) {
    by_point[points[i]].first += slowdown[i], ++by_point[points[i]].second;
    by_link[link[i]].first += slowdown[i], ++by_link[link[i]].second;
  }
  const auto step = reader.read("step_time_s");
  double before = 0;
  ASSERT_EQ(report.at("by_plan").size(), by_point.size());
  for (const json& plan : report.at("by_plan")) {
    const auto id = plan.at("point_id").get<std::uint64_t>();
    const auto [sum, count] = by_point.at(id);
    const double expected = step[id] * (1 + sum / count);
    EXPECT_NEAR(plan.at("expected_s").get<double>() / expected, 1, 1e-12);
    EXPECT_GE(plan.at("expected_s").get<double>(), before);
    before = plan.at("expected_s").get<double>();
    // No other plan beats a starred one everywhere.
    for (const json& other : report.at("by_plan")) {
      const bool better = other.at("healthy_s") < plan.at("healthy_s") &&
                          other.at("slowdown_p95") < plan.at("slowdown_p95") &&
                          other.at("memory_peak_bytes") < plan.at("memory_peak_bytes");
      EXPECT_FALSE(better && plan.at("pareto").get<bool>());
    }
  }
  ASSERT_EQ(report.at("by_link").size(), by_link.size());
  double worst = 0;
  for (const auto& [id, sum] : by_link) worst = std::max(worst, sum.first / sum.second);
  EXPECT_NEAR(report.at("by_link")[0].at("slowdown_mean").get<double>(), worst, 1e-12);
  EXPECT_EQ(report.at("by_dimension").size(), 2U);
  const json& distribution = report.at("distribution");
  EXPECT_EQ(distribution.back().at("slowdown"), *std::ranges::max_element(slowdown));

  const Finished csv = run({"sensitivity", "a.h5", "--by-link", "--format", "csv"});
  EXPECT_EQ(std::ranges::count(csv.out, '\n'), static_cast<std::ptrdiff_t>(by_link.size()) + 1);
  EXPECT_TRUE(contains(run({"sensitivity", "a.h5"}).out, "plans by mean time under faults, 10 of"));
  EXPECT_EQ(run({"sensitivity", "a.h5", "--format", "csv"}).code, 2);
}

TEST_F(FaultsTest, ExportHoldsEveryRow) {
  ASSERT_EQ(run(sweep("a.h5")).code, 0);
  const results::ResultReader reader(work() / "a.h5");
  ASSERT_EQ(run({"export", "a.h5", "--csv", "samples.csv", "--table", "fault_samples"}).code, 0);
  ASSERT_EQ(run({"export", "a.h5", "--csv", "points.csv"}).code, 0);
  std::istringstream samples(read_file(work() / "samples.csv"));
  std::string line;
  std::getline(samples, line);
  EXPECT_EQ(line, "point_id,sample,fault,status,kind,link,device,derate,step_time_s,slowdown");
  const auto time = reader.read_samples("step_time_s");
  std::size_t row = 0;
  for (; std::getline(samples, line); ++row) {
    const std::string field = line.substr(0, line.rfind(','));
    ASSERT_EQ(std::stod(field.substr(field.rfind(',') + 1)), time[row]);
  }
  EXPECT_EQ(row, time.size());
  EXPECT_EQ(std::ranges::count(read_file(work() / "points.csv"), '\n'),
            static_cast<std::ptrdiff_t>(reader.row_count()) + 1);
}

TEST_F(FaultsTest, OneDrawAloneIsTheRowOfTheSweep) {
  write_study(
      "study.yaml",
      "faults: {kind: [soft_link, slow_device, hbm_derate, nic_down], samples: 8, derate: 0.5, seed: 3}\n");
  ASSERT_EQ(run({"sweep", "study.yaml", "-o", "a.h5"}).code, 0);
  const results::ResultReader reader(work() / "a.h5");
  const auto tp = reader.read("tensor_parallel"), pp = reader.read("pipeline_parallel");
  const auto zero = reader.read("zero_stage"), mbs = reader.read("microbatch_size");
  const auto recompute = reader.read("recompute"), schedule = reader.read("schedule");
  const auto points = reader.sample_point_ids();
  const auto time = reader.read_samples("step_time_s"), sample = reader.read_samples("sample");
  int compared = 0;
  for (std::size_t row = 0; row < points.size() && compared < 16; ++row) {
    const std::uint64_t id = points[row];
    const bool wanted =
        zero[id] == 1 && recompute[id] == 1 && schedule[id] == 1 && mbs[id] == 1 && pp[id] <= 2;
    if (!wanted) continue;
    const std::string point = "tp=" + std::to_string(static_cast<int>(tp[id])) +
                              ",pp=" + std::to_string(static_cast<int>(pp[id])) +
                              ",zero=1,recompute=selective,mbs=1,schedule=1f1b";
    const Finished finished = run({"simulate", "study.yaml", "--point", point, "--draw",
                                   std::to_string(static_cast<int>(sample[row])), "--json"});
    ASSERT_EQ(finished.code, 0) << finished.err;
    const json draw = json::parse(finished.out).at("draw");
    if (std::isnan(time[row])) {
      EXPECT_TRUE(draw.at("time_s").is_null());
    } else {
      EXPECT_EQ(draw.at("time_s").get<double>(), time[row]);
    }
    ++compared;
  }
  EXPECT_EQ(compared, 16);
}

TEST_F(FaultsTest, CutFabricsAreUnreachableAndTheSweepGoesOn) {
  // Eight GPUs under one switch: without it nobody reaches anybody.
  write_study("study.yaml", "faults: {kind: switch_down, placement: exhaustive}\n");
  const Finished finished = run({"sweep", "study.yaml", "-o", "a.h5", "--progress", "none"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const results::ResultReader reader(work() / "a.h5");
  const auto status = reader.read_samples("status");
  EXPECT_TRUE(std::ranges::count(status, 4.0) > 0);
  const auto share = reader.read("unreachable_share"), verdict = reader.read("status");
  EXPECT_TRUE(std::ranges::count(verdict, 0.0) > 0);
  EXPECT_GT(*std::ranges::max_element(share, {}, [](double s) { return std::isnan(s) ? -1 : s; }), 0);
  EXPECT_EQ(run({"sensitivity", "a.h5"}).code, 0);
}

TEST_F(FaultsTest, BadInputIsLocatedAndNothingIsWritten) {
  write_study("study.yaml", "faults: {kind: soft_link, derate: 2, placement: {dimension: nvlnk}}\n");
  const Finished finished = run({"sweep", "study.yaml", "-o", "a.h5"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_TRUE(contains(finished.err, "study.yaml:18:35: faults.derate: must be above 0 and at most 1"));
  EXPECT_TRUE(contains(finished.err, "faults.placement.dimension: the fabric has no dimension \"nvlnk\""));
  EXPECT_EQ(left_behind(), std::vector<std::string>{"study.yaml"});
}

TEST_F(FaultsTest, FaultCommandsNeedFaults) {
  write("study.yaml", kSmallStudy);
  ASSERT_EQ(run({"sweep", "study.yaml", "-o", "a.h5"}).code, 0);
  EXPECT_EQ(run({"sensitivity", "a.h5"}).code, 2);
  EXPECT_EQ(run({"export", "a.h5", "--csv", "b.csv", "--table", "fault_samples"}).code, 2);
  EXPECT_EQ(run({"simulate", "study.yaml", "--draw", "0"}).code, 2);
  EXPECT_EQ(run({"sweep", "study.yaml", "-o", "c.h5", "--set", "objectives=[slowdown_p95]"}).code, 2);
  write_study("faulty.yaml", "faults: {kind: hard_link, samples: 4}\n");
  EXPECT_EQ(run({"simulate", "faulty.yaml", "--draw", "4"}).code, 2);
  EXPECT_EQ(run({"simulate", "faulty.yaml", "--draw", "3"}).code, 0);
}

}  // namespace
}  // namespace shardscape::cli
