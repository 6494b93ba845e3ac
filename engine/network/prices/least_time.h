// The least time that an operation takes in an execution, where members do not begin together and other groups come and
// go.
#pragma once

#include <algorithm>
#include <optional>

#include "engine/network/prices/collective_prices.h"

namespace shardscape::network {

/// The share of an operation's price, in which all ranks begin together, that it takes at least where they do not.
double least_share_of_price(const Fabric& fabric, const RankGroup& group);

/// Seconds that no execution of an operation of a group falls below, on healthy links. `stages`: the axis whose slices
/// are at other work most of the time, as pipeline stages are, so that only the groups of one of them count.
Seconds least_time(const CollectivePrices& collectives, const Fabric& fabric, const CollectiveKey& asked,
                   const std::optional<RankGroup::Level>& stages);

/// What calls one behind the other take at least. A rank that is through with one begins the next while others are
/// still at it, so its copies, latencies and waits on fast links may overlap with what the slowest link does for the
/// others. So one call counts in full, and the others by that link's time alone, which grows with the bytes.
struct LeastOfRow {
  Seconds first, next;
  [[nodiscard]] Seconds of(double calls) const { return first + std::max(0.0, calls - 1) * next; }
};
/// `asked`: one of the calls.
LeastOfRow least_of_row(const CollectivePrices& collectives, const Fabric& fabric, const CollectiveKey& asked,
                        const std::optional<RankGroup::Level>& stages);

/// Seconds of the operation with the groups of one slice on the network, where that is less than with all.
Seconds time_of_one_slice(const CollectivePrices& collectives, const CollectiveKey& asked,
                          const std::optional<RankGroup::Level>& axis);

}  // namespace shardscape::network
