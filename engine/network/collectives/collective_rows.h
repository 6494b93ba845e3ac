// THE table of what an operation of a group is called, what its messages are, and how much its members send.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "engine/network/collectives/collective_op.h"
#include "engine/network/collectives/patterns.h"

namespace shardscape::network {

struct CollectiveRow {
  CollectiveOp op;
  const char* name;     ///< in tables of operators
  Operation operation;  ///< as patterns name it; passes are sends from point to point
  /// How often a member of n sends all of the bytes but its own n-th, in the mean over members with unequal parts; 0:
  /// it sends all of them to a neighbour.
  std::int32_t sweeps = 1;
};
inline constexpr std::array<CollectiveRow, kCollectiveOps> kCollectiveRows = {{
    {CollectiveOp::all_reduce, "all_reduce", Operation::all_reduce, 2},
    {CollectiveOp::reduce_scatter, "reduce_scatter", Operation::reduce_scatter},
    {CollectiveOp::all_gather, "all_gather", Operation::all_gather},
    {CollectiveOp::all_to_all, "all_to_all", Operation::all_to_all},
    {CollectiveOp::broadcast, "broadcast", Operation::broadcast, 0},
    {CollectiveOp::ring_pass, "ring_pass", Operation::point_to_point, 0},
    {CollectiveOp::chain_pass, "send_recv", Operation::point_to_point, 0},
    {CollectiveOp::message, "send_recv", Operation::point_to_point, 0},
    {CollectiveOp::expert_dispatch, "expert_dispatch", Operation::all_to_all},
    {CollectiveOp::expert_combine, "expert_combine", Operation::all_to_all},
    {CollectiveOp::dispatch, "uneven all_to_all", Operation::all_to_all},
    {CollectiveOp::combine, "uneven all_to_all", Operation::all_to_all},
    {CollectiveOp::last_combine, "uneven all_to_all", Operation::all_to_all},
    {CollectiveOp::low_latency_dispatch, "low-latency dispatch", Operation::all_to_all},
    {CollectiveOp::low_latency_combine, "low-latency combine", Operation::all_to_all},
}};
constexpr const CollectiveRow& row_of(CollectiveOp op) {
  return kCollectiveRows[static_cast<std::size_t>(op)];
}
constexpr Operation operation_of(CollectiveOp op) { return row_of(op).operation; }
static_assert(std::ranges::all_of(kCollectiveRows,
                                  [](const CollectiveRow& row) { return &row_of(row.op) == &row; }),
              "rows stand in the order of the enum");

}  // namespace shardscape::network
