// One layer as instructions of a program: its operators in order, its calls where they stand, and beside what
// the stack hides them (training_program.h says how).
#pragma once

#include <cstdint>
#include <vector>

#include "engine/execution/program_builder.h"
#include "engine/model/operator.h"

namespace shardscape::passes {

/// `bound`: number of the builder's.
execution::Instruction compute(double seconds, execution::Account account, std::int32_t name,
                               std::uint16_t bound = 0);
execution::Instruction join_lane(std::int32_t lane, execution::Account account);
execution::Instruction on_channel(execution::Instruction::Kind kind, std::int32_t channel, double bytes);

/// An operator of a block, the embedding or the head, priced.
struct PricedOperator {
  std::int32_t name = 0;                                            ///< forward
  std::int32_t backward_name = 0, input_name = 0, weight_name = 0;  ///< and of backward, its parts
  double forward = 0, backward = 0;                                 ///< seconds
  double weight = 0;  ///< the part of backward that zero_bubble puts off
  std::uint16_t forward_bound = 0, backward_bound = 0;
  /// Times on the device that the program is for over those on a healthy one.
  double forward_stretch = 1, backward_stretch = 1, input_stretch = 1, weight_stretch = 1;
  bool attention_core = false;
  model::CollectiveCall forward_comm, backward_comm;
};
using PricedLayer = std::vector<PricedOperator>;

class LayerProgram {
 public:
  /// A compute operator or calls of one lane, in the order of execution.
  struct Step {
    double seconds = 0;  ///< compute, on a healthy device
    execution::Account account = execution::Account::compute;
    std::int32_t name = 0;
    std::uint16_t bound = 0;
    double stretch = 1;
    model::CollectiveCall comm;   ///< where repeats > 0: calls instead of compute
    bool hidden_context = false;  ///< compute beside which `comm` runs, as far as it may
  };
  /// An instruction with the time that it is expected to take.
  struct Item {
    execution::Instruction instruction;
    double expected = 0;
    bool layer_end = false;
    double stretch = 1;  ///< of compute, beyond `instruction`
  };

  /// The references must outlive this object; the lanes are those of the tensor and the context groups.
  LayerProgram(const StackProfile::Communication& communication, execution::ProgramBuilder& builder,
               std::int32_t tensor_lane, std::int32_t context_lane)
      : communication_(communication),
        builder_(builder),
        tensor_lane_(tensor_lane),
        context_lane_(context_lane) {}

  static void append_forward(std::vector<Step>& steps, const PricedLayer& layer, execution::Account account);
  /// The steps as instructions, and the host's launch of all of them.
  void append(std::vector<Item>& items, const std::vector<Step>& steps, Seconds launch);

 private:
  static void append_compute(std::vector<Item>& items, const Step& step, double seconds);
  void append_context(std::vector<Item>& items, const Step& step);
  void append_calls(std::vector<Item>& items, const model::CollectiveCall& call, double share);
  void append_join(std::vector<Item>& items, PlanAxis axis, double expected) const;
  [[nodiscard]] double hidden_share(const model::CollectiveCall& call, double beside);

  const StackProfile::Communication& communication_;
  execution::ProgramBuilder& builder_;
  std::int32_t tensor_lane_, context_lane_;
};

}  // namespace shardscape::passes
