// Does the program serve: inference in both modes, and two pools as points of a study?
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/program_under_test.h"

namespace shardscape::cli {
namespace {

using nlohmann::json;

class ServeTest : public ProgramTest {
 protected:
  json simulate(const std::vector<std::string>& more) {
    write("study.yaml", kInferenceStudy);
    std::vector<std::string> words = {"simulate", "study.yaml", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const Finished finished = run(words);
    EXPECT_EQ(finished.code, 0) << finished.err;
    return json::parse(finished.out);
  }
  /// The command is refused with these words and writes nothing.
  void refused(std::vector<std::string> words, const std::string& says, const std::string& study) {
    write("study.yaml", study);
    words.insert(words.begin() + 1, "study.yaml");
    const Finished finished = run(words);
    EXPECT_EQ(finished.code, 2) << says;
    EXPECT_EQ(finished.out, "");
    EXPECT_TRUE(contains(finished.err, says)) << finished.err;
    EXPECT_EQ(left_behind(), std::vector<std::string>{"study.yaml"});
  }
};

constexpr const char* kPools = "tp=4,pp=1,dp=1,prefill_tp=2,prefill_dp=2,concurrency=8";

TEST_F(ServeTest, FlattenedRequestsAreLikePricedOnes) {
  for (const char* point : {"tp=4,pp=1,dp=2,concurrency=8", "tp=2,pp=2,dp=2,concurrency=8", kPools}) {
    const json priced = simulate({"--point", point});
    const json executed = simulate({"--point", point, "--mode", "flattened"});
    for (const char* key : {"ttft_s", "itl_s", "itl_p95_s", "e2e_s"}) {
      EXPECT_NEAR(executed.at(key).get<double>() / priced.at(key).get<double>(), 1, 0.05) << point << key;
    }
    const double whole = executed.at("e2e_s");
    EXPECT_NEAR(sum(executed.at("breakdown")), whole, 1e-9 * whole) << point;
  }
}

TEST_F(ServeTest, CompareShowsRequests) {
  const json both = simulate({"--point", "tp=2,pp=2,dp=2", "--compare"});
  const double h = both.at("hierarchical").at("e2e_s"), f = both.at("flattened").at("e2e_s");
  EXPECT_NEAR(both.at("difference").at("e2e_share").get<double>(), f / h - 1, 1e-12);
  EXPECT_NEAR(sum(both.at("difference").at("breakdown")), f - h, 1e-9 * h);
  EXPECT_GT(both.at("events").get<std::int64_t>(), 1000);
  const Finished text = run({"simulate", "study.yaml", "--point", "tp=2,pp=2,dp=2", "--compare"});
  EXPECT_TRUE(contains(text.out, "of the request")) << text.out;
  EXPECT_TRUE(contains(text.out, "between tokens")) << text.out;
}

// Every request that counts is drawn from when it was sent until it was done, on replicas and on two pools.
TEST_F(ServeTest, SimulatedLoadsAreDrawn) {
  for (const auto& [point, servers] : {std::pair("tp=4,pp=1,dp=2,concurrency=8", 2), {kPools, 3}}) {
    const json live =
        simulate({"--point", point, "--set", "workload.client={requests: 5x}", "--timeline", "load.json"});
    const json trace = json::parse(read_file(work() / "load.json"));
    EXPECT_EQ(trace.at("otherData").at("requests"), 40) << point;
    double drawn = 0;
    int processes = 0;
    for (const json& event : trace.at("traceEvents")) {
      if (event.at("ph") == "M") ++processes;
      if (event.at("ph") == "X" && event.at("pid") == 0) drawn += event.at("dur").get<double>();
    }
    EXPECT_EQ(processes, 1 + servers) << point;
    const double mean = live.at("e2e_s");
    EXPECT_NEAR(drawn / 1e6 / 40, mean, 1e-9 * mean) << point;
    std::filesystem::remove(work() / "load.json");
  }
}

TEST_F(ServeTest, SimulatedLoadsHaveTails) {
  const json plain = simulate({"--point", "tp=4,pp=1,dp=2,concurrency=8"});
  EXPECT_FALSE(plain.contains("ttft_p99_s"));
  const std::vector<std::string> client = {"--set", "workload.client={requests: 5x, length_ratio: 0.5}"};
  std::vector<std::string> words = {"--point", "tp=4,pp=1,dp=2,concurrency=8"};
  words.insert(words.end(), client.begin(), client.end());
  const json live = simulate(words);
  double before = 0;
  for (const char* key : {"ttft_p50_s", "ttft_p90_s", "ttft_p95_s", "ttft_p99_s"}) {
    EXPECT_GE(live.at(key).get<double>(), before) << key;
    before = live.at(key);
  }
  EXPECT_GT(live.at("requests_per_s").get<double>(), 0);
  EXPECT_EQ(live.at("overloaded"), false);
  EXPECT_TRUE(live.at("sustained_requests_per_s").is_null());
  EXPECT_EQ(live.at("output_tokens_per_s_per_gpu"), live.at("tokens_per_s_per_gpu"));
  const Finished swept =
      run({"sweep", "study.yaml", client[0], client[1], "--set", "objectives=[ttft_p99_s]", "-o", "out.h5"});
  EXPECT_EQ(swept.code, 0) << swept.err;
  EXPECT_TRUE(contains(swept.out, "ttft_p99")) << swept.out;
  const std::size_t rate = swept.out.find("tokens/s/GPU");
  ASSERT_NE(rate, std::string::npos) << swept.out;
  EXPECT_EQ(swept.out.find("tokens/s/GPU", rate + 1), std::string::npos) << "twice: " << swept.out;
  EXPECT_FALSE(contains(swept.out, "requests/s sent")) << "nobody sends at a rate: " << swept.out;
  const Finished other = run({"sweep", "study.yaml", client[0], client[1], "--set", "objectives=[ttft_p99_s]",
                              "--threads", "3", "-o", "other.h5"});
  EXPECT_EQ(other.code, 0) << other.err;
  const Finished same = run({"diff", "out.h5", "other.h5"});
  EXPECT_TRUE(contains(same.out, "nothing differs")) << same.out;
  const Finished refused = run({"check", "study.yaml", "--set", "objectives=[ttft_p99_s]"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(contains(refused.err, "not simulated request by request")) << refused.err;
}

// Parts of a request's time are all of it, shares of a server's time are all of that, and so are those of what requests
// wait for.
TEST_F(ServeTest, LoadsAreExplained) {
  const std::string sessions =
      "workload.sessions={turns: 3, new_tokens: 200, think_time: {exponential: 1 s}}";
  for (const std::string& plan : {std::string("tp=4,dp=2"), std::string(kPools)}) {
    const json point = simulate({"--point", plan, "--set", sessions, "--explain"});
    double time = 0;
    std::map<std::string, double> shares;
    for (const json& part : point.at("load_time")) time += part.at("time_s").get<double>();
    const double whole = point.at("e2e_s");
    EXPECT_NEAR(time, whole, 1e-9 * whole) << point.at("load_time");
    for (const json& kind : point.at("iterations"))
      shares[kind.at("servers").get<std::string>()] += kind.at("share").get<double>();
    EXPECT_EQ(shares.size(), plan == kPools ? 2U : 1U);
    for (const auto& [servers, share] : shares) EXPECT_NEAR(share, 1, 1e-9) << servers;
    EXPECT_EQ(point.contains("waits"), plan != kPools);
    if (plan != kPools) {
      double waits = 0;
      for (const json& reason : point.at("waits")) waits += reason.at("share").get<double>();
      EXPECT_NEAR(waits, 1, 1e-9);
      EXPECT_GT(point.at("prefix_hit_share").get<double>(), 0.2);
    }
  }
  const Finished text =
      run({"simulate", "study.yaml", "--point", "tp=4,dp=2", "--set", sessions, "--explain"});
  for (const char* part : {"sessions of 3 turns", "its prompt is read", "were found in a cache",
                           "prompts and decode", "none: idle", "requests wait for"})
    EXPECT_TRUE(contains(text.out, part)) << part << " not in\n" << text.out;
}

TEST_F(ServeTest, RatesOfAnySizeAreShown) {
  std::string study = kInferenceStudy;
  const std::string clients = "concurrency: [8, 32]";
  study.replace(study.find(clients), clients.size(), "request_rate: 1e-5 /s, client: {requests: 3}");
  write("study.yaml", study);
  const Finished out = run({"simulate", "study.yaml", "--point", "tp=4,dp=2"});
  EXPECT_TRUE(contains(out.out, "1e-05 requests/s (poisson), 3 requests simulated")) << out.out;
  const Finished other = run({"simulate", "study.yaml", "--point", "tp=4,dp=2,request_rate=2.5"});
  EXPECT_TRUE(contains(other.out, "2.5 requests/s (poisson), 3 requests simulated")) << other.out;
  write("study.yaml", kInferenceStudy);
  const Finished closed = run({"simulate", "study.yaml", "--point", "tp=4,dp=2,request_rate=2.5"});
  EXPECT_TRUE(contains(closed.err, "request_rate has no effect")) << closed.err;
}

TEST_F(ServeTest, APlanMayHaveAnyNumberOfGpusOfTheStudy) {
  write("study.yaml", kInferenceStudy);
  const std::vector<std::string> words = {"simulate", "study.yaml", "--set", "gpus=[8, 16]", "--point"};
  for (const auto& [point, gpus] : {std::pair("tp=4,dp=2", "(8 x "), {"tp=8,dp=2", "(16 x "}}) {
    std::vector<std::string> all = words;
    all.emplace_back(point);
    const Finished out = run(all);
    EXPECT_TRUE(contains(out.out, gpus)) << out.out << out.err;
  }
}

TEST_F(ServeTest, NobodyIsInFlightInAnOpenLoop) {
  std::string study = kInferenceStudy;
  const std::string clients = "concurrency: [8, 32]";
  study.replace(study.find(clients), clients.size(), "request_rate: 3 /s");
  refused({"simulate", "--point", "tp=4,dp=2", "--mode", "checked"}, "--mode: checked is of training", study);
  refused({"simulate", "--point", "tp=4,dp=2,concurrency=8"}, "--point: concurrency has no effect", study);
}

TEST_F(ServeTest, PoolsSayWhatTheyTransfer) {
  const json point = simulate({"--point", kPools});
  // Llama 3.1 8B: 32 layers of 8 heads of 128, keys and values, 2 bytes, 1000 tokens.
  EXPECT_DOUBLE_EQ(point.at("kv_transfer_bytes").get<double>(), 2.0 * 2 * 32 * 8 * 128 * 1000);
  EXPECT_GT(point.at("kv_transfer_s").get<double>(), 0);
  EXPECT_GT(point.at("breakdown").at("kv_transfer_exposed_s").get<double>(), 0);
  EXPECT_EQ(point.at("plan").at("prefill_dp"), 2);
  EXPECT_EQ(point.at("memory").at("prefill_per_stage").size(), 1U);
  const double whole = point.at("e2e_s");
  EXPECT_NEAR(sum(point.at("breakdown")), whole, 1e-9 * whole);
  const json plain = simulate({"--point", kPools, "--reference"});
  EXPECT_NEAR(plain.at("e2e_s").get<double>() / whole, 1, 1e-9);
  EXPECT_FALSE(simulate({"--point", "tp=4"}).contains("kv_transfer_s"));
  const Finished text = run({"simulate", "study.yaml", "--point", kPools, "--explain"});
  EXPECT_TRUE(contains(text.out, "4 GPUs prefill, 4 decode")) << text.out;
  EXPECT_TRUE(contains(text.out, "stages of the prefill pool")) << text.out;
  EXPECT_TRUE(contains(text.out, "decode_attention")) << text.out;
}

TEST_F(ServeTest, SplitsOfTheGpusAreAnAxis) {
  write("study.yaml", std::string(kInferenceStudy) + "mode: flattened\n");
  const std::vector<std::string> sets = {"--set", "space.prefill_gpus=[0, 2, 4]",
                                         "--set", "space.tensor_parallel=[1, 2]",
                                         "--set", "workload.concurrency=4"};
  std::vector<std::string> words = {"sweep", "study.yaml", "-o", "out.h5"};
  words.insert(words.end(), sets.begin(), sets.end());
  EXPECT_EQ(run(words).code, 0);
  const Finished rows = run({"top", "out.h5", "--format", "csv", "-n", "9"});
  EXPECT_EQ(rows.code, 0) << rows.err;
  EXPECT_TRUE(contains(rows.out, "prefill_data_parallel")) << rows.out;
  EXPECT_TRUE(contains(rows.out, "kv_transfer_s")) << rows.out;
  const Finished pooled = run({"top", "out.h5", "--where", "prefill_dp == 4", "--format", "json"});
  EXPECT_EQ(json::parse(pooled.out).size(), 2U) << pooled.out;
  words = {"check", "study.yaml"};
  words.insert(words.end(), sets.begin(), sets.end());
  EXPECT_TRUE(contains(run(words).out, "prefill_gpus")) << run(words).out;
}

TEST_F(ServeTest, ImpossiblePoolsAreRefused) {
  const std::string study = kInferenceStudy;
  refused({"simulate", "--set", "space.prefill_gpus=8"}, "--set space.prefill_gpus", study);
  refused({"simulate", "--set", "space.prefill_gpus=3", "--set", "space.prefill_tensor_parallel=2"},
          "3 GPUs make no whole replicas", study);
  refused({"sweep", "-o", "out.h5", "--set", "space.prefill_gpus=4", "--set", "space.tensor_parallel=8"},
          "no plan fills the 4 GPUs", study);
  refused({"simulate", "--set", "space.prefill_gpus=4"}, "has no effect in training", kSmallStudy);
  refused({"simulate", "--point", "tp=4,prefill_tp=4"}, "no effect without prefill_dp", study);
  refused({"simulate", "--point", "tp=4,prefill_tp=4,prefill_dp=2"}, "less than the number of GPUs", study);
  refused({"simulate", "--point", kPools, "--optimise-placement"}, "one kind of replica", study);
  refused({"simulate", "--set", "hardware={stack.serving.kv_transfer: [per_layer]}"},
          "without space.prefill_gpus", study);
}

// A prompt whose cache fits nowhere: no error but a verdict with what it would need.
// One request of a trace has more tokens than the cache has room for: of 2 * 32 layers of 1,024 numbers of 2 bytes
// each, beside all else that the plan keeps.
TEST_F(ServeTest, RequestsThatNeverFitAreNamedByTheirLine) {
  write("long.csv", "arrival_s,prompt_tokens,output_tokens\n\n0,1000,10\n1,600000,10\n2,1000,10\n");
  const std::vector<std::string> load = {"--point", "tp=1,dp=8", "--set",
                                         "workload={phase: inference, precision: bf16, trace: long.csv}"};
  const json point = simulate(load);
  EXPECT_EQ(point.at("reason"), "memory_capacity");
  const json& memory = point.at("memory");
  const double rest = point.at("memory_peak_bytes").get<double>() - memory.at("kv_cache_bytes").get<double>();
  const auto room =
      static_cast<int>((point.at("memory_capacity_bytes").get<double>() - rest) / (2 * 32 * 1024 * 2));
  const std::string thousands =
      std::to_string(room / 1000) + ',' + std::to_string(1000 + room % 1000).substr(1);
  const std::string note = "line 4 of long.csv has 600,010 tokens, and the cache has room for " + thousands;
  EXPECT_EQ(point.at("memory_notes").at(0), note);
  std::vector<std::string> words = {"simulate", "study.yaml"};
  words.insert(words.end(), load.begin(), load.end());
  EXPECT_TRUE(contains(run(words).out, "          " + note + '\n'));
  write("long.csv", "arrival_s,prompt_tokens,output_tokens\n0,1000,10\n1,1000,10\n");
  EXPECT_FALSE(contains(simulate(load).dump(), "long.csv has"));
  write("long.csv", "arrival_s,prompt_tokens,output_tokens\n0,-5,10\n1,100,\n2,99999999999999,10\n3,abc,5\n");
  const Finished finished = run(words);
  EXPECT_EQ(finished.code, 2);
  for (const char* line :
       {"line 2: prompt", "line 3: output", "line 4: prompt", "line 5: prompt", "4 problems"})
    EXPECT_TRUE(contains(finished.err, line)) << finished.err;
}

TEST_F(ServeTest, CachesThatDoNotFitAreAVerdict) {
  const json point =
      simulate({"--point", "tp=1,dp=7,prefill_dp=1", "--set", "workload.prompt_tokens=900000"});
  EXPECT_EQ(point.at("status"), "memory");
  EXPECT_EQ(point.at("reason"), "memory_capacity");
  EXPECT_GT(point.at("memory_peak_bytes").get<double>(), point.at("memory_capacity_bytes").get<double>());
}

}  // namespace
}  // namespace shardscape::cli
