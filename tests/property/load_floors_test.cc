// Is no simulated load better than its floors, whatever server, client and plan?
//
// A floor that a simulation beats would make `capacity` and `search` cut off a plan that does. Loads are drawn over all
// shipped devices and stacks with drafts, prefixes, dealt ranks, small caches, unusual schedulers and plans; means and
// medians, which lie above the least of all requests, are held against the floors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "engine/serving/live/load_floor.h"
#include "engine/serving/live/serve_load.h"
#include "engine/simulate.h"
#include "sweep/space/point_text.h"
#include "sweep/study/trace_file.h"
#include "tests/support/paths.h"
#include "tests/support/seeds.h"
#include "tests/unit/study/study_text.h"

namespace shardscape::sweep {
namespace {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  template <class... T>
  auto pick(T... values) {
    const std::vector list{values...};
    return list[below(list.size())];
  }
  std::size_t below(std::size_t end) {
    return std::uniform_int_distribution<std::size_t>(0, end - 1)(random_);
  }
  bool one_in(std::size_t n) { return below(n) == 0; }

 private:
  std::mt19937_64 random_;
};

std::vector<std::string> presets(const char* folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(test::source_dir() + "/hw_presets/" + folder))
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  return names;
}

/// A trace whose prompts begin as earlier ones do.
Trace trace_with_prefixes(Draw& draw) {
  std::string text = "arrival_s,prompt_tokens,output_tokens,reused_prefix_blocks,parent_request\n";
  const double gap = draw.pick(0.001, 0.05, 1.0);
  std::vector<std::size_t> prompts;
  for (std::size_t i = 0; i < 150; ++i) {
    const std::size_t parent = draw.below(std::max<std::size_t>(1, i));
    const std::size_t shared = i == 0 || draw.one_in(3) ? 0 : draw.below(prompts[parent] / 512 + 1);
    prompts.push_back(512 * shared + 1 + draw.below(draw.pick(std::size_t{40}, std::size_t{3000})));
    text += fmt::format("{},{},{},{},{}\n", gap * static_cast<double>(i), prompts.back(),
                        1 + draw.below(draw.pick(std::size_t{5}, std::size_t{400})), shared, parent);
  }
  auto trace = parse_trace(text);
  EXPECT_TRUE(trace.has_value()) << (trace ? std::string() : trace.error().front());
  return *std::move(trace);
}

struct ServedCase {
  Study study;
  std::string text;
};

/// Sets some numbers and policies of a server to random ones.
void vary_server(Draw& draw, StackProfile::Serving& serving) {
  if (draw.one_in(2)) serving.attention_ranks = AttentionRanks::dealt;
  if (draw.one_in(3)) serving.balance_wait = 10;
  if (draw.one_in(3))
    serving.scheduler = draw.pick(ServingPolicy::vllm, ServingPolicy::sglang, ServingPolicy::trtllm,
                                  ServingPolicy::chunked, ServingPolicy::prefill_priority);
  if (draw.one_in(3)) serving.kv_growth = draw.pick(KvGrowth::reserved, KvGrowth::on_demand);
  if (draw.one_in(3)) serving.graph_tokens = draw.pick(0, 64, 300, 512, 100000);
  if (draw.one_in(3)) serving.max_batch = draw.pick(1, 5, 24, 100);
  if (draw.one_in(3))
    serving.token_budget = std::max<std::int64_t>(serving.max_batch, draw.pick(100, 512, 2048));
  serving.token_budget = std::max(serving.token_budget, serving.max_batch);
  if (draw.one_in(3)) serving.kv_share = draw.pick(0.001, 0.01, 0.1);
  if (draw.one_in(4)) serving.poll_interval = 5;
  serving.queue = draw.pick(QueueOrder::fcfs, QueueOrder::shortest);
  serving.routing = draw.pick(Routing::round_robin, Routing::least_loaded, Routing::prefix_aware);
}

