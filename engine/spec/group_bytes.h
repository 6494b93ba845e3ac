// How much each kind of group of a plan sends.
#pragma once

#include "engine/base/enum_array.h"
#include "engine/base/quantity.h"
#include "engine/spec/parallel_groups.h"

namespace shardscape {

/// Bytes that one rank sends to its next neighbour of a group in one step (training) or for one request
/// (inference), on the stage that sends most; ring algorithms. `pipeline` goes each way.
struct GroupBytes : EnumArray<ParallelGroup, Bytes> {
  bool pipeline_wraps = false;  ///< the last stage sends to the first, too (interleaved schedules)
};

}  // namespace shardscape
