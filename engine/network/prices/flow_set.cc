// Counts for each link the flows that use it; then each flow takes the largest and the smallest share along its
// route, and is rigid where none on its busiest link is slower. Members whose routes are alike are looked at once.
#include "engine/network/prices/flow_set.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace shardscape::network {

namespace {

/// Members of a group with equal keys.
struct Alike {
  std::int32_t key = 0;
  std::int32_t count = 0;
};

/// Lists the keys of members, ascending, with how many have each; those below 0 are left out.
template <class KeyOf>
void collect_alike(std::size_t members, const KeyOf& key_of, std::vector<Alike>& alike) {
  alike.clear();
  for (std::size_t i = 0; i < members; ++i) {
    if (const std::int32_t key = key_of(i); key >= 0) alike.push_back({key, 1});
  }
  std::ranges::sort(alike, {}, &Alike::key);
  std::size_t kept = 0;
  for (std::size_t i = 1; i < alike.size(); ++i) {
    if (alike[i].key == alike[kept].key)
      ++alike[kept].count;
    else
      alike[++kept] = alike[i];
  }
  alike.resize(std::min(alike.size(), kept + 1));
}

}  // namespace

FlowSet::FlowSet(PricedNetwork& network)
    : network_(network), begin_{0}, place_(network.fabric().links().size(), -1) {}

void FlowSet::reset() {
  for (const std::int32_t link : links_) place_[static_cast<std::size_t>(link)] = -1;
  uses_.clear();
  on_link_.clear();
  flows_.clear();
  links_.clear();
  begin_.assign(1, 0);
  uniform_ = uncontended_ = true;
  slowest_ = 0;
}

FlowSet::Use& FlowSet::use_of(std::int32_t link) {
  std::int32_t& place = place_[static_cast<std::size_t>(link)];
  if (place < 0) {
    place = static_cast<std::int32_t>(uses_.size());
    uses_.emplace_back();
  }
  return uses_[static_cast<std::size_t>(place)];
}

bool FlowSet::add(std::int32_t source, std::int32_t destination, double weight) {
  if (!network_.routes().append_route(source, destination, links_)) return false;
  const std::span<const double> latency = network_.latency_seconds();
  RoutedFlow flow;
  flow.weight = weight;
  for (const std::int32_t link : std::span(links_).subspan(begin_.back())) {
    use_of(link).load += 1;
    flow.latency += latency[static_cast<std::size_t>(link)];
  }
  begin_.push_back(links_.size());
  flows_.push_back(flow);
  if (rank_steps_) flows_.back().latency = network_.step_latency(path(flows_.size() - 1));
  return true;
}

void FlowSet::settle() {
  const std::span<const double> rate = network_.bytes_per_second();
  for (std::size_t f = 0; f < flows_.size(); ++f) {
    RoutedFlow& flow = flows_[f];
    double narrowest = std::numeric_limits<double>::infinity();
    for (const std::int32_t id : path(f)) {
      const auto link = static_cast<std::size_t>(id);
      Use& use = uses_[place(id)];
      if (use.share <= 0) use.share = use.load / rate[link];
      narrowest = std::min(narrowest, rate[link]);
      flow.shared = std::max(flow.shared, use.share);
    }
    flow.alone = std::max(flow.alone, 1 / narrowest);
    slowest_ = std::max(slowest_, flow.shared);
    uncontended_ = uncontended_ && same_number(flow.alone, flow.shared);
    uniform_ = uniform_ && same_number(flow.shared, flows_.front().shared) &&
               same_number(flow.latency, flows_.front().latency) &&
               same_number(flow.weight, flows_.front().weight);
  }
}

/// Fills on_link_, if it is not.
void FlowSet::look_at_links() {
  if (!on_link_.empty()) return;
  on_link_.assign(uses_.size(), {});
  for (std::size_t f = 0; f < flows_.size(); ++f) {
    const RoutedFlow& flow = flows_[f];
    for (const std::int32_t id : path(f)) {
      OnLink& link = on_link_[place(id)];
      const bool first = link.slowest <= 0;
      link.slowest = std::max(link.slowest, flow.shared);
      link.weight += flow.weight;
      link.least_weight = first ? flow.weight : std::min(link.least_weight, flow.weight);
      link.least_latency = first ? flow.latency : std::min(link.least_latency, flow.latency);
    }
  }
}

