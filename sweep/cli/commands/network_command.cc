// shardscape network: simulates communication patterns on a fabric, as a case file describes them, and prints the
// result as JSON or a table; the use of links over time as a Chrome trace.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <ostream>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/base/safe_text.h"
#include "engine/network/collectives/traffic_builder.h"
#include "engine/network/fabric/fabric.h"
#include "engine/network/fabric/faulty_fabric.h"
#include "engine/network/flows/flow_simulator.h"
#include "results_schema/disk/output_file.h"
#include "sweep/cli/command.h"
#include "sweep/cli/terminal/cpu_time.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/cli/terminal/text_table.h"
#include "sweep/network_case/network_case.h"

namespace shardscape::cli {

namespace {

/// What a link carries during a whole run.
struct LinkLoad {
  double bytes = 0;
  std::int64_t flows = 0;  ///< connections that use it
};

struct SimulatedCase {
  const network_case::NetworkCase& network;
  const network::PatternTraffic& plan;
  std::span<const double> bytes_per_second;  ///< rate of each link, after faults
  network::FlowResult result;
  double cpu_seconds = 0;  ///< of the simulation itself
};

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

constexpr std::size_t kShownLinks = 15;
constexpr double kMicroseconds = 1e6;

void add_load(std::vector<LinkLoad>& loads, std::span<const std::int32_t> path, double bytes) {
  for (const std::int32_t link : path) {
    LinkLoad& load = loads[static_cast<std::size_t>(link)];
    load.bytes += bytes;
    ++load.flows;
  }
}

/// Adds the loads of all rounds, in which each pair of members is a connection.
void add_rounds(std::vector<LinkLoad>& loads, const network::Traffic& traffic,
                const network::PairwiseRounds& rounds) {
  const auto members = static_cast<std::int32_t>(rounds.ranks.size());
  std::vector<std::int32_t> path;
  for (std::int32_t i = 0; i < members; ++i) {
    const network::Gate& gate = traffic.gates[static_cast<std::size_t>(rounds.first_gate + i)];
    const double bytes = traffic.messages[static_cast<std::size_t>(gate.first_message)].bytes;
    const auto member = static_cast<std::size_t>(i);
    for (std::int32_t round = 0; round + 1 < members; ++round) {
      path.clear();
      const std::int32_t to = rounds.ranks[rounds.partner(member, round)];
      if (rounds.fabric->append_route(rounds.ranks[member], to, path)) add_load(loads, path, bytes);
    }
  }
}

/// Loads by link id. O(messages) where rounds are taken turn by turn.
std::vector<LinkLoad> link_loads(const network::PatternTraffic& plan, std::size_t links) {
  const network::Traffic& traffic = plan.traffic;
  constexpr double kOfRounds = -1;
  std::vector<double> bytes(traffic.connections.size());
  for (const network::Gate& gate : traffic.gates) {
    for (std::int32_t m = gate.first_message; m < gate.first_message + gate.messages; ++m) {
      const network::Message& message = traffic.messages[static_cast<std::size_t>(m)];
      double& sum = bytes[static_cast<std::size_t>(message.connection)];
      gate.rounds >= 0 ? sum = kOfRounds : sum += message.bytes * gate.times;
    }
  }
  std::vector<LinkLoad> loads(links);
  for (std::size_t c = 0; c < bytes.size(); ++c) {
    if (bytes[c] != kOfRounds) add_load(loads, traffic.path(traffic.connections[c]), bytes[c]);
  }
  for (const network::PairwiseRounds& rounds : traffic.rounds) add_rounds(loads, traffic, rounds);
  for (std::size_t link = 0; link < plan.stands_for.size(); ++link)
    loads[link] = loads[static_cast<std::size_t>(plan.stands_for[link])];
  return loads;
}

struct Totals {
  std::vector<LinkLoad> loads;
  std::int64_t links_used = 0;
  double max_utilisation = 0;

  explicit Totals(const SimulatedCase& simulated)
      : loads(link_loads(simulated.plan, simulated.bytes_per_second.size())) {
    for (std::size_t link = 0; link < loads.size(); ++link) {
      if (loads[link].bytes <= 0) continue;
      ++links_used;
      max_utilisation = std::max(max_utilisation, utilisation(simulated, link));
    }
  }

