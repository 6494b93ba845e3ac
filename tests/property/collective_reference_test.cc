// Do the fast paths of collective costs say what the simulator says? Random fabrics of every kind, groups,
// placements, sizes, algorithms and faults, each priced with and without them.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/counter_rng.h"
#include "engine/network/prices/collective_prices.h"
#include "engine/network/prices/ways.h"
#include "sweep/yaml/load.h"
#include "tests/support/fabrics.h"
#include "tests/support/paths.h"
#include "tests/support/random_plan.h"
#include "tests/support/seeds.h"

namespace shardscape::network {
namespace {

constexpr CollectiveOp kAllOps[] = {
    CollectiveOp::all_reduce,      CollectiveOp::reduce_scatter, CollectiveOp::all_gather,
    CollectiveOp::all_to_all,      CollectiveOp::broadcast,      CollectiveOp::ring_pass,
    CollectiveOp::chain_pass,      CollectiveOp::dispatch,       CollectiveOp::combine,
    CollectiveOp::expert_dispatch, CollectiveOp::expert_combine};
const TokenExchange kExchange{.hidden = 1024, .top_k = 3, .experts = 64};

/// Of the order of the links, so that copies weigh in the choice of algorithms.
constexpr BytesPerSecond kMemoryRate(5e9);

DimensionSpec random_dimension(CounterRng& random, const std::string& name, bool outermost) {
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(high - low + 1)));
  };
  DimensionSpec d = dimension_of(name.c_str(), DimensionKind::ring, {pick(2, 6)});
  switch (random.below(outermost ? 9 : 7)) {
    case 0:
      break;
    case 1:
      d.kind = DimensionKind::fully_connected;
      break;
    case 2:
      d.kind = DimensionKind::switched;
      d.in_network_reduction = random.below(2) == 0;
      break;
    case 3:
      d.kind = DimensionKind::mesh;
      d.shape = {pick(2, 4), pick(1, 3)};
      break;
    case 4:
      d.kind = DimensionKind::torus;
      d.shape = {pick(2, 5), pick(2, 3)};
      break;
    case 5:
      d.kind = DimensionKind::king_mesh;
      d.shape = {pick(2, 3), pick(2, 3)};
      break;
    case 6:
      d.kind = DimensionKind::hypercube;
      d.shape = {std::int64_t{1} << pick(1, 3)};
      break;
    case 7:
      d = fat_tree_of(name.c_str(), pick(4, 8), 2, 4, static_cast<double>(1 + 2 * random.below(2)));
      d.fat_tree.up_routing = static_cast<UpRouting>(random.below(3));
      d.in_network_reduction = random.below(2) == 0;
      break;
    default:
      d = dragonfly_of(name.c_str(), 3, 2, 1);
  }
  // Few distinct numbers: ties are where event order could show.
  d.bandwidth = BytesPerSecond(1e9 * static_cast<double>(1 + random.below(3)));
  d.latency = Seconds(1e-6 * static_cast<double>(1 + random.below(3)));
  return d;
}

FabricSpec random_small_fabric(CounterRng& random) {
  for (;;) {
    FabricSpec spec;
    spec.name = "random";
    const std::uint64_t count = 1 + random.below(3);
    for (std::uint64_t d = 0; d < count; ++d)
      spec.dimensions.push_back(random_dimension(random, "d" + std::to_string(d), d + 1 == count));
    spec.dimensions.back().scope = random.below(2) == 0 ? LinkScope::scale_out : LinkScope::scale_up;
    if (spec.size() <= 64 && spec.size() >= 2 && spec.validate().empty()) return spec;
  }
}

