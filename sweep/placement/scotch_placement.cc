// Maps the traffic of a plan to a fabric with Scotch: both become weighted graphs, and ranks that Scotch puts on the
// same place move to the nearest free one.
#include "sweep/placement/scotch_placement.h"

#include <cstdint>
#include <cstdio>  // scotch.h needs FILE

#include <scotch.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace shardscape::placement {

namespace {

using network::Fabric;
using network::Placement;
using network::PlacementDemand;

constexpr SCOTCH_Num kSeed = 1;
constexpr double kLargestWeight = 10'000;  // scaled weights stay so small that their sums fit 32 bits

/// An undirected graph without loops in Scotch's form: each edge is in the lists of both of its ends, with equal
/// weights.
struct Adjacency {
  std::vector<SCOTCH_Num> begin, neighbours, weights;
};

using EdgeWeights = std::map<std::pair<std::int32_t, std::int32_t>, double>;

void add_edge(EdgeWeights& edges, std::int32_t a, std::int32_t b, double weight) {
  if (a == b) return;
  edges[{a, b}] += weight;
  edges[{b, a}] += weight;
}

Adjacency adjacency(const EdgeWeights& edges, std::int32_t vertices) {
  double largest = 0;
  for (const auto& [ends, weight] : edges) largest = std::max(largest, weight);
  Adjacency graph;
  graph.begin.assign(static_cast<std::size_t>(vertices) + 1, 0);
  for (const auto& [ends, weight] : edges) {
    ++graph.begin[static_cast<std::size_t>(ends.first) + 1];
    graph.neighbours.push_back(ends.second);
    const double scaled = std::max(1.0, std::round(weight / largest * kLargestWeight));
    graph.weights.push_back(static_cast<SCOTCH_Num>(scaled));
  }
  for (std::size_t v = 1; v < graph.begin.size(); ++v) graph.begin[v] += graph.begin[v - 1];
  return graph;
}

/// Owns an object of Scotch and releases it; several are released in the reverse order of their creation.
template <class Object, int (*kInit)(Object*), void (*kExit)(Object*)>
class Owned {
 public:
  Owned() : ready_(kInit(&object_) == 0) {}
  ~Owned() {
    if (ready_) kExit(&object_);
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  [[nodiscard]] bool ready() const { return ready_; }
  Object* get() { return &object_; }

 private:
  Object object_;
  bool ready_;
};
using Graph = Owned<SCOTCH_Graph, SCOTCH_graphInit, SCOTCH_graphExit>;
using Arch = Owned<SCOTCH_Arch, SCOTCH_archInit, SCOTCH_archExit>;
using Strategy = Owned<SCOTCH_Strat, SCOTCH_stratInit, SCOTCH_stratExit>;
using Context = Owned<SCOTCH_Context, SCOTCH_contextInit, SCOTCH_contextExit>;

enum class Edges : std::uint8_t { weighted, alike };

/// A graph bound to a context of one thread and fixed random numbers, so that results can be repeated.
struct BoundGraph {
  BoundGraph(const Adjacency& graph, Context& context, Edges edges) {
    const auto vertices = static_cast<SCOTCH_Num>(graph.begin.size() - 1);
    const auto arcs = static_cast<SCOTCH_Num>(graph.neighbours.size());
    ready = plain.ready() && bound.ready() &&
            SCOTCH_graphBuild(plain.get(), 0, vertices, graph.begin.data(), nullptr, nullptr, nullptr, arcs,
                              graph.neighbours.data(),
                              edges == Edges::weighted ? graph.weights.data() : nullptr) == 0 &&
            SCOTCH_contextBindGraph(context.get(), plain.get(), bound.get()) == 0;
  }
  Graph plain, bound;
  bool ready = false;
};

bool prepare(Context& context) {
  if (!context.ready()) return false;
  SCOTCH_randomSeed(kSeed);
  SCOTCH_randomReset();
  const bool done = SCOTCH_contextOptionSetNum(context.get(), SCOTCH_OPTIONNUMDETERMINISTIC, 1) == 0 &&
                    SCOTCH_contextOptionSetNum(context.get(), SCOTCH_OPTIONNUMRANDOMFIXEDSEED, 1) == 0 &&
                    SCOTCH_contextRandomClone(context.get()) == 0 &&
                    SCOTCH_contextThreadSpawn(context.get(), 1, nullptr) == 0;
  SCOTCH_contextRandomSeed(context.get(), kSeed);
  SCOTCH_contextRandomReset(context.get());
  return done;
}

/// Maps each logical rank to a terminal, a rank of the fabric; several may get the same one. Empty where Scotch fails.
std::optional<std::vector<SCOTCH_Num>> map_graph(const Adjacency& traffic, const Adjacency& wires,
                                                 std::int32_t ranks) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  Context context;
  if (!prepare(context)) return std::nullopt;
  BoundGraph source(traffic, context, Edges::weighted), target(wires, context, Edges::alike);
  Arch arch;
  Strategy bipartition, mapping;
  if (!source.ready || !target.ready || !arch.ready() || !bipartition.ready() || !mapping.ready()) {
    return std::nullopt;
  }
  std::vector<SCOTCH_Num> terminals;  // only ranks are terminals: switches carry traffic but hold no rank
  for (std::int32_t rank = 0; rank < ranks; ++rank) terminals.push_back(rank);
  std::vector<SCOTCH_Num> parts(terminals.size(), 0);
  const bool mapped =
      SCOTCH_archBuild(arch.get(), target.bound.get(), ranks, terminals.data(), bipartition.get()) == 0 &&
      SCOTCH_stratGraphMapBuild(mapping.get(), SCOTCH_STRATQUALITY, ranks, 0.0) == 0 &&
      SCOTCH_graphMap(source.bound.get(), arch.get(), mapping.get(), parts.data()) == 0;
  if (!mapped) return std::nullopt;
  return parts;
}

/// The free rank of the fabric with the shortest route from `from`; the lowest of several.
std::int32_t nearest_free(const Fabric& fabric, std::int32_t from, const std::vector<bool>& taken) {
  std::int32_t best = -1;
  std::size_t best_hops = 0;
  std::vector<std::int32_t> path;
  for (std::int32_t rank = 0; rank < fabric.ranks(); ++rank) {
    if (taken[static_cast<std::size_t>(rank)]) continue;
    path.clear();
    fabric.append_route(from, rank, path);
    if (best < 0 || path.size() < best_hops) best = rank, best_hops = path.size();
  }
  return best;
}

Placement one_to_one(const Fabric& fabric, const std::vector<SCOTCH_Num>& parts) {
  Placement placement(parts.size(), -1);
  std::vector<bool> taken(parts.size(), false);
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    const auto part = static_cast<std::size_t>(parts[rank]);
    if (parts[rank] < 0 || part >= parts.size() || taken[part]) continue;
    placement[rank] = static_cast<std::int32_t>(part);
    taken[part] = true;
  }
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    if (placement[rank] >= 0) continue;
    const bool sane = parts[rank] >= 0 && static_cast<std::size_t>(parts[rank]) < parts.size();
    placement[rank] = nearest_free(fabric, sane ? static_cast<std::int32_t>(parts[rank]) : 0, taken);
    taken[static_cast<std::size_t>(placement[rank])] = true;
  }
  return placement;
}

}  // namespace

std::optional<Placement> scotch_placement(const Fabric& fabric, const PlacementDemand& demand) {
  EdgeWeights traffic, wires;
  for (const network::TrafficClass& group : demand) {
    for (const network::RankFlow& flow : group.flows) {
      add_edge(traffic, flow.source, flow.destination, group.bytes);
    }
  }
  for (const network::Link& link : fabric.links()) add_edge(wires, link.source, link.destination, 1);
  if (traffic.empty() || wires.empty()) return std::nullopt;
  const auto parts =
      map_graph(adjacency(traffic, fabric.ranks()), adjacency(wires, fabric.vertices()), fabric.ranks());
  if (!parts) return std::nullopt;
  return one_to_one(fabric, *parts);
}

}  // namespace shardscape::placement
