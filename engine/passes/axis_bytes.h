// What the axes of a plan send, for judging a placement.
#pragma once

#include "engine/passes/inference.h"
#include "engine/passes/training.h"
#include "engine/spec/axis_bytes.h"

namespace shardscape::passes {

/// One training step. Hidden traffic counts like any other.
AxisBytes training_bytes(const TrainingInputs& inputs);

/// One request: its prefill and its decode steps.
AxisBytes inference_bytes(const InferenceInputs& inputs);

}  // namespace shardscape::passes
