// One training step as programs: every operator of every rank, every message of every collective.
//
// The ingredients are those of price_training.h (operator times, calls, launches, schedule, tail); here they are
// put in their places and the executor finds out what follows.
//
//   overlap of context traffic  the exchange runs beside the first `context_overlap` of the attention core
//   overlap of tensor traffic   a call runs beside the operator next to it for as long as overlap.h says
//   ZeRO-2 and 3 per microbatch gathers and scatters run beside the last `data_overlap` of a pass
//   one order of data traffic   gathers, scatters and buckets of experts and of all else run one after the other
//   gradients once per step     buckets leave as the last microbatch's backward completes them (at the ends
//                               of layers, data_exposure.h), the first when 1 - data_overlap of it is done
//   host                        launches ahead within a pass, and meets the device where the next one begins
//   zero_bubble                 the backward of a block in two passes; weights are gathered for the first,
//                               gradients leave with the second
//   deferred head               the backwards of its microbatches without the head's weight gradient; all of those
//                               after the last backward, before the buckets that hold the head's gradients
//   pairs                       a forward and a backward of another microbatch in one stream (paired_passes.h); what
//                               compute loses to exchanges beside it is waited for behind both
//   dualpipe                    two chunks of a stage for the two directions, each with channels of its own
//   boundaries                  a message to the neighbour, waited for by the sender unless sends are
//                               asynchronous; cut over the tensor group, the receiver gathers it
//   uneven experts              ranks of a stage that hold other experts have programs of their own; what is cut and
//                               hidden where is decided by the times of the busiest
//   sick devices                their operators take what they take there; what is cut, started and hidden
//                               where is decided by the times of healthy ones, so that all members of a
//                               group make the same calls
//
// Chunks of an interleaved schedule hold equal numbers of blocks; the embedding is in the first stage's first
// chunk and the head in the last stage's last one.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <vector>

#include "engine/execution/program_builder.h"
#include "engine/schedule/pipeline.h"
#include "engine/step/layers/emit_layer.h"
#include "engine/step/layers/paired_passes.h"
#include "engine/step/layers/training_step.h"
#include "engine/step/training/data_costs.h"
#include "engine/step/training/data_traffic.h"

namespace shardscape::step {

class TrainingEmitter {
 public:
  /// All references must outlive this object.
  TrainingEmitter(const TrainingStep& inputs, execution::ProgramBuilder& builder);

  /// Adds the programs of all ranks.
  void build();

 private:
  using Step = LayerEmitter::Step;
  using Item = LayerEmitter::Item;
  /// A pass through a chunk of the stage under construction, with what is special about its microbatch.
  struct ChunkPass {
    std::int32_t chunk = 0;
    Pass pass = Pass::forward;
    bool gathers = false;   ///< the first microbatch's: weights are gathered beside it
    bool releases = false;  ///< the last microbatch's: it completes gradients, which leave meanwhile
    bool defers = false;    ///< of a microbatch that defers the head's weight gradient
    bool paired = false;    ///< together with another pass: the host launches both without a stop
    [[nodiscard]] bool forward() const { return pass == Pass::forward; }
    friend auto operator<=>(const ChunkPass&, const ChunkPass&) = default;
  };
  struct StageUnderConstruction {
    std::int32_t stage = 0;
    std::int32_t deferred = 0;  ///< microbatches that defer the head's weight gradient
    DataTraffic traffic = {};
    TailCosts tail = {};           ///< expected
    double last_backward = 0;      ///< expected seconds of the last microbatch's backward on all chunks
    double backward_done = 0;      ///< the part of last_backward in the chunks built so far
    std::int32_t layers_done = 0;  ///< number of layers in these chunks
    HiddenGather hidden = {};      ///< of the gather of updated weights, expected
    bool gate_open = false;        ///< whether 1 - data_overlap of the last backward is done
    std::array<double, kCopyGroups.size()> buckets_gone =
        {};  ///< by part of traffic.gradients: what has left
  };

  /// Sets the device, and the member of the expert groups, that programs are made for from here on.
  void set_device(const Setting& setting, std::int32_t expert_rank = model::LayerKey::kBusiest);
  void set_slice(std::int32_t stage);
  [[nodiscard]] std::vector<Step> steps_of(LayerKind kind, Pass pass, const Setting& setting,
                                           std::int32_t expert_rank) const;

  /// The pass that computes the gradients of weights.
  [[nodiscard]] Pass gradient_pass() const { return in_.cuts() ? Pass::weight : Pass::backward; }
  /// The pass that an operation of the schedule stands for.
  [[nodiscard]] ChunkPass pass_of(const schedule::PipelineOperation& operation) const;
  std::vector<Item> layers_of(const ChunkPass& pass);
  std::int32_t build_pass(const ChunkPass& pass);
  [[nodiscard]] std::vector<PairStep> pair_steps(const std::vector<Item>& items) const;
  /// Builds a forward and a backward that run together.
  std::int32_t build_pair(const ChunkPass& forward, const ChunkPass& backward);
  void receive_inputs(const ChunkPass& pass);
  [[nodiscard]] std::int32_t channel(const ChunkPass& pass) const;
  void begin_passes(double passes);
  void send_boundary(const ChunkPass& pass);
  /// Waits until the message has been sent, unless sends are asynchronous.
  void await_boundary(const ChunkPass& pass);
  /// Whether a pass exchanges messages with the stage that holds the next part of the model, or else the one before.
  [[nodiscard]] bool has_neighbour(const ChunkPass& pass, bool next) const;
  void emit(const std::vector<Item>& items) const;
  static bool cuttable(const Item& item);
  [[nodiscard]] execution::Instruction cut(const Item& item, double begin) const;
  /// `traffic`: seconds that the calls are expected to take.
  void emit_beside(const std::vector<Item>& items, const std::vector<execution::Instruction>& calls,
                   Seconds traffic);
  void add_lost(Seconds lost);
  /// The share of the gather of weights that lies beside forwards, and that of a chunk.
  [[nodiscard]] double gathered_beside() const;
  [[nodiscard]] double gathered_beside(std::int32_t chunk) const;
  void start_gather(double share);
  void emit_gathering(const std::vector<Item>& items, std::int32_t chunk);
  void split_weights();
  void emit_releasing(const std::vector<Item>& items, std::int32_t chunk);
  void release_buckets();
  [[nodiscard]] Seconds expected(const DataTraffic::Part& part) const;
  void join(const DataTraffic::Parts& parts);
  execution::Instruction start(const DataTraffic::Part& part, double calls, Bytes bytes);
  std::int32_t build_deferred();
  std::int32_t build_tail();
  std::int32_t build_stage(std::int32_t stage);
  void build_sick_ranks();

  const TrainingStep& in_;
  execution::ProgramBuilder& builder_;
  const StackProfile& stack_;
  const DeviceSpec* device_ = nullptr;
  /// The steps that a layer runs in a pass on the device set last; index: kind of layer, pass.
  std::array<std::array<std::vector<Step>, kPasses>, kLayerKinds> steps_;
  GroupLanes lanes_;
  LayerEmitter layer_emitter_;
  /// Channels to the next and to the previous stage; the second ones are for dualpipe's second chunks.
  std::array<std::int32_t, 2> down_{}, up_{};
  StageUnderConstruction now_;
};

}  // namespace shardscape::step
