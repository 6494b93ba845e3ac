// Do prices and power limits of devices become the cost and the energy of tokens, wherever plans are ranked?
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "tests/cli/program_under_test.h"

namespace shardscape::cli {
namespace {

using nlohmann::json;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Two kinds of GPUs, of which the faster one costs more than it gains.
constexpr const char* kPriced = R"(model: llama3.1-8b
cluster: dgx-h100
gpus: 8
stack: megatron-core
workload: {phase: training, precision: bf16, sequence_length: 4096, global_batch: 64}
space: {tensor_parallel: [1, 2, 4, 8], data_parallel: fill, microbatch_size: [1, 2]}
hardware:
  system:
    hopper: {device.price_per_hour: 2}
    blackwell: {cluster: dgx-b200, device.price_per_hour: 50}
)";

constexpr const char* kPricedServers = R"(model: llama3.1-8b
cluster: dgx-h100
gpus: [1, 2, 4, 8]
stack: vllm
workload: {phase: inference, precision: bf16, prompt_tokens: 1000, output_tokens: 100, request_rate: 60 /s, client: {requests: 300}}
space: {tensor_parallel: [1, 2, 4]}
promises: {ttft_p95: 2 s, tpot_p95: 40 ms}
)";

class CostTest : public ProgramTest {
 protected:
  void SetUp() override {
    write("study.yaml", kPriced);
    write("served.yaml", kPricedServers);
  }
  json answer(std::vector<std::string> words) {
    const Finished finished = run(words);
    EXPECT_EQ(finished.code, 0) << finished.err;
    return json::parse(finished.out);
  }
  json rows(std::vector<std::string> more) {
    more.insert(more.begin(), {"top", "out.h5"});
    more.insert(more.end(), {"--format", "json"});
    return answer(more);
  }
};

TEST_F(CostTest, TokensCostWhatTheirGpusDoMeanwhile) {
  ASSERT_EQ(run({"sweep", "study.yaml", "-o", "out.h5", "--confirm", "0"}).code, 0);
  const double tokens = 64 * 4096, gpus = 8;
  const std::map<std::string, double> prices = {{"hopper", 2}, {"blackwell", 50}},
                                      watts = {{"hopper", 700}, {"blackwell", 1000}};
  const json all = rows({"-n", "100", "--by", "cost"});
  ASSERT_GT(all.size(), 4U);
  double before = 0;
  for (const json& row : all) {
    const std::string system = row.at("system");
    const double step = row.at("step_time_s"), cost = row.at("cost_per_million_tokens");
    EXPECT_NEAR(cost / (gpus * prices.at(system) * step / 3600 / tokens * 1e6), 1, 1e-12) << row;
    EXPECT_NEAR(row.at("energy_per_token_j").get<double>() / (gpus * watts.at(system) * step / tokens), 1,
                1e-12);
    EXPECT_LE(before, cost);
    before = cost;
  }
  EXPECT_EQ(all.at(0).at("system"), "hopper");
  EXPECT_EQ(rows({"-n", "1"}).at(0).at("system"), "blackwell");  // by step time
  const double bound = all.at(2).at("cost_per_million_tokens");
  for (const json& row : rows({"--where", "cost < " + json(bound).dump()}))
    EXPECT_LT(row.at("cost_per_million_tokens"), bound);
  EXPECT_TRUE(contains(run({"top", "out.h5"}).out, "cost/M tokens"));

  const std::string system = "hardware.system=hopper";
  const json point = answer({"simulate", "study.yaml", "--set", system, "--point", "tp=8", "--json"});
  const std::vector<std::string> free = {"simulate", "study.yaml", "--set", "hardware.system={a: {}}",
                                         "--point",  "tp=8",       "--json"};
  json unpriced = answer(free);
  EXPECT_TRUE(unpriced.at("cost_per_million_tokens").is_null()) << "a price that is absent is not 0";
  EXPECT_EQ(point.at("expected_error"), unpriced.at("expected_error")) << "a price changes no evidence";
  EXPECT_EQ(point.at("step_time_s"), unpriced.at("step_time_s"));
}

TEST_F(CostTest, SearchFindsTheCheapest) {
  write("many.yaml", std::string(kSmallStudy) + "hardware: {device.price_per_hour: [3, 1.5]}\n");
  for (const std::string study : {"study.yaml", "many.yaml"}) {
    ASSERT_EQ(run({"sweep", study, "-o", "out.h5", "--confirm", "0", "--force"}).code, 0);
    const json cheapest = rows({"-n", "5", "--by", "cost"});
    const json found = answer({"search", study, "--progress", "none", "-n", "5", "--format", "json",
                               "--confirm", "0", "--set", "objectives=[cost_per_million_tokens]"});
    ASSERT_EQ(found.size(), 5U);
    for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(found.at(i).at("point_id"), cheapest.at(i).at("point_id"));
  }
}

