// On random fabrics of every kind in any order: is each route the one the rules give, when the rules are
// worked out the plain way, is each detour the best one, when all are tried, and do the legs of routes count what an
// exchange sends over each link as its flows do?
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <vector>

#include "engine/base/counter_rng.h"
#include "engine/network/fabric/faulty_fabric.h"
#include "engine/network/prices/curve_maker.h"
#include "tests/support/fabrics.h"
#include "tests/support/seeds.h"

namespace shardscape::network {
namespace {

using K = DimensionKind;
using Route = std::vector<std::int32_t>;

std::int64_t pick(CounterRng& rng, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(high - low + 1)));
}

/// A connected graph: a random tree, more links, a few of them one way.
DimensionSpec random_custom(CounterRng& rng, std::int64_t size) {
  const std::int64_t switches = pick(rng, 0, 2), vertices = size + switches;
  std::vector<CustomSpec::Link> links;
  std::map<std::pair<std::int64_t, std::int64_t>, bool> used;
  const auto add = [&](std::int64_t a, std::int64_t b, bool one_way) {
    if (a == b || used[{a, b}] || (!one_way && used[{b, a}])) return;
    used[{a, b}] = true;
    if (!one_way) used[{b, a}] = true;
    links.push_back(wire(a, b, one_way));
  };
  for (std::int64_t v = 1; v < vertices; ++v) add(v, pick(rng, 0, v - 1), false);
  for (std::int64_t i = 0; i < vertices; ++i) {
    add(pick(rng, 0, vertices - 1), pick(rng, 0, vertices - 1), rng.below(3) == 0);
  }
  return custom_of("", size, switches, links);
}

DimensionSpec random_dimension(CounterRng& rng) {
  const auto kind = static_cast<K>(rng.below(10));
  switch (kind) {
    case K::mesh:
    case K::torus:
    case K::king_mesh: {
      std::vector<std::int64_t> shape;
      for (std::int64_t axes = pick(rng, 1, 3); axes > 0; --axes) shape.push_back(pick(rng, 1, 4));
      return dimension_of("", kind, shape);
    }
    case K::hypercube:
      return dimension_of("", kind, {std::int64_t{1} << pick(rng, 0, 3)});
    case K::fat_tree: {
      const std::int64_t shape = pick(rng, 0, 3);
      if (shape == 0) return fat_tree_of("", pick(rng, 1, 4), 1, 4);
      if (shape == 1) return fat_tree_of("", pick(rng, 4, 12), 2, 4 + 2 * pick(rng, 0, 0));
      return shape == 2 ? fat_tree_of("", pick(rng, 9, 16), 3, 4)
                        : fat_tree_of("", pick(rng, 7, 12), 2, 8, 3);
    }
    case K::dragonfly:
      return dragonfly_of("", pick(rng, 1, 4), pick(rng, 1, 3), pick(rng, 1, 2));
    case K::custom:
      return random_custom(rng, pick(rng, 2, 6));
    default:
      return dimension_of("", kind, {pick(rng, 1, 7)});
  }
}

/// One to three dimensions; fat trees are given sizes that need all their levels.
std::vector<DimensionSpec> random_dimensions(CounterRng& rng) {
  std::vector<DimensionSpec> dimensions;
  std::int64_t ranks = 1;
  for (std::int64_t i = pick(rng, 1, 3); i > 0; --i) {
    DimensionSpec d = random_dimension(rng);
    if (d.kind == K::fat_tree && d.fat_tree.levels == 2 && d.fat_tree.radix == 4) d.shape = {pick(rng, 3, 8)};
    if (ranks * d.size() > 300) continue;
    ranks *= d.size();
    d.name = "d" + std::to_string(dimensions.size());
    dimensions.push_back(d);
  }
  if (dimensions.empty()) dimensions.push_back(dimension_of("d", K::ring, {3}));
  return dimensions;
}

