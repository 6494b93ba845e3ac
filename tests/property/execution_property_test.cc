// Is the executor's result that of the plain executor on random programs, fabrics and faults?
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "engine/base/counter_rng.h"
#include "engine/execution/lone_rings.h"
#include "engine/execution/program_counts.h"
#include "tests/support/execution_fixture.h"
#include "tests/support/naive_executor.h"
#include "tests/support/seeds.h"

namespace shardscape {
namespace {

using network::CollectiveOp;
using test::ExecutionBench;
using test::group_of;

class ProgramGenerator {
 public:
  explicit ProgramGenerator(std::uint64_t seed) : rng_(seed, 1) {}

  FabricSpec fabric(std::int64_t ranks) {
    const DimensionKind kind = pick(
        {DimensionKind::ring, DimensionKind::switched, DimensionKind::mesh, DimensionKind::fully_connected});
    return {"random",
            {test::dimension("d", kind, {ranks}, between(0.5e9, 4e9), coin() ? 0 : between(0, 2e-5))}};
  }
  StackProfile::Communication communication() {
    StackProfile::Communication c = test::plain_stack().communication;
    c.call = Seconds(coin() ? 0 : between(0, 1e-4));
    c.rank_step = Seconds(coin() ? 0 : between(0, 1e-4));
    c.local_copy = coin() ? 0 : between(0, 2);
    // No trees, whose two halves send over one connection at the same instant: who comes first is up to the
    // executor.
    c.algorithms = {pick({Algorithm::ring, Algorithm::direct, Algorithm::halving_doubling})};
    return c;
  }

  /// The same steps on every rank, with durations of its own: nobody can be left waiting.
  void fill(ExecutionBench& bench, std::int32_t ranks, bool turns) {
    execution::ProgramBuilder& builder = bench.builder();
    const std::int32_t all = builder.add_lane(group_of(ranks, 1));
    const std::int32_t pairs = builder.add_lane(group_of(ranks % 2 == 0 ? 2 : ranks, 1));
    if (turns) builder.take_turns(pairs, all);
    const std::int32_t next = builder.add_channel([=](std::int32_t rank) { return (rank + 1) % ranks; });
    std::vector<Step> steps(4 + rng_.below(12));
    for (Step& step : steps) step = random_step(builder, all, pairs);
    const int times = 1 + static_cast<int>(rng_.below(3));
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
      for (const Step& step : steps) add(bench, step, next);
      bench.join(all);
      bench.join(pairs);
      bench.end_program({rank}, times);
    }
  }

 private:
  struct Step {
    std::uint64_t what = 0;
    std::int32_t lane = 0, call = 0, repeats = 1;
    double bytes = 0;
  };

  bool coin() { return rng_.below(2) == 0; }
  double between(double low, double high) { return low + (high - low) * rng_.uniform(); }
  template <class T>
  T pick(std::initializer_list<T> choices) {
    return *(choices.begin() + static_cast<std::ptrdiff_t>(rng_.below(choices.size())));
  }

  Step random_step(execution::ProgramBuilder& builder, std::int32_t all, std::int32_t pairs) {
    Step step;
    step.what = rng_.below(8);
    step.lane = coin() ? all : pairs;
    step.bytes = between(1e3, 1e7);
    step.repeats = static_cast<std::int32_t>(1 + rng_.below(3));
    const CollectiveOp op = pick({CollectiveOp::all_reduce, CollectiveOp::all_gather,
                                  CollectiveOp::reduce_scatter, CollectiveOp::ring_pass});
    step.call = builder.call(step.lane, op, Bytes(step.bytes));
    return step;
  }

  void add(ExecutionBench& bench, const Step& step, std::int32_t next) {
    switch (step.what) {
      case 0:
      case 1:
        return bench.compute(between(0, 1e-2));
      case 2:
        return bench.launch(between(0, 1e-2));
      case 3:
        return bench.sync_host();
      case 4:
      case 5:
        return bench.start(step.lane, step.call, step.repeats);
      case 6:
        return bench.join(step.lane);
      default:
        bench.send(next, step.bytes);
        if (step.repeats == 2) bench.sent(next);
        bench.receive(next);
    }
  }

