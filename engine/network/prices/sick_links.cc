// Finds which groups sick links touch, and what that costs them: splits an operation's groups into parts that share no
// links, prices the touched parts anew on the sick network, and falls back to all groups at once where parts do not
// decide.
#include "engine/network/prices/sick_links.h"

#include <algorithm>
#include <limits>

#include "engine/base/check.h"
#include "engine/network/collectives/traffic_builder.h"
#include "engine/network/groups/components.h"

namespace shardscape::network {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// Largest product of links and groups up to which an operation is split into parts: splitting looks at every link for
/// every group.
constexpr double kMostLinksToSplit = 1 << 26;

SiblingGroups chosen(const SiblingGroups& groups, std::span<const std::size_t> which) {
  SiblingGroups result;
  result.size = groups.size;
  for (const std::size_t g : which) {
    const std::span<const std::int32_t> group = groups.group(g);
    result.ranks.insert(result.ranks.end(), group.begin(), group.end());
  }
  return result;
}

}  // namespace

void SickLinks::set_faults(const std::vector<LinkFault>& faults) {
  cut_.reset();
  if (faults.empty() && !any()) return;
  faults_ = faults;
  now_ = nullptr;
  if (faults.empty()) return;
  if (curves_ > kMostSickCurves) {
    known_.forget();
    curves_ = 0;
  }
  now_ = &known_.get(faults_, [&] {
    ++curves_;
    return Known{++epochs_, {}, {}, {}, {}};
  });
}

/// The network with the current faults; made when first needed.
PricedNetwork& SickLinks::network() {
  if (!network_) {
    network_ = std::make_unique<PricedNetwork>(healthy_.setup().fabric, healthy_.setup().communication);
    maker_ = std::make_unique<CurveMaker>(*network_);
  }
  if (network_epoch_ != epoch()) {
    network_->set_faults({faults_, {}});
    network_epoch_ = epoch();
  }
  return *network_;
}

CurveMaker& SickLinks::maker() {
  network();
  return *maker_;
}

bool SickLinks::touch(const LinkSet& links) const {
  return std::ranges::any_of(faults_, [&](const LinkFault& fault) { return links.contains(fault.link); });
}

bool SickLinks::gone(const LinkFault& fault) const {
  const auto link = static_cast<std::size_t>(fault.link);
  return fault.removed && healthy_.setup().fabric.links()[link].strands == 1;
}

bool SickLinks::detours() const {
  return std::ranges::any_of(faults_, [&](const LinkFault& fault) { return gone(fault); });
}

bool SickLinks::detours(const LinkSet& links) const {
  return std::ranges::any_of(
      faults_, [&](const LinkFault& fault) { return links.contains(fault.link) && gone(fault); });
}

bool SickLinks::detours(const OperationCosts& costs, KnownWay& way) const {
  return detours() && detours(healthy_.links_of(costs, way));
}

// ---- slices ----

/// The links that the groups of each slice use, including those of detours.
SliceLinks SickLinks::slice_links(const OperationCosts& costs, KnownWay& way, RankGroup::Level axis) {
  std::vector<LinkSet> links = healthy_.links_by_slice(costs, way, axis);
  for (std::int32_t i = 0; detours(costs, way) && i < axis.extent; ++i) {
    const SiblingGroups groups = healthy_.siblings(costs, {axis, i});
    const CostCurve sick = curve_of(maker(), costs.op, way, groups, healthy_.setup().fabric);
    if (!sick.cut_off()) links[static_cast<std::size_t>(i)].insert_all(sick.links());
  }
  return SliceLinks(std::move(links));
}

/// The same links, found from the messages instead of from formulas.
SliceLinks SickLinks::slice_links_plainly(const OperationCosts& costs, const KnownWay& way,
                                          RankGroup::Level axis) {
  std::vector<LinkSet> links(static_cast<std::size_t>(axis.extent));
  for (std::int32_t i = 0; i < axis.extent; ++i) {
    const Pattern pattern = pattern_of(costs.op, way, healthy_.siblings(costs, {axis, i}), 1);
    for (PricedNetwork* priced : {&healthy_.network(), &network()}) {
      if (!priced->has_switches_for(pattern)) continue;
      const auto built = build_traffic({pattern}, priced->routes());
      if (!built) continue;
      for (const std::int32_t link : built->traffic.path_links)
        links[static_cast<std::size_t>(i)].insert(link);
    }
  }
  return SliceLinks(std::move(links));
}

const LinkSet& SickLinks::links_minded(const OperationCosts& costs, KnownWay& way, const Slice& slice) {
  if (slice.everything()) return healthy_.links_of(costs, way);
  const auto made = [&] { return slice_links(costs, way, slice.axis); };
  Memo<SlicesKey, SliceLinks>& known = detours(costs, way) ? now_->slices : slices_;
  return known.get({way.number, slice.axis}, made).met_by(slice.index);
}

bool SickLinks::slow(const OperationCosts& costs, KnownWay& way, const Slice& slice) {
  if (healthy_.plain()) {
    return slice.everything() || touch(slice_links_plainly(costs, way, slice.axis).met_by(slice.index));
  }
  if (!touch(healthy_.links_of(costs, way))) return false;
  return slice.everything() || touch(links_minded(costs, way, slice));
}

