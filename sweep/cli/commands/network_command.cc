// shardscape network: simulates communication patterns on a fabric, as a case file describes them.
#include <fmt/format.h>

#include <iostream>
#include <optional>

#include "engine/network/fabric/faulty_fabric.h"
#include "sweep/cli/command.h"
#include "sweep/cli/reports/network_report.h"
#include "sweep/cli/terminal/cpu_time.h"

namespace shardscape::cli {

namespace {

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
