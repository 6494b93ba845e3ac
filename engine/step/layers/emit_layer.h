// One layer as instructions of a program: its operators in order, its calls where they stand in that order,
// and each call that the stack hides beside the operator that hides it (emit_training.h says how).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "engine/execution/program_builder.h"
#include "engine/step/layers/host_work.h"
#include "engine/step/layers/price_layers.h"

namespace shardscape::step {

/// Makes a compute instruction. `bound` is what limits the operator, as ProgramBuilder::bound() numbers it.
execution::Instruction compute(double seconds, execution::Account account, std::int32_t name,
                               std::uint16_t bound = 0);
/// The host launches for so many seconds; the host waits for the device.
execution::Instruction host_launch(double seconds);
execution::Instruction host_sync();
execution::Instruction join_lane(std::int32_t lane, execution::Account account);
execution::Instruction on_channel(execution::Instruction::Kind kind, std::int32_t channel, double bytes);

/// The lane of each kind of group; -1 where there is none.
using GroupLanes = EnumArray<ParallelGroup, std::int32_t>;
/// Adds lanes for the groups that layers call, in the order of kLayerGroups.
GroupLanes add_layer_lanes(const ParallelPlan& plan, execution::ProgramBuilder& builder);

/// Which member of its expert group a rank of the plan is; kBusiest where all members get equally many tokens.
std::int32_t expert_member(const Setting& setting, const ParallelPlan& plan, std::int32_t rank);
/// Sets the sequence of each rank: that of its stage on its member of the expert group. Each is built once:
/// `begin(member)` comes before the `build(stage)` of all its stages, which return the numbers of their sequences.
template <class Begin, class Build>
void set_sequences(const Setting& setting, const ParallelPlan& plan, execution::ProgramBuilder& builder,
                   const Begin& begin, const Build& build) {
  const std::int32_t stride = network::PlanLayout(plan).stride(PlanAxis::pipeline);
  std::map<std::int32_t, std::vector<std::int32_t>> sequences;  // key: member; value index: stage
  for (std::int32_t rank = 0; rank < static_cast<std::int32_t>(plan.gpus()); ++rank) {
    const std::int32_t member = expert_member(setting, plan, rank);
    std::vector<std::int32_t>& stages = sequences[member];
    if (stages.empty()) {
      begin(member);
      for (std::int32_t stage = 0; stage < plan.pipeline; ++stage) stages.push_back(build(stage));
    }
    builder.set_sequence(rank, stages[static_cast<std::size_t>(rank / stride % plan.pipeline)]);
  }
}

class LayerEmitter {
 public:
  /// One operator that computes, or the calls of one lane; steps are listed in the order of execution.
  struct Step {
    double seconds = 0;  ///< compute time on a healthy device
    execution::Account account = execution::Account::compute;
    std::int32_t name = 0;
    std::uint16_t bound = 0;
    double stretch = 1;
    /// Where its repeats > 0 and hidden_context is not set: calls instead of compute.
    model::CollectiveCall comm = {};
    /// This is compute (the attention core) with the exchange of context parallelism in `comm`, which runs beside it
    /// for the share of its time that the stack's context_overlap allows.
    bool hidden_context = false;
    bool beside_exchange = false;  ///< compute that runs while the exchange of experts before it is under way
    /// For calls of a tensor group: which neighbour, the step before or the one behind, hides them (overlap.h).
    enum class Hider : std::uint8_t { none, before, behind } hider = Hider::none;
  };
  /// An instruction with the time that it is expected to take, in seconds.
  struct Item {
    execution::Instruction instruction;
    double expected = 0;
    bool layer_end = false;
    /// For compute: its time on this device over that in `instruction`, which is a healthy device's.
    double stretch = 1;
  };

  /// The references must outlive this object.
  LayerEmitter(const StackProfile::Communication& communication, execution::ProgramBuilder& builder,
               const GroupLanes& lanes)
      : communication_(communication), builder_(builder), lanes_(lanes) {}

  /// Makes a step of compute that takes `here` on this device, where a healthy device takes `seconds`.
  [[nodiscard]] Step compute_step(std::string_view name, double seconds, execution::Account account,
                                  const compute::OperatorCost& here) const;
  /// Appends the nodes of one part of a layer. `healthy(node)`: seconds of an operator on a healthy device, by which is
  /// decided what is hidden; those that take no time are left out. `here(node)`: its cost on the device.
  template <class Healthy, class Here>
  void append_part(std::vector<Step>& steps, const std::vector<model::Operator>& operators, LayerPart part,
                   execution::Account account, const Healthy& healthy, const Here& here) const {
    const std::vector<TimedNode> in_order = timed_nodes(operators, part, healthy);
    for (std::size_t i = 0; i < in_order.size(); ++i) {
      const TimedNode& node = in_order[i];
      if (!node.call) {
        if (node.time <= Seconds(0)) continue;
        steps.push_back(compute_step(node.op->name, node.time.value(), account, here(node)));
        steps.back().beside_exchange = node.beside_exchange;
      } else if (!node.beside_core) {
        const Step::Hider hider = node.hider < 0                              ? Step::Hider::none
                                  : node.hider < static_cast<std::int32_t>(i) ? Step::Hider::before
                                                                              : Step::Hider::behind;
        steps.push_back({.account = account, .comm = node.comm(), .hider = hider});
      } else if (!steps.empty() && steps.back().seconds > 0) {
        steps.back().comm = node.comm();
        steps.back().hidden_context = true;
      }
    }
  }
  /// Appends the steps as instructions, followed by the host's launch of all of them. `meets`: the host waits for the
  /// device before.
  void append(std::vector<Item>& items, const std::vector<Step>& steps, Seconds launch, HostLead& lead,
              bool meets = false);
  /// Appends the steps as instructions, without the launch.
  void append_steps(std::vector<Item>& items, const std::vector<Step>& steps);

  /// Appends the start of a call; nothing where it has no bytes.
  void append_calls(std::vector<Item>& items, const model::CollectiveCall& call);
  void append_join(std::vector<Item>& items, ParallelGroup group, double expected) const;
  /// Adds an instruction to the program, `stretch` (Item) times as long where it is compute.
  void add(execution::Instruction instruction, double stretch) const;
  void add(const std::vector<Item>& items) const {
    for (const Item& item : items) add(item.instruction, item.stretch);
  }
  /// Adds what compute loses again while exchanges of experts hide beside it for so many seconds.
  void add_lost_to_exchanges(double hidden) const;
  /// Expected seconds of all repeats of a call.
  [[nodiscard]] double seconds_of(const model::CollectiveCall& call);
  /// Sets the slice of ranks that makes the calls from now on, where links tell slices apart.
  void set_slice(const network::Slice& slice) { slice_ = slice; }

 private:
  static void append_compute(std::vector<Item>& items, const Step& step, double seconds);
  void append_context(std::vector<Item>& items, const Step& step);
  /// Appends compute with the calls before and behind it that it hides; a pointer is null where there is no such call.
  void append_beside(std::vector<Item>& items, const Step& step, const Step* before, const Step* behind);

  const StackProfile::Communication& communication_;
  execution::ProgramBuilder& builder_;
  GroupLanes lanes_;
  network::Slice slice_;
};

}  // namespace shardscape::step
