// Double binary trees, binary tree and chain broadcast, and reduction in switches: all are messages up and
// down a tree, chunk by chunk.
#include <algorithm>
#include <array>
#include <unordered_map>

#include "engine/base/check.h"
#include "engine/network/collectives/collectives.h"

namespace shardscape::network {

namespace {

constexpr std::size_t kSwitch = static_cast<std::size_t>(-1);

/// A tree with its connections. Edges without bytes carry nothing.
struct CarrierTree {
  struct Node {
    std::int32_t parent = -1;
    std::size_t member = kSwitch;
    std::int32_t up = kNone;  ///< number of the connection to the parent
    std::int32_t down = kNone;
    double up_bytes = 0;  ///< bytes of one chunk
    double down_bytes = 0;
  };
  std::vector<Node> nodes;
  std::size_t root = 0;
};

/// Adds traffic along a tree, chunk by chunk: a node sends up what it has once its children's parts are there, the root
/// turns the direction, and a node passes down what it receives.
class TreeTraffic {
 public:
  TreeTraffic(GroupTraffic& group, const CarrierTree& tree, std::int32_t chunks)
      : group_(group), builder_(group.builder), tree_(tree), chunks_(static_cast<std::size_t>(chunks)) {
    children_.resize(tree.nodes.size());
    for (std::size_t v = 0; v < tree.nodes.size(); ++v) {
      if (tree.nodes[v].parent >= 0) children_[static_cast<std::size_t>(tree.nodes[v].parent)].push_back(v);
    }
  }

  void add() {
    up_.resize(tree_.nodes.size());
    down_.resize(tree_.nodes.size());
    for (std::size_t v = 0; v < tree_.nodes.size(); ++v) add_gates(v);
    for (std::size_t chunk = 0; chunk < chunks_; ++chunk) {
      for (std::size_t v = 0; v < tree_.nodes.size(); ++v) send(v, chunk);
    }
  }

 private:
  using Gates = std::vector<std::int32_t>;  // one gate per chunk, or a single one for all chunks

  [[nodiscard]] bool hears_from_below(std::size_t v) const {
    return std::ranges::any_of(children_[v], [&](std::size_t c) { return tree_.nodes[c].up_bytes > 0; });
  }
  [[nodiscard]] bool passes_down(std::size_t v) const {
    return std::ranges::any_of(children_[v], [&](std::size_t c) { return tree_.nodes[c].down_bytes > 0; });
  }

  /// Makes gates in a row: the first waits for the member's entry, each further one for the gate before.
  Gates make_gates(std::size_t count, std::int32_t entry) {
    Gates gates;
    for (std::size_t c = 0; c < count; ++c) {
      gates.push_back(builder_.add_gate(group_.start));
      if (entry != kNone) builder_.opens(c == 0 ? entry : gates[c - 1], gates[c]);
    }
    return gates;
  }

  void add_gates(std::size_t v) {
    const CarrierTree::Node& node = tree_.nodes[v];
    const bool root = v == tree_.root;
    const bool hears = hears_from_below(v);
    const std::int32_t entry = node.member == kSwitch ? kNone : group_.entry[node.member];
    const std::int32_t exit = node.member == kSwitch ? kNone : group_.exit[node.member];
    if (root || hears || node.up_bytes > 0) up_[v] = make_gates(hears ? chunks_ : 1, entry);
    if (root) {
      down_[v] = up_[v];
    } else if (passes_down(v)) {
      down_[v] = make_gates(chunks_, up_[v].empty() ? entry : kNone);
    }
    // Chunks arrive in order, so a member that has the last one has all. For leaves, send() sees to it.
    if (root && hears) builder_.opens(up_[v].back(), exit);
    if (!root && !down_[v].empty()) builder_.opens(down_[v].back(), exit);
  }

  static std::int32_t of_chunk(const Gates& gates, std::size_t chunk) {
    return gates.empty() ? kNone : gates[std::min(chunk, gates.size() - 1)];
  }

