#include "engine/network/collectives/expert_dispatch.h"

#include <algorithm>
#include <cmath>

#include "engine/base/check.h"

namespace shardscape::network {

namespace {

constexpr double kScaledByte = 1 + 4.0 / 128;  ///< fp8, with a scale of four bytes for every 128 values
constexpr double kBfloat = 2;
constexpr double kForwarding = 2;     ///< half of the SMs are busy forwarding between nodes
constexpr double kSpread = 1.0 / 30;  ///< fitted: what many nodes cost the network, see the header

Bytes row_bytes(DispatchWay way, const ExpertExchange& c) {
  return Bytes(c.hidden * (c.value_bytes > 0 ? c.value_bytes : dispatch_bytes(way)));
}

Seconds low_latency_time(const ExpertDispatch::LowLatency& k, DispatchWay way, const ExpertExchange& c) {
  const bool out = way == DispatchWay::dispatch;
  const Bytes row = row_bytes(way, c);
  const Bytes message = c.tokens * c.top_k * row;
  Seconds move = message / c.nodes / (out ? k.dispatch_bandwidth : k.combine_bandwidth);
  if (c.nodes > 1) move += message * ((c.nodes - 1) / c.nodes) / k.node_bandwidth;
  if (out) move = std::max(move, c.tokens * c.top_k / c.experts * row / k.queue_bandwidth);
  return (out ? k.dispatch_start : k.combine_start) +
         c.experts * (out ? k.dispatch_expert : k.combine_expert) +
         std::sqrt(c.nodes - 1) * (out ? k.dispatch_node : k.combine_node) + move;
}

Seconds normal_time(const ExpertDispatch::Normal& k, DispatchWay way, const ExpertExchange& c) {
  const bool out = way == DispatchWay::dispatch;
  const Bytes row = row_bytes(way, c);
  const double copies = c.tokens * (k.local_copies + copies_sent({.top_k = c.top_k, .members = c.ranks}));
  const Bytes moved = copies * row;
  const Seconds sms = (c.nodes > 1 ? kForwarding : 1) / c.sms * (copies * k.copy + moved / k.sm_bandwidth);
  const Seconds link = moved / k.bandwidth;
  Seconds network;
  if (c.nodes > 1) {
    const double met = c.nodes_met > 0 ? c.nodes_met : places_met(c.nodes, c.top_k);
    const double remote = c.tokens * met * (c.nodes - 1) / c.nodes;
    network = (1 + kSpread * c.nodes * (c.nodes - 2)) * (remote * row / k.node_bandwidth);
  }
  const auto fourth = [](Seconds t) { return t.value() * t.value() * t.value() * t.value(); };
  const Seconds move(std::sqrt(std::sqrt(fourth(sms) + fourth(link) + fourth(network))));
  return (out ? k.dispatch_start : k.combine_start + row / k.row_bandwidth) +
         std::sqrt(c.nodes - 1) * (out ? k.dispatch_node : k.combine_node) + move;
}

}  // namespace

double dispatch_bytes(DispatchWay way) { return way == DispatchWay::dispatch ? kScaledByte : kBfloat; }

std::optional<Seconds> expert_exchange_time(const ExpertDispatch& device, DispatchKernels kernels,
                                            DispatchWay way, const ExpertExchange& call) {
  SHARDSCAPE_CHECK(call.ranks >= 1 && call.nodes >= 1 && call.experts >= 1 && call.sms >= 1, call.ranks,
                   call.nodes, call.experts, call.sms);
  const bool low = kernels == DispatchKernels::low_latency;
  if (!(low ? device.low_latency.known() : device.normal.known())) return std::nullopt;
  const BytesPerSecond between = low ? device.low_latency.node_bandwidth : device.normal.node_bandwidth;
  if (call.nodes > 1 && !(between > BytesPerSecond(0))) return std::nullopt;
  return low ? low_latency_time(device.low_latency, way, call) : normal_time(device.normal, way, call);
}

}  // namespace shardscape::network