  [[nodiscard]] double utilisation(const SimulatedCase& simulated, std::size_t link) const {
    const double time = simulated.result.completion_time;
    return time > 0 ? loads[link].bytes / (simulated.bytes_per_second[link] * time) : 0;
  }
};

/// Prints completion_time_s, messages, links_used, max_link_utilisation, events, cpu_s in one line.
void print_json(std::ostream& out, const SimulatedCase& simulated) {
  const Totals totals(simulated);
  const nlohmann::ordered_json document = {{"completion_time_s", simulated.result.completion_time},
                                           {"messages", simulated.plan.messages()},
                                           {"links_used", totals.links_used},
                                           {"max_link_utilisation", totals.max_utilisation},
                                           {"events", simulated.result.events},
                                           {"cpu_s", simulated.cpu_seconds}};
  out << json_text(document) << '\n';
}

/// Prints totals and the busiest links.
void print_report(std::ostream& out, const SimulatedCase& simulated) {
  const Totals totals(simulated);
  const network::Fabric& fabric = simulated.network.fabric;
  const double time = simulated.result.completion_time;
  if (!simulated.network.name.empty()) out << "case         " << simulated.network.name << '\n';
  out << "fabric       " << format_count(fabric.ranks()) << " ranks, " << format_count(fabric.links().size())
      << " links, " << format_count(totals.links_used) << " of them used\n"
      << "messages     " << format_count(simulated.plan.messages()) << '\n'
      << "completion   " << format_seconds(time) << '\n'
      << "events       " << format_count(simulated.result.events) << " in "
      << format_seconds(simulated.cpu_seconds) << " of CPU\n";
  if (totals.links_used == 0) return;

  std::vector<std::size_t> order(totals.loads.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::erase_if(order, [&](std::size_t link) { return totals.loads[link].bytes <= 0; });
  const std::size_t shown = std::min(kShownLinks, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(shown), order.end(),
                    [&](std::size_t a, std::size_t b) {
                      const double ua = totals.utilisation(simulated, a),
                                   ub = totals.utilisation(simulated, b);
                      return ua != ub ? ua > ub : a < b;
                    });
  out << "\nbusiest links"
      << (shown < order.size() ? fmt::format(", {} of {}", shown, format_count(totals.links_used)) : "")
      << '\n';
  TextTable table({left("link"), "bandwidth", "bytes", "flows", "utilisation", left("")});
  for (std::size_t i = 0; i < shown; ++i) {
    const std::size_t link = order[i];
    const double utilisation = totals.utilisation(simulated, link);
    table.add_row({fabric.link_name(static_cast<std::int32_t>(link)),
                   format_si(simulated.bytes_per_second[link], "B/s"), format_bytes(totals.loads[link].bytes),
                   format_count(totals.loads[link].flows), format_percent(utilisation),
                   bar(utilisation, 24)});
  }
  table.print(out, 2);
}

TimelineWriter::TimelineWriter(results::OutputPath file, const network::Fabric& fabric,
                               const network::PatternTraffic& plan, std::span<const double> bytes_per_second)
    : file_(std::move(file)),
      out_(file_.stream()),
      fabric_(fabric),
      plan_(plan),
      capacity_(bytes_per_second),
      connection_rate_(plan.traffic.connections.size()),
      link_rate_(bytes_per_second.size()),
      written_(bytes_per_second.size()),
      flows_(bytes_per_second.size()),
      is_changed_(bytes_per_second.size()) {
  if (!plan.stands_for.empty()) alike_.resize(plan.stands_for.size());
  for (std::size_t link = 0; link < plan.stands_for.size(); ++link)
    alike_[static_cast<std::size_t>(plan.stands_for[link])].push_back(static_cast<std::int32_t>(link));
  out_ << R"({"displayTimeUnit":"ns","traceEvents":[)";
}

std::span<const std::int32_t> TimelineWriter::path(std::int32_t connection) const {
  const auto other = rerouted_.find(connection);
  if (other != rerouted_.end()) return other->second;
  return plan_.traffic.path(plan_.traffic.connections[static_cast<std::size_t>(connection)]);
}

void TimelineWriter::rerouted(std::int32_t connection, std::span<const std::int32_t> path) {
  rerouted_[connection].assign(path.begin(), path.end());
}

void TimelineWriter::rate_changed(double time, std::int32_t connection, double bytes_per_second) {
  if (time != time_) flush();
  time_ = time;
  double& rate = connection_rate_[static_cast<std::size_t>(connection)];
  const double change = bytes_per_second - rate;
  const int started = (bytes_per_second > 0 ? 1 : 0) - (rate > 0 ? 1 : 0);
  rate = bytes_per_second;
  for (const std::int32_t id : path(connection)) {
    const auto link = static_cast<std::size_t>(id);
    link_rate_[link] += change;
    flows_[link] += started;
    if (flows_[link] == 0) link_rate_[link] = 0;  // removes what rounding has left
    if (is_changed_[link] == 0) changed_.push_back(id);
    is_changed_[link] = 1;
  }
}

void TimelineWriter::write(std::int32_t link, double utilisation) {
  const nlohmann::ordered_json event = {{"ph", "C"},
                                        {"pid", 0},
                                        {"name", fabric_.link_name(link)},
                                        {"ts", time_ * kMicroseconds},
                                        {"args", {{"utilisation", utilisation}}}};
  out_ << (first_ ? "\n" : ",\n") << json_text(event);
  first_ = false;
}

void TimelineWriter::flush() {
  std::ranges::sort(changed_);
  for (const std::int32_t id : changed_) {
    const auto link = static_cast<std::size_t>(id);
    is_changed_[link] = 0;
    const double utilisation = std::clamp(link_rate_[link] / capacity_[link], 0.0, 1.0);
    if (utilisation == written_[link]) continue;
    written_[link] = utilisation;
    if (alike_.empty()) {
      write(id, utilisation);
    } else {
      for (const std::int32_t other : alike_[link]) write(other, utilisation);
    }
  }
  changed_.clear();
}

void TimelineWriter::finish() {
  flush();
  out_ << "\n]}\n";
  file_.commit();
}

constexpr const char* kNetworkFooter =
    R"(Examples:
  shardscape network case.json
  shardscape network case.json --json
  shardscape network case.json --timeline links.json      open it in ui.perfetto.dev

A case is a fabric, its faults and the patterns that run on it (bytes, seconds):
  {"topology": {"dims": [{"type": "torus", "shape": [4, 4], "bw": 100e9, "lat": 5e-7}]},
   "faults": [{"kind": "derate", "a": 1, "b": 2, "factor": 0.5}],
   "patterns": [{"op": "allreduce", "algo": "ring", "groups": [[0, 1, 2, 3]], "bytes": 67108864}]}
engine/network/README.md lists every key.)";

struct NetworkArguments {
  std::filesystem::path file;
  std::filesystem::path timeline;
  bool json = false, force = false;
};

/// Describes what the messages that were never released wait for.
std::string deadlock(const network::PatternTraffic& plan) {
  const std::vector<std::int32_t> closed = network::closed_gates(plan.traffic);
  if (closed.empty()) return "some messages were never received";
  std::size_t pattern = 0;
  while (plan.gate_ends[pattern] <= closed.front()) ++pattern;
  const network::Gate& gate = plan.traffic.gates[static_cast<std::size_t>(closed.front())];
  std::string text = fmt::format(
      "patterns[{}]: deadlock: gate {} never opens, it waits for what waits for it ({} gates in all)",
      pattern, closed.front(), closed.size());
  if (gate.messages > 0) {
    const auto& first = plan.traffic.messages[static_cast<std::size_t>(gate.first_message)];
    const auto& connection = plan.traffic.connections[static_cast<std::size_t>(first.connection)];
    text += fmt::format("; it holds the message from {} to {}", connection.source, connection.destination);
  }
  return text;
}

int run_network(const NetworkArguments& arguments, const CommonOptions& common) {
  const auto network = network_case::load_case(arguments.file);
  if (!network) throw BadInput(split_lines(network.error()));
  network::FaultyFabric fabric(network->fabric);
  fabric.set_faults(network->faults);
  const auto plan = network::build_traffic(
      network->patterns, fabric,
      common.reference ? network::TrafficLayout::repeated : network::TrafficLayout::compact);
  if (!plan) {
    throw BadInput(split_lines(network_case::located(plan.error(), arguments.file.string())));
  }

  std::optional<TimelineWriter> timeline;
  if (!arguments.timeline.empty()) {
    const std::filesystem::path inputs[] = {arguments.file};
    const results::OutputPath output(arguments.timeline, arguments.force, inputs);
    timeline.emplace(output, network->fabric, *plan, fabric.bytes_per_second());
  }
  SimulatedCase simulated{*network, *plan, fabric.bytes_per_second(), {}, 0};
  network::FlowSimulator simulator;
  const double begin = cpu_seconds();
  simulated.result =
      simulator.run_traffic(plan->traffic, fabric.bytes_per_second(), timeline ? &*timeline : nullptr);
  simulated.cpu_seconds = cpu_seconds() - begin;
  if (simulated.result.received < plan->traffic.sent()) {
    throw BadInput(arguments.file.string() + ": " + deadlock(*plan));
  }
  if (timeline) timeline->finish();
  arguments.json ? print_json(std::cout, simulated) : print_report(std::cout, simulated);
  return kDone;
}

}  // namespace

void add_network_command(const Program& program) {
  const auto [command, arguments] =
      program.add("network", "Run communication patterns on a fabric", kNetworkFooter, run_network);
  command->add_option("CASE", arguments->file, "The case (JSON)")->required();
  add_json(*command, arguments->json);
  add_value(*command, "--timeline", arguments->timeline, "OUT.json",
            "Write the utilisation of every link over time");
  command->add_flag("--force", arguments->force, "Replace the file that --timeline names");
}

}  // namespace shardscape::cli
