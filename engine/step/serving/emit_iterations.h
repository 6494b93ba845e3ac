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

/// Adds the programs of all ranks, with `rounds` iterations of each of `groups` groups. A rank of the first stage ends
/// when the next iteration of the last group could begin.
void emit_iterations(const InferenceInputs& inputs, TokenCosts& costs, const IterationShape& shape,
                     std::int64_t groups, std::int64_t rounds, execution::ProgramBuilder& builder);

}  // namespace shardscape::step
