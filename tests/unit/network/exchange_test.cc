// Kernels that move tokens to their experts, as collectives on a fabric: the closed form in one NVLink domain and over
// several, and what the links add.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/network/collectives/expert_dispatch.h"
#include "engine/network/prices/collective_prices.h"

namespace shardscape::network {
namespace {

constexpr double kSent = 1000, kTokenWidth = 4096;  // tokens of a rank, values of a token

/// Two nodes of 8 GPUs behind a switch each, and rails between them.
struct ExchangeNodes {
  explicit ExchangeNodes(bool constants = true, bool between = true) {
    communication.call = Seconds(2e-6);
    if (!constants) return;
    ExpertDispatch::Normal& k = node.experts.normal;
    k.dispatch_start = Seconds(30e-6);
    k.combine_start = Seconds(20e-6);
    k.row_bandwidth = BytesPerSecond(1e9);
    k.copy = Seconds(0.1e-6);
    k.sm_bandwidth = BytesPerSecond(20e9);
    k.bandwidth = BytesPerSecond(80e9);
    k.local_copies = 1.5;
    k.dispatch_node = Seconds(40e-6);
    k.combine_node = Seconds(50e-6);
    if (between) k.node_bandwidth = BytesPerSecond(20e9);
    node.experts.low_latency = {Seconds(10e-6),       Seconds(12e-6),
                                Seconds(10e-9),       Seconds(5e-9),
                                BytesPerSecond(80e9), BytesPerSecond(60e9),
                                BytesPerSecond(4e9),  Seconds(7e-6),
                                Seconds(8e-6),        BytesPerSecond(between ? 20e9 : 0)};
  }
  static DimensionSpec level(const char* name, double bandwidth, LinkScope scope, std::int64_t size) {
    return {name, DimensionKind::switched, {size}, BytesPerSecond(bandwidth), Seconds(0), scope};
  }
  double seconds(CollectiveOp op, double bytes, std::int32_t ranks) {
    RankGroup group;
    group.push(ranks, 1);
    return model.time({op, Bytes(bytes), group}).value();
  }
  [[nodiscard]] double closed(DispatchWay way, double ranks, double nodes,
                              DispatchKernels kernels = DispatchKernels::normal) const {
    ExpertExchange call;
    call.tokens = kSent;
    call.hidden = kTokenWidth;
    call.top_k = 4;
    call.experts = 64;
    call.ranks = ranks;
    call.nodes = nodes;
    call.sms = 16;
    call.value_bytes = 2;
    return expert_exchange_time(node.experts, kernels, way, call)->value();
  }

