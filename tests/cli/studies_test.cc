// Do the ready studies show what their README says, at a reduced size?
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/program_under_test.h"
#include "tests/support/csv.h"
#include "tests/support/paths.h"

namespace shardscape::cli {
namespace {

using test::CsvRow;

double number(const CsvRow& row, const std::string& column) {
  const std::string& text = row.at(column);
  return text.empty() ? std::nan("") : std::stod(text);
}

/// The text that identifies a plan, whatever its setting.
std::string plan_of(const CsvRow& row) {
  std::string text;
  for (const char* column :
       {"tensor_parallel", "sequence_parallel", "context_parallel", "pipeline_parallel", "data_parallel",
        "zero_stage", "recompute", "microbatch_size", "schedule", "virtual_stages", "rank_order"}) {
    text += row.at(column) + ' ';
  }
  return text;
}

class StudiesTest : public ProgramTest {
 protected:
  static std::string study(const std::string& name) {
    return test::source_dir() + "/sweep/studies/" + name + ".yaml";
  }
  /// All rows of a study with some keys changed.
  std::vector<CsvRow> rows(const std::string& name, const std::vector<std::string>& settings) {
    std::vector<std::string> words = {"sweep", study(name), "-o", "out.h5", "--force"};
    for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
    const Finished swept = run(words);
    EXPECT_EQ(swept.code, 0) << swept.err;
    EXPECT_EQ(run({"export", "out.h5", "--csv", "out.csv", "--force"}).code, 0);
    return test::read_csv(work() / "out.csv");
  }
  nlohmann::json simulate(const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"simulate", study(name), "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const Finished finished = run(words);
    EXPECT_EQ(finished.code, 0) << finished.err;
    return nlohmann::json::parse(finished.out);
  }
};

/// The size that `check` estimates, in bytes.
double estimated_bytes(const std::string& text) {
  const std::string mark = " and writes about ";
  double number = 0;
  char unit = ' ';
  std::sscanf(text.c_str() + text.find(mark) + mark.size(), "%lf %c", &number, &unit);
  return number * std::pow(1024, std::string("BKMG").find(unit));
}

TEST_F(StudiesTest, CheckKnowsHowLargeFilesBecome) {
  for (const std::string name :
       {"llama3.1-70b-64xa100", "llama3.1-70b-serving-16xa100", "llama2-13b-dram", "moe-faults"}) {
    const Finished checked = run({"check", study(name)});
    ASSERT_EQ(checked.code, 0) << checked.err;
    const Finished swept = run({"sweep", study(name), "-o", name + ".h5", "--confirm", "0"});
    ASSERT_EQ(swept.code, 0) << swept.err;
    const auto written = static_cast<double>(fs::file_size(work() / (name + ".h5")));
    EXPECT_NEAR(estimated_bytes(checked.out) / written, 1, 0.1) << name;
  }
}

// What DeepSeek-AI published of its run (arXiv:2412.19437, sections 3 and 4.2): pp 16, ep 64, ZeRO-1, no tensor
// parallelism, DualPipe, fp8, and 2.664 M GPU hours for 14.8 T tokens: 20.1 s for a step of 15,360 sequences of 4,096.
// It fits into 80 GB, with what section 3.2.3 says is computed again and not without.
TEST_F(StudiesTest, TheRunOfDeepSeekV3FitsAndTakesWhatItTook) {
  constexpr double kStep = 2.664e6 * 3600 / 2048 / (14.8e12 / (15360 * 4096.0));
  const auto plan = [&](const std::string& recompute) {
    return simulate("deepseek-v3-2048xh800",
                    {"--point", "tp=1,pp=16,ep=64,zero=1,schedule=dualpipe,mbs=1,recompute=" + recompute});
  };
  const nlohmann::json published = plan("selective");
  EXPECT_EQ(published.at("status"), "ok");
  EXPECT_NEAR(published.at("step_time_s").get<double>() / kStep, 1, 0.15);
  EXPECT_LT(published.at("memory_peak_bytes").get<double>(), 80.0 * (1 << 30));
  EXPECT_EQ(plan("none").at("status"), "memory");
}

using Times = std::map<std::string, double>;

/// Seconds of a step by plan, of the rows that are ok and for which `keep` holds.
Times step_times(const std::vector<CsvRow>& rows, const std::function<bool(const CsvRow&)>& keep) {
  Times times;
  for (const CsvRow& row : rows) {
    if (row.at("status") == "ok" && keep(row)) times[plan_of(row)] = number(row, "step_time_s");
  }
  return times;
}

double best(const Times& times) {
  double least = INFINITY;
  for (const auto& [plan, time] : times) least = std::min(least, time);
  return least;
}

/// Every plan of `slow` is in `fast` and takes no longer there.
void expect_no_slower(const Times& fast, const Times& slow, const std::string& what) {
  for (const auto& [plan, time] : slow) {
    ASSERT_TRUE(fast.contains(plan)) << what << ": " << plan;
    EXPECT_LE(fast.at(plan), time * (1 + 1e-9)) << what << ": " << plan;
  }
}

// 64 A100s at 312 TFLOP/s and 80 GiB. A step of 128 sequences of 4,096 tokens has at least six FLOPs per
// parameter and token, and weights in bf16 lie once on each pipeline of tp * pp devices, whose fullest holds
// its share.
TEST_F(StudiesTest, NoPlanOfLlamaBeatsThePeakOrTheMemory) {
  constexpr double kParameters = 70.55e9, kTokens = 128 * 4096, kPeak = 64 * 312e12;
  constexpr double kCapacity = 80.0 * 1024 * 1024 * 1024;
  const std::vector<CsvRow> all = rows(
      "llama3.1-70b-64xa100", {"space.zero_stage=1", "space.microbatch_size=1", "space.virtual_stages=2"});
  std::map<std::string, std::map<std::string, const CsvRow*>> by_recompute;
  int timed = 0;
  for (const CsvRow& row : all) {
    if (row.at("status") == "indivisible") continue;
    const double memory = number(row, "memory_peak_bytes");
    EXPECT_EQ(row.at("status"), memory <= kCapacity ? "ok" : "memory") << plan_of(row);
    EXPECT_GE(memory, 2 * kParameters / (number(row, "tensor_parallel") * number(row, "pipeline_parallel")));
    if (row.at("status") != "ok") continue;
    ++timed;
    EXPECT_GT(number(row, "step_time_s"), 6 * kParameters * kTokens / kPeak) << plan_of(row);
    EXPECT_LT(number(row, "mfu"), 1);
    CsvRow other = row;
    other["recompute"] = "";
    by_recompute[plan_of(other)][row.at("recompute")] = &row;
  }
  EXPECT_GT(timed, 100);
  // Recomputing everything takes longer and holds less.
  int pairs = 0;
  for (const auto& [plan, choices] : by_recompute) {
    if (!choices.contains("none") || !choices.contains("full")) continue;
    const CsvRow &none = *choices.at("none"), &full = *choices.at("full");
    EXPECT_GT(number(full, "step_time_s"), number(none, "step_time_s")) << plan;
    EXPECT_LE(number(full, "memory_peak_bytes"), number(none, "memory_peak_bytes")) << plan;
    ++pairs;
  }
  EXPECT_GT(pairs, 10);
}

TEST_F(StudiesTest, MappingAnOptimisedPlacementIsNeverSlower) {
  const std::vector<CsvRow> all =
      rows("llama3.1-70b-mapping",
           {"space.tensor_parallel=4", "space.context_parallel=[1, 2]", "space.pipeline_parallel=4",
            "space.recompute=selective", "space.rank_order=[tp-cp-dp-pp, dp-pp-cp-tp]", "faults.samples=20"});
  const auto placed = [&](const std::string& choice) {
    return step_times(all, [&](const CsvRow& row) { return row.at("placement") == choice; });
  };
  const Times plain = placed("plain"), optimised = placed("optimised");
  ASSERT_EQ(plain.size(), 4U);
  ASSERT_EQ(optimised.size(), 4U);
  expect_no_slower(optimised, plain, "optimised");
  for (const CsvRow& row : all) EXPECT_EQ(row.at("fault_samples"), "20");

  // The order with the tensor group outermost sends its all-reduces over the rings: far slower as numbered,
  // but not where the ranks may be moved. What the sweep finds is what simulate finds.
  for (const char* order : {"tp-cp-dp-pp", "dp-pp-cp-tp"}) {
    const auto point = simulate("llama3.1-70b-mapping",
                                {"--set", "space.recompute=selective", "--optimise-placement", "--point",
                                 std::string("tp=4,cp=1,pp=4,dp=4,zero=1,order=") + order});
    const auto& found = point["placement"]["optimised"];
    for (const CsvRow& row : all) {
      if (row.at("context_parallel") != "1" || row.at("rank_order") != order) continue;
      const char* const side = row.at("placement") == "plain" ? "before" : "after";
      EXPECT_NEAR(number(row, "step_time_s"), found[side]["step_time_s"].get<double>(), 1e-9);
    }
  }
}

TEST_F(StudiesTest, VariantsOfTheA100OrderAsTheirPartsDo) {
  const std::vector<CsvRow> all =
      rows("a100-variants", {"space.zero_stage=1", "space.microbatch_size=1", "space.virtual_stages=2"});
  std::map<std::string, Times> of;
  for (const char* variant : {"base", "A", "B", "C", "D"}) {
    of[variant] = step_times(all, [&](const CsvRow& row) { return row.at("variant") == variant; });
    ASSERT_GT(of[variant].size(), 50U);
  }
  // More cache, faster memory: no plan gets slower, and C >= D >= base in memory bandwidth.
  expect_no_slower(of["A"], of["base"], "A");
  expect_no_slower(of["D"], of["base"], "D");
  expect_no_slower(of["C"], of["D"], "C");
  // Capacity changes no plan's time, only which plans there are.
  for (const auto& [plan, time] : of["base"]) EXPECT_DOUBLE_EQ(of["B"].at(plan), time) << plan;
  EXPECT_GT(of["B"].size(), of["base"].size());
  EXPECT_LT(best(of["B"]), best(of["base"]));
  EXPECT_LT(best(of["C"]), best(of["D"]));
  // The memory of a plan is its own, not the device's.
  std::map<std::string, std::string> memory;
  for (const CsvRow& row : all) {
    if (row.at("memory_peak_bytes").empty()) continue;
    const auto [it, fresh] = memory.emplace(plan_of(row), row.at("memory_peak_bytes"));
    EXPECT_TRUE(fresh || it->second == row.at("memory_peak_bytes")) << plan_of(row);
  }
}

TEST_F(StudiesTest, RecomputeCutsActivationsAsItsPaperCounts) {
  const std::vector<CsvRow> all = rows("gpt-recompute-memory", {"hardware.card=unbounded"});
  ASSERT_EQ(all.size(), 6U);
  std::map<std::string, double> bytes, time;
  for (const CsvRow& row : all) {
    const std::string key = row.at("recompute") + row.at("sequence_parallel");
    bytes[key] = number(row, "activations_bytes");
    time[key] = number(row, "step_time_s");
  }
  // Korthikanti et al. 2022, Table 2: bytes of a layer's activations over s b h, on t tensor-parallel ranks,
  // with 5 a s / h for the scores. Stage 0 of 8 with 3 chunks holds 8 * (1 + 7/24) of 12 layers' microbatches
  // (section 4.2.3), twice the boundary's and dropout mask of the embedding beside.
  const double t = 8, scores = 5 * 96 * 2048.0 / 12288, sbh = 2048.0 * 12288;
  const double layers = 96 * (1 + 7.0 / 24);
  const std::map<std::string, double> published = {{"none0", 10 + 24 / t + scores / t},
                                                   {"none1", (34 + scores) / t},
                                                   {"selective0", 10 + 24 / t},
                                                   {"selective1", 34 / t}};
  constexpr double kFragmentation = 1.05;  // the fragmentation that the stack states
  for (const auto& [key, per_layer] : published) {
    EXPECT_NEAR(bytes[key] / (kFragmentation * layers * sbh * per_layer), 1, 0.06) << key;
  }
  EXPECT_GT(bytes["none0"] / bytes["selective1"], 4.5);  // "five times"
  // Time: selective costs a few per cent, full about a third.
  EXPECT_LT(time["selective1"], 1.05 * time["none0"]);
  EXPECT_GT(time["full0"], 1.25 * time["none0"]);
  EXPECT_LT(time["full0"], 1.40 * time["none0"]);
}

TEST_F(StudiesTest, LlamaOf16kGpusCountsItsFlopsAndLikesVirtualStages) {
  const std::vector<std::string> reduced = {"--set", "space.context_parallel=16", "--set",
                                            "space.pipeline_parallel=16"};
  const auto with = [&](const std::string& point) {
    std::vector<std::string> words = reduced;
    words.insert(words.end(), {"--point", "tp=8,cp=16,pp=16,dp=8,zero=1,recompute=none,mbs=1," + point});
    return simulate("llama3.1-405b-16k", words);
  };
  const auto interleaved = with("schedule=interleaved,vpp=8"), plain = with("schedule=1f1b");
  // Llama 3 405B: 126 blocks of q, o (h x h each), k, v (h x h / 16 each) and three h x 53,248 matrices, and
  // the head; 6 FLOPs per weight and token, and 12 s h per token and block for attention counted in full.
  const double h = 16384, s = 131072, tokens = 128 * s;
  const double weights = 126 * (2 * h * h + 2 * h * h / 16 + 3 * h * 53248) + h * 128256;
  const double flops = tokens * (6 * weights + 12 * 126 * s * h);
  const double peak = 132 * 4096 * 1.83e9;
  for (const auto& point : {interleaved, plain}) {
    const double mfu = flops / (point["step_time_s"].get<double>() * peak * 16384);
    EXPECT_NEAR(point["mfu"].get<double>(), mfu, 1e-6 * mfu);
  }
  // 16 microbatches on 16 stages: the bubble of 1f1b is 15/16 of the work, an eighth of that with eight
  // chunks.
  EXPECT_LT(interleaved["step_time_s"].get<double>(), 0.7 * plain["step_time_s"].get<double>());
}

// DeepSeek 2025 (inference system overview, open-infra-index): a node that decodes writes 14.8 k tokens/s. README: 16 %
// less here, of 18 nodes beside 16 that prefill; half batches and kernels of their own are worth what it says.
TEST_F(StudiesTest, DeepSeeksServersDecodeNearlyAsFastAsPublished) {
  Times written;
  for (const CsvRow& row : rows("deepseek-v3-serving-h800", {"workload.concurrency=12672"}))
    written[row.at("servers")] = number(row, "tokens_per_s_per_gpu") * 272 / 18;
  EXPECT_NEAR(written.at("published") / 14800, 0.84, 0.02);
  EXPECT_NEAR(written.at("published") / written.at("one_batch"), 1.23, 0.02);
  EXPECT_NEAR(written.at("one_batch") / written.at("library"), 2.01, 0.03);
}

// README: under a power law 128 copies of busy experts take 604 to 855 tokens/s per GPU.
TEST_F(StudiesTest, CopiesOfBusyExpertsPayWhereLoadsDiffer) {
  Times rate;
  for (const CsvRow& row : rows("deepseek-v3-serving-h800",
                                {"gpus=256", "space.expert_parallel=[128]", "workload.concurrency=12672",
                                 "workload.expert_load={distribution: power_law, exponent: 1.2}",
                                 "hardware={stack.serving.redundant_experts: [0, 128]}"}))
    rate[row.at("stack_serving_redundant_experts")] = number(row, "tokens_per_s_per_gpu");
  EXPECT_NEAR(rate.at("128") / rate.at("0"), 855.0 / 604, 0.02);
}

// Qin et al. 2025 (Mooncake, FAST '25): 40 % of the tokens of these conversations' prompts can be reused. README: with
// room for all 42.7 % could be found; the GPUs keep less, and replicas that take turns find what one in four has seen.
TEST_F(StudiesTest, ConversationsFindWhatTheirCacheAndRouterKeep) {
  std::map<std::string, double> found, ttft;
  const auto read = [&](const std::vector<std::string>& settings, const std::string& name) {
    for (const CsvRow& row : rows("mooncake-prefix-kimi-k2", settings)) {
      const std::string of = name.empty() ? row.at("caching") : name;
      found[of] = number(row, "prefix_hit_share") + number(row, "host_hit_share");
      ttft[of] = number(row, "ttft_s");
    }
  };
  read({}, "");
  read({"hardware={stack.serving.host_cache: [9000 GB], stack.serving.routing: [prefix_aware]}"}, "all");
  EXPECT_EQ(found.at("none"), 0);
  EXPECT_NEAR(found.at("all"), 0.40, 0.03);
  EXPECT_LT(found.at("in_turn"), found.at("hosts"));
  EXPECT_LT(found.at("hosts"), found.at("routed"));
  EXPECT_LT(found.at("routed"), found.at("routed_hosts"));
  EXPECT_LT(found.at("routed_hosts"), found.at("all"));
  EXPECT_NEAR(ttft.at("routed_hosts") / ttft.at("none"), 0.72, 0.03);
}

}  // namespace
}  // namespace shardscape::cli
