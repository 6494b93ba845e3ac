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

  /// Deals the layers to stages by the stack's rule; false where it cannot be met.
  virtual bool partition(Point& point) = 0;
  /// Peak memory of every stage; the fullest decides.
  virtual void memory(Point& point) = 0;
  /// Finds the stages that hold a sick device of the machine's faults, and what their layers cost there.
  virtual void find_sick(Point& point) { point.sick.clear(); }
  /// Operators, collectives, pipeline or server; `cut` where dead links cut ranks off. Writes the prediction and
  /// nothing else of the point, so that it may be timed again under other faults.
  virtual void time(Point& point) = 0;

  /// Whether the links that a plan uses are known from its prices.
  [[nodiscard]] virtual bool links_are_recorded() const = 0;
  /// Whether a sick device anywhere changes the prediction.
  [[nodiscard]] virtual bool minds_sick_devices() const { return false; }
  /// Forgets what neighbouring plans share.
  virtual void forget() = 0;
};

/// `machine` must outlive them.
std::unique_ptr<Evaluator> training_evaluator(Machine& machine);
std::unique_ptr<Evaluator> replica_evaluator(Machine& machine);
std::unique_ptr<Evaluator> pool_evaluator(Machine& machine);

}  // namespace shardscape::evaluate
