// Curves of rings that run at the same time. Rings that were analysed before are looked up. Rings whose flows are not
// all alike fall into components that share links: a component keeps step, and then its time is exact, or it drifts,
// and then it has bounds; of components with equal signatures one is analysed.
#include <algorithm>
#include <bit>
#include <map>

#include "engine/base/hash.h"
#include "engine/network/groups/components.h"
#include "engine/network/prices/curve_maker.h"

namespace shardscape::network {

namespace {

/// Most ranks in all rings that are remembered; with the loads of their links some 100 bytes each.
constexpr std::size_t kMostKnownRanks = 1 << 19;

}  // namespace

CurveMaker::RingParts CurveMaker::rings(const Rings& rings, int steps, double share) {
  if (!shortcuts_) return analyse(rings, steps, share);
  std::uint64_t hash = hash_word(rings.size, std::bit_cast<std::uint64_t>(share));
  const bool rank_steps = flows_.takes_rank_steps();
  hash = hash_word(hash, static_cast<std::uint64_t>(2 * steps + (rank_steps ? 1 : 0)));
  for (const std::int32_t rank : rings.ranks) hash = hash_word(hash, static_cast<std::uint64_t>(rank));
  const auto [first, last] = known_rings_.equal_range(hash);
  for (auto known = first; known != last; ++known) {
    const KnownRings& k = known->second;
    if (k.size == rings.size && k.steps == steps && k.share == share && k.with_links == collects_ &&
        k.rank_steps == rank_steps && (k.whole || loads_ != nullptr) && k.ranks == rings.ranks)
      return k.parts;
  }
  if (links_only_) return links_of(rings);
  RingParts parts = analyse(rings, steps, share);
  if (known_ranks_ + rings.ranks.size() > kMostKnownRanks) {
    known_rings_.clear();
    known_ranks_ = 0;
  }
  known_ranks_ += rings.ranks.size();
  known_rings_.emplace(hash, KnownRings{rings.ranks, rings.size, steps, share, collects_, rank_steps,
                                        loads_ == nullptr, parts});
  return parts;
}

/// The links of rings, and nothing else.
CurveMaker::RingParts CurveMaker::links_of(const Rings& rings) {
  RingParts parts;
  const Fabric& fabric = network_.fabric();
  for (std::size_t r = 0; r < rings.count(); ++r) {
    const std::span<const std::int32_t> ring = rings.group(r);
    route_.clear();
    for (std::size_t i = 0; i < ring.size(); ++i)
      fabric.append_route(ring[i], ring[i + 1 == ring.size() ? 0 : i + 1], route_);
    for (const std::int32_t link : route_) parts.links.insert(link);
  }
  return parts;
}

CurveMaker::RingParts CurveMaker::analyse(const Rings& rings, int steps, double share) {
  RingParts parts;
  parts.exact.share = parts.upper.share = share;
  parts.exact.steps = parts.upper.steps = steps;
  flows_.reset();
  const std::size_t n = rings.size;
  for (std::size_t r = 0; r < rings.count() && parts.reachable; ++r) {
    const std::span<const std::int32_t> ring = rings.group(r);
    for (std::size_t i = 0; i < n && parts.reachable; ++i)
      parts.reachable = flows_.add(ring[i], ring[i + 1 == n ? 0 : i + 1]);
  }
  if (!parts.reachable) return parts;
  flows_.settle();
  if (loads_ != nullptr || shortcuts_) parts.loads = std::make_shared<const LinkLoads>(flows_.loads());
  if (collects_ && parts.loads == nullptr) flows_.collect_links(parts.links);
  if (collects_ && parts.loads != nullptr)
    for (const LinkLoad& load : *parts.loads) parts.links.insert(load.link, load.end());
  parts.uniform = flows_.uniform();
  parts.uncontended = flows_.uncontended();
  parts.steps = steps;
  parts.least_latency = flows_.flow(0).latency;
  parts.fastest = flows_.flow(0).alone;
  parts.slowest = flows_.slowest();
  for (std::size_t f = 0; f < flows_.size(); ++f) {
    parts.least_latency = std::min(parts.least_latency, flows_.flow(f).latency);
    parts.fastest = std::min(parts.fastest, flows_.flow(f).alone);
  }
  if (!parts.uniform) {
    if (loads_ == nullptr) drifting_rings(rings, steps, share, parts);
    return parts;
  }
  const RoutedFlow& flow = flows_.flow(0);
  parts.exact.lines.push_back({steps * flow.latency, steps * flow.shared});
  parts.upper = parts.exact;
  return parts;
}

std::vector<Hop> CurveMaker::hops(std::size_t ring, std::size_t size, double RoutedFlow::*rate) const {
  std::vector<Hop> result;
  result.reserve(size);
  for (std::size_t i = 0; i < size; ++i) {
    const RoutedFlow& flow = flows_.flow(ring * size + i);
    result.push_back({flow.latency, flow.*rate});
  }
  return result;
}

/// Whether the rings of a component keep step: they are aligned, or all their flows are alike.
bool CurveMaker::keeps_step(std::span<const std::size_t> component, std::size_t size) const {
  const RoutedFlow& one = flows_.flow(component.front() * size);
  bool aligned = true, alike = true;
  for (const std::size_t ring : component) {
    for (std::size_t i = 0; i < size; ++i) {
      const RoutedFlow& flow = flows_.flow(ring * size + i);
      const RoutedFlow& first = flows_.flow(component.front() * size + i);
      alike = alike && same_number(flow.latency, one.latency) && same_number(flow.shared, one.shared);
      aligned = aligned && same_number(flow.latency, first.latency) && same_number(flow.shared, first.shared);
      for (const std::int32_t link : flows_.path(ring * size + i))
        aligned = aligned && label_[static_cast<std::size_t>(link)] >= 0;
      if (!aligned && !alike) return false;
    }
  }
  return true;
}

CurveParts::Contended CurveMaker::bounded(const Rings& rings, std::span<const std::size_t> component,
                                          int steps, double share) const {
  const std::size_t n = rings.size;
  CurveParts::Contended part;
  part.pattern.algorithm = Algorithm::ring;
  part.pattern.groups = rings.nested(component);
  part.messages = static_cast<double>(component.size() * n) * steps;
  CurveParts::Stage lower, upper;
  lower.share = upper.share = share;
  lower.steps = upper.steps = steps;
  AffineCost load{flows_.flow(component.front() * n).latency, 0};
  for (const std::size_t ring : component) {
    const std::vector<Hop> shared = hops(ring, n, &RoutedFlow::shared);
    const bool known = std::ranges::any_of(upper.rings, [&](const RingTime& r) { return r.is_of(shared); });
    if (!known) upper.rings.emplace_back(shared, steps);
    if (!known) lower.rings.emplace_back(hops(ring, n, &RoutedFlow::alone), steps);
    for (const Hop& hop : shared) {
      load.latency = std::min(load.latency, hop.latency);
      load.seconds_per_byte = std::max(load.seconds_per_byte, steps * hop.seconds_per_byte);
    }
  }
  lower.lines.push_back(load);
  part.lower.push_back(std::move(lower));
  part.upper.push_back(std::move(upper));
  return part;
}

/// What components must agree in to take the same time: latency and share of every hop; where the rings do
/// not keep step (not `exact`), also which links each hop crosses, with their bandwidths. Links are
/// numbered in the order in which they are met, so that components on different links can agree. The
/// numbers are kept in user_, which is not needed any more at this point.
Signature CurveMaker::signature_of(const Rings& rings, std::span<const std::size_t> component, bool exact) {
  Signature signature;
  signature.add(static_cast<std::uint64_t>(exact ? 0 : component.size()));
  std::int32_t numbered = 0;
  for (const std::size_t ring : exact ? component.first(1) : component) {
    for (std::size_t f = ring * rings.size; f < (ring + 1) * rings.size; ++f) {
      signature.add(flows_.flow(f).latency);
      signature.add(flows_.flow(f).shared);
      if (exact) continue;
      signature.add(static_cast<std::uint64_t>(flows_.path(f).size()));
      for (const std::int32_t id : flows_.path(f)) {
        std::int32_t& name = user_[static_cast<std::size_t>(id)];
        if (name >= 0) {
          name = -2 - numbered++;
          signature.add(network_.bytes_per_second()[static_cast<std::size_t>(id)]);
        }
        signature.add(static_cast<std::uint64_t>(-2 - name));
      }
    }
  }
  return signature;
}

/// The kind of a ring with these hops.
std::size_t CurveMaker::kind_of(const std::vector<Hop>& hops, int steps, RingParts& parts) {
  std::vector<CurveParts::Stage::Kind>& kinds = parts.exact.kinds;
  const auto like = [&](const CurveParts::Stage::Kind& kind) { return kind.ring.is_of(hops); };
  const auto known = std::ranges::find_if(kinds, like);
  if (known != kinds.end()) return static_cast<std::size_t>(known - kinds.begin());
  kinds.push_back({RingTime(hops, steps), 0});
  return kinds.size() - 1;
}

void CurveMaker::drifting_rings(const Rings& rings, int steps, double share, RingParts& parts) {
  const std::size_t n = rings.size;
  UnionFind joined(rings.count());
  for (std::size_t f = 0; f < flows_.size(); ++f) {
    const auto ring = static_cast<std::int32_t>(f / n), hop = static_cast<std::int32_t>(f % n);
    for (const std::int32_t id : flows_.path(f)) {
      const auto link = static_cast<std::size_t>(id);
      if (user_[link] < 0) user_[link] = ring;
      if (user_[link] != ring)
        joined.join(static_cast<std::size_t>(user_[link]), static_cast<std::size_t>(ring));
      label_[link] = label_[link] == -1 || label_[link] == hop ? hop : -2;
    }
  }
  std::map<Signature, std::size_t> seen;  // the kind of the rings of a component that keeps step
  for (const std::vector<std::size_t>& component : joined.sets()) {
    const bool exact = keeps_step(component, n);
    const auto [known, fresh] = seen.try_emplace(signature_of(rings, component, exact), 0);
    if (fresh && exact)
      known->second = kind_of(hops(component.front(), n, &RoutedFlow::shared), steps, parts);
    if (exact) parts.exact.kinds[known->second].number += component.size();
    if (!fresh) continue;
    if (!exact) {
      parts.contended.push_back(bounded(rings, component, steps, share));
      const CurveParts::Stage& upper = parts.contended.back().upper.front();
      parts.upper.rings.insert(parts.upper.rings.end(), upper.rings.begin(), upper.rings.end());
      continue;
    }
    const RingTime& time = parts.exact.kinds[known->second].ring;
    if (time.is_affine()) {
      const double rate = flows_.flow(component.front() * n).shared;
      parts.exact.lines.push_back({time.at(0), steps * rate});
      parts.upper.lines.push_back(parts.exact.lines.back());
    } else {
      parts.exact.rings.push_back(time);
      parts.upper.rings.push_back(time);
    }
  }
  if (parts.contended.empty()) parts.upper.kinds = parts.exact.kinds;
  for (std::size_t f = 0; f < flows_.size(); ++f) {
    for (const std::int32_t id : flows_.path(f))
      user_[static_cast<std::size_t>(id)] = label_[static_cast<std::size_t>(id)] = -1;
  }
}

}  // namespace shardscape::network
