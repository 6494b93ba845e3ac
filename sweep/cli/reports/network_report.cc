// Prints a simulated network case as JSON or a table, sums up the load of each link, and writes the use of links over
// time as a Chrome trace.
#include "sweep/cli/reports/network_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "engine/base/safe_text.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/cli/terminal/text_table.h"

namespace shardscape::cli {

namespace {

constexpr std::size_t kShownLinks = 15;
constexpr double kMicroseconds = 1e6;

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

}  // namespace

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

}  // namespace shardscape::cli
