// What a search must answer: every point of a small space evaluated, ranked and compared.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/simulate.h"
#include "sweep/runner/sweep_job.h"
#include "sweep/search/best_first.h"

namespace shardscape::sweep {

struct Truth {
  std::uint64_t id = 0;
  double value = 0, memory = 0;
};

/// Every feasible point of a study.
inline std::vector<Truth> all_points(const SweepJob& job) {
  std::vector<Truth> points;
  std::optional<Setting> setting;
  std::optional<Simulator> simulator;
  std::optional<std::uint64_t> current;
  const std::string& objective = job.study().objectives.front();
  const SimulateOptions options{.mode = job.study().mode};
  for (std::uint64_t id = 0; id < job.space().size(); ++id) {
    const PointIndex point = job.space().point(id);
    if (!job.admits(point.plan, job.workload(point.setting))) continue;
    if (current != point.setting) {
      simulator.reset();
      setting.emplace(job.study().setting(point.setting));
      simulator.emplace(*setting, options);
      current = point.setting;
    }
    const Prediction out = simulator->run(point.plan);
    if (out.status != Status::ok) continue;
    const double value = objective == "step_time_s" ? out.step_time.value()
                         : objective == "mfu"       ? out.mfu
                                                    : out.tokens_per_s_per_gpu;
    points.push_back({id, value, out.memory_peak.value()});
  }
  return points;
}

/// 1 where small values are better, else -1.
inline double sign_of(const SweepJob& job) {
  return job.study().objectives.front() == "step_time_s" ? 1 : -1;
}

inline std::vector<Truth> ranked(const SweepJob& job, std::vector<Truth> points) {
  const double sign = sign_of(job);
  std::ranges::sort(points, [&](const Truth& a, const Truth& b) {
    return a.value == b.value ? a.id < b.id : sign * a.value < sign * b.value;
  });
  return points;
}

/// The definition: points that no other beats in both; of equal ones the first.
inline std::vector<Truth> front_of(const SweepJob& job, const std::vector<Truth>& points) {
  std::vector<Truth> front;
  double least = HUGE_VAL;
  std::vector<Truth> sorted = points;
  const double sign = sign_of(job);
  std::ranges::sort(sorted, [&](const Truth& a, const Truth& b) {
    if (a.value != b.value) return sign * a.value < sign * b.value;
    return a.memory == b.memory ? a.id < b.id : a.memory < b.memory;
  });
  for (const Truth& point : sorted) {
    if (point.memory >= least) continue;
    least = point.memory;
    front.push_back(point);
  }
  return front;
}

inline void expect_same(const std::vector<BestPoint>& found, const std::vector<Truth>& truth,
                        std::size_t count) {
  ASSERT_EQ(found.size(), std::min(count, truth.size()));
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].point_id, truth[i].id) << i;
    EXPECT_EQ(found[i].objective, truth[i].value) << i;
  }
}

/// Every point has one fate, and none that was not visited beats the bound.
inline void expect_certified(const SweepJob& job, const SearchOutcome& outcome,
                             const std::vector<Truth>& truth) {
  std::uint64_t sum = 0;
  for (const std::uint64_t count : outcome.info.counts) sum += count;
  EXPECT_EQ(sum, job.space().size());
  EXPECT_EQ(outcome.info.counts[static_cast<std::size_t>(results::Fate::visited)], outcome.visited.size());
  EXPECT_TRUE(std::ranges::is_sorted(outcome.visited));
  for (const Truth& point : truth) {
    if (std::ranges::binary_search(outcome.visited, point.id)) continue;
    ASSERT_LE(sign_of(job) * outcome.info.bound, sign_of(job) * point.value) << point.id;
  }
}

inline void expect_same_outcome(const SearchOutcome& a, const SearchOutcome& b) {
  EXPECT_EQ(a.visited, b.visited);
  EXPECT_EQ(a.info.counts, b.info.counts);
  EXPECT_EQ(a.info.complete, b.info.complete);
  EXPECT_TRUE(a.info.bound == b.info.bound || (std::isnan(a.info.bound) && std::isnan(b.info.bound)));
  ASSERT_EQ(a.best.size(), b.best.size());
  for (std::size_t i = 0; i < a.best.size(); ++i) {
    EXPECT_EQ(a.best[i].point_id, b.best[i].point_id);
    EXPECT_EQ(a.best[i].objective, b.best[i].objective);
  }
}

}  // namespace shardscape::sweep