  CounterRng rng_;
};

TEST(ExecutionProperty, TheExecutorAgreesWithThePlainOne) {
  for (std::uint64_t seed = 0; seed < test::seeds(300); ++seed) {
    ProgramGenerator generator(seed);
    const auto ranks = static_cast<std::int32_t>(2 + seed % 5);
    ExecutionBench bench(generator.fabric(ranks), generator.communication());
    generator.fill(bench, ranks, seed % 3 == 0);
    const execution::ExecutionResult result = bench.run();
    ASSERT_TRUE(result.deadlock.empty()) << "seed " << seed << ": " << result.deadlock.front();
    const std::vector<double> expected = test::NaiveExecutor(bench.programs(), bench.capacity()).run();
    for (std::size_t rank = 0; rank < expected.size(); ++rank) {
      EXPECT_NEAR(result.end[rank], expected[rank], 1e-8 * expected[rank] + 1e-15)
          << "seed " << seed << ", rank " << rank;
    }
  }
}

// A call alone, all members entering at once, is what CollectivePrices says: the call, its copies, its steps
// and the time of the simulator. Trees and switches overlap their steps' latencies, so that those are left
// out there.
TEST(ExecutionProperty, ACallAloneTakesItsPrice) {
  for (const Algorithm algorithm :
       {Algorithm::ring, Algorithm::bidirectional_ring, Algorithm::direct, Algorithm::halving_doubling,
        Algorithm::double_binary_tree, Algorithm::dimension_wise}) {
    for (const CollectiveOp op : {CollectiveOp::all_reduce, CollectiveOp::all_gather,
                                  CollectiveOp::reduce_scatter, CollectiveOp::ring_pass}) {
      for (const std::int32_t extent : {2, 4, 8}) {
        // The two directions share a connection: the latency of one hides behind the bytes of the other.
        if (algorithm == Algorithm::bidirectional_ring && extent == 2) continue;
        StackProfile::Communication communication = test::plain_stack().communication;
        communication.algorithms = {algorithm};
        communication.call = Seconds(1e-5);
        communication.local_copy = 1.5;
        if (algorithm != Algorithm::double_binary_tree) communication.rank_step = Seconds(4e-6);
        FabricSpec spec{"grid", {test::dimension("torus", DimensionKind::torus, {4, 2}, 1e9, 1e-6)}};
        ExecutionBench bench(spec, communication);
        const std::int32_t lane = bench.builder().add_lane(group_of(extent, 1));
        bench.start(lane, bench.builder().call(lane, op, Bytes(3e6)));
        bench.join(lane);
        bench.end_program({0, 1, 2, 3, 4, 5, 6, 7});
        const double expected = bench.builder().estimate(lane, op, Bytes(3e6)).value();
        const execution::ExecutionResult& result = bench.run();
        EXPECT_NEAR(std::ranges::max(result.end), expected, 1e-9 * expected)
            << name_of(algorithm) << " op " << static_cast<int>(op) << " over " << extent;
      }
    }
  }
}

/// Programs in which ranks do the same, over a lattice of `inner` x `outer` ranks: most steps and durations are the
/// same on all, in some cases one rank is slower or a link between two of them.
class SymmetricGenerator {
 public:
  explicit SymmetricGenerator(std::uint64_t seed) : rng_(seed, 2) {
    inner_ = pick({1, 2, 4});
    outer_ = pick({2, 3, 4, 8});
  }
  [[nodiscard]] std::int32_t ranks() const { return inner_ * outer_; }

  FabricSpec fabric() {
    FabricSpec spec{"lattice", {}};
    if (inner_ > 1)
      spec.dimensions.push_back(test::dimension("inner", pick({DimensionKind::switched, DimensionKind::ring}),
                                                {inner_}, 4e9, 1e-6));
    if (pick({0, 1, 2}) == 0) {
      spec.dimensions.push_back(network::fat_tree_of("outer", outer_, 3, 4));
    } else {
      const DimensionKind kind =
          pick({DimensionKind::switched, DimensionKind::ring, DimensionKind::fully_connected});
      spec.dimensions.push_back(test::dimension("outer", kind, {outer_}, between(0.5e9, 2e9), 2e-6));
    }
    return spec;
  }
  StackProfile::Communication communication() {
    StackProfile::Communication c = test::plain_stack().communication;
    c.call = Seconds(pick({0.0, 1e-5}));
    c.rank_step = Seconds(pick({0.0, 3e-6}));
    c.algorithms = {
        pick({Algorithm::ring, Algorithm::direct, Algorithm::halving_doubling, Algorithm::bidirectional_ring,
              Algorithm::double_binary_tree, Algorithm::dimension_wise}),
        Algorithm::ring};
    return c;
  }

