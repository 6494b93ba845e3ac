// Do protocols cost what their closed forms say, and what published tables measured?
#include "engine/network/collectives/protocols.h"

#include <gtest/gtest.h>

#include "engine/network/prices/collective_prices.h"
#include "tests/support/engine_fixture.h"

namespace shardscape::network {
namespace {

constexpr BytesPerSecond kLink(100e9);

using test::round_protocols;

double nccl_us(Operation operation, std::int32_t n, double bytes, BytesPerSecond link = kLink) {
  return 1e6 * nccl_time(round_protocols().nccl, operation, n, Bytes(bytes), link)->value();
}

double custom_us(AllReduceKernels kernels, std::int32_t n, double bytes) {
  return 1e6 * all_reduce_time(round_protocols(), kernels, n, Bytes(bytes), kLink)->value();
}

constexpr double kRounding = 1e-9;

TEST(Protocols, EachIsItsClosedForm) {
  // 4 ranks: an all-reduce has 6 steps and moves 6/4 of the tensor over each link, an all-gather half of both.
  EXPECT_NEAR(nccl_us(Operation::all_reduce, 4, 1000), 5 + 6 * 1 + 1500 / 10e3, kRounding);
  EXPECT_NEAR(nccl_us(Operation::all_gather, 4, 1000), 5 + 3 * 1 + 750 / 10e3, kRounding);
  EXPECT_NEAR(nccl_us(Operation::reduce_scatter, 4, 1e6), 5 + 2 + 3 * 1 + 0.75e6 / 50e3, kRounding);
  EXPECT_NEAR(nccl_us(Operation::all_reduce, 4, 4e6), 5 + 2 + 6 * 1 + 6e6 / 50e3, kRounding);
  // Beyond 1 MB a rank Simple: 80 of 100 GB/s, and a rank's own 2 MB at 400 GB/s.
  EXPECT_NEAR(nccl_us(Operation::all_reduce, 4, 8e6), 5 + 10 + 6 * 3 + 12e6 / 80e3 + 2e6 / 400e3, kRounding);
}

TEST(Protocols, AllToAllTakesTheCheaperWay) {
  // 3 peers, 3/4 of the tensor: small 1.5 us + 0.75 M at 20 GB/s, large 7 us + 0.75 M at 50 + M/4 at 1000.
  EXPECT_NEAR(nccl_us(Operation::all_to_all, 4, 1e4), 6 + 1.5 + 0.75e4 / 20e3, kRounding);
  EXPECT_NEAR(nccl_us(Operation::all_to_all, 4, 1e7), 6 + 4 + 3 + 0.75e7 / 50e3 + 0.25e7 / 1000e3, kRounding);
}

TEST(Protocols, FlagsTakeTheirPartOfASlowLink) {
  // On 16 GB/s LL has 8 of them for data and LL128 15, both less than what they manage on a fast link.
  const BytesPerSecond slow(16e9);
  EXPECT_NEAR(nccl_us(Operation::all_gather, 2, 1000, slow), 5 + 1 + 500 / 8e3, kRounding);
  EXPECT_NEAR(nccl_us(Operation::all_gather, 2, 1e6, slow), 5 + 2 + 1 + 0.5e6 / 15e3, kRounding);
}

TEST(Protocols, LargeDomainsAreAsDeepAsTreesAre) {
  // Rings up to 8 ranks; then 7/3 steps a pass for each doubling: 64 ranks have 14, not 63.
  const auto steps = [](std::int32_t n) {
    const double moved = (n - 1.0) / n * 1000 / 10e3;
    return nccl_us(Operation::all_gather, n, 1000) - 5 - moved;
  };
  for (const std::int32_t n : {2, 3, 4, 5, 6, 7, 8}) EXPECT_NEAR(steps(n), n - 1, 1e-6) << n;
  EXPECT_NEAR(steps(16), 28.0 / 3, 1e-6);
  EXPECT_NEAR(steps(64), 14, 1e-6);
}

TEST(Protocols, WhatHasNoClosedFormHasNoTime) {
  EXPECT_FALSE(nccl_time(round_protocols().nccl, Operation::broadcast, 4, Bytes(1e6), kLink).has_value());
  EXPECT_FALSE(nccl_time({}, Operation::all_reduce, 4, Bytes(1e6), kLink).has_value());
  EXPECT_FALSE(all_reduce_time({}, AllReduceKernels::vllm, 4, Bytes(1e6), kLink).has_value());
}

TEST(Protocols, CustomKernelsShootOnceOrTwice) {
  constexpr AllReduceKernels kVllm = AllReduceKernels::vllm;
  // One shot: every rank reads the tensors of all others.
  EXPECT_NEAR(custom_us(kVllm, 2, 4e6), 4 + 4e6 / 40e3, kRounding);
  EXPECT_NEAR(custom_us(kVllm, 4, 5e5), 4 + 0.2 + 3 * 5e5 / 40e3, kRounding);
  EXPECT_NEAR(custom_us(kVllm, 8, 2e5), 4 + 0.6 + 7 * 2e5 / 40e3, kRounding);
  // Two shots from 512 KiB among 4 and from 256 KiB among 8 ranks on.
  EXPECT_NEAR(custom_us(kVllm, 4, 512 * 1024), 4 + 0.2 + 3 + 1.5 * 512 * 1024 / 80e3, kRounding);
  EXPECT_NEAR(custom_us(kVllm, 8, 1e6), 4 + 0.6 + 3 + 1.75e6 / 80e3, kRounding);
  EXPECT_NEAR(custom_us(AllReduceKernels::trtllm, 8, 1e6), 3 + 0.6 + 3 + 1.75e6 / 80e3, kRounding);
}

TEST(Protocols, AboveTheirLimitsCustomKernelsLeaveToTheSwitchesOrTheLibrary) {
  EXPECT_EQ(custom_us(AllReduceKernels::library, 8, 1e6), nccl_us(Operation::all_reduce, 8, 1e6));
  // Two ranks have nothing that a switch could reduce for them; neither does TensorRT-LLM use it.
  EXPECT_EQ(custom_us(AllReduceKernels::vllm, 2, 9e6), nccl_us(Operation::all_reduce, 2, 9e6));
  EXPECT_EQ(custom_us(AllReduceKernels::trtllm, 8, 9e6), nccl_us(Operation::all_reduce, 8, 9e6));
  EXPECT_NEAR(custom_us(AllReduceKernels::sglang, 8, 9e6), 20 + 9e6 / 90e3, kRounding);
  EXPECT_EQ(custom_us(AllReduceKernels::vllm, 16, 1e5), nccl_us(Operation::all_reduce, 16, 1e5));
}

TEST(Protocols, EagerCallsCopyTheirTensorAndHaveAFloor) {
  // 100 ports of 1 GB/s; 1,000 GB/s of memory that sustains all of it: 2 M / 1,000 GB/s of copies.
  DeviceSpec device;
  device.node = round_protocols();
  device.node.custom.trtllm.eager_floor = Seconds(50e-6);
  device.links.ports = 100;
  device.links.bandwidth_per_port = BytesPerSecond(1e9);
  device.hbm = {1, Bytes(80e9), BytesPerSecond(1000e9)};
  const auto us = [&](AllReduceKernels kernels, bool eager, double bytes) {
    return 1e6 * all_reduce_in_node(device, kernels, eager, 4, Bytes(bytes))->value();
  };
  for (const AllReduceKernels kernels :
       {AllReduceKernels::vllm, AllReduceKernels::sglang, AllReduceKernels::trtllm}) {
    EXPECT_EQ(us(kernels, false, 1000), custom_us(kernels, 4, 1000));
    EXPECT_NEAR(us(kernels, true, 1000), kernels == AllReduceKernels::vllm ? 30 : 50, kRounding);
    EXPECT_NEAR(us(kernels, true, 50e6), us(kernels, false, 50e6) + 100e6 / 1000e3, kRounding);
  }
}

// ---- in the model of collectives ----

/// 8 GPUs behind a switch, and as many nodes on another.
struct TwoNodes {
  explicit TwoNodes(bool protocols = true) : communication(stack(protocols)) {}
  static StackProfile::Communication stack(bool protocols) {
    StackProfile::Communication communication;
    communication.call = Seconds(2e-6);
    communication.rank_step = Seconds(0.5e-6);
    communication.protocols = protocols;
    communication.scale_up_fraction = 0.9;
    communication.bucket = Bytes(1e6);
    return communication;
  }
  double us(CollectiveOp op, double bytes, std::int32_t extent = 8, std::int32_t stride = 1) {
    RankGroup group;
    group.push(extent, stride);
    return 1e6 * model.time({op, Bytes(bytes), group}).value();
  }
  static DimensionSpec level(const char* name, double bandwidth, LinkScope scope, std::int64_t size) {
    return {name, DimensionKind::switched, {size}, BytesPerSecond(bandwidth), Seconds(0.1e-6), scope};
  }

