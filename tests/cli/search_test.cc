// Does `search` show what `sweep` and `top` show, and say what its answer is worth?
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "results_schema/reader.h"
#include "tests/cli/program_under_test.h"

namespace shardscape::cli {
namespace {

using nlohmann::json;

class SearchTest : public ProgramTest {
 protected:
  void SetUp() override { write("study.yaml", kSmallStudy); }
  Finished search(std::vector<std::string> more) {
    more.insert(more.begin(), {"search", "study.yaml", "--progress", "none"});
    return run(more);
  }
  json rows_of(const Finished& finished) {
    EXPECT_EQ(finished.code, 0) << finished.err;
    return json::parse(finished.out);
  }
  json top(std::vector<std::string> more) {
    more.insert(more.begin(), {"top", "all.h5"});
    more.insert(more.end(), {"--format", "json"});
    return rows_of(run(more));
  }
};

TEST_F(SearchTest, ShowsWhatSweepAndTopShow) {
  ASSERT_EQ(run({"sweep", "study.yaml", "-o", "all.h5"}).code, 0);
  EXPECT_EQ(rows_of(search({"--format", "json"})), top({}));
  EXPECT_EQ(rows_of(search({"-n", "3", "--format", "json"})), top({"-n", "3"}));
  const std::string front = "step_time_s,memory_peak_bytes";
  EXPECT_EQ(rows_of(search({"--pareto", front, "--format", "json"})), top({"--pareto", front}));
}

TEST_F(SearchTest, KeepsAFileOfWhatItVisited) {
  const Finished finished = search({"-n", "1", "-o", "found.h5"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_TRUE(contains(finished.out, "exact: no point that was not visited belongs here")) << finished.out;
  EXPECT_EQ(run({"verify", "found.h5"}).code, 0);
  const results::ResultReader reader(work() / "found.h5");
  EXPECT_TRUE(reader.complete());
  EXPECT_FALSE(reader.stands_for_study());
  EXPECT_EQ(reader.layout().selection.kind, results::SelectionKind::search);
  EXPECT_LT(reader.row_count(), reader.layout().selection.study_points);
  // Written again it is the same; nothing that is there is replaced without being asked to.
  EXPECT_EQ(search({"-n", "1", "-o", "found.h5"}).code, 2);
  EXPECT_EQ(search({"-n", "1", "-o", "found.h5", "--force", "--threads", "1"}).code, 0);
  EXPECT_EQ(run({"diff", "found.h5", "found.h5"}).code, 0);
  EXPECT_TRUE(contains(run({"top", "found.h5"}).out, "that a search visited"));
}

TEST_F(SearchTest, ABudgetLeavesTheBestFoundAndABound) {
  const Finished finished = search({"--budget", "1 points", "-n", "1"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_TRUE(contains(finished.out, "not decided")) << finished.out;
  EXPECT_TRUE(contains(finished.out, "stopped: no point that was not visited is better than"))
      << finished.out;
  const Finished certified = search({"--within", "5%"});
  EXPECT_TRUE(contains(certified.out, "certified: within 5.0 % of the best")) << certified.out;
}

TEST_F(SearchTest, UnderFaultsItRacesThePoints) {
  write("sick.yaml",
        std::string(kSmallStudy) +
            "faults: {kind: soft_link, samples: 60, derate: {distribution: uniform, min: 0.1, max: 0.9}}\n");
  const std::vector<std::string> by_expected = {"--set",
                                                "objectives=[expected_step_time_s, memory_peak_bytes]"};
  const auto with = [&](std::vector<std::string> command) {
    command.insert(command.end(), by_expected.begin(), by_expected.end());
    return run(command);
  };
  ASSERT_EQ(with({"sweep", "sick.yaml", "-o", "all.h5"}).code, 0);
  const Finished finished =
      with({"search", "sick.yaml", "--progress", "none", "-n", "5", "--format", "json"});
  EXPECT_EQ(rows_of(finished), top({"-n", "5"}));
  EXPECT_TRUE(contains(finished.err, "fault samples: ")) << finished.err;
  EXPECT_TRUE(contains(finished.err, "exact: no point that was not visited belongs here")) << finished.err;
  const std::string front = "expected_step_time_s,memory_peak_bytes";
  EXPECT_EQ(
      rows_of(with({"search", "sick.yaml", "--progress", "none", "--pareto", front, "--format", "json"})),
      top({"--pareto", front}));
  ASSERT_EQ(with({"search", "sick.yaml", "--progress", "none", "-n", "1", "-o", "found.h5"}).code, 0);
  EXPECT_EQ(run({"verify", "found.h5"}).code, 0);
}

TEST_F(SearchTest, WithoutBoundsItSweeps) {
  ASSERT_EQ(run({"sweep", "study.yaml", "-o", "all.h5"}).code, 0);
  const Finished finished =
      search({"--set", "objectives=[memory_peak_bytes]", "-n", "4", "-o", "found.h5", "--format", "json"});
  EXPECT_TRUE(contains(finished.err, "memory_peak_bytes has none: every point is evaluated, as sweep does"))
      << finished.err;
  EXPECT_EQ(rows_of(finished), top({"--by", "memory_peak_bytes", "-n", "4"}));
}

TEST_F(SearchTest, WithNothingFeasibleItSaysSo) {
  const Finished finished = search({"--set", "constraints=['tp > 64']", "-o", "none.h5"});
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_TRUE(contains(finished.out, "against a constraint")) << finished.out;
  EXPECT_EQ(run({"verify", "none.h5"}).code, 0);
}

}  // namespace
}  // namespace shardscape::cli