TEST_F(CostTest, ADeviceWithoutAPriceHasNoCost) {
  const Finished refused = run({"check", "study.yaml", "--set", "hardware.system={a: {}}", "--set",
                                "objectives=[cost_per_million_tokens]"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(
      contains(refused.err, "cost_per_million_tokens has no value: the device says no price_per_hour"))
      << refused.err;
  // A pool that prefills has devices of its own, which cost as well.
  write("pools.yaml",
        std::string(kInferenceStudy) + "prefill_device: {base: a100-sxm-80gb, price_per_hour: 0}\n");
  const auto checked = [&](const char* pools) {
    return run({"check", "pools.yaml", "--set", std::string("space.prefill_gpus=") + pools, "--set",
                "device.price_per_hour=2", "--set", "objectives=[cost_per_million_tokens]"});
  };
  const Finished pooled = checked("[4]");
  EXPECT_EQ(pooled.code, 2);
  EXPECT_TRUE(
      contains(pooled.err, "cost_per_million_tokens has no value: the prefill_device says no price_per_hour"))
      << pooled.err;
  EXPECT_EQ(checked("[0, 4]").code, 0) << "points without a pool have costs";
  for (const char* topic : {"cost", "energy", "mfu"}) EXPECT_EQ(run({"help", topic}).code, 0) << topic;
}

// Brute force: the bill of every number of GPUs of either kind on which some plan keeps what is promised.
TEST_F(CostTest, CapacityAnswersWithTheCheapest) {
  for (const double price : {1.5, 2.5, 20.0}) {
    const std::string of_b200 = std::to_string(price);
    std::map<double, std::string> bills;
    for (const std::string& system : {std::string("{a: {device.price_per_hour: 2}}"),
                                      "{b: {cluster: dgx-b200, device.price_per_hour: " + of_b200 + "}}"}) {
      for (const char* gpus : {"[1]", "[2]", "[4]", "[8]"}) {
        const json one = answer({"capacity", "served.yaml", "--json", "--progress", "none", "--set",
                                 "hardware.system=" + system, "--set", std::string("gpus=") + gpus})
                             .at("answers")
                             .at(0);
        if (!one.at("gpus").is_null()) bills.emplace(one.at("cost_per_hour"), system + gpus);
      }
    }
    ASSERT_FALSE(bills.empty());
    const std::vector<std::string> both = {
        "capacity",
        "served.yaml",
        "--progress",
        "none",
        "--set",
        "hardware.system={a: {device.price_per_hour: 2}, b: {cluster: dgx-b200, device.price_per_hour: " +
            of_b200 + "}}"};
    std::vector<std::string> as_json = both;
    as_json.emplace_back("--json");
    const json found = answer(as_json).at("answers").at(0);
    EXPECT_EQ(found.at("cost_per_hour"), bills.begin()->first)
        << price << ' ' << bills.begin()->second << ' ' << found;
    EXPECT_NEAR(found.at("cost_per_million_tokens").get<double>(),
                found.at("cost_per_hour").get<double>() / 3600 /
                    (found.at("requests_per_s").get<double>() * 100) * 1e6,
                1e-2 * found.at("cost_per_million_tokens").get<double>());
    EXPECT_TRUE(contains(run(both).out, "cost/hour")) << run(both).out;
  }
}

// Of 4 GPUs 1 or 2 read, on a device that costs more or less than the others: the bill is that of both pools.
TEST_F(CostTest, UnequalPoolsCostWhatBothDo) {
  for (const auto& [price, readers, bill] :
       {std::tuple("4", 1, 3 * 2 + 4.0), std::tuple("0.5", 2, 2 * 2 + 1.0)}) {
    write("pools.yaml", std::string(R"(model: llama3.1-8b
cluster: dgx-h100
gpus: [4]
stack: vllm
workload: {phase: inference, prompt_tokens: 1000, output_tokens: 100, request_rate: 2 /s, client: {requests: 100}}
space: {tensor_parallel: [1], data_parallel: fill, prefill_gpus: [1, 2]}
hardware: {device.price_per_hour: [2]}
promises: {ttft_p95: 20 s}
prefill_device: {base: h200-sxm-141gb, price_per_hour: )") +
                            price + "}\n");
    const std::string point = "prefill_dp=" + std::to_string(readers);
    const json one = answer({"simulate", "pools.yaml", "--json", "--point", point});
    EXPECT_NEAR(one.at("cost_per_million_tokens").get<double>(),
                bill / 4 / 3600 / one.at("tokens_per_s_per_gpu").get<double>() * 1e6, 1e-9);
    const Finished text = run({"simulate", "pools.yaml", "--point", point});
    EXPECT_TRUE(contains(text.out, " per million tokens, at " + std::string(readers == 1 ? "2.5" : "1.25") +
                                       " per GPU and hour\n"))
        << text.out;
    const std::vector<std::string> capacity = {"capacity", "pools.yaml", "--progress", "none"};
    const json found = answer({"capacity", "pools.yaml", "--progress", "none", "--json"}).at("answers").at(0);
    EXPECT_EQ(found.at("cost_per_hour"), bill) << found;
    EXPECT_TRUE(found.at("plan").get<std::string>().ends_with(point)) << found;
    EXPECT_TRUE(contains(run(capacity).out, "the cheapest GPUs that keep")) << run(capacity).out;
  }
}

}  // namespace
}  // namespace shardscape::cli
