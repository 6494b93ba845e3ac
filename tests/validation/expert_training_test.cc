// Training steps of mixtures of experts against published ones, by precision and by software.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/csv.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace shardscape {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kMixture = "mixture-of-experts";

class ExpertTraining : public test::TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    const fs::path file = fs::path(test::reference_dir()) / "measurements/modern-training.csv";
    if (!fs::exists(file)) GTEST_SKIP() << "no reference measurements at " << file;
    file_ = file.string();
  }
  /// The groups of `--by keys` that are of mixtures.
  [[nodiscard]] json groups(const std::string& keys) const {
    const std::string command =
        test::program() + " validate " + file_ + " --json --by model_kind," + keys + " 2>/dev/null";
    FILE* const pipe = popen(command.c_str(), "r");
    std::string text;
    std::array<char, 4096> buffer{};
    while (const std::size_t n = fread(buffer.data(), 1, buffer.size(), pipe)) text.append(buffer.data(), n);
    pclose(pipe);
    const json document = json::parse(text, nullptr, false);
    EXPECT_FALSE(document.is_discarded()) << text;
    json found = json::array();
    if (document.is_discarded()) return found;
    for (const json& group : document.at("files").at(0).at("groups"))
      if (group.at("model_kind") == kMixture) found.push_back(group);
    return found;
  }
  std::string file_;
};

TEST_F(ExpertTraining, StepsStayWithinTheirBarsByPrecision) {
  std::size_t rows = 0;
  for (const json& group : groups("precision")) {
    if (group.at("metric") != "step_time") continue;
    rows += group.at("n").get<std::size_t>();
    const double bar = group.at("precision") == "bf16" ? 0.12 : 0.15;
    std::printf("%-8s %3zu rows, mean %.3f, bar %.2f\n", group.at("precision").get<std::string>().c_str(),
                group.at("n").get<std::size_t>(), group.at("mape").get<double>(), bar);
    EXPECT_LE(group.at("mape").get<double>(), bar) << group.dump();
  }
  EXPECT_GE(rows, 75u);
}

TEST_F(ExpertTraining, PlainMegatronCoreStaysWithinItsBarsOfTimeAndMemory) {
  std::size_t found = 0;
  for (const json& group : groups("software")) {
    if (group.at("software") != "megatron-core") continue;
    ++found;
    EXPECT_LE(group.at("mape").get<double>(), group.at("metric") == "memory" ? 0.08 : 0.10) << group.dump();
  }
  EXPECT_EQ(found, 2u);
}

// Every sixteenth row: the plain path takes minutes for all of them.
TEST_F(ExpertTraining, ThePlainPathPredictsTheSame) {
  std::ifstream table(file_);
  std::string line, lines;
  std::size_t number = 0;
  for (; std::getline(table, line); ++number)
    if (number % 16 == 0) lines += line + '\n';
  const std::string some = write("some.csv", lines).string();
  const auto predictions = [&](const std::string& name, const std::string& flags) {
    const fs::path file = root_ / name;
    const std::string command = test::program() + " validate " + some + " --predictions " + file.string() +
                                flags + " >/dev/null 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    return test::read_csv(file);
  };
  const auto fast = predictions("fast.csv", ""), plain = predictions("plain.csv", " --reference");
  ASSERT_EQ(fast.size(), (number - 1) / 16);
  ASSERT_EQ(plain.size(), fast.size());
  // They add up in another order.
  for (std::size_t i = 0; i < fast.size(); ++i) {
    for (const char* const column : {"predicted_step_time_s", "predicted_memory_peak_bytes"}) {
      SCOPED_TRACE(plain[i].at("id") + ' ' + column);
      ASSERT_FALSE(plain[i].at(column).empty() || fast[i].at(column).empty());
      const double exact = std::stod(plain[i].at(column));
      EXPECT_NEAR(std::stod(fast[i].at(column)), exact, 1e-9 * exact);
    }
  }
}

}  // namespace
}  // namespace shardscape
