// How data-parallel traffic beside the passes of a stage (ZeRO-2 and 3) meets that of other stages on links that they
// share.
//
// Such traffic begins with its pass, or when 1 - data_overlap of it is done, and when passes run is known from the
// schedule: under gpipe those of neighbours run at the same time, under 1f1b a backward follows the one of the stage
// behind. So the operations of all stages are laid out in time, with their traffic beside them, and what of a stage's
// traffic has that of another beside it is counted: of those alone whose groups use links in common with its own, which
// need not be its neighbours.
//
// Traffic that begins within half a call of another stage's goes on in step with it, call by call and, within calls,
// one stage of an algorithm after the other, so that both are on the same links at the same time (in_phase).
#pragma once

#include "engine/schedule/ordered_run.h"
#include "engine/step/layers/sibling_turns.h"
#include "engine/step/training/step_machine.h"
#include "engine/step/training/step_times.h"

namespace shardscape::step {

/// Of a stage whose pipeline has been timed; `orders` is scratch. Nothing is met where no stage shares links with it.
MetTraffic met_traffic(const StepMachine& machine, const StepTimes& times, std::size_t stage,
                       schedule::OrderedRun& orders);

}  // namespace shardscape::step