/// The rules, worked out on coordinates and vertex numbers alone; links are only used to see who is joined.
class RuleRouter {
 public:
  explicit RuleRouter(const Fabric& fabric) : fabric_(fabric) {
    for (const Link& l : fabric.links()) joined_[l.source].push_back(l.destination);
    std::int32_t first = fabric.ranks();
    std::int64_t stride = 1;
    for (const DimensionSpec& d : fabric.spec().dimensions) {
      first_.push_back(first);
      stride_.push_back(stride);
      if (d.size() > 1) first += static_cast<std::int32_t>(fabric.ranks() / d.size()) * switches(d);
      stride *= d.size();
    }
    EXPECT_EQ(first, fabric.vertices());
  }

  Route route(std::int32_t from, std::int32_t to) {
    Route path = {from};
    for (std::size_t i = 0; i < first_.size(); ++i) {
      const std::int64_t size = fabric_.spec().dimensions[i].size(), stride = stride_[i];
      const std::int64_t a = path.back() / stride % size, b = to / stride % size;
      if (a != b) inside(i, a, b, path);
    }
    return path;
  }

 private:
  static std::int32_t ceil(std::int64_t a, std::int64_t b) {
    return static_cast<std::int32_t>((a + b - 1) / b);
  }

  /// Number of switches of one line.
  static std::int32_t switches(const DimensionSpec& d) {
    const std::int64_t n = d.size();
    switch (d.kind) {
      case K::switched:
        return 1;
      case K::dragonfly:
        return ceil(n, d.dragonfly.hosts_per_router);
      case K::custom:
        return static_cast<std::int32_t>(d.custom.switches);
      case K::fat_tree: {
        const std::int64_t radix = d.fat_tree.radix, levels = d.fat_tree.levels;
        if (levels == 1) return 1;
        const auto down = static_cast<std::int64_t>(static_cast<double>(radix) * d.fat_tree.oversubscription /
                                                    (1 + d.fat_tree.oversubscription));
        const std::int64_t up = radix - down;
        if (levels == 2) return ceil(n, down) + static_cast<std::int32_t>(up);
        return ceil(n, down) + ceil(n, down * radix / 2) * static_cast<std::int32_t>(up) +
               static_cast<std::int32_t>(up * radix / 2);
      }
      default:
        return 0;
    }
  }

  void inside(std::size_t i, std::int64_t a, std::int64_t b, Route& path) {
    const DimensionSpec& d = fabric_.spec().dimensions[i];
    const std::int64_t stride = stride_[i], origin = path.back() - a * stride;
    // Lines in the order of their lowest ranks.
    const std::int64_t line = origin / (stride * d.size()) * stride + origin % stride;
    const auto vertex = [&](std::int64_t local) {
      return static_cast<std::int32_t>(local < d.size() ? origin + local * stride
                                                        : first_[i] + line * switches(d) + local - d.size());
    };
    const auto step = [&](std::int64_t local) { path.push_back(vertex(local)); };
    switch (d.kind) {
      case K::fully_connected:
        return step(b);
      case K::switched:
        step(d.size());
        return step(b);
      case K::hypercube:
        for (std::int64_t bit = 1; a != b; bit *= 2) {
          if ((a & bit) == (b & bit)) continue;
          a ^= bit;
          step(a);
        }
        return;
      case K::king_mesh:
        return grid(d, a, b, step, true);
      case K::ring:
      case K::mesh:
      case K::torus:
        return grid(d, a, b, step, false);
      case K::custom: {
        std::map<std::int32_t, std::int64_t> local;
        for (std::int64_t v = 0; v < d.size() + d.custom.switches; ++v) local[vertex(v)] = v;
        return fewest_hops(vertex(b), path, [&](std::int32_t v) { return local.contains(v); });
      }
      case K::dragonfly:
        return over_routers(d, a, b, step);
      case K::fat_tree:
        return tree(d, a, b, vertex, path);
    }
  }

