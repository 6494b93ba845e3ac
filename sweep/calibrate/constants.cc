// The table of constants: for each its path, unit, range with its reason, prior width, and effect; then the texts of
// values.
#include "sweep/calibrate/constants.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "sweep/yaml/number.h"

namespace shardscape::calibrate {

namespace {

using enum ActsOn;
using enum Scale;
using yaml::Dimension;

template <class T>
double number(const T& field) {
  if constexpr (std::is_same_v<T, double>) {
    return field;
  } else {
    return field.value();
  }
}

/// Reads and writes one field through a lambda that returns a reference to it.
template <class Field>
struct Access {
  static double get(const Candidate& c) { return number(Field{}(const_cast<Candidate&>(c))); }
  static void set(Candidate& c, double value) {
    auto& field = Field{}(c);
    field = std::remove_reference_t<decltype(field)>(value);
  }
};

template <class Field>
constexpr Constant entry(Field, std::string_view path, std::optional<Dimension> dimension, ActsOn acts_on,
                         Scale scale, double low, double high, std::string_view reason, double width,
                         std::string_view effect) {
  return {path,
          dimension,
          acts_on,
          scale,
          low,
          high,
          reason,
          width,
          effect,
          &Access<Field>::get,
          &Access<Field>::set};
}

constexpr std::string_view kHostRange = "from one kernel launch to an eager framework on a slow host";
constexpr std::string_view kDecodeRange = "from a replayed graph to eager launches";
constexpr std::string_view kStepRange = "from an empty step to a loop that saves and logs";
constexpr std::string_view kCallRange = "from a kernel on warm caches to a rendezvous of the group";
constexpr std::string_view kWireRange = "up to the link that flags leave";
constexpr std::string_view kShareRange = "a share of the link's bandwidth; below a tenth the link is broken";
constexpr std::string_view kOverlapRange = "nothing hidden to everything hidden";
constexpr std::string_view kLatencyRange = "from one write over the link to a host in every step";
constexpr std::string_view kArchitectureRange =
    "another design of the same units; more is another architecture";
constexpr std::string_view kEagerRange = "from one launch by a fast host to a framework's wrappers";
constexpr std::string_view kPeakRange = "a share of the peak; below 0.3 it is no long kernel";

// Prior widths: 0.7 means "within a factor of two" (1 sigma) and is for times that depend on host and framework
// version; 0.2 is the scatter of vendors' and users' figures for achieved bandwidth.
constexpr std::array kConstants = {
    entry(
        [](Candidate & c) -> auto& { return c.stack.host.forward_layer; }, "host.forward_layer",
        Dimension::time, time, logarithmic, 5e-6, 2e-2, kHostRange, 0.7, "launching one block's forward"),
    entry(
        [](Candidate& c) -> auto& { return c.stack.host.backward_layer; }, "host.backward_layer",
        Dimension::time, time, logarithmic, 5e-6, 2e-2, kHostRange, 0.7, "launching one block's backward"),
    entry(
        [](Candidate& c) -> auto& { return c.stack.host.per_collective; }, "host.per_collective",
        Dimension::time, time, logarithmic, 1e-6, 5e-3, kHostRange, 0.7,
        "host time of each collective call in a block"),
    entry(
        [](Candidate& c) -> auto& { return c.stack.host.per_collective_rank; }, "host.per_collective_rank",
        Dimension::time, time, logarithmic, 1e-7, 5e-3,
        "from one pointer per rank to one tensor copied per rank", 0.7,
        "host time of each collective call and rank of its group"),
    entry(
        [](Candidate& c) -> auto& { return c.stack.host.step_fixed; }, "host.step_fixed", Dimension::time,
        time, logarithmic, 1e-4, 2.0, kStepRange, 0.7, "once per training step"),
    entry(
        [](Candidate& c) -> auto& { return c.stack.host.decode_layer; }, "host.decode_layer", Dimension::time,
        time, logarithmic, 1e-6, 5e-3, kDecodeRange, 0.7, "launching one block of a decode step"),
    entry(
        [](Candidate& c) -> auto& { return c.stack.host.decode_step_fixed; }, "host.decode_step_fixed",
        Dimension::time, time, logarithmic, 1e-5, 0.1, kDecodeRange, 0.7,
        "once per decode step: sampling, scheduling"),
    entry(
        [](Candidate& c) -> auto& { return c.stack.host.decode_gap; }, "host.decode_gap", Dimension::time,
        time, logarithmic, 1e-7, 1e-3, "from back-to-back kernels of a graph to a launch between all of them",
        0.7, "device idle between the kernels of a block in inference"),
    entry(
        [](Candidate& c) -> auto& { return c.stack.host.decode_sequence; }, "host.decode_sequence",
        Dimension::time, time, logarithmic, 1e-7, 5e-3,
        "from a row of a batched kernel to a Python loop over requests", 0.7,
        "per sequence and iteration of inference"),
    entry(
        [](Candidate& c) -> auto& { return c.stack.communication.call; }, "communication.call",
        Dimension::time, time, logarithmic, 1e-6, 2e-4, "from a kernel launch to a rendezvous of the group",
        0.5, "fixed cost of a collective call"),
    entry(
        [](Candidate& c) -> auto& { return c.stack.communication.rank_step; }, "communication.rank_step",
        Dimension::time, time, logarithmic, 3e-7, 1e-4, kLatencyRange, 0.5,
        "latency of one step of a collective's algorithm"),
    entry(
        [](Candidate& c) -> auto& { return c.stack.communication.rank_step_scale_out; },
        "communication.rank_step_scale_out", Dimension::time, time, logarithmic, 1e-6, 1e-3, kLatencyRange,
        0.7, "the same for steps over the scale-out network"),
    entry(
        [](Candidate& c) -> auto& { return c.stack.communication.local_copy; }, "communication.local_copy",
        std::nullopt, time, logarithmic, 0.1, 4.0,
        "from copies that stay in the caches to kernels that reach a quarter of the memory's peak", 0.5,
        "a collective's own copies and reductions"),
    entry(
        [](Candidate& c) -> auto& { return c.stack.communication.scale_up_fraction; },
        "communication.scale_up_fraction", std::nullopt, time, logarithmic, 0.1, 1.0, kShareRange, 0.2,
        "collectives inside the scale-up domain"),
    entry(
        [](Candidate& c) -> auto& { return c.stack.communication.scale_out_fraction; },
        "communication.scale_out_fraction", std::nullopt, time, logarithmic, 0.1, 1.0, kShareRange, 0.3,
        "collectives and transfers between nodes"),
    entry(
        [](Candidate& c) -> auto& { return c.stack.communication.scale_out_scaling; },
        "communication.scale_out_scaling", std::nullopt, time, logarithmic, 0.5, 1.0,
        "half per doubling of the nodes is one shared link, 1 a crossbar", 0.1,
        "what each doubling of the nodes leaves of the scale-out bandwidth"),
    entry(
        [](Candidate& c) -> auto& { return c.stack.communication.tensor_overlap; },
        "communication.tensor_overlap", std::nullopt, time, linear, 0.0, 1.0, kOverlapRange, 0.3,
        "tensor-parallel communication hidden behind compute"),
    entry(
        [](Candidate& c) -> auto& { return c.stack.communication.context_overlap; },
        "communication.context_overlap", std::nullopt, time, linear, 0.0, 1.0, kOverlapRange, 0.3,
        "context-parallel communication hidden behind attention"),
    entry(
        [](Candidate& c) -> auto& { return c.stack.communication.data_overlap; },
        "communication.data_overlap", std::nullopt, time, linear, 0.0, 1.0, kOverlapRange, 0.3,
        "data-parallel communication hidden behind the last backward"),
    entry(
        [](Candidate& c) -> auto& { return c.stack.communication.data_hidden; }, "communication.data_hidden",
        std::nullopt, time, linear, 0.0, 1.0, kOverlapRange, 0.3,
        "what data-parallel traffic beside every microbatch hides without slowing compute"),
    entry(
        [](Candidate& c) -> auto& { return c.stack.communication.data_sms; }, "communication.data_sms",
        std::nullopt, time, linear, 0.0, 64.0, "from copies by engines to two for each of 32 channels", 8.0,
        "SMs that traffic once a step takes from compute beside it"),
    entry(
        [](Candidate& c) -> auto& { return c.stack.communication.gather_overlap; },
        "communication.gather_overlap", std::nullopt, time, linear, 0.0, 1.0, kOverlapRange, 0.3,
        "the gather of updated weights hidden behind the first forward"),
    entry(
        [](Candidate& c) -> auto& { return c.stack.communication.expert_overlap; },
        "communication.expert_overlap", std::nullopt, time, linear, 0.0, 1.0, kOverlapRange, 0.3,
        "exchanges of experts hidden behind the other pass of a pair"),
    entry(
        [](Candidate& c) -> auto& { return c.stack.communication.expert_hidden; },
        "communication.expert_hidden", std::nullopt, time, linear, 0.0, 1.0, kOverlapRange, 0.3,
        "what exchanges of experts hide in pairs without slowing compute"),
    entry(
        [](Candidate& c) -> auto& { return c.stack.quantisation.passes; }, "quantisation.passes",
        std::nullopt, time, linear, 0.0, 5.0,
        "from casts within other kernels to one kernel for each step of them", 0.5, "casts to 8 and 4 bits"),
    entry(
        [](Candidate& c) -> auto& { return c.stack.quantisation.weight_bytes; }, "quantisation.weight_bytes",
        std::nullopt, time, linear, 0.0, 40.0, "from no traffic to ten passes over fp32 sums", 4.0,
        "traffic per weight of narrow products and microbatch"),
    entry(
        [](Candidate& c) -> auto& { return c.stack.experts.forward_layer; }, "experts.forward_layer",
        Dimension::time, time, logarithmic, 1e-5, 5e-2, kHostRange, 0.7,
        "launching what forward of a layer of experts has beside a block"),
    entry(
        [](Candidate& c) -> auto& { return c.stack.experts.backward_layer; }, "experts.backward_layer",
        Dimension::time, time, logarithmic, 1e-5, 5e-2, kHostRange, 0.7,
        "launching what backward of a layer of experts has beside a block"),
    entry(
        [](Candidate& c) -> auto& { return c.stack.experts.per_expert; }, "experts.per_expert",
        Dimension::time, time, logarithmic, 1e-7, 1e-3, kHostRange, 0.7,
        "launching what each expert of a layer takes in a pass"),
    entry(
        [](Candidate& c) -> auto& { return c.stack.experts.load_wait; }, "experts.load_wait", Dimension::time,
        time, logarithmic, 1e-5, 5e-2, "from one copy to the host to a host that launches all anew", 0.7,
        "the device's wait for the loads of experts"),
    entry(
        [](Candidate& c) -> auto& { return c.stack.zero_slice; }, "zero_slice", Dimension::time, time,
        logarithmic, 1e-7, 1e-3, "from one pointer to a tensor copied in an interpreter", 0.7,
        "ZeRO-1 and 2: per tensor and data-parallel rank, once per step"),
    entry(
        [](Candidate& c) -> auto& { return c.stack.memory.reserve; }, "memory.reserve", Dimension::data,
        memory, logarithmic, 1e8, 2e10, "from a bare context to a quarter of an 80 GB card", 0.5,
        "context and communication library, on every device"),
    entry(
        [](Candidate& c) -> auto& { return c.stack.memory.workspace; }, "memory.workspace", Dimension::data,
        memory, logarithmic, 1e6, 5e9, "from cuBLAS's smallest workspace to several per stream", 0.7,
        "scratch of kernels"),
    entry(
        [](Candidate& c) -> auto& { return c.stack.memory.fragmentation; }, "memory.fragmentation",
        std::nullopt, memory, linear, 1.0, 1.6,
        "reserved is never less than allocated; past 1.6 allocators give memory back", 0.1,
        "reserved over allocated of activations"),
    entry(
        [](Candidate& c) -> auto& { return c.device->sustained.tensor; }, "device.sustained.tensor",
        std::nullopt, time, logarithmic, 0.3, 1.0, kPeakRange, 0.1,
        "matrix products: what power leaves of the peak"),
    entry(
        [](Candidate& c) -> auto& { return c.device->sustained.hbm; }, "device.sustained.hbm", std::nullopt,
        time, logarithmic, 0.3, 1.0, kPeakRange, 0.1, "streams from and to HBM"),
    entry(
        [](Candidate& c) -> auto& { return c.device->sustained.l2; }, "device.sustained.l2", std::nullopt,
        time, logarithmic, 0.3, 1.0, kPeakRange, 0.2, "reads of matrix products from L2"),
    entry(
        [](Candidate& c) -> auto& { return c.device->sm.tensor_efficiency; }, "device.sm.tensor_efficiency",
        std::nullopt, time, logarithmic, 0.5, 1.0,
        "a share of the issue slots; tuned kernels fill more than half", 0.05,
        "inner loop of matrix products, at any clock"),
    entry(
        [](Candidate& c) -> auto& { return c.device->sm.load_latency_clocks; },
        "device.sm.load_latency_clocks", std::nullopt, time, logarithmic, 200.0, 3000.0,
        "from a hit in an idle L2 to a queue in front of HBM", 0.3,
        "small and skinny matrix products: a load to its data in SRAM"),
    entry(
        [](Candidate& c) -> auto& { return c.device->attention.forward; }, "device.attention.forward",
        std::nullopt, time, logarithmic, 0.1, 1.0, "a share of the peak", 0.15, "fused attention, forward"),
    entry(
        [](Candidate& c) -> auto& { return c.device->attention.backward; }, "device.attention.backward",
        std::nullopt, time, logarithmic, 0.1, 1.0, "a share of the peak", 0.15, "fused attention, backward"),
    entry(
        [](Candidate& c) -> auto& { return c.device->attention.prompt_rate; }, "device.attention.prompt_rate",
        std::nullopt, time, logarithmic, 0.2, 5.0, kArchitectureRange, 0.2,
        "attention of prompts by kernels of the architecture"),
    entry(
        [](Candidate& c) -> auto& { return c.device->attention.decode_rate; }, "device.attention.decode_rate",
        std::nullopt, time, logarithmic, 0.2, 5.0, kArchitectureRange, 0.2,
        "attention of decoding by kernels of the architecture"),
    entry(
        [](Candidate& c) -> auto& { return c.device->cold_start; }, "device.cold_start", Dimension::time,
        time, logarithmic, 1e-6, 2e-5, "from caches half warm to code and page tables read from HBM", 0.4,
        "kernels measured alone, caches cleared"),
    entry(
        [](Candidate& c) -> auto& { return c.device->kernel_latency; }, "device.kernel_latency",
        Dimension::time, time, logarithmic, 5e-7, 2e-5,
        "from the pipeline of one SM to a full drain and launch", 0.4, "start-up and drain of every kernel"),
    entry(
        [](Candidate& c) -> auto& { return c.device->energy.flop_pj; }, "device.energy.flop_pj", std::nullopt,
        time, logarithmic, 0.1, 5.0, "from the best of 2025 to the first matrix units of 2017", 0.2,
        "matrix products that power limits, alone and in steps"),
    entry(
        [](Candidate& c) -> auto& { return c.device->products.latency; }, "device.products.latency",
        Dimension::time, time, logarithmic, 5e-7, 2e-5,
        "from the pipeline of one SM to a full drain and launch", 0.4, "every matrix product"),
    entry(
        [](Candidate& c) -> auto& { return c.device->products.step; }, "device.products.step",
        Dimension::time, time, logarithmic, 2e-8, 1e-6, "from a hit in SRAM to a queue in front of HBM", 0.3,
        "small and skinny matrix products"),
    entry(
        [](Candidate& c) -> auto& { return c.device->products.reduction; }, "device.products.reduction",
        Dimension::time, time, logarithmic, 5e-7, 1e-5, "a kernel of its own", 0.3, "split products"),
    entry(
        [](Candidate& c) -> auto& { return c.device->products.output; }, "device.products.output",
        std::nullopt, time, logarithmic, 1.0, 3.0, "written once, or read and written twice", 0.2,
        "outputs of matrix products"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.nccl.start; }, "device.nccl.start", Dimension::time,
        time, logarithmic, 1e-6, 5e-5, kCallRange, 0.3, "every collective of NCCL in a node"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.nccl.ll.step; }, "device.nccl.ll.step",
        Dimension::time, time, logarithmic, 1e-7, 1e-5, kLatencyRange, 0.3, "the smallest messages"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.nccl.ll.bandwidth; }, "device.nccl.ll.bandwidth",
        Dimension::bandwidth, time, logarithmic, 1e9, 2e12, kWireRange, 0.3, "the smallest messages"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.nccl.ll128.start; }, "device.nccl.ll128.start",
        Dimension::time, time, logarithmic, 1e-7, 5e-5, kCallRange, 0.5, "small messages"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.nccl.ll128.step; }, "device.nccl.ll128.step",
        Dimension::time, time, logarithmic, 1e-7, 1e-5, kLatencyRange, 0.3, "small messages"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.nccl.ll128.bandwidth; },
        "device.nccl.ll128.bandwidth", Dimension::bandwidth, time, logarithmic, 1e9, 2e12, kWireRange, 0.3,
        "small messages"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.nccl.simple.start; }, "device.nccl.simple.start",
        Dimension::time, time, logarithmic, 1e-7, 1e-4, kCallRange, 0.5, "large messages"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.nccl.simple.step; }, "device.nccl.simple.step",
        Dimension::time, time, logarithmic, 1e-7, 2e-5, kLatencyRange, 0.3, "large messages"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.nccl.simple.link_share; },
        "device.nccl.simple.link_share", std::nullopt, time, logarithmic, 0.1, 1.0, kShareRange, 0.1,
        "large messages"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.nccl.simple.own_bandwidth; },
        "device.nccl.simple.own_bandwidth", Dimension::bandwidth, time, logarithmic, 1e10, 2e13,
        "of the memory, at most", 0.3, "large messages: the own part"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.nccl.all_to_all.start; },
        "device.nccl.all_to_all.start", Dimension::time, time, logarithmic, 1e-6, 5e-5, kCallRange, 0.3,
        "all-to-all"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.nccl.all_to_all.small_peer; },
        "device.nccl.all_to_all.small_peer", Dimension::time, time, logarithmic, 2e-8, 1e-5, kLatencyRange,
        0.4, "all-to-all, small"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.nccl.all_to_all.small_bandwidth; },
        "device.nccl.all_to_all.small_bandwidth", Dimension::bandwidth, time, logarithmic, 1e9, 2e12,
        kWireRange, 0.3, "all-to-all, small"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.nccl.all_to_all.large_start; },
        "device.nccl.all_to_all.large_start", Dimension::time, time, logarithmic, 1e-7, 1e-4, kCallRange, 0.5,
        "all-to-all, large"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.nccl.all_to_all.large_peer; },
        "device.nccl.all_to_all.large_peer", Dimension::time, time, logarithmic, 2e-8, 1e-5, kLatencyRange,
        0.4, "all-to-all, large"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.nccl.all_to_all.large_link_share; },
        "device.nccl.all_to_all.large_link_share", std::nullopt, time, logarithmic, 0.1, 1.0, kShareRange,
        0.1, "all-to-all, large"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.nccl.all_to_all.own_bandwidth; },
        "device.nccl.all_to_all.own_bandwidth", Dimension::bandwidth, time, logarithmic, 1e10, 2e13,
        "of the memory, at most", 0.3, "all-to-all, large: the own part"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.experts.low_latency.dispatch_start; },
        "device.expert_dispatch.low_latency.dispatch_start", Dimension::time, time, logarithmic, 1e-6, 1e-4,
        kCallRange, 0.3, "dispatch, low latency"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.experts.low_latency.dispatch_expert; },
        "device.expert_dispatch.low_latency.dispatch_expert", Dimension::time, time, logarithmic, 1e-10, 1e-6,
        kLatencyRange, 0.4, "dispatch, low latency"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.experts.low_latency.dispatch_bandwidth; },
        "device.expert_dispatch.low_latency.dispatch_bandwidth", Dimension::bandwidth, time, logarithmic,
        1e10, 2e13, kWireRange, 0.2, "dispatch, low latency"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.experts.low_latency.dispatch_node; },
        "device.expert_dispatch.low_latency.dispatch_node", Dimension::time, time, logarithmic, 1e-7, 1e-4,
        kLatencyRange, 0.4, "dispatch, low latency, between nodes"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.experts.low_latency.combine_start; },
        "device.expert_dispatch.low_latency.combine_start", Dimension::time, time, logarithmic, 1e-6, 1e-4,
        kCallRange, 0.3, "combine, low latency"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.experts.low_latency.combine_expert; },
        "device.expert_dispatch.low_latency.combine_expert", Dimension::time, time, logarithmic, 1e-10, 1e-6,
        kLatencyRange, 0.4, "combine, low latency"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.experts.low_latency.combine_bandwidth; },
        "device.expert_dispatch.low_latency.combine_bandwidth", Dimension::bandwidth, time, logarithmic, 1e10,
        2e13, kWireRange, 0.2, "combine, low latency"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.experts.low_latency.combine_node; },
        "device.expert_dispatch.low_latency.combine_node", Dimension::time, time, logarithmic, 1e-7, 1e-4,
        kLatencyRange, 0.4, "combine, low latency, between nodes"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.experts.low_latency.queue_bandwidth; },
        "device.expert_dispatch.low_latency.queue_bandwidth", Dimension::bandwidth, time, logarithmic, 1e8,
        1e12, "of one group of warps", 0.3, "dispatch, low latency, few experts"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.experts.low_latency.node_bandwidth; },
        "device.expert_dispatch.low_latency.node_bandwidth", Dimension::bandwidth, time, logarithmic, 1e9,
        2e12, kWireRange, 0.2, "low latency, between nodes"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.experts.normal.dispatch_start; },
        "device.expert_dispatch.normal.dispatch_start", Dimension::time, time, logarithmic, 1e-6, 3e-4,
        kCallRange, 0.3, "dispatch, normal"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.experts.normal.dispatch_node; },
        "device.expert_dispatch.normal.dispatch_node", Dimension::time, time, logarithmic, 1e-7, 3e-4,
        kLatencyRange, 0.4, "dispatch, normal, between nodes"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.experts.normal.combine_start; },
        "device.expert_dispatch.normal.combine_start", Dimension::time, time, logarithmic, 1e-6, 3e-4,
        kCallRange, 0.3, "combine, normal"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.experts.normal.combine_node; },
        "device.expert_dispatch.normal.combine_node", Dimension::time, time, logarithmic, 1e-7, 3e-4,
        kLatencyRange, 0.4, "combine, normal, between nodes"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.experts.normal.row_bandwidth; },
        "device.expert_dispatch.normal.row_bandwidth", Dimension::bandwidth, time, logarithmic, 1e8, 1e12,
        "of one group of warps", 0.3, "combine, normal, few tokens"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.experts.normal.copy; },
        "device.expert_dispatch.normal.copy", Dimension::time, time, logarithmic, 1e-10, 1e-5, kLatencyRange,
        0.5, "normal, many small tokens"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.experts.normal.sm_bandwidth; },
        "device.expert_dispatch.normal.sm_bandwidth", Dimension::bandwidth, time, logarithmic, 1e9, 1e12,
        "of the port of an SM, at most", 0.3, "normal, few SMs"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.experts.normal.bandwidth; },
        "device.expert_dispatch.normal.bandwidth", Dimension::bandwidth, time, logarithmic, 1e10, 2e13,
        kWireRange, 0.2, "normal, many SMs"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.experts.normal.local_copies; },
        "device.expert_dispatch.normal.local_copies", std::nullopt, time, logarithmic, 0.1, 10.0,
        "from none but the sent ones to all ranks of a node", 0.4, "normal, few choices"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.experts.normal.node_bandwidth; },
        "device.expert_dispatch.normal.node_bandwidth", Dimension::bandwidth, time, logarithmic, 1e9, 2e12,
        kWireRange, 0.2, "normal, between nodes"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.custom.vllm.start; },
        "device.custom_all_reduce.vllm.start", Dimension::time, time, logarithmic, 1e-6, 5e-5, kCallRange,
        0.3, "vLLM's all-reduce"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.custom.vllm.rank; },
        "device.custom_all_reduce.vllm.rank", Dimension::time, time, logarithmic, 1e-9, 5e-6, kLatencyRange,
        0.5, "vLLM's all-reduce, each rank beyond two"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.custom.vllm.one_shot_bandwidth; },
        "device.custom_all_reduce.vllm.one_shot_bandwidth", Dimension::bandwidth, time, logarithmic, 1e9,
        2e12, kWireRange, 0.3, "vLLM's all-reduce, one shot"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.custom.vllm.second_start; },
        "device.custom_all_reduce.vllm.second_start", Dimension::time, time, logarithmic, 1e-8, 5e-5,
        kCallRange, 0.5, "vLLM's all-reduce, two shots"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.custom.vllm.two_shot_bandwidth; },
        "device.custom_all_reduce.vllm.two_shot_bandwidth", Dimension::bandwidth, time, logarithmic, 1e9,
        2e12, kWireRange, 0.3, "vLLM's all-reduce, two shots"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.custom.vllm.eager_floor; },
        "device.custom_all_reduce.vllm.eager_floor", Dimension::time, time, logarithmic, 1e-6, 1e-3,
        kEagerRange, 0.5, "vLLM's all-reduce, launched by the host"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.custom.trtllm.start; },
        "device.custom_all_reduce.trtllm.start", Dimension::time, time, logarithmic, 1e-6, 5e-5, kCallRange,
        0.3, "TensorRT-LLM's all-reduce"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.custom.trtllm.rank; },
        "device.custom_all_reduce.trtllm.rank", Dimension::time, time, logarithmic, 1e-9, 5e-6, kLatencyRange,
        0.5, "TensorRT-LLM's all-reduce, each rank beyond two"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.custom.trtllm.one_shot_bandwidth; },
        "device.custom_all_reduce.trtllm.one_shot_bandwidth", Dimension::bandwidth, time, logarithmic, 1e9,
        2e12, kWireRange, 0.3, "TensorRT-LLM's all-reduce, one shot"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.custom.trtllm.second_start; },
        "device.custom_all_reduce.trtllm.second_start", Dimension::time, time, logarithmic, 1e-8, 5e-5,
        kCallRange, 0.5, "TensorRT-LLM's all-reduce, two shots"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.custom.trtllm.two_shot_bandwidth; },
        "device.custom_all_reduce.trtllm.two_shot_bandwidth", Dimension::bandwidth, time, logarithmic, 1e9,
        2e12, kWireRange, 0.3, "TensorRT-LLM's all-reduce, two shots"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.custom.trtllm.eager_floor; },
        "device.custom_all_reduce.trtllm.eager_floor", Dimension::time, time, logarithmic, 1e-6, 1e-3,
        kEagerRange, 0.5, "TensorRT-LLM's all-reduce, launched by the host"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.custom.multimem_start; },
        "device.custom_all_reduce.multimem_start", Dimension::time, time, logarithmic, 1e-6, 1e-4, kCallRange,
        0.3, "all-reduces by switches"),
    entry(
        [](Candidate& c) -> auto& { return c.device->node.custom.multimem_bandwidth; },
        "device.custom_all_reduce.multimem_bandwidth", Dimension::bandwidth, time, logarithmic, 1e9, 2e12,
        kWireRange, 0.3, "all-reduces by switches"),
};

