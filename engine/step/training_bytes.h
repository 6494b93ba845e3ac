// What the axes of a plan send, for judging a placement.
#pragma once

#include "engine/network/collective_model.h"
#include "engine/spec/group_bytes.h"
#include "engine/step/price_training.h"

namespace shardscape::step {

/// One training step. Hidden traffic counts like any other. `collectives`: of the placement at hand.
GroupBytes training_bytes(const TrainingStep& inputs, network::CollectiveModel& collectives);

/// What a mean rank of the group sends in all repeats of a call, as programs of ranks do: of exchanges of experts the
/// copies of spec/token_copies.h. Of ring algorithms: to its successor.
Bytes sent_bytes(network::CollectiveModel& collectives, const model::CollectiveCall& call,
                 const network::RankGroup& group);

}  // namespace shardscape::step
