// Calls in a row over a sick link: priced against executing every message, with work between them and without.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "engine/execution/executor.h"
#include "engine/execution/program_builder.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/execution_fixture.h"
#include "tests/support/fabrics.h"
#include "tests/support/seeds.h"

namespace shardscape::sick_rows {
namespace {

using execution::Instruction;
using network::CollectiveOp;

struct Row {
  FabricSpec fabric;
  FaultSet faults;
  network::RankGroup group;
  CollectiveOp op = CollectiveOp::all_reduce;
  Bytes bytes;
};

/// A ring or a switch with one group over all of its ranks; a link of the group, or both ways of it, is sick.
Row draw(test::ScenarioGenerator& random) {
  Row row;
  const std::int64_t ranks = random.pick({2, 3, 4, 8});
  row.fabric = random.coin() ? test::crossbar(ranks, 50e9, 1e-6) : test::ring_of(ranks);
  row.group = test::group_of(static_cast<std::int32_t>(ranks), 1);
  row.op = random.pick({CollectiveOp::all_reduce, CollectiveOp::reduce_scatter, CollectiveOp::all_gather});
  row.bytes = Bytes(random.pick({1e6, 1e7, 1e8}));
  const network::Fabric fabric(row.fabric);
  const auto link = static_cast<std::int32_t>(random.below(fabric.links().size()));
  row.faults.links.push_back({link, random.pick({0.1, 0.25, 0.5}), Seconds(0), false});
  if (random.coin() && fabric.reverse_of(link) >= 0)
    row.faults.links.push_back({fabric.reverse_of(link), row.faults.links.front().derate, Seconds(0), false});
  return row;
}

/// Nodes of switches and a switch for each rail between them, with one group over all ranks; the link of a rank to the
/// switch of its node, or from there, is sick, or both ways, or also one of a rail.
Row draw_nodes(test::ScenarioGenerator& random) {
  Row row;
  const std::int64_t local = random.pick({2, 4, 8});
  row.fabric = test::crossbar(local, 2e11, 1e-6);
  const FabricSpec rails = test::crossbar(random.pick({2, 4}), 5e10, 2e-6);
  row.fabric.dimensions.push_back(rails.dimensions.front());
  row.fabric.dimensions.back().name = "rail";
  const network::Fabric fabric(row.fabric);
  row.group = test::group_of(fabric.ranks(), 1);
  row.op = random.pick({CollectiveOp::all_reduce, CollectiveOp::reduce_scatter, CollectiveOp::all_gather});
  row.bytes = Bytes(random.pick({1e7, 1e8}));
  const auto link_in = [&](std::int32_t dimension) {
    std::int32_t link = 0;
    do {
      link = static_cast<std::int32_t>(random.below(fabric.links().size()));
    } while (fabric.links()[static_cast<std::size_t>(link)].dimension != dimension);
    return link;
  };
  const std::int32_t link = link_in(0);
  const double derate = random.pick({0.1, 0.25, 0.5});
  row.faults.links.push_back({link, derate, Seconds(0), false});
  const std::uint64_t more = random.below(3);
  if (more == 1) row.faults.links.push_back({fabric.reverse_of(link), derate, Seconds(0), false});
  if (more == 2) row.faults.links.push_back({link_in(1), derate, Seconds(0), false});
  return row;
}

/// Bytes of an exchange among all members that does nothing but let them wait for each other.
constexpr Bytes kToken(8);

/// The operation that goes through the stages the other way.
CollectiveOp opposite(CollectiveOp op) {
  if (op == CollectiveOp::all_reduce) return op;
  return op == CollectiveOp::all_gather ? CollectiveOp::reduce_scatter : CollectiveOp::all_gather;
}

/// Seconds of so many calls, each behind the work of its turn, executed message by message.
double executed(const Row& row, const StackProfile::Communication& stack, int calls,
                const network::Gaps& works) {
  const network::Fabric fabric(row.fabric);
  network::PricedNetwork network(fabric, stack);
  network.set_faults(row.faults);
  const network::CollectivePrices prices({fabric, stack, BytesPerSecond(2e12)});
  execution::ProgramBuilder builder(network, stack, prices, {});
  const std::int32_t lane = builder.add_lane(row.group, "group"),
                     call = builder.call(lane, row.op, row.bytes),
                     back = builder.call(lane, opposite(row.op), row.bytes),
                     token = builder.call(lane, CollectiveOp::all_to_all, kToken);
  const auto on_lane = static_cast<std::uint16_t>(lane);
  const auto wait_for = [&](std::int32_t number) {
    builder.add({Instruction::Kind::start, TimeClass::compute, on_lane, number, 1, 0});
    builder.add({Instruction::Kind::join, TimeClass::data_comm, on_lane, 0, 1, 0});
  };
  for (int i = 0; i < calls; ++i) {
    const network::Gap& work = works[static_cast<std::size_t>(i) % works.size()];
    if (work.together) wait_for(token);
    if (work.seconds > 0)
      builder.add({Instruction::Kind::compute, TimeClass::compute, 0, builder.name("work"), 1, work.seconds});
    wait_for(work.backwards ? back : call);
  }
  const std::int32_t sequence = builder.add_sequence({builder.end_block()});
  for (std::int32_t rank = 0; rank < fabric.ranks(); ++rank) builder.set_sequence(rank, sequence);
  const execution::Programs programs = builder.finish();
  execution::Executor executor;
  return std::ranges::max(
      executor.run(programs, network.bytes_per_second(), nullptr, execution::Fold::every_message).end);
}

/// Compares random rows with their execution: what a call adds to a row is the difference of a long and a short one;
/// both are whole periods of two, three, four and eight calls. `gaps_of(work)`: what lies before each call, in seconds.
/// What is compared is the part of what the fault adds to a single call. Returns the number of rows and the mean of
/// what they are off by.
template <class Draw, class MakeGaps>
std::pair<int, double> compare(std::uint64_t seeds, const Draw& draw_row, double at_most,
                               const MakeGaps& gaps_of) {
  int rows = 0;
  double sum = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(seeds); ++seed) {
    test::ScenarioGenerator random(seed);
    const Row row = draw_row(random);
    StackProfile::Communication stack = test::plain_stack().communication;
    stack.call = Seconds(random.pick({0.0, 1e-5}));
    stack.rank_step = Seconds(random.pick({0.0, 2e-6}));
    const network::Fabric fabric(row.fabric);
    network::CollectivePrices prices({fabric, stack, BytesPerSecond(2e12)});
    prices.set_faults(row.faults);
    const network::CollectiveKey key{row.op, row.bytes, row.group};
    const auto [first, added] = prices.priced(key);
    const Seconds healthy = prices.time_without_faults(key);
    if (added < 0.1 * healthy) continue;
    const double work = random.pick({0.0, 0.3, 1.0, 5.0}) * healthy.value();
    const network::Gaps gaps = gaps_of(work);
    const double waits = (1 - network::share_apart(gaps)) *
                         prices.time({CollectiveOp::all_to_all, kToken, row.group}).value(),
                 follows = (executed(row, stack, 48, gaps) - executed(row, stack, 24, gaps)) / 24 - waits;
    const double priced = (first - prices.saved_in_row(key, gaps)).value() + network::mean_of(gaps);
    const double off = (priced - follows) / added.value();
    SCOPED_TRACE("seed " + std::to_string(seed) + " ranks " + std::to_string(row.group.size()) + " op " +
                 std::to_string(static_cast<int>(row.op)) + " sick " +
                 std::to_string(row.faults.links.size()) + " work " + std::to_string(work) + " follows " +
                 std::to_string(follows) + " first " + std::to_string(first.value()));
    EXPECT_LT(std::abs(off), at_most);
    EXPECT_GE(priced, healthy.value() * (1 - 1e-9));
    sum += std::abs(off);
    ++rows;
  }
  return {rows, sum / std::max(1, rows)};
}

network::Gaps even(double work) { return {work}; }
network::Gaps uneven(double work) { return {2 * work, 0.5 * work, 0.0}; }
/// As a layer of sharded activations: what one call has scattered the next one gathers, in a backward twice in a row.
network::Gaps to_and_fro(double work) { return {{work, false, false}, {0.5 * work, false, true}}; }
network::Gaps backward(double work) {
  return {{work, false, false}, {0.0, false, true}, {0.5 * work, false, true}};
}
/// Members wait for each other before every other call.
network::Gaps joined(double work) { return {{work, true}, {0.5 * work, false}}; }

TEST(SickRows, CallsFollowEachOtherAsTheyAreExecuted) {
  const auto [rows, mean] = compare(150, draw, 0.2, even);
  EXPECT_GE(rows, test::at_least(60));
  if (!test::all_seeds()) return;
  EXPECT_LT(mean, 0.03);
}

TEST(SickRows, CallsFollowEachOtherAfterUnequalWork) {
  const auto [rows, mean] = compare(150, draw, 0.2, uneven);
  EXPECT_GE(rows, test::at_least(60));
  if (!test::all_seeds()) return;
  EXPECT_LT(mean, 0.03);
}

TEST(SickRows, CallsFollowEachOtherWhereMembersWaitForEachOther) {
  const auto [rows, mean] = compare(150, draw, 0.2, joined);
  EXPECT_GE(rows, test::at_least(60));
  if (!test::all_seeds()) return;
  EXPECT_LT(mean, 0.03);
}

/// Of nodes of switches with a switch for each rail the link of a rank to its rail is sick, or the one from there, or
/// both.
Row draw_rails(test::ScenarioGenerator& random) {
  Row row = draw_nodes(random);
  const network::Fabric fabric(row.fabric);
  std::int32_t link = 0;
  do {
    link = static_cast<std::int32_t>(random.below(fabric.links().size()));
  } while (fabric.links()[static_cast<std::size_t>(link)].dimension != 1);
  row.faults.links = {{link, random.pick({0.1, 0.25, 0.5}), Seconds(0), false}};
  if (random.coin())
    row.faults.links.push_back({fabric.reverse_of(link), row.faults.links.front().derate, Seconds(0), false});
  return row;
}

TEST(SickRows, CallsOverASickRailFollowEachOtherAsTheyAreExecuted) {
  const auto [rows, mean] = compare(150, draw_rails, 0.02, even);
  EXPECT_GE(rows, test::at_least(40));
  if (!test::all_seeds()) return;
  EXPECT_LT(mean, 0.001);
}

TEST(SickRows, CallsOverNodesAndRailsFollowEachOtherAsTheyAreExecuted) {
  const auto [rows, mean] = compare(100, draw_nodes, 0.4, even);
  EXPECT_GE(rows, test::at_least(40));
  if (!test::all_seeds()) return;
  EXPECT_LT(mean, 0.05);
}

TEST(SickRows, CallsBothWaysOverNodesAndRailsFollowEachOtherAsTheyAreExecuted) {
  for (const auto gaps_of : {to_and_fro, backward}) {
    const auto [rows, mean] = compare(60, draw_nodes, 0.4, gaps_of);
    EXPECT_GE(rows, test::at_least(24));
    const auto [rails, of_rails] = compare(60, draw_rails, 0.2, gaps_of);
    EXPECT_GE(rails, test::at_least(16));
    if (!test::all_seeds()) continue;
    EXPECT_LT(mean, 0.05);
    EXPECT_LT(of_rails, 0.02);
  }
}

/// A sick link on top of others, whatever dimension it lies in, makes no call follow an equal one sooner, but for a
/// little where stages that take longer are waited for beside a stage that members were late for already.
TEST(SickRows, NoCallFollowsSoonerOverAFurtherSickLink) {
  constexpr double kBand = 0.02;
  int rows = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(600); ++seed) {
    test::ScenarioGenerator random(seed + 50000);
    Row row = draw_nodes(random);
    StackProfile::Communication stack = test::plain_stack().communication;
    stack.rank_step = Seconds(random.pick({0.0, 2e-6}));
    const network::Fabric fabric(row.fabric);
    network::CollectivePrices prices({fabric, stack, BytesPerSecond(2e12)});
    const network::CollectiveKey key{row.op, row.bytes, row.group};
    const Seconds work(random.pick({0.0, 1e-4}));
    Seconds before;
    for (int more = 0; more < 4; ++more) {
      prices.set_faults(row.faults);
      const Seconds follows = prices.time(key) - prices.saved_in_row(key, {work.value()});
      EXPECT_GE(follows.value(), (1 - kBand) * before.value())
          << "seed " << seed << " sick " << row.faults.links.size();
      before = follows;
      const auto link = static_cast<std::int32_t>(random.below(fabric.links().size()));
      row.faults.links.push_back({link, random.pick({0.1, 0.25, 0.5}), Seconds(0), false});
      ++rows;
    }
  }
  EXPECT_GE(rows, test::at_least(2400));
}

}  // namespace
}  // namespace shardscape::sick_rows
