// What the passes of a context group cost that goes round inside domains and between them, in closed form.
//
// A rank of a ring of n sends n - 1 messages to the next one, each when it has received the one before. Let g of them be
// members of a domain, hops between domains take s and those inside f. A rank that has a slow hop before it ends after
// (n - 1) s; the last of a domain has the last of its n - 1 messages from the one before, that one from the one before
// it, and so on to the first of the domain: it ends after (n - g) s + (g - 1) f, and begins the next layer's passes so
// much earlier. Its first messages cross the slow hop while the ranks behind it are still at work: after the first layer
// all ranks keep their distance, and a layer takes
//
//     work + (n - g) s + (g - 1) f,    at least (n - 1) s, which the slow hop is busy for,
//
// the greatest mean weight of a cycle of who waits for whom (Baccelli et al. 1992, "Synchronization and Linearity",
// theorem 3.17): one that crosses all n / g slow hops, one in each layer. The distance itself, (g - 1) (s - f), shows
// once in a step and is left out.
//
// Exchanges of experts make those ranks of a context group that hold experts together wait for each other in every layer.
// Of e such neighbours in a domain the last ones begin with the one among them that ends last: g - e + 1 takes the place
// of g.
//
// What sick links add to a pass is added in full.
#pragma once

#include "engine/network/collective_model.h"
#include "engine/step/price_training.h"

namespace shardscape::step {

/// Of a call of a context group, all its repeats: by how much less it delays a layer than the passes one after the other.
Seconds spared_by_drift(const TrainingStep& inputs, const model::CollectiveCall& call,
                        const network::RankGroups& groups, network::CollectiveModel& collectives);

}  // namespace shardscape::step
