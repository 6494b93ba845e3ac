// Applies faults to a fabric, and finds detours around dead links by breadth-first search, which it keeps by pair.
#include "engine/network/fabric/faulty_fabric.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/check.h"

namespace shardscape::network {

namespace {

std::uint64_t pair_key(std::int32_t source, std::int32_t destination) {
  return (static_cast<std::uint64_t>(source) << 32) | static_cast<std::uint32_t>(destination);
}

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

}  // namespace

void add_fault(FaultSet& faults, const Fabric& fabric, const LinkFault& fault, FaultDirections directions) {
  faults.links.push_back(fault);
  if (directions == FaultDirections::one) return;
  LinkFault opposite = fault;
  opposite.link = fabric.reverse_of(fault.link);
  if (opposite.link >= 0) faults.links.push_back(opposite);
}

FaultyFabric::FaultyFabric(const Fabric& fabric) : fabric_(fabric) {
  for (const Link& link : fabric.links()) {
    bytes_per_second_.push_back(link.bandwidth.value());
    latency_.push_back(link.latency.value());
  }
}

void FaultyFabric::set_faults(const FaultSet& faults) {
  const std::vector<Link>& links = fabric_.links();
  if (faulty_) {
    for (std::size_t i = 0; i < links.size(); ++i) {
      bytes_per_second_[i] = links[i].bandwidth.value();
      latency_[i] = links[i].latency.value();
    }
    dead_.clear();
    dead_links_.clear();
    detours_.clear();
    detour_links_.clear();
  }
  faulty_ = !faults.links.empty();
  for (const LinkFault& fault : faults.links) {
    SHARDSCAPE_CHECK(fault.link >= 0 && at(fault.link) < links.size(), fault.link);
    SHARDSCAPE_CHECK(fault.removed || (fault.derate > 0 && fault.derate <= 1), fault.link, fault.derate);
    if (const std::int32_t strands = links[at(fault.link)].strands; strands > 1) {
      bytes_per_second_[at(fault.link)] *= 1 - (1 - (fault.removed ? 0 : fault.derate)) / strands;
      continue;
    }
    if (fault.removed) {
      if (dead_.empty()) dead_.assign(links.size(), 0);
      if (dead_[at(fault.link)] == 0) dead_links_.push_back(fault.link);
      dead_[at(fault.link)] = 1;
      continue;
    }
    bytes_per_second_[at(fault.link)] *= fault.derate;
    latency_[at(fault.link)] += fault.added_latency.value();
  }
  for (const std::int32_t link : dead_links_) {
    bytes_per_second_[at(link)] = links[at(link)].bandwidth.value();
    latency_[at(link)] = links[at(link)].latency.value();
  }
  std::ranges::sort(dead_links_);
}

FaultyFabric::Adjacency FaultyFabric::adjacency(std::int32_t Link::*end, std::int32_t Link::*other) const {
  const std::vector<Link>& links = fabric_.links();
  Adjacency result;
  result.first.assign(at(fabric_.vertices()) + 1, 0);
  for (const Link& link : links) ++result.first[at(link.*end) + 1];
  for (std::size_t v = 1; v < result.first.size(); ++v) result.first[v] += result.first[v - 1];
  result.links.resize(links.size());
  std::vector<std::int32_t> fill(result.first.begin(), result.first.end() - 1);
  for (std::size_t i = 0; i < links.size(); ++i) {
    result.links[at(fill[at(links[i].*end)]++)] = static_cast<std::int32_t>(i);
  }
  for (std::size_t v = 0; v + 1 < result.first.size(); ++v) {
    std::sort(result.links.begin() + result.first[v], result.links.begin() + result.first[v + 1],
              [&](std::int32_t a, std::int32_t b) { return links[at(a)].*other < links[at(b)].*other; });
  }
  return result;
}

void FaultyFabric::index_links() {
  if (!out_.first.empty()) return;
  out_ = adjacency(&Link::source, &Link::destination);
  in_ = adjacency(&Link::destination, &Link::source);
}

std::span<const std::int32_t> FaultyFabric::links_at(const Adjacency& adjacency, std::int32_t vertex) const {
  const auto first = at(adjacency.first[at(vertex)]);
  return std::span(adjacency.links).subspan(first, at(adjacency.first[at(vertex) + 1]) - first);
}

bool FaultyFabric::append_route(std::int32_t source, std::int32_t destination,
                                std::vector<std::int32_t>& path) {
  const auto before = static_cast<std::ptrdiff_t>(path.size());
  fabric_.append_route(source, destination, path);
  if (dead_.empty()) return true;
  const bool alive = std::none_of(path.begin() + before, path.end(),
                                  [&](std::int32_t link) { return dead_[at(link)] != 0; });
  if (alive) return true;
  path.resize(static_cast<std::size_t>(before));
  const Detour& found = detour(source, destination);
  if (found.begin > found.end) return false;
  path.insert(path.end(), detour_links_.begin() + found.begin, detour_links_.begin() + found.end);
  return true;
}

const FaultyFabric::Detour& FaultyFabric::detour(std::int32_t source, std::int32_t destination) {
  const auto [entry, fresh] = detours_.try_emplace(pair_key(source, destination));
  if (!fresh) return entry->second;
  index_links();
  measure_distances(source, destination);
  Detour& result = entry->second;
  result.begin = static_cast<std::int32_t>(detour_links_.size());
  if (distance_[at(source)] < 0) {
    result.end = result.begin - 1;
    return result;
  }
  for (std::int32_t here = source; here != destination;) {
    const std::int32_t link = next_link(here);
    detour_links_.push_back(link);
    here = fabric_.links()[at(link)].destination;
  }
  result.end = static_cast<std::int32_t>(detour_links_.size());
  return result;
}

/// Measures distances to the destination by a breadth-first search against the links, as far as the source.
void FaultyFabric::measure_distances(std::int32_t source, std::int32_t destination) {
  distance_.assign(at(fabric_.vertices()), -1);
  distance_[at(destination)] = 0;
  queue_.assign(1, destination);
  for (std::size_t next = 0; next < queue_.size() && distance_[at(source)] < 0; ++next) {
    const std::int32_t here = queue_[next];
    for (const std::int32_t link : links_at(in_, here)) {
      const std::int32_t before = fabric_.links()[at(link)].source;
      if (dead_[at(link)] != 0 || distance_[at(before)] >= 0) continue;
      distance_[at(before)] = distance_[at(here)] + 1;
      queue_.push_back(before);
    }
  }
}

/// The living link to the lowest-numbered vertex that is one hop nearer. All vertices nearer than the source have been
/// measured by the time the source is.
std::int32_t FaultyFabric::next_link(std::int32_t here) const {
  for (const std::int32_t link : links_at(out_, here)) {
    const std::int32_t to = fabric_.links()[at(link)].destination;
    if (dead_[at(link)] == 0 && distance_[at(to)] == distance_[at(here)] - 1) return link;
  }
  SHARDSCAPE_CHECK(false, here);
  return -1;
}

Unreachable FaultyFabric::explain(std::int32_t source, std::int32_t destination) const {
  const std::vector<Link>& links = fabric_.links();
  const Adjacency out = adjacency(&Link::source, &Link::destination);
  std::vector<char> reached(at(fabric_.vertices()), 0);
  reached[at(source)] = 1;
  std::vector<std::int32_t> open{source};
  while (!open.empty()) {
    const std::int32_t here = open.back();
    open.pop_back();
    for (const std::int32_t link : links_at(out, here)) {
      const std::int32_t to = links[at(link)].destination;
      if (dead(link) || reached[at(to)] != 0) continue;
      reached[at(to)] = 1;
      open.push_back(to);
    }
  }
  Unreachable result{source, destination, {}};
  for (const std::int32_t link : dead_links_) {
    const Link& l = links[at(link)];
    if (reached[at(l.source)] != 0 && reached[at(l.destination)] == 0) result.cut.push_back(link);
  }
  return result;
}

std::string FaultyFabric::describe(const Unreachable& unreachable) const {
  constexpr std::size_t kMost = 8;
  std::string names;
  for (std::size_t i = 0; i < unreachable.cut.size() && i < kMost; ++i) {
    names += (i == 0 ? "" : ", ") + fabric_.link_name(unreachable.cut[i]);
  }
  if (unreachable.cut.size() > kMost) names += fmt::format(", and {} more", unreachable.cut.size() - kMost);
  return fmt::format("no way from {} to {}: all links that lead on are dead ({})", unreachable.source,
                     unreachable.destination, names);
}

}  // namespace shardscape::network