// ---- times ----

double SickLinks::at(CostCurve& curve, double bytes) {
  return curve.needs_no_simulation() ? healthy_.at(curve, bytes)
                                     : curve.at(bytes, network(), healthy_.setup().tolerance);
}

double SickLinks::seconds(const OperationCosts& costs, KnownWay& way, double bytes) {
  if (healthy_.plain()) return healthy_.simulated(network(), costs, way, bytes).value_or(kNever);
  const auto [known, fresh] = prices_.at({epoch(), way.number, bytes});
  if (!fresh) return known;
  if (const auto time = part_by_part(costs, way, bytes)) return known = *time;
  CostCurve& curve = sick_curve(costs, way);
  return known = curve.cut_off() ? kNever : at(curve, bytes);
}

/// The curve of all groups under the current faults.
CostCurve& SickLinks::sick_curve(const OperationCosts& costs, const KnownWay& way) {
  return now_->curves.get(way.number, [&] {
    ++curves_;
    return curve_of(maker(), costs.op, way, healthy_.siblings(costs), healthy_.setup().fabric);
  });
}

/// Of messages between all pairs: the share of what faults of these links add to a call that is left of it in a row of
/// calls. A member whose link out is sick makes the others late and is not late itself, one whose link in is sick is
/// late and makes nobody late; so every other call is as on healthy links, one of three where one member has each. None
/// is where a member has both, two have the same, or a link between switches is sick.
double SickLinks::share_of_added(const LinkSet& links) const {
  const Fabric& fabric = healthy_.setup().fabric;
  std::int32_t out = -1, in = -1;
  for (const LinkFault& fault : faults_) {
    if (!links.contains(fault.link)) continue;
    const Link& link = fabric.links()[static_cast<std::size_t>(fault.link)];
    const bool sends = link.source < fabric.ranks(), receives = link.destination < fabric.ranks();
    if (sends && (out < 0 || out == link.source)) out = link.source;
    if (receives && (in < 0 || in == link.destination)) in = link.destination;
    const bool as_before = (!sends || out == link.source) && (!receives || in == link.destination);
    if (!as_before || (!sends && !receives) || out == in) return 1;
  }
  if (out < 0 && in < 0) return 1;
  return out < 0 || in < 0 ? 0.5 : 2.0 / 3;
}

/// What a call saves on the groups that a curve is of; a call takes no less than on healthy links. Algorithms that are
/// neither rings nor direct save nothing that is known.
double SickLinks::saved_on(const CostCurve& curve, const OperationCosts& costs, const KnownWay& way,
                           double bytes, const InRow& row) const {
  const double added = std::max(0.0, row.now - row.healthy),
               others = mean_of(row.gaps) + way.steps * row.step;
  const bool several = way.choice.algorithm == Algorithm::dimension_wise,
             one_way = several && passes_of(operation_of(costs.op)) == 1;
  if (const auto saved = curve.saved_in_row(bytes, row, one_way)) return *saved;
  const bool pairs =
      way.choice.algorithm == Algorithm::direct || operation_of(costs.op) == Operation::point_to_point;
  return pairs ? share_apart(row.gaps) * std::min((1 - share_of_added(curve.links())) * added, others) : 0;
}

double SickLinks::find_saved(const OperationCosts& costs, KnownWay& way, double bytes, const InRow& row) {
  // The parts do not depend on what was asked before, and so neither does the answer.
  const Parts* const all =
      detours(costs, way) ? nullptr : &parts_.get(way.number, [&] { return split(costs, way); });
  if (all == nullptr || all->parts.empty()) {
    return saved_on(sick_curve(costs, way), costs, way, bytes, row);
  }
  double follows = row.healthy;
  for (auto& [number, part] :
       now_->touched.get(way.number, [&] { return touched_parts(costs, way, *all); })) {
    InRow of_part = row;
    of_part.now = at(part, bytes);
    follows = std::max(follows, of_part.now - saved_on(part, costs, way, bytes, of_part));
  }
  return std::max(0.0, row.now - follows);
}

double SickLinks::saved_in_row(const OperationCosts& costs, KnownWay& way, double bytes, const InRow& row) {
  if (row.now <= row.healthy) return 0;
  const auto [saved, fresh] = saved_.at({epoch(), way.number, bytes, row.step, row.gaps});
  if (fresh) saved = find_saved(costs, way, bytes, row);
  return saved;
}

const std::vector<SickLinks::SlowLink>& SickLinks::slow_links() {
  std::vector<SlowLink>& slow = now_->slow;
  if (!slow.empty()) return slow;
  for (const LinkFault& fault : faults_) {
    const auto link = static_cast<std::size_t>(fault.link);
    const double left = network().bytes_per_second()[link];
    const bool known = std::ranges::find(slow, fault.link, &SlowLink::link) != slow.end();
    if (!gone(fault) && !known)
      slow.push_back({fault.link, healthy_.network().bytes_per_second()[link] / left});
  }
  std::ranges::sort(slow, {}, &SlowLink::link);
  return slow;
}

