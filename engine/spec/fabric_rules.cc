// FabricSpec::validate(): applies Rules to each dimension (ranges of its numbers, its shape, then what its kind asks
// for), then checks names and bounds the ranks and links of the whole, so that a fabric that passes can be built.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/spec/fabric_numbers.h"

namespace shardscape {

namespace {

constexpr std::int64_t kMaxRanks = std::int64_t{1} << 30;
constexpr double kMaxLinks = 1 << 25;
constexpr std::int64_t kMaxCustomVertices = 4096;
constexpr double kMaxRadix = 1 << 16;

std::string kind_of(const DimensionSpec& d) { return std::string(name_of(d.kind)); }

/// A direction of search: from vertex 0 to the others, or from them to it.
enum class Way : std::uint8_t { out, back };

/// Marks the vertices that a path in this direction joins with vertex 0.
std::vector<char> reachable(const CustomSpec& custom, std::int64_t vertices, Way way) {
  const bool backwards = way == Way::back;
  std::vector<std::vector<std::int64_t>> next(static_cast<std::size_t>(vertices));
  const auto connect = [&](std::int64_t a, std::int64_t b) {
    next[static_cast<std::size_t>(backwards ? b : a)].push_back(backwards ? a : b);
  };
  for (const CustomSpec::Link& link : custom.links) {
    connect(link.a, link.b);
    if (!link.one_way) connect(link.b, link.a);
  }
  std::vector<char> seen(static_cast<std::size_t>(vertices), 0);
  std::vector<std::int64_t> open{0};
  seen[0] = 1;
  while (!open.empty()) {
    const std::int64_t at = open.back();
    open.pop_back();
    for (const std::int64_t to : next[static_cast<std::size_t>(at)]) {
      if (std::exchange(seen[static_cast<std::size_t>(to)], char{1}) == 0) open.push_back(to);
    }
  }
  return seen;
}

/// The rules of one dimension; `inner` is the number of ranks of a node, the product of the sizes of all inner
/// dimensions.
class Rules {
 public:
  Rules(const DimensionSpec& dimension, std::size_t index, bool outermost, std::int64_t inner,
        Problems& problems)
      : d_(dimension),
        path_(fmt::format("dimensions[{}].", index)),
        outermost_(outermost),
        inner_(inner),
        problems_(problems) {}

  void check() {
    require(!d_.name.empty(), "name", "every dimension needs a name");
    check_shape();
    check_numbers();
    check_basis();
    check_ports();
    if (d_.kind == DimensionKind::fat_tree) check_fat_tree();
    if (d_.kind == DimensionKind::dragonfly) check_dragonfly();
    if (d_.kind == DimensionKind::custom && shape_good_) check_custom();
    if (d_.kind == DimensionKind::hypercube && shape_good_ && !open()) {
      require(std::has_single_bit(static_cast<std::uint64_t>(d_.size())), "shape",
              fmt::format("the size of a hypercube is a power of two, not {}", d_.size()));
    }
  }

 private:
  [[nodiscard]] bool open() const { return d_.shape.size() == 1 && d_.shape[0] == FabricTemplate::kFill; }

  bool require(bool ok, const std::string& field, const std::string& message) {
    problems_.require(ok, path_ + field, message);
    return ok;
  }

  /// The range of every number that the kind has; those of other kinds, and settings that are no numbers, must be left
  /// as they are. Numbers of links are not asked for: nobody reads them there.
  void check_numbers() {
    const DimensionSpec unset;
    for (const DimensionNumber& number : dimension_numbers()) {
      const std::string why = number.no_effect(d_), field(number.key(d_));
      if (why.empty()) {
        const std::size_t before = problems_.list().size();
        number.check(problems_, d_, path_ + field);
        numbers_good_ &= number.rate() || problems_.list().size() == before;
      } else if (!(number.rate() && d_.kind == DimensionKind::custom)) {
        require(number.same(d_, unset), field, why);
      }
    }
    if (d_.in_network_reduction) no_problem(no_effect(kSwitches, d_), "in_network_reduction");
    if (d_.fat_tree.up_routing != unset.fat_tree.up_routing)
      no_problem(no_effect(kTrees, d_, true), "up_routing");
  }
  void no_problem(const std::string& why, const std::string& field) { require(why.empty(), field, why); }

