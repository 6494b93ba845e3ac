// One training step as programs: every operator of every rank, every message of every collective.
//
// The ingredients are those of training.h (operator times, calls, launches, schedule, tail); here they are
// put in their places and the executor finds out what follows.
//
//   overlap of context traffic  the exchange runs beside the first `context_overlap` of the attention core
//   overlap of tensor traffic   that share of the bytes runs beside the longer neighbouring operator, where
//                               two calls with their latencies cost less than one
//   ZeRO-2 and 3 per microbatch gathers and scatters run beside the last `data_overlap` of a pass
//   gradients once per step     buckets leave as the last microbatch's backward completes them (at the ends
//                               of layers, data_exposure.h), the first when 1 - data_overlap of it is done
//   host                        launches ahead within a pass, and meets the device where the next one begins
//   zero_bubble                 the backward of a block in two passes; weights are gathered for the first,
//                               gradients leave with the second
//   boundaries                  a message to the neighbour, waited for by the sender unless sends are
//                               asynchronous; cut over the tensor group, the receiver gathers it
//   sick devices                their operators take what they take there; what is cut, started and hidden
//   where is
//                               decided by the times of healthy ones, so that all members of a group make the
//                               same calls
//
// Chunks of an interleaved schedule hold equal numbers of blocks; the embedding is in the first stage's first
// chunk and the head in the last stage's last one.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/execution/program_builder.h"
#include "engine/passes/data_traffic.h"
#include "engine/passes/layer_program.h"
#include "engine/passes/training.h"

namespace shardscape::passes {

class TrainingProgram {
 public:
  /// All references must outlive this object.
  TrainingProgram(const TrainingInputs& inputs, execution::ProgramBuilder& builder);

  /// Adds the programs of all ranks.
  void build();

 private:
  using Step = LayerProgram::Step;
  using Item = LayerProgram::Item;
  struct Pass {
    std::int32_t stage = 0, chunk = 0;
    bool backward = false;
    bool last = false;    ///< backward of the last microbatch
    bool weight = false;  ///< zero_bubble: the weight gradient; `backward` alone is the input gradient
  };

  /// From here on programs are for devices of this setting.
  void set_device(const Setting& setting);
  PricedLayer price_layer(const std::vector<model::Operator>& operators, const Setting& setting);
  /// `cut`: without weight gradients.
  void append_backward(std::vector<Step>& steps, const PricedLayer& layer, bool cut) const;
  static void append_weight(std::vector<Step>& steps, const PricedLayer& layer);
  void append_selective(std::vector<Step>& steps, const PricedLayer& layer) const;
  [[nodiscard]] bool cuts() const { return in_.pipeline.kind == ScheduleKind::zero_bubble; }

  std::vector<Item> layers_of(const Pass& pass);
  std::int32_t build_pass(const Pass& pass);
  void receive_boundary(const Pass& pass);
  void send_boundary(const Pass& pass);
  [[nodiscard]] bool receives(const Pass& pass) const;
  [[nodiscard]] bool sends(const Pass& pass) const;
  void add(execution::Instruction instruction, double stretch) const;
  void emit(const std::vector<Item>& items) const;
  void emit_beside(const std::vector<Item>& items, const std::vector<execution::Instruction>& calls);
  void emit_gradients(const Pass& pass, const std::vector<Item>& items);
  void release_buckets(std::int32_t stage);
  execution::Instruction start(const DataTraffic::Part& part, double calls, Bytes bytes);
  std::int32_t build_tail(std::int32_t stage);
  std::int32_t build_stage(std::int32_t stage);
  void build_sick_ranks();

  const TrainingInputs& in_;
  execution::ProgramBuilder& builder_;
  const StackProfile& stack_;
  const DeviceSpec* device_ = nullptr;
  std::vector<PricedLayer> blocks_;  ///< by kind
  PricedLayer embedding_, head_;
  std::int32_t tensor_lane_ = 0, context_lane_ = 0, data_lane_ = 0;
  LayerProgram layer_program_;
  std::int32_t down_ = 0, up_ = 0;  ///< channels to the next and to the previous stage
  // Of the stage under construction.
  DataTraffic traffic_;
  double last_backward_ = 0;      ///< expected seconds of the last microbatch's backward, all chunks
  double backward_done_ = 0;      ///< of it, in the chunks built so far
  std::int32_t layers_done_ = 0;  ///< likewise
  bool gate_open_ = false;        ///< 1 - data_overlap of the last backward is done
  double buckets_gone_ = 0;
};

}  // namespace shardscape::passes