  template <class Step>
  static void grid(const DimensionSpec& d, std::int64_t a, std::int64_t b, const Step& step, bool together) {
    std::vector<std::int64_t> at, to;
    for (const std::int64_t extent : d.shape) {
      at.push_back(a % extent);
      to.push_back(b % extent);
      a /= extent;
      b /= extent;
    }
    const bool wraps = d.kind != K::mesh && d.kind != K::king_mesh;
    while (at != to) {
      for (std::size_t k = 0; k < at.size(); ++k) {
        if (at[k] == to[k]) continue;
        const std::int64_t n = d.shape[k], up = (to[k] - at[k] + n) % n;
        const bool rising = wraps ? up <= n - up : to[k] > at[k];
        at[k] = (at[k] + (rising ? 1 : n - 1)) % n;
        if (!together) break;
      }
      std::int64_t place = 0;
      for (std::size_t k = at.size(); k-- > 0;) place = place * d.shape[k] + at[k];
      step(place);
    }
  }

  /// All distances by relaxation, then the lowest-numbered nearer neighbour at every hop.
  void fewest_hops(std::int32_t goal, Route& path, const std::function<bool(std::int32_t)>& allowed) {
    std::map<std::int32_t, int> distance = {{goal, 0}};
    for (bool changed = true; changed;) {
      changed = false;
      for (const auto& [v, ends] : joined_) {
        for (const std::int32_t w : ends) {
          if (!allowed(v) || !distance.contains(w)) continue;
          if (distance.contains(v) && distance[v] <= distance[w] + 1) continue;
          distance[v] = distance[w] + 1;
          changed = true;
        }
      }
    }
    while (path.back() != goal) {
      std::int32_t next = std::numeric_limits<std::int32_t>::max();
      for (const std::int32_t w : joined_[path.back()]) {
        if (distance.contains(w) && allowed(w) && distance[w] == distance[path.back()] - 1)
          next = std::min(next, w);
      }
      path.push_back(next);
    }
  }

  template <class Step>
  static void over_routers(const DimensionSpec& d, std::int64_t a, std::int64_t b, const Step& step) {
    const std::int64_t routers = d.dragonfly.routers_per_group, hosts = d.dragonfly.hosts_per_router;
    const auto router = [&](std::int64_t group, std::int64_t r) { return d.size() + group * routers + r; };
    // The r-th router of a group meets the other groups number r, r + routers, ..
    const auto meets = [&](std::int64_t group, std::int64_t other) {
      std::int64_t number = 0;
      for (std::int64_t g = 0; g < other; ++g) number += g != group;
      return number % routers;
    };
    const std::int64_t here = a / hosts / routers, there = b / hosts / routers;
    std::int64_t at = a / hosts % routers;
    step(router(here, at));
    if (here != there) {
      if (at != meets(here, there)) step(router(here, meets(here, there)));
      at = meets(there, here);
      step(router(there, at));
    }
    if (at != b / hosts % routers) step(router(there, b / hosts % routers));
    step(b);
  }

  /// Two and three levels, destination routing: the leaf's port up is the destination's last digit, the
  /// spine's the next; the way down goes through the one copy that is wired to the way up.
  template <class Vertex>
  static void tree(const DimensionSpec& d, std::int64_t a, std::int64_t b, const Vertex& vertex,
                   Route& path) {
    const FatTreeSpec& t = d.fat_tree;
    const std::int64_t n = d.size();
    if (t.levels == 1) {
      path.push_back(vertex(n));
      path.push_back(vertex(b));
      return;
    }
    const auto down = static_cast<std::int64_t>(static_cast<double>(t.radix) * t.oversubscription /
                                                (1 + t.oversubscription));
    const std::int64_t up = t.radix - down, leaves = ceil(n, down), spine = b % up;
    path.push_back(vertex(n + a / down));
    if (a / down != b / down) {
      if (t.levels == 2) {
        path.push_back(vertex(n + leaves + spine));
      } else {
        const std::int64_t pod = down * t.radix / 2, pods = ceil(n, pod);
        path.push_back(vertex(n + leaves + a / pod * up + spine));
        if (a / pod != b / pod) {
          const std::int64_t core = spine + up * (b / up % (t.radix / 2));
          path.push_back(vertex(n + leaves + pods * up + core));
          path.push_back(vertex(n + leaves + b / pod * up + spine));
        }
      }
      path.push_back(vertex(n + b / down));
    }
    path.push_back(vertex(b));
  }

  const Fabric& fabric_;
  std::map<std::int32_t, std::vector<std::int32_t>> joined_;
  std::vector<std::int32_t> first_;
  std::vector<std::int64_t> stride_;
};

