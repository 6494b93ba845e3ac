#include "engine/network/flow_set.h"

#include <algorithm>

namespace shardscape::network {

FlowSet::FlowSet(PricedNetwork& network)
    : network_(network),
      begin_{0},
      load_(network.fabric().links().size(), 0),
      slowest_on_(network.fabric().links().size(), 0) {}

void FlowSet::reset() {
  for (const std::int32_t link : links_) {
    load_[static_cast<std::size_t>(link)] = 0;
    slowest_on_[static_cast<std::size_t>(link)] = 0;
  }
  flows_.clear();
  links_.clear();
  begin_.assign(1, 0);
  uniform_ = uncontended_ = true;
  slowest_ = 0;
}

bool FlowSet::add(std::int32_t source, std::int32_t destination) {
  if (!network_.routes().append_route(source, destination, links_)) return false;
  const std::span<const double> latency = network_.latency_seconds();
  RoutedFlow flow;
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
    for (const std::int32_t id : path(f)) {
      const auto link = static_cast<std::size_t>(id);
      flow.alone = std::max(flow.alone, 1 / rate[link]);
      flow.shared = std::max(flow.shared, load_[link] / rate[link]);
    }
    slowest_ = std::max(slowest_, flow.shared);
    uncontended_ = uncontended_ && same_number(flow.alone, flow.shared);
    uniform_ = uniform_ && same_number(flow.shared, flows_.front().shared) &&
               same_number(flow.latency, flows_.front().latency);
  }
  if (uniform_) return;
  for (std::size_t f = 0; f < flows_.size(); ++f) {
    for (const std::int32_t id : path(f)) {
      double& slowest = slowest_on_[static_cast<std::size_t>(id)];
      slowest = std::max(slowest, flows_[f].shared);
    }
  }
}

bool FlowSet::rigid(std::size_t f) const {
  if (uniform_) return true;
  const std::span<const double> rate = network_.bytes_per_second();
  return std::ranges::any_of(path(f), [&](std::int32_t id) {
    const auto link = static_cast<std::size_t>(id);
    return same_number(load_[link] / rate[link], flows_[f].shared) &&
           same_number(slowest_on_[link], flows_[f].shared);
  });
}

void FlowSet::collect_links(LinkSet& set) const {
  for (const std::int32_t link : links_) set.insert(link);
}

}  // namespace shardscape::network