  /// Sends a chunk over the edge between node v and its parent.
  void send(std::size_t v, std::size_t chunk) {
    const CarrierTree::Node& node = tree_.nodes[v];
    if (node.parent < 0) return;
    const auto parent = static_cast<std::size_t>(node.parent);
    if (node.up_bytes > 0) {
      builder_.send(of_chunk(up_[v], chunk), node.up, node.up_bytes, of_chunk(up_[parent], chunk));
    }
    if (node.down_bytes > 0) {
      const bool leaf = down_[v].empty();
      const bool last = chunk + 1 == chunks_;
      const std::int32_t exit = leaf && last && node.member != kSwitch ? group_.exit[node.member] : kNone;
      builder_.send(of_chunk(down_[parent], chunk), node.down, node.down_bytes,
                    leaf ? exit : down_[v][chunk]);
    }
  }

  GroupTraffic& group_;
  TrafficBuilder& builder_;
  const CarrierTree& tree_;
  std::size_t chunks_;
  std::vector<std::vector<std::size_t>> children_;
  std::vector<Gates> up_, down_;
};

/// Parents (-1: root) of a binary tree over 0 .. n-1, numbered in order: the root is 0, with one child; the
/// parent of a node whose lowest bit is k has lowest bit k+1 (one beyond the end: the node without bit k).
/// Odd nodes are leaves.
std::vector<std::int32_t> in_order_tree(std::uint32_t n) {
  std::vector<std::int32_t> parents = {-1};
  for (std::uint32_t node = 1; node < n; ++node) {
    const std::uint32_t bit = node & (~node + 1);
    const std::uint32_t up = (node ^ bit) | (bit << 1);
    parents.push_back(static_cast<std::int32_t>(up < n ? up : node ^ bit));
  }
  return parents;
}

/// Makes a tree over members; `up`, `down`: bytes of a chunk over each edge.
CarrierTree tree_of_members(GroupTraffic& group, const std::vector<std::int32_t>& parents, double up,
                            double down) {
  CarrierTree tree;
  for (std::size_t v = 0; v < parents.size(); ++v) {
    CarrierTree::Node node{parents[v], v, kNone, kNone, 0, 0};
    if (parents[v] < 0) {
      tree.root = v;
    } else {
      const std::int32_t rank = group.ranks[v], parent = group.ranks[static_cast<std::size_t>(parents[v])];
      node.up_bytes = up;
      node.down_bytes = down;
      if (up > 0) node.up = group.builder.connection(rank, parent);
      if (down > 0) node.down = group.builder.connection(parent, rank);
    }
    tree.nodes.push_back(node);
  }
  return tree;
}

/// The two trees over `n` nodes: the in-order tree, and the same mirrored (n even) or shifted by one (n odd),
/// so that leaves become inner nodes.
std::array<std::vector<std::int32_t>, 2> double_tree(std::size_t n) {
  const std::vector<std::int32_t> first = in_order_tree(static_cast<std::uint32_t>(n));
  const auto place = [&](std::size_t v) { return n % 2 == 0 ? n - 1 - v : (v + 1) % n; };
  std::vector<std::int32_t> second(n);
  for (std::size_t v = 0; v < n; ++v) {
    second[place(v)] =
        first[v] < 0 ? -1 : static_cast<std::int32_t>(place(static_cast<std::size_t>(first[v])));
  }
  return {first, second};
}

/// Parents of a tree with member 0 at the top, above a tree over the other members.
std::vector<std::int32_t> below_first(const std::vector<std::int32_t>& parents) {
  std::vector<std::int32_t> all = {-1};
  for (const std::int32_t parent : parents) all.push_back(parent + 1);
  return all;
}

}  // namespace

void add_double_binary_tree(GroupTraffic& group, const Pattern& pattern) {
  const bool reduces = pattern.operation == Operation::all_reduce;
  const double part = pattern.bytes / 2 / pattern.chunks;
  for (const std::vector<std::int32_t>& parents : double_tree(group.size() - (reduces ? 0 : 1))) {
    const CarrierTree tree = reduces ? tree_of_members(group, parents, part, part)
                                     : tree_of_members(group, below_first(parents), 0, part);
    TreeTraffic(group, tree, pattern.chunks).add();
  }
}

void add_binary_tree(GroupTraffic& group, const Pattern& pattern) {
  std::vector<std::int32_t> parents = {-1};
  for (std::size_t v = 1; v < group.size(); ++v) parents.push_back(static_cast<std::int32_t>((v - 1) / 2));
  const CarrierTree tree = tree_of_members(group, parents, 0, pattern.bytes / pattern.chunks);
  TreeTraffic(group, tree, pattern.chunks).add();
}

void add_chain_broadcast(GroupTraffic& group, const Pattern& pattern) {
  std::vector<std::int32_t> parents;
  for (std::size_t v = 0; v < group.size(); ++v) parents.push_back(static_cast<std::int32_t>(v) - 1);
  const CarrierTree tree = tree_of_members(group, parents, 0, pattern.bytes / pattern.chunks);
  TreeTraffic(group, tree, pattern.chunks).add();
}

void add_direct_broadcast(GroupTraffic& group, const Pattern& pattern) {
  std::vector<std::int32_t> parents(group.size(), 0);
  parents[0] = -1;
  const CarrierTree tree = tree_of_members(group, parents, 0, pattern.bytes);
  TreeTraffic(group, tree, 1).add();
}

void add_in_network(GroupTraffic& group, const Pattern& pattern) {
  SwitchTree switches;
  const bool found = find_switch_tree(group.builder.fabric(), group.ranks, switches);
  SHARDSCAPE_CHECK(found, group.size());
  const auto n = static_cast<double>(group.size());
  const double part = pattern.bytes / pattern.chunks;
  CarrierTree tree;
  for (const SwitchTree::Node& node : switches.nodes) {
    const auto below = static_cast<double>(node.below);
    CarrierTree::Node carrier{
        node.parent, node.member < 0 ? kSwitch : static_cast<std::size_t>(node.member), kNone, kNone, 0, 0};
    if (pattern.operation == Operation::all_reduce) carrier.up_bytes = carrier.down_bytes = part;
    if (pattern.operation == Operation::reduce_scatter)
      carrier.up_bytes = part, carrier.down_bytes = part * below / n;
    if (pattern.operation == Operation::all_gather) {
      carrier.up_bytes = part * below / n;
      carrier.down_bytes = part * (n - below) / n;
    }
    if (pattern.operation == Operation::broadcast && node.member != 0) carrier.down_bytes = part;
    tree.nodes.push_back(carrier);
  }
  if (pattern.operation == Operation::broadcast) {  // up goes only what the root of the broadcast sends
    for (std::size_t v = tree.nodes.size(); v-- > 1;) {
      const bool source = tree.nodes[v].member == 0;
      if (!source && tree.nodes[v].up_bytes <= 0) continue;
      tree.nodes[v].up_bytes = part;
      if (switches.nodes[v].below == 1) tree.nodes[v].down_bytes = 0;
      const auto parent = static_cast<std::size_t>(tree.nodes[v].parent);
      if (parent != 0) tree.nodes[parent].up_bytes = part;
    }
  }
  for (std::size_t v = 1; v < tree.nodes.size(); ++v) {
    CarrierTree::Node& node = tree.nodes[v];
    if (node.up_bytes > 0) node.up = group.builder.connection_over(switches.nodes[v].up);
    if (node.down_bytes > 0) node.down = group.builder.connection_over(switches.nodes[v].down);
  }
  TreeTraffic(group, tree, pattern.chunks).add();
}

namespace {

/// The dimension of the links between the members, and the vertex at which the longest route of the first member turns
/// down; -1 where routes leave the dimension.
std::int32_t top_switch(const Fabric& fabric, std::span<const std::int32_t> ranks, std::int32_t& dimension) {
  std::vector<std::int32_t> path, longest;
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    path.clear();
    fabric.append_route(ranks[0], ranks[i], path);
    for (const std::int32_t id : path) {
      const Link& link = fabric.links()[static_cast<std::size_t>(id)];
      if (dimension < 0) dimension = link.dimension;
      if (link.dimension != dimension) return -1;
    }
    if (path.size() > longest.size()) longest = path;
  }
  if (longest.size() < 2) return -1;
  const std::int32_t vertex =
      fabric.links()[static_cast<std::size_t>(longest[longest.size() / 2 - 1])].destination;
  return vertex >= fabric.ranks() ? vertex : -1;
}

/// For each vertex, the link by which a breadth-first search from the top reached it. The search uses links of the
/// dimension that live in both directions, and does not pass through ranks.
std::unordered_map<std::int32_t, std::int32_t> links_down(const FaultyFabric& faulty, std::int32_t top,
                                                          std::int32_t dimension) {
  const Fabric& fabric = faulty.fabric();
  std::unordered_map<std::int32_t, std::vector<std::int32_t>> out;
  for (std::size_t id = 0; id < fabric.links().size(); ++id) {
    const Link& link = fabric.links()[id];
    const auto number = static_cast<std::int32_t>(id);
    if (link.dimension != dimension || link.source < fabric.ranks() || faulty.dead(number)) continue;
    const std::int32_t back = fabric.reverse_of(number);
    if (back >= 0 && !faulty.dead(back)) out[link.source].push_back(number);
  }
  std::unordered_map<std::int32_t, std::int32_t> reached = {{top, -1}};
  std::vector<std::int32_t> queue = {top};
  for (std::size_t next = 0; next < queue.size(); ++next) {
    const auto links = out.find(queue[next]);
    if (links == out.end()) continue;
    for (const std::int32_t id : links->second) {
      const std::int32_t vertex = fabric.links()[static_cast<std::size_t>(id)].destination;
      if (reached.emplace(vertex, id).second) queue.push_back(vertex);
    }
  }
  return reached;
}

/// Makes the tree of a group whose members all hang on one switch by one link each, where nothing is dead. Returns
/// false where they do not.
bool find_star(const Fabric& fabric, std::span<const std::int32_t> ranks, SwitchTree& tree) {
  std::vector<std::int32_t> path;
  tree.nodes.assign(1, {-1, -1, -1, -1, static_cast<std::int32_t>(ranks.size())});
  std::int32_t top = -1;
  for (std::size_t member = 0; member < ranks.size(); ++member) {
    path.clear();
    fabric.append_route(ranks[member], ranks[member == 0 ? 1 : 0], path);
    if (path.size() != 2) return false;
    const std::int32_t up = path.front(), down = fabric.reverse_of(up);
    const std::int32_t above = fabric.links()[static_cast<std::size_t>(up)].destination;
    if (down < 0 || (top >= 0 && above != top)) return false;
    top = above;
    tree.nodes.push_back({0, static_cast<std::int32_t>(member), up, down, 1});
  }
  return true;
}

}  // namespace

