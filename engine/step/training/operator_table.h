// Makes the operator table behind `simulate --explain`.
#pragma once

#include <string>
#include <vector>

#include "engine/spec/prediction.h"
#include "engine/step/layers/call_prices.h"
#include "engine/step/layers/training_step.h"

namespace shardscape::step {

/// Writes rows of operators and calls, one per node that takes time. Collectives show their full time, hidden parts
/// included; what drift spares of ring passes (context_drift.h) is a row of its own, with a negative time.
class RowWriter {
 public:
  /// All references must outlive the writer.
  RowWriter(const CallPrices& prices, std::vector<OperatorRow>& rows) : prices_(prices), rows_(rows) {}

  /// Adds the rows of one part of a layer that runs `count` times. Backward of a product is its input gradient (_dgrad)
  /// and its weight gradient (_wgrad); adding the list's weight gradients to their buffers is one further row.
  void add(const std::vector<model::Operator>& operators, LayerPart part, const std::string& phase,
           double count) {
    add(listed_nodes(operators, part), phase, count);
  }
  void add(const std::vector<Node>& nodes, const std::string& phase, double count);

 private:
  struct Accumulation {
    double gradients = 0;
    compute::OperatorCost cost;
    Seconds longest;  ///< time of one product
  };
  void add_row(std::string_view name, const std::string& shape, const std::string& phase, double count,
               const compute::OperatorCost& cost, const compute::GemmShape* product = nullptr);
  void add_gradients(const model::Operator& op, const std::string& phase, double count, Accumulation& sum);
  void add_call(const Node& node, const std::string& phase, double count);

  const CallPrices& prices_;
  std::vector<OperatorRow>& rows_;
};

/// Appends the rows of a training step on one stage, where the optimizer takes `optimizer` in all. Both gradients of a
/// layer stand together, even if the schedule defers one. `contention`: how much longer calls of layers take beside
/// data-parallel traffic; shown in rows of its own.
void explain_training(const TrainingStep& inputs, std::int32_t stage, Seconds optimizer,
                      const Breakdown& contention, const network::CollectivePrices& collectives,
                      std::vector<OperatorRow>& rows);

}  // namespace shardscape::step
