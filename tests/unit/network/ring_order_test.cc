// Are neighbours on a logical ring one hop apart wherever the fabric allows it?
#include "engine/network/groups/ring_order.h"

#include <algorithm>

#include "tests/support/traffic_fixture.h"

namespace shardscape::network {
namespace {

using test::dimension;
using test::make_fabric;
using test::ranks_up_to;

/// Pairs of neighbours around the ring that are more than one step apart.
int detours(const Fabric& fabric, const std::vector<std::int32_t>& order) {
  int count = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::vector<std::int32_t> path;
    fabric.append_route(order[i], order[(i + 1) % order.size()], path);
    const bool over_switch =
        path.size() == 2 && fabric.links()[static_cast<std::size_t>(path[0])].destination >= fabric.ranks();
    if (path.size() != 1 && !over_switch) ++count;
  }
  return count;
}

void expect_cycle(const Fabric& fabric, const std::vector<std::int32_t>& group, int allowed_detours = 0) {
  const std::vector<std::int32_t> order = ring_order(fabric, group);
  EXPECT_EQ(order.front(), group.front());
  EXPECT_TRUE(std::ranges::is_permutation(order, group));
  EXPECT_EQ(detours(fabric, order), allowed_detours);
}

TEST(RingOrder, HamiltonianCycleWhereThereIsOne) {
  using enum DimensionKind;
  const std::vector<std::vector<DimensionSpec>> fabrics = {
      {dimension(torus, {4, 4})},
      {dimension(torus, {8, 8})},
      {dimension(mesh, {4, 4})},
      {dimension(mesh, {3, 4})},
      {dimension(mesh, {4, 3})},
      {dimension(mesh, {2, 5})},
      {dimension(mesh, {3, 2, 3})},
      {dimension(mesh, {4, 4, 4})},
      {dimension(torus, {3, 3})},
      {dimension(torus, {5, 3})},
      {dimension(torus, {3, 5, 3})},
      {dimension(ring, {7})},
      {dimension(king_mesh, {4, 3})},
      {dimension(hypercube, {16})},
      {dimension(torus, {4, 4}), dimension(ring, {4})},
      {dimension(mesh, {3}), dimension(ring, {5})},
      {dimension(switched, {8}), dimension(ring, {3})},
      {dimension(fully_connected, {3}), dimension(mesh, {3})}};
  for (const auto& dimensions : fabrics) {
    const Fabric fabric = make_fabric(dimensions);
    std::string text;
    for (const DimensionSpec& d : dimensions) {
      text += std::string(name_of(d.kind));
      for (const std::int64_t extent : d.shape) text += " " + std::to_string(extent);
      text += "; ";
    }
    SCOPED_TRACE(text);
    std::vector<std::int32_t> group = ranks_up_to(fabric.ranks());
    expect_cycle(fabric, group);
    std::ranges::reverse(group);
    expect_cycle(fabric, group);
  }
}

TEST(RingOrder, BoxesInsideAFabric) {
  const Fabric fabric = make_fabric({dimension(DimensionKind::torus, {4, 4})});
  expect_cycle(fabric, {5, 6, 9, 10});
  expect_cycle(fabric, {3, 7, 11, 15});
  // A row of three is an open line here: the way back is the only detour.
  expect_cycle(fabric, {0, 2, 1}, 1);
}

TEST(RingOrder, OddMeshHasAPathOnly) {
  // A chessboard of 9 fields has 5 of one colour: no cycle.
  expect_cycle(make_fabric({dimension(DimensionKind::mesh, {3, 3})}), ranks_up_to(9), 1);
}

TEST(RingOrder, OtherGroupsStayAsListed) {
  const Fabric fabric = make_fabric({dimension(DimensionKind::torus, {4, 4})});
  const std::vector<std::int32_t> group = {9, 0, 5, 2};
  EXPECT_EQ(ring_order(fabric, group), group);
}

}  // namespace
}  // namespace shardscape::network
