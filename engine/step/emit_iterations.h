// Iterations of servers as programs: every operator of every rank, every message of every collective.
//
// All replicas run the same iteration side by side. The requests of a replica form groups, as many as there
// are pipeline stages; each has its iteration in turn on every stage, so that all stages have something to do
// (inference.h). A stage passes its boundary on whole from every rank to its neighbour, and waits for the
// receipt unless sends are asynchronous. The tokens of the sequences that get one go from the last stage back
// to the first and are there when the host has sampled, streamed and scheduled them: only then may the next
// iteration of their group begin.
//
//   host       launches the blocks of a pass one after the other: each begins with nothing launched ahead,
//              ends not before it is launched, and pays the gap between its kernels
//   attention  of all pieces of prompts together, then of all decoding sequences together
//   halves     of an iteration that runs as two half batches, layer by layer as two_batches.h says; both are launched
//              where their layer begins
//   the rest   as in emit_layer.h
//
// Left out: the parts of a decoding sequence's attention over a context group, as in price_iterations.h.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/execution/program_builder.h"
#include "engine/step/emit_layer.h"
#include "engine/step/price_iterations.h"
#include "engine/step/two_batches.h"

namespace shardscape::step {

/// The work of one executed iteration.
struct IterationShape {
  IterationCosts::Table table = IterationCosts::Table::decode;  ///< which costs it has: prompt or decode
  std::int64_t tokens = 1;                                      ///< tokens that go through every block
  std::int64_t rows = 0;                                        ///< sequences that get a token in it
  using BlockSeconds = std::array<double, model::kMostBlockKinds>;
  /// Seconds of the attention cores of each block, by kind; of one half where the block runs in halves.
  BlockSeconds prompt_attention{}, decode_attention{};
  friend auto operator<=>(const IterationShape&, const IterationShape&) = default;
};

class IterationEmitter {
 public:
  /// All references must outlive this object.
  IterationEmitter(const IterationCosts::Inputs& inputs, TokenCosts& costs,
                   execution::ProgramBuilder& builder, const IterationShape& shape);

  /// Adds the programs of all ranks, with `rounds` iterations of each of `groups` groups. A rank of the first stage
  /// ends when the next iteration of the last group could begin.
  void build(std::int64_t groups, std::int64_t rounds);

  /// Time of the host between two iterations of a group: scheduling, and sampling and streaming its tokens.
  [[nodiscard]] Seconds host_step() const;

 private:
  /// Sets the member of the expert groups that programs are made for from here on. What is hidden is decided by the
  /// slowest member. Where a balanced load takes longer than any member's, all members have that.
  void set_blocks(std::int32_t expert_rank);
  /// `busiest`: the same operators on the slowest rank. `prompt_attention`, `decode_attention`: seconds of the core.
  std::vector<LayerEmitter::Step> steps_of(std::vector<model::Operator> operators,
                                           std::vector<model::Operator> busiest, double prompt_attention = 0,
                                           double decode_attention = 0);
  struct Block {
    std::vector<LayerEmitter::Step> steps;
    Seconds launch;
    // For a block that runs in halves: the steps of one half, cut at its exchanges of experts, and these exchanges.
    std::array<std::vector<LayerEmitter::Step>, kHalfPieces> pieces;
    model::CollectiveCall dispatch, combine;
  };
  [[nodiscard]] bool in_halves(std::size_t kind) const;
  /// Cuts the steps of half a batch at its exchanges of experts.
  static void cut_into_pieces(Block& block);
  void emit(const std::vector<LayerEmitter::Step>& steps, Seconds launch);
  void emit(const std::vector<LayerEmitter::Item>& items);
  void emit_half_layer(const Block& block, const Block& previous, PlaceInRun place);
  void emit_beside(const model::CollectiveCall& call, std::vector<LayerEmitter::Item> computes,
                   double& hidden);
  void sync_host() {
    builder_.add({execution::Instruction::Kind::sync_host, execution::Account::host, 0, 0, 1, 0});
  }
  void pause(double seconds);
  std::int32_t build_stage(std::int32_t stage, std::int64_t groups, std::int64_t rounds);
  std::int32_t build_pass(std::int32_t stage, bool opening);
  [[nodiscard]] bool first(std::int32_t stage) const { return stage == 0; }
  [[nodiscard]] bool last(std::int32_t stage) const { return stage + 1 == in_.plan.pipeline; }

  const IterationCosts::Inputs& in_;
  TokenCosts& costs_;
  execution::ProgramBuilder& builder_;
  const IterationShape shape_;
  const StackProfile& stack_;
  LayerEmitter layer_emitter_;
  std::vector<Block> blocks_;  ///< index: kind of block
  std::vector<LayerEmitter::Step> embedding_, head_;
  Bytes boundary_;
  std::int32_t down_ = 0, back_ = 0;  ///< channels to the next stage, and from the last stage to the first
};

}  // namespace shardscape::step
