// Is the capacity of small studies that of brute force, and is no simulated load better than its floors?
//
// Brute force: for each number of GPUs a study of its own, every plan simulated alone, and every latency compared with
// what is promised by hand. The first number with a plan that misses nothing is the answer.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "engine/simulate.h"
#include "sweep/capacity/find_capacity.h"
#include "sweep/space/point_text.h"
#include "tests/support/paths.h"
#include "tests/support/seeds.h"
#include "tests/unit/study/study_text.h"

namespace shardscape::sweep {
namespace {

struct Case {
  double rate, ttft, tpot;  ///< promised: ttft_p95 and mean tpot
  std::string lengths, scheduler;
};

/// `most`: the largest number of GPUs, which no degree exceeds.
std::string study_of(const Case& c, const std::string& gpus, std::int64_t most) {
  const std::string stack =
      fmt::format("  serving: {{scheduler: {}, token_budget: 512, max_batch: 16}}\n", c.scheduler);
  std::string text =
      std::string(kModel) + kSystem +
      fmt::format(
          "workload: {{phase: inference, prompt_tokens: {0}, output_tokens: {0}, request_rate: {1} /s, "
          "client: {{requests: 150}}}}\n"
          "space: {{tensor_parallel: [{4}], pipeline_parallel: [{5}]}}\n"
          "promises: {{ttft_p95: {2} s, tpot: {3} s}}\n",
          c.lengths, c.rate, c.ttft, c.tpot,
          most >= 4   ? "1, 2, 4"
          : most == 2 ? "1, 2"
                      : "1",
          most >= 2 ? "1, 2" : "1");
  text = replaced(text, "  host:\n    forward_layer: 10 us\n", "  host:\n    forward_layer: 10 us\n" + stack);
  return replaced(text, "gpus: 16", "gpus: " + gpus);
}

struct Found {
  std::int64_t gpus = 0;
  std::string plan;
  double e2e = 0;
};

std::optional<Found> brute_force(const Case& c, const std::vector<std::int64_t>& counts) {
  for (const std::int64_t count : counts) {
    const Study study = good(study_of(c, std::to_string(count), count));
    const Setting setting = study.setting(0);
    Simulator simulator(setting);
    std::optional<Found> best;
    const DesignSpace space(study.space, count, Phase::inference, 1);
    for (std::uint64_t id = 0; id < space.size(); ++id) {
      const ParallelPlan plan = space.point(id).plan;
      const Prediction p = simulator.run(plan);
      if (p.status != Status::ok || p.load.sustained_per_s > 0) continue;
      if (p.ttft_spread.p95.value() > c.ttft || p.load.tpot_mean.value() > c.tpot) continue;
      if (!best || p.e2e.value() < best->e2e)
        best = Found{count, to_point_text(plan, Phase::inference), p.e2e.value()};
    }
    if (best) return best;
  }
  return std::nullopt;
}

TEST(Capacity, IsThatOfBruteForce) {
  const std::vector<std::int64_t> counts = {1, 2, 4, 8, 12, 16};
  int one = 0, several = 0, nothing = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(24); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto pick = [&](auto... values) {
      const std::vector list{values...};
      return list[std::uniform_int_distribution<std::size_t>(0, list.size() - 1)(random)];
    };
    const Case c{pick(20.0, 200.0, 600.0, 2000.0, 6000.0), pick(0.0002, 0.002, 0.01, 0.5),
                 pick(0.0002, 0.0005, 0.004),
                 pick("200", "{mean: 150, length_ratio: 0.5}", "{lognormal: {mean: 100, cv: 1}}"),
                 pick("vllm", "sglang", "trtllm")};
    const auto expected = brute_force(c, counts);
    const Study study = good(study_of(c, "[1, 2, 4, 8, 12, 16]", 16));
    const SweepJob job(study);
    for (const bool use_floors : {true, false}) {
      CapacityOptions options;
      options.use_floors = use_floors;
      options.threads = use_floors ? 2 : 1;
      const CapacityAnswer found = find_capacity(job, options).front();
      ASSERT_EQ(found.best.has_value(), expected.has_value()) << use_floors;
      if (!expected) {
        ASSERT_TRUE(found.nearest.has_value());
        EXPECT_GT(found.nearest->worst(), 0);
        continue;
      }
      EXPECT_EQ(found.best->gpus, expected->gpus);
      EXPECT_EQ(to_point_text(found.best->point.plan, Phase::inference), expected->plan);
      EXPECT_DOUBLE_EQ(found.best->prediction.e2e.value(), expected->e2e);
      EXPECT_LE(found.least_simulated, expected->gpus);
    }
    (!expected ? nothing : expected->gpus == 1 ? one : several) += 1;
  }
  EXPECT_GE(one, test::at_least(1));
  EXPECT_GE(several, test::at_least(4));
  EXPECT_GE(nothing, test::at_least(1));
  RecordProperty("numbers", fmt::format("{} on one GPU, {} on several, {} on none", one, several, nothing));
  std::printf("%d on one GPU, %d on several, %d on none\n", one, several, nothing);
}

/// The least share of a floor that any figure of the loads of a study comes to.
double least_share(const Study& study) {
  double least = 1e9;
  const Setting setting = study.setting(0);
  Simulator simulator(setting), floors(setting, {.load_floors = true});
  const DesignSpace space = study.design_space();
  for (std::uint64_t id = 0; id < space.size(); ++id) {
    const ParallelPlan plan = space.point(id).plan;
    const Prediction p = simulator.run(plan), f = floors.run(plan);
    EXPECT_EQ(p.status, f.status);
    if (p.status != Status::ok) continue;
    const auto hold = [&](double figure, double floor, const char* what) {
      if (figure <= 0 || floor <= 0) return;
      EXPECT_GE(figure, floor) << what << ' ' << to_point_text(plan, Phase::inference);
      least = std::min(least, figure / floor);
    };
    hold(p.ttft_spread.p50.value(), f.ttft_spread.p50.value(), "ttft");
    hold(p.load.tpot_spread.p50.value(), f.load.tpot_spread.p50.value(), "tpot");
    hold(p.itl_spread.p50.value(), f.itl_spread.p50.value(), "itl");
    hold(p.e2e_spread.p50.value(), f.e2e_spread.p50.value(), "e2e");
    hold(1 / p.load.requests_per_s, 1 / f.load.requests_per_s, "requests of a run");
  }
  return least;
}

// Floors are of every request: latencies of a simulation lie above them. In a run from an idle server to the last
// request, so many requests a second are done at most as the floors say of the shortest ones; that of the mean ones, of
// a long run, is the same sum over requests.
TEST(LoadFloors, NoSimulatedLoadIsBetter) {
  for (std::uint64_t seed = 0; seed < test::seeds(40); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto pick = [&](auto... values) {
      const std::vector list{values...};
      return list[std::uniform_int_distribution<std::size_t>(0, list.size() - 1)(random)];
    };
    const Case c{pick(1.0, 30.0, 300.0, 5e3, 1e5), 1, 1,
                 pick("300", "1", "{mean: 150, length_ratio: 0.2}", "{lognormal: {mean: 200, cv: 1.5}}"),
                 pick("vllm", "sglang", "trtllm", "chunked", "prefill_priority")};
    const int gpus = pick(1, 2, 4, 8);
    least_share(good(study_of(c, std::to_string(gpus), gpus)));
  }
}

// Turns of sessions find what was said before in the cache, or have to read it again.
TEST(LoadFloors, HoldForTurnsOfSessions) {
  for (std::uint64_t seed = 0; seed < test::seeds(40); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto pick = [&](auto... values) {
      const std::vector list{values...};
      return list[std::uniform_int_distribution<std::size_t>(0, list.size() - 1)(random)];
    };
    const Case c{pick(1.0, 30.0, 300.0, 5e3, 1e5), 1, 1, pick("300", "{mean: 150, length_ratio: 0.2}"),
                 pick("vllm", "sglang", "trtllm")};
    const int gpus = pick(1, 2, 4, 8);
    const std::string sessions = fmt::format(
        "sessions: {{turns: {}, new_tokens: {}, think_time: {}, context_tokens: {}}}, request_rate",
        pick("4", "{lognormal: {mean: 3, cv: 1}}"), pick("20", "{mean: 100, length_ratio: 0.2}"),
        pick("0 s", "{exponential: 0.05 s}"), pick(700, 3000));
    std::string text = replaced(study_of(c, std::to_string(gpus), gpus), "request_rate", sessions);
    if (pick(true, false)) text = replaced(text, "max_batch: 16", "max_batch: 16, prefix_cache: false");
    least_share(good(text));
  }
}

TEST(LoadFloors, HoldOnShippedPresets) {
  const yaml::Catalog catalog({test::source_dir()});
  double least = 1e9;
  for (std::uint64_t seed = 0; seed < test::seeds(32); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto pick = [&](auto... values) {
      const std::vector list{values...};
      return list[std::uniform_int_distribution<std::size_t>(0, list.size() - 1)(random)];
    };
    const std::string text = fmt::format(
        "model: {}\ncluster: {}\nstack: {}\ngpus: 8\n"
        "workload: {{phase: inference, precision: {}, prompt_tokens: {}, output_tokens: {}, {}, client: "
        "{{requests: "
        "200}}}}\nspace: {{tensor_parallel: [1, 2, 4, 8], pipeline_parallel: [1, 2]}}\n",
        pick("llama3.1-8b", "llama3.1-70b", "mixtral-8x7b"), pick("dgx-h100", "dgx-a100", "dgx-h200"),
        pick("vllm", "sglang", "trtllm", "nim"), "bf16",
        pick("1000", "{mean: 3000, length_ratio: 0.5}", "{lognormal: {mean: 500, cv: 1}}", "8192"),
        pick("1", "100", "{mean: 300, length_ratio: 0.8}"),
        pick("request_rate: 1 /s", "request_rate: 10000 /s", "request_rate: 50 /s"));
    auto study = parse_study(text, "s.yaml", {}, catalog);
    ASSERT_TRUE(study.has_value()) << study.error().to_string();
    least = std::min(least, least_share(*study));
  }
  RecordProperty("least_share", std::to_string(least));
  std::printf("least share of a floor: %.4f\n", least);
  EXPECT_GE(least, 1);
}

}  // namespace
}  // namespace shardscape::sweep
