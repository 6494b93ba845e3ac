// Is a plan that is tight, assumed about or not told apart from others said to be so, wherever it is named?
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/program_under_test.h"

namespace shardscape::cli {
namespace {

using nlohmann::json;

constexpr const char* kPlan = "tp=8,pp=1,dp=1,recompute=full,mbs=1";

class RemarksTest : public ProgramTest {
 protected:
  void SetUp() override { write("study.yaml", kSmallStudy); }
  json simulated(const std::vector<std::string>& more) {
    std::vector<std::string> words = {"simulate", "study.yaml", "--point", kPlan, "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const Finished finished = run(words);
    EXPECT_EQ(finished.code, 0) << finished.err;
    return json::parse(finished.out);
  }
  /// What sets the device's memory so that the plan takes this share of it.
  std::vector<std::string> filled(double share) {
    const json point = simulated({});
    const double capacity = point.at("memory_capacity_bytes"), peak = point.at("memory_peak_bytes");
    const double stacks = 5, each = peak / share / stacks;
    EXPECT_GT(capacity, peak);
    return {"--set",
            "hardware.device.hbm.capacity_per_stack=" + std::to_string(static_cast<long>(each)) + " B"};
  }
};

TEST_F(RemarksTest, PlansThatFillTheMemoryAreNamedEverywhere) {
  for (const double share : {0.94, 0.97}) {
    const std::vector<std::string> set = filled(share);
    const bool tight = share > 0.95;
    const json point = simulated(set);
    EXPECT_EQ(point.at("status"), "ok");
    EXPECT_NEAR(point.at("memory_peak_bytes").get<double>() / point.at("memory_capacity_bytes").get<double>(),
                share, 1e-3);
    EXPECT_EQ(point.at("memory_tight"), tight);
    const auto says = [&](std::vector<std::string> words, const std::string& part) {
      words.insert(words.end(), set.begin(), set.end());
      const Finished finished = run(words);
      EXPECT_EQ(finished.code, 0) << finished.err;
      EXPECT_EQ(contains(finished.out, part), tight) << finished.out;
    };
    says({"simulate", "study.yaml", "--point", kPlan},
         "tight: 97.0 % of a GPU's memory is in use, and above 95.0 % ");
    says({"launch", "study.yaml", "--point", kPlan}, "# tight: 97.0 % of a GPU's memory");
    std::vector<std::string> sweep = {"sweep",
                                      "study.yaml",
                                      "-o",
                                      "out.h5",
                                      "--force",
                                      "--progress",
                                      "none",
                                      "--confirm",
                                      "0",
                                      "--set",
                                      "constraints=[\"tp == 8\", \"recompute == full\", \"mbs == 1\"]"};
    sweep.insert(sweep.end(), set.begin(), set.end());
    ASSERT_EQ(run(sweep).code, 0);
    const Finished top = run({"top", "out.h5"});
    EXPECT_EQ(contains(top.out, "more than 95.0 % of a GPU's memory"), tight) << top.out;
    bool any = false;
    for (const json& row : json::parse(run({"top", "out.h5", "--format", "json"}).out))
      any |= row.at("memory_tight") == 1;
    EXPECT_EQ(any, tight);
    ASSERT_EQ(run({"report", "out.h5", "-o", "page.html", "--force"}).code, 0);
    EXPECT_EQ(contains(read_file(work() / "page.html"), "more than 95.0 % of a GPU's memory"), tight);
  }
}

TEST_F(RemarksTest, PlansWithinTheErrorOfTheFirstAreCounted) {
  const std::vector<std::string> sweep = {"sweep",      "study.yaml", "-o",        "out.h5",
                                          "--progress", "none",       "--confirm", "0"};
  EXPECT_TRUE(contains(run(sweep).out, "none is as near to the best as its expected error (+-2.0 %)"));
  std::string unlike = kSmallStudy;  // a machine that the stack's measurements are not of
  unlike.replace(unlike.find("dgx-a100"), 8, "dgx-h100");
  write("study.yaml", unlike);
  fs::remove(work() / "out.h5");
  ASSERT_EQ(run(sweep).code, 0);
  const json rows = json::parse(run({"top", "out.h5", "-n", "40", "--format", "json"}).out);
  const double best = rows.at(0).at("step_time_s"), error = rows.at(0).at("expected_error");
  std::size_t within = 0;
  for (const json& row : rows) {
    const bool near = row.at("step_time_s").get<double>() - best <= error * best;
    within += near ? 1 : 0;
    EXPECT_EQ(row.at("within_expected_error"), near ? 1 : 0);
  }
  ASSERT_GT(within, 1U);
  ASSERT_LT(within, rows.size());
  const Finished top = run({"top", "out.h5"});
  EXPECT_TRUE(contains(top.out, " are within the expected error (+-")) << top.out;
  EXPECT_TRUE(contains(top.out, ": the prediction does not tell these apart, measure them\n")) << top.out;
  ASSERT_EQ(run({"report", "out.h5", "-o", "page.html"}).code, 0);
  EXPECT_TRUE(contains(read_file(work() / "page.html"), "are within the expected error (+-"));
  // Of memory, and of fronts, there is no such error; nor are columns added to those that are asked for.
  EXPECT_FALSE(
      contains(run({"top", "out.h5", "--by", "memory_peak_bytes"}).out, "within the expected error"));
  EXPECT_FALSE(
      contains(run({"top", "out.h5", "--pareto", "step_time_s,memory_peak_bytes"}).out, "within the"));
  EXPECT_EQ(run({"top", "out.h5", "-n", "1", "--columns", "mfu", "--format", "csv"}).out.substr(0, 4),
            "mfu\n");
  EXPECT_EQ(run({"top", "out.h5", "--where", "tp > 999"}).code, 0);
}

TEST_F(RemarksTest, WhatAStackDecidesAboutFormatsIsSaid) {
  const std::string gradients = "gradients of weights are kept in fp32 and sent in fp32, as the stack has it";
  const Finished shown = run({"simulate", "study.yaml", "--point", kPlan});
  EXPECT_TRUE(contains(shown.out, "assumed   " + gradients)) << shown.out;
  EXPECT_FALSE(contains(shown.err, "gradients")) << shown.err;  // no warning: nothing is wrong
  EXPECT_TRUE(contains(simulated({}).at("assumptions").dump(), gradients));
  EXPECT_TRUE(contains(simulated({"--set", "stack.state.gradient_bytes=2"}).at("assumptions").dump(),
                       "kept in 16 bits and sent in fp32"));
  ASSERT_EQ(run({"sweep", "study.yaml", "-o", "out.h5", "--progress", "none"}).code, 0);
  EXPECT_TRUE(contains(run({"top", "out.h5"}).out, "assumed: " + gradients));
  ASSERT_EQ(run({"report", "out.h5", "-o", "page.html"}).code, 0);
  EXPECT_TRUE(contains(read_file(work() / "page.html"), gradients));
  write("serve.yaml", kInferenceStudy);
  const auto cache = [&](const std::vector<std::string>& set) {
    std::vector<std::string> words = {"simulate", "serve.yaml", "--json"};
    words.insert(words.end(), set.begin(), set.end());
    return json::parse(run(words).out).at("assumptions").dump();
  };
  EXPECT_FALSE(contains(cache({}), "cache"));
  EXPECT_TRUE(contains(cache({"--set", "workload.precision=fp8", "--set", "cluster=dgx-h100"}),
                       "the key-value cache is in bf16 beside products in fp8"));
  EXPECT_TRUE(contains(cache({"--set", "workload.precision=fp8", "--set", "cluster=dgx-h100", "--set",
                              "stack.serving.fp8_cache=true"}),
                       "the key-value cache is in fp8 beside products in fp8"));
}

// Of the same load TTFT differs where prompts are read beside decoding, and only there is it said: that of lock-step is
// smaller by a third, where decoding pauses for prompts by some milliseconds.
TEST_F(RemarksTest, ClientsInLockStepAreSaidToBe) {
  write("serve.yaml", kInferenceStudy);
  const std::string remark = "TTFT is that of clients in lock-step";
  const auto served = [&](const std::string& scheduler, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"simulate",
                                      "serve.yaml",
                                      "--json",
                                      "--point",
                                      "tp=1",
                                      "--set",
                                      "gpus=1",
                                      "--set",
                                      "workload.output_tokens=250",
                                      "--set",
                                      "workload.concurrency=16",
                                      "--set",
                                      "stack.serving.scheduler=" + scheduler};
    words.insert(words.end(), more.begin(), more.end());
    return json::parse(run(words).out);
  };
  const std::vector<std::string> client = {"--set", "workload.client={requests: 2000, statistic: steady}"};
  for (const auto& [scheduler, beside] :
       {std::pair("chunked", true), std::pair("vllm", true), std::pair("trtllm", true),
        std::pair("prefill_priority", false), std::pair("sglang", false)}) {
    const json steady = served(scheduler, {}), live = served(scheduler, client);
    EXPECT_EQ(contains(steady.at("assumptions").dump(), remark), beside) << scheduler;
    EXPECT_EQ(steady.at("ttft_s").get<double>() < 0.75 * live.at("ttft_s").get<double>(), beside)
        << scheduler;
    EXPECT_FALSE(contains(live.at("assumptions").dump(), remark)) << scheduler;
    const json alone = served(scheduler, {"--set", "workload.concurrency=1"});
    EXPECT_FALSE(contains(alone.at("assumptions").dump(), remark)) << scheduler;
    const json apart = served(scheduler, {"--set", "gpus=16", "--set", "space.tensor_parallel=1"});
    EXPECT_FALSE(contains(apart.at("assumptions").dump(), remark))
        << "one server for each client " << scheduler;
  }
  EXPECT_TRUE(
      contains(run({"simulate", "serve.yaml"}).out,
               "assumed   where clients share a server that reads prompts beside decoding, " + remark));
  ASSERT_EQ(run({"sweep", "serve.yaml", "-o", "out.h5", "--progress", "none"}).code, 0);
  EXPECT_TRUE(
      contains(run({"top", "out.h5"}).out,
               "assumed: where clients share a server that reads prompts beside decoding, " + remark));
  ASSERT_EQ(run({"report", "out.h5", "-o", "page.html"}).code, 0);
  EXPECT_TRUE(contains(read_file(work() / "page.html"), remark));
}

// Where little of the memory is left the format that decides it is named beside it, and no sooner.
TEST_F(RemarksTest, WhatDecidesAFullMemoryIsNamedBesideIt) {
  for (const double share : {0.89, 0.91, 0.97}) {
    std::vector<std::string> words = {"simulate", "study.yaml", "--point", kPlan};
    const std::vector<std::string> set = filled(share);
    words.insert(words.end(), set.begin(), set.end());
    const Finished shown = run(words);
    const bool full = share > 0.9;
    EXPECT_EQ(
        contains(shown.out, " of the memory in fp32, as the stack keeps them (stack.state.gradient_bytes)\n"),
        full)
        << shown.out;
    EXPECT_EQ(simulated(set).at("memory_notes").size(), full ? share > 0.95 ? 2U : 1U : 0U);
    words.front() = "launch";
    EXPECT_EQ(contains(run(words).out, "# gradients take "), full);
  }
  std::vector<std::string> halved = filled(0.97);
  halved.insert(halved.end(), {"--set", "stack.state.gradient_bytes=2", "--set", "model.layers=38"});
  const json point = simulated(halved);
  ASSERT_FALSE(point.at("memory_notes").empty());
  for (const json& note : point.at("memory_notes")) {
    EXPECT_TRUE(contains(note, "tight: ") || contains(note, " of the memory in 16 bits")) << note;
  }
}

// Causal attention is half of 4 s h FLOPs a token and layer beside the products with the weights, so that what is left
// of MFU tends to a half as the sequence length s grows; simulate and top say it where that is much.
TEST_F(RemarksTest, LongSequencesTellTheMfuOfACausalMask) {
  double before = 1;
  for (const char* length : {"1024", "65536", "1048576"}) {
    const std::vector<std::string> set = {"--set", std::string("workload.sequence_length=") + length, "--set",
                                          "workload.precision=bf16"};
    const json point = simulated(set);
    const double left = point.at("mfu_causal").get<double>() / point.at("mfu").get<double>();
    EXPECT_LT(left, before);
    EXPECT_GT(left, 0.5);
    before = left;
    std::vector<std::string> words = {"simulate", "study.yaml", "--point", kPlan};
    words.insert(words.end(), set.begin(), set.end());
    EXPECT_EQ(contains(run(words).out, " with the half that a causal mask leaves"), left < 0.9) << left;
    words = {"sweep", "study.yaml", "-o", "out.h5", "--force", "--progress", "none", "--confirm", "0"};
    words.insert(words.end(), set.begin(), set.end());
    ASSERT_EQ(run(words).code, 0);
    const std::string table = run({"top", "out.h5", "--confirm", "0"}).out;
    const bool rows = !contains(table, "0 of 0 feasible");
    const std::string line = "by the half that a causal mask leaves it is ";
    EXPECT_EQ(contains(table, line), rows && left < 0.9) << table;
    // Only beside an MFU.
    const auto with = [&](const char* option, const char* value) {
      return contains(run({"top", "out.h5", "--confirm", "0", option, value}).out, line);
    };
    EXPECT_EQ(with("--columns", "MFU"), rows && left < 0.9);
    EXPECT_FALSE(with("--columns", "step_time,memory"));
    EXPECT_FALSE(with("--where", "status != ok"));
  }
  EXPECT_LT(before, 0.55);
}

// The table does not say "none" of what is nearest and of what is known alike.
TEST_F(RemarksTest, SequencesBeyondThoseOfTheModelAreNamed) {
  const auto warned = [&](const std::string& workload) {
    write("long.yaml", "model: llama3.1-8b\ncluster: dgx-h100\ngpus: 8\nstack: " +
                           std::string(workload.starts_with("training") ? "megatron-core" : "vllm") +
                           "\nworkload: {precision: bf16, phase: " + workload +
                           "}\nspace: {tensor_parallel: [8], data_parallel: fill}\n");
    const Finished finished = run({"check", "long.yaml"});
    EXPECT_EQ(finished.code, 0) << finished.err;
    return finished.err.find("and model llama3.1-8b is published for 131072 (context)") != std::string::npos;
  };
  EXPECT_FALSE(warned("training, sequence_length: 131072, global_batch: 8"));
  EXPECT_TRUE(warned("training, sequence_length: 262144, global_batch: 8"));
  EXPECT_FALSE(warned("inference, prompt_tokens: 131000, output_tokens: 72, concurrency: 1"));
  EXPECT_TRUE(warned("inference, prompt_tokens: 131000, output_tokens: 73, concurrency: 1"));
  EXPECT_TRUE(warned(
      "inference, prompt_tokens: {mean: 100000, length_ratio: 0.5}, output_tokens: 73, request_rate: 1 /s"));
}

TEST_F(RemarksTest, NothingThatDiffersIsNoLackOfEvidence) {
  ASSERT_EQ(run({"sweep", "study.yaml", "-o", "out.h5", "--progress", "none", "--confirm", "0"}).code, 0);
  std::string shown;
  for (const char* where : {"zero == 0", "recompute == none", "tp <= 8"})
    shown += run({"top", "out.h5", "-n", "200", "--where", where, "--columns", "evidence,evidence_gap"}).out;
  EXPECT_TRUE(contains(shown, "measured  nothing")) << shown;
  EXPECT_FALSE(contains(shown, "measured  none")) << shown;
  const Finished rows =
      run({"top", "out.h5", "-n", "200", "--columns", "evidence,evidence_gap", "--format", "csv"});
  EXPECT_TRUE(contains(rows.out, "measured,nothing\n"))
      << rows.out;  // scripts, conditions and tables have one word
  const auto with = [&](const std::string& where) {
    const Finished top = run({"top", "out.h5", "-n", "200", "--where", where, "--format", "csv"});
    EXPECT_EQ(top.code, 0) << top.err;
    return top.out;
  };
  EXPECT_TRUE(contains(with("evidence_gap == nothing"), "measured,nothing"));
  EXPECT_FALSE(contains(with("evidence_gap != nothing"), "measured,nothing"));
  EXPECT_EQ(with("evidence_gap == none"), with("evidence_gap == nothing"));  // its name in earlier files
  EXPECT_EQ(with("evidence_gap != none"), with("evidence_gap != nothing"));
  EXPECT_EQ(run({"top", "out.h5", "--where", "evidence == nothing"}).code, 2);
}

}  // namespace
}  // namespace shardscape::cli
