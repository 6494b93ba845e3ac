#include "engine/network/collectives/protocols.h"

#include <algorithm>
#include <cmath>

#include "engine/base/check.h"

namespace shardscape::network {

namespace {

constexpr double kFlaggedHalf = 0.5;            ///< share of data in an LL line
constexpr double kFlaggedLine = 120.0 / 128;    ///< share of data in an LL128 line
constexpr double kStepsPerDoubling = 7.0 / 3;   ///< a ring of 8 ranks takes 7 steps per pass, and log2 8 is 3
constexpr Bytes kOneShotOfFour(512.0 * 1024);   ///< limit in custom_all_reduce.cuh
constexpr Bytes kOneShotOfEight(256.0 * 1024);  ///< limit in custom_all_reduce.cuh
constexpr std::int32_t kMostCustomRanks = 8;    ///< limit in custom_all_reduce.cuh

/// The bytes and steps of a call, as seen from one rank.
struct Load {
  double steps = 0;  ///< number of steps that wait for each other
  Bytes sent, own;   ///< sent: over its link; own: its part of the tensor
};

Load load_of(Operation operation, std::int32_t n, Bytes bytes) {
  const double ranks = n, passes = passes_of(operation);
  const double steps = std::min(ranks - 1, kStepsPerDoubling * std::log2(ranks));
  return {passes * steps, passes * (ranks - 1) / ranks * bytes, bytes / ranks};
}

Seconds flagged(const NcclProtocols::Flagged& protocol, const Load& load, BytesPerSecond most) {
  return protocol.start + load.steps * protocol.step + load.sent / std::min(protocol.bandwidth, most);
}

Seconds all_to_all_time(const NcclProtocols::AllToAll& a, std::int32_t n, Bytes bytes, BytesPerSecond link) {
  const double peers = n - 1;
  const Load load = load_of(Operation::all_to_all, n, bytes);
  const Seconds small = peers * a.small_peer + load.sent / std::min(a.small_bandwidth, link);
  const Seconds large = a.large_start + peers * a.large_peer + load.sent / (a.large_link_share * link) +
                        load.own / a.own_bandwidth;
  return a.start + std::min(small, large);
}

bool one_shot_fits(const CustomAllReduce::Kernels& kernels, std::int32_t n, Bytes bytes) {
  if (n == 2) return bytes < kernels.pair_limit;
  return bytes < (n <= 4 ? kOneShotOfFour : kOneShotOfEight);
}

/// The time of custom kernels; empty where these leave the tensor to the library.
std::optional<Seconds> custom_time(const CustomAllReduce::Kernels& kernels, std::int32_t n, Bytes bytes,
                                   BytesPerSecond link) {
  if (!kernels.known() || n > kMostCustomRanks) return std::nullopt;
  const double peers = n - 1;
  const Seconds start = kernels.start + (peers - 1) * kernels.rank;
  if (one_shot_fits(kernels, n, bytes))
    return start + peers * bytes / std::min(kernels.one_shot_bandwidth, link);
  if (n == 2 || bytes >= kernels.two_shot_limit) return std::nullopt;
  const Bytes sent = load_of(Operation::all_reduce, n, bytes).sent;
  return start + kernels.second_start + sent / std::min(kernels.two_shot_bandwidth, link);
}

const CustomAllReduce::Kernels& kernels_of(const CustomAllReduce& custom, AllReduceKernels kernels) {
  return kernels == AllReduceKernels::vllm ? custom.vllm : custom.trtllm;
}

}  // namespace

Protocol protocol_of(const NcclProtocols& nccl, std::int32_t n, Bytes bytes) {
  if (bytes <= nccl.ll.limit) return Protocol::ll;
  return bytes / static_cast<double>(n) <= nccl.ll128.limit ? Protocol::ll128 : Protocol::simple;
}

Seconds protocol_time(const NcclProtocols& nccl, Protocol protocol, Operation operation, std::int32_t n,
                      Bytes bytes, BytesPerSecond link) {
  SHARDSCAPE_CHECK(n >= 2 && nccl.known() && link > BytesPerSecond(0), n);
  const Load load = load_of(operation, n, bytes);
  switch (protocol) {
    case Protocol::ll:
      return nccl.start + flagged(nccl.ll, load, kFlaggedHalf * link);
    case Protocol::ll128:
      return nccl.start + flagged(nccl.ll128, load, kFlaggedLine * link);
    case Protocol::simple:
      break;
  }
  return nccl.start + nccl.simple.start + load.steps * nccl.simple.step +
         load.sent / (nccl.simple.link_share * link) + load.own / nccl.simple.own_bandwidth;
}

std::optional<Seconds> nccl_time(const NcclProtocols& nccl, Operation operation, std::int32_t n, Bytes bytes,
                                 BytesPerSecond link) {
  if (!nccl.known()) return std::nullopt;
  switch (operation) {
    case Operation::all_reduce:
    case Operation::reduce_scatter:
    case Operation::all_gather:
      return protocol_time(nccl, protocol_of(nccl, n, bytes), operation, n, bytes, link);
    case Operation::all_to_all:
      return all_to_all_time(nccl.all_to_all, n, bytes, link);
    case Operation::broadcast:
    case Operation::pipeline:
    case Operation::point_to_point:
      break;
  }
  return std::nullopt;
}

std::optional<Seconds> all_reduce_time(const NodeCollectives& node, AllReduceKernels kernels, std::int32_t n,
                                       Bytes bytes, BytesPerSecond link) {
  const std::optional<Seconds> library = nccl_time(node.nccl, Operation::all_reduce, n, bytes, link);
  if (kernels == AllReduceKernels::library || !library) return library;
  const CustomAllReduce::Kernels& chosen = kernels_of(node.custom, kernels);
  if (const auto time = custom_time(chosen, n, bytes, link)) return time;
  const bool multimem = node.custom.multimem_bandwidth > BytesPerSecond(0) && chosen.known() && n > 2 &&
                        n <= kMostCustomRanks && kernels != AllReduceKernels::trtllm;
  if (!multimem) return library;
  return std::min(*library,
                  node.custom.multimem_start + bytes / std::min(node.custom.multimem_bandwidth, link));
}

std::optional<Seconds> collective_in_node(const DeviceSpec& device, Operation operation, std::int32_t n,
                                          Bytes bytes) {
  const BytesPerSecond link = device.links.bandwidth();
  if (!(link > BytesPerSecond(0))) return std::nullopt;
  return nccl_time(device.node.nccl, operation, n, bytes, link);
}

std::optional<Seconds> all_reduce_in_node(const DeviceSpec& device, AllReduceKernels kernels, bool eager,
                                          std::int32_t n, Bytes bytes) {
  const BytesPerSecond link = device.links.bandwidth();
  if (!(link > BytesPerSecond(0))) return std::nullopt;
  const auto time = all_reduce_time(device.node, kernels, n, bytes, link);
  if (!time || !eager) return time;
  const Seconds copy = 2 * bytes / device.hbm_sustained();
  return std::max(*time + copy, kernels_of(device.node.custom, kernels).eager_floor);
}

}  // namespace shardscape::network
