#include "engine/passes/kv_transfer.h"

#include <algorithm>

#include "engine/network/rank_group.h"
#include "engine/network/traffic_builder.h"
#include "engine/workload/layers.h"

namespace shardscape::passes {

namespace {

/// Numbers of layers or of heads: from `begin` up to but not including `end`.
struct Range {
  std::int64_t begin = 0, end = 0;
  [[nodiscard]] std::int64_t common(const Range& o) const {
    return std::max<std::int64_t>(0, std::min(end, o.end) - std::max(begin, o.begin));
  }
};

std::vector<Range> layers_of(const std::vector<std::int32_t>& stages) {
  std::vector<Range> ranges;
  std::int64_t begin = 0;
  for (const std::int32_t count : stages) {
    ranges.push_back({begin, begin + count});
    begin += count;
  }
  return ranges;
}

/// KV heads of each rank of a tensor group.
Range heads_of(const ModelSpec& model, std::int32_t tensor, std::int32_t rank) {
  const std::int64_t local = workload::local_kv_heads(model, tensor);
  const std::int64_t begin = rank * model.kv_heads / tensor;
  return {begin, begin + local};
}

/// Ranks that hold the same heads.
std::int32_t copies(const ModelSpec& model, std::int32_t tensor) {
  return static_cast<std::int32_t>(std::max<std::int64_t>(1, tensor / model.kv_heads));
}

class TrafficMaker {
 public:
  TrafficMaker(const Setting& setting, const PoolRanks& from, const PoolRanks& to,
               network::PricedNetwork& network)
      : setting_(setting),
        from_(from),
        to_(to),
        network_(network),
        builder_(network.routes()),
        from_layout_(from.plan),
        to_layout_(to.plan),
        from_layers_(layers_of(from.layers)),
        to_layers_(layers_of(to.layers)) {}

  KvTraffic make() {
    KvTraffic traffic;
    for (std::int32_t a = 0; a < from_.plan.data; ++a) {
      for (std::int32_t b = 0; b < to_.plan.data; ++b) traffic.flows.push_back(flows(a, b));
    }
    for (const serving::KvFlow& flow : traffic.flows.front()) traffic.request += Bytes(flow.bytes);
    traffic.unreachable = !builder_.unreachable().empty();
    traffic.wires = builder_.finish().first;
    const double call = setting_.system.stack.communication.call.value();
    for (network::Connection& c : traffic.wires.connections) {
      const auto path = std::span(traffic.wires.path_links)
                            .subspan(static_cast<std::size_t>(c.path_begin),
                                     static_cast<std::size_t>(c.path_end - c.path_begin));
      c.latency = network_.step_latency(path) + call;
    }
    return traffic;
  }

 private:
  /// The flows of one request from a replica that prefills to one that decodes.
  std::vector<serving::KvFlow> flows(std::int32_t from_replica, std::int32_t to_replica) {
    std::vector<serving::KvFlow> list;
    for (std::int32_t stage = 0; stage < to_.plan.pipeline; ++stage) {
      for (std::int32_t c = 0; c < to_.plan.context; ++c) {
        for (std::int32_t t = 0; t < to_.plan.tensor; ++t) {
          const std::int32_t rank =
              to_replica * to_layout_.stride(PlanAxis::data) + stage * to_layout_.stride(PlanAxis::pipeline) +
              c * to_layout_.stride(PlanAxis::context) + t * to_layout_.stride(PlanAxis::tensor);
          append(list, from_replica, to_layers_[static_cast<std::size_t>(stage)], t,
                 to_.placement[static_cast<std::size_t>(rank)]);
        }
      }
    }
    return list;
  }

  /// What one rank, the t-th of its tensor group, needs.
  void append(std::vector<serving::KvFlow>& list, std::int32_t replica, const Range& layers, std::int32_t t,
              std::int32_t destination) {
    const ModelSpec& model = setting_.model;
    const Range heads = heads_of(model, to_.plan.tensor, t);
    const std::int32_t same = copies(model, from_.plan.tensor);
    const double piece = 2 * bytes_per_element(setting_.workload.precision) *
                         static_cast<double>(setting_.workload.prompt_tokens) / to_.plan.context *
                         static_cast<double>(model.head_dim);
    for (std::int32_t stage = 0; stage < from_.plan.pipeline; ++stage) {
      const std::int64_t common = layers.common(from_layers_[static_cast<std::size_t>(stage)]);
      for (std::int32_t s = t % same; s < from_.plan.tensor && common > 0; s += same) {
        const std::int64_t shared = heads.common(heads_of(model, from_.plan.tensor, s));
        if (shared == 0) continue;
        const std::int32_t rank = replica * from_layout_.stride(PlanAxis::data) +
                                  stage * from_layout_.stride(PlanAxis::pipeline) +
                                  s * from_layout_.stride(PlanAxis::tensor);
        const std::int32_t connection =
            builder_.connection(from_.placement[static_cast<std::size_t>(rank)], destination);
        list.push_back({connection, piece * static_cast<double>(common * shared)});
      }
    }
  }

  const Setting& setting_;
  const PoolRanks& from_;
  const PoolRanks& to_;
  network::PricedNetwork& network_;
  network::TrafficBuilder builder_;
  network::PlanLayout from_layout_, to_layout_;
  std::vector<Range> from_layers_, to_layers_;
};

}  // namespace

KvTraffic kv_traffic(const Setting& setting, const PoolRanks& prefill, const PoolRanks& decode,
                     network::PricedNetwork& network) {
  return TrafficMaker(setting, prefill, decode, network).make();
}

}  // namespace shardscape::passes