TEST(FabricRoutes, FollowTheRulesOnRandomFabrics) {
  std::map<K, int> met;
  for (std::uint64_t seed = 0; seed < test::seeds(400); ++seed) {
    CounterRng rng(2024, seed);
    const Fabric fabric = fabric_of(random_dimensions(rng));
    SCOPED_TRACE(::testing::Message() << "stream " << seed);
    if (::testing::Test::HasFailure()) return;
    for (const DimensionSpec& d : fabric.spec().dimensions) ++met[d.kind];
    RuleRouter rules(fabric);
    for (int i = 0; i < 60; ++i) {
      const auto from = static_cast<std::int32_t>(pick(rng, 0, fabric.ranks() - 1));
      const auto to = static_cast<std::int32_t>(pick(rng, 0, fabric.ranks() - 1));
      ASSERT_EQ(visited(fabric, from, to), rules.route(from, to)) << from << " -> " << to;
    }
  }
  if (test::all_seeds()) {
    EXPECT_EQ(met.size(), 10U);
  }
}

/// Hops between all vertices over the living links, by Floyd and Warshall.
std::vector<std::vector<int>> all_distances(const FaultyFabric& faulty) {
  constexpr int kFar = 1 << 20;
  const auto n = static_cast<std::size_t>(faulty.fabric().vertices());
  std::vector<std::vector<int>> hops(n, std::vector<int>(n, kFar));
  for (std::size_t v = 0; v < n; ++v) hops[v][v] = 0;
  for (std::size_t i = 0; i < faulty.fabric().links().size(); ++i) {
    const Link& l = faulty.fabric().links()[i];
    if (!faulty.dead(static_cast<std::int32_t>(i)))
      hops[static_cast<std::size_t>(l.source)][static_cast<std::size_t>(l.destination)] = 1;
  }
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = 0; b < n; ++b) hops[a][b] = std::min(hops[a][b], hops[a][k] + hops[k][b]);
    }
  }
  return hops;
}

void check_pair(FaultyFabric& faulty, const std::vector<std::vector<int>>& hops, std::int32_t from,
                std::int32_t to) {
  constexpr int kFar = 1 << 20;
  const Fabric& fabric = faulty.fabric();
  const auto far = [&](std::int32_t v) {
    return hops[static_cast<std::size_t>(v)][static_cast<std::size_t>(to)];
  };
  std::vector<std::int32_t> healthy, path;
  fabric.append_route(from, to, healthy);
  const bool found = faulty.append_route(from, to, path);
  if (std::ranges::none_of(healthy, [&](std::int32_t link) { return faulty.dead(link); })) {
    ASSERT_TRUE(found);
    ASSERT_EQ(path, healthy) << "other pairs keep their routes";
    return;
  }
  ASSERT_EQ(found, far(from) < kFar);
  if (!found) {
    const Unreachable why = faulty.explain(from, to);
    ASSERT_FALSE(why.cut.empty());
    for (const std::int32_t link : why.cut) ASSERT_TRUE(faulty.dead(link));
    return;
  }
  Route expected = {from};
  while (expected.back() != to) {
    std::int32_t next = std::numeric_limits<std::int32_t>::max();
    for (std::size_t i = 0; i < fabric.links().size(); ++i) {
      const Link& l = fabric.links()[i];
      if (l.source != expected.back() || faulty.dead(static_cast<std::int32_t>(i))) continue;
      if (far(l.destination) == far(expected.back()) - 1) next = std::min(next, l.destination);
    }
    expected.push_back(next);
  }
  ASSERT_EQ(vertices_along(fabric, from, path), expected) << from << " -> " << to;
  for (const std::int32_t link : path) ASSERT_FALSE(faulty.dead(link));
}

