// What a step must do when everything, or one size of the work, grows by a known factor.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "engine/simulate.h"
#include "engine/step/layers/price_layers.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/numbers.h"
#include "tests/support/seeds.h"

namespace shardscape::laws_scaling {
namespace {

constexpr double kRounding = 1e-9;

SimulateOptions options_of(ExecutionMode mode) {
  SimulateOptions options;
  options.mode = mode;
  options.time_infeasible = true;
  options.collective_tolerance = kRounding;
  return options;
}

Prediction predict(const Setting& setting, const ParallelPlan& plan, ExecutionMode mode) {
  return Simulator(setting, options_of(mode)).run(plan);
}

bool has_time(const Prediction& p) { return p.status == Status::ok || p.status == Status::memory; }

/// All seconds of a tree by 1/k, all rates by k, whatever their names.
yaml::Node quicker(yaml::Node tree, double k) {
  std::vector<test::Number> numbers;
  test::list_numbers(tree, "", numbers);
  for (const test::Number& number : numbers) {
    if (!number.dimension || *number.dimension == yaml::Dimension::data) continue;
    const double factor = *number.dimension == yaml::Dimension::time ? 1 / k : k;
    *number.node = yaml::Node::scalar(yaml::format_quantity(factor * number.value, *number.dimension));
  }
  return tree;
}

Setting quicker(const Setting& setting, double k) {
  Setting result = setting;
  yaml::Diagnostics problems;
  result.system.device = *yaml::read_device(quicker(yaml::write(setting.system.device), k), "", problems);
  result.system.stack = *yaml::read_stack(quicker(yaml::write(setting.system.stack), k), "", problems);
  // Written without a unit: watts times seconds.
  result.system.device.energy.flop_pj /= k;
  result.system.device.energy.byte_pj /= k;
  for (DimensionSpec& dimension : result.system.fabric.dimensions) {
    dimension.bandwidth *= k;
    dimension.latency /= k;
  }
  EXPECT_TRUE(problems.empty()) << problems.to_string();
  return result;
}

// Work is counted in FLOPs, bytes, clocks and calls, none of which k touches; every time is such a count over
// a rate or times a latency. A second is a unit: with rates k times as high and latencies k times as short
// all times are 1/k. A constant with the dimension of time anywhere in the engine would show here.
TEST(ScalingLaws, AllTimesScaleWithTheirUnit) {
  for (const ExecutionMode mode : {ExecutionMode::hierarchical, ExecutionMode::flattened}) {
    for (const Phase phase : {Phase::training, Phase::inference}) {
      int compared = 0;
      for (std::uint64_t seed = 1; seed <= test::seeds(mode == ExecutionMode::flattened ? 12 : 100); ++seed) {
        test::ScenarioGenerator draw(seed + 31000);
        Setting setting = draw.setting(phase);
        setting.model.layers = std::min<std::int64_t>(setting.model.layers, 8);
        const ParallelPlan plan = draw.plan(setting);
        const double k = draw.pick({0.25, 4.0, 64.0});  // powers of two: no rounding of their own
        const Prediction one = predict(setting, plan, mode);
        if (!has_time(one)) continue;
        const Prediction other = predict(quicker(setting, k), plan, mode);
        SCOPED_TRACE(test::describe(seed, plan) + " k " + std::to_string(k));
        if (phase == Phase::training) {
          EXPECT_NEAR(k * other.step_time / one.step_time, 1, kRounding);
          EXPECT_NEAR(k * other.breakdown[TimeClass::bubble].value(),
                      one.breakdown[TimeClass::bubble].value(), kRounding * one.step_time.value());
        } else if (one.e2e > Seconds(0)) {
          EXPECT_NEAR(k * other.e2e / one.e2e, 1, kRounding);
          EXPECT_NEAR(k * other.ttft / one.ttft, 1, kRounding);
        }
        ++compared;
      }
      EXPECT_GE(compared, test::at_least(8));
    }
  }
}

/// A random setting whose plans have a time; host and stack as drawn.
struct Scenario {
  Setting setting;
  ParallelPlan plan;
};

template <class Visit>
void for_each_scenario(std::uint64_t settings, std::uint64_t first_seed, const Visit& visit) {
  for (std::uint64_t seed = 1; seed <= test::seeds(settings); ++seed) {
    test::ScenarioGenerator draw(seed + first_seed);
    Scenario s{draw.setting(Phase::training), {}};
    s.setting.workload.global_batch = std::min<std::int64_t>(s.setting.workload.global_batch, 64);
    s.plan = draw.plan(s.setting);
    SCOPED_TRACE(test::describe(seed, s.plan));
    visit(s);
  }
}

// Twice the microbatches on the same pipeline. The first m of 2m do what m do alone, and more comes behind:
// at least T(m), and more by at least one pass of m over some stage. The schedule of m run twice in a row
// does the work of 2m, fills and drains the pipeline twice and pays the step's tail twice: at most 2 T(m).
// Without a pipeline nothing is filled: T(m) = a + b m, and 2 (T(2m) - T(m)) = T(4m) - T(2m).
TEST(ScalingLaws, TwiceTheBatch) {
  int compared = 0, affine = 0;
  for_each_scenario(150, 32000, [&](Scenario& s) {
    const auto with = [&](std::int64_t times) {
      Setting more = s.setting;
      more.workload.global_batch *= times;
      return predict(more, s.plan, ExecutionMode::hierarchical);
    };
    const Prediction one = with(1);
    if (!has_time(one)) return;
    const double t1 = one.step_time.value(), t2 = with(2).step_time.value(), t4 = with(4).step_time.value();
    EXPECT_LE(t2, 2 * t1 * (1 + kRounding));
    EXPECT_GE(t2,
              t1 + one.breakdown[TimeClass::compute].value() * (1 - 1e-6) * (s.plan.pipeline > 1 ? 0.5 : 1));
    ++compared;
    if (s.plan.pipeline > 1) return;
    EXPECT_NEAR(2 * (t2 - t1), t4 - t2, 1e-8 * t4);
    ++affine;
  });
  EXPECT_GE(compared, test::at_least(80));
  EXPECT_GE(affine, test::at_least(20));
}

// Twice the blocks. Embedding, head, the host's share of a step stay: between T(L) and 2 T(L). One stage of
// one replica does one block after the other: T(L) = a + b L.
TEST(ScalingLaws, TwiceTheLayers) {
  int compared = 0, affine = 0;
  for_each_scenario(150, 33000, [&](Scenario& s) {
    s.setting.system.stack.partition = PartitionRule::uniform;
    // A bucket for so many gradients: as many of them leave at each end of a stage.
    s.setting.system.stack.communication.bucket = Bytes(1e18);
    s.setting.system.stack.communication.zero_bucket = Bytes(0);
    const auto with = [&](std::int64_t times) {
      Setting more = s.setting;
      more.model.layers *= times;
      return predict(more, s.plan, ExecutionMode::hierarchical);
    };
    const Prediction one = with(1);
    if (!has_time(one)) return;
    const double t1 = one.step_time.value(), t2 = with(2).step_time.value(), t4 = with(4).step_time.value();
    EXPECT_GE(t2, t1 * (1 - kRounding));
    EXPECT_LE(t2, 2 * t1 * (1 + kRounding));
    ++compared;
    if (s.plan.pipeline > 1 || s.plan.data * s.plan.context > 1) return;
    EXPECT_NEAR(2 * (t2 - t1), t4 - t2, 1e-6 * t4);
    ++affine;
  });
  EXPECT_GE(compared, test::at_least(80));
  EXPECT_GE(affine, test::at_least(5));
}

// Twice the replicas for twice the batch (ZeRO 0, on a crossbar): each does what it did, and its gradients go
// round a larger ring, whose (n-1)/n of the bytes and n-1 steps grow with n.
TEST(ScalingLaws, TwiceTheReplicas) {
  int compared = 0;
  for_each_scenario(100, 34000, [&](Scenario& s) {
    s.plan.zero_stage = 0;
    s.plan.order = kDefaultRankOrder;
    s.setting.system.stack.communication.algorithms = {Algorithm::ring};
    s.setting.system.stack.communication.scale_out_scaling = 1;
    const auto with = [&](std::int32_t times) {
      Scenario more = s;
      more.plan.data *= times;
      more.setting.workload.global_batch *= times;
      more.setting.system.fabric = test::crossbar(more.plan.gpus(), 50e9, 1e-6);
      return predict(more.setting, more.plan, ExecutionMode::hierarchical);
    };
    const Prediction one = with(1);
    if (!has_time(one)) return;
    EXPECT_GE(with(2).step_time.value(), one.step_time.value() * (1 - kRounding));
    ++compared;
  });
  EXPECT_GE(compared, test::at_least(50));
}

// Attention over c ranks, its kernels and their merge: each of c ranks takes at least the c-th part of what one takes
// with all of it, whatever the kernels: no work is saved by cutting the keys, and more is written.
TEST(ScalingLaws, AttentionOverMoreRanksIsNoCheaper) {
  int compared = 0;
  for_each_scenario(200, 35000, [&](Scenario& s) {
    StackProfile& stack = s.setting.system.stack;
    stack.communication.context_exchange = ContextExchange::ring;
    for (const Architecture architecture :
         {Architecture::other, Architecture::ampere, Architecture::hopper}) {
      s.setting.system.device.architecture = architecture;
      for (const AttentionKernel kernel : {AttentionKernel::flash, AttentionKernel::cudnn}) {
        stack.attention = kernel;
        const auto seconds = [&](std::int32_t ranks) {
          model::LayerKey key = model::layer_key(s.plan, 1);
          key.context = ranks;
          std::array<double, 2> sum = {};
          for (const model::Operator& op : step::training_operators(step::block_layer(0), s.setting, key)) {
            if (!op.attention_core) continue;
            const step::OperatorTimes times = step::price(op, s.setting);
            sum[0] += times.forward.time.value();
            sum[1] += times.backward.time.value();
          }
          return sum;
        };
        const std::array<double, 2> one = seconds(1);
        for (const std::int32_t ranks : {2, 4, 8}) {
          if (s.setting.workload.sequence_length % (512 * ranks) != 0) continue;
          const std::array<double, 2> each = seconds(ranks);
          EXPECT_GE(ranks * each[0], one[0] * (1 - kRounding)) << ranks;
          EXPECT_GE(ranks * each[1], one[1] * (1 - kRounding)) << ranks;
          ++compared;
        }
      }
    }
  });
  EXPECT_GE(compared, test::at_least(200));
}

// What links without latency do is what links of a tenth of a nanosecond do: with nothing that contends
// no order of simultaneous events and no choice among equals may show. Rings of eight on a torus and a mesh,
// where one order of the ring has no more contention than the other, but more hops.
TEST(ScalingLaws, NoLatencyIsTheLimitOfSmallOnes) {
  for (const ExecutionMode mode : {ExecutionMode::hierarchical, ExecutionMode::flattened}) {
    for (const double step : {0.0, 11.7e-6}) {
      const auto seconds = [&](double latency) {
        Setting setting;
        setting.model = test::llama(2, 1024, 16, 16, 2048, 50304);
        setting.system.device = test::round_device();
        setting.system.stack = test::plain_stack();
        setting.system.stack.communication.rank_step = Seconds(step);
        setting.system.stack.communication.algorithms = {Algorithm::ring};
        setting.system.fabric = {"grid",
                                 {test::dimension("inner", DimensionKind::torus, {2, 2}, 25e9, latency),
                                  test::dimension("outer", DimensionKind::mesh, {2, 2}, 300e9, latency)}};
        setting.workload = test::training(4096, 4);
        return predict(setting, test::plan_of(8, 2, 1, 1), mode).step_time.value();
      };
      EXPECT_NEAR(seconds(0) / seconds(1e-10), 1, 1e-5) << "rank_step " << step;
      EXPECT_LE(seconds(0), seconds(1e-6));
    }
  }
}

}  // namespace
}  // namespace shardscape::laws_scaling
