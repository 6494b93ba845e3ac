// Output of a simulated network case: JSON, a table, a timeline.
#pragma once

#include <cstdint>
#include <ostream>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/network/collectives/traffic_builder.h"
#include "engine/network/fabric/fabric.h"
#include "engine/network/flows/flow_simulator.h"
#include "results_schema/disk/output_file.h"
#include "sweep/network_case/network_case.h"

namespace shardscape::cli {

/// What a link carries during a whole run.
struct LinkLoad {
  double bytes = 0;
  std::int64_t flows = 0;  ///< connections that use it
};

/// Loads by link id. O(messages) where rounds are taken turn by turn.
std::vector<LinkLoad> link_loads(const network::PatternTraffic& plan, std::size_t links);

struct SimulatedCase {
  const network_case::NetworkCase& network;
  const network::PatternTraffic& plan;
  std::span<const double> bytes_per_second;  ///< rate of each link, after faults
  network::FlowResult result;
  double cpu_seconds = 0;  ///< of the simulation itself
};

/// Prints completion_time_s, messages, links_used, max_link_utilisation, events, cpu_s in one line.
void print_json(std::ostream& out, const SimulatedCase& simulated);
/// Prints totals and the busiest links.
void print_report(std::ostream& out, const SimulatedCase& simulated);

/// Writes the utilisation of every link over time as counter tracks of the Trace Event Format, which ui.perfetto.dev
/// and chrome://tracing open, while the simulation runs. Throws StoreError where the file cannot be written.
class TimelineWriter : public network::RateObserver {
 public:
  /// `plan` must outlive this object.
  TimelineWriter(results::OutputPath file, const network::Fabric& fabric, const network::PatternTraffic& plan,
                 std::span<const double> bytes_per_second);
  void rate_changed(double time, std::int32_t connection, double bytes_per_second) override;
  void rerouted(std::int32_t connection, std::span<const std::int32_t> path) override;
  /// Ends the document; call once, after the simulation.
  void finish();

 private:
  [[nodiscard]] std::span<const std::int32_t> path(std::int32_t connection) const;
  void write(std::int32_t link, double utilisation);
  void flush();

  results::OutputFile file_;
  std::ostream& out_;
  const network::Fabric& fabric_;
  const network::PatternTraffic& plan_;
  std::span<const double> capacity_;
  std::vector<std::vector<std::int32_t>>
      alike_;  ///< by link, the links that it stands for; empty: none is folded
  /// The current path of connections that have changed theirs.
  std::unordered_map<std::int32_t, std::vector<std::int32_t>> rerouted_;
  std::vector<double> connection_rate_;
  std::vector<double> link_rate_, written_;
  std::vector<std::int32_t> flows_;    ///< number of active connections over each link
  std::vector<std::int32_t> changed_;  ///< links whose load has changed at time_
  std::vector<char> is_changed_;
  double time_ = 0;
  bool first_ = true;
};

}  // namespace shardscape::cli
