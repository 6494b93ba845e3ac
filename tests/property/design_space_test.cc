// Is the design space a bijection onto exactly the distinct plans? Held against brute force on random specs.
#include "sweep/space/design_space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "engine/base/counter_rng.h"
#include "sweep/space/point_text.h"
#include "tests/support/seeds.h"

namespace shardscape::sweep {
namespace {

constexpr std::uint64_t kSeeds = test::seeds(200);

/// A random non-empty selection of `pool`, in random order.
template <class T>
std::vector<T> pick(CounterRng& random, std::vector<T> pool) {
  for (std::size_t i = pool.size(); i > 1; --i) std::swap(pool[i - 1], pool[random.below(i)]);
  pool.resize(1 + random.below(std::min<std::uint64_t>(pool.size(), 3)));
  return pool;
}

SpaceSpec random_spec(CounterRng& random) {
  SpaceSpec spec;
  const std::vector<std::int32_t> degrees = {1, 2, 3, 4, 6, 8, 12};
  std::array<AxisList*, 4> axes = {&spec[PlanKey::tensor], &spec[PlanKey::context], &spec[PlanKey::pipeline],
                                   &spec[PlanKey::data]};
  for (AxisList* axis : axes) *axis = {false, pick(random, degrees)};
  const std::uint64_t filling = random.below(5);
  if (filling < 4) *axes[filling] = {true, {}};
  std::vector<std::int32_t>& sequence = spec[PlanKey::sequence_parallel].values;
  sequence = {1};
  if (random.below(2) != 0) {
    const bool on_first = random.below(2) == 0;
    sequence = {on_first ? 1 : 0, on_first ? 0 : 1};
  }
  const auto set = [&](PlanKey key, const std::vector<std::int32_t>& pool) {
    spec[key].values = pick(random, pool);
  };
  set(PlanKey::zero_stage, {0, 1, 2, 3});
  set(PlanKey::recompute, codes_of({Recompute::none, Recompute::selective, Recompute::full}));
  set(PlanKey::microbatch, {1, 2, 4, 8});
  set(PlanKey::schedule, codes_of({ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::interleaved,
                                   ScheduleKind::zero_bubble}));
  set(PlanKey::virtual_stages, {1, 2, 3, 4});
  std::vector<RankOrder> orders;
  RankOrder order = {PlanAxis::tensor, PlanAxis::context, PlanAxis::data, PlanAxis::pipeline};
  do orders.push_back(order);
  while (std::next_permutation(order.begin(), order.end()));
  spec[PlanKey::order].values.clear();
  for (const RankOrder& picked : pick(random, orders))
    spec[PlanKey::order].values.push_back(rank_order_code(picked));
  spec.prefill_gpus = pick<std::int32_t>(random, {0, 0, 2, 4, 6, 12});
  std::ranges::sort(spec.prefill_gpus);
  spec.prefill_gpus.erase(std::unique(spec.prefill_gpus.begin(), spec.prefill_gpus.end()),
                          spec.prefill_gpus.end());
  set(PlanKey::prefill_tensor, {1, 2, 3});
  set(PlanKey::prefill_pipeline, {1, 2});
  set(PlanKey::ffn, {1, 3});
  spec[PlanKey::ffn].values.insert(spec[PlanKey::ffn].values.begin(), 0);
  return spec;
}

/// What a plan computes, as text: written out from the rules of the design, not from canonical().
std::string essence(const ParallelPlan& plan, Phase phase) {
  std::string text;
  const PrefillPool& pool = plan.prefill;
  const auto in_pool = [&](PlanAxis axis) {
    return axis == PlanAxis::tensor     ? pool.tensor
           : axis == PlanAxis::pipeline ? pool.pipeline
           : axis == PlanAxis::data     ? pool.data
                                        : 1;
  };
  for (const PlanAxis axis : plan.order) {  // axes of degree 1 leave no trace in the layout
    if (plan.degree(axis) > 1 || (plan.disaggregated() && in_pool(axis) > 1))
      text += std::string(name_of(axis)) + std::to_string(plan.degree(axis)) + " ";
  }
  if (plan.disaggregated()) {
    text += "prefill " + std::to_string(pool.tensor) + "*" + std::to_string(pool.pipeline) + "*" +
            std::to_string(pool.data) + " " + std::to_string(plan.ffn) + " ";
  }
  if (phase == Phase::inference) return text;
  if (plan.tensor > 1 && plan.sequence_parallel) text += "sp ";
  if (plan.data * plan.context > 1) text += "zero" + std::to_string(plan.zero_stage) + " ";
  if (plan.pipeline > 1) {
    const bool chunks = plan.schedule == ScheduleKind::interleaved && plan.virtual_stages > 1;
    if (chunks) {
      text += "interleaved" + std::to_string(plan.virtual_stages) + " ";
    } else {
      const bool plain =
          plan.schedule == ScheduleKind::interleaved || plan.schedule == ScheduleKind::one_f_one_b;
      text += plain ? "1f1b " : std::string(name_of(plan.schedule)) + " ";
    }
  }
  return text + std::string(name_of(plan.recompute)) + " mbs" + std::to_string(plan.microbatch);
}

std::vector<std::int32_t> values_of(const AxisList& axis, std::int64_t gpus) {
  if (!axis.fill) return axis.values;
  std::vector<std::int32_t> all;
  for (std::int32_t value = 1; value <= gpus; ++value) all.push_back(value);
  return all;
}

/// Every combination of every axis beside the pool and the GPUs with experts alone, kept where the degrees multiply to the GPUs.
void add_plans(const SpaceSpec& spec, std::int64_t gpus, Phase phase, const PrefillPool& pool,
               std::int32_t ffn, std::set<std::string>& essences) {
  ParallelPlan p;
  p.prefill = pool;
  p.ffn = ffn;
  for (std::int32_t tensor : values_of(spec[PlanKey::tensor], gpus)) {
    for (std::int32_t context : values_of(spec[PlanKey::context], gpus)) {
      for (std::int32_t pipeline : values_of(spec[PlanKey::pipeline], gpus)) {
        for (std::int32_t data : values_of(spec[PlanKey::data], gpus)) {
          p.tensor = tensor, p.context = context, p.pipeline = pipeline, p.data = data;
          if (p.gpus() != gpus) continue;
          for (std::int32_t sp : spec[PlanKey::sequence_parallel].values)
            for (std::int32_t zero : spec[PlanKey::zero_stage].values)
              for (std::int32_t schedule : spec[PlanKey::schedule].values)
                for (std::int32_t chunks : spec[PlanKey::virtual_stages].values)
                  for (std::int32_t order : spec[PlanKey::order].values)
                    for (std::int32_t recompute : spec[PlanKey::recompute].values)
                      for (std::int32_t microbatch : spec[PlanKey::microbatch].values) {
                        p.sequence_parallel = sp == 1, p.zero_stage = zero;
                        p.schedule = static_cast<ScheduleKind>(schedule), p.virtual_stages = chunks;
                        p.order = rank_order_of(order);
                        p.recompute = static_cast<Recompute>(recompute), p.microbatch = microbatch;
                        essences.insert(essence(p, phase));
                      }
        }
      }
    }
  }
}

/// With every pool that makes whole replicas.
std::set<std::string> brute_force(const SpaceSpec& spec, std::int64_t gpus, Phase phase) {
  std::set<std::string> essences;
  std::vector<PrefillPool> pools;
  for (const std::int32_t ranks : spec.prefill_gpus) {
    if (ranks == 0) pools.push_back({});
    for (const std::int32_t tensor : spec[PlanKey::prefill_tensor].values)
      for (const std::int32_t pipeline : spec[PlanKey::prefill_pipeline].values)
        for (std::int32_t data = 1; data <= ranks; ++data)
          if (tensor * pipeline * data == ranks) pools.push_back({tensor, pipeline, data});
  }
  for (const PrefillPool& pool : pools) {
    if (pool.data == 0) add_plans(spec, gpus, phase, pool, 0, essences);
    if (pool.data == 0) continue;
    for (const std::int32_t ffn : spec[PlanKey::ffn].values)
      add_plans(spec, gpus, phase, pool, ffn, essences);
  }
  return essences;
}

struct SpaceCase {
  SpaceSpec spec;
  std::int64_t gpus = 1;
  Phase phase = Phase::training;
  std::uint64_t settings = 1;
};

SpaceCase random_case(std::uint64_t seed) {
  CounterRng random(seed, 0);
  SpaceCase c;
  c.spec = random_spec(random);
  constexpr std::array<std::int64_t, 7> kGpus = {1, 2, 6, 8, 12, 24, 48};
  c.gpus = kGpus[random.below(kGpus.size())];
  c.phase = random.below(4) == 0 ? Phase::inference : Phase::training;
  if (c.phase == Phase::training) c.spec.prefill_gpus = {0};  // a study has no others
  c.settings = 1 + random.below(3);
  return c;
}

TEST(DesignSpaceProperty, HoldsEachDistinctPlanOnce) {
  std::uint64_t non_empty = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const SpaceCase c = random_case(seed);
    const DesignSpace space(c.spec, c.gpus, c.phase, c.settings);
    std::set<std::string> listed;
    for (std::uint64_t id = 0; id < space.plans(); ++id) {
      const ParallelPlan plan = space.point(id).plan;
      ASSERT_EQ(plan.gpus(), c.gpus) << "seed " << seed;
      ASSERT_TRUE(listed.insert(essence(plan, c.phase)).second) << "twice, seed " << seed << " id " << id;
    }
    ASSERT_EQ(listed, brute_force(c.spec, c.gpus, c.phase)) << "seed " << seed;
    non_empty += space.plans() > 0 ? 1 : 0;
  }
  if (test::all_seeds()) {
    EXPECT_GT(non_empty, kSeeds / 4);  // the generator does exercise the claim
  }
}

TEST(DesignSpaceProperty, FindInvertsPoint) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const SpaceCase c = random_case(seed);
    const DesignSpace space(c.spec, c.gpus, c.phase, c.settings);
    const std::uint64_t stride = 1 + space.size() / 500;
    for (std::uint64_t id = 0; id < space.size(); id += stride) {
      const PointIndex point = space.point(id);
      ASSERT_EQ(space.find(point.setting, point.plan), id) << "seed " << seed;
    }
  }
}

