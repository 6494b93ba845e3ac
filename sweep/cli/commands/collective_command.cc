// shardscape collective: the time of one collective inside a node of a device.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <optional>

#include "engine/network/collectives/expert_dispatch.h"
#include "engine/network/collectives/protocols.h"
#include "sweep/cli/command.h"
#include "sweep/cli/commands/kernel_arguments.h"
#include "sweep/cli/reports/report.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/yaml/load.h"
#include "sweep/yaml/number.h"
#include "sweep/yaml/quantity_text.h"

namespace shardscape::cli {

namespace {

/// The operations for which devices have constants.
enum class NodeOperation : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  dispatch,
  combine
};

constexpr const char* kCollectiveFooter =
    R"(Examples:
  shardscape collective all_reduce 16MB --device h100-sxm-80gb --gpus 8
  shardscape collective all_reduce 64KiB --device b200-sxm-180gb --gpus 4 --kernels trtllm
  shardscape collective dispatch --tokens 128 --hidden 7168 --top-k 8 --experts 256 --device h200-sxm-141gb --gpus 16 --nodes 2

Alone in one node, over the links of the device's data sheet: by NCCL's protocols or, with --kernels, by
the all-reduce of an inference engine (vllm, sglang, trtllm). The size is that of the whole tensor, as
nccl-tests counts it. dispatch and combine move tokens to their experts and back, by DeepEP's kernels. For calls
across nodes and between others see 'shardscape network'.)";

constexpr std::int64_t kMostRanks = 1024;
constexpr double kMostBytes = 1e13;

struct CollectiveArguments {
  std::string operation, size, device, gpus, kernels;
  std::string tokens, hidden, top_k, experts, nodes, sms;
  bool eager = false, json = false;
};

/// An option with a number of an exchange between experts.
struct ExchangeWord {
  const char* option;
  std::string CollectiveArguments::*text;
  double network::ExpertExchange::*value;
  bool needed;
};
constexpr ExchangeWord kExchangeWords[] = {
    {"--tokens", &CollectiveArguments::tokens, &network::ExpertExchange::tokens, true},
    {"--hidden", &CollectiveArguments::hidden, &network::ExpertExchange::hidden, true},
    {"--top-k", &CollectiveArguments::top_k, &network::ExpertExchange::top_k, true},
    {"--experts", &CollectiveArguments::experts, &network::ExpertExchange::experts, true},
    {"--nodes", &CollectiveArguments::nodes, &network::ExpertExchange::nodes, false},
    {"--sms", &CollectiveArguments::sms, &network::ExpertExchange::sms, false},
};

struct CollectiveRequest {
  DeviceSpec device;
  network::Operation operation = network::Operation::all_reduce;
  AllReduceKernels kernels = AllReduceKernels::library;
  std::int32_t ranks = 2;
  Bytes bytes;
  std::optional<network::ExpertExchange> exchange;  ///< for dispatch and combine
  DispatchKernels dispatch = DispatchKernels::low_latency;
  network::DispatchWay way = network::DispatchWay::dispatch;
};

bool is_exchange(NodeOperation operation) {
  return operation == NodeOperation::dispatch || operation == NodeOperation::combine;
}

class CollectiveParser : private KernelWords {
 public:
  using KernelWords::KernelWords;

  CollectiveRequest parse(const CollectiveArguments& words) {
    CollectiveRequest request;
    const auto operation = named<NodeOperation>("operation", words.operation);
    request.ranks = static_cast<std::int32_t>(ranks(words.gpus, is_exchange(operation) ? 1 : 2));
    request.device = device(words.device);
    if (is_exchange(operation)) {
      read_exchange(words, operation, request);
    } else {
      request.operation = parse_enum<network::Operation>(name_of(operation)).value();
      read_collective(words, request);
    }
    finish();
    return request;
  }

 private:
  std::int64_t ranks(const std::string& text, std::int64_t least) {
    const auto value = yaml::parse_integer(text, least, kMostRanks);
    if (!value) bad("--gpus", value.error());
    return value.value_or(least);
  }

