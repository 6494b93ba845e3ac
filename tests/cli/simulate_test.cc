// Does `simulate` say all of a point, in both of its languages?
#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/cli/program_under_test.h"

namespace shardscape::cli {
namespace {

using nlohmann::json;

class SimulateTest : public ProgramTest {
 protected:
  json simulate(const std::vector<std::string>& more, const char* study = kSmallStudy) {
    write("study.yaml", study);
    std::vector<std::string> words = {"simulate", "study.yaml", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const Finished finished = run(words);
    EXPECT_EQ(finished.code, 0) << finished.err;
    return json::parse(finished.out);
  }
};

std::set<std::string> keys(const json& object) {
  std::set<std::string> names;
  for (const auto& [key, value] : object.items()) names.insert(key);
  return names;
}

TEST_F(SimulateTest, SaysWhatToChangeWhereAPlanDoesNotFit) {
  const std::vector<std::string> tight = {"--set", "hardware.device.hbm.capacity_per_stack=6 GB"};
  std::vector<std::string> words = tight;
  words.insert(words.end(), {"--point", "tp=1,pp=1,dp=8,zero=0,recompute=none"});
  const json point = simulate(words);
  ASSERT_EQ(point.at("status"), "memory");
  const json& list = point.at("nearest_feasible");
  ASSERT_FALSE(list.empty());
  for (const json& near : list) {
    words = tight;
    const json& plan = near.at("plan");
    std::string text;
    for (const auto& [key, value] : plan.items()) {
      text += (text.empty() ? "" : ",") + key + "=" +
              (value.is_string() ? value.get<std::string>() : value.dump());
    }
    words.insert(words.end(), {"--point", text});
    const json again = simulate(words);
    EXPECT_EQ(again.at("status"), "ok") << text;
    EXPECT_EQ(again.at("memory_peak_bytes"), near.at("memory_peak_bytes")) << text;
    EXPECT_EQ(again.at("step_time_s"), near.at("step_time_s")) << text;
  }
}

TEST_F(SimulateTest, TrainingJsonHasItsKeysAndAddsUp) {
  const json point = simulate({"--point", "tp=2,pp=2,dp=2,zero=1,recompute=full"});
  EXPECT_EQ(point.at("status"), "ok");
  for (const char* key : {"step_time_s", "tokens_per_s_per_gpu", "mfu", "memory_peak_bytes"}) {
    EXPECT_GT(point.at(key).get<double>(), 0) << key;
  }
  EXPECT_FALSE(point.contains("ttft_s"));
  EXPECT_EQ(keys(point.at("memory")),
            (std::set<std::string>{"weights_bytes", "gradients_bytes", "optimizer_bytes", "activations_bytes",
                                   "logits_bytes", "kv_cache_bytes", "buffers_bytes", "reserve_bytes",
                                   "per_stage"}));
  EXPECT_EQ(keys(point.at("breakdown")),
            (std::set<std::string>{"compute_s", "recompute_s", "tp_comm_s", "cp_comm_s", "ep_comm_s",
                                   "pp_comm_s", "dp_comm_s", "bubble_s", "optimizer_s", "host_s"}));
  const double step = point.at("step_time_s"), peak = point.at("memory_peak_bytes");
  EXPECT_NEAR(sum(point.at("breakdown")), step, 1e-9 * step);
  EXPECT_NEAR(sum(point.at("memory")), peak, 1e-9 * peak);
  ASSERT_EQ(point.at("memory").at("per_stage").size(), 2U);
  double fullest = 0;
  for (const json& stage : point.at("memory").at("per_stage")) {
    fullest = std::max(fullest, stage.at("total_bytes").get<double>());
  }
  EXPECT_NEAR(fullest, peak, 1e-9 * peak);
  // 32 samples of 4096 tokens on 8 GPUs per step.
  EXPECT_NEAR(point.at("tokens_per_s_per_gpu").get<double>(), 32.0 * 4096 / 8 / step, 1e-6 * 16384 / step);
}

TEST_F(SimulateTest, InferenceJsonHasItsKeysAndAddsUp) {
  const json point = simulate({"--point", "tp=8,concurrency=16"}, kInferenceStudy);
  EXPECT_EQ(point.at("status"), "ok");
  for (const char* key : {"ttft_s", "itl_s", "e2e_s", "tokens_per_s_per_gpu", "memory_peak_bytes"}) {
    EXPECT_GT(point.at(key).get<double>(), 0) << key;
  }
  EXPECT_FALSE(point.contains("step_time_s"));
  EXPECT_FALSE(point.contains("mfu"));
  EXPECT_GT(point.at("memory").at("kv_cache_bytes").get<double>(), 0);
  const double whole = point.at("e2e_s");
  EXPECT_NEAR(sum(point.at("breakdown")), whole, 1e-9 * whole);
}

TEST_F(SimulateTest, TimeIsPredictedWhateverTheMemoryVerdict) {
  const std::vector<std::string> point = {"--point", "tp=1,pp=1,mbs=4,recompute=none,zero=0", "--set",
                                          "model=llama3.1-70b"};
  const json infeasible = simulate(point);
  EXPECT_EQ(infeasible.at("status"), "memory");
  EXPECT_EQ(infeasible.at("reason"), "memory_capacity");
  EXPECT_GT(infeasible.at("memory_peak_bytes"), infeasible.at("memory_capacity_bytes"));
  EXPECT_GT(infeasible.at("step_time_s").get<double>(), 0);
  const Finished text = run({"simulate", "study.yaml", point[0], point[1], point[2], point[3]});
  EXPECT_TRUE(contains(text.out, "memory_capacity")) << text.out;
  EXPECT_TRUE(contains(text.out, "as if it fitted")) << text.out;
}

TEST_F(SimulateTest, IndivisiblePlansSayWhyAndPredictNothing) {
  const json point = simulate({"--point", "dp=8,tp=1,pp=1,mbs=3"});  // 32 % (8 * 3)
  EXPECT_EQ(point.at("status"), "indivisible");
  EXPECT_EQ(point.at("reason"), "batch_by_data");
  EXPECT_TRUE(point.at("step_time_s").is_null());
  EXPECT_TRUE(point.at("memory_peak_bytes").is_null());
  const Finished text = run({"simulate", "study.yaml", "--point", "dp=8,tp=1,pp=1,mbs=3", "--explain"});
  EXPECT_EQ(text.code, 0);
  EXPECT_TRUE(contains(text.out, "the global batch does not divide by dp * mbs")) << text.out;
}

TEST_F(SimulateTest, ExplainListsTheOperators) {
  write("study.yaml", kSmallStudy);
  const Finished finished =
      run({"simulate", "study.yaml", "--point", "tp=2,pp=2,dp=2,zero=1,recompute=full", "--explain"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  for (const char* part :
       {"plan      tp=2,sp=1,pp=2,dp=2,zero=1,recompute=full,mbs=1,schedule=1f1b", "verdict   ok", "weights",
        "stages", "compute", "operators on the critical rank", "forward", "backward", "qkv_projection"}) {
    EXPECT_TRUE(contains(finished.out, part)) << part << " not in\n" << finished.out;
  }
}

TEST_F(SimulateTest, ExplainHasTheGradientsAndTheOptimizer) {
  const json point = simulate({"--point", "tp=2,pp=2,dp=2,zero=1", "--explain"});
  std::map<std::string, json> rows;
  double shares = 0;
  for (const json& row : point.at("operators")) {
    rows[row.at("phase").get<std::string>() + ' ' + row.at("operator").get<std::string>()] = row;
    shares += row.at("bound") == "link" ? 0 : row.at("share").get<double>();
  }
  for (const char* due : {"backward qkv_projection_dgrad", "backward qkv_projection_wgrad",
                          "backward gradient_accumulation", "step optimizer"}) {
    ASSERT_TRUE(rows.contains(due)) << due;
    EXPECT_GT(rows.at(due).at("time_s").get<double>(), 0) << due;
    EXPECT_FALSE(rows.at(due).at("bound").get<std::string>().empty()) << due;
  }
  const json& breakdown = point.at("breakdown");
  const double device = breakdown.at("compute_s").get<double>() + breakdown.at("recompute_s").get<double>() +
                        breakdown.at("optimizer_s").get<double>();
  EXPECT_NEAR(shares * point.at("step_time_s").get<double>() / device, 1, 1e-9);
  double sum = 0;
  for (const auto& [name, seconds] : breakdown.items()) sum += seconds.get<double>();
  EXPECT_NEAR(sum / point.at("step_time_s").get<double>(), 1, 1e-12);
}

TEST_F(SimulateTest, WorthIsWhatTheChangedStudyTakes) {
  const std::string key = "hardware.fabric.nvswitch.bandwidth";
  const auto at = [&](const char* bandwidth, bool worth) {
    std::vector<std::string> words = {"--point", "tp=8,pp=1,dp=1", "--set", key + '=' + bandwidth};
    if (worth) words.emplace_back("--worth");
    return simulate(words);
  };
  const json point = at("100 GB/s", true);
  EXPECT_EQ(point.at("base_s"), point.at("step_time_s"));
  const auto& all = point.at("worth");
  const auto found = std::ranges::find_if(all, [&](const json& one) { return one.at("key") == key; });
  ASSERT_NE(found, all.end());
  const double more = found->at("more_s"), less = found->at("less_s"), base = point.at("base_s");
  EXPECT_EQ(more, at("105 GB/s", false).at("step_time_s"));
  EXPECT_EQ(less, at("95 GB/s", false).at("step_time_s"));
  EXPECT_LT(more, base);
  EXPECT_LT(base, less);
  EXPECT_EQ(found->at("unit_text"), "1 GB/s more");
  EXPECT_NEAR(found->at("per_unit_s").get<double>(), (more - less) / 10, 1e-12 * base);  // 10 GB/s apart

  // As a table: the strongest first, and the number that moves nothing is only counted.
  const std::string text = run({"simulate", "study.yaml", "--point", "tp=8,pp=1,dp=1", "--worth"}).out;
  EXPECT_NE(text.find("\nworth of numbers\n  number"), std::string::npos) << text;
  EXPECT_NE(text.find("\n  fabric.nvswitch.bandwidth "), std::string::npos) << text;
  EXPECT_NE(text.find(" by 0.001 % or more, "), std::string::npos) << text;
  EXPECT_NE(text.find(" do not. A step is a straight line"), std::string::npos) << text;
  const json plain = simulate({"--point", "tp=8,pp=1,dp=1", "--worth"});
  EXPECT_EQ(plain.at("worth_least_share"), 1e-5);
  const auto time = plain.at("base_s").get<double>();
  for (const json& one : plain.at("worth")) {
    double reach = 0;
    for (const char* moved : {"more_s", "less_s"})
      if (!one.at(moved).is_null()) reach = std::max(reach, std::abs(one.at(moved).get<double>() - time));
    const std::string name = one.at("key").get<std::string>().substr(std::string("hardware.").size());
    EXPECT_EQ(text.find("\n  " + name + " ") != std::string::npos, reach >= 1e-5 * time) << name;
  }

  const json rejected = simulate({"--point", "dp=8,tp=1,pp=1,mbs=3", "--worth"});
  EXPECT_TRUE(rejected.at("base_s").is_null());
  EXPECT_TRUE(rejected.at("worth").empty());
}

// A rate of --point has as many requests as the study has at it.
TEST_F(SimulateTest, ARateOfThePointHasItsOwnRequests) {
  const auto lasts = [&](const std::string& load, const std::string& point,
                         const std::string& lengths = "prompt_tokens: 100, output_tokens: 10, ") {
    write("rated.yaml",
          "model: llama3.1-8b\ncluster: dgx-h100\ngpus: 8\nstack: sglang\nworkload: {phase: inference, " +
              lengths + load + "}\nspace: {tensor_parallel: [1], data_parallel: fill}\n");
    const Finished finished = run({"simulate", "rated.yaml", "--json", "--point", "tp=1" + point});
    EXPECT_EQ(finished.code, 0) << finished.err;
    return json::parse(finished.out);
  };
  const std::string slow = "request_rate: 2 /s", fast = "request_rate: 50 /s";
  EXPECT_EQ(lasts(slow, ",request_rate=50").at("ttft_p99_s"), lasts(fast, "").at("ttft_p99_s"));
  EXPECT_EQ(lasts(fast, ",request_rate=2").at("queue_s"), lasts(slow, "").at("queue_s"));
  // And so has a number of clients; the longest of more requests is longer.
  const std::string spread =
      "prompt_tokens: {lognormal: {mean: 4000, cv: 1}}, output_tokens: {lognormal: {mean: 10, cv: 1}}, ";
  for (const auto& [load, other, point] :
       {std::tuple(slow, fast, ",request_rate=50"), std::tuple(fast, slow, ",request_rate=2"),
        std::tuple(std::string("concurrency: 8"), std::string("concurrency: 64"), ",concurrency=64")}) {
    const json at = lasts(load, point, spread), own = lasts(other, "", spread);
    EXPECT_NE(at.at("memory_peak_bytes"), lasts(load, "", spread).at("memory_peak_bytes")) << point;
    for (const char* key : {"memory_peak_bytes", "ttft_p99_s", "e2e_s"})
      EXPECT_EQ(at.at(key), own.at(key)) << key << point;
  }
}

// The longest of many requests is longer than the longest of few, so that it may be beyond what the model has.
TEST_F(SimulateTest, RequestsOfThePointAreHeldAgainstTheModel) {
  const auto at = [&](const std::string& model, const std::string& mean) {
    write("few.yaml", "model: " + model +
                          "\ncluster: dgx-h100\ngpus: 1\nstack: sglang\n"
                          "workload: {phase: inference, prompt_tokens: {lognormal: {mean: " +
                          mean +
                          ", cv: 1}}, output_tokens: 10, concurrency: 1}\nspace: {tensor_parallel: [1]}\n");
    return run({"simulate", "few.yaml", "--point", "tp=1,concurrency=256"});
  };
  const Finished refused = at("opt-1.3b", "400");
  EXPECT_EQ(refused.code, 2) << refused.out;
  EXPECT_TRUE(contains(refused.err, "are more than the 2050 learned positions of model opt-1.3b"))
      << refused.err;
  EXPECT_EQ(run({"check", "few.yaml"}).err, "");
  const Finished warned = at("llama2-7b", "800");
  EXPECT_EQ(warned.code, 0) << warned.err;
  EXPECT_TRUE(contains(warned.err, "and model llama2-7b is published for 4096 (context)")) << warned.err;
  EXPECT_EQ(run({"check", "few.yaml"}).err, "");
}

TEST_F(SimulateTest, StepsOfWorthAreSmallAgainstTheirNumbers) {
  // A tenth of 74 ns is 7.4 ns, of 8 MiB 0.84 MB, and of 2,039 GB/s more than a unit.
  const json point =
      simulate({"--point", "tp=8,pp=1,dp=1", "--worth", "--set", "hardware.device.kernel_latency=74 ns",
                "--set", "hardware.device.l2.capacity=8 MiB"});
  const auto worth = [&](const std::string& key) {
    const json& all = point.at("worth");
    const auto found =
        std::ranges::find_if(all, [&](const json& one) { return one.at("key") == "hardware." + key; });
    EXPECT_NE(found, all.end()) << key;
    return found == all.end() ? json() : *found;
  };
  const json latency = worth("device.kernel_latency");
  EXPECT_EQ(latency.at("unit_text"), "1 ns less");
  const double more = latency.at("more_s"), less = latency.at("less_s");
  EXPECT_NEAR(latency.at("per_unit_s").get<double>() / ((less - more) / 7.4), 1,
              1e-9);  // 5 % of 74 ns either way
  EXPECT_EQ(worth("device.l2.capacity").at("unit_text"), "100 kB more");
  EXPECT_EQ(worth("device.hbm.bandwidth_per_stack").at("unit_text"), "1 GB/s more");
}

TEST_F(SimulateTest, SickLinkNeverHelps) {
  const std::string point = "tp=8,pp=1,dp=1";
  const double healthy = simulate({"--point", point}).at("step_time_s");
  const double sick =
      simulate({"--point", point, "--fault", "0-8=0.1"}).at("step_time_s");  // GPU 0 to the switch
  const double idle = simulate({"--point", point, "--fault", "0-8=1"}).at("step_time_s");
  EXPECT_GT(sick, healthy);
  EXPECT_EQ(idle, healthy);
}

TEST_F(SimulateTest, ExplainNamesTheAlgorithmOfEachCollective) {
  const auto simulate_with = [&](const std::string& algorithms) {
    return simulate(
        {"--point", "tp=8,pp=1,dp=1", "--explain", "--set",
         "stack={name: s, communication: {bucket: 1 GB, rank_step: 5 us, algorithms: " + algorithms + "}}"});
  };
  const json ring = simulate_with("[ring, dimension_wise]");
  int collectives = 0;
  for (const json& row : ring.at("operators")) {
    if (row.at("bound") != "link") continue;
    ++collectives;
    EXPECT_EQ(row.at("algorithm"), "ring") << row;
  }
  EXPECT_GT(collectives, 0);
  const json chosen = simulate_with("auto");
  bool seen = false;
  for (const json& row : chosen.at("operators")) seen |= row.value("algorithm", "") == "direct";
  EXPECT_TRUE(seen) << "one round instead of seven is cheaper behind one switch";
  EXPECT_LT(chosen.at("step_time_s").get<double>(), ring.at("step_time_s").get<double>());
}

TEST_F(SimulateTest, RemovedLinkOfTheOnlySwitchCutsTheGroup) {
  const std::string point = "tp=8,pp=1,dp=1";
  for (const char* link : {"0-8=dead", "0-8=0", "0->switch 0=dead"}) {
    SCOPED_TRACE(link);
    const json cut = simulate({"--point", point, "--fault", link});
    EXPECT_EQ(cut.at("status"), "unreachable");
    EXPECT_EQ(cut.at("reason"), "no_route");
    EXPECT_TRUE(cut.at("step_time_s").is_null());
    EXPECT_GT(cut.at("memory_peak_bytes").get<double>(), 0);
    EXPECT_TRUE(contains(cut.at("cut"), "0 -> switch 0")) << cut.at("cut");
  }
  const Finished text = run({"simulate", "study.yaml", "--point", point, "--fault", "0-8=dead"});
  EXPECT_EQ(text.code, 0);
  EXPECT_TRUE(contains(text.out, "no way from")) << text.out;
}

TEST_F(SimulateTest, TimelineDrawsEveryMicrobatchOfEveryStage) {
  const json point = simulate({"--point", "tp=2,pp=2,dp=2", "--timeline", "step.json"});
  std::ifstream in(work() / "step.json");
  const json trace = json::parse(in);
  std::map<int, std::set<int>> drawn;  // microbatches, by process; a process is a stage, the first is 1
  double end_us = 0;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    if (event.at("cat") == "compute" && event.at("args").contains("microbatch")) {
      drawn[event.at("pid").get<int>()].insert(event.at("args").at("microbatch").get<int>());
    }
    end_us = std::max(end_us, event.at("ts").get<double>() + event.at("dur").get<double>());
  }
  constexpr std::size_t kMicrobatches =
      32 / 2 / 1;  // global batch over dp and the study's first microbatch size
  for (const int process : {1, 2}) EXPECT_EQ(drawn[process].size(), kMicrobatches);
  // What is drawn ends with the step, but for the fixed host time around it.
  EXPECT_LE(end_us, 1e6 * point.at("step_time_s").get<double>() * (1 + 1e-9));
  EXPECT_GT(end_us, 0.5e6 * point.at("step_time_s").get<double>());
}

TEST_F(SimulateTest, PlacementNamesWhatEachAxisCrosses) {
  const json placement = simulate({"--point", "tp=2,pp=2,dp=2"}).at("placement");
  EXPECT_FALSE(placement.contains("optimised"));
  std::map<std::string, json> axes;
  for (const json& axis : placement.at("axes")) axes[axis.at("axis")] = axis;
  EXPECT_EQ(axes.size(), 5U);
  EXPECT_EQ(axes.at("tp").at("degree"), 2);
  EXPECT_EQ(axes.at("tp").at("stride"), 1);
  EXPECT_EQ(axes.at("pp").at("stride"), 4);
  EXPECT_EQ(axes.at("cp").at("contention"), 0);
  EXPECT_EQ(axes.at("dp*cp").at("degree"), 2);
  EXPECT_EQ(axes.at("dp").at("dimensions").size(), 1U);
  EXPECT_EQ(axes.at("dp").at("hops"), 2);  // over the node's switch
  EXPECT_EQ(axes.at("dp").at("contention"), 1);
}

TEST_F(SimulateTest, OptimisedPlacementSaysWhatItGains) {
  // Pipelines on the tori, tensor groups on the slow rings between them: there is a lot to gain.
  const char* const study =
      "study: torus\nmodel: llama3.1-70b\ncluster: a100-torus2d-ring-64\nstack: megatron-lm\n"
      "workload: {phase: training, sequence_length: 4096, global_batch: 128, precision: bf16}\n"
      "space: {tensor_parallel: [4], pipeline_parallel: [4], data_parallel: fill, zero_stage: [1],\n"
      "  recompute: [selective], sequence_parallel: [true], rank_order: [pp-dp-cp-tp]}\n"
      "objectives: [step_time_s]\n";
  const json point = simulate({"--optimise-placement"}, study);
  const json& optimised = point.at("placement").at("optimised");
  const json& before = optimised.at("before");
  const json& after = optimised.at("after");
  EXPECT_EQ(before.at("step_time_s"), point.at("step_time_s"));
  EXPECT_LT(after.at("congestion_s").get<double>(), 0.5 * before.at("congestion_s").get<double>());
  EXPECT_LT(after.at("step_time_s").get<double>(), 0.8 * before.at("step_time_s").get<double>());
  const json good = simulate({"--point", "order=tp-cp-dp-pp"}, study);
  EXPECT_LE(after.at("step_time_s").get<double>(), good.at("step_time_s").get<double>() * (1 + 1e-9));
  std::vector<int> ranks = optimised.at("physical_rank");
  std::sort(ranks.begin(), ranks.end());
  ASSERT_EQ(ranks.size(), 64U);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(ranks[static_cast<std::size_t>(i)], i);
  EXPECT_EQ(simulate({"--optimise-placement"}, study), point);
}

TEST_F(SimulateTest, NothingToPlaceForARejectedPlan) {
  write("study.yaml", kSmallStudy);
  const Finished finished =
      run({"simulate", "study.yaml", "--optimise-placement", "--point", "tp=1,pp=1,dp=8,mbs=3"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_TRUE(finished.out.empty());
  EXPECT_TRUE(contains(finished.err, "--optimise-placement")) << finished.err;
  EXPECT_TRUE(contains(finished.err, "batch_by_data")) << finished.err;
}

TEST_F(SimulateTest, FlattenedJsonHasTheSameKeysAndAddsUp) {
  const std::vector<std::string> point = {"--point", "tp=2,pp=2,dp=2"};
  const json hierarchical = simulate(point);
  const json flattened = simulate({"--point", "tp=2,pp=2,dp=2", "--mode", "flattened"});
  EXPECT_EQ(keys(flattened), keys(hierarchical));
  EXPECT_EQ(keys(flattened.at("breakdown")), keys(hierarchical.at("breakdown")));
  const double step = flattened.at("step_time_s").get<double>();
  EXPECT_NEAR(sum(flattened.at("breakdown")), step, 1e-9 * step);
  EXPECT_NEAR(step / hierarchical.at("step_time_s").get<double>(), 1, 0.05);
  EXPECT_EQ(simulate(point, (std::string(kSmallStudy) + "mode: flattened\n").c_str()), flattened);
  EXPECT_FALSE(hierarchical.at("outside_domain").get<bool>());
  EXPECT_EQ(simulate({"--point", "tp=2,pp=2,dp=2", "--mode", "checked"}), hierarchical);
}

TEST_F(SimulateTest, FlattenedModeTakesAThousandGpus) {
  // 8 layers, 4 microbatches: every message of 1,024 ranks.
  write("model.yaml",
        "name: eight-layers\nlayers: 8\nhidden: 4096\nheads: 32\nkv_heads: 8\nffn_hidden: 14336\n"
        "vocabulary: 128256\nmlp: swiglu\nnorm: rmsnorm\nposition: rotary\ntied_embeddings: false\n"
        "source: shapes of Llama 3.1 8B, a quarter of its layers\n");
  const json document =
      simulate({"--mode", "flattened"},
               "study: thousand\nmodel: ./model.yaml\ncluster: dgx-h100\ngpus: 1024\nstack: megatron-lm\n"
               "workload: {phase: training, sequence_length: 4096, global_batch: 128, precision: bf16}\n"
               "space:\n  tensor_parallel: [8]\n  sequence_parallel: [true]\n  pipeline_parallel: [4]\n"
               "  data_parallel: fill\n  recompute: [full]\nobjectives: [step_time_s]\n");
  EXPECT_EQ(document.at("status"), "ok");
  const double step = document.at("step_time_s");
  EXPECT_GT(step, 0);
  EXPECT_NEAR(sum(document.at("breakdown")), step, 1e-9 * step);
}

TEST_F(SimulateTest, CompareShowsBothModesByClass) {
  const json both = simulate({"--point", "tp=2,pp=2,dp=2", "--compare"});
  const json& difference = both.at("difference");
  const double h = both.at("hierarchical").at("step_time_s").get<double>();
  const double f = both.at("flattened").at("step_time_s").get<double>();
  EXPECT_DOUBLE_EQ(difference.at("step_time_s").get<double>(), f - h);
  EXPECT_NEAR(difference.at("step_time_share").get<double>(), f / h - 1, 1e-12);
  EXPECT_NEAR(sum(difference.at("breakdown")), f - h, 1e-9 * h);
  EXPECT_GT(both.at("events").get<std::int64_t>(), 1000);
  const Finished text = run({"simulate", "study.yaml", "--point", "tp=2,pp=2,dp=2", "--compare"});
  EXPECT_EQ(text.code, 0);
  EXPECT_NE(text.out.find("hierarchical against flattened"), std::string::npos);
}

TEST_F(SimulateTest, CompareRefusesWhatIsOfOneMode) {
  write("study.yaml", kSmallStudy);
  const std::vector<std::vector<std::string>> of_one_mode = {
      {"--timeline", "t.json"}, {"--chakra", "traces"}, {"--mode", "flattened"},
      {"--schedule-text"},      {"--explain"},          {"--optimise-placement"}};
  for (const std::vector<std::string>& more : of_one_mode) {
    std::vector<std::string> arguments = {"simulate", "study.yaml", "--point", "tp=2,pp=2,dp=2", "--compare"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished refused = run(arguments);
    EXPECT_EQ(refused.code, 2) << more.front();
    EXPECT_NE(refused.err.find(more.front()), std::string::npos) << refused.err;
  }
  EXPECT_FALSE(fs::exists(work() / "t.json"));
  EXPECT_FALSE(fs::exists(work() / "traces"));
}

TEST_F(SimulateTest, ReferencePathAgrees) {
  const json fast = simulate({"--point", "tp=2,pp=2,dp=2"});
  const json plain = simulate({"--point", "tp=2,pp=2,dp=2", "--reference"});
  const double step = fast.at("step_time_s");
  EXPECT_NEAR(plain.at("step_time_s"), step, 1e-9 * step);
  for (const auto& [part, seconds] : fast.at("breakdown").items()) {
    EXPECT_NEAR(plain.at("breakdown").at(part), seconds.get<double>(), 1e-9 * step) << part;
  }
  EXPECT_EQ(plain.at("memory"), fast.at("memory"));
}

TEST_F(SimulateTest, OfSeveralNumbersOfGpusItSaysWhichAndWhatTheMostAllow) {
  write("study.yaml", kSmallStudy);
  const auto simulated = [&](const std::string& point) {
    return run({"simulate", "study.yaml", "--set", "gpus=[8, 4, 2]", "--point", point});
  };
  const Finished four = simulated("tp=4,dp=1,pp=1");
  EXPECT_EQ(four.code, 0) << four.err;
  EXPECT_TRUE(contains(four.err, "this is the first on 4 GPUs (gpus=4")) << four.err;
  const std::string wide = simulated("tp=16").err, many = simulated("tp=4,pp=1,dp=4").err;
  EXPECT_TRUE(contains(wide, "from 1 to 8 (or one of gpus: [2, 4, 8])")) << wide;
  EXPECT_TRUE(contains(many, "must be the number of GPUs, 8 (or one of gpus: [2, 4, 8])")) << many;
}

TEST_F(ProgramTest, CountsOfOneAreNoPlural) {
  write("study.yaml", kSmallStudy);
  const std::string text =
      run({"simulate", "study.yaml", "--set", "workload.global_batch=1", "--point", "tp=8,mbs=1"}).out;
  EXPECT_TRUE(contains(text, ", 1 microbatch\n")) << text;
}

// A run of a client has a rate of its own, that at which its requests are drawn; one at a constant rate does not.
TEST_F(SimulateTest, SaysTheRateOfThisRunBesideTheOneAskedFor) {
  std::string served = kInferenceStudy;
  served.replace(served.find("concurrency: [8, 32]"), 20,
                 "request_rate: 2 /s, client: {requests: 100, seed: 3}");
  const json point = simulate({"--point", "tp=8", "--timeline", "load.json"}, served.c_str());
  EXPECT_EQ(point.at("request_rate_per_s"), 2.0);
  // The moments at which the timeline has requests sent, the last of them the end of all gaps.
  double last = 0;
  int requests = 0;
  const json timeline = json::parse(read_file(work() / "load.json"));
  for (const json& event : timeline.at("traceEvents")) {
    if (event.at("name").get<std::string>() != "wait") continue;
    last = std::max(last, event.at("ts").get<double>() / 1e6);
    ++requests;
  }
  EXPECT_EQ(requests, 100);
  const double sent = point.at("sent_requests_per_s");
  EXPECT_GT(std::abs(sent / 2 - 1), 1e-3);
  EXPECT_NEAR(sent, 100 / last, 1e-5 * sent);
  const Finished text = run({"simulate", "study.yaml", "--point", "tp=8"});
  EXPECT_TRUE(
      contains(text.out, " the rate asked for, as the arrivals of 100 requests are drawn at random\n"))
      << text.out;
  EXPECT_TRUE(contains(text.out, sent > 2 ? " % above the rate" : " % below the rate")) << text.out;
  served.insert(served.find("request_rate"), "arrivals: constant, ");
  const json even = simulate({"--point", "tp=8"}, served.c_str());
  EXPECT_FALSE(even.contains("sent_requests_per_s"));
  EXPECT_FALSE(contains(run({"simulate", "study.yaml", "--point", "tp=8"}).out, "drawn at random"));
}

// The error to expect of a plan that does not fit is that of times as if it did, which is said beside it.
// Blocks come back from the host at 1 GB/s: waiting for them is a part of the time like any other.
TEST_F(ProgramTest, WaitingForTheHostIsAPartOfTheRequest) {
  write("host.yaml", R"(model: llama3.1-8b
cluster: dgx-h100
gpus: 2
stack: vllm
workload: {phase: inference, precision: bf16, prompt_tokens: 8000, output_tokens: 20, concurrency: 32, client: {requests: 160}, sessions: {turns: 4, new_tokens: 500, think_time: 2 s}}
space: {tensor_parallel: [1]}
hardware: {stack.serving.kv_share: [0.3], stack.serving.host_cache: [20 GB], stack.serving.host_bandwidth: [1 GB/s]}
)");
  const json point = json::parse(run({"simulate", "host.yaml", "--point", "0", "--json"}).out);
  EXPECT_GT(point.at("host_hit_share").get<double>(), 0);
  EXPECT_GT(point.at("breakdown").at("kv_transfer_exposed_s").get<double>(), 0);
  const auto whole = point.at("e2e_s").get<double>();
  EXPECT_NEAR(sum(point.at("breakdown")), whole, 1e-9 * whole);
}

// 70B on two GPUs leaves room for some 40,000 tokens. The longest of 80 requests has a third of that, where five
// deviations of their lengths were more than twice as many; a twentieth of the room holds none.
TEST_F(ProgramTest, MemoryIsThatOfTheRequestsThatCome) {
  write("random.yaml", R"(model: llama3.1-70b
cluster: dgx-h100
gpus: 2
stack: vllm
workload: {phase: inference, precision: bf16, prompt_tokens: {lognormal: {mean: 2000, cv: 1}}, output_tokens: {lognormal: {mean: 250, cv: 0.8}}, concurrency: 8, client: {requests: 80}}
space: {tensor_parallel: [2]}
)");
  const Finished fits = run({"simulate", "random.yaml", "--point", "0"});
  EXPECT_TRUE(contains(fits.out, "verdict   ok")) << fits.out;
  const Finished none =
      run({"simulate", "random.yaml", "--point", "0", "--set", "hardware={stack.serving.kv_share: [0.05]}"});
  EXPECT_TRUE(contains(none.out, "verdict   memory")) << none.out;
  EXPECT_TRUE(contains(none.out, "does not hold the longest prompt and the longest answer")) << none.out;
}

TEST_F(SimulateTest, TheErrorOfAPlanThatDoesNotFitSaysSo) {
  const std::vector<std::string> point = {"--point", "tp=1,pp=1,mbs=4,recompute=none,zero=0", "--set",
                                          "model=llama3.1-70b"};
  const std::string says = "; the plan does not fit, this is of its time as if it did";
  const json infeasible = simulate(point);
  ASSERT_EQ(infeasible.at("status"), "memory");
  EXPECT_TRUE(infeasible.at("evidence_reason").get<std::string>().ends_with(says)) << infeasible;
  const Finished text = run({"simulate", "study.yaml", point[0], point[1], point[2], point[3]});
  EXPECT_TRUE(contains(text.out, says + '\n')) << text.out;
  const std::vector<std::string> fits = {"simulate", "study.yaml", "--point",
                                         "tp=8,pp=1,dp=1,recompute=full,mbs=1"};
  EXPECT_FALSE(contains(run(fits).out, "does not fit, this"));
}

}  // namespace
}  // namespace shardscape::cli
