// Are groups that tiles.h calls copies of each other just that? Random fabrics of every kind with shared adapters and
// rails, random plans: link by link against the routes of all groups, and prices against those of all groups.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/base/counter_rng.h"
#include "engine/network/groups/ring_order.h"
#include "engine/network/groups/sibling_groups.h"
#include "engine/network/groups/tiles.h"
#include "engine/network/prices/collective_prices.h"
#include "tests/support/fabrics.h"
#include "tests/support/random_plan.h"
#include "tests/support/seeds.h"

namespace shardscape::network {
namespace {

DimensionSpec tileable_dimension(CounterRng& random, const std::string& name, std::int64_t inner) {
  const auto two_to = [&](std::uint64_t most) { return std::int64_t{1} << (1 + random.below(most)); };
  DimensionSpec d = dimension_of(name.c_str(), DimensionKind::switched, {two_to(4)});
  const std::uint64_t kind = random.below(inner == 1 ? 8 : 10);
  if (kind == 0) d.kind = DimensionKind::ring;
  if (kind == 1) d.kind = DimensionKind::fully_connected;
  if (kind == 2) d.kind = DimensionKind::hypercube;
  if (kind == 3) d = dimension_of(name.c_str(), DimensionKind::torus, {two_to(2), two_to(2)});
  if (kind == 4) d = dimension_of(name.c_str(), DimensionKind::mesh, {two_to(2), two_to(2)});
  if (kind == 5) d = dragonfly_of(name.c_str(), 3, 2, 2);
  if (kind == 6) d = dimension_of(name.c_str(), DimensionKind::king_mesh, {2, two_to(1)});
  if (kind >= 8) {
    const auto levels = static_cast<std::int64_t>(2 + random.below(2));
    d = fat_tree_of(name.c_str(), two_to(4), levels, 4, static_cast<double>(1 + random.below(2)));
    d.fat_tree.up_routing = static_cast<UpRouting>(random.below(3));
  }
  const bool has_ports = d.kind == DimensionKind::switched || d.kind == DimensionKind::fat_tree;
  if (has_ports && inner > 1 && random.below(2) == 0) {
    const std::int64_t adapters = inner / (inner % 2 == 0 && random.below(2) == 0 ? 2 : 1);
    if (adapters < inner) d.nics_per_node = adapters;
    if (random.below(2) == 0) d.rails = adapters % 2 == 0 && random.below(2) == 0 ? adapters / 2 : 1;
  }
  d.bandwidth = BytesPerSecond(1e9 * static_cast<double>(1 + random.below(3)));
  d.latency = Seconds(1e-6 * static_cast<double>(1 + random.below(3)));
  return d;
}

FabricSpec tileable_fabric(CounterRng& random, std::int64_t most) {
  for (;;) {
    FabricSpec spec;
    spec.name = "random";
    for (std::uint64_t d = 0, count = 1 + random.below(3); d < count; ++d)
      spec.dimensions.push_back(tileable_dimension(random, "d" + std::to_string(d), spec.size()));
    spec.dimensions.back().scope = LinkScope::scale_out;
    if (spec.size() <= most && spec.size() >= 4 && spec.validate().empty()) return spec;
  }
}

std::string fabric_text(std::uint64_t seed, const FabricSpec& spec) {
  std::string text = "seed " + std::to_string(seed) + ":";
  for (const DimensionSpec& d : spec.dimensions) {
    text += " " + std::string(name_of(d.kind)) + testing::PrintToString(d.shape);
    if (d.nics_per_node) text += " adapters " + std::to_string(*d.nics_per_node);
    if (d.rails) text += " rails " + std::to_string(*d.rails);
  }
  return text;
}

/// Groups of one axis, of two, or of one within a stage.
struct AnyGroup {
  AnyGroup(CounterRng& random, const ParallelPlan& plan) {
    const PlanLayout layout(plan);
    const auto one = static_cast<PlanAxis>(random.below(kPlanAxes));
    const auto two = static_cast<PlanAxis>(random.below(kPlanAxes));
    group = layout.group(one, two);
    const bool staged = one != PlanAxis::pipeline && two != PlanAxis::pipeline;
    if (staged && random.below(2) == 0) {
      const auto stages = static_cast<std::uint64_t>(plan.pipeline);
      slice = stage_slice(static_cast<std::int32_t>(random.below(stages)), layout, plan);
    }
  }
  RankGroup group;
  Slice slice;
};

/// The links between all pairs of the members, in order.
std::vector<std::int32_t> all_routes(const Fabric& fabric, std::span<const std::int32_t> group) {
  std::vector<std::int32_t> path;
  for (const std::int32_t from : group) {
    for (const std::int32_t to : group) {
      if (from != to) fabric.append_route(from, to, path);
    }
  }
  return path;
}

/// By tile, named by its first rank: the routes of each of its groups.
std::map<std::int32_t, std::vector<std::vector<std::int32_t>>> routes_by_tile(const Fabric& fabric,
                                                                              const SiblingGroups& all,
                                                                              const Tile& tile) {
  std::map<std::int32_t, std::vector<std::vector<std::int32_t>>> result;
  for (std::size_t g = 0; g < all.count(); ++g) {
    std::int32_t first = all.group(g).front();
    for (const RankGroup::Level& digit : tile.digits)
      first -= first / digit.stride % digit.extent * digit.stride;
    result[first].push_back(all_routes(fabric, all.group(g)));
  }
  return result;
}

TEST(Tiles, AreMovedCopiesOfEachOtherOverLinksOfTheirOwn) {
  int several = 0;
  for (std::uint64_t seed = 1; seed <= test::seeds(400); ++seed) {
    CounterRng random(seed, 21);
    const FabricSpec spec = tileable_fabric(random, 128);
    const Fabric fabric(spec);
    const ParallelPlan plan = test::random_plan(random, fabric.ranks());
    for (int round = 0; round < 3; ++round) {
      const AnyGroup any(random, plan);
      SCOPED_TRACE(fabric_text(seed, spec) + " round " + std::to_string(round));
      const Tile tile = tile_of(any.group, fabric, any.slice);
      const SiblingGroups all = sibling_groups(any.group, fabric, {}, any.slice);
      const SiblingGroups first = first_tile(any.group, fabric, any.slice);
      ASSERT_EQ(first.copies * static_cast<double>(first.count()), static_cast<double>(all.count()));
      if (!tile.known || tile.copies == 1 || any.group.alone()) continue;
      ++several;
      const auto tiles = routes_by_tile(fabric, all, tile);
      ASSERT_EQ(static_cast<double>(tiles.size()), tile.copies);
      const auto& model = tiles.begin()->second;
      std::vector<std::int64_t> owner(fabric.links().size(), -1);
      for (const auto& [key, routes] : tiles) {
        ASSERT_EQ(routes.size(), model.size());
        // One link of the first tile for each of this one, and back, of the same rates.
        std::map<std::int32_t, std::int32_t> there, back;
        for (std::size_t g = 0; g < routes.size(); ++g) {
          ASSERT_EQ(routes[g].size(), model[g].size());
          for (std::size_t i = 0; i < routes[g].size(); ++i) {
            const std::int32_t link = routes[g][i], original = model[g][i];
            ASSERT_EQ(there.try_emplace(original, link).first->second, link);
            ASSERT_EQ(back.try_emplace(link, original).first->second, original);
            const Link &a = fabric.links()[static_cast<std::size_t>(link)],
                       &b = fabric.links()[static_cast<std::size_t>(original)];
            ASSERT_TRUE(a.bandwidth == b.bandwidth && a.latency == b.latency && a.dimension == b.dimension);
            std::int64_t& user = owner[static_cast<std::size_t>(link)];
            if (user < 0) user = key;
            ASSERT_EQ(user, key) << "two tiles meet on link " << link;
          }
        }
      }
    }
  }
  EXPECT_GE(several, test::at_least(100));
}

TEST(Tiles, BoxesOfGroupsThatLieAlikeAreThoseOfEachGroup) {
  int split = 0, moved = 0;
  for (std::uint64_t seed = 1; seed <= test::seeds(600); ++seed) {
    CounterRng random(seed, 27);
    const FabricSpec spec = tileable_fabric(random, 256);
    const Fabric fabric(spec);
    const AnyGroup any(random, test::random_plan(random, fabric.ranks()));
    SCOPED_TRACE(fabric_text(seed, spec));
    const SiblingGroups all = sibling_groups(any.group, fabric, {}, any.slice);
    GroupBox first, alone, alike;
    if (!split_into_box(fabric, all.group(0), first)) continue;
    const BoxesAlike boxes(fabric, all.group(0), first);
    for (std::size_t g = 0; g < all.count(); ++g) {
      const bool is_box = split_into_box(fabric, all.group(g), alone);
      ASSERT_EQ(boxes.split(all.group(g), alike), is_box);
      if (!is_box) continue;
      ++split;
      const std::int32_t further = all.group(g).front() - all.group(0).front();
      if (g > 0 && std::ranges::equal(all.group(g), all.group(0), {},
                                      [&](std::int32_t rank) { return rank - further; }))
        ++moved;
      ASSERT_EQ(alike.origin, alone.origin);
      ASSERT_EQ(alike.levels.size(), alone.levels.size());
      for (std::size_t l = 0; l < alone.levels.size(); ++l) {
        const GroupBox::Level &one = alike.levels[l], &other = alone.levels[l];
        ASSERT_EQ(std::tie(one.dimension, one.stride, one.wraps, one.positions),
                  std::tie(other.dimension, other.stride, other.wraps, other.positions));
      }
    }
  }
  EXPECT_GE(split, test::at_least(2000));
  EXPECT_GE(moved, test::at_least(1000));
}

/// What of its links each of two operations keeps, and the busiest of them all, from what all groups take of each link.
void expect_links_shared_alike(const HealthyCosts& tiles, const HealthyCosts& direct,
                               const CollectiveKey& one, const CollectiveKey& two) {
  const LinkLoads of_one = direct.loads(one), of_two = direct.loads(two);
  EXPECT_EQ(tiles.paces_together(one, two), kept_paces(of_one, of_two));
  const std::vector<Seconds> sending = {Seconds(2), Seconds(3)};
  std::map<std::int32_t, Seconds> busy;
  const auto add = [&](const LinkLoads& loads, Seconds seconds) {
    for (const LinkLoad& load : loads)
      for (std::int32_t link = load.link; link < load.end(); ++link) busy[link] += load.use * seconds;
  };
  add(of_one, sending[0]);
  add(of_two, sending[1]);
  Seconds most;
  for (const auto& [link, seconds] : busy) most = std::max(most, seconds);
  const std::vector<CollectiveKey> both = {one, two};
  EXPECT_NEAR(tiles.busiest_link(both, sending, Seconds(0)).value(), most.value(), 1e-9);
  EXPECT_EQ(tiles.busiest_link(both, sending, most + Seconds(1e-9)), Seconds(0));
}

TEST(Tiles, CostWhatAllGroupsCost) {
  // The same to the last bit: the first tile goes through the same formulas in the same order. There
  // every group is looked at.
  for (std::uint64_t seed = 1; seed <= test::seeds(300); ++seed) {
    CounterRng random(seed, 22);
    const FabricSpec spec = tileable_fabric(random, 128);
    const Fabric fabric(spec);
    const ParallelPlan plan = test::random_plan(random, fabric.ranks());
    StackProfile::Communication communication;
    communication.scale_up_fraction = 0.75;
    communication.rank_step = Seconds(2e-6);
    if (random.below(2) == 0) communication.algorithms = StackProfile::Communication::all_algorithms();
    CollectiveSetup setup{fabric, communication, BytesPerSecond(1e12)};
    const CollectivePrices tiles(setup);
    setup.analysis = Analysis::every_group;
    const CollectivePrices direct(setup);
    constexpr CollectiveOp kTiledOps[] = {CollectiveOp::all_reduce, CollectiveOp::reduce_scatter,
                                          CollectiveOp::all_gather, CollectiveOp::all_to_all,
                                          CollectiveOp::broadcast,  CollectiveOp::ring_pass,
                                          CollectiveOp::chain_pass};
    for (int round = 0; round < 4; ++round) {
      const AnyGroup any(random, plan), other(random, plan);
      const CollectiveOp op = kTiledOps[random.below(std::size(kTiledOps))];
      const Bytes bytes(1e6 * random.uniform());
      SCOPED_TRACE(fabric_text(seed, spec) + " round " + std::to_string(round) + " op " +
                   std::to_string(static_cast<int>(op)));
      ASSERT_EQ(tiles.time({op, bytes, any.group}).value(), direct.time({op, bytes, any.group}).value());
      ASSERT_EQ(tiles.healthy().choice({op, bytes, any.group}),
                direct.healthy().choice({op, bytes, any.group}));
      for (const CollectiveOp same_rings : {CollectiveOp::all_gather, CollectiveOp::reduce_scatter})
        ASSERT_EQ(tiles.time({same_rings, bytes, any.group}).value(),
                  direct.time({same_rings, bytes, any.group}).value());
      if (!any.slice.everything()) {
        const CollectiveKey within{op, bytes, any.group, 1, {any.slice.axis, 0}};
        const auto by_tiles = tiles.time_within_slice(within), directly = direct.time_within_slice(within);
        ASSERT_EQ(by_tiles.least.value(), directly.least.value());
        ASSERT_EQ(by_tiles.most.value(), directly.most.value());
      }
      if (any.group.alone() || other.group.alone()) continue;
      const CollectiveKey one{op, bytes, any.group}, two{CollectiveOp::all_gather, bytes, other.group};
      const HealthyCosts &by_tiles = tiles.healthy(), &by_groups = direct.healthy();
      const LinkSet& of_one = by_groups.links(one);
      ASSERT_EQ(by_tiles.meet(one, two), of_one.intersects(by_groups.links(two)));
      ASSERT_TRUE(of_one.contains_all(by_tiles.links(one)) && by_tiles.links(one).contains_all(of_one));
      expect_links_shared_alike(by_tiles, by_groups, one, two);
    }
    const RankGroup chain = PlanLayout(plan).group(PlanAxis::pipeline);
    std::vector<double> quickly, slowly, back, slowly_back;
    tiles.boundary_times(Bytes(1e6), chain, seed % 2 == 0, quickly, back);
    direct.boundary_times(Bytes(1e6), chain, seed % 2 == 0, slowly, slowly_back);
    ASSERT_EQ(quickly, slowly) << fabric_text(seed, spec);
    ASSERT_EQ(back, slowly_back) << fabric_text(seed, spec);
  }
}

}  // namespace
}  // namespace shardscape::network
