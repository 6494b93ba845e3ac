// What the passes of a context group cost that goes round inside domains and between them, in closed form.
//
// A rank of a ring of n sends n - 1 messages to the next one, each when it has received the one before. Let g of them
// be members of a domain, hops between domains take s and those inside f. Ranks behind a slow hop end later than those
// before it and begin the next layer's passes so much later, but the first messages of the others cross the slow hop
// while they are still at work: after the first layers all ranks keep their distance, and a layer takes its work and
// the greatest mean weight of a cycle of who waits for whom (Baccelli et al. 1992, "Synchronization and Linearity",
// theorem 3.17). In a layer a cycle takes n - 1 steps, each to the next rank, for s or f, or to the next message over
// the same hop, whose link, or whose sender, is busy for u <= s. It weighs most where it always goes on, or where it
// waits at a slow hop in each layer and goes on to the next one:
//
//     max((n - 1) (s + (g - 1) f) / g,    s + (g - 1) f + (n - 1 - g) u)
//
// and a layer is never shorter than the slow link is busy for. The distance itself, (g - 1) (s - f) at most, shows once
// in a step and is left out. Where domains have unequal numbers of members, cycles weigh as much however they lie: g is
// the mean over all k domains, n / k.
//
// Exchanges of experts make those ranks of a context group that hold experts together wait for each other in every
// layer. Of e such neighbours the last ones begin with the one among them that ends last. A cycle may then leave a
// layer at one of them and enter the next at another: where it always goes on it crosses all n / g slow hops in n - 1
// steps, and where it waits g - e + 1 takes the place of g, 1 at least.
//
// A pass that recomputes makes two exchanges in each layer, with messages of unlike sizes. The cycle is then one of
// both together, which may weigh more than that of each: it may wait at a slow hop for all of the larger messages and
// go on inside the domain while the others are sent. So the weights of the longest ways through each exchange, from a
// place in a domain to another one, are multiplied (in the max-plus algebra), and the greatest mean weight of a cycle
// of the product counts.
//
// Where calls of the tensor group leave domains as well, ranks that have drifted apart meet each other's calls there,
// and a part of what drift spares is lost.
//
// What sick links add to a pass is added in full.
#pragma once

#include <span>

#include "engine/step/layers/call_prices.h"

namespace shardscape::step {

/// How much less all repeats of a context group's call delay a layer than the passes one after the other would.
Seconds spared_by_drift(const model::CollectiveCall& call, const CallPrices& prices);

/// How much longer these exchanges of one pass through a layer delay it together than each would by itself.
Seconds added_by_turns(std::span<const model::CollectiveCall* const> exchanges, const CallPrices& prices);

/// How many members of a context group lie in a domain, in the mean, where its ranks drift apart: where groups leave
/// domains but not at every hop. 1 where they don't.
double drifting_members(const FabricSpec& fabric, const network::RankGroup& context);

}  // namespace shardscape::step
