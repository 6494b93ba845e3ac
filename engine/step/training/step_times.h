// A training step as it was timed: the passes of its stages and chunks, the pipeline over them, and the tails.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/schedule/pipeline.h"
#include "engine/step/layers/layer_times.h"
#include "engine/step/layers/sibling_turns.h"
#include "engine/step/layers/training_step.h"

namespace shardscape::step {

struct StageTimes {
  std::vector<StagePasses> stages;
  PassTime deferred;  ///< on the last stage: all weight gradients of the head, after the last backward
  std::vector<ChunkPasses>
      chunks;  ///< index: stage * virtual_stages + chunk; empty where each stage is one chunk

  /// The passes through a chunk, or the one chunk of a stage; index as in `chunks`.
  [[nodiscard]] const ChunkPasses& chunk(std::size_t index) const {
    return chunks.empty() ? stages[index] : chunks[index];
  }
  /// All chunks of a stage; none where it is one chunk.
  [[nodiscard]] std::span<ChunkPasses> chunks_of(std::size_t stage) {
    const std::size_t each = chunks.size() / stages.size();
    return std::span(chunks).subspan(stage * each, each);
  }
  [[nodiscard]] std::span<const ChunkPasses> chunks_of(std::size_t stage) const {
    const std::size_t each = chunks.size() / stages.size();
    return std::span(chunks).subspan(stage * each, each);
  }
};

/// When the last backward of each stage ends.
struct PipelineTimes {
  schedule::Transfer transfer;
  std::vector<double> end, end_without_transfers;  ///< index: stage
  /// End of the last microbatch's backward, index [stage][chunk]; empty where each stage is one chunk.
  std::vector<double> chunk_end;
};

/// What a stage does after its last backward, and behind the deferred weight gradients of the head.
struct StageTail {
  Seconds data_comm;    ///< exposed gradient traffic and gather of updated weights, plus `lost`
  Seconds lost;         ///< what compute loses to the parts of this traffic that run beside it
  HiddenGather hidden;  ///< of the gather of updated weights
  Seconds optimizer;
  Seconds end;  ///< of the stage's step
};

/// What the plan last timed without faults was found to take, as far as anything reads it later.
struct HealthyTimes {
  Breakdown contention;    ///< see contention.h
  SiblingTurns turns;      ///< how siblings take turns
  Seconds spared_in_turn;  ///< what its step got shorter by that
};

struct StepTimes : StageTimes, HealthyTimes {
  /// Of each stage the first with its times, by chunk too: itself, or one before it. Only that one's are filled, unless
  /// every tail is asked for.
  std::vector<std::size_t> twin;
  std::vector<schedule::StageTime> times;  ///< in the order that schedule::run_in_order() takes
  PipelineTimes pipeline;
  /// Complete only where every tail is asked for; else of the stage that ends last, and of those whose data-parallel
  /// traffic sick links carry.
  std::vector<StageTail> tails;
  Breakdown contention_now;  ///< of whatever was timed last

  [[nodiscard]] bool is_twin(std::size_t stage) const { return twin[stage] != stage; }
  [[nodiscard]] const StagePasses& passes(std::size_t stage) const { return stages[twin[stage]]; }
  /// Seconds that a stage takes for the head's deferred weight gradients.
  [[nodiscard]] Seconds deferred_on(const TrainingStep& inputs, std::size_t stage) const {
    return inputs.last(static_cast<std::int32_t>(stage)) ? deferred.total() : Seconds(0);
  }
};

}  // namespace shardscape::step
