// Collectives inside one NVLink domain by the closed forms of NCCL's protocols and of the all-reduce kernels of
// inference engines, with the constants of a device (spec/node_collectives.h). No fabric: each rank has a link
// of `link` bytes per second and direction to a switch, and nothing else is on it.
//
// With n ranks, a tensor of M bytes, S steps and W bytes over each rank's link (all_reduce: 2(n-1) and
// 2(n-1) M/n, reduce_scatter and all_gather: half of both):
//
//   LL       start + ll.step S + W / ll.bandwidth                          M <= ll.limit
//   LL128    start + ll128.start + ll128.step S + W / ll128.bandwidth      M/n <= ll128.limit
//   Simple   start + simple.start + simple.step S + W / (simple.link_share link) + (M/n) / simple.own_bandwidth
//
// LL sends a flag with every 4 bytes and LL128 one with every 120, so that they never exceed 1/2 and 120/128 of
// the link. All-to-all is n-1 sends and receives of M/n each, W = (n-1) M/n, the cheaper of
//
//   small    start + small_peer (n-1) + W / small_bandwidth
//   large    start + large_start + large_peer (n-1) + W / (large_link_share link) + (M/n) / own_bandwidth
//
// Measured groups have up to 8 ranks. Beyond, NCCL goes along trees or through the switches (NVLS), whose depth
// grows with log2 n: S counts at most 7/3 log2 n steps a pass, which a ring of 8 has.
//
// Custom all-reduce (source: vLLM's custom_all_reduce.cuh, whose limits TensorRT-LLM and SGLang share):
//
//   one shot   start + rank (n-2) + (n-1) M / one_shot_bandwidth           n = 2; M < 512 KiB up to 4 ranks,
//                                                                          256 KiB up to 8
//   two shots  start + rank (n-2) + second_start + 2 (n-1)/n M / two_shot_bandwidth
//   multimem   multimem_start + M / multimem_bandwidth                     where it beats the library, n > 2
//
// No bandwidth exceeds the link's. Above their limits and beyond 8 ranks the library takes over.
// Mean error on published tables, a third of the shapes held out: NCCL 3 to 12 % below 256 KB and 5 to 9 % from
// there on (A100, H100, H200, B200, B300, GB200, GB300), custom kernels 5 to 13 % with all
// rows in the fit.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/base/enum_names.h"
#include "engine/base/quantity.h"
#include "engine/network/collectives/patterns.h"
#include "engine/spec/device.h"
#include "engine/spec/node_collectives.h"

namespace shardscape::network {

enum class Protocol : std::uint8_t { ll, ll128, simple };

/// The protocol by which NCCL sends these bytes among n >= 2 ranks; not for all-to-all.
Protocol protocol_of(const NcclProtocols& nccl, std::int32_t n, Bytes bytes);

/// Time of one call of NCCL among n >= 2 ranks; bytes as in CollectiveKey (the whole tensor), > 0; `link` > 0.
/// Empty for operations other than all_reduce, reduce_scatter, all_gather and all_to_all, and for devices without
/// constants. O(1), pure.
std::optional<Seconds> nccl_time(const NcclProtocols& nccl, Operation operation, std::int32_t n, Bytes bytes,
                                 BytesPerSecond link);
/// As nccl_time(), by the given protocol, whatever the limits; not for all-to-all.
Seconds protocol_time(const NcclProtocols& nccl, Protocol protocol, Operation operation, std::int32_t n,
                      Bytes bytes, BytesPerSecond link);

/// Time of one all-reduce by an inference engine's kernels, on the device alone: launching it costs nothing here.
/// Beyond their limits, for devices without their constants, and for AllReduceKernels::library it is NCCL's time.
std::optional<Seconds> all_reduce_time(const NodeCollectives& node, AllReduceKernels kernels, std::int32_t n,
                                       Bytes bytes, BytesPerSecond link);

/// The time of a call alone in one node of such devices, over the links of their data sheet, which is what tables of
/// kernels measure. Empty where the device has no constants or no links. `eager`: launched by the host on tensors of
/// the framework, so that the call also copies its tensor into the buffers that all ranks map, or out of place, at what
/// HBM sustains (2 M bytes); it takes at least the kernels' eager_floor.
std::optional<Seconds> collective_in_node(const DeviceSpec& device, Operation operation, std::int32_t n,
                                          Bytes bytes);
std::optional<Seconds> all_reduce_in_node(const DeviceSpec& device, AllReduceKernels kernels, bool eager,
                                          std::int32_t n, Bytes bytes);

}  // namespace shardscape::network
