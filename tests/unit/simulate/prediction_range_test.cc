// Does what is no number ever leave the engine as a result?
#include "engine/prediction_range.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/simulate.h"
#include "tests/support/engine_fixture.h"

namespace shardscape {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

Setting machine_of_two() {
  Setting s;
  s.model = test::llama(8, 1024, 16, 8, 3072, 32000);
  s.system.device = test::round_device();
  s.system.fabric = test::crossbar(2);
  s.system.stack = test::plain_stack();
  s.workload = test::training(1024, 32);
  return s;
}

TEST(PredictionRange, EveryFigureCounts) {
  const Prediction good = Simulator(machine_of_two()).run(test::plan_of(1, 1, 1, 2));
  ASSERT_EQ(good.status, Status::ok);
  EXPECT_TRUE(in_range(good, Phase::training));
  for (const double bad : {kInfinity, -kInfinity, kNotANumber, 1e31}) {
    Prediction p = good;
    p.step_time = Seconds(bad);
    EXPECT_FALSE(in_range(p, Phase::training)) << bad;
    p = good;
    p.breakdown[TimeClass::data_comm] = Seconds(bad);
    EXPECT_FALSE(in_range(p, Phase::training)) << bad;
    p = good;
    p.memory.logits = Bytes(bad);
    EXPECT_FALSE(in_range(p, Phase::training)) << bad;
    EXPECT_FALSE(memory_in_range(p)) << bad;
  }
  Prediction p = good;
  p.mfu = kNotANumber;
  EXPECT_FALSE(in_range(p, Phase::training));
  p = good;
  p.step_time = Seconds(0);
  EXPECT_FALSE(in_range(p, Phase::training));
  p = good;
  p.ttft = Seconds(kInfinity);  // only inference has this figure
  p.e2e = Seconds(1);
  EXPECT_TRUE(in_range(p, Phase::training));
  EXPECT_FALSE(in_range(p, Phase::inference));
}

TEST(PredictionRange, EndlessStepsAreAStatusWithAReason) {
  Setting setting = machine_of_two();
  setting.system.stack.host.step_fixed = Seconds(kInfinity);
  for (const ExecutionMode mode : {ExecutionMode::hierarchical, ExecutionMode::flattened}) {
    SimulateOptions options;
    options.mode = mode;
    options.time_infeasible = true;
    Details details;
    details.want_timeline = false;
    const Prediction out = Simulator(setting, options).run(test::plan_of(1, 1, 1, 2), {}, &details);
    EXPECT_EQ(out.status, Status::out_of_range);
    EXPECT_EQ(out.reason, Reason::out_of_range);
    EXPECT_EQ(out.step_time.value(), 0);
    EXPECT_TRUE(std::isfinite(out.mfu));
    EXPECT_TRUE(details.operators.empty());
  }
}

TEST(PredictionRange, EndlessMemoryIsNoVerdictOnMemory) {
  Setting setting = machine_of_two();
  setting.system.stack.memory.reserve = Bytes(kInfinity);
  const Prediction out = Simulator(setting).run(test::plan_of(1, 1, 1, 2));
  EXPECT_EQ(out.status, Status::out_of_range);
  EXPECT_TRUE(std::isfinite(out.memory_peak.value()));
}

TEST(PredictionRange, FaultsMayMakeAStepEndless) {
  const Setting setting = machine_of_two();
  Simulator simulator(setting);
  ASSERT_EQ(simulator.run(test::plan_of(1, 1, 1, 2)).status, Status::ok);
  FaultSet slow;
  slow.devices.push_back({0, 1e-300, 1e-300});
  EXPECT_EQ(simulator.rerun(slow).status, Status::out_of_range);
  EXPECT_EQ(simulator.rerun({}).status, Status::ok);
}

}  // namespace
}  // namespace shardscape