/// A study of one server and load on shipped presets.
ServedCase random_case(std::uint64_t seed, const yaml::Catalog& catalog) {
  Draw draw(seed);
  static const std::vector<std::string> kClusters = presets("clusters"), kStacks = presets("stacks");
  const std::string model =
      draw.pick("llama3.1-8b", "llama3.1-70b", "mixtral-8x7b", "deepseek-v2-lite", "deepseek-v3",
                "gpt-oss-20b", "gemma-3-4b", "qwen3-30b-a3b", "qwen3-0.6b", "glm-4.5");
  const bool dense = model.starts_with("llama") || model.starts_with("gemma") || model == "qwen3-0.6b";
  const bool served = !draw.one_in(4);
  std::string stack = served ? draw.pick("vllm", "vllm-0.15", "vllm-sync", "sglang", "sglang-0.5.14",
                                         "sglang-0.5.1", "sglang-large-ep", "trtllm", "nim")
                             : kStacks[draw.below(kStacks.size())];
  if (dense && stack == "sglang-large-ep") stack = "sglang";
  const std::string cluster = kClusters[draw.below(kClusters.size())];
  const auto length = [&] {
    return std::string(draw.pick("1", "7", "100", "1000", "4096", "{mean: 3000, length_ratio: 0.5}",
                                 "{mean: 60, length_ratio: 0}", "{lognormal: {mean: 500, cv: 1}}",
                                 "{lognormal: {mean: 30, cv: 0.3}}"));
  };
  const std::string sender =
      draw.one_in(2) ? fmt::format("concurrency: {}, client: {{requests: {}}}", draw.pick(1, 3, 16, 100, 300),
                                   draw.pick("2x", "1x", "100"))
                     : fmt::format("request_rate: {} /s, client: {{requests: {}}}",
                                   draw.pick(0.5, 5.0, 50.0, 500.0, 1e5), draw.pick(30, 100, 200));
  std::string sessions;
  if (draw.one_in(4))
    sessions = fmt::format("sessions: {{turns: {}, new_tokens: {}, think_time: {}}}, ",
                           draw.pick("4", "{lognormal: {mean: 3, cv: 1}}"),
                           draw.pick("20", "{mean: 100, length_ratio: 0.2}"),
                           draw.pick("0 s", "{exponential: 0.05 s}", "3 s"));
  std::string speculation;
  const bool mtp = model == "deepseek-v3" || model == "glm-4.5";
  if (draw.one_in(3) && (mtp || model.starts_with("llama3.1") || model == "qwen3-30b-a3b"))
    speculation =
        fmt::format(", speculation: {{draft_tokens: {}, acceptance: {}, {}}}", draw.pick(1, 2, 3, 7),
                    draw.pick("0.2", "0.7", "1"),
                    mtp                             ? "method: mtp"
                    : model.starts_with("llama3.1") ? "method: draft_model, draft_model: llama3.2-1b"
                                                    : "method: draft_model, draft_model: qwen3-0.6b");
  const int gpus = cluster == "a100-pcie-4" ? 4 : cluster == "a100-torus2d-ring-64" ? 64 : draw.pick(8, 16);
  ServedCase out;
  out.text = fmt::format(
      "model: {}\ncluster: {}\nstack: {}\ngpus: {}\n"
      "workload: {{phase: inference, precision: {}, prompt_tokens: {}, output_tokens: {}, {}{}{}}}\n"
      "space: {{tensor_parallel: powers_of_two, pipeline_parallel: [1, 2], context_parallel: [1, 2], "
      "expert_parallel: {}}}\n",
      model, cluster, stack, gpus, draw.pick("bf16", "bf16", "bf16", "fp8"), length(), length(), sessions,
      sender, speculation, dense ? "1" : "powers_of_two");
  auto study = parse_study(out.text, "s.yaml", {}, catalog);
  if (!study) {
    ADD_FAILURE() << out.text << study.error().to_string();
    return out;
  }
  StackProfile::Serving& serving = study->systems[0].stack.serving;
  vary_server(draw, serving);
  LoadSpec& load = *study->workloads[0].load;
  const bool prefixes = !load.sessions && draw.one_in(4), cached = !load.sessions && draw.one_in(4);
  if (prefixes) {
    const auto trace = std::make_shared<const Trace>(trace_with_prefixes(draw));
    load.trace = trace;
    load.request_rate = 0;
    load.prompt = trace->prompt, load.output = trace->output;
    load.requests = {150, false};
    study->workloads[0].concurrency = 0;
    study->workloads[0].prompt_tokens = std::llround(trace->prompt.mean);
    study->workloads[0].output_tokens = std::llround(trace->output.mean);
    if (draw.one_in(2)) serving.host_cache = Bytes(1e9), serving.disk_cache = Bytes(1e10);
  } else if (cached) {
    load.common.end = draw.pick(10, 500, 4095);
  }
  if (draw.one_in(4)) load.statistic = ClientStatistic::steady, load.warm_up = {20, false};
  out.text += fmt::format(
      "scheduler {} ranks {} max_batch {} budget {} graph {} kv_share {} growth {} prefixes {} cached {} {}",
      name_of(serving.scheduler), name_of(serving.attention_ranks), serving.max_batch, serving.token_budget,
      serving.graph_tokens, serving.kv_share, name_of(serving.kv_growth), prefixes, load.common.end,
      name_of(load.statistic));
  out.study = *std::move(study);
  return out;
}