  void read_collective(const CollectiveArguments& words, CollectiveRequest& request) {
    request.kernels = named<AllReduceKernels>("--kernels", words.kernels.empty() ? "library" : words.kernels);
    const bool own = request.kernels != AllReduceKernels::library;
    if (own && request.operation != network::Operation::all_reduce)
      bad("--kernels", "engines have kernels for all_reduce alone");
    if (words.eager && !own) bad("--eager", "has a meaning with --kernels vllm, sglang or trtllm alone");
    for (const ExchangeWord& word : kExchangeWords) {
      if (!(words.*word.text).empty()) bad(word.option, "has a meaning for dispatch and combine alone");
    }
    const auto bytes = yaml::parse_quantity(words.size, yaml::Dimension::data);
    if (!bytes) {
      bad("size", words.size.empty() ? "is missing: the bytes of the whole tensor" : bytes.error());
    } else if (*bytes < 1 || *bytes > kMostBytes) {
      bad("size", fmt::format("must be 1 B to {}", format_si(kMostBytes, "B")));
    }
    request.bytes = Bytes(bytes.value_or(1));
  }

  void read_exchange(const CollectiveArguments& words, NodeOperation operation, CollectiveRequest& request) {
    request.way =
        operation == NodeOperation::dispatch ? network::DispatchWay::dispatch : network::DispatchWay::combine;
    request.dispatch =
        named<DispatchKernels>("--kernels", words.kernels.empty() ? "low_latency" : words.kernels);
    if (!words.size.empty()) bad("size", "follows from --tokens and --hidden; leave it out");
    if (words.eager) bad("--eager", "has no meaning for dispatch and combine");
    network::ExpertExchange call;
    for (const ExchangeWord& word : kExchangeWords) {
      const std::string& text = words.*word.text;
      if (text.empty() && word.needed) bad(word.option, "is missing");
      if (!text.empty()) call.*word.value = static_cast<double>(extent(word.option, text));
    }
    call.ranks = request.ranks;
    if (call.top_k > call.experts) bad("--top-k", "must not exceed --experts");
    if (std::fmod(call.ranks, call.nodes) != 0) bad("--nodes", "must divide --gpus");
    request.exchange = call;
  }
};

/// Bytes over each rank's link and direction divided by the size, the factor of nccl-tests' bus bandwidth.
double link_share_of(network::Operation operation, double n) {
  return network::passes_of(operation) * (n - 1) / n;
}

/// BadInput where a time is not known; says which constants the device lacks.
double known(const std::optional<Seconds>& time, const DeviceSpec& device, const std::string& lacks) {
  if (!time) throw BadInput(fmt::format("--device: {} has no constants of {}", device.name, lacks));
  return time->value();
}

/// Prices a dispatch of tokens to experts, or a combine.
Facts exchange_report(const CollectiveRequest& request, const CollectiveArguments& arguments) {
  const network::ExpertExchange& call = *request.exchange;
  const double time =
      known(network::expert_exchange_time(request.device.node.experts, request.dispatch, request.way, call),
            request.device,
            fmt::format("expert dispatch {} (key expert_dispatch.{})",
                        call.nodes > 1 ? "between nodes" : "inside a node", name_of(request.dispatch)));
  const double sent = call.tokens * call.top_k * call.hidden * network::dispatch_bytes(request.way);
  Facts facts;
  facts.add_text(
      "call", fmt::format("{} of {} x {} values a rank to {} of {} experts, {} GPUs in {} nodes, {}",
                          arguments.operation, call.tokens, call.hidden, call.top_k, call.experts, call.ranks,
                          call.nodes, request.device.name));
  facts.add_text("kernels", std::string(name_of(request.dispatch)));
  facts.add("time", "time_s", cell::seconds(time));
  facts.add("tokens to experts", "bytes", {format_si(sent, "B") + " a rank", sent});
  return facts;
}