StackProfile::Communication random_stack(CounterRng& random) {
  StackProfile::Communication c;
  c.call = Seconds(5e-6);
  c.rank_step = Seconds(2e-6);
  c.scale_up_fraction = 0.75;
  c.scale_out_fraction = 0.8;
  c.bucket = Bytes(1e6);
  c.local_copy = random.below(2) == 0 ? 0 : 3 * random.uniform();
  std::vector<Algorithm> all(enum_names<Algorithm>().size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Algorithm>(i);
  if (random.below(2) == 0) return c;
  c.algorithms = random.below(4) == 0 ? all : std::vector<Algorithm>{all[random.below(all.size())]};
  return c;
}

FaultSet random_faults(CounterRng& random, const Fabric& fabric, bool removals) {
  FaultSet faults;
  for (std::uint64_t i = 0, n = 1 + random.below(3); i < n; ++i) {
    LinkFault fault;
    fault.link = static_cast<std::int32_t>(random.below(fabric.links().size()));
    fault.derate = 0.2 + 0.8 * random.uniform();
    fault.added_latency = Seconds(random.below(2) == 0 ? 0 : 5e-6);
    fault.removed = removals && random.below(2) == 0;
    add_fault(faults, fabric, fault, random.below(2) == 0 ? FaultDirections::both : FaultDirections::one);
  }
  return faults;
}

struct Drawn {
  explicit Drawn(std::uint64_t seed, const std::optional<FabricSpec>& given = {})
      : random(seed, 7),
        spec(given ? *given : random_small_fabric(random)),
        fabric(spec),
        communication(random_stack(random)),
        plan(test::random_plan(random, fabric.ranks())) {
    text = "seed " + std::to_string(seed) + ":";
    for (const DimensionSpec& d : spec.dimensions)
      text += " " + std::string(name_of(d.kind)) + testing::PrintToString(d.shape);
    set_loads();
    for (const Algorithm algorithm : communication.algorithms) text += " " + std::string(name_of(algorithm));
    if (random.below(4) == 0) {
      setup.placement.resize(static_cast<std::size_t>(fabric.ranks()));
      std::iota(setup.placement.begin(), setup.placement.end(), 0);
      for (std::size_t i = setup.placement.size(); i > 1; --i)
        std::swap(setup.placement[i - 1], setup.placement[random.below(i)]);
      text += " placed";
    }
    const auto prices = [&](double tolerance, Analysis analysis) {
      CollectiveSetup changed = setup;
      changed.tolerance = tolerance;
      changed.analysis = analysis;
      return CollectivePrices(changed);
    };
    fast = prices(kCollectiveTolerance, Analysis::by_tiles);
    exact = prices(1e-9, Analysis::by_tiles);
    reference = prices(kCollectiveTolerance, Analysis::plain);
  }

  /// An expert on each rank, so that any group divides them; some get nothing.
  void set_loads() {
    CounterRng loads(random.below(1000), 8);
    std::vector<double> shares(static_cast<std::size_t>(fabric.ranks()));
    double sum = 0;
    for (double& share : shares) sum += share = loads.below(5) == 0 ? 0 : loads.uniform();
    if (sum <= 0) return;
    for (double& share : shares) share /= sum;
    setup.expert_shares = shares;
  }

  /// One random call on both.
  void compare(int round) {
    const PlanLayout layout(plan);
    const auto axis = static_cast<PlanAxis>(random.below(kPlanAxes));
    const bool shard = random.below(3) == 0;
    RankGroup group = shard ? layout.group(PlanAxis::data, PlanAxis::context) : layout.group(axis);
    // Groups with a mirror, as copies of parameters lie under dualpipe.
    if (shard && plan.pipeline % 2 == 0 && round % 2 == 1)
      group.mirror = {plan.pipeline, layout.stride(PlanAxis::pipeline)};
    Slice slice;
    if ((shard || axis != PlanAxis::pipeline) && random.below(2) == 0) {
      const auto stages = static_cast<std::uint64_t>(plan.pipeline);
      slice = stage_slice(static_cast<std::int32_t>(random.below(stages)), layout, plan);
    }
    const CollectiveOp op = kAllOps[random.below(std::size(kAllOps))];
    const Bytes bytes(random.below(2) == 0 ? 1e7 * random.uniform() : 1e5 * random.uniform());
    const auto calls = static_cast<double>(1 + random.below(2));
    SCOPED_TRACE(text + " round " + std::to_string(round) + " op " + std::to_string(static_cast<int>(op)) +
                 " levels " + std::to_string(group.depth) + " size " + std::to_string(group.size()));
    const CollectiveKey asked{op, bytes, group, calls, slice};
    const double expected = reference.time(asked).value(), actual = fast.time(asked).value();
    ASSERT_EQ(fast.unreachable(), reference.unreachable());
    if (fast.unreachable()) {
      EXPECT_FALSE(fast.describe_unreachable().empty());
      cut = true;
      return;
    }
    const auto choice = exact.healthy().choice(asked);
    EXPECT_NEAR(exact.time(asked).value(), expected, 1e-9 * expected)
        << to_string(choice.value_or(CollectiveChoice{}));
    const auto chosen = fast.healthy().choice(asked);
    EXPECT_EQ(HealthyCosts(fast.healthy().setup()).choice(asked), chosen) << "not remembered";
    if (chosen == choice) {
      EXPECT_GE(actual, expected * (1 - 1e-9));
      EXPECT_LE(actual, expected * (1 + kCollectiveTolerance));
    }
    EXPECT_EQ(fast.time(asked).value(), actual) << "remembered";
  }

  /// The boundaries of the plan's pipeline.
  void compare_boundaries() {
    const RankGroup chain = PlanLayout(plan).group(PlanAxis::pipeline);
    const bool closed = random.below(2) == 0;
    const Bytes bytes(1e7 * random.uniform());
    SCOPED_TRACE(text + " stages " + std::to_string(chain.size()) + (closed ? " closed" : ""));
    const auto both_ways = [&](const CollectivePrices& prices) {
      std::vector<double> there, back;
      prices.boundary_times(bytes, chain, closed, there, back);
      EXPECT_EQ(there.size(), back.size());
      there.insert(there.end(), back.begin(), back.end());
      return there;
    };
    const std::vector<double> expected = both_ways(reference), actual = both_ways(exact),
                              whole = both_ways(fast), again = both_ways(fast);
    ASSERT_EQ(exact.unreachable(), reference.unreachable());
    ASSERT_EQ(expected.size(), 2 * static_cast<std::size_t>(chain.size()));
    ASSERT_EQ(actual.size(), expected.size());
    EXPECT_EQ(again, whole) << "remembered";
    for (std::size_t b = 0; b < expected.size(); ++b) {
      EXPECT_NEAR(actual[b], expected[b], 1e-9 * expected[b]) << b;
      EXPECT_GE(whole[b], expected[b] * (1 - 1e-9)) << b;
      EXPECT_LE(whole[b], expected[b] * (1 + kCollectiveTolerance)) << b;
    }
    if (reference.unreachable() || closed) return;
    // None is slower than all of them at once.
    const double slowest = *std::ranges::max_element(expected);
    EXPECT_LE(slowest, reference.time({CollectiveOp::chain_pass, bytes, chain}).value() * (1 + 1e-9));
  }

  CounterRng random;
  FabricSpec spec;
  Fabric fabric;
  StackProfile::Communication communication;
  CollectiveSetup setup{fabric, communication, kMemoryRate, nullptr, kExchange};
  CollectivePrices fast{setup}, exact{setup}, reference{setup};
  ParallelPlan plan;
  std::string text;
  bool cut = false;
};

TEST(CollectiveReference, BoundariesAgreeWithTheSimulator) {
  for (std::uint64_t seed = 1000; seed < 1000 + test::seeds(300); ++seed) {
    Drawn test(seed);
    for (int round = 0; round < 3; ++round) {
      test.compare_boundaries();
      if (testing::Test::HasFailure()) return;
      const FaultSet faults = random_faults(test.random, test.fabric, round == 1);
      for (CollectivePrices* model : {&test.fast, &test.exact, &test.reference}) model->set_faults(faults);
    }
  }
}

TEST(CollectiveReference, FastPathsAgreeWithTheSimulator) {
  for (std::uint64_t seed = 0; seed < test::seeds(400); ++seed) {
    Drawn test(seed);
    for (int round = 0; round < 4; ++round) test.compare(round);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(CollectiveReference, FastPathsAgreeWithTheSimulatorUnderFaults) {
  int cut = 0;
  for (std::uint64_t seed = 1000; seed < 1000 + test::seeds(400); ++seed) {
    Drawn test(seed);
    for (int round = 0; round < 4; ++round) {
      const FaultSet faults =
          round == 3 ? FaultSet{} : random_faults(test.random, test.fabric, seed % 2 == 0);
      test.fast.set_faults(faults);
      test.exact.set_faults(faults);
      test.reference.set_faults(faults);
      const double share = 0.2 + 0.8 * test.random.uniform();
      for (CollectivePrices* const model : {&test.fast, &test.exact, &test.reference})
        *model = model->with_memory(share);
      test.compare(round);
      if (testing::Test::HasFailure()) return;
    }
    cut += test.cut ? 1 : 0;
  }
  EXPECT_GE(cut, test::at_least(1)) << "no case in which dead links cut a group";
}

// What is priced once for all stages must hold for stages that lie otherwise on the leaves of a fat tree than the
// first.
TEST(CollectiveReference, StagesThatEndInsideALeafAgreeWithTheSimulator) {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(60); ++seed) {
    CounterRng random(seed, 9);
    // Leaves of 2, 3 or 4 nodes of so many ranks each; a stage is a part of one, or a leaf and a part.
    const auto ports = static_cast<std::int64_t>(2 + random.below(3));
    const auto node = static_cast<std::int64_t>(1 + random.below(2)) * 2;
    const auto stages = static_cast<std::int32_t>(ports * static_cast<std::int64_t>(1 + random.below(2)));
    const std::int64_t nodes_of_stage = ports * static_cast<std::int64_t>(random.below(2)) + 1;
    FabricSpec spec{"leaves",
                    {dimension_of("node", DimensionKind::switched, {node}),
                     fat_tree_of("tree", nodes_of_stage * stages, 2, 2 * ports)}};
    spec.dimensions.front().bandwidth = BytesPerSecond(1e9 * static_cast<double>(1 + random.below(4)));
    spec.dimensions.back().scope = LinkScope::scale_out;
    spec.dimensions.back().fat_tree.up_routing = static_cast<UpRouting>(random.below(3));
    if (!spec.validate().empty()) continue;
    Drawn test(seed, spec);
    for (int round = 0; round < 4; ++round) {
      test.plan = test::random_plan(random, static_cast<std::int32_t>(nodes_of_stage * node));
      test.plan.data *= test.plan.pipeline;
      test.plan.pipeline = stages;
      std::stable_partition(test.plan.order.begin(), test.plan.order.end(),
                            [](PlanAxis axis) { return axis != PlanAxis::pipeline; });
      test.compare(round);
      ++compared;
    }
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GE(compared, test::at_least(100));
}

double sum_of(const std::vector<CurveParts::Stage>& stages, double bytes) {
  double sum = 0;
  for (const CurveParts::Stage& stage : stages) sum += stage.at(bytes);
  return sum;
}

/// How often the bounds of contended dimension-wise stages enclosed a simulation, and how often the one of stages in
/// turn was above all others, and met the upper one.
struct Enclosed {
  int simulated = 0, sharper = 0, met = 0;

  void compare(const FabricSpec& spec, std::uint64_t seed) {
    CounterRng random(seed, 10);
    const Fabric fabric(spec);
    StackProfile::Communication communication = random_stack(random);
    communication.algorithms = {Algorithm::dimension_wise};
    PricedNetwork network(fabric, communication);
    if (random.below(2) == 0) network.set_faults(random_faults(random, fabric, false));
    const ParallelPlan plan = test::random_plan(random, fabric.ranks());
    const RankGroup group = PlanLayout(plan).group(static_cast<PlanAxis>(random.below(kPlanAxes)));
    const CollectiveOp op = kAllOps[random.below(3)];
    if (group.alone()) return;
    const SiblingGroups groups = sibling_groups(group, fabric, {});
    const Way way = ways_of(op, groups, network, communication).front();
    if (way.choice.algorithm != Algorithm::dimension_wise) return;
    CurveMaker maker(network);
    const CostCurve curve = curve_of(maker, op, way, groups, fabric);
    for (const CurveParts::Contended& part : curve.contended()) {
      if (part.in_turn.empty() || part.messages > 1 << 12) continue;
      const double bytes = random.below(2) == 0 ? 1e8 * random.uniform() : 1e5 * random.uniform();
      const double time = network.simulate(pattern_of(op, way, groups, bytes)).value();
      const double least = sum_of(part.in_turn, bytes), most = sum_of(part.upper, bytes);
      EXPECT_LE(least, time * (1 + 1e-9)) << spec.name << " seed " << seed;
      EXPECT_GE(most, time * (1 - 1e-9)) << spec.name << " seed " << seed;
      ++simulated;
      if (least > sum_of(part.lower, bytes)) ++sharper;
      if (least >= most * (1 - 1e-12)) ++met;
    }
  }
};

TEST(CollectiveReference, StagesInTurnTakeNoMoreThanSimulated) {
  Enclosed enclosed;
  for (std::uint64_t seed = 0; seed < test::seeds(5000); ++seed) {
    CounterRng random(seed, 11);
    enclosed.compare(random_small_fabric(random), seed);
  }
  EXPECT_GE(enclosed.simulated, test::at_least(30));
  EXPECT_GE(enclosed.sharper, test::at_least(3));
}

TEST(CollectiveReference, StagesInTurnTakeNoMoreThanSimulatedOnShippedFabrics) {
  const yaml::Catalog catalog({test::source_dir()});
  Enclosed enclosed;
  std::uint64_t seed = 0;
  for (const yaml::Catalog::Entry& entry : catalog.list(yaml::PresetKind::cluster)) {
    const yaml::Cluster machine = yaml::load_cluster(catalog, entry.name).value();
    for (std::uint64_t i = 0; i < test::seeds(500); ++i) {
      Problems problems;
      const FabricSpec spec = machine.fabric.instantiate(64 * static_cast<std::int64_t>(1 + i % 8), problems);
      if (problems.empty()) enclosed.compare(spec, ++seed);
    }
  }
  EXPECT_GE(enclosed.simulated, test::at_least(30));
  EXPECT_GE(enclosed.met, test::at_least(3));
}

// The recursion of ring_time.h, step by step.
double ring_by_recursion(const std::vector<Hop>& hops, int steps, double bytes) {
  const std::size_t n = hops.size();
  std::vector<double> ready(n, 0), free(n, 0), next(n, 0);
  for (int s = 0; s < steps; ++s) {
    for (std::size_t i = 0; i < n; ++i) {
      free[i] = std::max(ready[i], free[i]) + bytes * hops[i].seconds_per_byte;
      next[(i + 1) % n] = free[i] + hops[i].latency;
    }
    ready = next;
  }
  return *std::ranges::max_element(ready);
}

TEST(RingTime, SolvesTheRecursion) {
  for (std::uint64_t seed = 0; seed < test::seeds(2000); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    CounterRng random(seed, 3);
    std::vector<Hop> hops(2 + random.below(7));
    for (Hop& hop : hops)
      hop = {1e-6 * static_cast<double>(random.below(6)), 1e-9 * static_cast<double>(1 + random.below(4))};
    const int steps = 1 + static_cast<int>(random.below(2 * hops.size()));
    const RingTime time(hops, steps);
    for (const double bytes : {1.0, 500.0, 3000.0, 1e6}) {
      const double expected = ring_by_recursion(hops, steps, bytes);
      EXPECT_NEAR(time.at(bytes), expected, 1e-12 * expected);
    }
    EXPECT_TRUE(time.is_of(hops));
    EXPECT_FALSE(time.is_of(std::span(hops).first(hops.size() - 1)));
    hops[random.below(hops.size())].latency += 1e-9;
    EXPECT_FALSE(time.is_of(hops));
  }
}

}  // namespace
}  // namespace shardscape::network