/// By figure: the least share of its floor that any load came to.
using Shares = std::map<std::string, double>;

void hold_plan(const ServedCase& c, Simulator& simulator, Simulator& floors, const ParallelPlan& plan,
               Shares& shares, std::map<std::string, int>& kinds) {
  const Prediction p = simulator.run(plan), f = floors.run(plan);
  // A load too short to show a steady state has floors, and no figures.
  const LoadSpec& load = *c.study.workloads[0].load;
  if (load.open() && load.statistic == ClientStatistic::steady && p.status == Status::out_of_range) return;
  EXPECT_EQ(p.status, f.status) << c.text << '\n' << to_point_text(plan, Phase::inference);
  if (p.status != Status::ok || f.status != Status::ok) return;
  const auto hold = [&](double figure, double floor, const char* what) {
    if (figure <= 0 || floor <= 0) return;
    EXPECT_GE(figure, floor) << what << ' ' << figure / floor << '\n'
                             << c.text << '\n'
                             << to_point_text(plan, Phase::inference);
    double& least = shares.try_emplace(what, 1e9).first->second;
    least = std::min(least, figure / floor);
  };
  hold(p.ttft.value(), f.ttft.value(), "ttft");
  hold(p.ttft_spread.p50.value(), f.ttft_spread.p50.value(), "ttft_p50");
  hold(p.itl.value(), f.itl.value(), "itl");
  hold(p.load.tpot_mean.value(), f.load.tpot_mean.value(), "tpot");
  hold(p.load.tpot_spread.p50.value(), f.load.tpot_spread.p50.value(), "tpot_p50");
  hold(p.itl_spread.p50.value(), f.itl_spread.p50.value(), "itl_p50");
  hold(p.e2e.value(), f.e2e.value(), "e2e");
  hold(p.e2e_spread.p50.value(), f.e2e_spread.p50.value(), "e2e_p50");
  if (load.statistic == ClientStatistic::run)
    hold(1 / p.load.requests_per_s, 1 / f.load.requests_per_s, "run");
  ++kinds["all"];
  kinds["drafts"] += load.speculation.draft_tokens > 0;
  kinds["prefixes"] += load.has_prefixes();
  kinds["hits"] += p.load.prefix_hits[0] > 0;
  kinds["dealt"] +=
      c.study.systems[0].stack.serving.attention_ranks == AttentionRanks::dealt && plan.expert > plan.tensor;
  kinds["preempted"] += p.load.preemptions > 0;
  kinds["context"] += plan.context > 1;
}

