#include "engine/network/flow_set.h"

#include <algorithm>
#include <limits>

namespace shardscape::network {

FlowSet::FlowSet(PricedNetwork& network)
    : network_(network),
      begin_{0},
      load_(network.fabric().links().size(), 0),
      share_(network.fabric().links().size(), 0),
      on_link_(network.fabric().links().size()) {}

void FlowSet::reset() {
  for (const std::int32_t link : links_) {
    load_[static_cast<std::size_t>(link)] = share_[static_cast<std::size_t>(link)] = 0;
    on_link_[static_cast<std::size_t>(link)] = {};
  }
  flows_.clear();
  links_.clear();
  begin_.assign(1, 0);
  uniform_ = uncontended_ = true;
  slowest_ = 0;
}

bool FlowSet::add(std::int32_t source, std::int32_t destination, double weight) {
  if (!network_.routes().append_route(source, destination, links_)) return false;
  const std::span<const double> latency = network_.latency_seconds();
  RoutedFlow flow;
  flow.weight = weight;
  for (std::size_t i = begin_.back(); i < links_.size(); ++i) {
    const auto link = static_cast<std::size_t>(links_[i]);
    load_[link] += 1;
    flow.latency += latency[link];
  }
  flows_.push_back(flow);
  begin_.push_back(links_.size());
  return true;
}

void FlowSet::settle() {
  const std::span<const double> rate = network_.bytes_per_second();
  for (std::size_t f = 0; f < flows_.size(); ++f) {
    RoutedFlow& flow = flows_[f];
    double narrowest = std::numeric_limits<double>::infinity();
    for (const std::int32_t id : path(f)) {
      const auto link = static_cast<std::size_t>(id);
      double& share = share_[link];
      if (share <= 0) share = load_[link] / rate[link];
      narrowest = std::min(narrowest, rate[link]);
      flow.shared = std::max(flow.shared, share);
    }
    flow.alone = std::max(flow.alone, 1 / narrowest);
    slowest_ = std::max(slowest_, flow.shared);
    uncontended_ = uncontended_ && same_number(flow.alone, flow.shared);
    uniform_ = uniform_ && same_number(flow.shared, flows_.front().shared) &&
               same_number(flow.latency, flows_.front().latency) &&
               same_number(flow.weight, flows_.front().weight);
  }
  if (uniform_) return;
  for (std::size_t f = 0; f < flows_.size(); ++f) {
    const RoutedFlow& flow = flows_[f];
    for (const std::int32_t id : path(f)) {
      OnLink& link = on_link_[static_cast<std::size_t>(id)];
      const bool first = link.slowest <= 0;
      link.slowest = std::max(link.slowest, flow.shared);
      link.weight += flow.weight;
      link.least_weight = first ? flow.weight : std::min(link.least_weight, flow.weight);
      link.least_latency = first ? flow.latency : std::min(link.least_latency, flow.latency);
    }
  }
}

BusiestLink FlowSet::busiest() const {
  const std::span<const double> rate = network_.bytes_per_second();
  BusiestLink most;
  for (const std::int32_t id : links_) {
    const auto link = static_cast<std::size_t>(id);
    const double seconds = on_link_[link].weight / rate[link];
    const double latency = on_link_[link].least_latency;
    const bool as_busy = same_number(seconds, most.seconds_per_unit);
    if (as_busy) most.least_latency = std::max(most.least_latency, latency);
    if (!as_busy && seconds > most.seconds_per_unit) most = {seconds, latency};
  }
  return most;
}

bool FlowSet::rigid(std::size_t f) const {
  if (uniform_) return true;
  const std::span<const double> rate = network_.bytes_per_second();
  return std::ranges::any_of(path(f), [&](std::int32_t id) {
    const auto link = static_cast<std::size_t>(id);
    return same_number(load_[link] / rate[link], flows_[f].shared) &&
           same_number(on_link_[link].slowest, flows_[f].shared) &&
           (on_link_[link].least_weight >= flows_[f].weight ||
            same_number(on_link_[link].least_weight, flows_[f].weight));
  });
}

void FlowSet::collect_links(LinkSet& set) const {
  for (const std::int32_t link : links_) set.insert(link);
}

}  // namespace shardscape::network
