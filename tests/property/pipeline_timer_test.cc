// The fast evaluator of pipeline schedules against longest paths in the dependency graph.
#include "engine/schedule/pipeline_timer.h"

#include <gtest/gtest.h>

#include "tests/support/pipeline_oracle.h"
#include "tests/support/settings.h"

namespace shardscape::schedule {
namespace {

constexpr std::uint64_t kSeed = 77;

struct Case {
  PipelineShape shape;
  std::vector<StageTime> times;
  Transfer transfer;
};

Case random_case(test::CaseRng& rng, int most_stages, int most_groups) {
  Case c;
  c.shape.kind = static_cast<ScheduleKind>(rng.integer(0, 2));
  c.shape.stages = rng.small(1, most_stages);
  if (c.shape.kind == ScheduleKind::interleaved) {
    c.shape.stages = std::max(2, c.shape.stages);
    c.shape.virtual_stages = rng.small(2, 4);
    c.shape.microbatches = c.shape.stages * rng.small(1, most_groups);
  } else {
    c.shape.microbatches = rng.small(1, most_groups * most_stages);
  }
  // Equal stages, equal but for the ends, or all different; sometimes stages without work.
  const auto style = rng.integer(0, 3);
  StageTime common{rng.real(0.5, 2), rng.real(1, 4)};
  for (int s = 0; s < c.shape.stages; ++s) {
    StageTime time = common;
    if (style == 1 && (s == 0 || s + 1 == c.shape.stages)) time.forward *= 1.3, time.backward *= 1.1;
    if (style >= 2) time = {rng.real(0.5, 2), rng.real(1, 4)};
    if (style == 3 && rng.coin()) time = {0, 0};
    c.times.push_back(time);
  }
  c.transfer = {rng.coin() ? rng.real(0, 0.5) : 0.0, rng.coin()};
  return c;
}

std::string describe(const Case& c, std::uint64_t seed, std::uint64_t i) {
  return "seed " + std::to_string(seed) + " case " + std::to_string(i) + ": " +
         std::string(name_of(c.shape.kind)) + " p " + std::to_string(c.shape.stages) + " v " +
         std::to_string(c.shape.virtual_stages) + " m " + std::to_string(c.shape.microbatches) +
         " transfer " + std::to_string(c.transfer.seconds) + (c.transfer.blocking ? " blocking" : "");
}

void expect_same(std::span<const double> actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t s = 0; s < expected.size(); ++s) {
    EXPECT_NEAR(actual[s], expected[s], 1e-9 * expected[s] + 1e-12) << "stage " << s;
  }
}

TEST(PipelineTimer, EqualsLongestPathsOnSmallSchedules) {
  PipelineTimer timer;
  for (std::uint64_t i = 0; i < 1200; ++i) {
    test::CaseRng rng(kSeed, i);
    const Case c = random_case(rng, 5, 5);
    SCOPED_TRACE(describe(c, kSeed, i));
    const std::vector<double> truth = test::longest_paths(c.shape, c.times, c.transfer);
    expect_same(timer.run(c.shape, c.times, c.transfer), truth);
    expect_same(run_in_order(c.shape, c.times, c.transfer), truth);
  }
}

TEST(PipelineTimer, EqualsTheWalkOnLongSchedules) {
  PipelineTimer timer;
  for (std::uint64_t i = 0; i < 400; ++i) {
    test::CaseRng rng(kSeed + 1, i);
    const Case c = random_case(rng, 12, 30);
    SCOPED_TRACE(describe(c, kSeed + 1, i));
    expect_same(timer.run(c.shape, c.times, c.transfer), run_in_order(c.shape, c.times, c.transfer));
  }
}

TEST(PipelineTimer, SlowerTransfersOrStagesNeverEndEarlier) {
  PipelineTimer timer;
  for (std::uint64_t i = 0; i < 600; ++i) {
    test::CaseRng rng(kSeed + 2, i);
    Case c = random_case(rng, 8, 8);
    SCOPED_TRACE(describe(c, kSeed + 2, i));
    const auto run = [&] {
      const auto ends = timer.run(c.shape, c.times, c.transfer);
      return std::vector<double>(ends.begin(), ends.end());
    };
    const std::vector<double> before = run();
    c.transfer.seconds += rng.real(0, 0.5);
    const std::vector<double> with_transfer = run();
    auto& slowed = c.times[static_cast<std::size_t>(rng.integer(0, c.shape.stages - 1))];
    (rng.coin() ? slowed.forward : slowed.backward) += rng.real(0, 1);
    const std::vector<double> with_slow_stage = run();
    for (std::size_t s = 0; s < before.size(); ++s) {
      EXPECT_GE(with_transfer[s], before[s] * (1 - 1e-12));
      EXPECT_GE(with_slow_stage[s], with_transfer[s] * (1 - 1e-12));
    }
  }
}

// Lower bounds that hold for any schedule: a stage's own work, and one microbatch's way down and up.
TEST(PipelineTimer, NoStageBeatsItsWorkOrTheCriticalPath) {
  PipelineTimer timer;
  for (std::uint64_t i = 0; i < 600; ++i) {
    test::CaseRng rng(kSeed + 3, i);
    const Case c = random_case(rng, 8, 8);
    SCOPED_TRACE(describe(c, kSeed + 3, i));
    const auto ends = timer.run(c.shape, c.times, c.transfer);
    double way = 0;
    for (std::size_t s = 0; s < c.times.size(); ++s) {
      const StageTime& t = c.times[s];
      way += c.shape.virtual_stages * (t.forward + t.backward);
      EXPECT_GE(ends[s] * (1 + 1e-12),
                c.shape.microbatches * c.shape.virtual_stages * (t.forward + t.backward));
    }
    way += 2 * (c.shape.stages * c.shape.virtual_stages - 1) * c.transfer.seconds;
    EXPECT_GE(ends[0] * (1 + 1e-12), way);
  }
}

}  // namespace
}  // namespace shardscape::schedule
