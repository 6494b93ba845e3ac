// Do predictions hold on MLPerf Training, to which nothing may be fitted?
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/support/paths.h"

namespace shardscape {
namespace {

namespace fs = std::filesystem;

TEST(MlperfTraining, NoPresetNamesIt) {
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(test::source_dir()) / "hw_presets")) {
    if (entry.path().extension() != ".yaml") continue;
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    for (const char* name : {"mlperf", "MLPerf"})
      EXPECT_EQ(text.str().find(name), std::string::npos) << entry.path() << " names " << name;
    ++files;
  }
  EXPECT_GE(files, 40);
}

TEST(MlperfTraining, StaysWithinItsBars) {
  const fs::path file = fs::path(test::reference_dir()) / "measurements/mlperf-training.csv";
  if (!fs::exists(file)) GTEST_SKIP() << "no reference measurements at " << file;
  FILE* const pipe = popen((test::program() + " validate " + file.string() + " --json").c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string text;
  std::array<char, 4096> buffer{};
  while (const std::size_t n = fread(buffer.data(), 1, buffer.size(), pipe)) text.append(buffer.data(), n);
  pclose(pipe);
  const auto document = nlohmann::json::parse(text, nullptr, false);
  ASSERT_FALSE(document.is_discarded()) << text;
  const nlohmann::json& report = document.at("files").at(0);
  EXPECT_GE(report.at("step_time").at("n").get<int>(), 36);  // the others are of TPUs and of AMD's devices
  EXPECT_GE(report.at("memory").at("n").get<int>(), 14);
  const auto expect = [&](const char* metric, const char* statistic, double bar) {
    const double value = report.at(metric).at(statistic).get<double>();
    std::printf("%-10s %-7s %.4f  bar %.4f\n", metric, statistic, value, bar);
    EXPECT_LE(value, bar) << metric << ' ' << statistic;
  };
  expect("step_time", "median", 0.04);
  expect("step_time", "mape", 0.07);
  expect("memory", "mape", 0.06);
}

}  // namespace
}  // namespace shardscape
