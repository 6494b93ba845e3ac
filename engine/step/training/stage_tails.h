// What each stage does after its last backward.
//
// A step ends with the stage that ends last, and what gradients expose is worth knowing of that one only. It takes a
// walk over the layers of a stage, and most stages cannot be that one. They expose at most all of their gradients'
// traffic; and at most what a stage exposes that costs the same and whose chunks end no further before its end: the
// last arrival (data_exposure.h) is a maximum over moments plus the traffic that is left then, so it is later where
// they are later, and moves with them.
#pragma once

#include "engine/step/training/price_training.h"

namespace shardscape::step {

/// The stage that ends last, the first of several, and when; fills the tails of the scratch, whose pipeline has been
/// timed (StepTimes::tails).
struct LastStage {
  std::size_t stage = 0;
  Seconds end;
};
LastStage add_tails(const StepMachine& machine, TrainingScratch& scratch);

/// Whether data-parallel traffic of a stage crosses sick links.
bool sick_links_carry_data(const StepMachine& machine, std::size_t stage, TrainingScratch& scratch);

/// Seconds that a stage waits for its mirror: gradients of a part of the model that lies on two stages (dualpipe) are
/// added up when both are done. 0 under other schedules.
Seconds wait_for_mirror(const TrainingStep& inputs, const StepTimes& step, std::size_t stage);

/// Seconds that compute loses to traffic which a stage has once a step. `hidden`: the part of the weights' gather that
/// is hidden. Under dualpipe gradients leave when all passes have ended, so they take nothing.
Seconds lost_in_step(const TrainingStep& inputs, const TailCosts& costs, Seconds hidden,
                     Seconds last_backward);

/// One step of the optimizer.
struct OptimizerCost {
  double parameters = 0;  ///< number of parameters whose state the rank owns
  compute::OperatorCost update;
  double slices = 0;  ///< number of slices of tensors that the host cuts under ZeRO-1 and 2
  Seconds slicing;
  [[nodiscard]] Seconds total() const { return update.time + slicing; }
};
/// The optimizer of a stage on a device of this kind.
OptimizerCost optimizer_cost(const TrainingStep& inputs, const DeviceSpec& device, std::int32_t stage);

}  // namespace shardscape::step
