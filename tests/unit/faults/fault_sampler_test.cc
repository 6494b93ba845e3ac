// Are draws pure functions of (seed, sample), at the places and in the proportions that the study says?
#include "sweep/faults/fault_sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace shardscape::sweep {
namespace {

DimensionSpec dimension(const std::string& name, DimensionKind kind, std::vector<std::int64_t> shape) {
  DimensionSpec d;
  d.name = name;
  d.kind = kind;
  d.shape = std::move(shape);
  d.bandwidth = BytesPerSecond(100e9);
  d.latency = Seconds(1e-6);
  return d;
}

/// A 4x4 torus (64 directed links each way round: 2 * 16 * 2) and rings of 4 between tori.
FabricSpec torus_and_ring() {
  FabricSpec fabric;
  fabric.dimensions = {dimension("torus", DimensionKind::torus, {4, 4}),
                       dimension("ring", DimensionKind::ring, {4})};
  return fabric;
}

FaultStudy soft(double derate = 0.5) {
  FaultStudy study;
  study.kinds = {{FaultKind::soft_link}};
  study.derate.value = derate;
  study.seed = 7;
  return study;
}

std::vector<std::int32_t> links_of(const FaultDraw& draw) {
  std::vector<std::int32_t> links;
  for (const LinkFault& fault : draw.set.links) links.push_back(fault.link);
  return links;
}

TEST(FaultSampler, ADrawDependsOnSeedAndSampleAlone) {
  const network::Fabric fabric(torus_and_ring());
  FaultStudy study = soft();
  study.derate.kind = DistributionKind::normal;
  study.derate.min = 0.05;
  const FaultSampler a(study, fabric), b(study, fabric);
  std::set<std::pair<std::int32_t, double>> distinct;
  for (const std::uint64_t sample : {5U, 0U, 199U, 3U}) {
    const FaultDraw x = a.draw(sample), y = b.draw(sample);
    EXPECT_EQ(x.faults.front().link, y.faults.front().link);
    EXPECT_EQ(x.faults.front().derate, y.faults.front().derate);
    distinct.emplace(x.faults.front().link, x.faults.front().derate);
  }
  EXPECT_EQ(distinct.size(), 4U);
  // More samples do not change the draws that were there.
  study.samples = 10'000;
  EXPECT_EQ(FaultSampler(study, fabric).draw(199).faults.front().derate, a.draw(199).faults.front().derate);
  study.seed = 8;
  EXPECT_NE(FaultSampler(study, fabric).draw(199).faults.front().derate, a.draw(199).faults.front().derate);
}

TEST(FaultSampler, BothDirectionsUnlessOne) {
  const network::Fabric fabric(torus_and_ring());
  FaultStudy study = soft(0.25);
  study.added_latency = Seconds(3e-6);
  const FaultDraw both = FaultSampler(study, fabric).draw(1);
  ASSERT_EQ(both.set.links.size(), 2U);
  EXPECT_EQ(fabric.reverse_of(both.set.links[0].link), both.set.links[1].link);
  for (const LinkFault& fault : both.set.links) {
    EXPECT_EQ(fault.derate, 0.25);
    EXPECT_EQ(fault.added_latency, Seconds(3e-6));
    EXPECT_FALSE(fault.removed);
  }
  study.both_directions = false;
  EXPECT_EQ(FaultSampler(study, fabric).draw(1).set.links.size(), 1U);
}

TEST(FaultSampler, LinksAreDrawnUniformly) {
  const network::Fabric fabric(torus_and_ring());
  const FaultSampler sampler(soft(), fabric);
  // 64 ranks with two torus links and one ring link each: 192 physical links.
  std::map<std::int32_t, int> counts;
  constexpr int kDraws = 192 * 100;
  for (int i = 0; i < kDraws; ++i) ++counts[sampler.draw(static_cast<std::uint64_t>(i)).faults.front().link];
  ASSERT_EQ(counts.size(), 192U);
  double chi = 0;
  for (const auto& [link, count] : counts) chi += (count - 100.0) * (count - 100.0) / 100.0;
  EXPECT_LT(chi, 191 + 5 * std::sqrt(2 * 191.0));  // mean and deviation of chi^2 with 191 degrees of freedom
}

TEST(FaultSampler, PlacementLimitsTheLinks) {
  const network::Fabric fabric(torus_and_ring());
  FaultStudy study = soft();
  study.placement.kind = PlacementKind::dimension;
  study.placement.dimension = "ring";
  const FaultSampler by_dimension(study, fabric);
  study.placement.kind = PlacementKind::links;
  study.placement.links = {{1, 0}, {0, 4}};
  const FaultSampler by_list(study, fabric);
  std::set<std::int32_t> listed;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const auto link = static_cast<std::size_t>(by_dimension.draw(i).faults.front().link);
    EXPECT_EQ(fabric.links()[link].dimension, 1);
    listed.insert(by_list.draw(i).faults.front().link);
  }
  const auto id = [&](std::int32_t a, std::int32_t b) {
    return std::min(fabric.find_link(a, b), fabric.find_link(b, a));
  };
  EXPECT_EQ(listed, (std::set<std::int32_t>{id(0, 1), id(0, 4)}));
}

