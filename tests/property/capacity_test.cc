// Is the capacity of small studies that of brute force?
//
// Brute force: for each number of GPUs a study of its own, every plan simulated alone, and every latency compared with
// what is promised by hand. The first number with a plan that misses nothing is the answer.
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
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
  bool promises = true;  ///< rather than constraints on results
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
          "space: {{tensor_parallel: [{2}], pipeline_parallel: [{3}]}}\n"
          "{4}\n",
          c.lengths, c.rate,
          most >= 4   ? "1, 2, 4"
          : most == 2 ? "1, 2"
                      : "1",
          most >= 2 ? "1, 2" : "1",
          c.promises ? fmt::format("promises: {{ttft_p95: {} s, tpot: {} s}}", c.ttft, c.tpot)
                     : fmt::format("constraints: ['ttft_p95 <= {} s', 'tpot <= {} s']", c.ttft, c.tpot));
  text = replaced(text, "  host:\n    forward_layer: 10 us\n", "  host:\n    forward_layer: 10 us\n" + stack);
  return replaced(text, "gpus: 16", "gpus: " + gpus);
}

struct Found {
  std::int64_t gpus = 0;
  std::string plan;
  double e2e = 0;
};

/// The best plan of the first number of GPUs that has one. `study_on`: the study on so many alone.
template <class StudyOn>
std::optional<Found> brute_force(const std::vector<std::int64_t>& counts, double ttft, double tpot,
                                 const StudyOn& study_on) {
  for (const std::int64_t count : counts) {
    const Study study = study_on(count);
    const Setting setting = study.setting(0);
    Simulator simulator(setting);
    std::optional<Found> best;
    const DesignSpace space(study.space, count, Phase::inference, 1);
    for (std::uint64_t id = 0; id < space.size(); ++id) {
      const ParallelPlan plan = space.point(id).plan;
      const Prediction p = simulator.run(plan);
      if (p.status != Status::ok || p.load.sustained_per_s > 0) continue;
      if (p.ttft_spread.p95.value() > ttft || p.load.tpot_mean.value() > tpot) continue;
      if (!best || p.e2e.value() < best->e2e)
        best = Found{count, to_point_text(plan, Phase::inference), p.e2e.value()};
    }
    if (best) return best;
  }
  return std::nullopt;
}

/// One step fewer GPUs is the same number with floors and without. What is said to be missed there is more than
/// nothing; with floors it is no more than without, and of the same plan where that was simulated.
void expect_fewer(const Study& study, const CapacityAnswer& floors, const CapacityAnswer& all) {
  ASSERT_EQ(floors.fewer.has_value(), all.fewer.has_value());
  EXPECT_LE(all.fewer.has_value(), all.best->gpus > study.gpu_counts.front());
  if (!all.fewer) return;
  EXPECT_TRUE(all.fewer->simulated);
  EXPECT_LT(all.fewer->gpus, all.best->gpus);
  EXPECT_EQ(floors.fewer->gpus, all.fewer->gpus);
  EXPECT_GT(all.fewer->worst(), 0);
  if (all.fewer->misses.front().reason < results::kFirstLimitReason) return;  // none keeps up
  EXPECT_LE(floors.fewer->worst(), all.fewer->worst());
  if (floors.fewer->simulated) {
    EXPECT_EQ(floors.fewer->id, all.fewer->id);
  }
}

/// Holds the capacity of a study with one workload against that of brute force, with floors and without, and stopped
/// after a while.
void expect_capacity(const Study& study, const std::optional<Found>& expected) {
  const SweepJob job(study);
  std::vector<CapacityAnswer> answers;
  for (const bool use_floors : {true, false}) {
    CapacityOptions options;
    options.use_floors = use_floors;
    options.threads = use_floors ? 2 : 1;
    const CapacityAnswer found = answers.emplace_back(find_capacity(job, options).front());
    ASSERT_EQ(found.best.has_value(), expected.has_value()) << use_floors;
    if (!expected) {
      ASSERT_TRUE(found.nearest.has_value());
      EXPECT_GE(found.nearest->worst(), 0);
      continue;
    }
    EXPECT_EQ(found.best->gpus, expected->gpus);
    EXPECT_EQ(to_point_text(found.best->point.plan, Phase::inference), expected->plan);
    EXPECT_DOUBLE_EQ(found.best->prediction.e2e.value(), expected->e2e);
    EXPECT_LE(found.least_simulated, expected->gpus);
  }
  if (expected) expect_fewer(study, answers.front(), answers.back());
  // What it says after a stop is true, wherever that was.
  for (int most = 1; most < 2000; most = most * 3 / 2 + 1) {
    int asked = 0;
    CapacityOptions options;
    options.go_on = [&] { return ++asked <= most; };
    const CapacityAnswer stopped = find_capacity(job, options).front();
    if (stopped.complete) break;
    if (stopped.best) {
      ASSERT_TRUE(expected.has_value());
      EXPECT_EQ(stopped.best->gpus, expected->gpus);
    } else if (expected) {
      EXPECT_LT(stopped.most_gpus, expected->gpus);
    }
  }
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
    const Case c{pick(20.0, 200.0, 600.0, 2000.0, 6000.0),
                 pick(0.0002, 0.002, 0.01, 0.5),
                 pick(0.0002, 0.0005, 0.004),
                 pick("200", "{mean: 150, length_ratio: 0.5}", "{lognormal: {mean: 100, cv: 1}}"),
                 pick("vllm", "sglang", "trtllm"),
                 pick(true, true, false)};
    const auto expected = brute_force(counts, c.ttft, c.tpot, [&](std::int64_t count) {
      return good(study_of(c, std::to_string(count), count));
    });
    expect_capacity(good(study_of(c, "[1, 2, 4, 8, 12, 16]", 16)), expected);
    (!expected ? nothing : expected->gpus == 1 ? one : several) += 1;
  }
  EXPECT_GE(one, test::at_least(1));
  EXPECT_GE(several, test::at_least(4));
  EXPECT_GE(nothing, test::at_least(1));
  RecordProperty("numbers", fmt::format("{} on one GPU, {} on several, {} on none", one, several, nothing));
  std::printf("%d on one GPU, %d on several, %d on none\n", one, several, nothing);
}

