// Does `compare` take studies, points and result files alike, and say in one table why one is faster?
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/program_under_test.h"

namespace shardscape::cli {
namespace {

using nlohmann::json;

class CompareTest : public ProgramTest {
 protected:
  void SetUp() override {
    write("a.yaml", kSmallStudy);
    std::string other = kSmallStudy;
    other.replace(other.find("dgx-a100"), 8, "dgx-h100");
    write("b.yaml", other);
    write("serve.yaml", kInferenceStudy);
  }
  Finished compare(std::vector<std::string> more) {
    more.insert(more.begin(), "compare");
    return run(more);
  }
  json compared(std::vector<std::string> more) {
    more.emplace_back("--json");
    const Finished finished = compare(std::move(more));
    EXPECT_EQ(finished.code, 0) << finished.err;
    return json::parse(finished.out);
  }
};

void expect_adds_up(const json& document) {
  double sum = 0, largest = 1e-9;
  for (const json& bar : document.at("waterfall")) {
    sum += bar.at("difference_s").get<double>();
    largest = std::max(largest, std::abs(bar.at("difference_s").get<double>()));
  }
  EXPECT_NEAR(sum, document.at("difference_s").get<double>(), 1e-9 * largest) << document.dump(2);
}

TEST_F(CompareTest, TwoPlansOfAStudy) {
  const std::vector<std::string> words = {"a.yaml", "--point", "tp=8,pp=1,dp=1,recompute=full,mbs=1",
                                          "--point", "tp=4,pp=2,dp=1,recompute=full,mbs=1"};
  const json document = compared(words);
  expect_adds_up(document);
  EXPECT_EQ(document.at("differs").at("tp").at("a"), "8");
  EXPECT_FALSE(document.at("differs").contains("recompute"));
  EXPECT_EQ(document.at("a").at("lighter_recompute").size(), 2U);
  const json predicted = json::parse(run({"simulate", "a.yaml", "--point", words[2], "--json"}).out);
  EXPECT_EQ(document.at("figures").at(0).at("a"), predicted.at("step_time_s"));
  const Finished text = compare(words);
  EXPECT_NE(text.out.find("\nfrom A to B\n"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("\nB is "), std::string::npos);
  EXPECT_NE(text.out.find("\nA recomputes (full): with none it "), std::string::npos) << text.out;

  // Shares differ by points, not by a percentage of themselves; the sentence has what speaks against it, too.
  const json& mfu = document.at("figures").at(2);
  ASSERT_EQ(mfu.at("figure"), "mfu");
  EXPECT_NE(text.out.find(fmt::format("{:+.1f} points", 100 * mfu.at("difference").get<double>())),
            std::string::npos)
      << text.out;
  const auto whole = document.at("difference_s").get<double>();
  json largest = {{"difference_s", 0.0}};
  for (const json& bar : document.at("waterfall")) {
    const auto seconds = bar.at("difference_s").get<double>();
    if (seconds * whole < 0 && std::abs(seconds) > std::abs(largest.at("difference_s").get<double>()))
      largest = bar;
  }
  ASSERT_GT(std::abs(largest.at("difference_s").get<double>()), 0.01 * std::abs(whole)) << document;
  EXPECT_NE(
      document.at("why").get<std::string>().find("; against it: " + largest.at("bar").get<std::string>()),
      std::string::npos)
      << document.at("why");
}

TEST_F(CompareTest, OneStudyOnTwoMachinesByName) {
  const std::vector<std::string> point = {"--point", "tp=8,pp=1,dp=1,recompute=full,mbs=1"};
  std::vector<std::string> named = {"a.yaml", "--cluster", "dgx-a100", "--cluster", "dgx-h100"};
  named.insert(named.end(), point.begin(), point.end());
  const json document = compared(named);
  EXPECT_EQ(document.at("waterfall"), compared({"a.yaml", "b.yaml", point[0], point[1]}).at("waterfall"));
  EXPECT_TRUE(contains(compare(named).out, "B  a.yaml on dgx-h100: ")) << compare(named).out;
  const auto refused = [&](const std::vector<std::string>& words, const std::string& why) {
    const Finished finished = compare(words);
    EXPECT_EQ(finished.code, 2);
    EXPECT_TRUE(contains(finished.err, why)) << finished.err;
  };
  refused({"a.yaml", "--cluster", "dgx-a100"}, "--cluster: give it twice, for A and for B");
  refused({"a.yaml", "--cluster", "dgx-a100", "--cluster", "dgx-h10"}, "dgx-h100");
  refused({"x.h5", "--cluster", "dgx-a100", "--cluster", "dgx-h100"}, "--cluster: changes studies");
}

TEST_F(CompareTest, OnePlanOnTwoMachinesAndTheBestOfEach) {
  const json one = compared({"a.yaml", "b.yaml", "--point", "tp=8,pp=1,dp=1,recompute=full,mbs=1"});
  expect_adds_up(one);
  EXPECT_EQ(one.at("a").at("point"), one.at("b").at("point"));
  EXPECT_NE(one.at("differs").at("device").at("a"), one.at("differs").at("device").at("b"));
  for (const json& bar : one.at("waterfall")) EXPECT_NE(bar.at("cause"), "work");
  const json best = compared({"a.yaml", "b.yaml"});
  expect_adds_up(best);
  ASSERT_EQ(run({"sweep", "a.yaml", "-o", "a.h5", "--confirm", "0", "--progress", "none"}).code, 0);
  ASSERT_EQ(run({"sweep", "b.yaml", "-o", "b.h5", "--confirm", "0", "--progress", "none"}).code, 0);
  const json rows = compared({"a.h5", "b.h5"});
  EXPECT_EQ(rows.at("figures"), best.at("figures"));
  EXPECT_EQ(rows.at("waterfall"), best.at("waterfall"));
  const json some = compared({"a.h5", "b.yaml", "--where", "tp == 4"});
  EXPECT_NE(some.at("a").at("point").get<std::string>().find("tp=4,"), std::string::npos);
  EXPECT_EQ(some.at("figures").at(0).at("b"), best.at("figures").at(0).at("b"));
  expect_adds_up(compared({"a.h5", "--point", "0", "--point", "tp=8,pp=1,dp=1,recompute=full"}));
}

TEST_F(CompareTest, Servers) {
  const json document = compared({"serve.yaml", "--point", "tp=8,dp=1", "--point", "tp=4,dp=2"});
  expect_adds_up(document);
  EXPECT_EQ(document.at("figures").at(0).at("figure"), "e2e_s");
}

TEST_F(CompareTest, WritesAPageThatNeedsNothingElse) {
  const std::vector<std::string> words = {"a.yaml",   "b.yaml",   "--point", "tp=8,pp=1,dp=1,recompute=full",
                                          "--report", "page.html"};
  ASSERT_EQ(compare(words).code, 0);
  const std::string page = read_file(work() / "page.html");
  EXPECT_NE(page.find("\"waterfall\""), std::string::npos);
  EXPECT_EQ(page.find("{{"), std::string::npos);
  EXPECT_EQ(page.find("src=\"http"), std::string::npos);
  EXPECT_EQ(compare(words).code, 2) << "it is there already";
}

TEST_F(CompareTest, WhatCannotBeComparedIsSaid) {
  ASSERT_EQ(run({"sweep", "a.yaml", "-o", "a.h5", "--confirm", "0", "--progress", "none"}).code, 0);
  const auto refused = [&](const std::vector<std::string>& words, const std::string& why, int code = 2) {
    const Finished finished = compare(words);
    EXPECT_EQ(finished.code, code) << finished.err;
    EXPECT_NE(finished.err.find(why), std::string::npos) << finished.err;
    EXPECT_EQ(finished.out, "");
  };
  refused({"a.yaml"}, "--point: give it twice");
  refused({"a.yaml", "--point", "tp=8"}, "--point: give it twice");
  refused({"a.yaml", "--point", "tp=8", "--point", "tp=8", "--point", "tp=8"}, "a third one is too many");
  refused({"a.yaml", "--point", "tp=8", "--point", "tp=x"}, "--point: tp");
  refused({"a.yaml", "serve.yaml", "--point", "tp=8"}, "is of training");
  refused({"a.yaml", "serve.yaml"}, "serve.yaml");
  refused({"a.h5", "a.yaml", "--set", "gpus=4"}, "--set: changes studies");
  refused({"a.yaml", "b.yaml", "--where", "tp == 4"}, "--where: chooses rows of result files");
  refused({"a.h5", "a.h5", "--where", "tp == 3"}, "no feasible row that --where leaves");
  refused({"a.h5", "a.h5", "--where", "tp =="}, "--where");
  refused({"a.h5", "--point", "99999999999", "--point", "0"}, "--point: a.h5 has ");
  refused({"a.h5", "--point", "99999999999999999999999", "--point", "0"}, "--point");
  refused({"a.yaml", "--point", "tp=8,pp=1,dp=1,mbs=7", "--point", "tp=8"}, "A: a.yaml: ");
  refused({"a.yaml", "absent.yaml", "--point", "tp=8"}, "absent.yaml");
  write("not.h5", "nothing");
  refused({"a.h5", "not.h5"}, "not.h5", 1);
}

// Each side has the error to expect of it and the command that launches it, as `simulate` has them; the commands work.
TEST_F(CompareTest, EachSideSaysItsErrorAndWhatLaunchesIt) {
  const auto launches = [&](const std::string& command) {
    const std::string rest = command.substr(std::string("shardscape ").size());
    return std::system(
        ("cd '" + work().string() + "' && '" + test::program() + "' " + rest + " > run.txt").c_str());
  };
  const std::vector<std::string> words = {"a.yaml",    "--point",  "tp=8,pp=1,dp=1,recompute=full,mbs=1",
                                          "--cluster", "dgx-a100", "--cluster",
                                          "dgx-h100",  "--set",    "workload.global_batch=64"};
  const json document = compared(words);
  for (const auto& [side, cluster] : {std::pair("a", "dgx-a100"), std::pair("b", "dgx-h100")}) {
    const Finished alone = run({"simulate", "a.yaml", "--point", words[2], "--set",
                                "workload.global_batch=64", "--set", std::string("cluster=") + cluster});
    const json point =
        json::parse(run({"simulate", "a.yaml", "--point", words[2], "--set", "workload.global_batch=64",
                         "--set", std::string("cluster=") + cluster, "--json"})
                        .out);
    for (const char* key : {"expected_error", "evidence", "evidence_reason", "memory_notes"})
      EXPECT_EQ(document.at(side).at(key), point.at(key)) << side << key;
    const auto line = document.at(side).at("launch").get<std::string>();
    EXPECT_TRUE(contains(alone.out, "launch    " + line + "\n")) << line << alone.out;
    EXPECT_EQ(launches(line), 0) << line;
    EXPECT_TRUE(contains(compare(words).out, "launch    " + line + "\n"));
  }
  EXPECT_TRUE(contains(compare(words).out, "\nerror     +-"));
  // The best of studies, and rows of files, are launched by their ids.
  ASSERT_EQ(run({"sweep", "b.yaml", "-o", "b.h5", "--confirm", "0", "--progress", "none"}).code, 0);
  const json best = compared({"a.yaml", "b.h5"});
  for (const char* side : {"a", "b"}) EXPECT_EQ(launches(best.at(side).at("launch")), 0) << best.at(side);
  EXPECT_TRUE(contains(best.at("b").at("launch"), "launch b.h5 --point ")) << best.at("b");
  // The error to expect of a row is that of its study, by the evidence of the presets at hand.
  const json row = compared({"b.h5", "--point", "0", "--point", "1"});
  for (const auto& [side, id] : {std::pair("a", "0"), std::pair("b", "1")}) {
    const json point = json::parse(run({"simulate", "b.h5", "--point", id, "--json"}).out);
    for (const char* key :
         {"expected_error", "expected_error_of", "evidence", "evidence_gap", "evidence_reason"})
      EXPECT_EQ(row.at(side).at(key), point.at(key)) << side << key;
    EXPECT_FALSE(contains(row.at(side).at("evidence_reason").get<std::string>(), "no preset folder")) << row;
  }
  EXPECT_TRUE(row.at("a").at("expected_error").is_number()) << row.at("a");
}

// Two rows of a file that differ in the machine alone: what differs is said.
TEST_F(CompareTest, NumbersOfAxesAreAmongWhatDiffers) {
  write("axes.yaml", std::string(kSmallStudy) + "hardware: {device.hbm.bandwidth: [2 TB/s, 4 TB/s]}\n");
  ASSERT_EQ(run({"sweep", "axes.yaml", "-o", "axes.h5", "--progress", "none"}).code, 0);
  const json rows =
      json::parse(run({"top", "axes.h5", "--per", "device.hbm.bandwidth", "--format", "json"}).out);
  ASSERT_EQ(rows.size(), 2U);
  const json document = compared(
      {"axes.h5", "--point", rows[0].at("point_id").dump(), "--point", rows[1].at("point_id").dump()});
  const json& differs = document.at("differs");
  ASSERT_TRUE(differs.contains("device.hbm.bandwidth")) << differs.dump(2);
  EXPECT_EQ(differs.at("device.hbm.bandwidth").at("a"), "2 TB/s");
  EXPECT_EQ(differs.at("device.hbm.bandwidth").at("b"), "4 TB/s");
}

// Nor are choices passed over, those of servers and of the pool that prefills.
TEST_F(CompareTest, ChoicesAreAmongWhatDiffers) {
  std::string pools = kInferenceStudy;
  pools.replace(pools.find("stack: nim"), 10, "stack: vllm");
  pools.insert(pools.find("  data_parallel"), "  prefill_gpus: [4]\n  prefill_tensor_parallel: [4]\n");
  write("a.yaml", pools + "hardware: {stack.serving.scheduler: [vllm]}\n");
  write("b.yaml", pools +
                      "hardware: {stack.serving.scheduler: [sglang], stack.serving.prefill_precision: "
                      "[fp8]}\nprefill_device: h200-sxm-141gb\n");
  const json differs = compared({"a.yaml", "b.yaml", "--point", "tp=4"}).at("differs");
  EXPECT_EQ(differs, (json{{"stack.serving.scheduler", {{"a", "vllm"}, {"b", "sglang"}}},
                           {"stack.serving.prefill_precision", {{"a", "alike"}, {"b", "fp8"}}},
                           {"prefill device", {{"a", "h100-sxm-80gb"}, {"b", "h200-sxm-141gb"}}}}))
      << differs.dump(2);
}

}  // namespace
}  // namespace shardscape::cli