bool find_switch_tree(const FaultyFabric& faulty, std::span<const std::int32_t> ranks, SwitchTree& tree) {
  const Fabric& fabric = faulty.fabric();
  std::int32_t dimension = -1;
  tree.nodes.clear();
  const std::int32_t top = top_switch(fabric, ranks, dimension);
  if (top < 0 || !fabric.spec().dimensions[static_cast<std::size_t>(dimension)].in_network_reduction) {
    return false;
  }
  if (!faulty.cut() && find_star(fabric, ranks, tree)) return true;
  tree.nodes.clear();
  const std::unordered_map<std::int32_t, std::int32_t> reached = links_down(faulty, top, dimension);
  std::unordered_map<std::int32_t, std::int32_t> node_of = {{top, 0}};
  tree.nodes.push_back({});
  for (std::size_t member = 0; member < ranks.size(); ++member) {
    std::vector<std::int32_t> branch;  // links from the member up to what is already in the tree
    for (std::int32_t vertex = ranks[member]; !node_of.contains(vertex);) {
      const auto link = reached.find(vertex);
      if (link == reached.end()) return false;
      branch.push_back(link->second);
      vertex = fabric.links()[static_cast<std::size_t>(link->second)].source;
    }
    for (auto link = branch.rbegin(); link != branch.rend(); ++link) {
      const Link& wire = fabric.links()[static_cast<std::size_t>(*link)];
      node_of[wire.destination] = static_cast<std::int32_t>(tree.nodes.size());
      tree.nodes.push_back({node_of[wire.source], -1, fabric.reverse_of(*link), *link, 0});
    }
    tree.nodes.back().member = static_cast<std::int32_t>(member);
  }
  for (std::size_t v = tree.nodes.size(); v-- > 0;) {
    SwitchTree::Node& node = tree.nodes[v];
    if (node.member >= 0) node.below = 1;
    if (node.parent >= 0) tree.nodes[static_cast<std::size_t>(node.parent)].below += node.below;
  }
  return true;
}

}  // namespace shardscape::network
