// Is the capacity of small studies that of brute force?
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

}  // namespace
}  // namespace shardscape::sweep
