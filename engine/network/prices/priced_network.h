// A fabric as one software stack drives it: the achieved share of each link's bandwidth, the faults, and the
// simulator on top.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "engine/network/collectives/patterns.h"
#include "engine/network/fabric/faulty_fabric.h"
#include "engine/network/flows/flow_simulator.h"
#include "engine/spec/stack.h"

namespace shardscape::network {

/// The shares of the links' bandwidth that a stack achieves, 0..1.
struct LinkShares {
  double scale_up = 1, scale_out = 1;
  friend bool operator==(const LinkShares&, const LinkShares&) = default;
};
LinkShares link_shares(const StackProfile::Communication& communication, const FabricSpec& fabric);

/// A fabric as a stack drives it. Keeps detours and scratch memory: one object per thread.
class PricedNetwork {
 public:
  /// `fabric` and `communication` must outlive this object.
  PricedNetwork(const Fabric& fabric, const StackProfile::Communication& communication);

  void set_faults(const FaultSet& faults);

  [[nodiscard]] const Fabric& fabric() const { return routes_.fabric(); }
  [[nodiscard]] FaultyFabric& routes() { return routes_; }
  [[nodiscard]] const FaultyFabric& routes() const { return routes_; }
  /// Index: link; bytes per second that the stack achieves, under the faults.
  [[nodiscard]] std::span<const double> bytes_per_second() const { return bytes_per_second_; }
  [[nodiscard]] std::span<const double> latency_seconds() const { return routes_.latency_seconds(); }
  /// Seconds that a message takes over these links besides its bytes: their latency and, if it is one step of an
  /// algorithm, the stack's rank step; no rank step on hops between switches, which reduce.
  [[nodiscard]] double step_latency(std::span<const std::int32_t> path) const;

  /// Adds to all connections the rank steps that a pattern with `rank_steps` asks for.
  void add_rank_steps(const Pattern& pattern, Traffic& traffic) const;

  /// Whether a pattern that switches reduce still has its switches despite dead links; true for other patterns.
  [[nodiscard]] bool has_switches_for(const Pattern& pattern) const;

  /// Seconds from the start to the last receipt of one pattern, all of its groups at once. Empty where dead links cut
  /// it, or where build_traffic() refuses so many messages. The pattern must suit the healthy fabric.
  std::optional<double> simulate(const Pattern& pattern);

  /// For a pattern of one round, whose messages all start at once: each connection's latency, and the seconds until it
  /// has drained if the pattern has the bytes it names. Times of other bytes are in proportion, since rates don't
  /// depend on bytes and latency occupies no link. Empty where dead links cut the pattern.
  struct Drain {
    double latency = 0, seconds = 0;
  };
  std::optional<std::vector<Drain>> drains(const Pattern& pattern);

 private:
  void scale();

  const StackProfile::Communication& communication_;
  FaultyFabric routes_;
  std::vector<double> fraction_;  ///< index: dimension; share of the bandwidth
  std::vector<double> bytes_per_second_;
  FlowSimulator simulator_;
};

}  // namespace shardscape::network
