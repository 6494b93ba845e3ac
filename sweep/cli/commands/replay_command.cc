// shardscape replay: replays Chakra execution traces on a fabric.
#include <algorithm>
#include <iostream>
#include <optional>

#include "engine/base/safe_text.h"
#include "engine/network/fabric/fabric.h"
#include "engine/timeline/replay.h"
#include "sweep/chakra/trace_folder.h"
#include "sweep/cli/command.h"
#include "sweep/cli/commands/fault_parser.h"
#include "sweep/cli/reports/report.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/cli/terminal/usage.h"
#include "sweep/yaml/load.h"

namespace shardscape::cli {

namespace {

constexpr const char* kReplayFooter =
    R"(Examples:
  shardscape replay traces --cluster dgx-h100
  shardscape replay traces --cluster a100-torus2d-ring-64 --stack megatron-core --json
  shardscape replay traces --cluster a100-torus2d-ring-64 --stack megatron-core --fault 0-1=0.5
  shardscape simulate study.yaml --chakra traces && shardscape replay traces --cluster dgx-a100 --stack megatron-core

DIR holds one trace per rank, PREFIX.RANK.et for ranks 0, 1, ... Process groups come from a JSON object of group
names and lists of ranks (comm_groups.json, or the only .json file) or from METADATA nodes; where neither defines
group 0, it is all ranks. Rank r runs on GPU r. Without --stack messages use links fully and calls cost nothing.
A compute node takes the time of its attribute shardscape_duration_ns, or else duration_micros; without either, the
time of its num_ops and tensor_size on the cluster's device. MEM_LOAD and MEM_STORE nodes take tensor_size over the
HBM bandwidth. Collectives of the host (PyTorch's c10d and nccl operators) are calls that start kernels; the kernels
are what moves the data.)";

struct ReplayArguments {
  std::filesystem::path folder;
  std::string cluster, stack;
  std::int64_t gpus = 0;  ///< 0: as many as there are traces, or the number that the cluster has
  std::vector<std::string> faults;
  std::string order = "id";
  bool json = false;
};

/// The machine of the replay, read with every problem of its files.
struct Machine {
  yaml::Cluster cluster;
  std::optional<StackProfile> stack;
  FabricSpec fabric;
};

Machine load_machine(const ReplayArguments& arguments, const CommonOptions& common, std::int64_t ranks) {
  const yaml::Catalog catalog = make_catalog(common);
  Machine machine;
  ProblemList problems;
  if (auto cluster = yaml::load_cluster(catalog, arguments.cluster)) {
    machine.cluster = *std::move(cluster);
    const bool open = machine.cluster.fabric.open();
    const std::int64_t gpus = arguments.gpus > 0 ? arguments.gpus
                              : open             ? ranks
                                                 : machine.cluster.fabric.fabric.size();
    Problems found;
    machine.fabric = machine.cluster.fabric.instantiate(gpus, found);
    for (const Problem& problem : found.list()) {
      problems.add(arguments.cluster + ": " + problem.field + ": " + problem.message);
    }
  } else {
    problems.add(cluster.error(), "--cluster");
  }
  if (!arguments.stack.empty()) {
    auto stack = yaml::load_stack(catalog, arguments.stack);
    if (stack) {
      machine.stack = *std::move(stack);
    } else {
      problems.add(stack.error(), "--stack");
    }
  }
  problems.finish();
  return machine;
}

Rows ranks_of(const timeline::Replay& replay) {
  Rows ranks({{"rank"},
              {"compute", "compute_s"},
              {"comm", "comm_s"},
              {"exposed", "exposed_comm_s"},
              {"idle", "idle_s"},
              {"busy"},
              Rows::hidden("end_s")});
  for (const timeline::RankUse& use : replay.ranks) {
    ranks.add({cell::number(static_cast<std::int64_t>(ranks.size())), cell::seconds(use.compute),
               cell::seconds(use.communication), cell::seconds(use.exposed), cell::seconds(use.idle),
               cell::share(replay.step_time > 0 ? use.compute / replay.step_time : 0),
               cell::seconds(use.end)});
  }
  return ranks;
}

void print_json(const timeline::Replay& replay, std::int64_t estimated) {
  const Json document = {{"step_time_s", replay.step_time},  {"nodes", replay.nodes},
                         {"messages", replay.messages},      {"events", replay.events},
                         {"estimated_durations", estimated}, {"ranks", ranks_of(replay).json()}};
  std::cout << json_text(document, 2) << '\n';
}

void print_report(const ReplayArguments& arguments, const timeline::Replay& replay) {
  constexpr std::size_t kShown = 16;
  std::cout << "step time  " << format_seconds(replay.step_time) << '\n'
            << "traces     " << format_count(replay.ranks.size()) << " ranks, " << format_count(replay.nodes)
            << " nodes, " << format_count(replay.messages) << " messages on " << arguments.cluster
            << (arguments.stack.empty() ? "" : ", " + arguments.stack) << "\n\n";
  ranks_of(replay).print(std::cout, 0, kShown);
  if (replay.ranks.size() > kShown) {
    std::cout << "and " << format_count(replay.ranks.size() - kShown) << " more ranks; --json has all\n";
  }
}

int run_replay(const ReplayArguments& arguments, const CommonOptions& common) {
  auto loaded = chakra::load(arguments.folder);
  if (!loaded) throw BadInput(split_lines(loaded.error()));
  const Machine machine =
      load_machine(arguments, common, static_cast<std::int64_t>(loaded->trace.ranks.size()));
  const std::int64_t estimated = timeline::estimate_durations(loaded->trace, machine.cluster.device);
  const network::Fabric fabric(machine.fabric);
  timeline::ReplayOptions options;
  if (machine.stack) options.stack = machine.stack->communication;
  options.memory_rate = machine.cluster.device.hbm_peak();
  options.node = machine.cluster.device.node;
  options.order = parse_enum<timeline::ReplayOrder>(arguments.order).value();
  options.faults = parse_faults(arguments.faults, machine.fabric);
  if (std::ranges::any_of(options.faults.devices,
                          [](const DeviceFault& f) { return f.compute_share != 1; })) {
    throw BadInput(
        "--fault: replay takes faults of links and memories; what a slow device takes is in its trace\n");
  }
  const auto replay = timeline::replay(loaded->trace, fabric, options);
  if (!replay) throw BadInput(split_lines(chakra::located(replay.error(), *loaded)));
  if (arguments.json) {
    print_json(*replay, estimated);
    return kDone;
  }
  print_report(arguments, *replay);
  std::cout.flush();
  if (estimated > 0) {
    std::cerr << "note: " << format_count(estimated)
              << " nodes have no duration; they took that of their num_ops and tensor_size on "
              << machine.cluster.device.name << '\n';
  }
  return kDone;
}

}  // namespace

void add_replay_command(const Program& program) {
  const auto [command, arguments] =
      program.add("replay", "Run Chakra execution traces on a fabric", kReplayFooter, run_replay);
  command->add_option("DIR", arguments->folder, "The folder of the traces")->required();
  command->add_option("--cluster", arguments->cluster, "The cluster: a preset or a file")->required();
  command->add_option("--stack", arguments->stack, "The software stack: a preset or a file");
  command->add_option("--gpus", arguments->gpus, "GPUs of a cluster of any size (default: one per trace)")
      ->check(whole_number(1));
  add_value(*command, "--fault", arguments->faults, "FAULT",
            "A sick link or memory, as for simulate: 0-1=0.5, 0-1=dead or hbm_derate:1=0.5 (slows the "
            "copies of collectives; the rest is in the trace); repeatable");
  command
      ->add_option("--order", arguments->order,
                   "What a free device runs first of the compute nodes that are ready: id (the lowest node "
                   "id, as ASTRA-sim does) or ready (what would be ready first if communication were free); "
                   "default: id")
      ->check(CLI::IsMember({"id", "ready"}));
  add_json(*command, arguments->json);
}

}  // namespace shardscape::cli
