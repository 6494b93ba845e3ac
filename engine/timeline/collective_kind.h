// THE table of Chakra's kinds of collectives: what the network calls them.
#pragma once

#include <algorithm>
#include <array>
#include <optional>

#include "engine/network/collectives/collective_rows.h"
#include "engine/timeline/execution_trace.h"

namespace shardscape::timeline {

struct CollectiveKindRow {
  CollectiveKind kind;
  network::Operation operation;                      ///< whose messages it sends
  std::optional<network::CollectiveOp> priced = {};  ///< as prices name it; empty: none has a price
};
/// A reduce is a broadcast that runs backwards; gather, scatter and barrier have messages of their own
/// (replay_network.h).
inline constexpr auto kCollectiveKinds = std::to_array<CollectiveKindRow>({
    {CollectiveKind::all_reduce, network::Operation::all_reduce, network::CollectiveOp::all_reduce},
    {CollectiveKind::reduce, network::Operation::broadcast},
    {CollectiveKind::all_gather, network::Operation::all_gather, network::CollectiveOp::all_gather},
    {CollectiveKind::gather, network::Operation::point_to_point},
    {CollectiveKind::scatter, network::Operation::point_to_point},
    {CollectiveKind::broadcast, network::Operation::broadcast, network::CollectiveOp::broadcast},
    {CollectiveKind::all_to_all, network::Operation::all_to_all, network::CollectiveOp::all_to_all},
    {CollectiveKind::reduce_scatter, network::Operation::reduce_scatter,
     network::CollectiveOp::reduce_scatter},
    {CollectiveKind::reduce_scatter_block, network::Operation::reduce_scatter,
     network::CollectiveOp::reduce_scatter},
    {CollectiveKind::barrier, network::Operation::all_reduce},
});
constexpr const CollectiveKindRow& row_of(CollectiveKind kind) {
  return kCollectiveKinds[static_cast<std::size_t>(kind)];
}
static_assert(std::ranges::all_of(kCollectiveKinds,
                                  [](const CollectiveKindRow& row) { return &row_of(row.kind) == &row; }),
              "rows stand in the order of the enum");

/// The kind of an operation that is no pass along a ring or chain: of those traces hold the messages.
inline CollectiveKind kind_of(network::CollectiveOp op) {
  return std::ranges::find_if(kCollectiveKinds,
                              [&](const CollectiveKindRow& row) {
                                return row.priced && row.operation == network::operation_of(op);
                              })
      ->kind;
}

}  // namespace shardscape::timeline
