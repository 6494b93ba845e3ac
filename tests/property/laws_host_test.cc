// No host constant makes a step shorter when it grows: every one of them, alone, for all schedules and ZeRO
// stages, in both modes.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/simulate.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/prediction_fields.h"
#include "tests/support/seeds.h"

namespace shardscape::laws_host {
namespace {

struct HostConstant {
  const char* name;
  Seconds StackProfile::Host::*member;
};
const std::vector<HostConstant> kTrainingHost = {
    {"forward_layer", &StackProfile::Host::forward_layer},
    {"backward_layer", &StackProfile::Host::backward_layer},
    {"per_collective", &StackProfile::Host::per_collective},
    {"per_collective_rank", &StackProfile::Host::per_collective_rank},
    {"step_fixed", &StackProfile::Host::step_fixed}};

constexpr double kRounding = 1e-9;
/// A later launch moves messages in time and may keep those of different groups out of each other's way, executed or
/// priced (step/training/contention.h): to share links evenly is no optimal schedule (Graham 1969, "Bounds on
/// multiprocessing timing anomalies"). With every constant of the plans below 8 changes do so, by 1.4 % of the step at
/// most.
constexpr double kSharedLinksBand = 0.02;
/// The gather of updated weights hides behind its stage's own forward. Where other stages set the pace of a
/// pipeline, a later launch lengthens that forward, hides more of the gather and moves nothing else: by less
/// than 0.02 % of the step in the plans below. Executed, the first forward waits for the gather beside it.
constexpr double kGatherBand = 1e-3;

SimulateOptions options_of(ExecutionMode mode) {
  SimulateOptions options;
  options.mode = mode;
  options.time_infeasible = true;
  options.collective_tolerance = kRounding;
  return options;
}

/// Constants of the size of a block's time, so that host and device set the pace in turn.
void draw_host(Setting& setting, test::ScenarioGenerator& draw) {
  StackProfile::Host& host = setting.system.stack.host;
  host.forward_layer = Seconds(draw.pick({0.0, 1e-4, 1e-3}) * draw.between(0, 2));
  host.backward_layer = Seconds(draw.pick({0.0, 1e-4, 1e-3}) * draw.between(0, 4));
  host.per_collective = Seconds(draw.pick({0.0, 1e-5, 1e-4}));
  host.per_collective_rank = Seconds(draw.pick({0.0, 1e-5, 1e-4, 1e-3}));
}

/// What is drawn, and how far a step may fall when a constant grows.
struct Trial {
  ExecutionMode mode = ExecutionMode::hierarchical;
  std::uint64_t settings = 0;
  int plans = 0;              ///< number of plans for each setting
  std::uint64_t in_turn = 1;  ///< one constant in so many is tried with a plan
  bool wide_links = false;    ///< messages take their latency only
  double band = kRounding;
};
using Tried = std::set<std::pair<ScheduleKind, std::int32_t>>;  ///< schedules with ZeRO stages

Tried check(const Trial& trial) {
  Tried tried;
  const int plans = test::size_of_case(trial.plans, 2);
  for (std::uint64_t seed = 1; seed <= test::seeds(trial.settings); ++seed) {
    test::ScenarioGenerator draw(seed + 7000);
    Setting setting = draw.setting(Phase::training);
    draw_host(setting, draw);
    if (trial.wide_links) {
      for (DimensionSpec& dimension : setting.system.fabric.dimensions)
        dimension.bandwidth = BytesPerSecond(1e18);
    }
    for (int i = 0; i < plans; ++i) {
      const ParallelPlan plan = draw.plan(setting);
      const Prediction before = Simulator(setting, options_of(trial.mode)).run(plan);
      if (before.status != Status::ok && before.status != Status::memory) continue;
      tried.insert({plan.schedule, plan.zero_stage});
      for (const HostConstant& constant : kTrainingHost) {
        if (draw.below(trial.in_turn) != 0) continue;
        Setting slower = setting;
        Seconds& value = slower.system.stack.host.*constant.member;
        value += Seconds(draw.pick({1e-5, 1e-4, 1e-3}) * draw.between(0, 5));
        SCOPED_TRACE(test::describe(seed, plan) + " " + constant.name + " to " +
                     std::to_string(value.value()));
        const Prediction after = Simulator(slower, options_of(trial.mode)).run(plan);
        const bool gathers = setting.system.stack.communication.gather_overlap > 0 && plan.pipeline > 1 &&
                             trial.mode == ExecutionMode::hierarchical;
        const double band = gathers ? kGatherBand : trial.band;
        EXPECT_GE(test::uncontended(after), test::uncontended(before) * (1 - band));
        EXPECT_GE(after.step_time.value(), before.step_time.value() * (1 - kSharedLinksBand));
        if (testing::Test::HasFailure()) return tried;
      }
    }
  }
  return tried;
}

/// Expects that every schedule with every ZeRO stage was among the plans that could be timed.
void expect_all(const Tried& tried) {
  if (testing::Test::HasFailure() || !test::all_seeds()) return;
  for (const ScheduleKind kind : {ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::interleaved,
                                  ScheduleKind::zero_bubble}) {
    for (std::int32_t zero = 0; zero <= 3; ++zero)
      EXPECT_TRUE(tried.contains({kind, zero})) << name_of(kind) << " ZeRO-" << zero;
  }
}

TEST(HostLaws, ASlowerHostIsNeverFaster) {
  expect_all(check({.mode = ExecutionMode::hierarchical, .settings = 150, .plans = 10}));
}

TEST(HostLaws, ASlowerHostIsNeverFasterExecuted) {
  expect_all(check(
      {.mode = ExecutionMode::flattened, .settings = 60, .plans = 6, .in_turn = 3, .wide_links = true}));
}

TEST(HostLaws, ASlowerHostIsHardlyEverFasterExecutedOnSharedLinks) {
  expect_all(check({.mode = ExecutionMode::flattened,
                    .settings = 60,
                    .plans = 6,
                    .in_turn = 3,
                    .band = kSharedLinksBand}));
}

}  // namespace
}  // namespace shardscape::laws_host
