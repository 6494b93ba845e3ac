// Random plans on random settings: conservation, determinism, monotonicity.
#include "engine/simulate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/network/fabric.h"
#include "tests/support/settings.h"

namespace shardscape {
namespace {

constexpr std::uint64_t kSeed = 1905;
constexpr int kSettings = 120;
constexpr int kPlansEach = 40;

FabricSpec random_fabric(test::CaseRng& rng) {
  using enum DimensionKind;
  switch (rng.integer(0, 4)) {
    case 0:
      return test::nodes(8, rng.pick<std::int64_t>({1, 2, 4}));
    case 1:
      return test::fabric({test::dimension("torus", torus, {4, 4}),
                           test::dimension("ring", ring, {2}, 25e9, 2e-6, LinkScope::scale_out)});
    case 2:
      return test::fabric(
          {test::dimension("mesh", mesh, {2, 4}), test::dimension("full", fully_connected, {2})});
    case 3:
      return test::fabric({test::dimension("full", fully_connected, {4}),
                           test::dimension("out", switched, {6}, 25e9, 2e-6, LinkScope::scale_out)});
    default:
      return test::fabric({test::dimension("ring", ring, {8})});
  }
}

Setting random_setting(test::CaseRng& rng, bool training) {
  Setting s;
  switch (rng.integer(0, 3)) {
    case 0:
      s.model = test::gpt(12 * rng.integer(1, 4), 1024 * rng.integer(1, 6), 16);
      break;
    case 1:
      s.model = test::llama31_8b();
      break;
    case 2:
      s.model = test::llama31_70b();
      break;
    default:
      s.model = test::llama(24, 2048, 16, 4, 5632, 32000);
      s.model.tied_embeddings = rng.coin();
  }
  s.system = {test::a100(), random_fabric(rng),
              rng.integer(0, 5) == 0 ? test::bare_stack() : test::full_stack()};
  StackProfile& stack = s.system.stack;
  stack.attention = rng.coin() ? AttentionKernel::flash : AttentionKernel::naive;
  stack.partition = rng.coin() ? PartitionRule::uniform : PartitionRule::balanced;
  stack.zero2_gradients = rng.coin() ? Zero2Gradients::per_microbatch : Zero2Gradients::last_microbatch;
  stack.fused_loss = rng.coin();
  stack.keep_gathered = rng.coin();
  stack.communication.pipeline_async = rng.coin();
  stack.communication.scatter_boundaries = rng.coin();
  stack.communication.tensor_overlap = rng.real(0, 1);
  stack.communication.context_overlap = rng.real(0, 1);
  stack.communication.data_overlap = rng.real(0, 1);
  if (training) {
    s.workload = test::training(1024 * rng.pick<std::int64_t>({1, 2, 4, 8}), 96);
  } else {
    s.workload = test::inference(rng.pick<std::int64_t>({128, 1024, 4096}), rng.integer(1, 400),
                                 rng.pick<std::int64_t>({1, 8, 24, 96}));
  }
  return s;
}

ParallelPlan random_plan(test::CaseRng& rng, std::int64_t gpus) {
  ParallelPlan plan;
  const auto take = [&](std::int64_t of) {
    std::vector<std::int64_t> divisors;
    for (std::int64_t i = 1; i <= of; ++i) {
      if (of % i == 0) divisors.push_back(i);
    }
    return static_cast<std::int32_t>(rng.pick(divisors));
  };
  plan.tensor = take(std::min<std::int64_t>(8, gpus));
  while (gpus % plan.tensor != 0) plan.tensor = take(8);
  plan.context = take(gpus / plan.tensor);
  plan.pipeline = take(gpus / plan.tensor / plan.context);
  plan.data = static_cast<std::int32_t>(gpus / plan.tensor / plan.context / plan.pipeline);
  plan.sequence_parallel = plan.tensor > 1 && rng.coin();
  plan.zero_stage = plan.data * plan.context > 1 ? rng.small(0, 3) : 0;
  plan.recompute = static_cast<Recompute>(rng.integer(0, 2));
  plan.microbatch = rng.pick<std::int32_t>({1, 2, 3, 4});
  if (plan.pipeline > 1) {
    plan.schedule = static_cast<ScheduleKind>(rng.integer(0, 2));
    if (plan.schedule == ScheduleKind::interleaved) plan.virtual_stages = rng.small(2, 3);
  }
  for (std::size_t i = 3; i > 0; --i) {
    std::swap(plan.order[i], plan.order[static_cast<std::size_t>(rng.integer(0, static_cast<int>(i)))]);
  }
  return plan;
}

std::string describe(std::uint64_t stream, const ParallelPlan& p) {
  return "seed " + std::to_string(kSeed) + " stream " + std::to_string(stream) + ": tp " +
         std::to_string(p.tensor) + " sp " + std::to_string(p.sequence_parallel) + " cp " +
         std::to_string(p.context) + " pp " + std::to_string(p.pipeline) + " dp " + std::to_string(p.data) +
         " zero " + std::to_string(p.zero_stage) + " " + std::string(name_of(p.recompute)) + " mbs " +
         std::to_string(p.microbatch) + " " + std::string(name_of(p.schedule)) + " vpp " +
         std::to_string(p.virtual_stages) + " " + to_string(p.order);
}

constexpr SimulateOptions kAlways{.reference = false, .time_infeasible = true};

/// Runs `check(setting, plan, prediction)` on every random plan that has a time.
template <class Check>
int for_each_timed(std::uint64_t base, bool training, Check check) {
  int timed = 0;
  for (std::uint64_t i = 0; i < kSettings; ++i) {
    test::CaseRng rng(kSeed, base + i);
    const Setting setting = random_setting(rng, training);
    Simulator simulator(setting, kAlways);
    for (int j = 0; j < kPlansEach; ++j) {
      const ParallelPlan plan = random_plan(rng, setting.system.fabric.size());
      const Prediction out = simulator.run(plan);
      if (out.status != Status::ok && out.status != Status::memory) continue;
      SCOPED_TRACE(describe(base + i, plan));
      check(setting, plan, out);
      ++timed;
      if (testing::Test::HasFailure()) return timed;
    }
  }
  return timed;
}

/// Every class of the breakdown is finite and not negative, and together they are the whole.
void expect_sound(const Breakdown& b, Seconds whole) {
  EXPECT_NEAR(b.total().value(), whole.value(), 1e-9 * whole.value());
  for (const Seconds part : {b.compute, b.recompute, b.tensor_comm, b.context_comm, b.pipeline_comm,
                             b.data_comm, b.bubble, b.optimizer, b.host}) {
    EXPECT_TRUE(std::isfinite(part.value()));
    EXPECT_GE(part.value(), 0);
  }
}

TEST(SimulateTraining, BreakdownAddsUpAndEverythingIsFinite) {
  const int timed =
      for_each_timed(0, true, [](const Setting& s, const ParallelPlan& plan, const Prediction& out) {
        EXPECT_GT(out.step_time.value(), 0);
        expect_sound(out.breakdown, out.step_time);
        EXPECT_DOUBLE_EQ(out.memory.total().value(), out.memory_peak.value());
        EXPECT_EQ(out.status == Status::memory, out.memory_peak > s.system.device.memory_capacity());
        EXPECT_NEAR(out.tokens_per_s_per_gpu * static_cast<double>(plan.gpus()) * out.step_time.value(),
                    96.0 * static_cast<double>(s.workload.sequence_length), 1e-3);
        EXPECT_GT(out.mfu, 0);
        EXPECT_LT(out.mfu, 1.5);  // attention counts in full although flash skips the masked half
        EXPECT_EQ(static_cast<std::int64_t>(out.microbatches) * plan.microbatch * plan.data, 96);
      });
  EXPECT_GT(timed, 1000);
}

TEST(SimulateInference, BreakdownAddsUpAndEverythingIsFinite) {
  const int timed =
      for_each_timed(1000, false, [](const Setting& s, const ParallelPlan&, const Prediction& out) {
        expect_sound(out.breakdown, out.e2e);
        EXPECT_GT(out.ttft.value(), 0);
        EXPECT_GE(out.itl, out.step_time);
        EXPECT_NEAR(out.e2e.value(),
                    (out.ttft + static_cast<double>(s.workload.output_tokens - 1) * out.itl).value(),
                    1e-9 * out.e2e.value());
        EXPECT_GT(out.memory.kv_cache.value(), 0);
      });
  EXPECT_GT(timed, 300);
}

/// The numbers of a prediction, to compare two of them.
std::vector<double> numbers(const Prediction& p) {
  const Breakdown& b = p.breakdown;
  return {static_cast<double>(p.status),
          static_cast<double>(p.reason),
          static_cast<double>(p.peak_stage),
          p.step_time.value(),
          p.ttft.value(),
          p.itl.value(),
          p.e2e.value(),
          p.tokens_per_s_per_gpu,
          p.mfu,
          p.memory_peak.value(),
          b.compute.value(),
          b.recompute.value(),
          b.tensor_comm.value(),
          b.context_comm.value(),
          b.data_comm.value(),
          b.optimizer.value(),
          b.host.value()};
}

// Inference goes through memos only: equal to the bit. A training step adds up its microbatches one by one on
// the plain path and in closed form on the fast one: equal but for rounding; memory and status equal to the
// bit.
TEST(SimulateReference, ThePlainPathSaysTheSame) {
  for (const bool training : {true, false}) {
    for_each_timed(2000, training, [&](const Setting& s, const ParallelPlan& plan, const Prediction& fast) {
      Simulator reference(s, {.reference = true, .time_infeasible = true});
      const Prediction plain = reference.run(plan);
      EXPECT_EQ(plain.memory_peak, fast.memory_peak);
      EXPECT_EQ(plain.status, fast.status);
      const std::vector<double> expected = numbers(plain), actual = numbers(fast);
      if (!training) {
        EXPECT_EQ(actual, expected);
        return;
      }
      const double step = plain.step_time.value();
      EXPECT_NEAR(fast.step_time.value(), step, 1e-9 * step);
      EXPECT_NEAR(fast.mfu, plain.mfu, 1e-9 * plain.mfu);
      // Two stages that end together may swap the role of the critical one; else every class agrees.
      EXPECT_NEAR(fast.breakdown.total().value(), plain.breakdown.total().value(), 1e-9 * step);
      if (plan.pipeline == 1) {
        EXPECT_NEAR(fast.breakdown.compute.value(), plain.breakdown.compute.value(), 1e-9 * step);
        EXPECT_NEAR(fast.breakdown.bubble.value(), plain.breakdown.bubble.value(), 1e-9 * step);
      }
    });
  }
}

TEST(SimulateDeterminism, NeitherHistoryNorObjectMatters) {
  for (std::uint64_t i = 0; i < 20; ++i) {
    test::CaseRng rng(kSeed, 3000 + i);
    const Setting setting = random_setting(rng, rng.coin());
    std::vector<ParallelPlan> plans;
    for (int j = 0; j < 60; ++j) plans.push_back(random_plan(rng, setting.system.fabric.size()));
    Simulator forwards(setting, kAlways), backwards(setting, kAlways);
    std::vector<std::vector<double>> first, second(plans.size());
    for (const ParallelPlan& plan : plans) first.push_back(numbers(forwards.run(plan)));
    for (std::size_t j = plans.size(); j-- > 0;) second[j] = numbers(backwards.run(plans[j]));
    for (std::size_t j = 0; j < plans.size(); ++j) {
      SCOPED_TRACE(describe(3000 + i, plans[j]));
      EXPECT_EQ(first[j], second[j]);
    }
  }
}

Seconds whole_time(const Setting& s, const Prediction& p) {
  return s.workload.phase == Phase::training ? p.step_time : p.e2e;
}

TEST(SimulateMonotone, FasterLinksNeverSlowAnything) {
  for (const bool training : {true, false}) {
    for_each_timed(4000, training, [](const Setting& s, const ParallelPlan& plan, const Prediction& before) {
      for (std::size_t d = 0; d < s.system.fabric.dimensions.size(); ++d) {
        Setting better = s;
        better.system.fabric.dimensions[d].bandwidth *= 3;
        const Prediction after = Simulator(better, kAlways).run(plan);
        EXPECT_LE(whole_time(s, after).value(), whole_time(s, before).value() * (1 + 1e-9))
            << "dimension " << d;
        better = s;
        better.system.fabric.dimensions[d].latency *= 0.1;
        const Prediction quick = Simulator(better, kAlways).run(plan);
        EXPECT_LE(whole_time(s, quick).value(), whole_time(s, before).value() * (1 + 1e-9))
            << "dimension " << d;
      }
    });
  }
}

TEST(SimulateMonotone, FasterDevicesNeverSlowAnything) {
  for (const bool training : {true, false}) {
    for_each_timed(5000, training, [](const Setting& s, const ParallelPlan& plan, const Prediction& before) {
      Setting better = s;
      better.system.device.hbm.bandwidth_per_stack *= 2;
      EXPECT_LE(whole_time(s, Simulator(better, kAlways).run(plan)).value(),
                whole_time(s, before).value() * (1 + 1e-9))
          << "HBM bandwidth";
      better = s;
      better.system.device.sm.clock *= 1.5;
      EXPECT_LE(whole_time(s, Simulator(better, kAlways).run(plan)).value(),
                whole_time(s, before).value() * (1 + 1e-9))
          << "clock";
    });
  }
}

TEST(SimulateFaults, ASickLinkNeverHelpsAndAHealthyOneChangesNothing) {
  for (std::uint64_t i = 0; i < 60; ++i) {
    test::CaseRng rng(kSeed, 6000 + i);
    const Setting setting = random_setting(rng, rng.coin());
    const network::Fabric fabric(setting.system.fabric);
    Simulator simulator(setting, kAlways);
    for (int j = 0; j < 20; ++j) {
      const ParallelPlan plan = random_plan(rng, setting.system.fabric.size());
      SCOPED_TRACE(describe(6000 + i, plan));
      const Prediction healthy = simulator.run(plan);
      const std::int32_t link = rng.small(0, static_cast<std::int32_t>(fabric.links().size()) - 1);
      const Prediction sick = simulator.run(plan, {{{link, rng.real(0.05, 1), Seconds(0)}}});
      EXPECT_GE(whole_time(setting, sick).value(), whole_time(setting, healthy).value() * (1 - 1e-9));
      EXPECT_EQ(sick.memory_peak, healthy.memory_peak);
      EXPECT_EQ(numbers(simulator.run(plan)), numbers(healthy));  // healed
    }
  }
}

TEST(SimulateMemory, LargerMicrobatchesNeverNeedLess) {
  for_each_timed(7000, true, [](const Setting& s, const ParallelPlan& plan, const Prediction& before) {
    ParallelPlan doubled = plan;
    doubled.microbatch *= 2;
    const Prediction after = Simulator(s, kAlways).run(doubled);
    if (after.status != Status::ok && after.status != Status::memory) return;
    EXPECT_GE(after.memory_peak.value(), before.memory_peak.value() * (1 - 1e-12));
  });
}

TEST(SimulateMemory, ZeroAndRecomputeNeverNeedMore) {
  for_each_timed(8000, true, [](const Setting& s, const ParallelPlan& plan, const Prediction& before) {
    Simulator simulator(s, kAlways);
    ParallelPlan other = plan;
    if (plan.zero_stage < 2 && plan.data * plan.context > 1) {
      ++other.zero_stage;
      EXPECT_LE(simulator.run(other).memory_peak.value(), before.memory_peak.value() * (1 + 1e-12));
    }
    other = plan;
    if (plan.recompute != Recompute::full) {
      other.recompute = Recompute::full;
      EXPECT_LE(simulator.run(other).memory_peak.value(), before.memory_peak.value() * (1 + 1e-12));
    }
  });
}

}  // namespace
}  // namespace shardscape