  void fill(ExecutionBench& bench) {
    execution::ProgramBuilder& builder = bench.builder();
    const std::vector<std::int32_t> lanes = {builder.add_lane(group_of(inner_, 1)),
                                             builder.add_lane(group_of(outer_, inner_)),
                                             builder.add_lane(group_of(ranks(), 1))};
    const std::int32_t next =
        builder.add_channel([=, this](std::int32_t rank) { return (rank + inner_) % ranks(); });
    struct Step {
      std::uint64_t what = 0;
      std::int32_t lane = 0, call = 0;
      double seconds = 0, bytes = 0;
    };
    std::vector<Step> steps(4 + rng_.below(12));
    for (Step& step : steps) {
      step.what = rng_.below(6);
      step.lane = lanes[rng_.below(lanes.size())];
      step.seconds = between(0, 5e-3);
      step.bytes = pick({1e5, 1e6, 3e6});
      step.call = builder.call(step.lane,
                               pick({CollectiveOp::all_reduce, CollectiveOp::all_gather,
                                     CollectiveOp::reduce_scatter, CollectiveOp::all_to_all}),
                               Bytes(step.bytes));
    }
    const auto add_program = [&](double stretch, const std::vector<std::int32_t>& of) {
      for (const Step& step : steps) {
        if (step.what < 2) bench.compute(stretch * step.seconds);
        if (step.what == 2 || step.what == 3) bench.start(step.lane, step.call);
        if (step.what == 4) bench.join(step.lane);
        if (step.what == 5) {
          bench.send(next, step.bytes);
          bench.receive(next);
        }
      }
      for (const std::int32_t lane : lanes) bench.join(lane);
      bench.end_program(of, 2);
    };
    std::vector<std::int32_t> all(static_cast<std::size_t>(ranks()));
    std::iota(all.begin(), all.end(), 0);
    add_program(1, all);
    if (pick({0, 1, 2}) == 0) add_program(1.5, {static_cast<std::int32_t>(rng_.below(all.size()))});
  }

 private:
  double between(double low, double high) { return low + (high - low) * rng_.uniform(); }
  template <class T>
  T pick(std::initializer_list<T> choices) {
    return *(choices.begin() + static_cast<std::ptrdiff_t>(rng_.below(choices.size())));
  }
  CounterRng rng_;
  std::int32_t inner_ = 1, outer_ = 1;
};

// To the bit, and with the same counts.
TEST(ExecutionProperty, SymmetricRanksExecutedOnceGiveTheResultOfExecutingEach) {
  int folded = 0;
  const int seeds = static_cast<int>(test::seeds(400));
  for (std::uint64_t seed = 0; seed < test::seeds(400); ++seed) {
    SymmetricGenerator generator(seed);
    ExecutionBench bench(generator.fabric(), generator.communication());
    generator.fill(bench);
    bench.run();
    execution::Executor one, each;
    const execution::ExecutionResult& fast =
        one.run(bench.programs(), bench.capacity(), nullptr, execution::Fold::always);
    const execution::ExecutionResult& plain =
        each.run(bench.programs(), bench.capacity(), nullptr, execution::Fold::never);
    ASSERT_TRUE(plain.deadlock.empty()) << "seed " << seed << ": " << plain.deadlock.front();
    EXPECT_EQ(plain.executed_ranks, generator.ranks());
    EXPECT_EQ(fast.end, plain.end) << "seed " << seed << ", " << fast.executed_ranks << " of "
                                   << generator.ranks();
    EXPECT_EQ(fast.accounts, plain.accounts) << "seed " << seed;
    EXPECT_EQ(fast.operators, plain.operators) << "seed " << seed;
    EXPECT_EQ(fast.messages, plain.messages) << "seed " << seed;
    EXPECT_EQ(fast.events, plain.events) << "seed " << seed;
    folded += fast.executed_ranks < generator.ranks() ? 1 : 0;
  }
  EXPECT_GE(folded, test::at_least(seeds / 3)) << "the symmetric cases hardly ever fold";
}

/// Nodes whose ranks make ring calls and send to the same rank of the next node, each rank at a pace of its own.
class NodesGenerator {
 public:
  explicit NodesGenerator(std::uint64_t seed)
      : rng_(seed, 3),
        inner_(static_cast<std::int32_t>(2 + rng_.below(5))),
        outer_(static_cast<std::int32_t>(1 + rng_.below(3))) {}