  StackProfile::Communication communication;
  NodeCollectives node = round_protocols();
  Fabric fabric{FabricSpec{
      "two nodes",
      {level("nvlink", 100e9, LinkScope::scale_up, 8), level("rail", 25e9, LinkScope::scale_out, 2)}}};
  CollectivePrices model{{fabric, communication, BytesPerSecond(1e12), &node}};
};

constexpr BytesPerSecond kAchieved(90e9);

TEST(Protocols, GroupsOfANodeTakeTheClosedFormAndTheCall) {
  TwoNodes nodes;
  for (const double bytes : {512.0, 1e5, 1e6, 1e8}) {
    EXPECT_NEAR(nodes.us(CollectiveOp::all_reduce, bytes),
                2 + nccl_us(Operation::all_reduce, 8, bytes, kAchieved), 1e-6);
    EXPECT_NEAR(nodes.us(CollectiveOp::all_gather, bytes, 4, 2),
                2 + nccl_us(Operation::all_gather, 4, bytes, kAchieved), 1e-6);
    EXPECT_NEAR(nodes.us(CollectiveOp::all_to_all, bytes),
                2 + nccl_us(Operation::all_to_all, 8, bytes, kAchieved), 1e-6);
  }
  nodes.communication.all_reduce = AllReduceKernels::vllm;
  EXPECT_NEAR(nodes.us(CollectiveOp::all_reduce, 1e5), 2 + 4 + 0.6 + 7 * 1e5 / 40e3, 1e-6);
}

TEST(Protocols, SendsAndGroupsAcrossNodesDoNot) {
  TwoNodes with, without(false);
  EXPECT_EQ(with.us(CollectiveOp::ring_pass, 1e6), without.us(CollectiveOp::ring_pass, 1e6));
  EXPECT_EQ(with.us(CollectiveOp::all_reduce, 1e6, 2, 8), without.us(CollectiveOp::all_reduce, 1e6, 2, 8));
  EXPECT_EQ(with.us(CollectiveOp::all_gather, 1e6, 16), without.us(CollectiveOp::all_gather, 1e6, 16));
}

TEST(Protocols, CallsAreNeverShorterThanTheirLinks) {
  // Two exchanges of a hop of 2 x 30 us and a rank's step, whatever the protocols say.
  TwoNodes nodes;
  Fabric slow(FabricSpec{"far", {TwoNodes::level("nvlink", 100e9, LinkScope::scale_up, 8)}});
  FabricSpec far = slow.spec();
  far.dimensions[0].latency = Seconds(30e-6);
  const Fabric fabric(far);
  const CollectivePrices model({fabric, nodes.communication, BytesPerSecond(1e12), &nodes.node});
  RankGroup group;
  group.push(8, 1);
  EXPECT_NEAR(1e6 * model.time({CollectiveOp::all_reduce, Bytes(8000), group}).value(),
              2 + 2 * (0.5 + 60) + 2 * 7e3 / 90e3, 1e-6);
}

TEST(Protocols, SickLinksSlowThemByWhatTheyCarryLess) {
  // An all-gather sends 7/8 of the tensor over each link to the switch; at a third of the bandwidth that takes
  // twice as long beside. The fixed parts stay.
  TwoNodes nodes;
  const double healthy = nodes.us(CollectiveOp::all_gather, 1e7);
  const auto uplink = [&](std::int32_t rank) {
    for (std::size_t i = 0; i < nodes.fabric.links().size(); ++i) {
      const Link& link = nodes.fabric.links()[i];
      if (link.source == rank && link.dimension == 0) return static_cast<std::int32_t>(i);
    }
    return -1;
  };
  nodes.model.set_faults({{{uplink(3), 1.0 / 3, Seconds(0), false}}});
  EXPECT_NEAR(nodes.us(CollectiveOp::all_gather, 1e7), healthy + 2 * 7.0 / 8 * 1e7 / 90e3, 1e-6 * healthy);
  nodes.model.set_faults({{{uplink(3), 1, Seconds(0), true}}});
  EXPECT_GT(nodes.us(CollectiveOp::all_gather, 1e7), healthy);  // messages go through the other node
  nodes.model.set_faults({});
  EXPECT_EQ(nodes.us(CollectiveOp::all_gather, 1e7), healthy);
}

TEST(Protocols, TheChoiceSaysSo) {
  TwoNodes nodes;
  RankGroup group;
  group.push(8, 1);
  EXPECT_EQ(to_string(*nodes.model.healthy().choice({CollectiveOp::all_reduce, Bytes(1e6), group})),
            "protocols of the node");
}

}  // namespace
}  // namespace shardscape::network