/// What evaluators were asked for, in order. Simulations of some plans wait a while for one another.
class Together {
 public:
  struct Call {
    bool floors = false;
    ParallelPlan plan;
  };

  /// The factory, watched; `floors`: it makes those of the floors.
  EvaluatorFactory watched(EvaluatorFactory factory, bool floors) {
    return [this, factory = std::move(factory), floors](const Setting& setting, PlacementChoice placement) {
      return std::make_unique<Watched>(*this, factory(setting, placement), floors);
    };
  }
  void wait_for(std::vector<ParallelPlan> plans) { plans_ = std::move(plans); }
  /// The most of these plans that were simulated at a time.
  [[nodiscard]] int most() const { return most_; }

  /// Plans that were simulated later than right after their floors, by a single thread.
  [[nodiscard]] std::vector<ParallelPlan> looked_at_again() const {
    std::vector<ParallelPlan> found;
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      const bool first = i > 0 && calls_[i - 1].floors && calls_[i - 1].plan == calls_[i].plan;
      if (!calls_[i].floors && !first) found.push_back(calls_[i].plan);
    }
    return found;
  }

 private:
  class Watched : public Evaluator {
   public:
    Watched(Together& all, std::unique_ptr<Evaluator> one, bool floors)
        : all_(all), one_(std::move(one)), floors_(floors) {}
    Prediction evaluate(const ParallelPlan& plan) override {
      all_.enter({floors_, plan});
      const Prediction found = one_->evaluate(plan);
      all_.leave({floors_, plan});
      return found;
    }
    Prediction evaluate_again(const FaultSet& faults) override { return one_->evaluate_again(faults); }

   private:
    Together& all_;
    std::unique_ptr<Evaluator> one_;
    bool floors_;
  };

  [[nodiscard]] bool waits(const Call& call) const {
    return !call.floors && std::ranges::find(plans_, call.plan) != plans_.end();
  }
  void enter(const Call& call) {
    std::unique_lock lock(mutex_);
    calls_.push_back(call);
    if (!waits(call)) return;
    most_ = std::max(most_, ++now_);
    came_.notify_all();
    came_.wait_for(lock, std::chrono::seconds(20), [this] { return most_ >= 2; });
  }
  void leave(const Call& call) {
    const std::lock_guard lock(mutex_);
    if (waits(call)) --now_;
  }

  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<Call> calls_;
  std::vector<ParallelPlan> plans_;
  int now_ = 0, most_ = 0;
};

// Where no plan keeps a promise, those that floors cut off are simulated side by side to find the nearest, and the
// answer is that of one thread, to the last plan that was simulated. Promises from those that every plan has to be
// simulated for to those that floors alone rule out.
TEST(Capacity, TheNearestIsLookedForByAllThreads) {
  const yaml::Catalog catalog({test::source_dir()});
  int several = 0;
  for (double ttft = 26; ttft >= 20; ttft -= 0.5) {
    SCOPED_TRACE(ttft);
    const auto study = parse_study(
        fmt::format(
            "model: llama3.1-8b\ncluster: dgx-h100\ngpus: [8]\nstack: vllm\n"
            "workload: {{phase: inference, precision: bf16, prompt_tokens: 1000, output_tokens: 100, "
            "request_rate: 200 /s, client: {{requests: 200, statistic: run}}}}\n"
            "space: {{tensor_parallel: powers_of_two, pipeline_parallel: [1, 2], data_parallel: fill}}\n"
            "promises: {{ttft: {} ms}}\nobjectives: [e2e_s]\n",
            ttft),
        "s.yaml", {}, catalog);
    ASSERT_TRUE(study.has_value());
    const SweepJob job(*study);
    const auto answer = [&](Together& together, int threads) {
      CapacityOptions options;
      options.threads = threads;
      options.evaluator = together.watched(options.evaluator, false);
      options.floors = together.watched(options.floors, true);
      return find_capacity(job, options).front();
    };
    Together one;
    const CapacityAnswer alone = answer(one, 1);
    const std::vector<ParallelPlan> again = one.looked_at_again();
    ASSERT_TRUE(alone.nearest.has_value());
    if (again.size() >= 2) ++several;
    for (const int threads : {2, 3, 8}) {
      SCOPED_TRACE(threads);
      Together together;
      if (again.size() >= 2) together.wait_for(again);
      const CapacityAnswer found = answer(together, threads);
      EXPECT_EQ(together.most() >= 2, again.size() >= 2);
      EXPECT_EQ(found.nearest->id, alone.nearest->id);
      EXPECT_EQ(found.nearest->worst(), alone.nearest->worst());
      EXPECT_EQ(found.fates, alone.fates);
      EXPECT_TRUE(
          std::ranges::equal(found.simulated, alone.simulated, {}, &CapacityPoint::id, &CapacityPoint::id));
    }
  }
  EXPECT_GE(several, 1);
}

