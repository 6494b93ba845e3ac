// Is the executor's result that of the plain executor on random programs, fabrics and faults?
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/base/counter_rng.h"
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

// A call alone, all members entering at once, is what CollectiveModel prices: the call, its copies, its steps
// and the time of the simulator. Trees and switches overlap their steps' latencies, so that those are left
// out there.
TEST(ExecutionProperty, ACallAloneTakesTheTimeOfTheCollectiveModel) {
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