  StackProfile::Communication communication;
  NodeCollectives node;
  Fabric fabric{FabricSpec{
      "two nodes",
      {level("nvlink", 100e9, LinkScope::scale_up, 8), level("rail", 25e9, LinkScope::scale_out, 2)}}};
  TokenExchange exchange{kTokenWidth, 4, 64, 1, 1, 16, 2};
  CollectiveSetup setup{fabric, communication, BytesPerSecond(1e12), &node, exchange};
  CollectivePrices model{setup};
};

constexpr double kCopies = kSent * 4 * kTokenWidth * 2;

TEST(Exchanges, TakeTheirClosedFormBesideTheCall) {
  ExchangeNodes nodes;
  EXPECT_NEAR(nodes.seconds(CollectiveOp::expert_dispatch, kCopies, 8),
              2e-6 + nodes.closed(DispatchWay::dispatch, 8, 1), 1e-12);
  EXPECT_NEAR(nodes.seconds(CollectiveOp::expert_combine, kCopies, 4),
              2e-6 + nodes.closed(DispatchWay::combine, 4, 1), 1e-12);
  EXPECT_NEAR(nodes.seconds(CollectiveOp::expert_combine, kCopies, 16),
              2e-6 + nodes.closed(DispatchWay::combine, 16, 2), 1e-12);
}

TEST(Exchanges, OfLowLatencyTakeTheirs) {
  ExchangeNodes nodes;
  constexpr auto kKernels = DispatchKernels::low_latency;
  EXPECT_NEAR(nodes.seconds(CollectiveOp::low_latency_dispatch, kCopies, 8),
              2e-6 + nodes.closed(DispatchWay::dispatch, 8, 1, kKernels), 1e-12);
  EXPECT_NEAR(nodes.seconds(CollectiveOp::low_latency_combine, kCopies, 16),
              2e-6 + nodes.closed(DispatchWay::combine, 16, 2, kKernels), 1e-12);
  // Without constants all four copies of a token cross the links: 7/8 of them of eight ranks, a half of two nodes.
  ExchangeNodes links(false), inside(true, false);
  EXPECT_NEAR(links.seconds(CollectiveOp::low_latency_combine, kCopies, 8), 2e-6 + kCopies * 7 / 8 / 100e9,
              1e-12);
  for (ExchangeNodes* without : {&links, &inside})
    EXPECT_NEAR(without->seconds(CollectiveOp::low_latency_dispatch, kCopies, 16), 2e-6 + kCopies / 2 / 25e9,
                1e-12);
}

TEST(Exchanges, WithoutConstantsTheirCopiesCrossTheLinks) {
  // Of 4 choices among 8 ranks 8 (1 - (7/8)^4) ranks are met, each by one copy, of which 7/8 leave the rank; of two
  // nodes 2 (1 - (1/2)^4) = 15/8, of which a half crosses the rail.
  ExchangeNodes nodes(false);
  const double met = 8 * (1 - 7.0 * 7 * 7 * 7 / 8 / 8 / 8 / 8), row = kTokenWidth * 2;
  EXPECT_NEAR(nodes.seconds(CollectiveOp::expert_dispatch, kCopies, 8),
              2e-6 + kSent * met * row * 7 / 8 / 100e9, 1e-12);
  EXPECT_NEAR(nodes.seconds(CollectiveOp::expert_dispatch, kCopies, 16),
              2e-6 + kSent * 15 / 8 * row / 2 / 25e9, 1e-12);
}

TEST(Exchanges, ForwardingStandsInForUnknownConstantsBetweenNodes) {
  ExchangeNodes with, without(true, false);
  const double links = kSent * 15 / 8 * kTokenWidth * 2 / 2 / 25e9;
  EXPECT_NEAR(without.seconds(CollectiveOp::expert_dispatch, kCopies, 16),
              2e-6 + std::max(links, without.closed(DispatchWay::dispatch, 8, 1)), 1e-12);
}

TEST(Exchanges, ATokenMeetsTheDomainsOfItsGroupsOnly) {
  // 2 of 4 groups, one on each of 4 domains: with many experts a token both are met, and of 8 domains, two for each
  // group, 4; with one expert one.
  EXPECT_NEAR(domains_met(4, 60, 4, 2), 2, 1e-9);
  EXPECT_NEAR(domains_met(8, 200, 4, 2), 4, 1e-9);
  for (const double domains : {2.0, 4.0, 8.0}) EXPECT_NEAR(domains_met(domains, 1, 4, 2), 1, 1e-12);
  // Two domains of two groups each: both groups of a token lie in one of them with chance 1/3; else each expert meets
  // either by a half.
  EXPECT_NEAR(domains_met(2, 3, 4, 2), 2.0 / 3 * (2 - 2 * 0.125) + 1.0 / 3, 1e-12);
  EXPECT_EQ(domains_met(8, 6, 1, 1), places_met(8, 6));
}

TEST(Exchanges, SickLinksSlowThem) {
  ExchangeNodes nodes;
  const double healthy = nodes.seconds(CollectiveOp::expert_dispatch, kCopies, 8);
  for (std::size_t i = 0; i < nodes.fabric.links().size(); ++i) {
    const Link& link = nodes.fabric.links()[i];
    if (link.source == 3 && link.dimension == 0)
      nodes.model.set_faults({{{static_cast<std::int32_t>(i), 0.25, Seconds(0), false}}});
  }
  const double met = 8 * (1 - 7.0 * 7 * 7 * 7 / 8 / 8 / 8 / 8);
  EXPECT_NEAR(nodes.seconds(CollectiveOp::expert_dispatch, kCopies, 8),
              healthy + 3 * kSent * met * kTokenWidth * 2 * 7 / 8 / 100e9, 1e-12);
}

TEST(Exchanges, MemoAndPlainPathAgree) {
  ExchangeNodes nodes;
  for (const std::int32_t ranks : {2, 8, 16}) {
    const double fast = nodes.seconds(CollectiveOp::expert_dispatch, kCopies, ranks);
    RankGroup group;
    group.push(ranks, 1);
    CollectiveSetup simulated = nodes.setup;
    simulated.analysis = Analysis::plain;
    const CollectiveKey asked{CollectiveOp::expert_dispatch, Bytes(kCopies), group};
    EXPECT_NEAR(CollectivePrices(simulated).time(asked).value(), fast, 1e-9 * fast);
    EXPECT_EQ(nodes.seconds(CollectiveOp::expert_dispatch, kCopies, ranks), fast);
  }
}

}  // namespace
}  // namespace shardscape::network
