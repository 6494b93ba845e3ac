// How much each axis of a plan sends.
#pragma once

#include "engine/base/enum_array.h"
#include "engine/base/quantity.h"
#include "engine/spec/plan.h"

namespace shardscape {

/// Bytes that one rank sends to its next neighbour of an axis in one step (training) or for one request
/// (inference), on the stage that sends most; ring algorithms. That of `data` is the ring over data and
/// context parallel ranks together, over which gradients and ZeRO are sharded; `pipeline` goes each way.
struct AxisBytes : EnumArray<PlanAxis, Bytes> {
  bool pipeline_wraps = false;  ///< the last stage sends to the first, too (interleaved schedules)
};

}  // namespace shardscape
