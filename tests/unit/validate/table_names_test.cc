#include "sweep/validate/table_names.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

#include "tests/support/paths.h"

namespace shardscape::validate {
namespace {

yaml::Catalog shipped_presets() { return yaml::Catalog({test::source_dir()}); }

// A name that two presets claim would depend on their order.
TEST(TableNames, NoNameStandsForTwoPresets) {
  const yaml::Catalog catalog = shipped_presets();
  Presets presets(catalog);
  std::map<std::string, std::string> owner;
  for (const auto& entry : catalog.list(yaml::PresetKind::device)) {
    const auto device = presets.device(entry.name);
    ASSERT_TRUE(device) << device.error();
    std::vector<std::string> names = (*device)->tables.also;
    names.push_back(entry.name);
    for (const std::string& name : names) EXPECT_TRUE(owner.emplace(name, entry.name).second) << name;
  }
  owner.clear();
  for (const auto& entry : catalog.list(yaml::PresetKind::stack)) {
    const auto stack = presets.stack(entry.name);
    ASSERT_TRUE(stack) << stack.error();
    const yaml::StackTables& tables = (*stack)->tables;
    const std::vector<std::string> everywhere = {""};
    for (const std::string& name : tables.software) {
      for (const std::string& source : tables.software_of.empty() ? everywhere : tables.software_of) {
        const std::string meant = name + " of '" + source + "'";
        EXPECT_TRUE(owner.emplace(meant, entry.name).second) << meant << " is also " << owner[meant];
      }
    }
  }
}

TEST(TableNames, AMachineIsMadeOfTheDeviceThatNamesIt) {
  const yaml::Catalog catalog = shipped_presets();
  Presets presets(catalog);
  for (const auto& entry : catalog.list(yaml::PresetKind::device)) {
    const std::string name = (*presets.device(entry.name))->tables.cluster;
    if (name.empty()) continue;
    const auto cluster = presets.cluster(name);
    ASSERT_TRUE(cluster) << entry.name << ": " << cluster.error();
    EXPECT_EQ((*cluster)->device.name, entry.name);
  }
}

TEST(TableNames, SoftwareGoesByItsFirstWord) {
  Presets presets(shipped_presets());
  yaml::StackPreset profile;
  profile.tables.software = {"engine"};
  presets.replace_stack("mine", profile);
  TableNames names(presets);
  EXPECT_EQ(names.stack("megatron-lm").value(), "megatron-lm");
  EXPECT_EQ(names.stack("megatron-lm 0.9").value(), "megatron-lm");
  EXPECT_EQ(names.stack("mine").value(), "mine");  // a fit's own
  EXPECT_FALSE(names.stack("engine 1"));           // only presets stand for software
  EXPECT_EQ(names.device("gb200").value(), "gb200-186gb");
  EXPECT_EQ(names.cluster("gb200").value(), "gb200-nvl72");
  EXPECT_TRUE(names.device("b60").error().understood);
  EXPECT_FALSE(names.device("b61").error().understood);
}

TEST(TableNames, FormatsHaveTheirCommonNames) {
  EXPECT_EQ(TableNames::precision("bfloat16"), Precision::bf16);
  EXPECT_EQ(TableNames::precision("half"), Precision::fp16);
  EXPECT_EQ(TableNames::precision("fp8-cs"), Precision::fp8);
  EXPECT_EQ(TableNames::precision("fp9"), std::nullopt);
}

TEST(TableNames, ExpertsAreKnownByTheirNames) {
  for (const char* name : {"deepseek-v3", "openai/gpt-oss-120b", "Qwen/Qwen3-235B-A22B", "qwen3-30b-a3b",
                           "grok-1-l8", "meta-llama/Llama-4-Scout-17B-16E-Instruct"})
    EXPECT_TRUE(has_experts(name)) << name;
  for (const char* name : {"llama3.1-8b", "Qwen/Qwen3-32B", "mpt-7b", "nemotron4-15b"})
    EXPECT_FALSE(has_experts(name)) << name;
}

TEST(TableNames, SoftwareMayBeAnotherProfileForExperts) {
  Presets presets(shipped_presets());
  TableNames names(presets);
  EXPECT_EQ(*names.stack("nemo"), "megatron-core");
  EXPECT_EQ(*names.stack("nemo 2.3", true), "megatron-core-alltoall");
  EXPECT_EQ(*names.stack("megatron-bridge", true), "megatron-core");
}

TEST(TableNames, ReleaseAndArchitectureDecideBetweenProfilesOfExperts) {
  Presets presets(shipped_presets());
  TableNames names(presets);
  const auto bridge = [&](std::optional<double> release, Architecture architecture) {
    return *names.stack("megatron-bridge", true, {release, architecture});
  };
  EXPECT_EQ(bridge(26.0401, Architecture::blackwell), "megatron-core");
  EXPECT_EQ(bridge(26.06, Architecture::blackwell), "megatron-core-graphs");
  EXPECT_EQ(bridge(26.08, Architecture::blackwell), "megatron-core-graphs");
  EXPECT_EQ(bridge(26.08, Architecture::hopper), "megatron-core");
  EXPECT_EQ(bridge(std::nullopt, Architecture::blackwell), "megatron-core");
  EXPECT_EQ(*names.stack("megatron-bridge", false, {26.08, Architecture::blackwell}), "megatron-core");
  EXPECT_EQ(*names.stack("nemo", true, {25.02, Architecture::hopper}), "megatron-core-alltoall");
  EXPECT_EQ(*names.stack("nemo", true, {25.0505, Architecture::hopper}), "megatron-core-alltoall-25.05");
  EXPECT_EQ(names.architecture("gb200"), Architecture::blackwell);
  EXPECT_EQ(names.architecture("h100-sxm-80gb"), Architecture::hopper);
  EXPECT_EQ(names.architecture("b61"), Architecture::other);
}

TEST(TableNames, TheSourceDecidesBetweenProfilesOfSoftware) {
  Presets presets(shipped_presets());
  TableNames names(presets);
  const auto vllm = [&](const char* text, bool experts, std::string source) {
    return *names.stack(text, experts, {std::nullopt, Architecture::hopper, std::move(source)});
  };
  for (const bool experts : {false, true}) {
    EXPECT_EQ(vllm("vllm", experts, "ml-energy/leaderboard public/data/x.json"), "vllm-sync");
    EXPECT_EQ(vllm("vllm 0.11", experts, "ml-energy/leaderboard"), "vllm-sync");
    EXPECT_EQ(vllm("vllm", experts, "InferenceX"), "vllm");
    EXPECT_EQ(vllm("vllm", experts, ""), "vllm");
    EXPECT_EQ(vllm("sglang", experts, "ml-energy/leaderboard"), "sglang");
  }
}

TEST(TableNames, NoTwoProfilesOfExpertsAreMeantOfTheSameRuns) {
  const yaml::Catalog catalog = shipped_presets();
  Presets presets(catalog);
  std::set<std::tuple<std::string, std::string, Architecture>> meant;
  for (const auto& entry : catalog.list(yaml::PresetKind::stack)) {
    const yaml::StackTables& tables = (*presets.stack(entry.name))->tables;
    for (const std::string& name : tables.expert_software)
      EXPECT_TRUE(meant.emplace(name, tables.expert_software_from, tables.expert_software_on).second) << name;
  }
}

}  // namespace
}  // namespace shardscape::validate