struct Unit {
  double size;
  const char* name;
};
constexpr Unit kTimeUnits[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
constexpr Unit kRateUnits[] = {{1e12, "TB/s"}, {1e9, "GB/s"}, {1e6, "MB/s"}};
constexpr Unit kDataUnits[] = {{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {1, "B"}};

std::span<const Unit> units_of(Dimension dimension) {
  if (dimension == Dimension::time) return kTimeUnits;
  return dimension == Dimension::bandwidth ? std::span<const Unit>(kRateUnits) : kDataUnits;
}

/// The value with three significant digits and no exponent, for values >= 1e-4.
std::string three_digits(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g", value);
  if (std::string_view(text.data()).find('e') != std::string_view::npos) {
    std::snprintf(text.data(), text.size(), "%.0f", std::strtod(text.data(), nullptr));  // "1e+03"
  }
  return text.data();
}

}  // namespace

bool Constant::acts_in(const Candidate& candidate) const {
  if (path.starts_with("device.products.")) return candidate.device && candidate.device->knows_energy();
  // A rate of 1 does not mean that the mechanism is off: without tables for the device's architecture it has no effect.
  if (path.starts_with("device.attention.") && path.ends_with("_rate"))
    return candidate.device && candidate.device->architecture != Architecture::other;
  return true;
}

double Constant::value_at(double u, double prior) const {
  const double value = scale == logarithmic ? prior * std::exp(width * u) : prior + width * u;
  return std::clamp(value, low, high);
}

double Constant::u_of(double value, double prior) const {
  return (scale == logarithmic ? std::log(value / prior) : value - prior) / width;
}

double Constant::slope(double value) const { return scale == logarithmic ? width * value : width; }

std::span<const Constant> constants() { return kConstants; }

const Constant* find_constant(std::string_view path) {
  const auto found = std::ranges::find(kConstants, path, &Constant::path);
  return found == kConstants.end() ? nullptr : &*found;
}

std::string format_value(const Constant& constant, double value) {
  if (!constant.dimension) return three_digits(value);
  const std::span<const Unit> units = units_of(*constant.dimension);
  for (const Unit& unit : units) {
    if (value >= 0.9995 * unit.size) return three_digits(value / unit.size) + ' ' + unit.name;
  }
  return three_digits(value / units.back().size) + ' ' + units.back().name;
}

std::string exact_value(const Constant& constant, double value) {
  const std::string shown = format_value(constant, value);
  const auto read = parse_value(constant, shown);
  if (read && *read == value) return shown;
  std::array<char, 32> digits{};
  const std::to_chars_result end = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  std::string text(digits.data(), end.ptr);
  if (constant.dimension) {
    const bool rate = *constant.dimension == Dimension::bandwidth;
    text += *constant.dimension == Dimension::time ? " s" : rate ? " B/s" : " B";
  }
  return text;
}

tl::expected<double, std::string> parse_value(const Constant& constant, std::string_view text) {
  return constant.dimension ? yaml::parse_quantity(text, *constant.dimension) : yaml::parse_number(text);
}

}  // namespace shardscape::calibrate
