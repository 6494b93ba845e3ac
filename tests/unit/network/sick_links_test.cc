// Does the view under faults say what a machine built with these faults would take?
#include "engine/network/prices/sick_links.h"

#include <gtest/gtest.h>

#include <vector>

#include "engine/network/prices/collective_prices.h"
#include "tests/support/engine_fixture.h"

namespace shardscape::network {
namespace {

constexpr double kSickShare = 0.25, kSickLatency = 4e-6, kWellRate = 1e11, kWellLatency = 1e-6;

FabricSpec two_levels(double rate, double latency) {
  return {"levels",
          {test::dimension("inner", DimensionKind::switched, {4}, rate, latency),
           test::dimension("outer", DimensionKind::ring, {4}, rate, latency)}};
}

RankGroup strided(std::int32_t extent, std::int32_t stride) {
  RankGroup group;
  group.push(extent, stride);
  return group;
}

StackProfile::Communication one_ring() {
  StackProfile::Communication communication = test::plain_stack().communication;
  communication.call = Seconds(20e-6);
  communication.rank_step = Seconds(3e-6);
  communication.local_copy = 1.5;
  communication.algorithms = {Algorithm::ring};
  return communication;
}

struct Machine {
  explicit Machine(const FabricSpec& spec) : fabric(spec) {}
  StackProfile::Communication communication = one_ring();
  Fabric fabric;
  CollectivePrices prices{{fabric, communication, BytesPerSecond(1e12)}};

  [[nodiscard]] FaultSet all_sick() const {
    FaultSet faults;
    for (std::size_t i = 0; i < fabric.links().size(); ++i)
      faults.links.push_back({static_cast<std::int32_t>(i), kSickShare, Seconds(kSickLatency)});
    return faults;
  }
};

constexpr CollectiveOp kAnyOps[] = {CollectiveOp::all_reduce, CollectiveOp::all_gather,
                                    CollectiveOp::all_to_all, CollectiveOp::ring_pass,
                                    CollectiveOp::chain_pass, CollectiveOp::broadcast};

TEST(SickLinks, AMachineWhoseLinksAreAllSickIsOneBuiltSo) {
  Machine sick(two_levels(kWellRate, kWellLatency));
  const Machine built(two_levels(kSickShare * kWellRate, kWellLatency + kSickLatency));
  sick.prices.set_faults(sick.all_sick());
  for (const RankGroup& group : {strided(4, 1), strided(4, 4), strided(16, 1), strided(2, 8)}) {
    for (const CollectiveOp op : kAnyOps) {
      for (const double bytes : {1e3, 1e8}) {
        const CollectiveKey asked{op, Bytes(bytes), group};
        const double expected = built.prices.time(asked).value();
        EXPECT_NEAR(sick.prices.time(asked).value(), expected, 1e-12 * expected);
        EXPECT_NEAR(sick.prices.time(asked).value(), expected, 1e-12 * expected) << "remembered";
        EXPECT_NEAR((sick.prices.time_without_faults(asked) + sick.prices.added_by_faults(asked)).value(),
                    expected, 1e-12 * expected);
      }
    }
  }
}

TEST(SickLinks, HealthyQuestionsStayAsTheyAre) {
  Machine machine(two_levels(kWellRate, kWellLatency));
  const CollectiveKey asked{CollectiveOp::all_reduce, Bytes(1e8), strided(16, 1)};
  const Seconds healthy = machine.prices.time(asked);
  machine.prices.set_faults(machine.all_sick());
  EXPECT_GT(machine.prices.time(asked), healthy);
  EXPECT_EQ(machine.prices.time_without_faults(asked), healthy);
  EXPECT_EQ(machine.prices.without_faults().time(asked), healthy);
  EXPECT_FALSE(machine.prices.without_faults().has_faults());
  EXPECT_EQ(machine.prices.without_faults().fault_epoch(), 0U);
}

TEST(SickLinks, EqualFaultsHaveOneNumber) {
  Machine machine(two_levels(kWellRate, kWellLatency));
  const auto epoch = [&](const FaultSet& faults) {
    machine.prices.set_faults(faults);
    return machine.prices.fault_epoch();
  };
  const std::uint64_t first = epoch({{{0, 0.5, Seconds(0)}}});
  const std::vector<FaultSet> others = {{{{1, 0.5, Seconds(0)}}},
                                        {{{0, 0.25, Seconds(0)}}},
                                        {{{0, 0.5, Seconds(1e-6)}}},
                                        {{{0, 0.5, Seconds(0), true}}},
                                        {{{0, 0.5, Seconds(0)}, {1, 0.5, Seconds(0)}}}};
  for (const FaultSet& faults : others) EXPECT_NE(epoch(faults), first);
  EXPECT_EQ(epoch({{{0, 0.5, Seconds(0)}}}), first);
  EXPECT_EQ(epoch({}), 0U);
}

TEST(SickLinks, ViewsOfSlowMemoryLeaveTheOthersAlone) {
  Machine machine(two_levels(kWellRate, kWellLatency));
  const CollectiveKey asked{CollectiveOp::all_gather, Bytes(1e8), strided(4, 1)};
  const Seconds healthy = machine.prices.time(asked);
  const CollectivePrices slow = machine.prices.with_memory(0.5);
  // 3 - 1/4 bytes copied for each, at 1.5 times their time, once more.
  EXPECT_NEAR((slow.time(asked) - healthy).value(), 1.5 * 2.75 * 1e8 / 1e12, 1e-12);
  EXPECT_EQ(machine.prices.time(asked), healthy);
  // Faults are those of the machine, whichever view is asked.
  machine.prices.set_faults(machine.all_sick());
  EXPECT_TRUE(slow.has_faults());
  EXPECT_NEAR((slow.time(asked) - machine.prices.time(asked)).value(), 1.5 * 2.75 * 1e8 / 1e12, 1e-12);
}

TEST(SickLinks, LinksAreListedWhileARecorderLives) {
  Machine machine(two_levels(kWellRate, kWellLatency));
  const CollectiveKey inner{CollectiveOp::all_gather, Bytes(1e8), strided(4, 1)};
  const CollectiveKey outer{CollectiveOp::all_gather, Bytes(1e8), strided(4, 4)};
  {
    LinkRecorder recorder(machine.prices);
    EXPECT_EQ(machine.prices.recorder(), &recorder);
    (void)machine.prices.time(inner);
    const LinkSet of_inner = recorder.take_part();
    EXPECT_TRUE(of_inner.contains_all(machine.prices.healthy().links(inner)));
    EXPECT_FALSE(of_inner.intersects(machine.prices.healthy().links(outer)));
    (void)machine.prices.with_memory(0.5).time(outer);
    EXPECT_FALSE(recorder.take_part().intersects(of_inner));
    EXPECT_TRUE(recorder.all().contains_all(of_inner));
    EXPECT_TRUE(recorder.all().contains_all(machine.prices.healthy().links(outer)));
  }
  EXPECT_EQ(machine.prices.recorder(), nullptr);
}

}  // namespace
}  // namespace shardscape::network
