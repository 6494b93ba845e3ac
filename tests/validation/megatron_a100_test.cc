// Published step times of Megatron-LM on DGX A100 against `shardscape simulate`, end to end: a study file in,
// JSON out.
//
// Two sources of rows: those quoted here with their citation, and every row of the reference table where the
// reference folder is present.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/csv.h"
#include "tests/support/paths.h"

namespace shardscape {
namespace {

struct Row {
  std::string id, model, sequence_parallel, recompute, schedule;
  int gpus, tensor, pipeline, data, virtual_stages, microbatch, global_batch;
  double measured_step_time_s;
};

constexpr double kTolerance = 0.09;

std::string run_program(const std::string& arguments) {
  const std::string command = test::program() + " " + arguments;
  FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  std::array<char, 4096> buffer{};
  while (const std::size_t n = fread(buffer.data(), 1, buffer.size(), pipe)) text.append(buffer.data(), n);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return text;
}

double predicted_step_time(const Row& row) {
  const std::filesystem::path study =
      std::filesystem::path(testing::TempDir()) / ("megatron_" + row.id + std::to_string(getpid()) + ".yaml");
  {
    std::ofstream out(study);
    out << "model: " << row.model << "\ncluster: dgx-a100\ngpus: " << row.gpus << "\nstack: megatron-lm\n"
        << "workload: {phase: training, sequence_length: 2048, global_batch: " << row.global_batch
        << ", precision: bf16}\n"
        << "space:\n  tensor_parallel: " << row.tensor << "\n  pipeline_parallel: " << row.pipeline
        << "\n  data_parallel: " << row.data << "\n  sequence_parallel: " << row.sequence_parallel
        << "\n  recompute: " << row.recompute << "\n  microbatch_size: " << row.microbatch << "\n";
    if (row.pipeline > 1) out << "  schedule: " << row.schedule << "\n";
    if (row.schedule == "interleaved") out << "  virtual_stages: " << row.virtual_stages << "\n";
  }
  const std::string text = run_program("simulate " + study.string() + " --json");
  std::filesystem::remove(study);
  const nlohmann::json document = nlohmann::json::parse(text, nullptr, false);
  EXPECT_FALSE(document.is_discarded()) << text;
  return document.is_discarded() ? std::nan("") : document.at("step_time_s").get<double>();
}

void expect_close(const Row& row) {
  const double predicted = predicted_step_time(row);
  const double error = predicted / row.measured_step_time_s - 1;
  std::printf("%-34s predicted %8.3f s, measured %8.3f s, %+6.1f %%\n", row.id.c_str(), predicted,
              row.measured_step_time_s, 100 * error);
  EXPECT_LT(std::abs(error), kTolerance) << row.id;
}

// Korthikanti et al. 2022, arXiv:2205.05198, Table 5: full recompute, then sequence parallelism with
// selective recompute.
TEST(MegatronA100, QuotedStepTimes) {
  const Row rows[] = {
      {"22b-full", "gpt-22b", "false", "full", "1f1b", 8, 8, 1, 1, 1, 4, 4, 1.42},
      {"175b-full", "gpt-175b", "false", "full", "interleaved", 64, 8, 8, 1, 3, 1, 64, 18.13},
      {"530b-selective", "gpt-530b", "true", "selective", "interleaved", 280, 8, 35, 1, 3, 1, 280, 37.83},
      {"1t-selective", "gpt-1t", "true", "selective", "1f1b", 512, 8, 64, 1, 1, 1, 512, 71.49},
  };
  for (const Row& row : rows) expect_close(row);
}

TEST(MegatronA100, EveryReferenceRow) {
  const std::filesystem::path file =
      std::filesystem::path(test::reference_dir()) / "measurements" / "training-a100-megatron.csv";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no reference measurements at " << file;
  const std::vector<test::CsvRow> table = test::read_csv(file);
  EXPECT_EQ(table.size(), 11U);
  for (const test::CsvRow& cell : table) {
    const auto number = [&](const char* name) { return std::stoi(cell.at(name)); };
    expect_close({cell.at("id"), cell.at("model"), number("sequence_parallel") == 1 ? "true" : "false",
                  cell.at("recompute"), cell.at("schedule"), number("gpus"), number("tensor_parallel"),
                  number("pipeline_parallel"), number("data_parallel"), number("virtual_stages"),
                  number("microbatch_size"), number("global_batch"),
                  std::stod(cell.at("measured_step_time_s"))});
  }
}

}  // namespace
}  // namespace shardscape