TEST(Detours, AreTheBestOnRandomFabricsWithDeadLinks) {
  int detours_cut = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(150); ++seed) {
    CounterRng rng(77, seed);
    std::vector<DimensionSpec> dimensions = random_dimensions(rng);
    while (dimensions.size() > 1 && FabricSpec{"", dimensions}.size() > 48) dimensions.pop_back();
    const Fabric fabric = fabric_of(dimensions);
    if (fabric.links().empty() || fabric.vertices() > 110) continue;
    SCOPED_TRACE(::testing::Message() << "stream " << seed);
    FaultSet faults;
    for (std::int64_t i = pick(rng, 1, 6); i > 0; --i) {
      const auto link = static_cast<std::int32_t>(rng.below(fabric.links().size()));
      const bool dead = rng.below(4) != 0;
      add_fault(faults, fabric, {link, dead ? 1 : 0.5, Seconds(0), dead},
                rng.below(2) == 0 ? FaultDirections::one : FaultDirections::both);
    }
    FaultyFabric faulty(fabric);
    faulty.set_faults(faults);
    const auto hops = all_distances(faulty);
    for (std::int32_t from = 0; from < fabric.ranks(); ++from) {
      for (std::int32_t to = 0; to < fabric.ranks(); ++to) {
        check_pair(faulty, hops, from, to);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
    detours_cut += faulty.cut() ? 1 : 0;
  }
  EXPECT_GE(detours_cut, test::at_least(51));
}

/// Groups of equal size, of ranks in random order or in that of their numbers.
SiblingGroups random_groups(CounterRng& rng, std::int32_t ranks) {
  SiblingGroups groups;
  groups.size = static_cast<std::size_t>(pick(rng, 2, std::max(2, std::min(ranks, 24))));
  for (std::int32_t rank = 0; rank < ranks; ++rank) groups.ranks.push_back(rank);
  for (std::size_t i = groups.ranks.size(); rng.below(2) == 0 && i > 1; --i)
    std::swap(groups.ranks[i - 1], groups.ranks[rng.below(i)]);
  groups.ranks.resize(groups.ranks.size() / groups.size * groups.size);
  return groups;
}

TEST(Legs, CountAnExchangeAsItsFlowsDo) {
  int several = 0, skewed = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(400); ++seed) {
    SCOPED_TRACE(::testing::Message() << "stream " << seed);
    CounterRng rng(78, seed);
    const Fabric fabric = fabric_of(random_dimensions(rng));
    if (fabric.ranks() < 2) continue;
    const SiblingGroups groups = random_groups(rng, fabric.ranks());
    Pattern pattern;
    pattern.operation = Operation::all_to_all;
    pattern.algorithm = Algorithm::direct;
    pattern.skew.of_sender = rng.below(2) == 0;
    for (std::size_t i = 0; seed % 2 == 0 && i < groups.size; ++i)
      pattern.skew.shares.push_back(rng.below(4) == 0 ? 0 : 0.1 + rng.uniform());
    FaultSet faults;
    for (std::int64_t i = pick(rng, 0, 2); i > 0; --i)
      faults.links.push_back({static_cast<std::int32_t>(rng.below(fabric.links().size())), 0.5});
    const StackProfile::Communication communication;
    PricedNetwork network(fabric, communication);
    network.set_faults(faults);
    CurveMaker by_flows(network), by_legs(network);
    by_legs.take_shortcuts(true);
    const LinkSet links = by_flows.links(pattern, groups), counted = by_legs.links(pattern, groups);
    for (std::int32_t link = 0; link < static_cast<std::int32_t>(fabric.links().size()); ++link)
      ASSERT_EQ(links.contains(link), counted.contains(link)) << fabric.link_name(link);
    ASSERT_EQ(by_flows.loads(pattern, groups), by_legs.loads(pattern, groups));
    Pattern ring;
    ring.algorithm = Algorithm::ring;
    const LinkSet along = by_flows.links(ring, groups), found = by_legs.links(ring, groups);
    ASSERT_TRUE(along.contains_all(found) && found.contains_all(along));
    ASSERT_EQ(by_flows.loads(ring, groups), by_legs.loads(ring, groups));
    several += groups.count() > 1 && fabric.axes().size() > 1 ? 1 : 0;
    skewed += pattern.skew.shares.empty() ? 0 : 1;
  }
  EXPECT_GE(several, test::at_least(150));
  EXPECT_GE(skewed, test::at_least(150));
}

}  // namespace
}  // namespace shardscape::network
