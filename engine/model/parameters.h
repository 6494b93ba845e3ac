// Parameters that one rank holds, before ZeRO.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "engine/base/quantity.h"
#include "engine/model/stage_layers.h"
#include "engine/spec/model.h"
#include "engine/spec/precision_policy.h"

namespace shardscape::model {

/// Of one part of the model.
struct PartParameters {
  double matrices = 0;  ///< weights of products
  double vectors = 0;   ///< biases and norms
  double tensors = 0;   ///< matrices (QKV as one, gate and up apart), norms and biases

  friend PartParameters operator+(const PartParameters& a, const PartParameters& b) {
    return {a.matrices + b.matrices, a.vectors + b.vectors, a.tensors + b.tensors};
  }
};

/// The same with what they take.
struct Parameters {
  double count = 0;
  double tensors = 0;
  Bytes weights;  ///< as stored and gathered
  Bytes copies;   ///< cast from them for products

  Parameters& operator+=(const Parameters& o);
  friend Parameters operator+(Parameters a, const Parameters& b) { return a += b; }
  friend Parameters operator*(double n, const Parameters& p) {
    return {n * p.count, n * p.tensors, n * p.weights, n * p.copies};
  }
};
/// Of a block.
Parameters weights_of(const PartParameters& part, const PrecisionPolicy& policy);

/// Matrices, the biases of their columns and the vocabulary are split over the tensor group; norms, the
/// biases of row-parallel products and learned positions are not.
struct StageParameters {
  std::array<Parameters, kMostBlockKinds> block;  ///< one block, by kind
  Parameters embedding;                           ///< token and position tables
  Parameters final_norm;
  Parameters head;  ///< LM head
  bool tied = false;

  /// Of so many blocks.
  [[nodiscard]] Parameters of_blocks(const StageLayers& layers) const;
  /// Parameters of the last so many of a stage's blocks, 0 to all of them.
  [[nodiscard]] double count_of_last(const StageLayers& layers, std::int32_t blocks) const;
  /// `layers`: of every stage.
  [[nodiscard]] Parameters of_stage(std::span<const StageLayers> layers, std::size_t stage) const;
  /// The head of the last stage and the final norm. A tied head needs weights only where the embedding is
  /// elsewhere: it holds a copy of the table there.
  [[nodiscard]] Parameters of_head(bool with_embedding) const {
    return final_norm + (with_embedding && tied ? Parameters{} : head);
  }
};

StageParameters stage_parameters(const ModelSpec& model, const PrecisionPolicy& policy, std::int32_t tensor);

}  // namespace shardscape::model
