// The bytes that the axes of a plan send, by which a placement is judged.
#pragma once

#include "engine/network/prices/collective_prices.h"
#include "engine/spec/group_bytes.h"
#include "engine/step/layers/training_step.h"

namespace shardscape::step {

/// Bytes per group in one training step. Hidden traffic counts like any other. `collectives`: of the placement at hand.
GroupBytes training_bytes(const TrainingStep& inputs, const network::CollectivePrices& collectives);

/// Bytes that a rank of the group sends on average in all repeats of a call, as in programs of ranks: for exchanges of
/// experts the copies of spec/token_copies.h, for ring algorithms what goes to the successor.
Bytes sent_bytes(const network::CollectivePrices& collectives, const model::CollectiveCall& call,
                 const network::RankGroup& group);

}  // namespace shardscape::step
