#include "engine/spec/node_collectives.h"

#include <string>

#include "engine/spec/ranges.h"

namespace shardscape {

namespace {

void check_nccl(Problems& problems, const NcclProtocols& nccl) {
  const auto time = [&](Seconds value, const std::string& field) {
    require_range(problems, value, field, ranges::kTime);
  };
  const auto rate = [&](BytesPerSecond value, const std::string& field) {
    require_range(problems, value, field, ranges::kBandwidth);
  };
  time(nccl.start, "nccl.start");
  const auto flagged = [&](const NcclProtocols::Flagged& protocol, const std::string& name) {
    time(protocol.start, name + ".start");
    time(protocol.step, name + ".step");
    rate(protocol.bandwidth, name + ".bandwidth");
    require_range(problems, protocol.limit, name + ".limit", ranges::kBytes);
  };
  flagged(nccl.ll, "nccl.ll");
  flagged(nccl.ll128, "nccl.ll128");
  time(nccl.simple.start, "nccl.simple.start");
  time(nccl.simple.step, "nccl.simple.step");
  require_range(problems, nccl.simple.link_share, "nccl.simple.link_share", ranges::kShare);
  rate(nccl.simple.own_bandwidth, "nccl.simple.own_bandwidth");
  time(nccl.all_to_all.start, "nccl.all_to_all.start");
  time(nccl.all_to_all.small_peer, "nccl.all_to_all.small_peer");
  rate(nccl.all_to_all.small_bandwidth, "nccl.all_to_all.small_bandwidth");
  time(nccl.all_to_all.large_start, "nccl.all_to_all.large_start");
  time(nccl.all_to_all.large_peer, "nccl.all_to_all.large_peer");
  require_range(problems, nccl.all_to_all.large_link_share, "nccl.all_to_all.large_link_share",
                ranges::kShare);
  rate(nccl.all_to_all.own_bandwidth, "nccl.all_to_all.own_bandwidth");
}

void check_kernels(Problems& problems, const CustomAllReduce::Kernels& kernels, const std::string& name) {
  if (!kernels.known()) return;
  const auto check = [&](auto value, const char* field, const Range& range) {
    require_range(problems, value, "custom_all_reduce." + name + "." + field, range);
  };
  check(kernels.start, "start", ranges::kTime);
  check(kernels.rank, "rank", ranges::kTime);
  check(kernels.one_shot_bandwidth, "one_shot_bandwidth", ranges::kBandwidth);
  check(kernels.second_start, "second_start", ranges::kTime);
  check(kernels.two_shot_bandwidth, "two_shot_bandwidth", ranges::kBandwidth);
  check(kernels.pair_limit, "pair_limit", ranges::kBytes);
  check(kernels.two_shot_limit, "two_shot_limit", ranges::kBytes);
}

void check_low_latency(Problems& problems, const ExpertDispatch::LowLatency& kernels) {
  const auto check = [&](auto value, const char* field, const Range& range) {
    require_range(problems, value, (std::string("expert_dispatch.low_latency.") + field).c_str(), range);
  };
  check(kernels.dispatch_start, "dispatch_start", ranges::kTime);
  check(kernels.combine_start, "combine_start", ranges::kTime);
  check(kernels.dispatch_expert, "dispatch_expert", ranges::kTime);
  check(kernels.combine_expert, "combine_expert", ranges::kTime);
  check(kernels.dispatch_bandwidth, "dispatch_bandwidth", ranges::kBandwidth);
  check(kernels.combine_bandwidth, "combine_bandwidth", ranges::kBandwidth);
  check(kernels.queue_bandwidth, "queue_bandwidth", ranges::kBandwidth);
  check(kernels.dispatch_node, "dispatch_node", ranges::kTime);
  check(kernels.combine_node, "combine_node", ranges::kTime);
  check(kernels.node_bandwidth, "node_bandwidth", ranges::kBandwidthIfKnown);
}

void check_normal(Problems& problems, const ExpertDispatch::Normal& kernels) {
  constexpr Range kCopies{0, 100};
  const auto check = [&](auto value, const char* field, const Range& range) {
    require_range(problems, value, (std::string("expert_dispatch.normal.") + field).c_str(), range);
  };
  check(kernels.dispatch_start, "dispatch_start", ranges::kTime);
  check(kernels.combine_start, "combine_start", ranges::kTime);
  check(kernels.row_bandwidth, "row_bandwidth", ranges::kBandwidth);
  check(kernels.copy, "copy", ranges::kTime);
  check(kernels.sm_bandwidth, "sm_bandwidth", ranges::kBandwidth);
  check(kernels.bandwidth, "bandwidth", ranges::kBandwidth);
  check(kernels.local_copies, "local_copies", kCopies);
  check(kernels.dispatch_node, "dispatch_node", ranges::kTime);
  check(kernels.combine_node, "combine_node", ranges::kTime);
  check(kernels.node_bandwidth, "node_bandwidth", ranges::kBandwidthIfKnown);
}

bool given(const ExpertDispatch::LowLatency& kernels) {
  return kernels.known() || kernels.combine_bandwidth > BytesPerSecond(0) ||
         kernels.dispatch_start > Seconds(0);
}

bool given(const ExpertDispatch::Normal& kernels) {
  return kernels.known() || kernels.sm_bandwidth > BytesPerSecond(0) || kernels.dispatch_start > Seconds(0);
}

bool given(const NcclProtocols& nccl) {
  return nccl.known() || nccl.start > Seconds(0) || nccl.ll.bandwidth > BytesPerSecond(0) ||
         nccl.ll128.bandwidth > BytesPerSecond(0) || nccl.all_to_all.large_link_share != 0;
}

}  // namespace

void NodeCollectives::validate(Problems& problems) const {
  if (given(nccl)) check_nccl(problems, nccl);
  check_kernels(problems, custom.vllm, "vllm");
  check_kernels(problems, custom.trtllm, "trtllm");
  if (given(experts.low_latency)) check_low_latency(problems, experts.low_latency);
  if (given(experts.normal)) check_normal(problems, experts.normal);
  require_range(problems, custom.multimem_start, "custom_all_reduce.multimem_start", ranges::kTime);
  require_range(problems, custom.multimem_bandwidth, "custom_all_reduce.multimem_bandwidth",
                ranges::kBandwidthIfKnown);
  require_range(problems, custom.eager_floor, "custom_all_reduce.eager_floor", ranges::kTime);
}

}  // namespace shardscape
