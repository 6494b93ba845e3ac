// shardscape collective: the time of one collective inside a node of a device.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "engine/base/safe_text.h"
#include "engine/base/suggest.h"
#include "engine/network/protocols.h"
#include "sweep/cli/commands.h"
#include "sweep/cli/format.h"
#include "sweep/cli/text_table.h"
#include "sweep/yaml/load.h"
#include "sweep/yaml/number.h"
#include "sweep/yaml/quantity_text.h"

namespace shardscape {
/// Operations that devices have constants for.
enum class NodeOperation : std::uint8_t { all_reduce, reduce_scatter, all_gather, all_to_all };
SHARDSCAPE_ENUM_NAMES(NodeOperation, "all_reduce", "reduce_scatter", "all_gather", "all_to_all");
}  // namespace shardscape

namespace shardscape::cli {

namespace {

constexpr const char* kCollectiveFooter =
    "Examples:\n"
    "  shardscape collective all_reduce 16MB --device h100-sxm-80gb --gpus 8\n"
    "  shardscape collective all_reduce 64KiB --device b200-sxm-180gb --gpus 4 --kernels trtllm\n"
    "\n"
    "Alone in one node, over the links of the device's data sheet: by NCCL's protocols or, with --kernels, "
    "by\n"
    "the all-reduce of an inference engine (vllm, sglang, trtllm). The size is that of the whole tensor, as\n"
    "nccl-tests counts it. For calls across nodes and between others see 'shardscape network'.";

constexpr std::int64_t kMostRanks = 1024;
constexpr double kMostBytes = 1e13;

struct CollectiveArguments {
  std::string operation, size, device, gpus, kernels = "library";
  bool eager = false, json = false;
};

struct CollectiveRequest {
  DeviceSpec device;
  network::Operation operation = network::Operation::all_reduce;
  AllReduceKernels kernels = AllReduceKernels::library;
  std::int32_t ranks = 2;
  Bytes bytes;
};

network::Operation of_node(NodeOperation operation) {
  switch (operation) {
    case NodeOperation::all_reduce:
      return network::Operation::all_reduce;
    case NodeOperation::reduce_scatter:
      return network::Operation::reduce_scatter;
    case NodeOperation::all_gather:
      return network::Operation::all_gather;
    case NodeOperation::all_to_all:
      break;
  }
  return network::Operation::all_to_all;
}

class CollectiveParser {
 public:
  CollectiveRequest parse(const CollectiveArguments& words, const yaml::Catalog& catalog) {
    CollectiveRequest request;
    request.operation = of_node(named<NodeOperation>("operation", words.operation));
    request.kernels = named<AllReduceKernels>("--kernels", words.kernels);
    const bool own = request.kernels != AllReduceKernels::library;
    if (own && request.operation != network::Operation::all_reduce)
      bad("--kernels", "engines have kernels for all_reduce alone");
    if (words.eager && !own) bad("--eager", "has a meaning with --kernels vllm, sglang or trtllm alone");
    const auto ranks = yaml::parse_integer(words.gpus, 2, kMostRanks);
    if (!ranks) bad("--gpus", ranks.error());
    request.ranks = static_cast<std::int32_t>(ranks.value_or(2));
    const auto bytes = yaml::parse_quantity(words.size, yaml::Dimension::data);
    if (!bytes) {
      bad("size", bytes.error());
    } else if (*bytes < 1 || *bytes > kMostBytes) {
      bad("size", fmt::format("must be 1 B to {}", format_si(kMostBytes, "B")));
    }
    request.bytes = Bytes(bytes.value_or(1));
    const auto device = yaml::load_device(catalog, words.device);
    if (device) {
      request.device = *device;
    } else {
      problems_.add(device.error(), "--device");
    }
    problems_.finish();
    return request;
  }

 private:
  void bad(const std::string& where, const std::string& what) {
    problems_.add(fmt::format("{}: {}", where, what));
  }

  template <class E>
  E named(const char* option, const std::string& text) {
    const auto value = parse_enum<E>(text);
    const auto names = enum_names<E>();
    if (!value)
      bad(option, fmt::format("no '{}'{}; there are {}", text, did_you_mean(text, names), join_names(names)));
    return value.value_or(E{});
  }

  ProblemList problems_;
};

/// Bytes over each rank's link and direction, over the size: what nccl-tests calls bus bandwidth counts them.
double link_share_of(network::Operation operation, double n) {
  return (operation == network::Operation::all_reduce ? 2 : 1) * (n - 1) / n;
}

int run_collective(const CollectiveArguments& arguments, const CommonOptions& common) {
  const CollectiveRequest request = CollectiveParser().parse(arguments, make_catalog(common));
  const auto time =
      request.kernels == AllReduceKernels::library
          ? network::collective_in_node(request.device, request.operation, request.ranks, request.bytes)
          : network::all_reduce_in_node(request.device, request.kernels, arguments.eager, request.ranks,
                                        request.bytes);
  if (!time) {
    ProblemList problems;
    problems.add(
        fmt::format("--device: {} has no constants of collectives inside a node (keys nccl and "
                    "custom_all_reduce) or no links",
                    request.device.name));
    problems.finish();
  }
  const double seconds = time->value();
  const double bus = request.bytes.value() * link_share_of(request.operation, request.ranks) / seconds;
  if (arguments.json) {
    const nlohmann::ordered_json json = {
        {"time_s", seconds}, {"bytes", request.bytes.value()}, {"bus_bandwidth_bytes_per_s", bus}};
    std::cout << json_text(json, 2) << '\n';
    return kDone;
  }
  TextTable table;
  table.add_column("", TextTable::Align::left);
  table.add_column("", TextTable::Align::left);
  table.add_row(
      {"call", fmt::format("{} of {} among {} GPUs, {}", arguments.operation,
                           format_si(request.bytes.value(), "B"), request.ranks, request.device.name)});
  table.add_row({"kernels", request.kernels == AllReduceKernels::library ? "NCCL" : arguments.kernels});
  table.add_row({"time", format_seconds(seconds)});
  table.add_row({"bus bandwidth", format_si(bus, "B/s")});
  table.print(std::cout);
  return kDone;
}

}  // namespace

void add_collective_command(CLI::App& app, const CommonOptions& common, Action& action) {
  CLI::App* const command =
      app.add_subcommand("collective", "The time of one collective inside a node of a device");
  const auto arguments = std::make_shared<CollectiveArguments>();
  command
      ->add_option("operation", arguments->operation, "all_reduce, reduce_scatter, all_gather or all_to_all")
      ->required();
  command->add_option("size", arguments->size, "The whole tensor: 16MB, 64KiB, ...")->required();
  command->add_option("--device", arguments->device, "A device preset or file")->required();
  command->add_option("--gpus", arguments->gpus, "Ranks, all in one node")->required();
  command->add_option("--kernels", arguments->kernels, "library (NCCL), vllm, sglang or trtllm");
  command->add_flag("--eager", arguments->eager, "Launched by the host, not by a CUDA graph");
  command->add_flag("--json", arguments->json, "One JSON document on stdout");
  command->footer(kCollectiveFooter);
  command->callback([arguments, &common, &action] {
    action = [arguments, &common] { return run_collective(*arguments, common); };
  });
}

}  // namespace shardscape::cli
