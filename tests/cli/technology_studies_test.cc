// Do the ready studies on technology hold to what must be true of them, whatever the models say? At reduced
// size.
#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli/program_under_test.h"
#include "tests/support/paths.h"

namespace shardscape::cli {
namespace {

using nlohmann::json;

class TechnologyStudies : public ProgramTest {
 protected:
  /// The best row of every combination of the columns.
  json best(const std::string& study, const std::string& per, const std::vector<std::string>& settings) {
    std::vector<std::string> sweep = {"sweep", test::source_dir() + "/sweep/studies/" + study, "-o", "out.h5",
                                      "--force"};
    for (const std::string& setting : settings) sweep.insert(sweep.end(), {"--set", setting});
    const Finished swept = run(sweep);
    EXPECT_EQ(swept.code, 0) << swept.err;
    const Finished top = run({"top", "out.h5", "--per", per, "--format", "json"});
    EXPECT_EQ(top.code, 0) << top.err;
    return top.code == 0 ? json::parse(top.out) : json::array();
  }
};

// Five stacks of HBM (JEDEC: pins x rate / 8 bits), ten devices of GDDR6, ten packages of LPDDR5X; each token
// after the first reads the weights of the blocks and the head once, half of them on each of two GPUs: 40
// blocks of (4 * 5120^2 + 3 * 5120 * 13824) and 32000 * 5120, of two bytes.
TEST_F(TechnologyStudies, LatencyFallsWithBandwidthAndStaysAboveWhatItMustRead) {
  const std::map<std::string, double> bandwidth = {
      {"gddr6", 10 * 32 * 16e9 / 8},   {"lpddr5x", 10 * 64 * 8.533e9 / 8}, {"hbm2", 5 * 1024 * 2.4e9 / 8},
      {"hbm2e", 5 * 1024 * 3.2e9 / 8}, {"hbm3", 5 * 1024 * 6.4e9 / 8},     {"hbm3e", 5 * 1024 * 9.2e9 / 8},
      {"hbm4", 5 * 2048 * 8e9 / 8}};
  const json rows = best("llama2-13b-dram.yaml", "technology_memory", {"workload.output_tokens=21"});
  ASSERT_EQ(rows.size(), bandwidth.size());
  const double weights = 2 * (40 * (4 * 5120.0 * 5120 + 3 * 5120.0 * 13824) + 32000 * 5120.0) / 2;
  std::map<double, double> latency;  // key: bandwidth
  for (const json& row : rows) {
    const double rate = bandwidth.at(row.at("technology_memory").get<std::string>());
    const double token = row.at("itl_s").get<double>();
    EXPECT_GE(token, weights / rate) << row.at("technology_memory");
    EXPECT_GE(row.at("e2e_s").get<double>(), 20 * weights / rate);
    latency[rate] = token;
  }
  double last_rate = 0, last = 0, last_use = 1;
  for (const auto& [rate, token] : latency) {
    if (last_rate > 0) {
      EXPECT_LE(token, last);
      EXPECT_GE(token, last * last_rate / rate * (1 - 1e-9));    // no more than in proportion
      EXPECT_LE(weights / rate / token, last_use * (1 + 1e-9));  // the bandwidth is used less and less
    }
    last_rate = rate;
    last = token;
    last_use = weights / rate / token;
  }
}

// With power to spare every clock is at its most, so a better memory or network costs nothing and can't hurt.
// The matrix FLOPs of the step are at least 6 per parameter and token.
TEST_F(TechnologyStudies, WithPowerToSpareNothingBetterIsSlower) {
  const json rows =
      best("technology-nodes.yaml", "technology_logic,technology_memory,technology_network",
           {"hardware.technology.power=5 kW", "hardware.technology.logic=[n12, n5, a10]",
            "hardware.technology.memory=[hbm2e, hbm4]", "hardware.technology.network=[ndr-x8, ldr-x8]",
            "gpus=64", "workload.global_batch=64", "space.microbatch_size=1", "space.schedule=interleaved",
            "space.virtual_stages=3"});
  ASSERT_EQ(rows.size(), 12U);
  const auto time = [&](std::size_t logic, std::size_t memory, std::size_t network) {
    return rows.at(logic * 4 + memory * 2 + network).at("step_time_s").get<double>();
  };
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 2; ++j) {
      EXPECT_LE(time(i, j, 1), time(i, j, 0));
      EXPECT_LE(time(i, 1, j), time(i, 0, j));
      if (i > 0) {
        EXPECT_LT(time(i, j, 0), time(i - 1, j, 0));
      }
    }
  }
  for (const json& row : rows) EXPECT_LT(row.at("mfu").get<double>(), 1);
}