  void check_shape() {
    shape_good_ = require(!d_.shape.empty(), "shape", "needs at least one extent");
    shape_good_ &= require(d_.shaped() || d_.shape.size() <= 1, "shape",
                           "only mesh, torus and king_mesh take several extents");
    for (const std::int64_t extent : d_.shape) {
      const bool fill = extent == FabricTemplate::kFill && outermost_ && d_.shape.size() == 1 &&
                        d_.kind != DimensionKind::custom;
      shape_good_ &= require((extent >= 1 && extent <= kMaxRanks) || fill, "shape",
                             "extents are from 1 to 2^30 (`fill` is for the outermost dimension only, and "
                             "not for a custom one)");
    }
  }

  void check_basis() {
    if (d_.basis == BandwidthBasis::link) return;
    require(
        open() || !shape_good_ || d_.links_per_rank().has_value(), "bandwidth_per_gpu",
        "the ranks of a " + kind_of(d_) + " differ in their number of links; give the bandwidth per link");
  }

  void check_ports() {
    check_trays();
    ports_good_ = numbers_good_;
    if (!numbers_good_ || !kSwitches.has(d_.kind)) return;
    if (d_.nics_per_node) {
      const std::int64_t nics = *d_.nics_per_node;
      ports_good_ =
          require(nics % inner_ == 0 || inner_ % nics == 0, "nics_per_node",
                  fmt::format("is {}, which neither divides the {} GPUs of a node nor is a multiple of them",
                              nics, inner_));
    }
    if (!d_.rails || !kTrees.has(d_.kind) || !ports_good_) return;
    const std::int64_t adapters = std::min(d_.nics_per_node.value_or(inner_), inner_);
    ports_good_ =
        require(adapters % *d_.rails == 0, "rails",
                fmt::format("is {}, which does not divide the {} adapters of a node", *d_.rails, adapters));
  }

  void check_trays() {
    if (!d_.gpus_per_tray || d_.kind != DimensionKind::switched) return;
    if (!require(inner_ == 1 && !outermost_, "gpus_per_tray", "is for the innermost of several dimensions"))
      return;
    const std::int64_t tray = *d_.gpus_per_tray;
    if (!shape_good_ || !numbers_good_) return;
    require(d_.size() % tray == 0, "gpus_per_tray",
            fmt::format("is {}, which does not divide the {} GPUs of the switch", tray, d_.size()));
  }

  void check_fat_tree() {
    const FatTreeSpec& t = d_.fat_tree;
    if (!numbers_good_) return;
    bool good = true;
    if (t.levels > 2) {
      good &= require(t.radix % 2 == 0, "radix",
                      "must be even: switches between leaves and top have as many ports up as down");
    }
    if (good && !t.leaf_ports_down()) good = require(false, "oversubscription", whole_ports_advice(t));
    if (good && ports_good_ && shape_good_ && !open()) check_tree_size();
  }

  /// Advice for a ratio that gives no whole ports: the smallest switch that it fits, and the nearest ratio on this one.
  static std::string whole_ports_advice(const FatTreeSpec& t) {
    std::string advice = fmt::format("is {:g}, which gives no whole ports down and up on a radix of {}",
                                     t.oversubscription, t.radix);
    for (std::int64_t up = 1; static_cast<double>(up) * (1 + t.oversubscription) <= kMaxRadix; ++up) {
      const std::optional<std::int64_t> down = t.whole_ports_down(up);
      if (!down) continue;
      advice += fmt::format("; the next radix that does is {}", up + *down);
      break;
    }
    const auto [down, up] = nearest_ports(t);
    return advice + fmt::format("; the nearest on {} ports is {:.12g}, {} down and {} up", t.radix,
                                static_cast<double>(down) / static_cast<double>(up), down, up);
  }

