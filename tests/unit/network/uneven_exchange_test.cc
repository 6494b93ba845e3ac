// Do all-to-alls in unequal parts take what their busiest link does?
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/network/fabric/fabric.h"
#include "engine/network/prices/collective_prices.h"
#include "tests/support/engine_fixture.h"

namespace shardscape::network {
namespace {

constexpr double kWireRate = 1e11, kWireLatency = 1e-6;  // of one link; a route crosses two links
const std::vector<double> kMemberShares = {0.1, 0.4, 0.3, 0.2};

RankGroup whole_group(std::int32_t ranks) {
  RankGroup group;
  group.push(ranks, 1);
  return group;
}

struct ExchangeMachine {
  explicit ExchangeMachine(FabricSpec spec) : fabric(spec) {}
  double seconds(CollectiveOp op, double bytes, std::int32_t ranks) {
    return model.time({op, Bytes(bytes), whole_group(ranks)}).value();
  }
  void share_experts(std::vector<double> shares) {
    setup.expert_shares = std::move(shares);
    model = CollectivePrices(setup);
  }
  Fabric fabric;
  StackProfile::Communication communication = test::plain_stack().communication;
  CollectiveSetup setup{fabric, communication, BytesPerSecond(1e12)};
  CollectivePrices model{setup};
};

TEST(Exchange, TheBusiestMemberSetsThePace) {
  // Behind one switch member 1 hears 0.4 B from each of three others, or sends it to them; all else is less.
  ExchangeMachine machine(test::crossbar(4, kWireRate, kWireLatency));
  machine.share_experts(kMemberShares);
  for (const CollectiveOp op : {CollectiveOp::dispatch, CollectiveOp::combine})
    for (const double bytes : {1e3, 1e6, 1e9})
      EXPECT_NEAR(machine.seconds(op, bytes, 4) / (2 * kWireLatency + 3 * 0.4 * bytes / kWireRate), 1, 1e-12);
}

TEST(Exchange, EqualLoadsAreAnAllToAll) {
  ExchangeMachine machine(test::crossbar(4, kWireRate, kWireLatency));
  const double even = machine.seconds(CollectiveOp::all_to_all, 1e7, 4);
  EXPECT_EQ(machine.seconds(CollectiveOp::dispatch, 1e7, 4), even);  // nothing said
  machine.share_experts(std::vector<double>(8, 0.125));
  EXPECT_EQ(machine.seconds(CollectiveOp::dispatch, 1e7, 4), even);
  EXPECT_EQ(machine.seconds(CollectiveOp::combine, 1e7, 4), even);
}

TEST(Exchange, MembersHoldTheirExpertsInOrder) {
  // Eight experts on four members: shares 0.1 + 0, 0.3 + 0.1, 0.1 + 0.2, 0.2 + 0.
  ExchangeMachine machine(test::crossbar(4, kWireRate, kWireLatency));
  machine.share_experts({0.1, 0, 0.3, 0.1, 0.1, 0.2, 0.2, 0});
  const Skew skew = machine.model.healthy().experts().skew_of(CollectiveOp::dispatch, whole_group(4));
  for (std::size_t i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(skew.shares[i], kMemberShares[i]);
  EXPECT_FALSE(skew.of_sender);
  EXPECT_TRUE(machine.model.healthy().experts().skew_of(CollectiveOp::combine, whole_group(4)).of_sender);
  EXPECT_TRUE(
      machine.model.healthy().experts().skew_of(CollectiveOp::all_to_all, whole_group(4)).shares.empty());
}

TEST(Exchange, KernelsSendEachRankOneCopyOfAToken) {
  // Of two choices one or both fall on a member of share s with the chance 1 - (1 - s)^2: 0.19, 0.64, 0.51 and 0.36 of
  // the tokens, whose copies for each choice take 2 t. The busiest hears 0.64 t from each of three others, and sends
  // them as much.
  StackProfile::Communication communication = test::plain_stack().communication;
  const Fabric fabric(test::crossbar(4, kWireRate, kWireLatency));
  CollectiveSetup setup{
      fabric, communication, BytesPerSecond(1e12), nullptr, {.hidden = 1024, .top_k = 2, .experts = 4}};
  setup.expert_shares = kMemberShares;
  const CollectivePrices model(setup);
  const double tokens = 1e8;  // bytes of all tokens of a rank
  for (const CollectiveOp op : {CollectiveOp::expert_dispatch, CollectiveOp::expert_combine}) {
    const Skew skew = model.healthy().experts().skew_of(op, whole_group(4));
    EXPECT_DOUBLE_EQ(skew.shares[1], 0.64 / 1.7);
    EXPECT_EQ(skew.of_sender, op == CollectiveOp::expert_combine);
    EXPECT_NEAR(model.time({op, Bytes(2 * tokens), whole_group(4)}).value(),
                2 * kWireLatency + 3 * 0.64 * tokens / kWireRate, 1e-12);
  }
  // Alike, every member is met by 1 - 0.75^2 of the tokens.
  setup.expert_shares = std::vector<double>(4, 0.25);
  EXPECT_NEAR(CollectivePrices(setup)
                  .time({CollectiveOp::expert_dispatch, Bytes(2 * tokens), whole_group(4)})
                  .value(),
              2 * kWireLatency + 3 * 0.4375 * tokens / kWireRate, 1e-12);
}

/// Two nodes of two members.
Fabric two_nodes() {
  FabricSpec spec{"nodes",
                  {test::dimension("inner", DimensionKind::switched, {2}, 1e14),
                   test::dimension("outer", DimensionKind::switched, {2}, kWireRate)}};
  spec.dimensions.back().scope = LinkScope::scale_out;
  return Fabric(spec);
}

TEST(Exchange, KernelsSendEachDomainOneCopyOfAToken) {
  // Two nodes of two members with 0.5 of the choices each, so that both are met by 1 - 0.5^2 of the tokens: a quarter
  // of that to each of four members in the mean, whatever their shares within the node.
  const Fabric fabric = two_nodes();
  StackProfile::Communication communication = test::plain_stack().communication;
  CollectiveSetup setup{
      fabric, communication, BytesPerSecond(1e12), nullptr, {.hidden = 1024, .top_k = 2, .experts = 4}};
  const auto seconds = [&](std::vector<double> shares) {
    setup.expert_shares = std::move(shares);
    return CollectivePrices(setup).time({CollectiveOp::expert_dispatch, Bytes(1e8), whole_group(4)}).value();
  };
  const double even = seconds({});
  EXPECT_NEAR(seconds(kMemberShares), even, 1e-12 * even);
  // 0.1 and 0.9: met by 0.19 and 0.99 of the tokens instead of 0.75 both, so that the way into the second is the
  // slower by 0.99 / 0.75.
  EXPECT_NEAR(seconds({0.05, 0.05, 0.5, 0.4}), 0.99 / 0.75 * even, 1e-12 * even);
}

TEST(Exchange, KernelsOfMembersThatAreAheadSendBefore) {
  // The same nodes, with loads of 0.1, 0.1, 1 and 0.8 of the busiest's. The second node has nearly all copies of
  // tokens, which its members send back in equal parts: the other one begins a fifth of the work before the busiest.
  const Fabric fabric = two_nodes();
  StackProfile::Communication communication = test::plain_stack().communication;
  CollectiveSetup setup{
      fabric, communication, BytesPerSecond(1e12), nullptr, {.hidden = 1024, .top_k = 2, .experts = 4}};
  setup.expert_shares = {0.05, 0.05, 0.5, 0.4};
  const CollectivePrices prices(setup);
  const CollectiveKey combine{CollectiveOp::expert_combine, Bytes(1e8), whole_group(4)};
  const double whole = prices.time(combine).value();
  const auto sooner = [&](double work) {
    return prices.sooner_by_loads({}, combine, Seconds(work)).value() / whole;
  };
  EXPECT_NEAR(sooner(0), 0, 1e-9);
  EXPECT_NEAR(sooner(whole), 0.2, 1e-9);
  EXPECT_NEAR(sooner(10 * whole), 0.5, 1e-9);  // it has gone altogether
}

TEST(Exchange, OneSimulationTellsAllBytes) {
  // A ring of six, where flows share links unevenly: whatever the bytes, the priced time is the simulated one.
  ExchangeMachine machine(
      {"ring", {test::dimension("ring", DimensionKind::ring, {6}, kWireRate, kWireLatency)}});
  machine.setup.tolerance = 1e-9;
  machine.share_experts({0.3, 0.05, 0.2, 0.25, 0.05, 0.15});
  CollectiveSetup simulated = machine.setup;
  simulated.analysis = Analysis::plain;
  const CollectivePrices reference(simulated);
  for (const CollectiveOp op : {CollectiveOp::all_to_all, CollectiveOp::dispatch, CollectiveOp::combine}) {
    for (double bytes = 10; bytes < 1e9; bytes *= 7) {
      const double expected = reference.time({op, Bytes(bytes), whole_group(6)}).value();
      EXPECT_NEAR(machine.seconds(op, bytes, 6) / expected, 1, 1e-9) << static_cast<int>(op) << ' ' << bytes;
    }
  }
}

TEST(Exchange, ACombineEndsSoonerWhereTheOthersHaveGone) {
  // Two nodes of two: a message to the other place of the other node first goes to that place in its own. Each way out
  // of a node carries what both its members send to one of the other's: 0.1 B + 0.4 B, and 0.3 B + 0.2 B; the busiest
  // alone 0.4. So does each way in of a dispatch: 2 x 0.4 B to the busiest.
  FabricSpec spec{"nodes",
                  {test::dimension("inner", DimensionKind::switched, {2}, 1e14),
                   test::dimension("outer", DimensionKind::switched, {2}, kWireRate)}};
  spec.dimensions.back().scope = LinkScope::scale_out;
  ExchangeMachine machine(spec);
  machine.share_experts(kMemberShares);
  const double bytes = 1e9, unit = bytes / kWireRate;
  const CollectiveKey combine{CollectiveOp::combine, Bytes(bytes), whole_group(4)};
  const auto dispatch_of = [](double sent) {
    return CollectiveKey{CollectiveOp::dispatch, Bytes(sent), whole_group(4)};
  };
  const auto after = [&](double work, double dispatched = 0) {
    const Seconds sooner = machine.model.sooner_by_loads(dispatch_of(dispatched), combine, Seconds(work));
    return (machine.model.time(combine) - sooner).value();
  };
  const auto crowded = [&](double work) {
    return machine.model.crowded_by_loads(dispatch_of(bytes), combine, Seconds(work)).value();
  };
  EXPECT_NEAR(machine.seconds(CollectiveOp::combine, bytes, 4), 0.5 * unit, 1e-9 * unit);
  EXPECT_NEAR(after(0), 0.5 * unit, 1e-9 * unit);
  // The idlest, with a quarter of the load, begins three quarters of the work before the busiest; but of the other
  // node, whose two send as much, the first begins only a half of the work before.
  EXPECT_NEAR(after(0.1 * unit), (0.5 - 0.05) * unit, 1e-9 * unit);
  EXPECT_NEAR(after(unit), 0.4 * unit, 1e-9 * unit);
  // A dispatch of as many bytes takes 0.8 units to the busiest. Behind it all others have begun long before.
  EXPECT_NEAR(after(0, bytes), 0.4 * unit, 1e-9 * unit);
  // The two members of the other node, with a half and three quarters of the busiest's load, are through with their
  // dispatch and no work at 0.4 and 0.6, and send it 0.2 and 0.3. Until then its own two flows of 0.4 each have had
  // 0.2, then a third of 0.2, so that 0.4 / 3 of each is left, as of the first combine. Of four flows each gets a
  // fourth: all three end at 0.6 + 4 x 0.4 / 3, instead of at 0.8.
  EXPECT_NEAR(crowded(0), (0.6 + 1.6 / 3 - 0.8) * unit, 1e-6 * unit);
  EXPECT_EQ(crowded(unit), 0);  // with as much work none is through
  machine.share_experts({});
  EXPECT_EQ(after(unit), machine.seconds(CollectiveOp::all_to_all, bytes, 4));
}

TEST(Exchange, ACombineByKernelsEndsSoonerWhereTheOthersHaveGone) {
  // The same machine. Without loads each way out of a node carries what both its members send to one of the other's; a
  // late one alone half of that, as its two messages leave by different ways.
  FabricSpec spec{"nodes",
                  {test::dimension("inner", DimensionKind::switched, {2}, 1e14),
                   test::dimension("outer", DimensionKind::switched, {2}, kWireRate)}};
  spec.dimensions.back().scope = LinkScope::scale_out;
  ExchangeMachine machine(spec);
  const CollectiveKey combine{CollectiveOp::low_latency_combine, Bytes(1e9), whole_group(4)};
  const double all = machine.model.time(combine).value();
  const auto after = [&](double lead, double gone) {
    return machine.model.late_exchange(combine, Seconds(lead), gone).value();
  };
  EXPECT_EQ(after(0, 1), all);
  EXPECT_NEAR(after(0.1 * all, 1), 0.9 * all, 1e-6 * all);
  EXPECT_NEAR(after(all, 1), 0.5 * all, 1e-6 * all);
  EXPECT_NEAR(after(all, 1.0 / 3), (1 - 0.5 / 3) * all,
              1e-6 * all);  // two of the other three are late as well
}

TEST(Exchange, ASickLinkSlowsIt) {
  // The way into the busiest member at a quarter of its rate.
  ExchangeMachine machine(test::crossbar(4, kWireRate, 0));
  machine.share_experts(kMemberShares);
  FaultSet faults;
  for (std::size_t i = 0; i < machine.fabric.links().size(); ++i) {
    if (machine.fabric.links()[i].destination == 1)
      faults.links.push_back({static_cast<std::int32_t>(i), 0.25, Seconds(0)});
  }
  ASSERT_EQ(faults.links.size(), 1U);
  machine.model.set_faults(faults);
  EXPECT_NEAR(machine.seconds(CollectiveOp::dispatch, 1e8, 4), 4 * 3 * 0.4 * 1e8 / kWireRate, 1e-12);
  // It hears 0.3 + 0.2 + 0.1 of the outputs, and sends as fast as before.
  EXPECT_NEAR(machine.seconds(CollectiveOp::combine, 1e8, 4), 4 * 0.6 * 1e8 / kWireRate, 1e-12);
}

}  // namespace
}  // namespace shardscape::network
