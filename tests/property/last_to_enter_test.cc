// Does nobody leave a collective that needs all members' data before the last of them has entered? Executed message by
// message, with every algorithm, on fabrics of one dimension and of two.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "engine/execution/executor.h"
#include "engine/execution/program_builder.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/execution_fixture.h"
#include "tests/support/fabrics.h"
#include "tests/support/seeds.h"

namespace shardscape::last_to_enter {
namespace {

using execution::Instruction;
using network::CollectiveOp;

FabricSpec draw_fabric(test::ScenarioGenerator& random) {
  FabricSpec fabric = random.coin() ? test::crossbar(random.pick({2, 4, 8}), 2e11, 1e-6)
                                    : test::ring_of(random.pick({2, 3, 4, 8}));
  if (random.coin()) return fabric;
  const FabricSpec rails = random.coin() ? test::crossbar(random.pick({2, 3, 4}), 5e10, 2e-6)
                                         : test::ring_of(random.pick({2, 3, 4}));
  fabric.dimensions.push_back(rails.dimensions.front());
  fabric.dimensions.back().name = "rail";
  return fabric;
}

TEST(LastToEnter, NobodyLeavesBefore) {
  constexpr double kLate = 1.0;  // seconds, far more than the call takes
  int calls = 0, of_two = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(400); ++seed) {
    test::ScenarioGenerator random(seed);
    const FabricSpec spec = draw_fabric(random);
    const network::Fabric fabric(spec);
    const StackProfile::Communication stack = test::plain_stack().communication;
    network::PricedNetwork network(fabric, stack);
    const network::CollectivePrices prices({fabric, stack, BytesPerSecond(2e12)});
    execution::ProgramBuilder builder(network, stack, prices, {});
    const auto op = random.pick({CollectiveOp::all_reduce, CollectiveOp::reduce_scatter,
                                 CollectiveOp::all_gather, CollectiveOp::all_to_all});
    const Bytes bytes(random.pick({1e3, 1e5, 1e7}));
    const std::int32_t lane = builder.add_lane(test::group_of(fabric.ranks(), 1), "group"),
                       call = builder.call(lane, op, bytes);
    const auto late = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(fabric.ranks())));
    for (std::int32_t rank = 0; rank < fabric.ranks(); ++rank) {
      if (rank == late)
        builder.add({Instruction::Kind::compute, TimeClass::compute, 0, builder.name("work"), 1, kLate});
      const auto on_lane = static_cast<std::uint16_t>(lane);
      builder.add({Instruction::Kind::start, TimeClass::compute, on_lane, call, 1, 0});
      builder.add({Instruction::Kind::join, TimeClass::data_comm, on_lane, 0, 1, 0});
      builder.set_sequence(rank, builder.add_sequence({builder.end_block()}));
    }
    const execution::Programs programs = builder.finish();
    execution::Executor executor;
    const auto ends =
        executor.run(programs, network.bytes_per_second(), nullptr, execution::Fold::every_message).end;
    EXPECT_GE(std::ranges::min(ends), kLate)
        << "seed " << seed << ": " << network::row_of(op).name << " of " << bytes.value() << " bytes on "
        << fabric.ranks() << " ranks, late: " << late;
    ++calls;
    of_two += spec.dimensions.size() > 1 ? 1 : 0;
  }
  EXPECT_GE(calls, test::at_least(400));
  EXPECT_GE(of_two, test::at_least(150));
}

}  // namespace
}  // namespace shardscape::last_to_enter