  /// The numbers of ports down and up whose ratio comes nearest to the oversubscription.
  static std::pair<std::int64_t, std::int64_t> nearest_ports(const FatTreeSpec& t) {
    const double exact = static_cast<double>(t.radix) / (1 + t.oversubscription);
    const auto error = [&](std::pair<std::int64_t, std::int64_t> ports) {
      return std::abs(static_cast<double>(ports.first) / static_cast<double>(ports.second) -
                      t.oversubscription);
    };
    const auto with = [&](double ports_up) {
      const auto up = std::clamp<std::int64_t>(std::llround(ports_up), 1, t.radix - 1);
      const double most = static_cast<double>(t.radix - up);
      const double down = std::clamp(std::round(t.oversubscription * static_cast<double>(up)), 1.0, most);
      return std::pair(static_cast<std::int64_t>(down), up);
    };
    const auto fewer = with(std::floor(exact)), more = with(std::ceil(exact));
    return error(fewer) < error(more) ? fewer : more;
  }

  void check_tree_size() {
    const FatTreeSpec& t = d_.fat_tree;
    const NodePorts ports = NodePorts::of(d_, inner_);
    const std::int64_t endpoints = d_.size() * (inner_ / ports.sharing / ports.rails);
    const std::int64_t capacity = t.capacity(t.levels);
    require(endpoints <= capacity, "shape",
            fmt::format("{} endpoints are more than the {} that {} levels of switches with {} ports hold",
                        endpoints, capacity, t.levels, t.radix));
    const std::int64_t needed = t.levels_for(endpoints);
    require(endpoints > capacity || needed == t.levels, "levels",
            fmt::format("is {}, but {} hold all {} endpoints; the others would have no effect", t.levels,
                        needed, endpoints));
  }

  void check_dragonfly() {
    const DragonflySpec& f = d_.dragonfly;
    if (open()) require(!f.groups, "groups", "has no effect: `size: fill` decides how many groups there are");
    if (!numbers_good_ || !shape_good_ || open()) return;
    const std::int64_t hosts = f.routers_per_group * f.hosts_per_router;
    const std::int64_t groups = f.groups.value_or(std::max<std::int64_t>(1, d_.size() / hosts));
    require(d_.size() % hosts == 0 && d_.size() / hosts == groups, "shape",
            fmt::format("is {}, but {}{} routers with {} hosts each", d_.size(),
                        f.groups ? fmt::format("{} groups of ", groups) : "groups have ", f.routers_per_group,
                        f.hosts_per_router));
    const bool alone = groups == 1;
    require(!alone || !f.global_bandwidth, "global_bandwidth", "has no effect in a dragonfly of one group");
    require(!alone || !f.global_latency, "global_latency", "has no effect in a dragonfly of one group");
  }

  void check_custom() {
    const CustomSpec& c = d_.custom;
    const std::int64_t ranks = d_.size();
    if (!require(ranks >= 2, "shape", "a custom graph joins at least two ranks")) return;
    if (!numbers_good_) return;
    const std::int64_t vertices = ranks + c.switches;
    if (!require(vertices <= kMaxCustomVertices, "shape", "a custom graph has at most 4096 vertices")) return;
    bool good = true;
    std::set<std::pair<std::int64_t, std::int64_t>> wired;
    for (std::size_t i = 0; i < c.links.size(); ++i)
      good &= check_custom_link(c.links[i], i, vertices, wired);
    if (good) check_connected(vertices);
  }

  bool check_custom_link(const CustomSpec::Link& link, std::size_t index, std::int64_t vertices,
                         std::set<std::pair<std::int64_t, std::int64_t>>& wired) {
    const std::string field = fmt::format("links[{}]", index);
    require_ranges(problems_, link, custom_link_numbers(), path_ + field + '.');
    for (const std::int64_t end : {link.a, link.b}) {
      if (end >= 0 && end < vertices) continue;
      return require(false, field,
                     fmt::format("there is no vertex {}; they are 0 .. {} ({} ranks, then {} switches)", end,
                                 vertices - 1, d_.size(), d_.custom.switches));
    }
    if (!require(link.a != link.b, field, fmt::format("links vertex {} to itself", link.a))) return false;
    bool fresh = wired.insert({link.a, link.b}).second;
    if (!link.one_way) fresh = wired.insert({link.b, link.a}).second && fresh;
    return require(
        fresh, field,
        fmt::format("{} and {} are linked already and routes use one link; give it the sum of the bandwidths",
                    link.a, link.b));
  }