LinkLoads SickLinks::loads(const LinkLoads& healthy_loads, double healthy, double now) {
  LinkLoads sick;
  for (const auto& [link, times] : slow_links()) {
    const LinkLoad* const load = load_of(healthy_loads, link);
    if (load == nullptr) continue;
    const double use = std::min(1.0, load->use * healthy * times / now);
    sick.push_back({link, load->flows, use, std::min(1.0, std::max(use, load->active * healthy / now))});
  }
  return sick;
}

/// Splits the groups into parts.
SickLinks::Parts SickLinks::split(const OperationCosts& costs, const KnownWay& way) const {
  Parts result;
  const SiblingGroups groups = healthy_.siblings(costs);
  const std::size_t links = healthy_.setup().fabric.links().size();
  if (groups.count() < 2 ||
      static_cast<double>(groups.count()) * static_cast<double>(links) > kMostLinksToSplit)
    return result;
  UnionFind joined(groups.count());
  std::vector<std::int32_t> user(links, -1);
  for (std::size_t g = 0; g < groups.count(); ++g) {
    const LinkSet used = healthy_.curve_on(costs, way, chosen(groups, std::span(&g, 1))).links();
    for (std::size_t link = 0; link < links; ++link) {
      if (!used.contains(static_cast<std::int32_t>(link))) continue;
      if (user[link] < 0) user[link] = static_cast<std::int32_t>(g);
      joined.join(static_cast<std::size_t>(user[link]), g);
    }
  }
  const auto sets = joined.sets();
  if (sets.size() < 2) return result;
  std::vector<std::int32_t> part_of_group(groups.count());
  for (const std::vector<std::size_t>& set : sets) {
    for (const std::size_t g : set) part_of_group[g] = static_cast<std::int32_t>(result.parts.size());
    const SiblingGroups members = chosen(groups, set);
    result.parts.push_back({members, healthy_.curve_on(costs, way, members)});
  }
  for (const std::int32_t group : user)
    result.part_of_link.push_back(group < 0 ? -1 : part_of_group[static_cast<std::size_t>(group)]);
  return result;
}

/// The parts that the current faults touch, each with its curve under these faults.
SickLinks::TouchedParts SickLinks::touched_parts(const OperationCosts& costs, const KnownWay& way,
                                                 const Parts& all) {
  TouchedParts touched;
  for (const LinkFault& fault : faults_) {
    const std::int32_t part = all.part_of_link[static_cast<std::size_t>(fault.link)];
    const auto same = [&](const auto& curve) { return curve.first == part; };
    if (part < 0 || std::ranges::any_of(touched, same)) continue;
    touched.emplace_back(part,
                         curve_of(maker(), costs.op, way, all.parts[static_cast<std::size_t>(part)].groups,
                                  healthy_.setup().fabric));
  }
  curves_ += touched.size();
  return touched;
}

double SickLinks::healthy_part(const HealthyPartKey& key, CostCurve& curve) {
  if (curve.needs_no_simulation()) return healthy_.at(curve, key.bytes);
  return simulated_.get(key, [&] { return healthy_.at(curve, key.bytes); });
}

/// The time with soft faults, from the parts; empty where the parts do not determine it.
std::optional<double> SickLinks::part_by_part(const OperationCosts& costs, KnownWay& way, double bytes) {
  if (detours(costs, way)) return std::nullopt;
  Parts& all = parts_.get(way.number, [&] { return split(costs, way); });
  if (all.parts.empty()) return std::nullopt;
  constexpr double kRounding = 1e-12;
  double time = healthy_part({way.number, -1, bytes}, way.curve);
  for (auto& [number, curve] :
       now_->touched.get(way.number, [&] { return touched_parts(costs, way, all); })) {
    const double sick = at(curve, bytes);
    const double well =
        healthy_part({way.number, number, bytes}, all.parts[static_cast<std::size_t>(number)].healthy);
    if (sick < well * (1 - kRounding)) return std::nullopt;
    time = std::max(time, sick);
  }
  return time;
}

std::string SickLinks::describe_unreachable() {
  SHARDSCAPE_CHECK(cut_.has_value(), cut_.has_value());
  const CollectiveSetup& setup = healthy_.setup();
  FaultyFabric& routes = network().routes();
  // If ranks reach the first member and are reached from it, they also reach each other; so look at these pairs only.
  const SiblingGroups groups = sibling_groups(*cut_, setup.fabric, setup.placement);
  std::vector<std::int32_t> path;
  for (std::size_t g = 0; g < groups.count(); ++g) {
    const std::int32_t first = groups.group(g)[0];
    for (const std::int32_t other : groups.group(g)) {
      for (const auto& [from, to] : {std::pair(first, other), std::pair(other, first)}) {
        if (from == to || routes.append_route(from, to, path)) continue;
        return routes.describe(routes.explain(from, to));
      }
    }
  }
  return "dead links cut the switches that reduce for a group off from its ranks";
}

}  // namespace shardscape::network