// A step that gains one part at a time: no part slows it, and none can gain more than its own ratio. From the
// A100 to the GB200 in fp4 the peak grows by 10 / 0.312 = 32 times, in bf16 by 2.5 / 0.312 = 8.
TEST_F(TechnologyStudies, EveryPartFromA100ToB200Counts) {
  const json rows =
      best("gpt-175b-a100-to-b200.yaml", "system,precision",
           {"space.tensor_parallel=8", "space.pipeline_parallel=8", "space.microbatch_size=1",
            "space.rank_order=tp-cp-dp-pp", "space.schedule=interleaved", "space.virtual_stages=3"});
  std::map<std::pair<std::string, std::string>, double> time;
  for (const json& row : rows) {
    time[{row.at("system").get<std::string>(), row.at("precision").get<std::string>()}] =
        row.at("step_time_s").get<double>();
    EXPECT_LT(row.at("mfu").get<double>(), 1);
  }
  const auto at = [&](const char* system, const char* precision) { return time.at({system, precision}); };
  // Left out is the domain of 36 GPUs, which groups of 8 straddle.
  const std::vector<std::pair<const char*, const char*>> chain = {
      {"a100", "bf16"},      {"h100_compute", "bf16"}, {"h100_memory", "bf16"},  {"h100", "bf16"},
      {"h100", "fp8"},       {"h200", "fp8"},          {"b200_compute", "fp8"},  {"b200_memory", "fp8"},
      {"b200", "fp8"},       {"b200", "fp4"},          {"b200_domain16", "fp4"}, {"b200_domain72", "fp4"},
      {"gb200_nvl72", "fp4"}};
  for (std::size_t i = 1; i < chain.size(); ++i) {
    EXPECT_LE(at(chain[i].first, chain[i].second), at(chain[i - 1].first, chain[i - 1].second) * (1 + 1e-9))
        << chain[i].first << ' ' << chain[i].second;
  }
  EXPECT_LT(at("a100", "bf16") / at("h100_memory", "bf16"), 3.35 / 2.039 * 989.5 / 312);
  EXPECT_LT(at("a100", "bf16") / at("gb200_nvl72", "bf16"), 2.5 / 0.312);
  EXPECT_LT(at("a100", "bf16") / at("gb200_nvl72", "fp4"), 10 / 0.312);
  EXPECT_FALSE(time.contains({"a100", "fp8"}));  // no unit for it
  EXPECT_FALSE(time.contains({"h200", "fp4"}));
}

TEST_F(TechnologyStudies, CheckListsWhatIsBuilt) {
  const Finished checked = run({"check", test::source_dir() + "/sweep/studies/technology-nodes.yaml", "--set",
                                "hardware.technology.logic=n7", "--set", "hardware.technology.memory=hbm2e",
                                "--set", "hardware.technology.network=ndr-x8", "--set", "gpus=64"});
  ASSERT_EQ(checked.code, 0) << checked.err;
  EXPECT_TRUE(contains(checked.out, "built devices\n")) << checked.out;
  EXPECT_TRUE(contains(checked.out, "a100-sxm-80gb+n7+hbm2e+ndr-x8  108")) << checked.out;
  EXPECT_TRUE(contains(checked.out, "80.00 GiB  2.048 TB/s  ")) << checked.out;
}

TEST_F(TechnologyStudies, BadTechnologiesAreLocatedAndNothingIsWritten) {
  const auto bad = [&](const std::string& hardware) {
    write("study.yaml", std::string(kSmallStudy) + "hardware:\n" + hardware);
    const Finished finished = run({"sweep", "study.yaml", "-o", "out.h5"});
    EXPECT_EQ(finished.code, 2);
    EXPECT_EQ(left_behind(), std::vector<std::string>{"study.yaml"});
    return finished.err;
  };
  EXPECT_TRUE(
      contains(bad("  technology.logic: [n7, n55]\n"),
               "study.yaml:19:26: hardware.technology.logic: unknown logic node \"n55\"; did you mean"));
  EXPECT_TRUE(contains(bad("  technology.power: [400 W, 50 W]\n"),
                       "study.yaml:19:29: hardware.technology.power: is too small: 64 W of memory"));
  EXPECT_TRUE(
      contains(bad("  technology.area: 826\n"), "is a bare number where a unit is due; write an area"));
  EXPECT_TRUE(contains(bad("  technology.logics: n7\n"), "did you mean \"technology.logic\"?"));
  EXPECT_TRUE(contains(bad("  technology.floorplan: ga100\n"), "has no effect: no technology is named"));
  EXPECT_TRUE(
      contains(bad("  device: h100-sxm-80gb\n  technology.logic: n5\n"),
               "device h100-sxm-80gb has no floor plan to scale it by; devices with one: a100-sxm-80gb"));
}

}  // namespace
}  // namespace shardscape::cli
