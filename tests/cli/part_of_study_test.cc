// Does every command say so where a file holds a part of its study only?
#include <algorithm>
#include <cmath>
#include <fstream>

#include "results_schema/reading/reader.h"
#include "tests/cli/program_under_test.h"
#include "tests/support/datasets_equal.h"
#include "tests/support/paths.h"
#include "tests/support/report_page.h"

namespace shardscape::cli {
namespace {

using nlohmann::json;

class PartOfStudyTest : public ProgramTest {
 protected:
  void SetUp() override {
    write("study.yaml",
          std::string(kSmallStudy) +
              "faults: {kind: soft_link, samples: 3, derate: {distribution: constant, value: 0.5}, "
              "seed: 1}\n");
    sweep("whole.h5");
    points_ = results::ResultReader(work() / "whole.h5").row_count();
  }
  Finished sweep(const std::string& output, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"sweep", "study.yaml", "-o", output});
    Finished finished = run(more);
    EXPECT_EQ(finished.code, 0) << finished.err;
    return finished;
  }
  json page(const std::string& file) {
    EXPECT_EQ(run({"report", file, "-o", "page.html", "--force"}).code, 0);
    return test::page_data(read_file(work() / "page.html"));
  }
  /// Every output on the file, by what it should say. `text`: nothing should.
  void expect_said(const std::string& file, const std::string& text) {
    const auto says = [&](const char* what, const std::string& output) {
      if (text.empty()) {
        EXPECT_FALSE(contains(output, "in the study,")) << what << ": " << output;
      } else {
        EXPECT_TRUE(contains(output, text)) << what << ": " << output;
      }
    };
    says("top", run({"top", file}).out);
    says("top --where", run({"top", file, "--where", "tp > 100"}).out);
    for (const char* format : {"json", "csv", "yaml"})
      says(format, run({"top", file, "--format", format}).err);
    says("verify", run({"verify", file}).out);
    says("report", run({"report", file, "-o", "page.html", "--force"}).out);
    says("page", page(file).at("selection").at("text"));
    says("export", run({"export", file, "--csv", "-"}).err);
    says("sensitivity", run({"sensitivity", file}).out);
    says("sensitivity --format csv", run({"sensitivity", file, "--by-link", "--format", "csv"}).err);
    const json sensitivity = json::parse(run({"sensitivity", file, "--format", "json"}).out);
    says("sensitivity --format json", sensitivity.at("points").at("text"));
  }
  std::uint64_t points_ = 0;
};

TEST_F(PartOfStudyTest, TheWholeStudySaysNothingOfIt) {
  EXPECT_FALSE(contains(sweep("again.h5").out, "in the study,"));
  expect_said("whole.h5", "");
  EXPECT_FALSE(page("whole.h5").at("axes").empty());
  EXPECT_FALSE(contains(sweep("more.h5", {"--limit", "1000000"}).out, "in the study,"));
  EXPECT_FALSE(contains(sweep("sample.h5", {"--sample", "1000000"}).out, "in the study,"));
}

