// Constraints of a study: boolean expressions over the plan ("tp * cp <= 16", "pp <= 8 or mbs == 1"); grammar
// in expression.h.
//
// Names: those of the plan axes (engine/spec/plan_axes.h) and of their columns, but the order, gpus microbatches
// sequence_length global_batch concurrency request_rate prefill_gpus. sp is a truth value; recompute and schedule
// compare with the names of their values ("recompute == full"). microbatches is global_batch / (dp * mbs), rounded
// down. An axis that has no effect in a plan reads as its idle value there (zero 0, schedule 1f1b, vpp 1, sp false).
// sequence_length, global_batch and microbatches are 0 for inference, concurrency and request_rate (per second) are 0
// for training.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "engine/spec/plan.h"
#include "engine/spec/workload.h"
#include "sweep/space/expression.h"

namespace shardscape::sweep {

using ConstraintError = ExpressionError;

/// A compiled constraint: parsed once, evaluated for each point without allocation, from any number of threads.
class Constraint {
 public:
  static tl::expected<Constraint, ExpressionError> parse(std::string_view text);

  /// Whether the plan satisfies the expression.
  [[nodiscard]] bool holds(const ParallelPlan& plan, const WorkloadSpec& workload) const;
  [[nodiscard]] const std::string& text() const { return expression_.text(); }
  /// The names that the expression uses, in the order of constraint_names().
  [[nodiscard]] std::vector<std::string_view> names() const;

 private:
  explicit Constraint(Expression expression) : expression_(std::move(expression)) {}
  Expression expression_;
};

/// All names that a constraint may use.
std::span<const ExpressionName> constraint_names();

}  // namespace shardscape::sweep