TEST(LoadFloors, HoldOnShippedPresets) {
  const yaml::Catalog catalog({test::source_dir()});
  Shares shares;
  std::map<std::string, int> kinds;
  for (std::uint64_t seed = 0; seed < test::seeds(100); ++seed) {
    SCOPED_TRACE(seed);
    const ServedCase c = random_case(seed, catalog);
    ASSERT_FALSE(c.study.workloads.empty());
    const Setting setting = c.study.setting(0);
    Simulator simulator(setting), floors(setting, {.load_floors = true});
    const DesignSpace space = c.study.design_space();
    Draw draw(seed + 1);
    for (int i = 0; i < 4; ++i)
      hold_plan(c, simulator, floors, space.point(draw.below(space.size())).plan, shares, kinds);
  }
  for (const auto& [what, share] : shares) std::printf("%-10s %.4f\n", what.c_str(), share);
  for (const auto& [what, number] : kinds) {
    std::printf("%s %d, ", what.c_str(), number);
    EXPECT_GE(number, test::at_least(what == "all" ? 100 : 3)) << what;
  }
  std::printf("\n");
}

/// A trace of requests that come at once.
std::shared_ptr<const Trace> at_once(const std::string& lines) {
  auto trace =
      parse_trace("arrival_s,prompt_tokens,output_tokens,reused_prefix_blocks,parent_request\n" + lines);
  EXPECT_TRUE(trace.has_value());
  return std::make_shared<const Trace>(*std::move(trace));
}

// The cache has room for the 2,560 tokens of one request, but all begin with the same 2,048 of them, which count once:
// with 40 more each, eleven fit in what is left.
TEST(LoadFloors, PromptsThatBeginAlikeShareTheCache) {
  std::string lines = "0,2058,30,0,0\n";
  for (int i = 0; i < 40; ++i) lines += "1,2058,30,4,0\n";
  LoadSpec load;
  load.trace = at_once(lines);
  load.prompt = load.trace->prompt, load.output = load.trace->output;
  load.requests = {41, false};
  serving::LiveRules rules;
  rules.token_budget = 8192, rules.max_batch = 64, rules.kv_block = 1, rules.kv_blocks = 2560;
  rules.keeps_prefixes = true;
  const serving::Timer timer = [](const serving::Iteration&) {
    serving::IterationTime time{};
    time[TimeClass::compute] = 1;
    return time;
  };
  const serving::Offered offered{load, 1, 1};
  const serving::LiveMeasured m = serving::serve_load(offered, rules, timer);
  EXPECT_GT(m.hits[0], 0.9);
  EXPECT_LE(m.requests_per_s, serving::load_floor(offered, rules, timer, 1).in_a_run);
}

// 24 ranks with attention of their own, each iteration as long as the rank with most sequences has of them: 48
// sequences take two seconds, and so do 25. The cache has room for 50.
TEST(LoadFloors, RanksAreAllAsFullAsTheBusiest) {
  LoadSpec load;
  load.prompt = Lengths::fixed(1);
  load.output = Lengths::fixed(1001);
  load.requests = {480, false};
  serving::LiveRules rules;
  rules.policy = ServingPolicy::trtllm;
  rules.on_demand = false;
  rules.token_budget = 8192, rules.kv_block = 1, rules.kv_blocks = 50 * 1002, rules.max_batch = 50;
  rules.ranks = 24;
  const serving::Timer timer = [](const serving::Iteration& iteration) {
    serving::IterationTime time{};
    time[TimeClass::compute] = 1e-6 * iteration.prompt_tokens + std::ceil(iteration.decoding / 24);
    return time;
  };
  const serving::Offered offered{load, 48, 1};
  const serving::LiveMeasured m = serving::serve_load(offered, rules, timer);
  EXPECT_NEAR(m.requests_per_s, 48.0 / 2000, 1e-3);
  EXPECT_LE(m.requests_per_s, serving::load_floor({load, 50, 1}, rules, timer, 1).in_a_run);
}

}  // namespace
}  // namespace shardscape::sweep
