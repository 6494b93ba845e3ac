// Lists the places of each kind of fault on a fabric (physical links, ranks, adapters and switches with their links),
// and draws samples among them.
#include "sweep/faults/fault_sampler.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/counter_rng.h"

namespace shardscape::sweep {

namespace {

using network::Fabric;
using network::Link;

const DimensionSpec& dimension_of(const Fabric& fabric, const Link& link) {
  return fabric.spec().dimensions[static_cast<std::size_t>(link.dimension)];
}

bool admits(const FaultPlacement& placement, const Fabric& fabric, const Link& link) {
  if (placement.kind == PlacementKind::dimension)
    return dimension_of(fabric, link).name == placement.dimension;
  if (placement.kind != PlacementKind::links) return true;
  return std::ranges::any_of(placement.links, [&](const auto& ends) {
    const auto [a, b] = ends;
    return (link.source == a && link.destination == b) || (link.source == b && link.destination == a);
  });
}

std::vector<FaultPlace> link_places(const FaultStudy& study, const Fabric& fabric) {
  std::vector<FaultPlace> places;
  for (std::size_t i = 0; i < fabric.links().size(); ++i) {
    const auto id = static_cast<std::int32_t>(i);
    if (!admits(study.placement, fabric, fabric.links()[i])) continue;
    const std::int32_t opposite = study.both_directions ? fabric.reverse_of(id) : -1;
    if (opposite >= 0 && opposite < id) continue;
    places.push_back({id, -1, {id}});
    if (opposite >= 0) places.back().links.push_back(opposite);
  }
  return places;
}

/// Vertices that are shared adapters, to which the GPUs of a node are linked in dimensions with sharing.
std::set<std::int32_t> adapters_of(const Fabric& fabric) {
  std::set<std::int32_t> sharing;  // dimensions whose adapters are shared
  for (const Fabric::Axis& axis : fabric.axes()) {
    if (axis.sharing > 1) sharing.insert(axis.dimension);
  }
  std::set<std::int32_t> adapters;
  for (const Link& link : fabric.links()) {
    if (link.source < fabric.ranks() && link.destination >= fabric.ranks() &&
        sharing.contains(link.dimension)) {
      adapters.insert(link.destination);
    }
  }
  return adapters;
}

/// The dimensions whose adapters the study's placement means.
std::set<std::int32_t> adapter_dimensions(const FaultPlacement& placement, const Fabric& fabric) {
  const std::vector<DimensionSpec>& dimensions = fabric.spec().dimensions;
  std::set<std::int32_t> chosen;
  for (std::size_t d = 0; d < dimensions.size(); ++d) {
    const bool named = placement.kind == PlacementKind::dimension;
    const bool wanted =
        named ? dimensions[d].name == placement.dimension : dimensions[d].scope == LinkScope::scale_out;
    if (wanted) chosen.insert(static_cast<std::int32_t>(d));
  }
  if (chosen.empty() && !dimensions.empty()) chosen.insert(static_cast<std::int32_t>(dimensions.size()) - 1);
  return chosen;
}

/// Adds a link that starts or ends at the owner's vertex to the owner's place.
void add_incident(std::map<std::int32_t, FaultPlace>& places, std::int32_t owner, std::int32_t link) {
  FaultPlace& place = places[owner];
  place.device = owner;
  place.links.push_back(link);
}

std::vector<FaultPlace> in_order(std::map<std::int32_t, FaultPlace> places) {
  std::vector<FaultPlace> list;
  for (auto& [owner, place] : places) {
    std::ranges::sort(place.links);
    place.links.erase(std::unique(place.links.begin(), place.links.end()), place.links.end());
    list.push_back(std::move(place));
  }
  return list;
}

std::vector<FaultPlace> adapter_places(const FaultStudy& study, const Fabric& fabric) {
  const std::set<std::int32_t> dimensions = adapter_dimensions(study.placement, fabric);
  const std::set<std::int32_t> shared = adapters_of(fabric);
  std::map<std::int32_t, std::int32_t> lowest_rank;  // lowest rank on each shared adapter
  for (const Link& link : fabric.links()) {
    if (link.source >= fabric.ranks() || !shared.contains(link.destination)) continue;
    const auto entry = lowest_rank.try_emplace(link.destination, link.source).first;
    entry->second = std::min(entry->second, link.source);
  }
  std::map<std::int32_t, FaultPlace> places;
  for (std::size_t i = 0; i < fabric.links().size(); ++i) {
    const Link& link = fabric.links()[i];
    if (!dimensions.contains(link.dimension)) continue;
    const auto id = static_cast<std::int32_t>(i);
    const bool by_adapter = shared.contains(link.source) || shared.contains(link.destination);
    for (const std::int32_t end : {link.source, link.destination}) {
      if (shared.contains(end)) add_incident(places, lowest_rank.at(end), id);
      if (!by_adapter && end < fabric.ranks()) add_incident(places, end, id);
    }
  }
  return in_order(std::move(places));
}

std::vector<FaultPlace> switch_places(const FaultStudy& study, const Fabric& fabric) {
  const std::set<std::int32_t> adapters = adapters_of(fabric);
  const bool any = study.placement.kind != PlacementKind::dimension;
  std::map<std::int32_t, FaultPlace> places;
  for (std::size_t i = 0; i < fabric.links().size(); ++i) {
    const Link& link = fabric.links()[i];
    if (!any && dimension_of(fabric, link).name != study.placement.dimension) continue;
    for (const std::int32_t end : {link.source, link.destination}) {
      if (end >= fabric.ranks() && !adapters.contains(end))
        add_incident(places, end, static_cast<std::int32_t>(i));
    }
  }
  return in_order(std::move(places));
}

}  // namespace

void apply_fault(const FaultPlace& place, const DrawnFault& fault, Seconds added_latency, FaultSet& set) {
  const FaultRow& row = row_of(fault.kind);
  if (row.of_link != nullptr) {
    for (const std::int32_t link : place.links) {
      set.links.push_back(row.of_link(fault.derate, added_latency));
      set.links.back().link = link;
    }
  }
  if (row.of_device != nullptr) {
    set.devices.push_back(row.of_device(fault.derate));
    set.devices.back().rank = place.device;
  }
}

FaultSampler::FaultSampler(const FaultStudy& study, const network::Fabric& fabric)
    : study_(study), derate_(study.derate), samples_(static_cast<std::uint64_t>(study.samples)) {
  double total = 0, sum = 0;
  for (const WeightedKind& weighted : study.kinds) total += weighted.weight;
  for (const WeightedKind& weighted : study.kinds) {
    sum += weighted.weight;
    kinds_.push_back({weighted.kind, sum / total, fault_places(weighted.kind, study, fabric)});
    SHARDSCAPE_CHECK(kinds_.back().places.size() >= static_cast<std::size_t>(study.simultaneous),
                     name_of(weighted.kind), kinds_.back().places.size());
  }
  kinds_.back().up_to = std::numeric_limits<double>::infinity();
  if (study.exhaustive()) samples_ = kinds_.front().places.size();
}

const FaultSampler::Kind& FaultSampler::kind_at(double uniform) const {
  return *std::ranges::find_if(kinds_, [&](const Kind& kind) { return uniform < kind.up_to; });
}

FaultDraw FaultSampler::draw(std::uint64_t sample) const {
  SHARDSCAPE_CHECK(!study_.exhaustive() || sample < samples_, sample, samples_);
  CounterRng rng(study_.seed, sample);
  FaultDraw draw;
  draw.sample = sample;
  std::set<std::pair<bool, std::int32_t>> taken;  // links and devices that already have a fault
  for (std::int64_t i = 0; i < study_.simultaneous; ++i) {
    const Kind& kind = kinds_.size() > 1 ? kind_at(rng.uniform()) : kinds_.front();
    const FaultPlace* place = nullptr;
    if (study_.exhaustive()) {
      place = &kind.places[sample];
    } else {
      do {
        place = &kind.places[rng.below(kind.places.size())];
      } while (!taken.emplace(place->link >= 0, std::max(place->link, place->device)).second);
    }
    DrawnFault fault{kind.kind, place->link, place->device, 0};
    if (row_of(kind.kind).derates) fault.derate = derate_.at(rng.uniform());
    apply_fault(*place, fault, study_.added_latency, draw.set);
    draw.faults.push_back(fault);
  }
  return draw;
}

std::vector<FaultPlace> fault_places(FaultKind kind, const FaultStudy& study, const Fabric& fabric) {
  switch (row_of(kind).owner) {
    case FaultOwner::link:
      return link_places(study, fabric);
    case FaultOwner::adapter:
      return adapter_places(study, fabric);
    case FaultOwner::switches:
      return switch_places(study, fabric);
    case FaultOwner::device:
      break;
  }
  std::vector<FaultPlace> places;
  for (std::int32_t rank = 0; rank < fabric.ranks(); ++rank) places.push_back({-1, rank, {}});
  return places;
}

std::vector<std::int32_t> links_between(const Fabric& fabric, std::int32_t a, std::int32_t b) {
  std::vector<std::int32_t> found;
  for (std::size_t i = 0; i < fabric.links().size(); ++i) {
    const Link& link = fabric.links()[i];
    const bool joins =
        (link.source == a && link.destination == b) || (link.source == b && link.destination == a);
    if (joins) found.push_back(static_cast<std::int32_t>(i));
  }
  return found;
}

}  // namespace shardscape::sweep
