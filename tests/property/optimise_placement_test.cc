// Is the optimised placement never slower than the plain order, and how close to the fastest of all?
#include "sweep/placement/optimise_placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "engine/simulate.h"
#include "engine/step/training/sent_in_step.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/seeds.h"

namespace shardscape::placement {
namespace {

using network::Placement;
using network::PlacementCost;

struct Case {
  std::string name;
  Setting setting;
  ParallelPlan plan;
};

Setting setting_on(std::vector<DimensionSpec> dimensions) {
  Setting setting;
  setting.model = test::llama(12, 768, 12, 12, 2304, 32000);
  setting.system.device = test::round_device();
  setting.system.fabric = {"tiny", std::move(dimensions)};
  setting.system.stack = test::plain_stack();
  setting.workload = test::training(512, 24);
  return setting;
}

ParallelPlan ordered(ParallelPlan plan, const char* order) {
  plan.order = parse_rank_order(order).value();
  plan.zero_stage = plan.data > 1 ? 1 : 0;
  return plan;
}

DimensionSpec tiny(DimensionKind kind, std::vector<std::int64_t> shape, double rate, double latency) {
  return test::dimension(std::string(name_of(kind)), kind, std::move(shape), rate, latency);
}

std::vector<Case> tiny_cases() {
  using Kind = DimensionKind;
  const auto torus = tiny(Kind::torus, {2, 3}, 5e9, 1e-6);
  const auto larger = tiny(Kind::torus, {2, 4}, 10e9, 1e-6);
  const auto line = tiny(Kind::mesh, {6}, 5e9, 1e-6);
  const auto pair = tiny(Kind::ring, {2}, 50e9, 1e-6), slow = tiny(Kind::ring, {3}, 5e9, 1e-5);
  const auto node = tiny(Kind::fully_connected, {3}, 50e9, 1e-6), rail = tiny(Kind::switched, {2}, 5e9, 1e-5);
  const auto far = tiny(Kind::torus, {2, 3}, 500e9, 1e-4);
  return {
      {"torus", setting_on({torus}), ordered(test::plan_of(2, 1, 1, 3), "tp-cp-dp-pp")},
      {"torus, tensor across", setting_on({torus}), ordered(test::plan_of(2, 1, 1, 3), "dp-cp-tp-pp")},
      {"torus, latency bound", setting_on({far}), ordered(test::plan_of(3, 1, 1, 2), "dp-tp-cp-pp")},
      {"torus, one group", setting_on({torus}), ordered(test::plan_of(6, 1, 1, 1), "tp-cp-dp-pp")},
      {"line", setting_on({line}), ordered(test::plan_of(2, 1, 1, 3), "dp-cp-tp-pp")},
      {"line, pipeline", setting_on({line}), ordered(test::plan_of(3, 1, 2, 1), "pp-cp-tp-dp")},
      {"fast and slow rings", setting_on({pair, slow}), ordered(test::plan_of(2, 1, 1, 3), "dp-cp-tp-pp")},
      {"nodes", setting_on({node, rail}), ordered(test::plan_of(3, 1, 1, 2), "dp-tp-cp-pp")},
      {"2x4, context", setting_on({larger}), ordered(test::plan_of(2, 2, 1, 2), "dp-cp-tp-pp")},
      {"2x4, pipeline", setting_on({larger}), ordered(test::plan_of(4, 1, 2, 1), "pp-tp-cp-dp")},
  };
}

struct Predictor {
  explicit Predictor(const Case& one) : c(one), fabric(one.setting.system.fabric) {
    Details details;
    Simulator(c.setting, {.time_infeasible = true}).run(c.plan, {}, &details);
    demand = network::plan_demand(c.plan, details.group_bytes);
  }
  [[nodiscard]] Seconds time(const Placement& placement) const {
    const Prediction prediction =
        Simulator(c.setting, {.time_infeasible = true, .placement = placement}).run(c.plan);
    EXPECT_TRUE(prediction.status == Status::ok || prediction.status == Status::memory);
    return prediction.step_time;
  }
  [[nodiscard]] OptimisedPlacement optimise() const {
    return optimise_placement(fabric, c.plan, demand,
                              [this](const Placement& placement) { return time(placement); }, {5'000, 1});
  }

  const Case& c;
  network::Fabric fabric;
  network::PlacementDemand demand;
};

TEST(OptimisePlacement, FindsTheFastestOfAllOnTinyFabrics) {
  for (const Case& c : test::some_of(tiny_cases(), 6)) {
    SCOPED_TRACE(c.name);
    const Predictor predictor(c);
    const OptimisedPlacement found = predictor.optimise();
    EXPECT_EQ(found.plain.time, predictor.time({}));
    EXPECT_EQ(found.best.time, found.best.placement == found.plain.placement
                                   ? found.plain.time
                                   : predictor.time(found.best.placement));
    EXPECT_EQ(found.best.cost,
              network::placement_cost(predictor.fabric, predictor.demand, found.best.placement));
    EXPECT_LE(found.best.time, found.plain.time);

    // A torus looks alike from every rank: of the larger ones rank 0 can stay where it is.
    Placement all = found.plain.placement;
    const std::ptrdiff_t fixed = all.size() > 6 ? 1 : 0;
    Seconds least = found.plain.time;
    do {
      least = std::min(least, predictor.time(all));
    } while (std::next_permutation(all.begin() + fixed, all.end()));
    EXPECT_NEAR(found.best.time.value(), least.value(), 1e-9 * least.value());
    std::printf("%-24s plain %.6f best %.6f of all %.6f s, %lld timed\n", c.name.c_str(),
                found.plain.time.value(), found.best.time.value(), least.value(),
                static_cast<long long>(found.timed));
  }
}

TEST(OptimisePlacement, IsTheSameEveryTime) {
  const std::vector<Case> cases = tiny_cases();
  const Predictor predictor(cases.back());
  const OptimisedPlacement first = predictor.optimise(), second = predictor.optimise();
  EXPECT_EQ(first.best.placement, second.best.placement);
  EXPECT_EQ(first.timed, second.timed);
  EXPECT_EQ(first.swaps, second.swaps);
}

TEST(OptimisePlacement, TimeDecidesNotCongestion) {
  const std::vector<Case> cases = tiny_cases();
  const Predictor predictor(cases[6]);  // tensor groups on slow links
  const auto optimise = [&](const PlacementTime& time) {
    return optimise_placement(predictor.fabric, cases[6].plan, predictor.demand, time, {5'000, 1});
  };
  const auto cost = [&](const Placement& placement) {
    return network::placement_cost(predictor.fabric, predictor.demand, placement);
  };

  // Everything but the plain order is slower: it stays.
  const auto loyal = optimise([](const Placement& p) { return Seconds(p.empty() ? 1 : 1 + 1e-12); });
  EXPECT_EQ(loyal.best.placement, loyal.plain.placement);
  EXPECT_GT(loyal.timed, 1);

  // All alike: the least congestion.
  const auto alike = optimise([](const Placement&) { return Seconds(1); });
  EXPECT_LT(alike.best.cost, alike.plain.cost);

  // Congestion is a virtue: the most congested of the regular layouts, however bad.
  const auto perverse = optimise([&](const Placement& p) { return Seconds(1 / cost(p).congestion_s); });
  double most = cost({}).congestion_s;
  for (const Placement& start : network::regular_placements(predictor.fabric, cases[6].plan)) {
    most = std::max(most, cost(start).congestion_s);
  }
  EXPECT_GE(perverse.best.cost.congestion_s, most);
}

TEST(OptimisePlacement, NeverSlowerOnRandomScenarios) {
  int better = 0;
  for (std::uint64_t seed = 1; seed <= test::seeds(40); ++seed) {
    test::ScenarioGenerator generator(seed);
    Case c{"seed " + std::to_string(seed), generator.setting(Phase::training), {}};
    c.plan = generator.plan(c.setting);
    SCOPED_TRACE(c.name);
    const Prediction prediction = Simulator(c.setting, {.time_infeasible = true}).run(c.plan);
    if (prediction.status != Status::ok && prediction.status != Status::memory) continue;
    const Predictor predictor(c);
    const OptimisedPlacement found = optimise_placement(
        predictor.fabric, c.plan, predictor.demand,
        [&](const Placement& placement) { return predictor.time(placement); }, {500, seed});
    EXPECT_EQ(found.plain.time, prediction.step_time);
    EXPECT_LE(found.best.time, found.plain.time);
    if (found.best.time < found.plain.time) {
      ++better;
      EXPECT_EQ(found.best.time, predictor.time(found.best.placement));
    }
  }
  EXPECT_GE(better, test::at_least(1));
}

}  // namespace
}  // namespace shardscape::placement
