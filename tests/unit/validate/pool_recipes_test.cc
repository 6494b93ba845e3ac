// Is a row given the public recipe that was made for it, and is it told where another may have run?
#include "sweep/validate/presets.h"

#include <gtest/gtest.h>

namespace shardscape::validate {
namespace {

/// Three recipes for one server: 1P4D up to 64 clients, with drafts for 16 and 144, and 2P1D of 16 ranks for 4096.
PoolRecipes recipes() {
  return PoolRecipes(parse_csv(
      "model,device,software,precision,prompt_tokens,output_tokens,prefill_workers,prefill_tensor_parallel,"
      "prefill_attention_data_parallel,decode_workers,decode_tensor_parallel,decode_attention_data_parallel,"
      "draft_tokens,max_batch,concurrency,source\n"
      "m,d,engine 1.2,fp4,1024,1024,1,1,4,4,8,1,0,,4 8 16 64,s\n"
      "m,d,engine 1.2,fp4,1024,1024,1,1,4,4,8,1,3,,16 144,s\n"
      "m,d,engine 1.2,fp4,1024,1024,2,1,4,1,1,16,0,256,4096,s\n",
      "r.csv"));
}

PoolsOfRow row(std::int64_t clients, std::int64_t prefill, std::int64_t decode) {
  PoolsOfRow of;
  of.model = "m";
  of.device = "d";
  of.software = "engine 1.2.3";
  of.precision = "fp4";
  of.prompt = of.output = 1024;
  of.clients = clients;
  of.prefill_ranks = prefill;
  of.decode_ranks = decode;
  return of;
}

/// Workers that decode, drafts and whether another recipe may have run; zeros: none was found.
std::array<std::int64_t, 3> found(const PoolsOfRow& of) {
  PoolRecipes all = recipes();
  const auto recipe = all.find(of);
  if (!recipe) return {0, 0, 0};
  return {all.reader(*recipe->row).integer("decode_workers").value_or(0), recipe->draft_tokens,
          recipe->doubtful ? 1 : 0};
}

using Answer = std::array<std::int64_t, 3>;

TEST(PoolRecipes, AreFoundByWhatTheRowPrints) {
  EXPECT_EQ(found(row(4, 4, 8)), (Answer{4, 0, 1})) << "ranks of a worker; drafts for 16 may be for 4, too";
  EXPECT_EQ(found(row(4, 1, 8)), (Answer{4, 0, 1})) << "ranks of its tensor group";
  EXPECT_EQ(found(row(4, 36, 36)), (Answer{4, 0, 1})) << "all GPUs: 4 + 4 x 8";
  EXPECT_EQ(found(row(4, 4, 4)), (Answer{0, 0, 0})) << "no recipe decodes with 4";
  EXPECT_EQ(found(row(4096, 4, 16)), (Answer{1, 0, 0})) << "nothing else is for 16 ranks";
  PoolsOfRow older = row(4, 4, 8);
  older.software = "engine 1.1";
  EXPECT_EQ(found(older), (Answer{0, 0, 0})) << "for another release";
  older.software = "engine";
  EXPECT_EQ(found(older), (Answer{4, 0, 1})) << "a row without a release may be of any";
}

// Clients, ranks that decode and their places as the script of 2025 has them, and deployments of 2026 whose clients
// wait for as long as those do for whom there is no place: with r answers each second, (clients - places) / r.
TEST(PoolRecipes, OfTensorRtLlmHaveSomewhatFewerPlacesThanClients) {
  const auto places = [](const std::string& software, const std::string& clients, std::int64_t of,
                         std::int64_t workers, std::int64_t attention) {
    PoolRecipes all(parse_csv(
        "model,device,software,precision,prompt_tokens,output_tokens,prefill_workers,prefill_tensor_parallel,"
        "prefill_attention_data_parallel,decode_workers,decode_tensor_parallel,decode_attention_data_"
        "parallel,"
        "draft_tokens,max_batch,concurrency,source\nm,d," +
            software + ",fp4,1024,1024,1,1,4," + std::to_string(workers) + ",8," + std::to_string(attention) +
            ",0,," + clients + ",s\n",
        "r.csv"));
    PoolsOfRow asked = row(of, 4, 8 * attention);
    asked.software = software;
    const auto recipe = all.find(asked);
    return recipe ? recipe->max_batch.value_or(0) : -1;
  };
  struct Known {
    std::int64_t clients, ranks, places;
  };
  for (const auto& [clients, ranks, known] : {Known{1075, 32, 32},
                                              {1075, 16, 64},
                                              {4300, 16, 256},
                                              {4300, 8, 512},
                                              {2150, 16, 128},
                                              {2252, 8, 256},
                                              {512, 32, 16},
                                              {538, 32, 16},
                                              {2150, 8, 256},
                                              {269, 32, 8}})
    EXPECT_EQ(places("trtllm 0.5", std::to_string(clients), clients, 1, ranks), known) << clients;
  EXPECT_EQ(places("trtllm 0.5", "256 538", 256, 1, 32), 16) << "a step of the same series";
  EXPECT_EQ(places("trtllm 0.8", "4 24 84", 24, 4, 1), 4) << "4.15 s with 1.9 answers each second for 24";
  EXPECT_EQ(places("trtllm 0.8", "4 24 84", 84, 4, 1), 16);
  EXPECT_EQ(places("trtllm 0.8", "12 24 48 96 192", 24, 4, 1), 32);
  EXPECT_EQ(places("trtllm 0.8", "12 48 96 192", 12, 4, 1), 32) << "24 is not shown";
  EXPECT_EQ(places("trtllm 0.8", "1600", 1600, 2, 8), 100) << "a place for each";
  EXPECT_EQ(places("trtllm 0.8", "1", 1, 4, 1), 1);
  EXPECT_EQ(places("sglang 0.5", "84", 84, 4, 1), 0) << "as the stack has it";
}

TEST(PoolRecipes, AreOfTheirRelease) {
  PoolsOfRow other = row(4, 4, 8);
  other.software = "engine 1.24";
  EXPECT_EQ(found(other), (Answer{0, 0, 0})) << "1.24 is not of 1.2";
  other.software = "engine 1.2-rc1";
  EXPECT_EQ(found(other), (Answer{4, 0, 1}));
}

TEST(PoolRecipes, AgreeWithAllThatTheRowPrints) {
  PoolsOfRow said = row(4, 4, 8);
  said.gpus = 36;
  EXPECT_EQ(found(said), (Answer{4, 0, 1}));
  said.gpus = 999;
  EXPECT_EQ(found(said), (Answer{0, 0, 0})) << "the recipe has 4 + 4 x 8 GPUs";
  PoolsOfRow unsaid = row(4096, 4, 16);
  unsaid.prefill_ranks = unsaid.decode_ranks = {};
  EXPECT_EQ(found(unsaid), (Answer{1, 0, 0})) << "a row without ranks may have any";
}

TEST(PoolRecipes, SayWhereTheirTableCannotBeRead) {
  PoolRecipes other(parse_csv("model,device\nm,d\n", "r.csv"));
  const auto recipe = other.find(row(4, 4, 8));
  ASSERT_FALSE(recipe);
  EXPECT_EQ(recipe.error(), "r.csv:1: software: there is no such column");
}

TEST(PoolRecipes, AreForTheirNumberOfClients) {
  EXPECT_EQ(found(row(32, 4, 8)), (Answer{4, 0, 1})) << "the nearest, and not certain";
  EXPECT_EQ(found(row(257, 4, 16)), (Answer{0, 0, 0})) << "16 times as many is too far";
  EXPECT_EQ(found(row(1024, 4, 16)), (Answer{1, 0, 1})) << "four times as many is not";
}

TEST(PoolRecipes, SpeculateWhereTheRowDoesOrNoOtherRecipeListsIt) {
  EXPECT_EQ(found(row(16, 4, 8)), (Answer{4, 0, 1})) << "both list 16: taken to have none, and not certain";
  EXPECT_EQ(found(row(144, 4, 8)), (Answer{4, 3, 1})) << "only one with drafts lists 144";
  PoolsOfRow said = row(16, 4, 8);
  said.drafts = true;
  EXPECT_EQ(found(said), (Answer{4, 3, 0}));
}

}  // namespace
}  // namespace shardscape::validate
