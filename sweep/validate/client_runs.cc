// Tells by the texts of a row which benchmark program measured it, and sets what the recipes of that source say of load
// and server.
#include "sweep/validate/client_runs.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sweep/validate/run_labels.h"
#include "sweep/validate/table_names.h"

namespace shardscape::validate {

namespace {

/// The name of a run behind "id=" in a source.
std::string_view run_name(std::string_view source) {
  constexpr std::string_view kMark = "id=";
  const std::size_t at = source.find(kMark);
  return at == std::string_view::npos ? std::string_view() : source.substr(at + kMark.size());
}

/// Beginnings of the column `client` that tell runs of InferenceX.
constexpr auto kClients = std::to_array<std::string_view>({"InferenceX", "sa-bench", "sglang_disagg"});
/// Beginnings of their names in AIConfigurator's table of servers (silicon_sample.csv): a date or dsr1. Its other runs
/// are its own.
constexpr auto kRuns = std::to_array<std::string_view>({"dsr1_", "20"});

template <std::size_t N>
bool begins_with_any(std::string_view text, const std::array<std::string_view, N>& list) {
  return std::ranges::any_of(list, [&](std::string_view one) { return text.starts_with(one); });
}

bool of_inferencex(const RunFacts& facts) {
  return facts.client.empty() ? begins_with_any(run_name(facts.source), kRuns)
                              : begins_with_any(facts.client, kClients);
}

/// Whether it is one of AIConfigurator's own runs.
bool of_aiconfigurator(const RunFacts& facts) {
  return facts.client.empty() && facts.source.find("aiconfigurator") != std::string::npos &&
         !run_name(facts.source).empty() && !of_inferencex(facts);
}

/// By the name of the run where it has one, as a fit puts a profile of its own in place of the software.
std::string_view engine_of(const RunFacts& facts) {
  for (const std::string_view engine : {"_vllm_", "_sglang_", "_trtllm_"}) {
    if (run_name(facts.source).find(engine) != std::string_view::npos)
      return engine.substr(1, engine.size() - 2);
  }
  return std::string_view(facts.software).substr(0, facts.software.find(' '));
}

std::int64_t sglang_budget(const WorkloadSpec& workload) {
  return workload.precision == PolicyName::fp8 ? 32768 : 16384;
}

/// TensorRT-LLM's recipe of DeepSeek-R1: so many tokens that one prompt and a token of each request fit, and since 2026
/// 8,192 at least; where it drafts, one prompt and what a rank's requests verify. Rows without a date have a release;
/// that of 2026 is 1.2.0rc6.
std::int64_t deepseek_budget(const RunFacts& facts, const WorkloadSpec& workload, std::int64_t drafts) {
  constexpr std::int64_t kSpare = 64, kStep = 64, kSince2026 = 8192;
  const std::int64_t ranks = drafts > 0 ? facts.plan.data : 1;
  const std::int64_t of_rank = std::max<std::int64_t>(1, workload.concurrency / ranks);
  const std::int64_t tokens = of_rank * (1 + drafts) + workload.longest_prompt() + kSpare;
  const std::int64_t rounded = (tokens + kStep - 1) / kStep * kStep;
  if (drafts > 0) return rounded;
  const ReleaseOrder release(facts.software);
  const bool late =
      facts.date.empty() ? release.stated() && !release.before("1.2.0rc6") : facts.date >= "2026";
  return late ? std::max(kSince2026, rounded) : rounded;
}

/// AIConfigurator's own runs are of servers that it configured: an iteration has room for one prompt beside a token of
/// each request (max_num_tokens, max-num-batched-tokens), and SGLang decodes beside prompts (enable-mixed-chunk); its
/// runs of 0.5.1 are as if without that, and those of 0.5.6 as if with it (one model each). How long first tokens take
/// grows with the clients as these say, and not as the engines' defaults do.
void set_configured(const RunFacts& facts, std::string_view engine, const WorkloadSpec& workload,
                    ServerRecipe& recipe) {
  if (engine != "sglang") {
    recipe.token_budget = workload.concurrency + workload.longest_prompt();
  } else if (!ReleaseOrder(facts.software).before("0.5.6")) {
    recipe.scheduler = ServingPolicy::vllm;
  }
}

/// Whether a run of pools is of 2025, by its date, else by its release: Dynamo 0.8 with TensorRT-LLM and SGLang 0.5.8
/// are of 2026. Rows with neither are of 2025: results name images since 2026, and those of them that a table with
/// dates has, too, are of 2025-12.
bool of_2025(const RunFacts& facts) {
  if (!facts.date.empty()) return facts.date < "2026";
  const ReleaseOrder release(facts.software);
  return !release.stated() || release.before(engine_of(facts) == "sglang" ? "0.5.8" : "0.8");
}

/// What recipes of pools have in common. TensorRT-LLM under Dynamo (InferenceMAX, dsr1_fp4_gb200_dynamo-trt_slurm.sh):
/// max_num_tokens of servers that prefill 4608 for prompts of 1k and 8448 for those of 8k; since 2026 (srt-slurm)
/// 16384. SGLang divides its chunked-prefill-size by the ranks that have attention of their own (server_args.py).
/// Experts over more than 16 ranks have 32 copies (ep-num-redundant-experts 32) and get their tokens by DeepEP, as
/// DeepGEMM wants them; others get those of all ranks (moe-a2a-backend none), and so do servers that prefill in fp4,
/// whose kernels of experts order tokens themselves (moe-runner-backend flashinfer_trtllm).
///
/// Found in runs, not documented. The prompts that open a run come late since 2026, of both engines (p99 of up to 64
/// clients 0.4 to 0.6 s in the median, 0.2 s with prompts of 1k, 0.8 s with 8k), and did not in 2025: half a second, as
/// long as the first iteration of one server of SGLang takes longer. SGLang since 0.5.8 takes 30 ms longer to launch an
/// iteration that reads than on one server, perhaps for caches, for which its loop polls in each turn (from memory:
/// poll_and_all_reduce, disaggregation/utils.py). Chosen on B200 (p99 of TTFT 12.0, 11.1 and 14.8 % with 0, 30 and 45
/// ms); it brings GB200 of 2026 from 28 to 20 % and GB300 from 28 to 16 %. Saturated runs of 2025 have no such time.
void set_pools(const RunFacts& facts, std::string_view engine, const WorkloadSpec& workload,
               ServerRecipe& recipe) {
  constexpr std::int64_t kFewRanks = 16, kCopies = 32, kLongPrompt = 4096;
  constexpr double kOpening = 0.5, kTurn = 30e-3;
  recipe.first_prompts = of_2025(facts) ? 0 : kOpening;
  if (engine == "sglang") {
    const std::int64_t ranks = std::max(1, facts.plan.prefill.expert / facts.plan.prefill.tensor);
    recipe.token_budget = sglang_budget(workload) / ranks;
    recipe.poll_interval = std::nullopt;
    if (!of_2025(facts)) recipe.eager_floor = kTurn;
    if (facts.architecture != Architecture::blackwell) recipe.pool_prompts = 0;
    if (facts.plan.expert > kFewRanks) {
      recipe.redundant_experts = kCopies;
      recipe.fp8_blackwell_share = 1;
    } else {
      recipe.dispatch = ServedDispatch::all_gather;
    }
    recipe.prompts_summed = facts.plan.expert <= kFewRanks || workload.precision == PolicyName::fp4;
  } else if (engine == "trtllm") {
    recipe.token_budget = !of_2025(facts) ? 16384 : workload.longest_prompt() > kLongPrompt ? 8448 : 4608;
  }
}

/// Drafts where no recipe of pools has them: scripts of InferenceX draft 2 tokens with SGLang
/// (speculative-num-steps 2), 3 with TensorRT-LLM, with data-parallel attention 1.
std::int64_t usual_drafts(const RunFacts& facts, std::string_view engine) {
  return engine == "sglang" ? 2 : facts.plan.tensor > 1 ? 3 : 1;
}

}  // namespace

void ServerRecipe::apply(StackProfile::Serving& serving) const {
  if (scheduler) serving.scheduler = *scheduler;
  if (token_budget) serving.token_budget = *token_budget;
  if (max_batch) serving.max_batch = *max_batch;
  if (poll_interval) serving.poll_interval = *poll_interval;
  if (redundant_experts) serving.redundant_experts = *redundant_experts;
  if (pool_prompts) serving.pool_prompts = *pool_prompts;
  if (dispatch) serving.dispatch = *dispatch;
  serving.prompts_summed |= prompts_summed;
  if (fp8_blackwell_share) serving.fp8_blackwell_share = *fp8_blackwell_share;
  if (first_prompts) serving.first_prompts = Seconds(*first_prompts);
  if (eager_floor) serving.eager_floor = Seconds(*eager_floor);
  if (balance_wait) {
    serving.attention_ranks = AttentionRanks::dealt;
    serving.balance_wait = *balance_wait;
  }
  serving.frontend = serving.frontend + Seconds(client);
  if (reads_beside(serving.scheduler)) serving.max_batch = std::min(serving.max_batch, serving.token_budget);
}

const ClientProfile* client_of(const RunFacts& facts) {
  if (of_inferencex(facts)) {
    const bool early = facts.plan.disaggregated() && of_2025(facts);
    return find_client_profile(!facts.plan.disaggregated()    ? "inferencex"
                               : !early                       ? "sa_bench"
                               : engine_of(facts) == "trtllm" ? "trtllm_slurm"
                                                              : "sa_bench_2025");
  }
  // NIM's pages and AIConfigurator's own runs: genai-perf, or AIPerf after it. Of how many requests is not known (the
  // templates of AIConfigurator have twenty rounds today); ten explain the times of both best.
  const bool known = facts.source.starts_with("NVIDIA NIM") || of_aiconfigurator(facts);
  return known ? find_client_profile("genai_perf") : nullptr;
}

void set_load(const ClientProfile& client, WorkloadSpec& workload) {
  const auto lengths = [&](std::int64_t longest) {
    return client.length_ratio < 1 ? Lengths::uniform(longest, client.length_ratio) : Lengths::fixed(longest);
  };
  LoadSpec load;
  load.prompt = lengths(workload.prompt_tokens);
  load.output = lengths(workload.output_tokens);
  load.requests = client.requests;
  load.warm_up = client.warm_up;
  workload.prompt_tokens = std::llround(load.prompt.mean);
  workload.output_tokens = std::llround(load.output.mean);
  workload.load = load;
}

/// DeepSeek-V3 and R1: no document has lengths of R1's module; those of its successor's, thinking on, at 1, 2 and 3
/// drafts are 1.79, 2.27 and 2.49 (InferenceX, golden_al_distribution, deepseek-v4-pro). DeepSeek-V3's report (section
/// 5.4.3) has 0.85 to 0.90 for the first of V3, which does not think.
std::vector<double> acceptance_of(std::string_view model) {
  return model.starts_with("deepseek-v3") || model.starts_with("deepseek-r1") ? std::vector{0.79, 0.48, 0.22}
                                                                              : std::vector<double>();
}

/// SemiAnalysisAI/InferenceX, benchmarks/ and runners/, as of the runs: vLLM as the stack has it
/// (max-num-batched-tokens 8192); SGLang chunked-prefill-size 16384 with fp4, 32768 with fp8, and on Blackwell
/// scheduler-recv-interval 30 from 16 clients on, else 10, with kernels of experts that come compiled
/// (moe-runner-backend flashinfer_trtllm), where DeepGEMM compiles as shapes are met; TensorRT-LLM max_num_tokens
/// 16384 for dense models, 20000 for gpt-oss, and under data-parallel attention attention_dp_config with
/// enable_balance and timeout_iters 60.
ServerRecipe recipe_of(const RunFacts& facts, const WorkloadSpec& workload) {
  // InferenceX's client opens a connection for each request and times it from before that: what vLLM's first tokens
  // take longer there (20 ms beside what the server does) than under inference-perf, which keeps connections open (5
  // ms).
  constexpr double kConnection = 15e-3;
  constexpr std::int64_t kBalanceWait = 60;
  ServerRecipe recipe;
  if (run_name(facts.source).empty() && facts.client.empty()) return recipe;
  const std::string_view engine = engine_of(facts);
  if (facts.drafts) recipe.draft_tokens = usual_drafts(facts, engine);
  if (!of_inferencex(facts)) {
    if (of_aiconfigurator(facts) && !facts.plan.disaggregated())
      set_configured(facts, engine, workload, recipe);
    return recipe;
  }
  recipe.client = kConnection;
  if (engine == "sglang") {
    constexpr std::int64_t kManyClients = 16;
    recipe.token_budget = sglang_budget(workload);
    if (facts.architecture == Architecture::blackwell) {
      recipe.poll_interval = workload.concurrency >= kManyClients ? 30 : 10;
      recipe.first_prompts = 0;
    }
  } else if (engine == "trtllm") {
    recipe.token_budget = !has_experts(facts.model) ? 16384
                          : facts.model.starts_with("gpt-oss")
                              ? 20000
                              : deepseek_budget(facts, workload, recipe.draft_tokens);
    if (facts.plan.data > 1) recipe.balance_wait = kBalanceWait;
  }
  if (facts.plan.disaggregated()) set_pools(facts, engine, workload, recipe);
  return recipe;
}

}  // namespace shardscape::validate
