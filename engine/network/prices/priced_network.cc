#include "engine/network/prices/priced_network.h"

#include <algorithm>

#include "engine/network/collectives/collectives.h"
#include "engine/network/collectives/traffic_builder.h"
#include "engine/network/fabric/step_latency.h"

namespace shardscape::network {

LinkShares link_shares(const StackProfile::Communication& communication, const FabricSpec& fabric) {
  return {communication.scale_up_fraction, communication.scale_out_share(fabric)};
}

PricedNetwork::PricedNetwork(const Fabric& fabric, const StackProfile::Communication& communication)
    : communication_(communication), routes_(fabric) {
  const LinkShares shares = link_shares(communication, fabric.spec());
  for (const DimensionSpec& dimension : fabric.spec().dimensions)
    fraction_.push_back(dimension.scope == LinkScope::scale_up ? shares.scale_up : shares.scale_out);
  scale();
}

void PricedNetwork::set_faults(const FaultSet& faults) {
  routes_.set_faults(faults);
  scale();
}

void PricedNetwork::scale() {
  const std::vector<Link>& links = fabric().links();
  bytes_per_second_.resize(links.size());
  for (std::size_t i = 0; i < links.size(); ++i) {
    bytes_per_second_[i] =
        fraction_[static_cast<std::size_t>(links[i].dimension)] * routes_.bytes_per_second()[i];
  }
}

double PricedNetwork::step_latency(std::span<const std::int32_t> path) const {
  double latency = 0;
  for (const std::int32_t id : path) latency += latency_seconds()[static_cast<std::size_t>(id)];
  return latency + network::step_latency(fabric(), communication_, path);
}

void PricedNetwork::add_rank_steps(const Pattern& pattern, Traffic& traffic) const {
  for (Connection& connection : traffic.connections) {
    if (pattern.rank_steps) connection.latency = step_latency(traffic.path(connection));
  }
}

bool PricedNetwork::has_switches_for(const Pattern& pattern) const {
  if (pattern.algorithm != Algorithm::in_network || !routes_.cut()) return true;
  SwitchTree tree;
  return std::ranges::all_of(pattern.groups, [&](const std::vector<std::int32_t>& group) {
    return find_switch_tree(routes_, group, tree);
  });
}

std::optional<std::vector<PricedNetwork::Drain>> PricedNetwork::drains(const Pattern& pattern) {
  auto built = build_traffic({pattern}, routes_);
  if (!built) return std::nullopt;
  add_rank_steps(pattern, built->traffic);
  struct Ends final : RateObserver {
    std::vector<Drain> of;
    void rate_changed(double time, std::int32_t connection, double rate) override {
      if (rate <= 0) of[static_cast<std::size_t>(connection)].seconds = time;
    }
  } ends;
  for (Connection& connection : built->traffic.connections) {
    ends.of.push_back({connection.latency, 0});
    connection.latency = 0;
  }
  (void)simulator_.run_traffic(built->traffic, bytes_per_second_, &ends);
  return std::move(ends.of);
}

std::optional<double> PricedNetwork::simulate(const Pattern& pattern) {
  if (!has_switches_for(pattern)) return std::nullopt;
  auto built = build_traffic({pattern}, routes_);
  if (!built) return std::nullopt;
  add_rank_steps(pattern, built->traffic);
  return simulator_.run_traffic(built->traffic, bytes_per_second_).completion_time;
}

}  // namespace shardscape::network
