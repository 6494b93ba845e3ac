// Training steps of mixtures of experts against published ones, by precision and by software.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/paths.h"

namespace shardscape {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kMixture = "mixture-of-experts";

class ExpertTraining : public testing::Test {
 protected:
  void SetUp() override {
    const fs::path file = fs::path(test::reference_dir()) / "measurements/modern-training.csv";
    if (!fs::exists(file)) GTEST_SKIP() << "no reference measurements at " << file;
    file_ = file.string();
  }
  /// The groups of `--by keys` that are of mixtures.
  [[nodiscard]] json groups(const std::string& keys, const std::string& flags = "") const {
    const std::string command = test::program() + " validate " + file_ + " --json --by model_kind," + keys +
                                " " + flags + " 2>/dev/null";
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

TEST_F(ExpertTraining, ThePlainPathPredictsTheSame) {
  const json fast = groups("software,precision"), plain = groups("software,precision", "--reference");
  ASSERT_EQ(fast.size(), plain.size());
  for (std::size_t i = 0; i < fast.size(); ++i)
    EXPECT_NEAR(fast[i].at("mape").get<double>(), plain[i].at("mape").get<double>(), 0.005) << fast[i].dump();
}

}  // namespace
}  // namespace shardscape
