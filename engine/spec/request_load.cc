// Limits of random lengths, rules of loads, and the table of client profiles.
#include "engine/spec/request_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/spec/ranges.h"

namespace shardscape {

namespace {

/// The client profiles. Each program opens with as many requests as may be in flight. SGLang's and vLLM's programs send
/// a number of requests whatever the concurrency.
///   inferencex    benchmark_serving.py of InferenceX: 10 requests for each in flight (--num-prompts), lengths uniform
///                 in [0.8 L, L] (--random-range-ratio 0.8), since 2026-01 two warm-up requests for each, drained
///   sa_bench      of disaggregated servers (srt-slurm's recipes, 2026): 10 for each, as many before them
///   sa_bench_2025 the same in the scripts of 2025 (SGLang's): 5 for each, the same before them
///   trtllm_slurm  TensorRT-LLM's scripts for disaggregated servers (examples/disaggregated/slurm/benchmark, which
///                 Dynamo's of 2025 follow): multi_round 8 for each, benchmark_ratio 0.8
///   aiperf        AIConfigurator's templates for AIPerf: 20 for each, 2 of warm-up, lengths without deviation
///   genai_perf    genai-perf measures for a time, not a number of requests; ten rounds stand for it. Lengths without
///                 deviation
///   vllm_bench    `vllm bench serve`: --num-prompts 1000, --random-range-ratio 0
///   sglang_bench  sglang.bench_serving: --num-prompts 1000, one warm-up request; --random-range-ratio 0 there means
///                 lengths uniform in [1, L]
///   guidellm      GuideLLM: runs until its limit; 1000 requests, the default of its synthetic data, stand for it
constexpr std::array<ClientProfile, 9> kProfiles = {{
    {"aiperf", {20, true}, {2, true}, 1},
    {"genai_perf", {10, true}, {0, false}, 1},
    {"vllm_bench", {1000, false}, {0, false}, 1},
    {"sglang_bench", {1000, false}, {1, false}, 0},
    {"inferencex", {10, true}, {2, true}, 0.8},
    {"sa_bench", {10, true}, {10, true}, 0.8},
    {"sa_bench_2025", {5, true}, {5, true}, 0.8},
    {"trtllm_slurm", {8, true}, {8, true}, 0.8},
    {"guidellm", {1000, false}, {0, false}, 1},
}};

constexpr Range kRatio{0, 1};
constexpr Range kVariation{1e-3, 10};
constexpr Range kTurns{1, static_cast<double>(Sessions::kMostTurns)};

/// The probability that a number of turns is larger than `turns`, which is at least 0.
double share_beyond(const Lengths& law, std::int64_t turns) {
  if (turns < law.shortest) return 1;
  if (law.law == LengthLaw::uniform)
    return static_cast<double>(law.longest - turns) / static_cast<double>(law.longest - law.shortest + 1);
  if (law.law != LengthLaw::lognormal) return 0;
  const double variance = std::log1p(law.cv * law.cv), median = std::log(law.mean) - 0.5 * variance;
  return 0.5 * std::erfc((std::log(static_cast<double>(turns) + 0.5) - median) / std::sqrt(2 * variance));
}

}  // namespace

const ClientProfile* find_client_profile(std::string_view name) {
  const auto found = std::ranges::find(kProfiles, name, &ClientProfile::name);
  return found == kProfiles.end() ? nullptr : &*found;
}

std::vector<std::string_view> client_profile_names() {
  std::vector<std::string_view> names;
  for (const ClientProfile& profile : kProfiles) names.push_back(profile.name);
  return names;
}

Lengths Lengths::fixed(std::int64_t tokens) {
  return {LengthLaw::fixed, static_cast<double>(tokens), 1, 0, tokens, tokens};
}

Lengths Lengths::uniform(std::int64_t longest, double ratio) {
  const auto low = static_cast<std::int64_t>(std::floor(ratio * static_cast<double>(longest) + 1e-9));
  const std::int64_t shortest = std::clamp<std::int64_t>(low, 1, longest);
  return {LengthLaw::uniform, 0.5 * static_cast<double>(shortest + longest), ratio, 0, longest, shortest};
}

/// The logarithm is normal with variance s^2 = ln(1 + cv^2) and mean ln(mean) - s^2 / 2.
Lengths Lengths::lognormal(double mean, double cv) {
  const double variance = std::log1p(cv * cv);
  const double longest = mean * std::exp(kLognormalReach * std::sqrt(variance) - 0.5 * variance);
  return {LengthLaw::lognormal,
          mean,
          1,
          cv,
          static_cast<std::int64_t>(std::clamp(std::ceil(longest), 1.0, ranges::kTokens.high)),
          1};
}

/// Of T turns, the k-th has k - 1 before it. Sums of T and of T (T - 1) / 2 over all T are those of P(T > k) and of
/// k P(T > k) over k = 0, 1, ...
Sessions::Means Sessions::means() const {
  double sum = 0, pairs = 0;
  for (std::int64_t k = 0; k < turns.longest; ++k) {
    const double beyond = share_beyond(turns, k);
    sum += beyond;
    pairs += static_cast<double>(k) * beyond;
  }
  return {sum, pairs / sum};
}

double LoadSpec::offered_per_s() const {
  if (!trace) return request_rate * (sessions ? sessions->kept : 1);
  const double span = trace->requests.back().arrival / speed_up;
  return span > 0 ? static_cast<double>(trace->requests.size() - 1) / span : 0;
}

void LoadSpec::check(Problems& problems) const {
  const auto lengths = [&](const Lengths& l, const std::string& key) {
    require_range(problems, std::max(l.mean, static_cast<double>(l.longest)), key, ranges::kTokens);
    if (l.law == LengthLaw::uniform) require_range(problems, l.ratio, key, kRatio);
    if (l.law == LengthLaw::lognormal) require_range(problems, l.cv, key, kVariation);
  };
  if (sessions) {
    lengths(sessions->first_prompt, "prompt_tokens");
    lengths(sessions->new_tokens, "sessions.new_tokens");
    require_range(problems, std::max(sessions->turns.mean, static_cast<double>(sessions->turns.longest)),
                  "sessions.turns", kTurns);
    problems.require(static_cast<double>(sessions->shared.end) < sessions->first_prompt.mean,
                     "sessions.shared_prefix_tokens",
                     fmt::format("{} leave nothing of the first prompt's {} tokens to a session",
                                 sessions->shared.end, std::llround(sessions->first_prompt.mean)));
    problems.require(
        sessions->first_prompt.mean + static_cast<double>(output.longest) <=
            static_cast<double>(sessions->context),
        "sessions.context_tokens",
        fmt::format("{} do not hold the first turn: {} tokens of its prompt and up to {} of its "
                    "answer",
                    sessions->context, std::llround(sessions->first_prompt.mean), output.longest));
    problems.require(static_cast<double>(prompt.longest + output.longest) <= ranges::kTokens.high,
                     "sessions.context_tokens",
                     fmt::format("missing: sessions may grow to {} tokens; say where they end",
                                 prompt.longest + output.longest));
  } else {
    lengths(prompt, "prompt_tokens");
  }
  lengths(output, "output_tokens");
  if (arrivals == ArrivalProcess::gamma) require_range(problems, arrivals_cv, "arrivals.cv", kVariation);
  problems.require(!open() || !(requests.per_client || warm_up.per_client), "client",
                   "counts requests for each that is in flight, of which an open loop has no number: write a "
                   "plain number");
}

}  // namespace shardscape
