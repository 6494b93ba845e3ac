// Prices collectives on a fabric with sick links: finds which groups a fault touches, and what that costs them.
#include <algorithm>
#include <bit>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/hash.h"
#include "engine/network/collectives/traffic_builder.h"
#include "engine/network/groups/components.h"
#include "engine/network/prices/collective_state.h"

namespace shardscape::network {

std::size_t CollectiveModel::FaultKeyHash::operator()(const FaultKey& key) const { return hash_words(key); }

void CollectiveModel::set_faults(const FaultSet& faults) {
  cut_group_.reset();
  if (faults.links.empty() && healthy()) return;
  faults_.links = faults.links;
  fault_epoch_ = 0;
  if (healthy()) return;
  if (sick_prices_ > kMostSickPrices) forget_sick_prices();
  fault_key_.clear();
  for (const LinkFault& fault : faults_.links) {
    fault_key_.insert(fault_key_.end(), {static_cast<std::uint64_t>(fault.link), fault.removed ? 1U : 0U,
                                         std::bit_cast<std::uint64_t>(fault.derate),
                                         std::bit_cast<std::uint64_t>(fault.added_latency.value())});
  }
  const auto [entry, fresh] = epochs_.try_emplace(fault_key_, last_epoch_ + 1);
  if (fresh) {
    ++last_epoch_;
    ++sick_prices_;
  }
  fault_epoch_ = entry->second;
}

void CollectiveModel::forget_sick_prices() {
  for (auto& [group, costs] : memo_) {
    costs->for_each([](OpCosts& op) {
      for (Candidate& candidate : op.candidates) {
        candidate.sick.clear();
        candidate.sick_parts.clear();
        std::erase_if(candidate.slices, [](const auto& entry) { return entry.first.second != 0; });
      }
      for (auto& [bytes, priced] : op.by_bytes) priced.sick.clear();
    });
  }
  epochs_.clear();
  sick_prices_ = 0;
}

/// The network with the current faults; made when first needed.
PricedNetwork& CollectiveModel::sick_network() {
  if (!actual_) {
    actual_ = std::make_unique<PricedNetwork>(fabric_, communication_);
    actual_maker_ = std::make_unique<CurveMaker>(*actual_);
  }
  if (actual_epoch_ != fault_epoch_) {
    actual_->set_faults(faults_);
    actual_epoch_ = fault_epoch_;
  }
  return *actual_;
}

CurveMaker& CollectiveModel::sick_maker() {
  sick_network();
  return *actual_maker_;
}

bool CollectiveModel::touched(const LinkSet& links) const {
  return std::ranges::any_of(faults_.links,
                             [&](const LinkFault& fault) { return links.contains(fault.link); });
}

bool CollectiveModel::detours() const { return std::ranges::any_of(faults_.links, &LinkFault::removed); }

/// The links that the groups of each slice use, including those of detours.
SliceLinks CollectiveModel::slice_links(const OpCosts& costs, const Candidate& candidate,
                                        RankGroup::Level axis) {
  std::vector<LinkSet> links;
  const bool detour = detours();
  for (std::int32_t i = 0; i < axis.extent; ++i) {
    const SiblingGroups groups = siblings(costs, {axis, i});
    links.push_back(make_curve(*healthy_maker_, costs.op, candidate, groups).links());
    if (!detour) continue;
    const CostCurve sick = make_curve(sick_maker(), costs.op, candidate, groups);
    if (!sick.cut_off()) links.back().insert_all(sick.links());
  }
  return SliceLinks(std::move(links));
}

/// The same links, found from the messages instead of from formulas.
SliceLinks CollectiveModel::slice_links_plainly(const OpCosts& costs, const Candidate& candidate,
                                                RankGroup::Level axis) {
  std::vector<LinkSet> links(static_cast<std::size_t>(axis.extent));
  for (std::int32_t i = 0; i < axis.extent; ++i) {
    const SiblingGroups groups = siblings(costs, {axis, i});
    const Pattern pattern = pattern_of(costs.op, candidate, groups, 1);
    for (PricedNetwork* network : {healthy_.get(), &sick_network()}) {
      if (!network->has_switches_for(pattern)) continue;
      const auto built = build_traffic({pattern}, network->routes());
      if (!built) continue;
      for (const std::int32_t link : built->traffic.path_links)
        links[static_cast<std::size_t>(i)].insert(link);
    }
  }
  return SliceLinks(std::move(links));
}

/// Whether faults slow the groups of the slice.
bool CollectiveModel::touched(const OpCosts& costs, Candidate& candidate, const Slice& slice) {
  if (healthy()) return false;
  if (reference_) {
    return slice.everything() ||
           touched(slice_links_plainly(costs, candidate, slice.axis).met_by(slice.index));
  }
  if (!touched(links_of(costs, candidate))) return false;
  return slice.everything() || touched(links_of_slices(costs, candidate, slice.axis).met_by(slice.index));
}

/// The links of the slices along an axis, with the detours of the current faults; remembered.
const SliceLinks& CollectiveModel::links_of_slices(const OpCosts& costs, Candidate& candidate,
                                                   RankGroup::Level axis) {
  const std::pair key(axis, detours() ? fault_epoch_ : 0);
  auto entry = candidate.slices.find(key);
  if (entry == candidate.slices.end()) {
    entry = candidate.slices.emplace(key, slice_links(costs, candidate, axis)).first;
    if (key.second != 0) ++sick_prices_;
  }
  return entry->second;
}

void CollectiveModel::record(const OpCosts& costs, Candidate& candidate, const Slice& slice) {
  const LinkSet& links = slice.everything()
                             ? links_of(costs, candidate)
                             : links_of_slices(costs, candidate, slice.axis).met_by(slice.index);
  recorded_.insert_all(links);
  recorded_part_.insert_all(links);
}

CostCurve& CollectiveModel::sick_curve(const OpCosts& costs, Candidate& candidate) {
  const auto [entry, fresh] = candidate.sick.try_emplace(fault_epoch_);
  if (fresh) {
    ++sick_prices_;
    const SiblingGroups groups = siblings(costs);
    entry->second = make_curve(sick_maker(), costs.op, candidate, groups);
  }
  return entry->second;
}

// ---- soft faults, part by part ----
//
// A soft fault leaves every route as it is, so the groups still fall into the same parts, and the operation
// takes as long as its slowest part. With T the healthy time of all parts, t(p) that of part p and t'(p) with
// the faults, t'(p) >= t(p) for the touched ones makes the time max(T, max over touched p of t'(p)): only the
// touched parts are priced again. Where sharing makes some part faster (links that others leave to it), all
// is priced anew.

namespace {

/// Largest product of links and groups up to which an operation is split into parts: splitting looks at every link for
/// every group.
constexpr double kMostLinksToSplit = 1 << 26;

double healthy_at(CostCurve& curve, std::unordered_map<std::uint64_t, double>& simulated, double bytes,
                  PricedNetwork& network, double tolerance) {
  if (curve.needs_no_simulation()) return curve.at(bytes, network, tolerance);
  const auto [entry, fresh] = simulated.try_emplace(std::bit_cast<std::uint64_t>(bytes));
  if (fresh) entry->second = curve.at(bytes, network, tolerance);
  return entry->second;
}

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

void CollectiveModel::Candidate::split(CollectiveModel& model, const OpCosts& costs) {
  if (is_split) return;
  is_split = true;
  const SiblingGroups groups = model.siblings(costs);
  const std::size_t links = model.fabric_.links().size();
  if (groups.count() < 2 ||
      static_cast<double>(groups.count()) * static_cast<double>(links) > kMostLinksToSplit)
    return;
  UnionFind joined(groups.count());
  std::vector<std::int32_t> user(links, -1);
  for (std::size_t g = 0; g < groups.count(); ++g) {
    const LinkSet used =
        model.make_curve(*model.healthy_maker_, costs.op, *this, chosen(groups, std::span(&g, 1))).links();
    for (std::size_t link = 0; link < links; ++link) {
      if (!used.contains(static_cast<std::int32_t>(link))) continue;
      if (user[link] < 0) user[link] = static_cast<std::int32_t>(g);
      joined.join(static_cast<std::size_t>(user[link]), g);
    }
  }
  const auto sets = joined.sets();
  if (sets.size() < 2) return;
  std::vector<std::int32_t> part_of_group(groups.count());
  for (const std::vector<std::size_t>& set : sets) {
    for (const std::size_t g : set) part_of_group[g] = static_cast<std::int32_t>(parts.size());
    Part part;
    part.groups = chosen(groups, set);
    part.healthy = model.make_curve(*model.healthy_maker_, costs.op, *this, part.groups);
    parts.push_back(std::move(part));
  }
  for (const std::int32_t group : user)
    part_of_link.push_back(group < 0 ? -1 : part_of_group[static_cast<std::size_t>(group)]);
}

/// The parts that the current faults touch, each with its curve under these faults.
CollectiveModel::Candidate::SickParts& CollectiveModel::Candidate::touched_parts(CollectiveModel& model,
                                                                                 const OpCosts& costs) {
  const auto [entry, fresh] = sick_parts.try_emplace(model.fault_epoch_);
  SickParts& curves = entry->second;
  if (!fresh) return curves;
  ++model.sick_prices_;
  for (const LinkFault& fault : model.faults_.links) {
    const std::int32_t part = part_of_link[static_cast<std::size_t>(fault.link)];
    const auto same = [&](const auto& curve) { return curve.first == static_cast<std::size_t>(part); };
    if (part < 0 || std::ranges::any_of(curves, same)) continue;
    const auto index = static_cast<std::size_t>(part);
    curves.emplace_back(index, model.make_curve(model.sick_maker(), costs.op, *this, parts[index].groups));
  }
  return curves;
}

/// The time with soft faults, from the parts; empty where the parts do not determine it.
std::optional<double> CollectiveModel::Candidate::part_by_part(CollectiveModel& model, const OpCosts& costs,
                                                               double bytes) {
  if (std::ranges::any_of(model.faults_.links, &LinkFault::removed)) return std::nullopt;
  split(model, costs);
  if (parts.empty()) return std::nullopt;
  constexpr double kRounding = 1e-12;
  double time = healthy_at(healthy, simulated, bytes, *model.healthy_, model.tolerance_);
  for (auto& [index, curve] : touched_parts(model, costs)) {
    Part& part = parts[index];
    PricedNetwork& network = curve.needs_no_simulation() ? *model.healthy_ : model.sick_network();
    const double sick_time = curve.at(bytes, network, model.tolerance_);
    const double healthy_time =
        healthy_at(part.healthy, part.simulated, bytes, *model.healthy_, model.tolerance_);
    if (sick_time < healthy_time * (1 - kRounding)) return std::nullopt;
    time = std::max(time, sick_time);
  }
  return time;
}

std::string CollectiveModel::describe_unreachable() {
  SHARDSCAPE_CHECK(cut_group_.has_value(), cut_group_.has_value());
  FaultyFabric& routes = sick_network().routes();
  // If ranks reach the first member and are reached from it, they also reach each other; so look at these pairs only.
  const SiblingGroups groups = sibling_groups(*cut_group_, fabric_, placement_);
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