// After the first axes a flow is where it has the coordinates of its destination on these axes and those of its source
// on all others. So along an axis the flows of all sources that agree in the coordinates from this axis on, to all
// destinations that agree in those up to it, take one leg.
void FlowSet::count_exchange(const SiblingGroups& groups, const Skew& skew) {
  reset();
  std::vector<Alike> sources, destinations;
  const std::vector<Fabric::Axis>& axes = network_.fabric().axes();
  for (std::size_t g = 0; g < groups.count(); ++g) {
    const std::span<const std::int32_t> group = groups.group(g);
    const auto takes_part = [&](std::size_t member, bool sends) {
      return skew.shares.empty() || skew.of_sender != sends || skew.shares[member] > 0;
    };
    for (std::size_t a = 0; a < axes.size(); ++a) {
      const std::int32_t stride = axes[a].stride, block = stride * axes[a].size;
      collect_alike(
          group.size(), [&](std::size_t i) { return takes_part(i, true) ? group[i] / stride : -1; }, sources);
      collect_alike(
          group.size(), [&](std::size_t i) { return takes_part(i, false) ? group[i] % block : -1; },
          destinations);
      for (const Alike& from : sources) {
        for (const Alike& to : destinations) {
          leg_.clear();
          network_.fabric().append_leg(a, from.key * stride + to.key % stride, to.key, leg_);
          for (const std::int32_t link : leg_) {
            Use& use = use_of(link);
            if (use.load <= 0) links_.push_back(link);
            use.load += static_cast<double>(from.count) * static_cast<double>(to.count);
          }
        }
      }
    }
  }
  const std::span<const double> rate = network_.bytes_per_second();
  for (const std::int32_t id : links_) {
    Use& use = uses_[place(id)];
    use.share = use.load / rate[static_cast<std::size_t>(id)];
    slowest_ = std::max(slowest_, use.share);
  }
}

BusiestLink FlowSet::busiest() {
  look_at_links();
  const std::span<const double> rate = network_.bytes_per_second();
  BusiestLink most;
  for (const std::int32_t id : links_) {
    const OnLink& link = on_link_[place(id)];
    const double seconds = link.weight / rate[static_cast<std::size_t>(id)];
    const double latency = link.least_latency;
    const bool as_busy = same_number(seconds, most.seconds_per_unit);
    if (as_busy) most.least_latency = std::max(most.least_latency, latency);
    if (!as_busy && seconds > most.seconds_per_unit) most = {seconds, latency};
  }
  return most;
}

bool FlowSet::rigid(std::size_t f) {
  if (uniform_) return true;
  look_at_links();
  const std::span<const double> rate = network_.bytes_per_second();
  return std::ranges::any_of(path(f), [&](std::int32_t id) {
    const OnLink& link = on_link_[place(id)];
    return same_number(uses_[place(id)].load / rate[static_cast<std::size_t>(id)], flows_[f].shared) &&
           same_number(link.slowest, flows_[f].shared) &&
           (link.least_weight >= flows_[f].weight || same_number(link.least_weight, flows_[f].weight));
  });
}

void FlowSet::collect_links(LinkSet& set) const {
  for (const std::int32_t link : links_) set.insert(link);
}

LinkLoads FlowSet::loads() const {
  constexpr std::size_t kBits = 64;  // going through a bit set puts links in order faster than sorting does
  std::vector<std::uint64_t> used(place_.size() / kBits + 1);
  for (const std::int32_t link : links_)
    used[static_cast<std::size_t>(link) / kBits] |= std::uint64_t{1}
                                                    << (static_cast<std::size_t>(link) % kBits);
  LinkLoads loads;
  double before = 0, share = 0;  // of the link before
  for (std::size_t word = 0; word < used.size(); ++word) {
    for (std::uint64_t bits = used[word]; bits != 0; bits &= bits - 1) {
      const auto link = static_cast<std::int32_t>(word * kBits) + std::countr_zero(bits);
      const Use& use = uses_[place(link)];
      LinkLoad* const last = loads.empty() ? nullptr : &loads.back();
      if (last == nullptr || use.share != before) share = (before = use.share) / slowest_;
      if (last != nullptr && last->end() == link && last->flows == use.load && last->use == share) {
        ++last->links;
      } else {
        loads.push_back({link, use.load, share});
      }
    }
  }
  return loads;
}

}  // namespace shardscape::network
