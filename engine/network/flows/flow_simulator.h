// The production simulator: event-driven, fluid, max-min fair.
//
// Between events every connection with a message at its head drains at its max-min fair rate (Bertsekas and
// Gallager 1992, section 6.5.2): rates are feasible, and every flow has a saturated link on its path on which
// no flow is faster. When flows start or end, only the part of the allocation that can change is solved
// again: the flows that lost or may lose that certificate, found by propagation from the touched links (the
// bottleneck structure of Ros-Giralt et al. 2021), with all other flows held at their rates. The allocation
// is unique, so the result is that of solving everything (tests/support/naive_flow_simulator.h, the oracle).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/network/collectives/traffic.h"

namespace shardscape::network {

/// Is told the rate of a connection (bytes per second) whenever it changes, with the time in seconds.
class RateObserver {
 public:
  virtual ~RateObserver() = default;
  virtual void rate_changed(double time, std::int32_t connection, double bytes_per_second) = 0;
  /// From now on the connection, whose rate is 0, uses these links (for rounds of a pairwise all-to-all).
  virtual void rerouted(std::int32_t /*connection*/, std::span<const std::int32_t> /*path*/) {}
};

/// Reusable: memory is kept between runs. One object per thread.
class FlowSimulator {
 public:
  FlowSimulator();
  ~FlowSimulator();
  FlowSimulator(FlowSimulator&&) noexcept;
  FlowSimulator& operator=(FlowSimulator&&) noexcept;

  /// Simulates the traffic. `link_bytes_per_second`: capacity of each link in traffic.path_links, > 0. Once in a steady
  /// state, events allocate no memory.
  FlowResult run_traffic(const Traffic& traffic, std::span<const double> link_bytes_per_second,
                         RateObserver* observer = nullptr, GateObserver* gates = nullptr);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardscape::network
