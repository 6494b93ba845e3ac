#include "engine/base/check.h"
#include "engine/network/collectives/collectives.h"

namespace shardscape::network {

namespace {

void add_reduction(GroupTraffic& group, const Pattern& pattern) {
  const int passes = pattern.operation == Operation::all_reduce ? 2 : 1;
  switch (pattern.algorithm) {
    case Algorithm::ring:
      return pattern.ring_order == RingOrder::channels
                 ? add_channel_rings(group, pattern.bytes, passes, pattern.channels)
                 : add_ring(group, pattern.bytes / pattern.channels, passes);
    case Algorithm::bidirectional_ring:
      return add_bidirectional_ring(group, pattern.bytes, passes);
    case Algorithm::direct:
      return add_direct(group, pattern.bytes, passes);
    case Algorithm::halving_doubling:
      return add_halving_doubling(group, pattern.operation, pattern.halving_order, pattern.bytes);
    case Algorithm::double_binary_tree:
      return add_double_binary_tree(group, pattern.operation, pattern.bytes, pattern.chunks);
    case Algorithm::dimension_wise:
      return add_dimension_wise(group, pattern.operation, pattern.bytes);
    case Algorithm::in_network:
      return add_in_network(group, pattern.operation, pattern.bytes, pattern.chunks);
    case Algorithm::binary_tree:
    case Algorithm::pairwise:
      SHARDSCAPE_CHECK(false, name_of(pattern.algorithm));
  }
}

void add_broadcast(GroupTraffic& group, const Pattern& pattern) {
  switch (pattern.algorithm) {
    case Algorithm::ring:
      return add_chain_broadcast(group, pattern.bytes, pattern.chunks);
    case Algorithm::direct:
      return add_direct_broadcast(group, pattern.bytes);
    case Algorithm::binary_tree:
      return add_binary_tree_broadcast(group, pattern.bytes, pattern.chunks);
    case Algorithm::double_binary_tree:
      return add_double_binary_tree(group, pattern.operation, pattern.bytes, pattern.chunks);
    case Algorithm::in_network:
      return add_in_network(group, pattern.operation, pattern.bytes, pattern.chunks);
    default:
      SHARDSCAPE_CHECK(false, name_of(pattern.algorithm));
  }
}

}  // namespace

void add_collective(GroupTraffic& group, const Pattern& pattern) {
  switch (pattern.operation) {
    case Operation::all_reduce:
    case Operation::reduce_scatter:
    case Operation::all_gather:
      return add_reduction(group, pattern);
    case Operation::all_to_all:
      return pattern.algorithm == Algorithm::pairwise ? add_pairwise(group, pattern.partners, pattern.bytes)
                                                      : add_exchange(group, pattern.bytes, pattern.skew);
    case Operation::broadcast:
      return add_broadcast(group, pattern);
    case Operation::pipeline:
      return add_pipeline(group, pattern);
    case Operation::point_to_point:
      return;
  }
}

}  // namespace shardscape::network