TEST(DesignSpaceProperty, EveryPlanWrittenOutIsReadBackAsItself) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const SpaceCase c = random_case(seed);
    const DesignSpace space(c.spec, c.gpus, c.phase, 1);
    const std::uint64_t stride = 1 + space.size() / 200;
    for (std::uint64_t id = 0; id < space.size(); id += stride) {
      const std::string text = to_point_text(space.point(id).plan, c.phase);
      const auto parsed = parse_point(text, SpaceSpec{}, c.gpus, c.phase);
      ASSERT_TRUE(parsed) << text;
      ASSERT_EQ(space.find(0, parsed->plan), id) << "seed " << seed << ": " << text;
    }
  }
}

TEST(DesignSpaceProperty, IdsDoNotDependOnTheNumberOfSettings) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const SpaceCase c = random_case(seed);
    const DesignSpace one(c.spec, c.gpus, c.phase, 1);
    const DesignSpace many(c.spec, c.gpus, c.phase, c.settings);
    for (std::uint64_t id = 0; id < one.size(); id += 1 + one.size() / 100) {
      ASSERT_EQ(one.point(id).plan, many.point(id).plan) << "seed " << seed;
    }
  }
}

TEST(DesignSpaceProperty, AMillionCombinationsOfOnePlaceAreListed) {
  SpaceSpec spec;
  spec[PlanKey::expert].values.clear();
  spec[PlanKey::expert_tensor].values.clear();
  for (std::int32_t i = 1; i <= 1024; ++i) {
    spec[PlanKey::expert].values.push_back(i);
    if (i < 1024) spec[PlanKey::expert_tensor].values.push_back(i);
  }
  const DesignSpace most(spec, 2, Phase::training, 1);  // one rank has no experts to deal
  EXPECT_EQ(most.problem(), "");
  EXPECT_EQ(most.plans(), 1024U * 1023U);
}

}  // namespace
}  // namespace shardscape::sweep
