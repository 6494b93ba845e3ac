// What the axes of a plan send, for judging a placement.
#pragma once

#include "engine/network/collective_model.h"
#include "engine/spec/group_bytes.h"
#include "engine/step/price_training.h"

namespace shardscape::step {

/// One training step. Hidden traffic counts like any other.
GroupBytes training_bytes(const TrainingStep& inputs);

/// What a rank of a ring of `ranks` sends to its successor in one operation on `bytes`.
Bytes sent_bytes(network::CollectiveOp op, Bytes bytes, double ranks);

}  // namespace shardscape::step