/// The most GPUs of this device that a node of some cluster preset has; nothing where no preset has it, or some cluster
/// is one node of any size.
std::optional<std::int64_t> largest_node(const yaml::Catalog& catalog, const DeviceSpec& device) {
  std::optional<std::int64_t> largest;
  for (const yaml::Catalog::Entry& entry : catalog.list(yaml::PresetKind::cluster)) {
    const auto cluster = yaml::load_cluster(catalog, entry.name);
    if (!cluster || cluster->device.name != device.name) continue;
    std::int64_t gpus = 1;
    for (const DimensionSpec& dimension : cluster->fabric.fabric.dimensions)
      if (dimension.scope == LinkScope::scale_up) gpus *= dimension.size();
    if (gpus == FabricTemplate::kFill) return std::nullopt;
    largest = std::max(largest.value_or(0), gpus);
  }
  return largest;
}

Facts collective_report(const CollectiveRequest& request, const CollectiveArguments& arguments) {
  const bool library = request.kernels == AllReduceKernels::library;
  const double time = known(
      library ? network::collective_in_node(request.device, request.operation, request.ranks, request.bytes)
              : network::all_reduce_in_node(request.device, request.kernels, arguments.eager, request.ranks,
                                            request.bytes),
      request.device, "collectives inside a node (keys nccl and custom_all_reduce) or no links");
  const double size = request.bytes.value();
  Facts facts;
  facts.add_text("call", fmt::format("{} of {} among {} GPUs, {}", arguments.operation, format_si(size, "B"),
                                     request.ranks, request.device.name));
  facts.add_text("kernels", library ? "NCCL" : arguments.kernels);
  facts.add("time", "time_s", cell::seconds(time));
  facts.add_value("bytes", size);
  facts.add("bus bandwidth", "bus_bandwidth_bytes_per_s",
            cell::si(size * link_share_of(request.operation, request.ranks) / time, "B/s"));
  return facts;
}

int run_collective(const CollectiveArguments& arguments, const CommonOptions& common) {
  const yaml::Catalog catalog = make_catalog(common);
  const CollectiveRequest request = CollectiveParser(catalog).parse(arguments);
  const auto node = request.exchange ? std::nullopt : largest_node(catalog, request.device);
  if (node && request.ranks > *node)
    std::cerr << fmt::format(
        "warning: --gpus: no cluster of the presets has more than {} {} in a node; this is a node of {} that "
        "does not "
        "exist, and 'shardscape network' times collectives between nodes\n",
        *node, request.device.name, format_count(request.ranks));
  (request.exchange ? exchange_report(request, arguments) : collective_report(request, arguments))
      .print(std::cout, arguments.json);
  return kDone;
}

}  // namespace

void add_collective_command(const Program& program) {
  const auto [command, arguments] =
      program.add("collective", "The time of one collective inside a node of a device", kCollectiveFooter,
                  run_collective);
  command
      ->add_option("operation", arguments->operation,
                   "all_reduce, reduce_scatter, all_gather, all_to_all, dispatch or combine")
      ->required();
  command->add_option("size", arguments->size, "The whole tensor: 16MB, 64KiB, ...; not of experts");
  command->add_option("--device", arguments->device, "A device preset or file")->required();
  command->add_option("--gpus", arguments->gpus, "Ranks, all in one node but with --nodes")->required();
  command->add_option("--kernels", arguments->kernels,
                      "library (NCCL), vllm, sglang or trtllm; of experts low_latency or normal");
  command->add_option("--tokens", arguments->tokens, "Dispatch, combine: tokens of each rank");
  command->add_option("--hidden", arguments->hidden, "Likewise: values of a token");
  command->add_option("--top-k", arguments->top_k, "Likewise: experts that a token chooses");
  command->add_option("--experts", arguments->experts, "Likewise: experts of all ranks");
  command->add_option("--nodes", arguments->nodes, "Likewise: nodes that hold the GPUs; default 1");
  command->add_option("--sms", arguments->sms, "Likewise: SMs of the normal kernels; default 20");
  command->add_flag("--eager", arguments->eager, "Launched by the host, not by a CUDA graph");
  add_json(*command, arguments->json);
}

}  // namespace shardscape::cli
