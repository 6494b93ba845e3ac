// Does "did you mean" find slips of the keyboard, and stay silent on anything else?
#include "engine/base/suggest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/paths.h"

namespace shardscape {
namespace {

TEST(Suggest, EditDistance) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);  // k->s, e->i, +g
  EXPECT_EQ(edit_distance("tensor", "tesnor"), 1U);   // one swap of neighbours
  EXPECT_EQ(edit_distance("Pipeline", "pipeLINE"), 0U);
  EXPECT_EQ(edit_distance("hidden", "hidden"), 0U);
  EXPECT_EQ(edit_distance("hiden", "hidden"), 1U);
  EXPECT_EQ(edit_distance("hdiden", "hidden"), 1U);
  EXPECT_EQ(edit_distance("ca", "abc"), 3U);  // optimal string alignment: no edit inside a swapped pair
}

TEST(Suggest, NearestName) {
  const std::vector<std::string> names = {"tensor_parallel", "pipeline_parallel", "data_parallel",
                                          "schedule"};
  EXPECT_EQ(nearest_name("tensor_paralel", names), "tensor_parallel");
  EXPECT_EQ(nearest_name("shcedule", names), "schedule");
  EXPECT_EQ(nearest_name("data", names), "data_parallel");  // a prefix counts, however much is missing
  EXPECT_EQ(nearest_name("colour", names), std::nullopt);
  EXPECT_EQ(nearest_name("steptime", std::vector<std::string>{"point_id", "step_time_s"}), "step_time_s");
  EXPECT_EQ(nearest_name("--out", std::vector<std::string>{"--threads", "--output"}), "--output");
  EXPECT_EQ(nearest_name("--x", std::vector<std::string>{"--threads", "--output"}), std::nullopt);
  EXPECT_EQ(nearest_name(std::string(1000000, 'x'), names), std::nullopt);  // and at once
  // The first of equals; and a nearer name later beats a prefix found before.
  EXPECT_EQ(nearest_name("bat", std::vector<std::string>{"cat", "rat"}), "cat");
  EXPECT_EQ(nearest_name("rings", std::vector<std::string>{"rings_of_saturn", "ring"}), "ring");
}

/// The names of the presets in a folder, in their order.
std::vector<std::string> presets_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(test::source_dir() + "/" + folder))
    if (file.path().extension() == ".yaml") names.push_back(file.path().stem().string());
  std::ranges::sort(names);
  return names;
}

TEST(Suggest, PartsOfNamesAreNearerThanTwoEdits) {
  const std::vector<std::string> models = presets_in("models"), clusters = presets_in("hw_presets/clusters");
  const auto first_two = nearest_names("gpt3", models, 2);
  EXPECT_EQ(std::ranges::count(first_two, "gpt3-175b"), 1) << join_names(first_two);
  EXPECT_TRUE(nearest_name("mixtral", models).value_or("").starts_with("mixtral-"));
  EXPECT_EQ(nearest_name("llama3", models), "llama3.1-8b");
  EXPECT_EQ(nearest_name("megatron", presets_in("hw_presets/stacks")), "megatron-lm");
  EXPECT_EQ(nearest_name("qwen3-235b", models), "qwen3-235b-a22b");
  EXPECT_EQ(nearest_name("gb200", clusters), "gb200-nvl72");
  EXPECT_EQ(nearest_name("h100", clusters), "dgx-h100");
  EXPECT_EQ(nearest_name("dgxh100", clusters), "dgx-h100");
  // Short words are near to few names, however long these are.
  const std::vector<std::string> columns = {"host_s", "tp_comm_s", "pp_comm_s", "step_time_s"};
  EXPECT_EQ(nearest_name("cost", columns), std::nullopt);
  EXPECT_EQ(nearest_name("comm", columns), std::nullopt);
}

TEST(Suggest, Text) {
  EXPECT_EQ(did_you_mean("rign", std::vector<std::string>{"mesh", "ring"}), " (did you mean 'ring'?)");
  EXPECT_EQ(did_you_mean("x", std::vector<std::string>{"mesh", "ring"}), "");
  EXPECT_EQ(join_names(std::vector<std::string>{"a", "b", "c"}), "a, b, c");
  EXPECT_EQ(join_names(std::vector<std::string>{}), "");
}

}  // namespace
}  // namespace shardscape
