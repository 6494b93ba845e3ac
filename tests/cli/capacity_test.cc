// Does a person with a rate and promises get the fewest GPUs in one command, and hear why where there are none?
#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/cli/program_under_test.h"

namespace shardscape::cli {
namespace {

using nlohmann::json;

constexpr const char* kServedStudy = R"(model: llama3.1-8b
cluster: dgx-h100
gpus: 16
stack: vllm
workload: {phase: inference, precision: bf16, prompt_tokens: 1000, output_tokens: 100, request_rate: 8 /s, client: {requests: 300}}
space: {tensor_parallel: [1, 2, 4, 8]}
promises: {ttft_p95: 1 s, tpot_p95: 25 ms}
)";

/// Whether the program has set what happens at SIGINT, which it does before it begins.
bool catches_interrupts(const Running& running) {
  const std::string status = read_file(fmt::format("/proc/{}/status", running.pid()));
  const std::size_t mask = status.find("SigCgt:");
  return running.ended() ||
         (mask != std::string::npos && (std::stoull(status.substr(mask + 7), nullptr, 16) & 2) != 0);
}

class CapacityTest : public ProgramTest {
 protected:
  void SetUp() override { write("study.yaml", kServedStudy); }
  Finished capacity(std::vector<std::string> more) {
    more.insert(more.begin(), {"capacity", "study.yaml", "--progress", "none"});
    return run(more);
  }
  json answers(std::vector<std::string> more) {
    more.emplace_back("--json");
    const Finished finished = capacity(more);
    EXPECT_EQ(finished.code, 0) << finished.err;
    return json::parse(finished.out).at("answers");
  }
};

TEST_F(CapacityTest, OverloadIsToldWithTheRateThatWouldHold) {
  const std::vector<std::string> overloaded = {"simulate", "study.yaml", "--point",
                                               "0",        "--set",      "workload.request_rate=10000 /s"};
  std::vector<std::string> as_json = overloaded;
  as_json.emplace_back("--json");
  const auto holds = json::parse(run(as_json).out).at("sustained_requests_per_s").get<double>();
  EXPECT_TRUE(contains(run(overloaded).out, fmt::format("; {:.4g} requests/s would hold, missed by", holds)))
      << run(overloaded).out;
}

TEST_F(CapacityTest, TheAnswerIsThatOfASweepOverNumbersOfGpus) {
  const json found = answers({"--rate", "8,40"});
  ASSERT_EQ(found.size(), 2U);
  ASSERT_EQ(run({"sweep", "study.yaml", "-o", "out.h5", "--set", "gpus=[1, 2, 4, 8, 16]", "--set",
                 "workload.request_rate=[8 /s, 40 /s]", "--confirm", "0"})
                .code,
            0);
  for (const json& answer : found) {
    const auto rate = answer.at("request_rate").get<double>();
    const Finished top = run({"top", "out.h5", "--where", "request_rate_per_s == " + std::to_string(rate),
                              "--by", "gpus", "-n", "1", "--format", "json"});
    ASSERT_EQ(top.code, 0) << top.err;
    // The sweep has powers of two alone, so that it may only need more.
    EXPECT_LE(answer.at("gpus"), json::parse(top.out).at(0).at("gpus")) << rate;
    EXPECT_LE(answer.at("ttft_p95_s"), 1.0);
    EXPECT_LE(answer.at("tpot_p95_s"), 0.025);
    EXPECT_TRUE(answer.at("promises_kept").get<bool>());
    EXPECT_TRUE(answer.at("certificate").at("exact").get<bool>());
  }
  EXPECT_LT(found.at(0).at("gpus"), found.at(1).at("gpus"));
  EXPECT_EQ(run({"verify", "out.h5"}).code, 0);
}

TEST_F(CapacityTest, TheAnswerCanBeLaunched) {
  const std::string out = capacity({}).out;
  const std::string mark = "launch    shardscape ";
  const std::size_t at = out.find(mark);
  ASSERT_NE(at, std::string::npos) << out;
  const std::string line = out.substr(at + mark.size(), out.find('\n', at) - at - mark.size());
  const std::string gpus = std::to_string(answers({}).at(0).at("gpus").get<int>());
  EXPECT_TRUE(contains(line, " --set gpus=" + gpus + " --")) << line;
  const std::string command =
      "cd '" + work().string() + "' && '" + test::program() + "' " + line + " > launched.txt 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0) << command << "\n" << read_file(work() / "launched.txt");
  const std::string launched = read_file(work() / "launched.txt");
  EXPECT_TRUE(contains(launched, "vllm serve"));
  EXPECT_FALSE(contains(launched, "note:") || contains(launched, "warning:")) << launched;
}

TEST_F(CapacityTest, TheAnswerSaysItsErrorAndWhatRunsIt) {
  const Finished text = capacity({"--rate", "8,40"});
  EXPECT_TRUE(contains(text.out, "\nerror     +-")) << text.out;
  EXPECT_TRUE(contains(text.out, "of the mean time between tokens; of TTFT and of percentiles it is unknown"))
      << text.out;
  for (const json& answer : answers({"--rate", "8,40"})) {
    const json point = json::parse(run({"simulate", "study.yaml", "--json", "--point", answer.at("plan"),
                                        "--set", "gpus=[1, 2, 3, 4, 5, 6, 7, 8, 16]"})
                                       .out);
    for (const char* key : {"expected_error", "expected_error_of", "evidence", "memory_tight"})
      EXPECT_EQ(answer.at(key), point.at(key)) << key;
    const auto line = answer.at("launch").get<std::string>();
    EXPECT_TRUE(contains(line, "workload.request_rate=")) << line;
    EXPECT_EQ(std::system(("cd '" + work().string() + "' && '" + test::program() + "' " +
                           line.substr(std::string("shardscape ").size()) + " > launched.txt")
                              .c_str()),
              0);
  }
  ASSERT_EQ(capacity({"--rate", "8", "--report", "page.html"}).code, 0);
  const std::string page = read_file(work() / "page.html");
  for (const char* part : {"\"model\":\"llama3.1-8b\"", "\"cluster\":\"dgx-h100 (h100-sxm-80gb)\"",
                           "\"launch\":\"shardscape launch study.yaml "})
    EXPECT_TRUE(contains(page, part)) << part;
}

TEST_F(CapacityTest, WhereNothingFitsItSaysWhatWouldHaveToChange) {
  const json answer = answers({"--set", "promises.ttft_p95=1 ms"}).at(0);
  EXPECT_TRUE(answer.at("gpus").is_null());
  EXPECT_EQ(answer.at("missed").at(0).at("bound"), "ttft_p95_s<=0.001");
  EXPECT_GT(answer.at("missed").at(0).at("least_by").get<double>(), 0);
  EXPECT_EQ(answer.at("certificate").at("plans").at("simulated"), 0) << "no prompt is read in a millisecond";
  const Finished text = capacity({"--set", "promises.ttft_p95=1 ms"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_TRUE(contains(text.out, "instead of ttft_p95 <= 1 ms")) << text.out;
}

TEST_F(CapacityTest, WritesAPageThatNeedsNothingElse) {
  const Finished finished = capacity({"--rate", "8", "--report", "page.html"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const std::string page = read_file(work() / "page.html");
  EXPECT_TRUE(contains(page, "\"ttft_p95_s\""));
  EXPECT_FALSE(contains(page, "{{"));
  EXPECT_FALSE(contains(page, "src=\"http"));
  EXPECT_EQ(capacity({"--report", "page.html"}).code, 2) << "it is there already";
}

// A simulation of a million requests takes longer than that.
TEST_F(CapacityTest, StopsWithinASimulationAndSaysWhatIsKnown) {
  const std::vector<std::string> large = {
      "--set", "gpus=[1]", "--set", "space.tensor_parallel=[1]", "--set", "workload.client.requests=1000000"};
  std::vector<std::string> words = large;
  words.insert(words.end(), {"--budget", "0.1s"});
  const json answer = answers(words).at(0);
  EXPECT_FALSE(answer.at("certificate").at("exact").get<bool>());
  EXPECT_EQ(answer.at("certificate").at("plans").at("simulated"), 0);
  EXPECT_TRUE(answer.at("gpus").is_null());
  const Finished text = capacity(words);
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_TRUE(contains(text.out, "stopped: nothing is known yet")) << text.out;
  EXPECT_EQ(capacity({"--budget", "20 points"}).code, 2);
  // Rates that were not begun are answers, too.
  words.insert(words.end(), {"--rate", "8,16,32"});
  EXPECT_EQ(answers(words).size(), 3U);

  words = {"capacity", "study.yaml", "--progress", "none", "--rate", "8,16,24,32,40,48,56,64"};
  words.insert(words.end(), large.begin(), large.end());
  Running running = start(words);
  while (!catches_interrupts(running)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  running.send(SIGINT);
  const Finished interrupted = running.wait();
  EXPECT_EQ(interrupted.code, 130) << interrupted.err;
  EXPECT_TRUE(contains(interrupted.out, "stopped:")) << interrupted.out;
}

// What the warning of too few requests proposes are words of the command line, and with them it is gone.
TEST_F(CapacityTest, TheWarningOfAShortRunCanBePasted) {
  const std::vector<std::string> few = {"--set", "workload.client.requests=20"};
  const std::string warning = capacity(few).err;
  const std::size_t at = warning.find("; add --set ");
  ASSERT_NE(at, std::string::npos) << warning;
  std::istringstream words(warning.substr(at + 6, warning.find('\n', at) - at - 6));
  std::vector<std::string> more(std::istream_iterator<std::string>(words), {});
  ASSERT_EQ(more.size(), 4U) << warning;
  const Finished longer = capacity(more);
  EXPECT_EQ(longer.code, 0) << longer.err;
  EXPECT_FALSE(contains(longer.err, "too few")) << longer.err;
}

TEST_F(CapacityTest, ARateTakesThePlaceOfAClosedLoop) {
  std::string closed = kServedStudy;
  closed.replace(closed.find("request_rate: 8 /s"), 18, "concurrency: 64");
  write("study.yaml", closed);
  EXPECT_TRUE(contains(capacity({}).err, "or --rate"));
  EXPECT_EQ(answers({"--rate", "8"}).at(0).at("request_rate"), 8.0);
}

TEST_F(CapacityTest, ALatencyOfServersThatFallBehindIsNotCounted) {
  const std::vector<std::string> few = {"--rate",      "500",   "--set",
                                        "gpus=[1, 2]", "--set", "space.tensor_parallel=[1, 2]"};
  const json answer = answers(few).at(0);
  EXPECT_TRUE(answer.at("gpus").is_null());
  ASSERT_EQ(answer.at("missed").size(), 1U) << answer.at("missed");
  EXPECT_EQ(answer.at("missed").at(0).at("bound"), "overloaded");
  const json& needs = answer.at("nearest").at("needs");
  ASSERT_EQ(needs.size(), 1U);
  EXPECT_TRUE(contains(needs.at(0).get<std::string>(), "instead of 500.000")) << needs;
  EXPECT_TRUE(contains(capacity(few).out, "more GPUs may do"));
}

TEST_F(CapacityTest, FiguresHaveTheirUnits) {
  const Finished text =
      capacity({"--set", "constraints=[goodput_requests_per_s_per_gpu >= 30 /min, attainment >= 90 %]"});
  EXPECT_FALSE(contains(text.out, " m/s")) << text.out;
  EXPECT_TRUE(contains(text.out, " %")) << text.out;
}

TEST_F(CapacityTest, RefusesWhatItDoesNotLookAt) {
  const Finished faults =
      capacity({"--set", "gpus=[8]", "--set", "faults={kind: soft_link, samples: 3, derate: 0.5}"});
  EXPECT_EQ(faults.code, 2);
  EXPECT_TRUE(contains(faults.err, "faults: have no effect here")) << faults.err;
  const Finished many = capacity({"--set", "gpus=1000000000"});
  EXPECT_EQ(many.code, 2);
  EXPECT_TRUE(contains(many.err, "gpus: all numbers up to it are tried")) << many.err;
}

TEST_F(CapacityTest, NeedsARateAndPromises) {
  write("study.yaml", std::string(kServedStudy).substr(0, std::string(kServedStudy).find("promises")));
  EXPECT_TRUE(contains(capacity({}).err, "promises: missing")) << capacity({}).err;
  write("study.yaml", std::string(kServedStudy));
  EXPECT_TRUE(contains(capacity({"--rate", "fast"}).err, "--rate")) << capacity({"--rate", "fast"}).err;
  EXPECT_EQ(capacity({"--rate", "fast"}).code, 2);
}

TEST_F(CapacityTest, TablesThatItReadsAreNeverReplaced) {
  const auto kept = [&](const std::string& table, const std::string& text, const std::string& load) {
    write(table, text);
    std::string study = kServedStudy;
    const std::size_t end = study.find(", client");
    const std::size_t begin = load.starts_with("trace") ? study.find("prompt_tokens") : end;
    write("study.yaml", study.replace(begin, end - begin, load));
    const Finished page = capacity({"--report", table, "--force"});
    EXPECT_EQ(page.code, 2) << page.err;
    EXPECT_TRUE(contains(page.err, "input")) << page.err;
    EXPECT_EQ(run({"sweep", "study.yaml", "-o", table, "--force", "--progress", "none"}).code, 2);
    EXPECT_EQ(read_file(work() / table), text);
  };
  kept("requests.csv", "arrival_s,prompt_tokens,output_tokens\n0,100,10\n1,100,10\n", "trace: requests.csv");
  kept("lengths.csv", "model,draft_tokens,acceptance_length\nm,1,1.5\n",
       ", speculation: {draft_tokens: 1, draft_model: llama3.2-1b, acceptance: {table: lengths.csv, model: "
       "m}}");
}

/// Servers of which most plans are cut off by floors, and the others fall behind or miss by more.
constexpr const char* kTight = R"(model: llama3.1-8b
cluster: dgx-h100
gpus: [8]
stack: vllm
workload: {phase: inference, precision: bf16, prompt_tokens: 1000, output_tokens: 100, request_rate: 4 /s,
  client: {requests: 200, warm_up: 0, statistic: run}}
space: {tensor_parallel: powers_of_two, pipeline_parallel: [1, 2], data_parallel: fill}
promises: {ttft: 26 ms}
objectives: [e2e_s]
)";

TEST_F(CapacityTest, TheNearestIsThatOfASweep) {
  write("study.yaml", kTight);
  for (const auto& [rate, ttft] : {std::pair(220, 26), std::pair(200, 24)}) {
    const std::string promise = fmt::format("promises={{ttft: {} ms}}", ttft);
    const json nearest = answers({"--rate", std::to_string(rate), "--set", promise}).at(0).at("nearest");
    ASSERT_EQ(run({"sweep", "study.yaml", "-o", "out.h5", "--force", "--progress", "none", "--confirm", "0",
                   "--set", promise, "--set", fmt::format("workload.request_rate=[{} /s]", rate)})
                  .code,
              0);
    const Finished top = run({"top", "out.h5", "--where", "status == missed and overloaded == 0", "--by",
                              "ttft_s", "-n", "1", "--format", "json"});
    ASSERT_EQ(top.code, 0) << top.err;
    const json best = json::parse(top.out).at(0);
    EXPECT_NEAR(nearest.at("missed_by").get<double>(), best.at("ttft_s").get<double>() * 1000 / ttft - 1,
                1e-9);
    EXPECT_TRUE(contains(nearest.at("plan").get<std::string>(),
                         fmt::format("dp={}", best.at("data_parallel").get<int>())));
  }
}

// What floors rule out misses by their bound at least, and needs as much at least: both are said to be floors.
TEST_F(CapacityTest, OneStepFewerByItsFloorsIsSaidToBe) {
  write("study.yaml", kTight);
  const std::vector<std::string> set = {
      "--rate", "4", "--set", "gpus=[1, 8]", "--set", "space={tensor_parallel: [1, 8], data_parallel: fill}"};
  const json answer = answers(set).at(0);
  ASSERT_EQ(answer.at("gpus"), 8);
  ASSERT_FALSE(answer.at("fewer").at("simulated").get<bool>()) << answer;
  const std::string text = capacity(set).out;
  EXPECT_TRUE(contains(text, "\nfewer     on 1 GPU the nearest plan, tp=1,pp=1,dp=1, misses by at least "))
      << text;
  EXPECT_TRUE(contains(text, " %: by its floors ")) << text;
  const json alone = json::parse(run({"simulate", "study.yaml", "--json", "--set", "gpus=1", "--set",
                                      "space={tensor_parallel: [1], data_parallel: fill}", "--set",
                                      "workload.request_rate=4 /s", "--point", "tp=1,pp=1,dp=1"})
                                     .out);
  EXPECT_LE(answer.at("fewer").at("missed_by").get<double>(),
            alone.at("ttft_s").get<double>() / 26e-3 - 1 + 1e-9);
}

TEST_F(CapacityTest, AnswersSayOfWhichWorkloadAndHardware) {
  const std::vector<std::string> more = {
      "--set", "workload.speculation={draft_tokens: [0, 1], acceptance: 0.7, draft_model: llama3.2-1b}",
      "--set", "hardware={device: [h100-sxm-80gb, h200-sxm-141gb]}",
      "--set", "space.tensor_parallel=[1]",
      "--set", "gpus=[2]",
      "--set", "promises={ttft_p95: 1 s, tpot_p95: 4 ms}"};
  const json found = answers(more);
  ASSERT_EQ(found.size(), 2U);
  for (int tokens : {0, 1}) {
    const json& answer = found.at(static_cast<std::size_t>(tokens));
    EXPECT_EQ(answer.at("draft_tokens"), tokens);
    const json& where = answer.at("gpus").is_null() ? answer.at("nearest") : answer;
    EXPECT_TRUE(contains(where.at("setting").get<std::string>(), "device=h")) << where;
  }
  std::vector<std::string> words = more;
  words.insert(words.end(), {"--report", "page.html"});
  const Finished text = capacity(words);
  EXPECT_EQ(text.code, 0) << text.err;
  for (const char* part : {"requests/s, draft_tokens=0: ", "requests/s, draft_tokens=1: ", ", device=h"})
    EXPECT_TRUE(contains(text.out, part)) << part << " is not in\n" << text.out;
  EXPECT_TRUE(contains(read_file(work() / "page.html"), "\"workloads\":[\"draft_tokens\"]"));
  EXPECT_FALSE(answers({}).at(0).contains("setting")) << "there is one";
}

TEST_F(CapacityTest, WhatIsWrongIsToldInItsOwnWords) {
  const auto says = [&](const std::vector<std::string>& words, const std::string& what) {
    const Finished finished = capacity(words);
    EXPECT_EQ(finished.code, 2) << what;
    EXPECT_TRUE(contains(finished.err, what)) << finished.err;
    return finished.err;
  };
  EXPECT_FALSE(contains(says({"--budget", "0"}, "--budget: '0' is no CPU time"), "points"));
  EXPECT_FALSE(contains(says({"--rate", "2,fast"}, "--rate: 'fast' "), "--set"));
  says({"--rate", "3", "--set", "workload.concurrency=8"}, "--rate takes the place of a closed loop");
  says({"--set", "faults={kind: soft_link, samples: 3, derate: 0.5}"}, "faults: have no effect here");
}

TEST_F(CapacityTest, SaysWhichRulePlansBreak) {
  const std::vector<std::string> long_prompts = {"--set", "workload.prompt_tokens=100000",
                                                 "--set", "workload.client.requests=1000000",
                                                 "--set", "gpus=[1, 2]",
                                                 "--set", "space.tensor_parallel=[1, 2]"};
  const Finished text = capacity(long_prompts);
  EXPECT_TRUE(contains(text.out, "3 against a rule")) << text.out;
  EXPECT_TRUE(contains(text.out, "out_of_range        3  a time, a rate or the memory")) << text.out;
  const json rejected = answers(long_prompts).at(0).at("rejected");
  ASSERT_EQ(rejected.size(), 1U);
  EXPECT_EQ(rejected.at(0).at("reason"), "out_of_range");
  EXPECT_EQ(rejected.at(0).at("plans"), 3);
}

TEST_F(CapacityTest, ALoadWithoutASteadyStateHasAReasonOfItsOwn) {
  const std::vector<std::string> burst = {
      "--set", "workload.client={requests: 20, warm_up: 0, statistic: steady}",
      "--set", "gpus=[1]",
      "--set", "space.tensor_parallel=[1]"};
  const Finished text = capacity(burst);
  EXPECT_TRUE(contains(text.out, "no_steady_state")) << text.out;
  EXPECT_TRUE(contains(text.out, "raise client.requests and client.warm_up")) << text.out;
  EXPECT_EQ(answers(burst).at(0).at("rejected").at(0).at("reason"), "no_steady_state");
}

TEST_F(CapacityTest, PromisesOnTheOnlyTokenAreRefused) {
  const std::string one = "workload.output_tokens=1";
  const Finished refused = capacity({"--set", one});
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(contains(refused.err, "promises: tpot_p95 cannot be judged: requests of one output token"))
      << refused.err;
  const Finished constrained =
      capacity({"--set", one, "--set", "promises={ttft_p95: 1 s}", "--set", "constraints=['itl_p99 < 1 s']"});
  EXPECT_TRUE(contains(constrained.err, "constraints: itl_p99 cannot be judged")) << constrained.err;
  const json kept = answers({"--set", one, "--set", "promises={ttft_p95: 1 s}"}).at(0);
  for (const char* none : {"itl_s", "itl_p99_s", "tpot_s", "tpot_p95_s"})
    EXPECT_TRUE(kept.at(none).is_null()) << none;
  EXPECT_GT(kept.at("ttft_p95_s"), 0.0);
}

// The answer says what the plan takes of a GPU, and by how much one step fewer misses what is promised: as a simulation
// of that plan on so many GPUs has it.
TEST_F(CapacityTest, SaysItsMemoryAndWhatOneStepFewerMisses) {
  const json answer = answers({"--set", "gpus=[1, 2, 4, 8]", "--rate", "40"}).at(0);
  ASSERT_GT(answer.at("gpus"), 1);
  EXPECT_GT(answer.at("memory_capacity_bytes"), answer.at("memory_peak_bytes"));
  EXPECT_EQ(answer.at("kv_cache_precision"), "bf16");
  const json& fewer = answer.at("fewer");
  EXPECT_EQ(fewer.at("gpus").get<int>() * 2, answer.at("gpus").get<int>());
  EXPECT_GT(fewer.at("missed_by").get<double>(), 0);
  const Finished text = capacity({"--set", "gpus=[1, 2, 4, 8]", "--rate", "40"});
  EXPECT_TRUE(contains(text.out, " on the fullest device, the key-value cache in bf16\n")) << text.out;
  EXPECT_TRUE(contains(text.out, "\nfewer     on " + fewer.at("gpus").dump() + " GPU")) << text.out;
  EXPECT_TRUE(
      contains(text.out, "the nearest plan, " + fewer.at("plan").get<std::string>() + ", misses by "));
  ASSERT_TRUE(fewer.at("simulated").get<bool>());
  const json point =
      json::parse(run({"simulate", "study.yaml", "--json", "--set", "workload.request_rate=40 /s", "--set",
                       "gpus=" + fewer.at("gpus").dump(), "--point", fewer.at("plan").get<std::string>()})
                      .out);
  EXPECT_EQ(point.at("status"), "missed");
  const double sustained = point.at("sustained_requests_per_s");
  ASSERT_GT(sustained, 0);
  EXPECT_NEAR(fewer.at("missed_by").get<double>(), 40 / sustained - 1, 1e-9);
  // On the first number of GPUs there are no fewer.
  const json first = answers({"--set", "gpus=[8, 16]", "--rate", "1"}).at(0);
  EXPECT_EQ(first.at("gpus"), 8);
  EXPECT_TRUE(first.at("fewer").is_null());
  EXPECT_TRUE(contains(capacity({"--set", "workload.precision=fp8"}).out, "the key-value cache in bf16\n"));
  ASSERT_EQ(capacity({"--rate", "40", "--report", "page.html"}).code, 0);
  EXPECT_TRUE(contains(read_file(work() / "page.html"), "\"memory_note\":\""));
}

}  // namespace
}  // namespace shardscape::cli
