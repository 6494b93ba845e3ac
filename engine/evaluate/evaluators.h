// How one kind of work is evaluated: training, serving by replicas, serving by pools. simulate.cc says in
// which order the passes run.
#pragma once

#include <memory>

#include "engine/evaluate/machine.h"
#include "engine/evaluate/point.h"

namespace shardscape::evaluate {

class Evaluator {
 public:
  virtual ~Evaluator() = default;

  /// Splits the layers over the stages by the stack's rule; false where the rule cannot be met.
  virtual bool partition(Point& point) = 0;
  /// Finds the peak memory of every stage; the fullest decides.
  virtual void memory(Point& point) = 0;
  /// Finds the stages that hold a sick device of the machine's faults, and what their layers cost there.
  virtual void find_sick(Point& point) { point.sick.clear(); }
  /// Prices operators and collectives and times the pipeline or the server; calls cut_off() where dead links separate
  /// ranks. Writes only the prediction of the point, so that the point may be timed again under other faults.
  virtual void time(Point& point) = 0;

  /// Whether the links that a plan uses are recorded while it is priced.
  [[nodiscard]] virtual bool links_are_recorded() const = 0;
  /// Whether a sick device changes the prediction, wherever it is.
  [[nodiscard]] virtual bool minds_sick_devices() const { return false; }
  /// Forgets the results that neighbouring plans share.
  virtual void forget() = 0;
};

/// Each makes the evaluator of one kind of work. `machine` must outlive it.
std::unique_ptr<Evaluator> training_evaluator(Machine& machine);
std::unique_ptr<Evaluator> replica_evaluator(Machine& machine);
std::unique_ptr<Evaluator> pool_evaluator(Machine& machine);

}  // namespace shardscape::evaluate