// Columns that the study names, and those that every file has: as in the file with all of them. What needs another says
// which key leaves it out.
TEST_F(PartOfStudyTest, SomeColumns) {
  const std::string key = "store: {columns: [tensor_parallel, mfu, compute_s]}\n";
  write("some.yaml", std::string(kSmallStudy) + key);
  write("all.yaml", std::string(kSmallStudy));
  for (const char* name : {"some", "all"})
    ASSERT_EQ(run({"sweep", std::string(name) + ".yaml", "-o", std::string(name) + ".h5"}).code, 0);
  for (const char* part : {"1", "2"}) {
    const std::string output = std::string("part") + part + ".h5";
    ASSERT_EQ(run({"sweep", "some.yaml", "-o", output, "--shard", std::string(part) + "/2"}).code, 0);
  }
  ASSERT_EQ(run({"merge", "part1.h5", "part2.h5", "-o", "merged.h5"}).code, 0);
  std::string difference;
  EXPECT_TRUE(test::datasets_equal(work() / "some.h5", work() / "merged.h5", &difference)) << difference;
  const results::ResultReader some(work() / "some.h5"), all(work() / "all.h5");
  std::vector<std::string> names;
  for (const results::ColumnInfo& column : some.columns()) {
    names.push_back(column.name);
    const auto here = some.read(column.name), there = all.read(column.name);
    ASSERT_EQ(here.size(), there.size());
    for (std::size_t i = 0; i < here.size(); ++i) {
      const bool both_nan = std::isnan(here[i]) && std::isnan(there[i]);
      ASSERT_TRUE(both_nan || here[i] == there[i]) << column.name << ' ' << i;
    }
  }
  EXPECT_EQ(names, (std::vector<std::string>{"point_id", "status", "reason", "tensor_parallel", "step_time_s",
                                             "mfu", "memory_peak_bytes", "peak_stage", "compute_s"}));
  EXPECT_EQ(some.attributes().at("stored_columns"), "tensor_parallel mfu compute_s");
  EXPECT_EQ(all.attributes().count("stored_columns"), 0U);
  EXPECT_EQ(some.summary().top, all.summary().top);
  EXPECT_EQ(run({"verify", "some.h5"}).code, 0) << run({"verify", "some.h5"}).out;
  for (const char* command : {"top", "verify"}) EXPECT_EQ(run({command, "some.h5"}).code, 0) << command;
  EXPECT_EQ(run({"report", "some.h5", "-o", "some.html"}).code, 0)
      << run({"report", "some.h5", "-o", "x.html"}).err;
  EXPECT_EQ(run({"export", "some.h5", "--csv", "some.csv"}).code, 0);
  EXPECT_EQ(run({"diff", "some.h5", "merged.h5"}).code, 0);
  // Why nothing fits is told from what every file has.
  const Finished misses = run({"top", "some.h5", "--where", "status != ok"});
  EXPECT_EQ(misses.code, 0) << misses.err;
  const Finished refused = run({"top", "some.h5", "--by", "bubble_s"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(
      contains(refused.err, "--by: no column 'bubble_s' (store.columns of the study names what is there)"))
      << refused.err;
}

// Rows that the study names: every output says which they are, and counts are of all points.
TEST_F(PartOfStudyTest, SomeRows) {
  const std::string of = "of " + std::to_string(points_) + " in the study, ";
  const results::ResultReader whole(work() / "whole.h5");
  const std::pair<const char*, std::string> choices[] = {
      {"feasible", of + "the feasible ones"},
      {"top 7", of + "the 7 best by step_time_s"},
      {"pareto", of + "the Pareto front over step_time_s, memory_peak_bytes"}};
  for (const auto& [rows, text] : choices) {
    SCOPED_TRACE(rows);
    const Finished said = sweep("some.h5", {"--force", "--set", std::string("store.rows=") + rows});
    EXPECT_TRUE(contains(said.out, std::to_string(points_) + " points,")) << said.out;
    EXPECT_TRUE(contains(said.out, " rows: " + text.substr(of.size()) + ")")) << said.out;
    expect_said("some.h5", text);
    const results::ResultReader some(work() / "some.h5");
    EXPECT_EQ(some.point_count(), points_);
    EXPECT_LT(some.row_count(), points_);
    EXPECT_EQ(some.summary().statuses, whole.summary().statuses);
    const json data = page("some.h5");
    EXPECT_EQ(data.at("points"), points_);
    EXPECT_EQ(data.at("rows"), some.row_count());
    EXPECT_TRUE(data.at("axes").empty());
    EXPECT_EQ(run({"diff", "some.h5", "some.h5"}).code, 0);
    const Finished refused = run({"diff", "some.h5", "whole.h5"});
    EXPECT_EQ(refused.code, 2);
    EXPECT_TRUE(contains(refused.err, "store different rows: ")) << refused.err;
    // The best of the rows are the best of all.
    const auto best_row = [&](const char* file) {
      const std::string table = run({"top", file, "-n", "1", "--format", "csv"}).out;
      return table.substr(0, table.find('\n', table.find('\n') + 1));
    };
    EXPECT_EQ(best_row("some.h5"), best_row("whole.h5"));
  }
  const Finished shard = sweep("1.h5", {"--set", "store.rows=top 7", "--shard", "1/2"});
  expect_said("1.h5", of + "the 7 best by step_time_s of shard 1 of 2");
  sweep("2.h5", {"--set", "store.rows=feasible", "--shard", "2/2"});
  const Finished merged = run({"merge", "1.h5", "2.h5", "-o", "both.h5"});
  EXPECT_EQ(merged.code, 2);
  EXPECT_TRUE(contains(merged.err, "2.h5: stores other rows (feasible) than 1.h5 (top 7)")) << merged.err;
  EXPECT_FALSE(fs::exists(work() / "both.h5"));
}

// Where nothing fits there is no row, and the sweep says how to see why.
TEST_F(PartOfStudyTest, RowsOfAStudyWhereNothingFits) {
  write("none.yaml", std::string(kSmallStudy) + "constraints: ['tp > 100']\n");
  const Finished swept = run({"sweep", "none.yaml", "-o", "none.h5", "--set", "store.rows=feasible"});
  EXPECT_EQ(swept.code, 0) << swept.err;
  EXPECT_TRUE(contains(swept.out, "so that store.rows leaves no row")) << swept.out;
  EXPECT_EQ(results::ResultReader(work() / "none.h5").row_count(), 0U);
  for (const char* command : {"top", "verify"}) EXPECT_EQ(run({command, "none.h5"}).code, 0) << command;
  EXPECT_EQ(run({"report", "none.h5", "-o", "none.html"}).code, 0);
  EXPECT_EQ(run({"export", "none.h5", "--csv", "none.csv"}).code, 0);
}

// A search keeps what it has visited, whatever a sweep of the study would store.
TEST_F(PartOfStudyTest, ASearchKeepsWhatItVisits) {
  write("plain.yaml", kSmallStudy);
  for (const char* rows : {"all", "top 1"}) {
    const std::string output = std::string(rows) + ".h5";
    ASSERT_EQ(
        run({"search", "plain.yaml", "-n", "3", "-o", output, "--set", std::string("store.rows=") + rows})
            .code,
        0);
  }
  EXPECT_EQ(results::ResultReader(work() / "all.h5").point_ids(),
            results::ResultReader(work() / "top 1.h5").point_ids());
}

// Without bounds a search evaluates and keeps every point: its file is none of a sweep that stores some.
TEST_F(PartOfStudyTest, ASearchOfAllPointsIsNoSweepOfSomeRows) {
  write("plain.yaml", kSmallStudy);
  const auto with = [](std::vector<std::string> command) {
    command.insert(command.end(), {"plain.yaml", "-o", "all.h5", "--set", "store.rows=top 3", "--set",
                                   "objectives=[memory_peak_bytes]"});
    return command;
  };
  ASSERT_EQ(run(with({"search"})).code, 0);
  EXPECT_EQ(results::ResultReader(work() / "all.h5").row_count(), points_);
  const Finished refused = run(with({"sweep", "--resume"}));
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(contains(refused.err, "holds another study, range or choice of rows")) << refused.err;
}

TEST_F(PartOfStudyTest, APrefix) {
  const std::string text = "of " + std::to_string(points_) + " in the study, the first 200";
  EXPECT_TRUE(contains(sweep("out.h5", {"--limit", "200"}).out, "200 points (" + text + ")"));
  expect_said("out.h5", text);
  EXPECT_TRUE(page("out.h5").at("axes").empty());
  EXPECT_TRUE(contains(run({"verify", "out.h5"}).out, "200 points (" + text + "), "));
  run({"sweep", "study.yaml", "-o", "one.h5", "--limit", "1"});
  EXPECT_TRUE(contains(run({"verify", "one.h5"}).out, "one.h5: 1 point ("));
  EXPECT_FALSE(contains(run({"report", "out.h5", "-o", "page.html", "--force"}).out, "200 of 200"));
  const auto attributes = results::ResultReader(work() / "out.h5").attributes();
  EXPECT_EQ(attributes.at("study_points"), std::to_string(points_));
  EXPECT_EQ(attributes.at("selection"), "first");
}

TEST_F(PartOfStudyTest, AShardAndShardsPutTogether) {
  const std::string of = "of " + std::to_string(points_) + " in the study, ";
  for (const char* part : {"1", "2", "3"}) {
    const std::string said = sweep(std::string(part) + ".h5", {"--shard", std::string(part) + "/3"}).out;
    EXPECT_TRUE(contains(said, of + "shard " + part + " of 3")) << said;
  }
  expect_said("2.h5", of + "shard 2 of 3");
  EXPECT_TRUE(page("2.h5").at("axes").empty());
  EXPECT_TRUE(contains(run({"merge", "1.h5", "2.h5", "-o", "two.h5"}).out, of + "shards 1 to 2 of 3"));
  expect_said("two.h5", of + "shards 1 to 2 of 3");
  ASSERT_EQ(run({"merge", "two.h5", "3.h5", "-o", "three.h5"}).code, 0);
  expect_said("three.h5", "");
  sweep("both.h5", {"--limit", "200", "--shard", "2/2"});
  expect_said("both.h5", of + "shard 2 of 2 of the first 200");
}

TEST_F(PartOfStudyTest, ASampleShowsWhatAxesAreWorth) {
  const std::string text = "of " + std::to_string(points_) + " in the study, a sample of 120";
  const std::string said = sweep("out.h5", {"--sample", "120"}).out;
  EXPECT_TRUE(contains(said, "120 points (" + text + ")")) << said;
  EXPECT_TRUE(contains(said, "the best plan may be another")) << said;
  expect_said("out.h5", text);
  const json data = page("out.h5");
  EXPECT_EQ(data.at("selection").at("kind"), "sample");
  // Every value of every axis is met, in some degree as often as it occurs.
  const json whole = page("whole.h5");
  EXPECT_EQ(data.at("axes").size(), whole.at("axes").size());
  for (const json& axis : whole.at("axes")) {
    for (const json& sampled : data.at("axes")) {
      if (axis.at("column") != sampled.at("column")) continue;
      for (const json& value : sampled.at("values")) {
        const auto same = std::ranges::find_if(
            axis.at("values"), [&](const json& v) { return v.at("value") == value.at("value"); });
        ASSERT_NE(same, axis.at("values").end());
        const double share = same->at("points").get<double>() / static_cast<double>(points_);
        // The standard deviation of a sample without strata.
        const double deviation = std::sqrt(120 * share * (1 - share));
        EXPECT_NEAR(value.at("points").get<double>(), 120 * share, 4 * deviation + 1) << axis.at("column");
      }
    }
  }
}

TEST_F(PartOfStudyTest, ASampleIsTheSameHoweverItIsRunAndItsRowsAreThoseOfTheStudy) {
  sweep("one.h5", {"--sample", "130", "--sample-seed", "4", "--threads", "1"});
  sweep("two.h5", {"--sample", "130", "--sample-seed", "4", "--threads", "2"});
  std::string difference;
  EXPECT_TRUE(test::datasets_equal(work() / "one.h5", work() / "two.h5", &difference)) << difference;
  const results::ResultReader sample(work() / "one.h5"), whole(work() / "whole.h5");
  const auto ids = sample.point_ids();
  const auto peak = sample.read("memory_peak_bytes"), all = whole.read("memory_peak_bytes");
  ASSERT_EQ(ids.size(), 130U);
  for (std::size_t row = 0; row < ids.size(); ++row) {
    if (!std::isnan(all[ids[row]])) {
      EXPECT_EQ(peak[row], all[ids[row]]);
    }
  }
  sweep("0.h5", {"--sample", "130", "--sample-seed", "5"});
  EXPECT_NE(results::ResultReader(work() / "0.h5").point_ids(), ids);
  // Shards of a sample are parts of it.
  sweep("a.h5", {"--sample", "130", "--sample-seed", "4", "--shard", "1/2"});
  sweep("b.h5", {"--sample", "130", "--sample-seed", "4", "--shard", "2/2"});
  ASSERT_EQ(run({"merge", "a.h5", "b.h5", "-o", "merged.h5"}).code, 0);
  EXPECT_TRUE(test::datasets_equal(work() / "one.h5", work() / "merged.h5", &difference)) << difference;
}

TEST_F(PartOfStudyTest, OtherChoicesOfAsManyPointsAreNotTheSameSweep) {
  sweep("first.h5", {"--limit", "120"});
  const auto refused = [&](std::vector<std::string> words, const std::string& reason) {
    const Finished finished = run(words);
    EXPECT_EQ(finished.code, 2) << reason;
    EXPECT_TRUE(contains(finished.err, reason)) << finished.err;
  };
  refused({"sweep", "study.yaml", "-o", "first.h5", "--sample", "120", "--resume"},
          "another study, range or choice of rows");
  EXPECT_EQ(run({"sweep", "study.yaml", "-o", "first.h5", "--limit", "120", "--resume"}).code, 0);
  sweep("a.h5", {"--sample", "200", "--shard", "1/2"});
  sweep("b.h5", {"--limit", "200", "--shard", "2/2"});
  refused({"merge", "a.h5", "b.h5", "-o", "all.h5"}, "the first 200 points");
  refused({"sweep", "study.yaml", "-o", "x.h5", "--sample", "10", "--limit", "10"}, "--sample");
  refused({"sweep", "study.yaml", "-o", "x.h5", "--sample", "0"}, "--sample");
  refused({"sweep", "study.yaml", "-o", "x.h5", "--sample-seed", "3"}, "--sample");
}

TEST_F(PartOfStudyTest, FilesOfEarlierSchemasAreRefusedByAllCommands) {
  std::ifstream in(fs::path(test::source_dir()) / "tests/fuzz/corpus/result/finished_version_2.bin",
                   std::ios::binary);
  in.ignore(1);  // the fuzzers'
  std::ofstream(work() / "old.h5", std::ios::binary) << in.rdbuf();
  const std::vector<std::vector<std::string>> commands = {{"top", "old.h5"},
                                                          {"export", "old.h5", "--csv", "-"},
                                                          {"sensitivity", "old.h5"},
                                                          {"report", "old.h5", "-o", "old.html"},
                                                          {"verify", "old.h5"},
                                                          {"diff", "old.h5", "whole.h5"},
                                                          {"merge", "old.h5", "-o", "merged.h5"}};
  for (const auto& command : commands) {
    const Finished refused = run(command);
    EXPECT_NE(refused.code, 0) << command.front();
    for (const char* part : {"schema version 2", "version 4", "make the sweep again", "the release"})
      EXPECT_TRUE(contains(refused.err, part)) << command.front() << ": " << refused.err;
  }
}

TEST_F(PartOfStudyTest, WhatWasNotComputedIsEmptyInEveryFormat) {
  sweep("odd.h5", {"--set", "workload.global_batch=12"});  // not a multiple of eight replicas
  const json rows = json::parse(run({"top", "odd.h5", "--where", "status == indivisible", "-n", "1", "--by",
                                     "point_id", "--format", "json"})
                                    .out);
  EXPECT_TRUE(rows.at(0).at("peak_stage").is_null());
  EXPECT_EQ(rows.at(0).at("fault_samples"), 0);
}

}  // namespace
}  // namespace shardscape::cli
