// How the time of a point is found.
#pragma once

#include <cstdint>

#include "engine/base/enum_names.h"

namespace shardscape {

/// hierarchical  layer by layer, stage by stage, then the pipeline; closed forms where they hold
/// flattened     every operator and message of every rank in one course of events on the same fabric
/// checked       training: hierarchical, and flattened where that is marked (StepPrediction::outside_domain()) and has
///               at most 100 million events
enum class ExecutionMode : std::uint8_t { hierarchical, flattened, checked };

}  // namespace shardscape
