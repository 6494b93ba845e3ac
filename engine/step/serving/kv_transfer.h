// The transfer of key-value caches that prompts leave behind, from the ranks of one pool to those of another.
//
// A rank of the first pool holds the keys and values of its stage's layers and of its share of the heads (one
// whole head where the tensor degree exceeds the heads). A rank of the second one needs those of its own
// layers and heads, for its share of the tokens where a context group splits them. So each pair of ranks
// whose layers and heads overlap has one flow of
//
//   tokens / context * common layers * common heads * bytes of a head's key and value
//
// Of ranks that hold the same head, each serves its part of those that need it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/stage_layers.h"
#include "engine/network/prices/priced_network.h"
#include "engine/serving/pooled_course.h"
#include "engine/spec/scenario.h"

namespace shardscape::step {

/// One pool and its place on the fabric; all references must outlive it.
struct PoolRanks {
  const ParallelPlan& plan;                       ///< the plan of this pool alone
  const std::vector<model::StageLayers>& layers;  ///< index: stage
  std::span<const std::int32_t> placement;        ///< index: rank of the pool; rank of the fabric
};

struct KvTraffic {
  network::Traffic wires;
  std::vector<std::vector<serving::KvFlow>> flows;  ///< [prefill replica * decode replicas + decode replica]
  Bytes request;                                    ///< bytes sent for one request
  bool unreachable = false;                         ///< dead links cut ranks off that have to talk
};

/// Computes the flows of one request from each replica of one pool to each replica of the other, over links at the
/// stack's achieved share of their bandwidth; latencies include the fixed cost of a call.
KvTraffic kv_traffic(const Setting& setting, const PoolRanks& prefill, const PoolRanks& decode,
                     network::PricedNetwork& network);

}  // namespace shardscape::step
