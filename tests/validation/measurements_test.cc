// Do predictions stay within the accuracy that has been reached on the reference measurements?
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "sweep/validate/evaluation.h"
#include "tests/support/csv.h"
#include "tests/support/evaluated_tables.h"
#include "tests/support/paths.h"

namespace shardscape {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// The last part of `validate FILE --json`, whatever its exit code.
json validated(const fs::path& file) {
  const std::string command = test::program() + " validate " + file.string() + " --json";
  FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  std::array<char, 4096> buffer{};
  while (const std::size_t n = fread(buffer.data(), 1, buffer.size(), pipe)) text.append(buffer.data(), n);
  pclose(pipe);
  const json document = json::parse(text, nullptr, false);
  EXPECT_FALSE(document.is_discarded()) << text;
  return document.is_discarded() ? json() : document.at("files").at(0);
}

/// Of the statistic over rows of a table that one of the groups of `--by` names; the median of all their errors can't
/// be had from the groups, so that each group has its own bar.
struct GroupBar {
  std::string software, kind, servers;
  double median;  ///< at most
};

/// Of the rows of a table of servers, those of one engine and kind of model that say how many workers served them.
std::size_t rows_of_known_plans(const fs::path& file, const GroupBar& group) {
  std::size_t count = 0;
  for (const test::CsvRow& row : test::read_csv(file)) {
    const std::string& model = row.at("model");
    bool experts = false;
    for (const char* part : {"deepseek", "gpt-oss", "A22B", "A3B", "Llama-4"})
      experts = experts || model.find(part) != std::string::npos;
    const bool stated = row.at("mode") != "disagg" ||
                        (!row.at("prefill_workers").empty() && !row.at("decode_workers").empty());
    count += stated && row.at("software").starts_with(group.software) &&
             experts == (group.kind == "mixture-of-experts");
  }
  return count;
}

struct Bar {
  std::string statistic;  ///< JSON pointer
  double limit;           ///< at most; at least for accuracies and Spearman
};
struct Case {
  std::string name;
  std::size_t rows;  ///< predicted, at least
  std::vector<Bar> bars;
};

bool is_lower_bound(const std::string& statistic) {
  return statistic == "/oom/accuracy" || statistic == "/ranking/spearman";
}

void PrintTo(const Case& tested, std::ostream* out) { *out << tested.name; }

class Measurements : public testing::TestWithParam<Case> {};

TEST_P(Measurements, StayWithinTheirBars) {
  const fs::path file = fs::path(test::reference_dir()) / "measurements" / (GetParam().name + ".csv");
  if (!fs::exists(file)) GTEST_SKIP() << "no reference measurements at " << file;
  const json report = validated(file);
  ASSERT_FALSE(report.is_null());
  EXPECT_GE(report.at("rows").get<std::size_t>(), GetParam().rows);
  for (const auto& [statistic, limit] : GetParam().bars) {
    const double value = report.at(json::json_pointer(statistic)).get<double>();
    std::printf("%-26s %-22s %8.4f  bar %.4f\n", GetParam().name.c_str(), statistic.c_str(), value, limit);
    if (is_lower_bound(statistic)) {
      EXPECT_GE(value, limit) << statistic;
    } else {
      EXPECT_LE(value, limit) << statistic;
    }
  }
}

// Engines of inference with mixtures of experts: a quarter above what has been reached, and dense models as they were.
// Two pools by themselves: most of their rows leave out how many servers there were.
TEST(ServedMeasurements, StayWithinTheirBars) {
  const fs::path file = fs::path(test::reference_dir()) / "measurements/modern-inference.csv";
  if (!fs::exists(file)) GTEST_SKIP() << "no reference measurements at " << file;
  const std::vector<validate::ErrorGroup> groups =
      validate::error_groups(test::evaluated("modern-inference"), {"software", "model_kind", "servers"});
  for (const GroupBar& bar :
       {GroupBar{"sglang", "mixture-of-experts", "one server", 0.08},
        GroupBar{"trtllm", "mixture-of-experts", "one server", 0.155},
        GroupBar{"vllm", "mixture-of-experts", "one server", 0.135},
        GroupBar{"sglang", "dense", "one server", 0.08}, GroupBar{"trtllm", "dense", "one server", 0.10},
        GroupBar{"sglang", "mixture-of-experts", "two pools", 0.195},
        GroupBar{"trtllm", "mixture-of-experts", "two pools", 0.215}}) {
    bool found = false;
    double predicted = 0;
    for (const validate::ErrorGroup& group : groups) {
      if (group.metric != "itl" || group.key[0] != bar.software || group.key[1] != bar.kind) continue;
      predicted += static_cast<double>(group.errors.n);
      if (group.key[2] != bar.servers) continue;
      found = true;
      const double median = group.errors.median;
      std::printf("%-8s %-20s %-10s %8.4f  bar %.4f\n", bar.software.c_str(), bar.kind.c_str(),
                  bar.servers.c_str(), median, bar.median);
      EXPECT_LE(median, bar.median) << bar.software;
    }
    // The others are plans that the program refuses.
    EXPECT_GE(predicted, 0.8 * static_cast<double>(rows_of_known_plans(file, bar))) << bar.software;
    EXPECT_TRUE(found) << bar.software << ' ' << bar.kind;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Reference, Measurements,
    testing::Values(Case{"training-a100-megatron", 11, {{"/step_time/mape", 0.04}, {"/step_time/max", 0.09}}},
                    Case{"training-h100-nanotron",
                         1200,
                         {{"/step_time/median",
                           0.068},  // a fifth above 5.7 %, with the H100 at the clock that its power leaves
                          {"/step_time/mape", 0.12},
                          {"/memory/mape", 0.10},
                          {"/oom/accuracy", 0.975},
                          {"/ranking/spearman", 0.90},
                          {"/ranking/regret_mean", 1.03}}},
                    Case{"training-a100-pcie", 6, {{"/step_time/mape", 0.08}}},
                    Case{"inference-a100-llama2", 11, {{"/e2e/mape", 0.04}, {"/e2e/max", 0.10}}},
                    Case{"inference-h100-llama2", 4, {{"/e2e/mape", 0.06}}},
                    Case{"inference-a100-nim",
                         15,
                         {{"/itl/mape", 0.08}, {"/ttft_alone/mape", 0.15}, {"/ttft/mape", 0.30}}},
                    Case{"gemm-a100-ncu", 24, {{"/time_long/mape", 0.01}, {"/time_row_tile/mape", 0.02}}},
                    Case{"collectives-nccl", 350, {{"/time_node/median", 0.15}}},
                    Case{"modern-moe", 1120, {{"/time_50us/median", 0.12}}},
                    Case{"modern-mla", 600, {{"/time_20us/median", 0.10}}},
                    Case{"modern-deepep",
                         1158,
                         {{"/dispatch_low_latency/median", 0.10},
                          {"/combine_low_latency/median", 0.10},
                          {"/dispatch_normal/median", 0.10},
                          {"/combine_normal/median", 0.10}}}),
    [](const testing::TestParamInfo<Case>& instance) {
      std::string name = instance.param.name;
      for (char& c : name) c = c == '-' ? '_' : c;
      return name;
    });

}  // namespace
}  // namespace shardscape
