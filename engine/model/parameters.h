// Parameters that one rank holds, before ZeRO.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "engine/model/stage_layers.h"
#include "engine/spec/model.h"

namespace shardscape::model {

/// Of one part of the model.
struct Parameters {
  double count = 0;
  double tensors = 0;  ///< weight tensors: matrices (QKV as one, gate and up apart), norms and biases

  friend Parameters operator+(const Parameters& a, const Parameters& b) {
    return {a.count + b.count, a.tensors + b.tensors};
  }
};

/// Matrices, the biases of their columns and the vocabulary are split over the tensor group; norms, the
/// biases of row-parallel products and learned positions are not.
struct StageParameters {
  std::array<Parameters, kMostBlockKinds> block;  ///< one block, by kind
  double embedding = 0;                           ///< token and position tables
  double final_norm = 0;
  double head = 0;  ///< LM head
  bool tied = false;

  /// Of so many blocks.
  [[nodiscard]] Parameters of_blocks(const StageLayers& layers) const;
  /// `layers`: of every stage.
  [[nodiscard]] double of_stage(std::span<const StageLayers> layers, std::size_t stage) const;
  /// The head of the last stage and the final norm. A tied head needs weights only where the embedding is
  /// elsewhere: it holds a copy of the table there.
  [[nodiscard]] double of_head(bool with_embedding) const {
    return final_norm + (with_embedding && tied ? 0 : head);
  }
};

StageParameters stage_parameters(const ModelSpec& model, std::int32_t tensor);

}  // namespace shardscape::model