  void check_connected(std::int64_t vertices) {
    const std::vector<char> out = reachable(d_.custom, vertices, Way::out);
    const std::vector<char> back = reachable(d_.custom, vertices, Way::back);
    std::string lost;
    std::int64_t count = 0;
    for (std::size_t v = 0; v < out.size(); ++v) {
      if (out[v] != 0 && back[v] != 0) continue;
      if (++count <= 8) lost += fmt::format("{}{}", lost.empty() ? "" : ", ", v);
    }
    if (count > 8) lost += fmt::format(", ... ({} in all)", count);
    require(count == 0, "links",
            "the graph is not connected: no way to vertex " + lost + " from vertex 0 and back");
  }

  const DimensionSpec& d_;
  std::string path_;
  bool outermost_;
  std::int64_t inner_;
  Problems& problems_;
  bool shape_good_ = true;
  bool ports_good_ = true;
  bool numbers_good_ = true;  ///< whether the numbers are good that say which links there are
};

/// Number of directed links of one line (rough for trees and dragonflies), to refuse fabrics that memory cannot hold.
double links_per_line(const DimensionSpec& d) {
  const auto n = static_cast<double>(d.size());
  switch (d.kind) {
    case DimensionKind::fully_connected:
      return n * (n - 1);
    case DimensionKind::king_mesh: {
      double moves = 1;  // (rank, move) pairs, counting the move that stays in place
      for (const std::int64_t extent : d.shape) moves *= 3 * static_cast<double>(extent) - 2;
      return moves - n;
    }
    case DimensionKind::hypercube:
      return n * std::log2(n);
    case DimensionKind::fat_tree:
      return 2 * n * static_cast<double>(d.fat_tree.levels) + 2 * static_cast<double>(d.fat_tree.radix);
    case DimensionKind::dragonfly: {
      const auto routers = static_cast<double>(d.dragonfly.routers_per_group);
      const double groups = n / (routers * static_cast<double>(d.dragonfly.hosts_per_router));
      return 2 * n + groups * routers * (routers - 1) + groups * (groups - 1);
    }
    case DimensionKind::custom:
      return 2 * static_cast<double>(d.custom.links.size());
    default:
      return 2 * n * static_cast<double>(d.shape.size());
  }
}

bool too_many_links(const FabricSpec& fabric) {
  const auto ranks = static_cast<double>(fabric.size());
  double links = 0;
  for (const DimensionSpec& d : fabric.dimensions) {
    links += ranks / static_cast<double>(d.size()) * links_per_line(d);
  }
  return links > kMaxLinks;
}

std::int64_t closed_size(const FabricSpec& fabric) {
  FabricSpec closed = fabric;
  for (DimensionSpec& d : closed.dimensions) {
    std::ranges::replace(d.shape, FabricTemplate::kFill, std::int64_t{1});
  }
  return closed.size();
}

}  // namespace

Problems FabricSpec::validate() const {
  Problems problems;
  std::set<std::string> names;
  std::int64_t inner = 1;
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    const DimensionSpec& dimension = dimensions[i];
    Rules(dimension, i, i + 1 == dimensions.size(), inner, problems).check();
    problems.require(names.insert(dimension.name).second, fmt::format("dimensions[{}].name", i),
                     "'" + dimension.name + "' names an earlier dimension, too");
    inner =
        std::max<std::int64_t>(1, inner) * std::max<std::int64_t>(1, std::min(dimension.size(), kMaxRanks));
    if (inner > kMaxRanks) break;
  }
  problems.require(!dimensions.empty(), "dimensions", "a fabric has at least one dimension");
  if (closed_size(*this) > kMaxRanks) {
    problems.add("dimensions", "more than 2^30 ranks");
  } else if (problems.empty() && size() > 0) {
    problems.require(!too_many_links(*this), "dimensions",
                     "more than 2^25 links, which memory would not hold");
  }
  return problems;
}

}  // namespace shardscape
