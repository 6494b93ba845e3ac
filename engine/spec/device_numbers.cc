// The table of a device's numbers, one row each: path and field, range, meaning, how far measurements may move it, and
// whether a file must have it. Macros give rows of one group their path and their accessor.
#include "engine/spec/spec_numbers.h"

#include <optional>
#include <string_view>

#include "engine/spec/ranges.h"

namespace shardscape {

namespace {

using namespace ranges;
using enum KeyUse;

// An SM holds the smallest matrix tile, 32 x 32, with two stages of 32 x 32 operands of up to 4 bytes, and its fp32
// accumulators in half of the registers.
constexpr Range kRegisters{2.0 * 32 * 32 * 4, kCapacity.high, "B", false,
                           "the accumulators of the smallest matrix tile twice"};
constexpr Range kSram{2.0 * (32 + 32) * 32 * 4, kCapacity.high, "B", false,
                      "two stages of the smallest matrix tile"};
constexpr Range kCopies{0, 100};

constexpr std::string_view kCallRange = "from a kernel on warm caches to a rendezvous of the group";
constexpr std::string_view kWireRange = "up to the link that flags leave";
constexpr std::string_view kArchitectureRange =
    "another design of the same units; more is another architecture";
constexpr std::string_view kEagerRange = "from one launch by a fast host to a framework's wrappers";
constexpr std::string_view kPeakRange = "a share of the peak; below 0.3 it is no long kernel";
constexpr std::string_view kDrainRange = "from the pipeline of one SM to a full drain and launch";
constexpr std::string_view kMemoryRange = "of the memory, at most";
constexpr std::string_view kWarpRange = "of one group of warps";

/// Rule for a number that measured times may move, by a factor between its value in the file and itself (a logarithmic
/// scale).
constexpr FitRule fit(double low, double high, std::string_view reason, double width) {
  return {FitActsOn::time, FitScale::logarithmic, low, high, reason, width};
}

template <Precision P>
double& tensor_rate(DeviceSpec& d) {
  return d.sm.tensor_flops_per_clock[static_cast<std::size_t>(P)];
}

/// The path and the accessor of a number: of the device itself, of its collectives inside a node (NodeCollectives,
/// under the key GROUP of a file), and of the rate of its matrix units.
#define SHARDSCAPE_NUMBER(FIELD) \
#FIELD, [](DeviceSpec & d) -> auto& { return d.FIELD; }
#define SHARDSCAPE_IN_NODE(GROUP, MEMBER, FIELD) \
  GROUP "." #FIELD, [](DeviceSpec & d) -> auto& { return d.node.MEMBER.FIELD; }
#define SHARDSCAPE_NCCL(FIELD) SHARDSCAPE_IN_NODE("nccl", nccl, FIELD)
#define SHARDSCAPE_CUSTOM(FIELD) SHARDSCAPE_IN_NODE("custom_all_reduce", custom, FIELD)
#define SHARDSCAPE_DISPATCH(FIELD) SHARDSCAPE_IN_NODE("expert_dispatch", experts, FIELD)
#define SHARDSCAPE_RATE(PRECISION)                                                                   \
  {                                                                                                  \
    "sm.tensor_flops_per_clock." #PRECISION, &tensor_rate<Precision::PRECISION>, kPerClockOrNone,    \
        "dense " #PRECISION " FLOPs of an SM's matrix units per clock", std::nullopt, none_if_absent \
  }
/// The rows of the all-reduce kernels of an inference engine.
#define SHARDSCAPE_ALL_REDUCE(ENGINE, NAME)                                                                  \
  {SHARDSCAPE_CUSTOM(ENGINE.start), kTime, NAME "'s all-reduce: a call", fit(1e-6, 5e-5, kCallRange, 0.3)},  \
      {SHARDSCAPE_CUSTOM(ENGINE.rank), kTime, NAME "'s all-reduce: each rank beyond two",                    \
       fit(1e-9, 5e-6, kStepLatencyRange, 0.5)},                                                             \
      {SHARDSCAPE_CUSTOM(ENGINE.one_shot_bandwidth), kBandwidth,                                             \
       NAME "'s all-reduce: one shot, in which every rank reads all of the others",                          \
       fit(1e9, 2e12, kWireRange, 0.3)},                                                                     \
      {SHARDSCAPE_CUSTOM(ENGINE.second_start), kTime, NAME "'s all-reduce: what a second shot adds",         \
       fit(1e-8, 5e-5, kCallRange, 0.5)},                                                                    \
      {SHARDSCAPE_CUSTOM(ENGINE.two_shot_bandwidth), kBandwidth,                                             \
       NAME "'s all-reduce: two shots, reduce-scatter and all-gather", fit(1e9, 2e12, kWireRange, 0.3)},     \
      {SHARDSCAPE_CUSTOM(ENGINE.pair_limit), kBytes, NAME "'s all-reduce: its largest tensor of two ranks"}, \
      {SHARDSCAPE_CUSTOM(ENGINE.two_shot_limit), kBytes,                                                     \
       NAME "'s all-reduce: its largest tensor of more ranks"},                                              \
  {                                                                                                          \
    SHARDSCAPE_CUSTOM(ENGINE.eager_floor), kTime,                                                            \
        NAME "'s all-reduce: the least time where the host launches it, not a graph",                        \
        fit(1e-6, 1e-3, kEagerRange, 0.5)                                                                    \
  }

// Widths of priors: that of a number that data sheets or one microbenchmark give is 0.05 to 0.2, that of latencies,
// which differ between kernels, 0.3 to 0.5.
constexpr DeviceNumber kDeviceNumbers[] = {
    {SHARDSCAPE_NUMBER(sm.count), kUnits,
     "processors that schedule their own work: SMs, compute units, cores", std::nullopt, required},
    {SHARDSCAPE_NUMBER(sm.clock), kClock, "the boost clock at which data sheets quote their peaks",
     std::nullopt, required},
    SHARDSCAPE_RATE(fp32),
    SHARDSCAPE_RATE(tf32),
    SHARDSCAPE_RATE(bf16),
    SHARDSCAPE_RATE(fp16),
    SHARDSCAPE_RATE(fp8),
    SHARDSCAPE_RATE(fp4),
    {SHARDSCAPE_NUMBER(sm.vector_flops_per_clock), kPerClock, "fp32 FMA lanes of an SM, times two",
     std::nullopt, required},
    {SHARDSCAPE_NUMBER(sm.registers), kRegisters, "register file of an SM", std::nullopt, required},
    {SHARDSCAPE_NUMBER(sm.sram), kSram,
     "memory that the threads of a block share (shared memory, LDS), per SM", std::nullopt, required},
    {SHARDSCAPE_NUMBER(sm.sram_bytes_per_clock), kPerClock, "bandwidth of that memory per SM", std::nullopt,
     required},
    {SHARDSCAPE_NUMBER(sm.tensor_efficiency), kShare,
     "issue slots that the inner loop of a good matrix kernel fills, at any clock",
     fit(0.5, 1.0, "a share of the issue slots; tuned kernels fill more than half", 0.05)},
    {SHARDSCAPE_NUMBER(sm.load_latency_clocks), kClocks,
     "from the issue of a load to its data in SRAM, the memory busy",
     fit(200.0, 3000.0, "from a hit in an idle L2 to a queue in front of HBM", 0.3)},
    {SHARDSCAPE_NUMBER(sm.l2_bytes_per_clock), kPerClock, "what one SM exchanges with L2"},
    {SHARDSCAPE_NUMBER(sm.fragment.m), kFragment,
     "rows of the tile whose products share one read of operands"},
    {SHARDSCAPE_NUMBER(sm.fragment.n), kFragment, "columns of that tile"},
    {SHARDSCAPE_NUMBER(sm.fragment.per_cta), kFragment, "the least number of such tiles of a thread block"},
    {SHARDSCAPE_NUMBER(sm.cluster), kCluster, "thread blocks that receive one load together"},
    {SHARDSCAPE_NUMBER(l2.capacity), kCapacity, "the last cache before memory, which all SMs share",
     std::nullopt, required},
    {SHARDSCAPE_NUMBER(l2.bytes_per_clock), kPerClock, "what all SMs together read from it per SM clock",
     std::nullopt, required},
    {SHARDSCAPE_NUMBER(hbm.stacks), kUnits, "stacks of memory, whatever its kind", std::nullopt, required},
    {SHARDSCAPE_NUMBER(hbm.capacity_per_stack), kCapacity, "capacity of a stack; or `capacity`, of all",
     std::nullopt, required, "capacity"},
    {SHARDSCAPE_NUMBER(hbm.bandwidth_per_stack), kBandwidth, "bandwidth of a stack; or `bandwidth`, of all",
     std::nullopt, required, "bandwidth"},
    {SHARDSCAPE_NUMBER(sustained.tensor), kShare,
     "what the power limit leaves matrix units of the boost clock under load", fit(0.3, 1.0, kPeakRange, 0.1),
     peak_if_absent},
    {SHARDSCAPE_NUMBER(sustained.hbm), kShare, "what long streams from and to memory reach of its peak",
     fit(0.3, 1.0, kPeakRange, 0.1), peak_if_absent},
    {SHARDSCAPE_NUMBER(sustained.l2), kShare, "what reads of matrix products from L2 reach of its peak",
     fit(0.3, 1.0, kPeakRange, 0.2), peak_if_absent},
    {SHARDSCAPE_NUMBER(attention.forward), kShare, "the best of the matrix peak in fused attention, forward",
     fit(0.1, 1.0, "a share of the peak", 0.15), peak_if_absent},
    {SHARDSCAPE_NUMBER(attention.backward), kShare, "the same, backward",
     fit(0.1, 1.0, "a share of the peak", 0.15), peak_if_absent},
    {SHARDSCAPE_NUMBER(attention.prompt_rate), kOfAnother,
     "attention of prompts by kernels of the architecture, over the devices they were fitted on",
     fit(0.2, 5.0, kArchitectureRange, 0.2)},
    {SHARDSCAPE_NUMBER(attention.decode_rate), kOfAnother, "the same of decoding",
     fit(0.2, 5.0, kArchitectureRange, 0.2)},
    {SHARDSCAPE_NUMBER(energy.idle_watts), kPowerIfKnown, "what the card draws whatever runs"},
    {SHARDSCAPE_NUMBER(energy.flop_pj), kPicojoulesIfKnown,
     "a bf16 FLOP of the matrix units, with all that feeds them; 0: not known",
     fit(0.1, 5.0, "from the best of 2025 to the first matrix units of 2017", 0.2)},
    {SHARDSCAPE_NUMBER(energy.fp8), kOfAnother, "an fp8 FLOP over a bf16 one"},
    {SHARDSCAPE_NUMBER(energy.fp4), kOfAnother, "an fp4 FLOP over a bf16 one"},
    {SHARDSCAPE_NUMBER(energy.byte_pj), kPicojoulesIfKnown, "a byte of memory traffic"},
    {SHARDSCAPE_NUMBER(energy.burst_watts), kPowerIfKnown,
     "what a kernel alone may draw before the limit acts"},
    {SHARDSCAPE_NUMBER(products.latency), kTime, "start-up and drain of every matrix product",
     fit(5e-7, 2e-5, kDrainRange, 0.4)},
    {SHARDSCAPE_NUMBER(products.step), kTime,
     "the least time of 128 bytes of depth: small and skinny products",
     fit(2e-8, 1e-6, "from a hit in SRAM to a queue in front of HBM", 0.3)},
    {SHARDSCAPE_NUMBER(products.reduction), kTime, "the second kernel of split products",
     fit(5e-7, 1e-5, "a kernel of its own", 0.3)},
    {SHARDSCAPE_NUMBER(products.output), kOverhead, "times that outputs of products cross memory",
     fit(1.0, 3.0, "written once, or read and written twice", 0.2)},
    {SHARDSCAPE_NUMBER(products.port), kPerClock,
     "operands that reach an SM in a busy machine, bytes per clock"},
    {SHARDSCAPE_NUMBER(kernel_latency), kTime, "start-up and drain of one kernel, back to back",
     fit(5e-7, 2e-5, kDrainRange, 0.4), required},
    {SHARDSCAPE_NUMBER(cold_start), kTime, "what the first run of a kernel takes beside, its caches empty",
     fit(1e-6, 2e-5, "from caches half warm to code and page tables read from HBM", 0.4)},
    {SHARDSCAPE_NCCL(start), kTime, "start of every call of NCCL in a node but all-to-all",
     fit(1e-6, 5e-5, kCallRange, 0.3)},
    {SHARDSCAPE_NCCL(ll.step), kTime, "LL, the smallest messages: from rank to rank",
     fit(1e-7, 1e-5, kStepLatencyRange, 0.3)},
    {SHARDSCAPE_NCCL(ll.bandwidth), kBandwidth, "LL: what flags and few threads leave",
     fit(1e9, 2e12, kWireRange, 0.3)},
    {SHARDSCAPE_NCCL(ll.limit), kBytes, "LL: the largest tensor; beyond it the next protocol"},
    {SHARDSCAPE_NCCL(ll128.start), kTime, "LL128, small messages: beside the start of the call",
     fit(1e-7, 5e-5, kCallRange, 0.5)},
    {SHARDSCAPE_NCCL(ll128.step), kTime, "LL128: from rank to rank", fit(1e-7, 1e-5, kStepLatencyRange, 0.3)},
    {SHARDSCAPE_NCCL(ll128.bandwidth), kBandwidth, "LL128: what flags leave",
     fit(1e9, 2e12, kWireRange, 0.3)},
    {SHARDSCAPE_NCCL(ll128.limit), kBytes, "LL128: one rank's part of the largest tensor"},
    {SHARDSCAPE_NCCL(simple.start), kTime, "large messages: beside the start of the call",
     fit(1e-7, 1e-4, kCallRange, 0.5)},
    {SHARDSCAPE_NCCL(simple.step), kTime, "large messages: from rank to rank",
     fit(1e-7, 2e-5, kStepLatencyRange, 0.3)},
    {SHARDSCAPE_NCCL(simple.link_share), kShare, "large messages: share of the link's bandwidth",
     fit(0.1, 1.0, kLinkShareRange, 0.1)},
    {SHARDSCAPE_NCCL(simple.own_bandwidth), kBandwidth, "large messages: the copy of a rank's own part",
     fit(1e10, 2e13, kMemoryRange, 0.3)},
    {SHARDSCAPE_NCCL(all_to_all.start), kTime, "all-to-all: a call", fit(1e-6, 5e-5, kCallRange, 0.3)},
    {SHARDSCAPE_NCCL(all_to_all.small_peer), kTime, "all-to-all without a hand-shake: each peer",
     fit(2e-8, 1e-5, kStepLatencyRange, 0.4)},
    {SHARDSCAPE_NCCL(all_to_all.small_bandwidth), kBandwidth, "all-to-all without a hand-shake",
     fit(1e9, 2e12, kWireRange, 0.3)},
    {SHARDSCAPE_NCCL(all_to_all.large_start), kTime, "all-to-all of large messages: beside the call",
     fit(1e-7, 1e-4, kCallRange, 0.5)},
    {SHARDSCAPE_NCCL(all_to_all.large_peer), kTime, "all-to-all of large messages: each peer",
     fit(2e-8, 1e-5, kStepLatencyRange, 0.4)},
    {SHARDSCAPE_NCCL(all_to_all.large_link_share), kShare,
     "all-to-all of large messages: share of the link's bandwidth", fit(0.1, 1.0, kLinkShareRange, 0.1)},
    {SHARDSCAPE_NCCL(all_to_all.own_bandwidth), kBandwidth, "all-to-all: the copy of a rank's own part",
     fit(1e10, 2e13, kMemoryRange, 0.3)},
    SHARDSCAPE_ALL_REDUCE(vllm, "vLLM"),
    SHARDSCAPE_ALL_REDUCE(trtllm, "TensorRT-LLM"),
    {SHARDSCAPE_CUSTOM(multimem_start), kTime, "all-reduce through switches that reduce: a call",
     fit(1e-6, 1e-4, kCallRange, 0.3)},
    {SHARDSCAPE_CUSTOM(multimem_bandwidth), kBandwidthIfKnown,
     "all-reduce through switches that reduce; 0: the device's can't", fit(1e9, 2e12, kWireRange, 0.3)},
    {SHARDSCAPE_DISPATCH(low_latency.dispatch_start), kTime, "dispatch of a few tokens: a call",
     fit(1e-6, 1e-4, kCallRange, 0.3)},
    {SHARDSCAPE_DISPATCH(low_latency.combine_start), kTime, "combine of a few tokens: a call",
     fit(1e-6, 1e-4, kCallRange, 0.3)},
    {SHARDSCAPE_DISPATCH(low_latency.dispatch_expert), kTime, "dispatch of a few tokens: each expert",
     fit(1e-10, 1e-6, kStepLatencyRange, 0.4)},
    {SHARDSCAPE_DISPATCH(low_latency.combine_expert), kTime, "combine of a few tokens: each expert",
     fit(1e-10, 1e-6, kStepLatencyRange, 0.4)},
    {SHARDSCAPE_DISPATCH(low_latency.dispatch_bandwidth), kBandwidth, "dispatch of a few tokens in a node",
     fit(1e10, 2e13, kWireRange, 0.2)},
    {SHARDSCAPE_DISPATCH(low_latency.combine_bandwidth), kBandwidth, "combine of a few tokens in a node",
     fit(1e10, 2e13, kWireRange, 0.2)},
    {SHARDSCAPE_DISPATCH(low_latency.queue_bandwidth), kBandwidth,
     "dispatch of a few tokens: the queue of one expert at one rank", fit(1e8, 1e12, kWarpRange, 0.3)},
    {SHARDSCAPE_DISPATCH(low_latency.dispatch_node), kTime,
     "dispatch of a few tokens between nodes: times the square root of the other nodes",
     fit(1e-7, 1e-4, kStepLatencyRange, 0.4)},
    {SHARDSCAPE_DISPATCH(low_latency.combine_node), kTime, "combine of a few tokens between nodes: likewise",
     fit(1e-7, 1e-4, kStepLatencyRange, 0.4)},
    {SHARDSCAPE_DISPATCH(low_latency.node_bandwidth), kBandwidthIfKnown,
     "a few tokens to other nodes, of one rank; 0: none", fit(1e9, 2e12, kWireRange, 0.2)},
    {SHARDSCAPE_DISPATCH(normal.dispatch_start), kTime, "dispatch of many tokens: a call",
     fit(1e-6, 3e-4, kCallRange, 0.3)},
    {SHARDSCAPE_DISPATCH(normal.combine_start), kTime, "combine of many tokens: a call",
     fit(1e-6, 3e-4, kCallRange, 0.3)},
    {SHARDSCAPE_DISPATCH(normal.row_bandwidth), kBandwidth, "combine of many tokens: one row, in each call",
     fit(1e8, 1e12, kWarpRange, 0.3)},
    {SHARDSCAPE_DISPATCH(normal.copy), kTime, "many tokens: each copy of a token, of one SM",
     fit(1e-10, 1e-5, kStepLatencyRange, 0.5)},
    {SHARDSCAPE_DISPATCH(normal.sm_bandwidth), kBandwidth, "many tokens: one SM",
     fit(1e9, 1e12, "of the port of an SM, at most", 0.3)},
    {SHARDSCAPE_DISPATCH(normal.bandwidth), kBandwidth, "many tokens: all SMs together",
     fit(1e10, 2e13, kWireRange, 0.2)},
    {SHARDSCAPE_DISPATCH(normal.local_copies), kCopies,
     "many tokens: copies that one costs its rank beside those sent",
     fit(0.1, 10.0, "from none but the sent ones to all ranks of a node", 0.4)},
    {SHARDSCAPE_DISPATCH(normal.dispatch_node), kTime,
     "dispatch of many tokens between nodes: times the square root of the other nodes",
     fit(1e-7, 3e-4, kStepLatencyRange, 0.4)},
    {SHARDSCAPE_DISPATCH(normal.combine_node), kTime, "combine of many tokens between nodes: likewise",
     fit(1e-7, 3e-4, kStepLatencyRange, 0.4)},
    {SHARDSCAPE_DISPATCH(normal.node_bandwidth), kBandwidthIfKnown,
     "many tokens to other nodes, of one rank; 0: none", fit(1e9, 2e12, kWireRange, 0.2)},
    {SHARDSCAPE_NUMBER(die.area_mm2), kDieAreaIfKnown, "area of all dies", std::nullopt, for_the_reader},
    {SHARDSCAPE_NUMBER(die.process_nm), kProcessIfKnown, "what the foundry calls its process", std::nullopt,
     for_the_reader},
    {SHARDSCAPE_NUMBER(links.ports), kPortsIfKnown, "links of the scale-up network", std::nullopt,
     for_the_reader},
    {SHARDSCAPE_NUMBER(links.bandwidth_per_port), kBandwidthIfKnown, "of one of them, per direction",
     std::nullopt, for_the_reader},
    {SHARDSCAPE_NUMBER(power), kPowerIfKnown, "power limit of the card; used where `energy` is known",
     std::nullopt, none_if_absent},
    {SHARDSCAPE_NUMBER(price_per_hour), kPriceIfKnown,
     "what one device costs an hour, in any currency: gives cost_per_million_tokens", std::nullopt,
     none_if_absent},
};
#undef SHARDSCAPE_NUMBER
#undef SHARDSCAPE_IN_NODE
#undef SHARDSCAPE_NCCL
#undef SHARDSCAPE_CUSTOM
#undef SHARDSCAPE_DISPATCH
#undef SHARDSCAPE_RATE
#undef SHARDSCAPE_ALL_REDUCE

}  // namespace

std::span<const DeviceNumber> device_numbers() { return kDeviceNumbers; }

}  // namespace shardscape
