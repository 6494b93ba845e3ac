// Decides which predictions count as results: numbers that a result file can hold and a reader can use.
#pragma once

#include "engine/spec/prediction.h"
#include "engine/spec/workload.h"

namespace shardscape {

/// True where every figure of a timed prediction of that phase is finite, times and bytes are at most 1e30, the step
/// (the request) takes at least 1e-30 s, and no load lacks the steady state that it was to show.
/// These limits are far beyond any machine; within them
/// parts can be stored in single precision (up to 3.4e38, normal from 1.2e-38 on) and still add up to the
/// whole.
bool in_range(const Prediction& prediction, Phase phase);

/// The same check of the memory figures alone, which may be known where no time is.
bool memory_in_range(const Prediction& prediction);

/// Turns a prediction into one without figures, with status out_of_range. Its reason is no_steady_state where that is
/// what it lacks, else out_of_range.
void reject_range(Prediction& prediction);

}  // namespace shardscape
