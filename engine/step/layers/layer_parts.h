// Defines what a microbatch does in one layer: the parts of its operators' work, which of them make up a
// pass under which recompute policy, and in which order operators and calls run.
//
//   forward   every operator; a call runs where its operator stands
//   repeated  what selective recompute repeats (model::Operator::again); with the attention core the keys and values
//             that other context ranks send it
//   backward  the gradients of inputs and weights, from the last operator to the first
//   input     the same without the gradients of the matrices' weights, which zero_bubble puts off (Qi et al.
//             2023, "Zero Bubble Pipeline Parallelism")
//   weight    those alone
//
// The head has a cut backward, too, where the stack defers its weight gradient (spec/deferred_head.h): of the product
// with the vocabulary alone.
//
// A ring of keys and values runs beside the attention core: its node stands behind that of the core. Work beside an
// exchange of experts (model::Operator::beside_exchange) stands behind that call, in backward, too.
//
// Sums over parts are LayerCost, and TokenCost in servers; prices (price_training.h), programs of ranks
// (emit_training.h, emit_iterations.h), of which timelines and traces are made, bytes (sent_in_step.h) and the
// operator table (operator_table.h) all read this list. In which order a pass runs layers, and what of each, is told by
// TrainingStep::stream().
#pragma once

#include <boost/container/static_vector.hpp>
#include <cstdint>
#include <vector>

#include "engine/model/operator.h"
#include "engine/spec/plan.h"

namespace shardscape::step {

enum class LayerPart : std::uint8_t { forward, repeated, backward, input, weight };
inline constexpr std::size_t kParts = 5;

/// Whether a part runs operators of forward.
constexpr bool runs_forward(LayerPart part) {
  return part == LayerPart::forward || part == LayerPart::repeated;
}

/// The passes of a microbatch through a layer.
enum class Pass : std::uint8_t {
  forward,
  backward,
  weight,  ///< the part of a cut backward that runs later: gradients of weights
  input    ///< takes the place of `backward` for a microbatch that defers the head's weight gradient
};
inline constexpr std::size_t kPasses = 4;
/// The passes that every microbatch makes.
inline constexpr Pass kTrainingPasses[] = {Pass::forward, Pass::backward, Pass::weight};

/// A part of a layer's work as it runs in a pass.
struct Segment {
  LayerPart part = LayerPart::forward;
  bool again = false;  ///< computed before in forward: its time counts as recomputation
};
using Segments = boost::container::static_vector<Segment, 2>;

/// What a pass consists of, in order. `cut`: the layer's backward defers weight gradients; that of Pass::input does so
/// in any case.
Segments segments(Pass pass, Recompute recompute, bool cut);

/// In a part of a layer, an operator's own work, or the call that it makes.
struct Node {
  const model::Operator* op = nullptr;
  std::size_t index =
      0;  ///< of the operator in its list; lists for other ranks of a stage have its like there
  LayerPart part = LayerPart::forward;  ///< the part that determines the share of the operator's work
  bool call = false;
  bool beside_core = false;  ///< a call that runs beside the attention core, which is the node before
  /// Work that runs while the exchange of experts before it is under way, like all nodes from there on up to this one.
  bool beside_exchange = false;

  [[nodiscard]] const model::CollectiveCall& comm() const {
    return runs_forward(part) ? op->forward_comm : op->backward_comm;
  }
};

/// The nodes of a part, in the order in which they run. They refer to `operators`.
std::vector<Node> nodes(const std::vector<model::Operator>& operators, LayerPart part);

/// The nodes of a part in the order of the operators, for sums and tables.
std::vector<Node> listed_nodes(const std::vector<model::Operator>& operators, LayerPart part);

}  // namespace shardscape::step
