#include "engine/step/serving/kv_transfer.h"

#include <algorithm>
#include <array>

#include "engine/model/block_kinds.h"
#include "engine/network/collectives/traffic_builder.h"
#include "engine/network/groups/rank_group.h"

namespace shardscape::step {

namespace {

/// A range of layers or of heads, by number: from `begin` up to but not including `end`.
struct Range {
  std::int64_t begin = 0, end = 0;
  [[nodiscard]] std::int64_t common(const Range& o) const {
    return std::max<std::int64_t>(0, std::min(end, o.end) - std::max(begin, o.begin));
  }
};

using BlockRanges = std::array<Range, model::kMostBlockKinds>;  ///< index: kind of block

/// Which of the model's blocks each stage holds: for each kind, the range of their numbers.
std::vector<BlockRanges> blocks_of(const std::vector<model::StageLayers>& stages) {
  std::vector<BlockRanges> ranges;
  BlockRanges next{};
  for (const model::StageLayers& stage : stages) {
    for (Range& range : next) range.begin = range.end;
    for (const auto& [kind, count] : stage) next[kind].end += count;
    ranges.push_back(next);
  }
  return ranges;
}

/// The KV units (heads) that a rank of a tensor group holds.
Range units_of(const model::KvUnits& units, std::int32_t tensor, std::int32_t rank) {
  const std::int64_t begin = units.first(tensor, rank);
  return {begin, begin + units.local(tensor)};
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
        from_blocks_(blocks_of(from.layers)),
        to_blocks_(blocks_of(to.layers)),
        kinds_(model::block_kinds(setting.model).size()) {}

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
          for (std::size_t kind = 0; kind < kinds_; ++kind) {
            append(list, from_replica, kind, to_blocks_[static_cast<std::size_t>(stage)][kind], t,
                   to_.placement[static_cast<std::size_t>(rank)]);
          }
        }
      }
    }
    return list;
  }

  /// Appends the flows that bring one rank, the t-th of its tensor group, the caches of its blocks of one kind.
  void append(std::vector<serving::KvFlow>& list, std::int32_t replica, std::size_t kind, const Range& blocks,
              std::int32_t t, std::int32_t destination) {
    const model::KvUnits kv = model::kv_units(setting_.model, kind);
    const Range needed = units_of(kv, to_.plan.tensor, t);
    const std::int32_t same = kv.copies(from_.plan.tensor);
    const double tokens =
        model::cached_tokens(setting_.model, kind, static_cast<double>(setting_.workload.prompt_tokens));
    const double piece = tokens / to_.plan.context * model::kv_unit_bytes(setting_, kind).value();
    for (std::int32_t stage = 0; stage < from_.plan.pipeline; ++stage) {
      const std::int64_t common = blocks.common(from_blocks_[static_cast<std::size_t>(stage)][kind]);
      for (std::int32_t s = t % same; s < from_.plan.tensor && common > 0; s += same) {
        const std::int64_t shared = needed.common(units_of(kv, from_.plan.tensor, s));
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
  std::vector<BlockRanges> from_blocks_, to_blocks_;
  std::size_t kinds_;
};

}  // namespace

KvTraffic kv_traffic(const Setting& setting, const PoolRanks& prefill, const PoolRanks& decode,
                     network::PricedNetwork& network) {
  return TrafficMaker(setting, prefill, decode, network).make();
}

}  // namespace shardscape::step