TEST(FaultSampler, ExhaustiveTakesEveryLinkOnce) {
  const network::Fabric fabric(torus_and_ring());
  FaultStudy study = soft();
  study.placement.kind = PlacementKind::exhaustive;
  const FaultSampler sampler(study, fabric);
  ASSERT_EQ(sampler.samples(), 192U);
  std::set<std::int32_t> touched;
  for (std::uint64_t i = 0; i < sampler.samples(); ++i) {
    for (const std::int32_t link : links_of(sampler.draw(i))) EXPECT_TRUE(touched.insert(link).second);
  }
  EXPECT_EQ(touched.size(), fabric.links().size());
}

TEST(FaultSampler, SimultaneousFaultsAreAtDifferentPlaces) {
  const network::Fabric fabric(torus_and_ring());
  FaultStudy study = soft();
  study.simultaneous = 5;
  study.placement.kind = PlacementKind::links;
  study.placement.links = {{0, 1}, {1, 2}, {0, 4}, {4, 5}, {0, 16}};
  const FaultSampler sampler(study, fabric);
  for (std::uint64_t i = 0; i < 50; ++i) {
    const auto links = links_of(sampler.draw(i));
    EXPECT_EQ(std::set<std::int32_t>(links.begin(), links.end()).size(), 10U);  // all five, both ways
  }
}

TEST(FaultSampler, KindsComeByWeight) {
  const network::Fabric fabric(torus_and_ring());
  FaultStudy study = soft();
  study.kinds = {{FaultKind::soft_link, 3}, {FaultKind::slow_device, 1}};
  const FaultSampler sampler(study, fabric);
  int slow = 0;
  constexpr int kDraws = 4000;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    const FaultDraw draw = sampler.draw(i);
    if (draw.faults.front().kind != FaultKind::slow_device) continue;
    ++slow;
    ASSERT_EQ(draw.set.devices.size(), 1U);
    EXPECT_EQ(draw.set.devices.front().compute_share, 0.5);
    EXPECT_EQ(draw.set.devices.front().hbm_share, 1);
    EXPECT_EQ(draw.faults.front().link, -1);
  }
  EXPECT_NEAR(slow, kDraws / 4.0, 5 * std::sqrt(kDraws * 0.25 * 0.75));
}

TEST(FaultSampler, EveryKindDoesWhatItsRowSays) {
  // One rank's adapter or a switch has several links here, a link two directions.
  FabricSpec spec;
  spec.dimensions = {dimension("nvswitch", DimensionKind::switched, {4})};
  const network::Fabric fabric(spec);
  for (const FaultRow& row : kFaultKinds) {
    SCOPED_TRACE(row.name);
    FaultStudy study = soft(0.25);
    study.kinds = {{row.kind}};
    study.added_latency = Seconds(3e-6);
    const FaultDraw draw = FaultSampler(study, fabric).draw(1);
    EXPECT_EQ(draw.faults.front().derate, row.derates ? 0.25 : 0);
    EXPECT_EQ(draw.set.devices.size(), row.owner == FaultOwner::device ? 1U : 0U);
    EXPECT_EQ(draw.set.links.empty(), row.owner == FaultOwner::device);
    for (const DeviceFault& fault : draw.set.devices) EXPECT_EQ(fault.compute_share * fault.hbm_share, 0.25);
    for (const LinkFault& fault : draw.set.links) {
      EXPECT_EQ(fault.removed, !row.derates);
      EXPECT_TRUE(fault.removed || fault.derate == 0.25);
      EXPECT_EQ(fault.added_latency.value(), row.delays() ? 3e-6 : 0);
    }
  }
}

TEST(FaultPlaces, AnAdapterIsAllOfItsLinksInTheScaleOutNetwork) {
  FabricSpec spec = torus_and_ring();
  const network::Fabric plain(spec);
  // No scale-out network: the outermost dimension, where each rank has two neighbours, both ways.
  FaultStudy study = soft();
  const auto outer = fault_places(FaultKind::nic_down, study, plain);
  ASSERT_EQ(outer.size(), 64U);
  EXPECT_EQ(outer[5].device, 5);
  EXPECT_EQ(outer[5].links.size(), 4U);
  spec.dimensions[0].scope = LinkScope::scale_out;
  const auto torus = fault_places(FaultKind::nic_down, study, network::Fabric(spec));
  EXPECT_EQ(torus[5].links.size(), 8U);
  EXPECT_TRUE(fault_places(FaultKind::switch_down, study, plain).empty());
}

TEST(FaultPlaces, ASwitchTakesAllOfItsLinks) {
  FabricSpec spec;
  spec.dimensions = {dimension("nvswitch", DimensionKind::switched, {4}),
                     dimension("rail", DimensionKind::switched, {2})};
  const network::Fabric fabric(spec);
  FaultStudy study = soft();
  // Two switches of four ports and four rails of two, each port up and down.
  const auto all = fault_places(FaultKind::switch_down, study, fabric);
  ASSERT_EQ(all.size(), 6U);
  EXPECT_EQ(all.front().links.size(), 8U);
  EXPECT_EQ(all.back().links.size(), 4U);
  study.placement.kind = PlacementKind::dimension;
  study.placement.dimension = "rail";
  EXPECT_EQ(fault_places(FaultKind::switch_down, study, fabric).size(), 4U);
  const FaultSampler sampler(
      [] {
        FaultStudy s;
        s.kinds = {{FaultKind::switch_down}};
        return s;
      }(),
      fabric);
  for (const LinkFault& fault : sampler.draw(0).set.links) EXPECT_TRUE(fault.removed);
}

}  // namespace
}  // namespace shardscape::sweep
