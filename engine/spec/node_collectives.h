// What calls of collectives inside one NVLink (or PCIe) domain take on a device: the protocols of NCCL, and the
// all-reduce kernels of inference engines. network/collectives/protocols.h has the equations. YAML keys carry the same
// names, nested alike.
//
// All constants are a device's, measured with nothing but the call on it; bandwidths are those of one rank. What each
// is stands in its row (device_numbers.cc). A group of constants that is left out is zero and means that the device has
// none of it.
#pragma once

#include <cstdint>

#include "engine/base/enum_names.h"
#include "engine/base/quantity.h"

namespace shardscape {

/// Whose kernels carry out an all-reduce inside a domain:
///   library  NCCL
///   vllm     vLLM's custom_all_reduce: one shot or two over buffers that all ranks map; SGLang's until 0.5.13
///   sglang   SGLang's from 0.5.14 on: the kernels of TensorRT-LLM, and multimem where the switches reduce
///   trtllm   TensorRT-LLM's one shot and two
enum class AllReduceKernels : std::uint8_t { library, vllm, sglang, trtllm };

/// NCCL's protocols. A call of S steps that moves W bytes over each rank's link takes
///   start + protocol.start + S protocol.step + W / protocol.bandwidth.
struct NcclProtocols {
  /// LL (8-byte stores with a flag each) and LL128 (128-byte lines with one).
  struct Flagged {
    Seconds start, step;
    BytesPerSecond bandwidth;
    Bytes limit;
    friend bool operator==(const Flagged&, const Flagged&) = default;
  };
  struct Simple {
    Seconds start, step;
    double link_share = 0;
    BytesPerSecond own_bandwidth;
    friend bool operator==(const Simple&, const Simple&) = default;
  };
  /// Constants of all-to-all, which consists of sends and receives; a call takes the cheaper of its two ways, `small`
  /// and `large`.
  struct AllToAll {
    Seconds start, small_peer;
    BytesPerSecond small_bandwidth;
    Seconds large_start, large_peer;
    double large_link_share = 0;
    BytesPerSecond own_bandwidth;
    friend bool operator==(const AllToAll&, const AllToAll&) = default;
  };
  Seconds start;
  Flagged ll, ll128;
  Simple simple;
  AllToAll all_to_all;

  [[nodiscard]] bool known() const { return simple.link_share > 0; }
  friend bool operator==(const NcclProtocols&, const NcclProtocols&) = default;
};

/// Constants of the all-reduce kernels of inference engines.
struct CustomAllReduce {
  struct Kernels {
    Seconds start, rank;
    BytesPerSecond one_shot_bandwidth;
    Seconds second_start;
    BytesPerSecond two_shot_bandwidth;
    Bytes pair_limit, two_shot_limit;  ///< the library takes larger tensors
    Seconds eager_floor;
    [[nodiscard]] bool known() const { return one_shot_bandwidth > BytesPerSecond(0); }
    friend bool operator==(const Kernels&, const Kernels&) = default;
  };
  Kernels vllm, trtllm;
  /// All-reduce through switches that reduce (multimem), for tensors that are too large for the kernels where it is
  /// faster than the library. No bandwidth: the device's switches can't.
  Seconds multimem_start;
  BytesPerSecond multimem_bandwidth;
  friend bool operator==(const CustomAllReduce&, const CustomAllReduce&) = default;
};

/// Kernels that send tokens to the ranks of their experts and bring the results back, as DeepEP's do; what they
/// cost stands in network/collectives/expert_dispatch.h. No bandwidth: the device has no constants. No node_bandwidth:
/// none between nodes.
struct ExpertDispatch {
  /// Low-latency kernels, for few tokens: a message for each token and expert, straight to its rank.
  struct LowLatency {
    Seconds dispatch_start, combine_start;
    Seconds dispatch_expert, combine_expert;
    BytesPerSecond dispatch_bandwidth, combine_bandwidth;
    BytesPerSecond queue_bandwidth;
    Seconds dispatch_node, combine_node;
    BytesPerSecond node_bandwidth;
    [[nodiscard]] bool known() const { return dispatch_bandwidth > BytesPerSecond(0); }
    friend bool operator==(const LowLatency&, const LowLatency&) = default;
  };
  /// Normal kernels, for many tokens: a copy for each token and rank, on some of the SMs, and one for each other node.
  struct Normal {
    Seconds dispatch_start, combine_start;
    BytesPerSecond row_bandwidth;
    Seconds copy;
    BytesPerSecond sm_bandwidth, bandwidth;
    double local_copies = 0;
    Seconds dispatch_node, combine_node;
    BytesPerSecond node_bandwidth;
    [[nodiscard]] bool known() const { return bandwidth > BytesPerSecond(0); }
    friend bool operator==(const Normal&, const Normal&) = default;
  };
  LowLatency low_latency;
  Normal normal;
  friend bool operator==(const ExpertDispatch&, const ExpertDispatch&) = default;
};

struct NodeCollectives {
  NcclProtocols nccl;
  CustomAllReduce custom;
  ExpertDispatch experts;
  friend bool operator==(const NodeCollectives&, const NodeCollectives&) = default;
};

}  // namespace shardscape
