// Peak bytes of each pipeline stage.
//
//   static       weights, gradients, optimizer state of the stage's parameters on one rank, each group of them
//                sharded by ZeRO over the ranks that hold copies (Rajbhandari et al. 2020): stage 1 optimizer,
//                2 + gradients, 3 + weights. Dualpipe's stages hold two chunks, weights and gradients of both
//                (DeepSeek-AI 2024, "DeepSeek-V3 Technical Report", table 2: parameters 2x), and share out the
//                optimizer's state with their mirror
//   activations  in-flight microbatches x layers x saved bytes of a block under the recompute policy
//                (Korthikanti et al. 2022); of dualpipe each of the two chunks by itself: on stage s of p the one
//                that is d = min(s, p - 1 - s) stages behind the end where its microbatches come in holds p - d of
//                them, the other one d + 1; and what microbatches keep whose weight gradients are put off
//                (Qi et al. 2023: 32 s b h per block of GPT); the working set of the block that recomputes,
//                what lives for a moment in a block's backward, the saved input of the head; times the
//                allocator's fragmentation. On the last stage input and logit gradients of the microbatches whose
//                weight gradient of the head is deferred (spec/deferred_head.h)
//   logits       while the loss of one microbatch is computed, on the last stage; and what the loss keeps of
//                each further microbatch that has passed the head and waits for its backward
//   buffers      kernels' workspace, DP buckets, boundary tensors, weights that are gathered of two blocks under
//                ZeRO-3, of one on a stage that has no more
//   reserve      context and communication library
//
// Assumption: the peak of a stage is at its first backward, when all in-flight microbatches are saved. What the head
// defers piles up after that, while equally many microbatches stay in flight, so it is counted as it is at the last
// loss. (Where all forwards come before the first backward, each microbatch that is through frees more than the head
// keeps of it.)
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/parameters.h"
#include "engine/model/stage_layers.h"
#include "engine/schedule/pipeline.h"
#include "engine/spec/prediction.h"
#include "engine/spec/scenario.h"

namespace shardscape::memory {

/// Bytes of one block for one microbatch on one rank.
struct BlockBytes {
  Bytes saved;    ///< kept under the plan's recompute policy
  Bytes working;  ///< beside `saved`, live while the block runs backward
  Bytes put_off;  ///< kept from input gradient to weight gradient where that is put off (zero_bubble)
};

/// Bytes of the parts of the model for one microbatch on one rank.
struct ActivationBytes {
  std::array<BlockBytes, model::kMostBlockKinds> block;  ///< by kind
  Bytes embedding;
  Bytes further;  ///< one module that predicts a further token
  Bytes head;
  Bytes head_put_off;  ///< kept from its input gradient to a weight gradient that is deferred
  Bytes logits;
  Bytes logits_saved;  ///< kept from a microbatch's loss to its backward
  Bytes boundary;
};

/// Everything that the memory of a stage depends on.
struct MemoryInputs {
  const Setting& setting;
  const ParallelPlan& plan;
  const std::vector<model::StageLayers>& layers;  ///< layers of each stage
  model::StageParameters parameters;
  ActivationBytes activations;
  schedule::PipelineShape pipeline;
  std::span<const model::StageLayers> chunks = {};  ///< dualpipe: layers of each chunk, [stage * 2 + chunk]
  /// Parameters of every stage, where they are known already; otherwise they are computed from `layers`.
  std::span<const model::ParameterGroups> held = {};
};

/// Whether a stage in training needs at most the memory of the one before it, as inner stages of equal layers do: they
/// hold as many microbatches or fewer. False for schedules that put weight gradients off, whose number rises.
bool is_no_fuller(const MemoryInputs& inputs, std::int32_t stage);

/// The part of a training stage's memory that follows from its parameters: weights, gradients, optimizer state,
/// workspace and buckets. Plans that differ only in microbatch and recomputation share it.
MemoryUse training_state(const MemoryInputs& inputs, std::int32_t stage);
/// The whole memory of a training stage; `state` is its training_state().
MemoryUse training_stage(const MemoryInputs& inputs, std::int32_t stage, const MemoryUse& state);
inline MemoryUse training_stage(const MemoryInputs& inputs, std::int32_t stage) {
  return training_stage(inputs, stage, training_state(inputs, stage));
}

/// Memory of a server's stage with `sequences` per replica in flight, each of `tokens` cached tokens at its end.
MemoryUse inference_stage(const MemoryInputs& inputs, std::int32_t stage, double sequences, double tokens);

}  // namespace shardscape::memory
