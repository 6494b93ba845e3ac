// Does `top` show the right rows, alike in every format?
#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "results_schema/reading/reader.h"
#include "tests/cli/program_under_test.h"

namespace shardscape::cli {
namespace {

using nlohmann::json;

class TopTest : public ProgramTest {
 protected:
  void SetUp() override {
    write("study.yaml", kSmallStudy);
    ASSERT_EQ(run({"sweep", "study.yaml", "-o", "out.h5"}).code, 0);
  }
  Finished top(std::vector<std::string> more) {
    more.insert(more.begin(), {"top", "out.h5"});
    return run(more);
  }
  json rows(std::vector<std::string> more) {
    more.insert(more.end(), {"--format", "json"});
    const Finished finished = top(more);
    EXPECT_EQ(finished.code, 0) << finished.err;
    return json::parse(finished.out);
  }
};

TEST_F(TopTest, DefaultIsTheTenBestFeasibleByTheFirstObjective) {
  const results::ResultReader reader(work() / "out.h5");
  const std::vector<double> status = reader.read("status"), time = reader.read("step_time_s");
  std::vector<std::pair<double, std::uint64_t>> expected;
  for (std::uint64_t row = 0; row < status.size(); ++row) {
    if (status[row] == 0) expected.emplace_back(time[row], row);
  }
  std::ranges::sort(expected);
  ASSERT_GT(expected.size(), 10U);
  const json best = rows({});
  ASSERT_EQ(best.size(), 10U);
  for (std::size_t i = 0; i < best.size(); ++i) {
    EXPECT_EQ(best[i].at("step_time_s"), expected[i].first);
    EXPECT_EQ(best[i].at("point_id"), expected[i].second);
    EXPECT_EQ(best[i].at("status"), "ok");
  }
}

TEST_F(TopTest, ColumnsThatAreBetterLargerRankFromTheTop) {
  const json best = rows({"--by", "mfu", "-n", "4"});
  ASSERT_EQ(best.size(), 4U);
  for (std::size_t i = 1; i < best.size(); ++i) EXPECT_GE(best[i - 1].at("mfu"), best[i].at("mfu"));
}

TEST_F(TopTest, WhereTakesLongAndShortNamesAndNamesOfCodes) {
  const json found =
      rows({"--where", "tp == 2 and pipeline_parallel > 1 and recompute == full", "-n", "1000"});
  const results::ResultReader reader(work() / "out.h5");
  const auto status = reader.read("status"), tensor = reader.read("tensor_parallel");
  const auto pipeline = reader.read("pipeline_parallel"), recompute = reader.read("recompute");
  std::size_t expected = 0;
  for (std::size_t row = 0; row < status.size(); ++row) {
    expected += status[row] == 0 && tensor[row] == 2 && pipeline[row] > 1 && recompute[row] == 2 ? 1 : 0;
  }
  EXPECT_GT(expected, 0U);
  EXPECT_EQ(found.size(), expected);

  const json rejected = rows({"--where", "status != ok", "--by", "point_id", "-n", "5"});
  ASSERT_FALSE(rejected.empty());
  for (const json& row : rejected) {
    EXPECT_NE(row.at("status"), "ok");
    EXPECT_TRUE(row.at("step_time_s").is_null());
  }
}

TEST_F(TopTest, ParetoFrontIsTheUndominatedSet) {
  const results::ResultReader reader(work() / "out.h5");
  const auto status = reader.read("status"), time = reader.read("step_time_s"),
             memory = reader.read("memory_peak_bytes");
  std::map<double, double> front;  // distinct objective values of undominated rows
  for (std::size_t row = 0; row < status.size(); ++row) {
    bool dominated = status[row] != 0;
    for (std::size_t other = 0; other < status.size() && !dominated; ++other) {
      const bool as_good = status[other] == 0 && time[other] <= time[row] && memory[other] <= memory[row];
      dominated = as_good && (time[other] < time[row] || memory[other] < memory[row]);
    }
    if (!dominated) front[time[row]] = memory[row];
  }
  const json found = rows({"--pareto", "step_time_s,memory_peak_bytes"});
  ASSERT_EQ(found.size(), front.size());
  auto expected = front.begin();
  for (const json& row : found) {
    EXPECT_EQ(row.at("step_time_s"), expected->first);
    EXPECT_EQ(row.at("memory_peak_bytes"), expected->second);
    ++expected;
  }
}

TEST_F(TopTest, PerGivesTheBestRowOfEachCombination) {
  const json all = rows({"-n", "100000"});
  std::map<std::pair<int, std::string>, json> expected;  // the first of each, as `all` has the best first
  for (const json& row : all) {
    expected.emplace(std::pair(row.at("tensor_parallel").get<int>(), row.at("recompute").get<std::string>()),
                     row);
  }
  const json found = rows({"--per", "tp,recompute"});
  ASSERT_EQ(found.size(), expected.size());
  int last = 0;
  for (const json& row : found) {
    EXPECT_EQ(row,
              expected.at({row.at("tensor_parallel").get<int>(), row.at("recompute").get<std::string>()}));
    EXPECT_GE(row.at("tensor_parallel").get<int>(), last);
    last = row.at("tensor_parallel").get<int>();
  }
  EXPECT_EQ(rows({"--per", "tp,recompute", "-n", "2"}).size(), 2U);
  const Finished bad = top({"--per", "tensor"});
  EXPECT_EQ(bad.code, 2);
  EXPECT_TRUE(contains(bad.err, "--per: no column 'tensor'")) << bad.err;
}

TEST_F(TopTest, CsvAndJsonHoldTheSameValues) {
  const json expected = rows({"-n", "3"});
  std::istringstream csv(top({"-n", "3", "--format", "csv"}).out);
  const auto fields = [](const std::string& line) {
    std::vector<std::string> parts;
    std::istringstream in(line);
    for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
    return parts;
  };
  std::string line;
  std::getline(csv, line);
  const std::vector<std::string> header = fields(line);
  std::size_t row = 0;
  for (; std::getline(csv, line); ++row) {
    const std::vector<std::string> values = fields(line);
    ASSERT_EQ(values.size(), header.size());
    for (std::size_t i = 0; i < header.size(); ++i) {
      const json& value = expected.at(row).at(header[i]);
      if (value.is_string()) {
        EXPECT_EQ(values[i], value.get<std::string>());
      } else if (value.is_null()) {
        EXPECT_EQ(values[i], "") << header[i];
      } else {
        EXPECT_EQ(std::stod(values[i]), value.get<double>()) << header[i];
      }
    }
  }
  EXPECT_EQ(row, 3U);
}

TEST_F(TopTest, TableAndYamlRead) {
  const Finished table = top({"-n", "2", "--breakdown"});
  EXPECT_EQ(table.code, 0);
  for (const char* part : {"small: best by step_time_s, 2 of", "point  pp", "step_time", "compute %",
                           "the same everywhere: cp 1"}) {
    EXPECT_TRUE(contains(table.out, part)) << part << " not in\n" << table.out;
  }
  const Finished yaml = top({"-n", "2", "--format", "yaml"});
  EXPECT_EQ(yaml.out.rfind("- point_id: ", 0), 0U) << yaml.out;
  EXPECT_TRUE(contains(yaml.out, "\n  recompute: \""));
}

// With the shares of time beside them, axes that all shown rows share leave the table.
TEST_F(TopTest, AWideTableHasNoColumnThatIsTheSameInItsRows) {
  const std::vector<std::string> alike = {"-n", "3", "--where", "tp == 8 and recompute == full"};
  const auto first_lines = [&](std::vector<std::string> words) {
    const Finished finished = top(std::move(words));
    const std::size_t at = finished.out.find("\npoint ");
    return std::pair(finished.out.substr(0, at),
                     finished.out.substr(at, finished.out.find('\n', at + 1) - at));
  };
  std::vector<std::string> wide = alike;
  wide.emplace_back("-v");
  const auto [said, heading] = first_lines(wide);
  const auto [plain_said, plain_heading] = first_lines(alike);
  EXPECT_TRUE(contains(plain_heading, " recompute  ")) << plain_heading;
  EXPECT_FALSE(contains(heading, " recompute  ") || contains(heading, " tp ")) << heading;
  EXPECT_TRUE(contains(said, "the same in these rows: tp 8, ")) << said;
  EXPECT_TRUE(contains(said, "recompute full")) << said;
  EXPECT_FALSE(contains(plain_said, "the same in these rows")) << plain_said;
}

TEST_F(TopTest, BadQuestionsAreAnsweredWithWhatWouldBeRight) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--by", "step_tim_s"}, "did you mean 'step_time_s'"},
      {{"--where", "tq == 2"}, "did you mean 'tp'"},
      {{"--where", "recompute == ful"}, "did you mean 'full'"},
      {{"--where", "tp == "}, "position 7"},
      {{"--pareto", "step_time_s,mfuu"}, "did you mean 'mfu'"},
      {{"--format", "jsn"}, "did you mean 'json'"},
      {{"-n", "0"}, "--count"},
  };
  for (const auto& [arguments, says] : cases) {
    const Finished finished = top(arguments);
    EXPECT_EQ(finished.code, 2) << finished.err;
    EXPECT_TRUE(contains(finished.err, says)) << says << " not in\n" << finished.err;
  }
  EXPECT_EQ(run({"top", "absent.h5"}).code, 1);
  write("noise.h5", "this is no HDF5 file");
  EXPECT_EQ(run({"top", "noise.h5"}).code, 1);
}

