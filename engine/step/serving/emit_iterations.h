// Iterations of servers as programs: every operator of every rank, every message of every collective.
//
// All replicas run the same iteration (iteration_stream.h) side by side. The requests of a replica form groups, as many
// as there are pipeline stages; each has its iteration in turn on every stage, so that all stages have something to do
// (inference.h). A stage passes its boundary on whole from every rank to its neighbour. The tokens of the sequences
// that get one are back on the first stage when the host has sampled, streamed and scheduled them: only then may the
// next iteration of their group begin.
//
//   attention  of all pieces of prompts together, then of all decoding sequences together
//   the rest   as in emit_layer.h
//
// Left out: the parts of a decoding sequence's attention over a context group, as in price_iterations.h.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/execution/program_builder.h"
#include "engine/step/layers/emit_layer.h"
#include "engine/step/serving/iteration_stream.h"

namespace shardscape::step {

/// The work of one executed iteration.
struct IterationShape {
  TokenTable table = TokenTable::decode;  ///< which costs it has: prompt or decode
  std::int64_t tokens = 1;                ///< tokens that go through every block
  std::int64_t rows = 0;                  ///< sequences that get a token in it
  BlockAttention attention{};  ///< of each block, by kind; of one half where the block runs in halves
  friend auto operator<=>(const IterationShape&, const IterationShape&) = default;
};

class IterationEmitter {
 public:
  /// All references must outlive this object.
  IterationEmitter(const InferenceInputs& inputs, TokenCosts& costs, execution::ProgramBuilder& builder,
                   const IterationShape& shape);

  /// Adds the programs of all ranks, with `rounds` iterations of each of `groups` groups. A rank of the first stage
  /// ends when the next iteration of the last group could begin.
  void build(std::int64_t groups, std::int64_t rounds);

 private:
  using Step = LayerEmitter::Step;
  using Item = LayerEmitter::Item;
  struct Block {
    std::vector<Step> steps;
    BlockHost host;
    HalfLayer<std::vector<Step>, model::CollectiveCall> half = {};  ///< where it runs as two half batches
  };

  // What the stream of an iteration calls.
  friend class IterationStream;
  void end(LayerKind layer) { emit(layer == kHeadLayer ? head_ : embedding_, Seconds(0)); }
  void blocks(const model::StageLayers& layers);
  void pass_on(std::size_t stage, bool waits);
  void tokens_back();

  /// Sets the member of the expert groups that programs are made for from here on. What is hidden is decided by the
  /// slowest member. Where a balanced load takes longer than any member's, all members have that.
  void set_blocks(std::int32_t expert_rank);
  /// Prices operators as steps. `member`: whose layer it is; `slowest`: the one that decides what is hidden. One
  /// attention core stands for all pieces of prompts, and a second one behind it for all decoding sequences.
  std::vector<Step> steps_of(TokenTable table, LayerKind layer, std::int64_t tokens,
                             std::int32_t member = model::LayerKey::kBusiest,
                             std::int32_t slowest = model::LayerKey::kBusiest,
                             const AttentionSeconds& attention = {}) const;
  /// Cuts the steps of half a batch at its exchanges of experts.
  static void cut_into_pieces(Block& block);
  void emit(const std::vector<Item>& items);
  void emit(const std::vector<Step>& steps, Seconds launch);
  void emit_half_layer(const Block& block, const Block& previous, PlaceInRun place);
  void emit_beside(const model::CollectiveCall& call, std::vector<Item> computes, double& hidden);
  void pause(double seconds);
  std::int32_t build_stage(std::int32_t stage, std::int64_t groups, std::int64_t rounds);
  enum class Pass : std::uint8_t { opening, later };
  /// Builds one pass of a stage. An opening one waits for no tokens to come back.
  std::int32_t build_pass(std::int32_t stage, Pass pass);
  [[nodiscard]] bool piped() const { return in_.plan.pipeline > 1; }

  const InferenceInputs& in_;
  TokenCosts& costs_;
  execution::ProgramBuilder& builder_;
  const IterationShape shape_;
  const IterationStream stream_;
  LayerEmitter layer_emitter_;
  std::vector<Block> blocks_;  ///< index: kind of block
  std::vector<Step> embedding_, head_;
  Bytes boundary_;
  std::int32_t down_ = 0, back_ = 0;  ///< channels to the next stage, and from the last stage to the first
};

}  // namespace shardscape::step
