// Which links the iterations of two pools have in common with the caches that move between these (kv_transfer.h), and
// for how long they send there.
//
// Of a server's links that caches use, those count that its collective calls use, too (healthy_costs.h). A call is busy
// there while its messages are on their links, for as much of that as it uses of the bandwidth of the link that it uses
// most. The shares of a class of time are those of a typical iteration: of the pool that reads one with a prompt, or as
// much of it as the token budget has, of the one that decodes one of all its sequences. Where no call uses such a link,
// as where pools lie on nodes of their own and groups inside of these, nothing is shared.
//
// Left out: messages between stages, and faults of links.
#pragma once

#include "engine/serving/live/serve_pools.h"
#include "engine/step/serving/pools.h"

namespace shardscape::step {

/// Fills the shares of both pools, and adds the flows of their servers to the traffic (KvFabric::flows) where any has
/// links in common with caches. `rates`: bytes per second of links.
void share_links(const Pool& prefill, const Pool& decode, std::span<const double> rates, KvTraffic& traffic,
                 serving::LivePool& readers, serving::LivePool& decoders);

}  // namespace shardscape::step
