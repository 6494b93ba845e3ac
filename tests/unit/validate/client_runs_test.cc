// Do rows of servers get the load of the client that measured them, the recipe of its source, and labels where another
// row of the table speaks against them?
#include "sweep/validate/client_runs.h"

#include <gtest/gtest.h>

#include "sweep/validate/plan_row.h"
#include "sweep/validate/run_labels.h"

namespace shardscape::validate {
namespace {

constexpr const char* kTable = "ai-dynamo/aiconfigurator aic-core/.../systems/silicon_sample.csv id=";

RunFacts run(const std::string& name, const std::string& model, const std::string& software,
             Architecture architecture = Architecture::blackwell) {
  RunFacts facts;
  facts.model = model;
  facts.software = software;
  facts.source = kTable + name;
  facts.architecture = architecture;
  return facts;
}

WorkloadSpec load(std::int64_t prompt, std::int64_t output, std::int64_t clients,
                  PolicyName precision = PolicyName::fp8) {
  WorkloadSpec workload;
  workload.phase = Phase::inference;
  workload.precision = precision;
  workload.prompt_tokens = prompt;
  workload.output_tokens = output;
  workload.concurrency = clients;
  return workload;
}

TEST(ClientRuns, AreKnownByTheirSource) {
  const auto name = [](const RunFacts& facts) {
    const ClientProfile* const client = client_of(facts);
    return client != nullptr ? std::string(client->name) : "";
  };
  EXPECT_EQ(name(run("dsr1_b200_trtllm_c4", "deepseek-v3", "trtllm")), "inferencex");
  EXPECT_EQ(name(run("2026_04_06_llama_3_1_70b", "llama3.1-70b", "vllm")), "inferencex");
  EXPECT_EQ(name(run("qwen_qwen3_32b_h100_sxm_sglang", "qwen3-32b", "sglang 0.5.1")), "genai_perf");
  EXPECT_EQ(name(run("qwen_qwen3_32b_h100_sxm_vllm", "qwen3-32b", "vllm 0.12.0")), "genai_perf");
  RunFacts facts;
  facts.source = "NVIDIA NIM for LLMs benchmark page, 2025-12";
  EXPECT_EQ(name(facts), "genai_perf");
  facts.source = "ml-energy/leaderboard";
  EXPECT_EQ(name(facts), "") << "nothing is known of it";
  facts.client = "InferenceX run_benchmark_serving";
  EXPECT_EQ(name(facts), "inferencex");
}

/// As run(), on a pool of `prefill` ranks with attention of their own and one of `decode`.
RunFacts on_pools(RunFacts facts, std::int32_t prefill, std::int32_t decode) {
  facts.plan.prefill = {1, 1, prefill, prefill, 1, 0};
  facts.plan.data = facts.plan.expert = decode;
  return facts;
}

TEST(ClientRuns, OfPoolsHaveTheirOwnClientAndBudgets) {
  const RunFacts sglang = on_pools(run("dsr1_x", "deepseek-v3", "sglang 0.5.8"), 4, 32);
  EXPECT_EQ(client_of(sglang)->name, "sa_bench");
  EXPECT_EQ(client_of(sglang)->requests, (RequestCount{10, true}));
  EXPECT_EQ(client_of(on_pools(run("dsr1_x", "deepseek-v3", "trtllm 0.8.1"), 4, 32))->name, "sa_bench");
  for (const char* software : {"sglang 0.5.5.post2", "sglang", "trtllm 0.7.0.post2", "trtllm"}) {
    const bool of_trtllm = std::string_view(software).starts_with("trtllm");
    RunFacts early = on_pools(run("dsr1_x", "deepseek-v3", software), 4, 32);
    EXPECT_EQ(client_of(early)->name, of_trtllm ? "trtllm_slurm" : "sa_bench_2025") << software;
    EXPECT_EQ(client_of(early)->requests, (RequestCount{of_trtllm ? 8 : 5, true}));
    EXPECT_EQ(recipe_of(early, load(1024, 1024, 64)).first_prompts, 0);
    EXPECT_FALSE(recipe_of(early, load(1024, 1024, 64)).eager_floor);
    early.date = "2026-01-29";
    EXPECT_EQ(client_of(early)->requests, (RequestCount{10, true})) << "a date says more than a release";
    EXPECT_EQ(recipe_of(early, load(1024, 1024, 64)).first_prompts, 0.5);
    EXPECT_EQ(recipe_of(early, load(1024, 1024, 64)).eager_floor.value_or(0), of_trtllm ? 0 : 30e-3);
  }
  const ServerRecipe of_sglang = recipe_of(sglang, load(1024, 1024, 64, PolicyName::fp4));
  EXPECT_EQ(of_sglang.token_budget, 4096) << "16384 over four ranks";
  EXPECT_EQ(of_sglang.redundant_experts, 32) << "256 + 32 experts on 32 ranks";
  EXPECT_FALSE(of_sglang.poll_interval);
  const auto trtllm = [](const char* software, std::int64_t prompt) {
    return recipe_of(on_pools(run("dsr1_x", "deepseek-v3", software), 4, 16), load(prompt, 1024, 64))
        .token_budget;
  };
  EXPECT_EQ(trtllm("trtllm 0.5.1-rc0.pre3", 1024), 4608);
  EXPECT_EQ(trtllm("trtllm 0.5.1-rc0.pre3", 8192), 8448);
  EXPECT_EQ(trtllm("trtllm 0.8.1.post2", 8192), 16384);
}

TEST(ClientRuns, OfPoolsSendTokensToManyExpertsByDeepEp) {
  const auto recipe = [](std::int32_t decode, Architecture architecture) {
    return recipe_of(on_pools(run("dsr1_x", "deepseek-v3", "sglang 0.5.8", architecture), 8, decode),
                     load(1024, 1024, 64));
  };
  const ServerRecipe large = recipe(32, Architecture::blackwell), small = recipe(8, Architecture::blackwell);
  EXPECT_FALSE(large.dispatch);
  EXPECT_EQ(large.fp8_blackwell_share, 1) << "DeepGEMM has their tokens";
  EXPECT_EQ(small.dispatch, ServedDispatch::all_gather);
  EXPECT_TRUE(small.prompts_summed);
  EXPECT_FALSE(large.prompts_summed);
  EXPECT_FALSE(small.fp8_blackwell_share);
  EXPECT_FALSE(small.pool_prompts) << "as the stack has it";
  EXPECT_EQ(recipe(8, Architecture::hopper).pool_prompts, 0);
}

TEST(ClientRuns, DraftWhatTheScriptsDraft) {
  RunFacts facts = run("dsr1_x", "deepseek-v3", "trtllm 1.2");
  const WorkloadSpec workload = load(1024, 1024, 4);
  EXPECT_EQ(recipe_of(facts, workload).draft_tokens, 0);
  facts.drafts = true;
  facts.plan.tensor = 8;
  EXPECT_EQ(recipe_of(facts, workload).draft_tokens, 3);
  facts.plan.tensor = 1;
  EXPECT_EQ(recipe_of(facts, workload).draft_tokens, 1) << "attention is data parallel";
  facts.software = "sglang 0.5.8";
  EXPECT_EQ(recipe_of(facts, workload).draft_tokens, 2);
  for (const char* model : {"llama3.1-70b", "deepseek-v2-lite"})
    EXPECT_TRUE(acceptance_of(model).empty()) << "nothing is known of it";
  EXPECT_EQ(acceptance_of("deepseek-v3").size(), 3U);
}

TEST(ClientRuns, HaveRandomLengthsWhereTheClientDrawsThem) {
  WorkloadSpec workload = load(1024, 8192, 16);
  set_load(*client_of(run("dsr1_b200", "deepseek-v3", "sglang")), workload);
  ASSERT_TRUE(workload.load);
  EXPECT_EQ(workload.longest_prompt(), 1024);
  EXPECT_EQ(workload.shortest_prompt(), 819) << "0.8 of it, rounded down";
  EXPECT_EQ(workload.prompt_tokens, 922) << "the mean of 819 and 1024, rounded";
  EXPECT_EQ(workload.load->requests.of(workload.concurrency), 160);
}

TEST(ClientRuns, HaveTheBudgetsOfTheirRecipes) {
  const auto budget = [](RunFacts facts, const WorkloadSpec& workload, const char* date = "") {
    facts.date = date;
    return recipe_of(facts, workload).token_budget.value_or(0);
  };
  EXPECT_EQ(budget(run("2026_x", "llama3.1-70b", "trtllm"), load(1024, 1024, 4)), 16384);
  EXPECT_EQ(budget(run("2026_x", "gpt-oss-120b", "trtllm"), load(1024, 1024, 4)), 20000);
  // 4 + 1024 + 64 = 1092, to the next 64 1152; since 2026 8192 at least.
  EXPECT_EQ(budget(run("dsr1_x", "deepseek-v3", "trtllm"), load(1024, 1024, 4), "2025-11-30"), 1152);
  EXPECT_EQ(budget(run("dsr1_x", "deepseek-v3", "trtllm"), load(1024, 1024, 4), "2026-01-01"), 8192);
  EXPECT_EQ(budget(run("dsr1_x", "deepseek-v3", "trtllm 1.2.0rc6.post2"), load(1024, 1024, 4)), 8192);
  // Four tokens of each of 4 that three drafts are verified with: 16 + 1024 + 64 = 1104, to the next 64 1152; of 256
  // over 4 ranks two of each of 64: 128 + 1088 = 1216.
  RunFacts drafts = run("dsr1_x", "deepseek-v3", "trtllm 1.2.0rc6.post2");
  drafts.drafts = true;
  drafts.plan.tensor = 8;
  EXPECT_EQ(budget(drafts, load(1024, 1024, 4), "2026-02-01"), 1152);
  drafts.plan.tensor = 1;
  drafts.plan.data = 4;
  EXPECT_EQ(budget(drafts, load(1024, 1024, 256), "2026-02-01"), 1216);
  EXPECT_EQ(budget(run("dsr1_x", "deepseek-v3", "sglang"), load(1024, 1024, 4, PolicyName::fp4)), 16384);
  EXPECT_EQ(budget(run("dsr1_x", "deepseek-v3", "vllm"), load(1024, 1024, 4)), 0) << "as the stack has it";
  const auto poll = [](std::int64_t clients, Architecture architecture) {
    return recipe_of(run("dsr1_x", "deepseek-v3", "sglang", architecture), load(1024, 1024, clients))
        .poll_interval.value_or(1);
  };
  EXPECT_EQ(poll(8, Architecture::blackwell), 10);
  EXPECT_EQ(poll(16, Architecture::blackwell), 30);
  EXPECT_EQ(poll(16, Architecture::hopper), 1);
  const WorkloadSpec four = load(1024, 1024, 4);
  EXPECT_EQ(recipe_of(run("dsr1_x", "deepseek-v3", "sglang"), four).first_prompts, 0);
  EXPECT_FALSE(recipe_of(run("dsr1_x", "deepseek-v3", "sglang", Architecture::hopper), four).first_prompts);
}

/// Such a server reads one prompt in an iteration, however long, and not as many as the engine's default has room for:
/// clients that send together get apart by an iteration each, and stay so.
TEST(ClientRuns, OfAiconfiguratorHaveTheServersThatItSetsUp) {
  const auto recipe = [](const char* software, const WorkloadSpec& workload) {
    return recipe_of(run("qwen_qwen3_32b", "qwen3-32b", software), workload);
  };
  for (const char* engine : {"vllm 0.12.0", "trtllm 1.0.0rc3"}) {
    EXPECT_EQ(recipe(engine, load(1024, 128, 8)).token_budget, 1032) << "1024 and one for each of 8";
    EXPECT_EQ(recipe(engine, load(4096, 512, 64)).token_budget, 4160);
    EXPECT_FALSE(recipe(engine, load(1024, 128, 8)).scheduler);
  }
  EXPECT_FALSE(recipe("sglang 0.5.1.post1", load(1024, 128, 8)).scheduler) << "reads prompts alone";
  const ServerRecipe mixes = recipe("sglang 0.5.6.post2", load(1024, 128, 8));
  EXPECT_FALSE(mixes.token_budget);
  StackProfile::Serving serving;
  serving.scheduler = ServingPolicy::sglang;
  mixes.apply(serving);
  EXPECT_EQ(serving.scheduler, ServingPolicy::vllm) << "decodes beside prompts";
}

TEST(ClientRuns, DealOverAttentionRanksAsTheRecipeOfTensorRtLlmDoes) {
  RunFacts facts = run("dsr1_x", "deepseek-v3", "trtllm");
  EXPECT_FALSE(recipe_of(facts, load(1024, 1024, 64)).balance_wait);
  facts.plan.data = 8;
  const ServerRecipe recipe = recipe_of(facts, load(1024, 1024, 64));
  EXPECT_EQ(recipe.balance_wait, 60) << "timeout_iters";
  StackProfile::Serving serving;
  recipe.apply(serving);
  EXPECT_EQ(serving.attention_ranks, AttentionRanks::dealt);
  EXPECT_EQ(recipe_of(run("qwen_x", "qwen3-32b", "trtllm"), load(1024, 1024, 4)).client, 0)
      << "connections are of InferenceX";
}

PlanRow measured(const char* id, std::int64_t clients, double ttft, double itl) {
  PlanRow row;
  row.id = id;
  row.model = "m";
  row.device = "d";
  row.software = "vllm 0.1";
  row.gpus = 8;
  row.workload = load(1000, 1001, clients);
  row.served[kTtftColumn] = ttft;
  row.served[kItlColumn] = itl;
  return row;
}

std::vector<RunLabel> labels(std::vector<PlanRow> rows) {
  label_runs(rows);
  std::vector<RunLabel> found;
  for (const PlanRow& row : rows) found.push_back(row.label);
  return found;
}

TEST(RunLabels, TellDisturbedRunsByTheOthersOfTheirServer) {
  using enum RunLabel;
  EXPECT_EQ(
      labels({measured("a", 4, 0.10, 0.01), measured("b", 8, 0.12, 0.01), measured("c", 16, 0.2, 0.01)}),
      (std::vector{clean, clean, clean}));
  EXPECT_EQ(
      labels({measured("a", 4, 0.10, 0.01), measured("b", 8, 0.20, 0.01), measured("c", 16, 0.15, 0.01)}),
      (std::vector{clean, falling, clean}))
      << "0.15 is less than 0.85 x 0.20";
  EXPECT_EQ(
      labels({measured("a", 4, 0.10, 0.01), measured("b", 8, 0.12, 0.02), measured("c", 8, 0.13, 0.01)}),
      (std::vector{clean, clean, faster_twin}))
      << "half the time of its twin";
  EXPECT_EQ(
      labels({measured("a", 4, 0.10, 0.01), measured("b", 8, 0.12, 0.01), measured("c", 8, 0.12, 0.01)}),
      (std::vector{clean, clean, repeated}));
  EXPECT_EQ(labels({measured("a", 4, 0.10, 0.01), measured("b", 8, 0.61, 0.01)}), (std::vector{clean, jump}))
      << "more than three times as much as the clients grow";
  EXPECT_EQ(labels({measured("a", 4, 1.20, 0.01), measured("b", 8, 1.30, 0.01)}),
            (std::vector{start_up, start_up}))
      << "ten times 1.2 s is more than 1.2 s + 1000 x 10 ms";
  EXPECT_EQ(labels({measured("a", 2, 1.20, 0.01), measured("b", 8, 1.30, 0.01)}),
            (std::vector{start_up, start_up}))
      << "with fewer clients, too";
}

/// A round of four is read in at most four times as long as a lone prompt.
TEST(RunLabels, TellAColdFirstRoundByItsSlowestRequest) {
  PlanRow row = measured("a", 4, 0.10, 0.01);
  row.served[kTtftP50Column] = 0.1;
  row.served[kTtftP99Column] = 0.39;
  EXPECT_EQ(labels({row}), std::vector{RunLabel::clean});
  row.served[kTtftP99Column] = 0.41;
  EXPECT_EQ(labels({row}), std::vector{RunLabel::start_up});
  row.served[kTtftColumn].reset();
  EXPECT_EQ(labels({row}), std::vector{RunLabel::start_up}) << "tables with percentiles may lack the mean";
}

TEST(RunLabels, KeepWhatAnotherRecipeMayHaveRun) {
  PlanRow row = measured("a", 4, 0.10, 0.01);
  row.software = "sglang 0.5.10.post1";
  row.model = "deepseek-v3";
  EXPECT_EQ(labels({row}), std::vector{RunLabel::unexplained});
  row.label = RunLabel::two_recipes;
  EXPECT_EQ(labels({row}), std::vector{RunLabel::two_recipes});
}

/// Ten rounds of 0.7 s are more than a request of 0.7 + 1000 x 5 ms, five are less.
TEST(RunLabels, TellAColdFirstRoundByAsManyRoundsAsTheClientHas) {
  PlanRow row = measured("a", 16, 0.70, 0.005);
  row.plan = on_pools(RunFacts(), 4, 4).plan;
  for (const char* client : {"sa_bench", "sa_bench_2025"}) {
    set_load(*find_client_profile(client), row.workload);
    const bool ten = row.workload.load->requests.number == 10;
    row.workload.output_tokens = 1001;
    EXPECT_EQ(labels({row}), std::vector{ten ? RunLabel::start_up : RunLabel::clean}) << client;
  }
}

TEST(RunLabels, KeepServersApart) {
  PlanRow other = measured("b", 8, 0.01, 0.01);
  other.gpus = 4;
  EXPECT_EQ(labels({measured("a", 4, 0.10, 0.01), other}), (std::vector{RunLabel::clean, RunLabel::clean}));
}

}  // namespace
}  // namespace shardscape::validate