// On shipped presets, with drafts, prompts that begin alike, experts over ranks with attention of their own, and pools.
TEST(Capacity, IsThatOfBruteForceWithEveryFeature) {
  const yaml::Catalog catalog({test::source_dir()});
  const std::filesystem::path trace =
      std::filesystem::temp_directory_path() / fmt::format("shardscape-capacity-{}.csv", ::getpid());
  std::ofstream lines(trace);
  lines << "arrival_s,prompt_tokens,output_tokens,reused_prefix_blocks,parent_request\n";
  for (int i = 0; i < 120; ++i)
    lines << fmt::format("{},{},{},{},{}\n", 0.02 * i, 1600 + 10 * i, 20 + i, i == 0 ? 0 : 3, i / 2);
  lines.close();
  const std::vector<std::int64_t> counts = {1, 2, 4, 8, 16};
  int one = 0, several = 0, nothing = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(12); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto pick = [&](auto... values) {
      const std::vector list{values...};
      return list[std::uniform_int_distribution<std::size_t>(0, list.size() - 1)(random)];
    };
    const std::uint64_t kind = seed % 4;
    const std::string model = kind == 2 ? "deepseek-v2-lite" : "llama3.1-8b";
    const std::string load = kind == 1
                                 ? fmt::format("trace: {}, speed_up: {}", trace.string(), pick(1, 8, 40))
                                 : fmt::format(
                                       "prompt_tokens: {{mean: 800, length_ratio: 0.5}}, output_tokens: 120, "
                                       "request_rate: {} /s, client: {{requests: 150}}",
                                       pick(2, 30, 150));
    const std::string drafts =
        kind == 0 ? fmt::format(
                        ", speculation: {{draft_tokens: {}, acceptance: 0.7, method: draft_model, "
                        "draft_model: llama3.2-1b}}",
                        pick(1, 3))
                  : "";
    const double ttft = pick(0.05, 0.3, 2.0), tpot = pick(0.006, 0.012, 0.05);
    const auto study_on = [&](const std::string& gpus, std::int64_t least, std::int64_t most) {
      const auto up_to = [&](std::int64_t end) {
        std::string list = "1";
        for (std::int64_t n = 2; n <= std::min(end, most); n *= 2) list += ", " + std::to_string(n);
        return list;
      };
      const std::string text = fmt::format(
          "model: {}\ncluster: dgx-h100\nstack: {}\ngpus: {}\n"
          "workload: {{phase: inference, precision: bf16, {}{}}}\n"
          "space: {{tensor_parallel: [{}], expert_parallel: [{}]{}}}\n"
          "promises: {{ttft_p95: {} s, tpot: {} s}}\n",
          model, kind == 2 ? "sglang" : "vllm", gpus, load, drafts, up_to(kind == 2 ? 2 : 8),
          kind == 2 ? up_to(8) : "1",
          kind == 3 && least > 1 ? ", prefill_gpus: [0, 1], prefill_tensor_parallel: [1]" : "", ttft, tpot);
      auto study = parse_study(text, "s.yaml", {}, catalog);
      EXPECT_TRUE(study.has_value()) << text << (study ? "" : study.error().to_string());
      for (System& system : study->systems)
        if (kind == 2) system.stack.serving.attention_ranks = AttentionRanks::dealt;
      return *std::move(study);
    };
    const std::int64_t least = kind == 3 ? 2 : 1;
    std::vector<std::int64_t> from = counts;
    if (least > 1) from.erase(from.begin());
    const auto expected = brute_force(
        from, ttft, tpot, [&](std::int64_t count) { return study_on(std::to_string(count), least, count); });
    expect_capacity(study_on(fmt::format("[{}]", fmt::join(from, ", ")), least, 16), expected);
    (!expected ? nothing : expected->gpus == least ? one : several) += 1;
  }
  std::filesystem::remove(trace);
  EXPECT_GE(one, test::at_least(1));
  EXPECT_GE(several, test::at_least(2));
  EXPECT_GE(nothing, test::at_least(1));
}

}  // namespace
}  // namespace shardscape::sweep