TEST_F(TopTest, NoMatchIsAnEmptyAnswer) {
  EXPECT_EQ(rows({"--where", "tp > 1000"}), json::array());
  EXPECT_EQ(top({"--where", "tp > 1000"}).code, 0);
}

TEST_F(ProgramTest, RowsWithoutATimeHaveNoExpectedError) {
  write("study.yaml", kSmallStudy);
  ASSERT_EQ(run({"sweep", "study.yaml", "-o", "out.h5", "--confirm", "0", "--progress", "none"}).code, 0);
  const std::string table = run({"top", "out.h5", "--where", "status == memory", "-n", "2"}).out;
  EXPECT_TRUE(contains(table, "no error is expected of these rows, as none of them has a time")) << table;
  EXPECT_FALSE(contains(table, "unknown")) << table;
}

// One column has the same names in every option, and conditions take quantities.
TEST_F(TopTest, ColumnsGoByAllOfTheirNames) {
  const json expected =
      rows({"--where", "step_time_s < 20 and memory_peak_bytes <= 6e10 and tensor_parallel == 2"});
  ASSERT_FALSE(expected.empty());
  for (const char* where : {"step_time < 20 s and memory <= 60 GB and tp == 2",
                            "step_time<20000ms and memory_peak<=60GB and space.tensor_parallel == 2"})
    EXPECT_EQ(rows({"--where", where}), expected) << where;
  EXPECT_EQ(rows({"--where", "mfu > 40 %"}), rows({"--where", "mfu > 0.4"}));
  for (const char* name : {"step_time", "step_time_s"}) EXPECT_EQ(rows({"--by", name}), rows({})) << name;
  EXPECT_EQ(rows({"--per", "tp,zero"}), rows({"--per", "space.tensor_parallel,zero_stage"}));
  EXPECT_EQ(rows({"--pareto", "step_time,memory"}), rows({"--pareto", "step_time_s,memory_peak_bytes"}));
  EXPECT_TRUE(contains(top({"--pareto", "step_time,memory"}).out,
                       "Pareto front over step_time_s, memory_peak_bytes"));
  const Finished bare = top({"--where", "activations < 70"});
  EXPECT_EQ(bare.code, 2);
  EXPECT_TRUE(contains(bare.err, "'activations' is in bytes; write the number with its unit, as 70 GB"))
      << bare.err;
  const Finished wrong = top({"--where", "memory < 70 s"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_TRUE(contains(wrong.err, "'memory' has the unit 'byte'")) << wrong.err;
}

TEST_F(TopTest, ColumnsAreChosen) {
  EXPECT_EQ(rows({"-n", "1", "--columns", "tp,step_time,MFU"}).front().size(), 3U);
  const std::string csv = top({"-n", "1", "--columns", "mfu,tp", "--format", "csv"}).out;
  EXPECT_TRUE(csv.starts_with("mfu,tensor_parallel\n")) << csv;
  const std::string table = top({"-n", "2", "--confirm", "0", "--columns", "tp,mfu"}).out;
  EXPECT_TRUE(contains(table, "point  tp     MFU\n")) << table;
  const std::string list = top({"--columns", "list"}).out;
  EXPECT_TRUE(contains(list, "tensor_parallel") && contains(list, "step_time_s")) << list;
  const Finished wrong = top({"--columns", "stepp_time"}), none = top({"--by", "qqqqqq"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_TRUE(contains(wrong.err, "--columns: no column 'stepp_time' (did you mean 'step_time'?)"))
      << wrong.err;
  EXPECT_FALSE(contains(wrong.err, "point_id")) << wrong.err;  // the list is printed where it is asked for
  EXPECT_TRUE(contains(none.err, "'--columns list' lists the names") && !contains(none.err, "point_id"))
      << none.err;
}

// What the table heads a column with is its name, too, and capitals do not count.
TEST_F(TopTest, HeadingsAreNames) {
  for (const auto& [heading, name] : std::vector<std::pair<std::string, std::string>>{
           {"TP == 2 and step time < 20 s", "tp == 2 and step_time_s < 20"},
           {"tokens/s/GPU > 400", "tokens_per_s_per_gpu > 400"},
           {"seq == 4096 and batch == 32", "sequence_length == 4096 and global_batch == 32"},
           {"Expected Error < 1000 %", "expected_error < 10"},
           {"memory / step time > 1 GB", "memory_peak_bytes / step_time_s > 1e9"}}) {
    const json expected = rows({"--where", name, "-n", "1000"});
    EXPECT_FALSE(expected.empty()) << name;
    EXPECT_EQ(rows({"--where", heading, "-n", "1000"}), expected) << heading;
  }
  const Finished wrong = top({"--where", "tokens/s/GPUs > 400"});
  EXPECT_EQ(wrong.code, 2) << wrong.out;
  for (const char* const spelling : {"Step_Time_S", "STEP TIME", "step.time"})
    EXPECT_EQ(rows({"--by", spelling, "-n", "9"}), rows({"--by", "step_time_s", "-n", "9"})) << spelling;
}

// An axis, its column and its path are one name in plans, constraints, spaces and objectives.
TEST_F(TopTest, OneNameForEverything) {
  const auto step = [&](const std::string& point) {
    const Finished finished = run({"simulate", "study.yaml", "--point", point, "--json"});
    EXPECT_EQ(finished.code, 0) << finished.err;
    return finished.out;
  };
  EXPECT_EQ(step("tensor_parallel=4,pipeline_parallel=2,zero_stage=0,microbatch_size=2"),
            step("tp=4,pp=2,zero=0,mbs=2"));
  EXPECT_TRUE(
      contains(run({"simulate", "study.yaml", "--point", "tp=4,tensor_parallel=4"}).err, "given twice"));
  const auto points = [&](const std::vector<std::string>& set) {
    std::vector<std::string> words = {"check", "study.yaml"};
    for (const std::string& one : set) words.insert(words.end(), {"--set", one});
    const Finished finished = run(words);
    EXPECT_EQ(finished.code, 0) << finished.err;
    return finished.out.substr(0, finished.out.find("a sweep takes"));
  };
  EXPECT_EQ(points({"space.tp=[4, 8]", "space.mbs=1"}),
            points({"space.tensor_parallel=[4, 8]", "space.microbatch_size=1"}));
  EXPECT_EQ(points({"space={tp: [4, 8], mbs: 1}"}),
            points({"space={tensor_parallel: [4, 8], microbatch_size: 1}"}));
  std::string text = kSmallStudy;
  text.replace(text.find("  tensor_parallel"), 17, "  tp");
  write("short.yaml", text);
  EXPECT_EQ(run({"search", "short.yaml", "--format", "csv", "--confirm", "0"}).out,
            run({"search", "study.yaml", "--format", "csv", "--confirm", "0"}).out);
  text.insert(text.find("  sequence_parallel"), "  tensor_parallel: [4]\n");
  write("twice.yaml", text);
  EXPECT_TRUE(contains(run({"check", "twice.yaml"}).err, "another name of space.tensor_parallel"));
  std::string rest = kSmallStudy;
  rest.resize(rest.find("objectives"));
  write("tail.yaml", rest + "constraints: [\"tensor_parallel * cp <= 2 and zero_stage < 3\"]\n" +
                         "objectives: [step_time, memory]\n");
  write("same.yaml", rest + "constraints: [\"tp * cp <= 2 and zero < 3\"]\n" +
                         "objectives: [step_time_s, memory_peak_bytes]\n");
  const Finished tail = run({"search", "tail.yaml", "--pareto", "step_time,memory", "--format", "csv"});
  EXPECT_EQ(tail.code, 0) << tail.err;
  EXPECT_EQ(tail.out,
            run({"search", "same.yaml", "--pareto", "step_time_s,memory_peak_bytes", "--format", "csv"}).out);
}

}  // namespace
}  // namespace shardscape::cli
