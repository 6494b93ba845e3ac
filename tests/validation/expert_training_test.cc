// Training steps of mixtures of experts against published ones, by precision and by software.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

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
  [[nodiscard]] json groups(const std::string& keys) const { return groups_of(file_, keys); }
  [[nodiscard]] static json groups_of(const std::string& file, const std::string& keys,
                                      const std::string& flags = "") {
    const std::string command = test::program() + " validate " + file + " --json --by model_kind," + keys +
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

// Every eighth row: the plain path takes minutes for all of them.
TEST_F(ExpertTraining, ThePlainPathPredictsTheSame) {
  std::ifstream table(file_);
  std::string line, lines;
  for (int number = 0; std::getline(table, line); ++number)
    if (number % 8 == 0) lines += line + '\n';
  const std::string some = write("some.csv", lines).string();
  const json fast = groups_of(some, "software,precision");
  const json plain = groups_of(some, "software,precision", "--reference");
  ASSERT_EQ(fast.size(), plain.size());
  ASSERT_GE(fast.size(), 4u);
  for (std::size_t i = 0; i < fast.size(); ++i)
    EXPECT_NEAR(fast[i].at("mape").get<double>(), plain[i].at("mape").get<double>(), 0.005) << fast[i].dump();
}

}  // namespace
}  // namespace shardscape