  FabricSpec fabric() {
    const DimensionKind kinds[] = {DimensionKind::switched, DimensionKind::ring,
                                   DimensionKind::fully_connected};
    FabricSpec spec{"nodes",
                    {test::dimension("inner", kinds[rng_.below(3)], {inner_}, between(1e9, 4e9),
                                     rng_.below(3) == 0 ? 0 : between(0, 2e-5))}};
    if (outer_ > 1)
      spec.dimensions.push_back(test::dimension("outer", DimensionKind::switched, {outer_}, 1e9, 1e-6));
    return spec;
  }
  StackProfile::Communication communication() {
    StackProfile::Communication c = test::plain_stack().communication;
    c.call = Seconds(rng_.below(2) == 0 ? 0 : between(0, 1e-4));
    c.rank_step = Seconds(rng_.below(2) == 0 ? 0 : between(0, 1e-4));
    c.algorithms = {Algorithm::ring};
    return c;
  }
  /// The lane of the rings.
  std::int32_t fill(ExecutionBench& bench) {
    execution::ProgramBuilder& builder = bench.builder();
    const std::int32_t lane = builder.add_lane(group_of(inner_, 1));
    const std::int32_t ranks = inner_ * outer_;
    const std::int32_t next = builder.add_channel([&](std::int32_t rank) { return (rank + inner_) % ranks; });
    constexpr CollectiveOp kOps[] = {CollectiveOp::all_reduce, CollectiveOp::all_gather,
                                     CollectiveOp::reduce_scatter};
    std::vector<std::int32_t> calls;
    for (int call = 0; call < 3; ++call)  // between two ranks, scattering and gathering take no turns
      calls.push_back(builder.call(lane, kOps[inner_ == 2 ? 0 : rng_.below(3)], Bytes(between(1e3, 1e7))));
    std::vector<std::uint64_t> steps(4 + rng_.below(12));
    for (std::uint64_t& step : steps) step = rng_.below(6);
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
      for (const std::uint64_t step : steps) {
        if (step < 3) bench.start(lane, calls[step], static_cast<std::int32_t>(1 + step));
        if (step == 3) bench.compute(between(0, 1e-2));
        if (step == 4) bench.join(lane);
        if (step == 5 && outer_ > 1) {
          bench.send(next, 1e6);
          bench.receive(next);
        }
      }
      bench.join(lane);
      bench.end_program({rank}, 2);
    }
    return lane;
  }

 private:
  double between(double low, double high) { return low + (high - low) * rng_.uniform(); }
  CounterRng rng_;
  std::int32_t inner_ = 2, outer_ = 1;
};

TEST(ExecutionProperty, RingsThatMeetNobodyTakeTheTimeOfEachMessage) {
  for (std::uint64_t seed = 0; seed < test::seeds(300); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    NodesGenerator generator(seed);
    const FabricSpec fabric = generator.fabric();
    ExecutionBench bench(fabric, generator.communication());
    const std::int32_t lane = generator.fill(bench);
    const execution::ExecutionResult result = bench.run();
    const execution::Programs& programs = bench.programs();
    execution::LoneRings rings;
    rings.reset(programs, bench.capacity());
    EXPECT_TRUE(rings.hold(programs.communicator_of[programs.at(lane, 0)]));
    ASSERT_TRUE(result.deadlock.empty()) << result.deadlock.front();
    const execution::ProgramCounts counts = execution::count(programs);
    EXPECT_EQ(result.messages, counts.messages);
    EXPECT_EQ(result.events, counts.events());
    const std::vector<double> expected = test::NaiveExecutor(programs, bench.capacity()).run();
    execution::Executor executor;
    const execution::ExecutionResult& each =
        executor.run(programs, bench.capacity(), nullptr, execution::Fold::every_message);
    EXPECT_EQ(each.messages, counts.messages);
    EXPECT_EQ(each.events, counts.events());
    for (std::size_t rank = 0; rank < expected.size(); ++rank) {
      EXPECT_NEAR(result.end[rank], each.end[rank], 1e-11 * each.end[rank]) << "rank " << rank;
      EXPECT_NEAR(result.end[rank], expected[rank], 1e-8 * expected[rank] + 1e-15) << "rank " << rank;
    }
  }
}

// A message of others over one link of the ring, and it is executed message by message.
TEST(ExecutionProperty, RingsThatShareALinkAreNotAlone) {
  ExecutionBench bench(test::ring_of(4), test::plain_stack().communication);
  const std::int32_t lane = bench.builder().add_lane(group_of(4, 1));
  bench.builder().add_channel([](std::int32_t rank) { return rank == 2 ? 3 : rank; });
  bench.start(lane, bench.builder().call(lane, CollectiveOp::all_reduce, Bytes(1e6)));
  bench.join(lane);
  bench.end_program({0, 1, 2, 3});
  bench.run();
  execution::LoneRings rings;
  rings.reset(bench.programs(), bench.capacity());
  EXPECT_FALSE(rings.hold(0));
}

TEST(ExecutionProperty, ASecondRunOfOneExecutorIsTheSame) {
  ProgramGenerator generator(7);
  ExecutionBench bench(generator.fabric(4), generator.communication());
  generator.fill(bench, 4, false);
  const execution::ExecutionResult first = bench.run();
  execution::Executor executor;
  for (int run = 0; run < 3; ++run) {
    const execution::ExecutionResult& again = executor.run(bench.programs(), bench.capacity());
    EXPECT_EQ(again.end, first.end);
    EXPECT_EQ(again.accounts, first.accounts);
    EXPECT_EQ(again.events, first.events);
  }
}

}  // namespace
}  // namespace shardscape
