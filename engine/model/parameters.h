// Parameters that one rank holds, before ZeRO, by the group of ranks that holds copies of them: memory, the
// traffic of gradients and weights, and the optimizer's step all go group by group.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "engine/base/quantity.h"
#include "engine/model/stage_layers.h"
#include "engine/spec/model.h"
#include "engine/spec/parallel_groups.h"
#include "engine/spec/phase.h"
#include "engine/spec/precision_policy.h"

namespace shardscape::model {

/// Numbers of parameters and tensors in one part of the model.
struct PartParameters {
  double matrices = 0;  ///< weights of products
  double vectors = 0;   ///< biases and norms
  double tensors = 0;   ///< matrices (QKV as one, gate and up apart), norms and biases

  friend PartParameters operator+(const PartParameters& a, const PartParameters& b) {
    return {a.matrices + b.matrices, a.vectors + b.vectors, a.tensors + b.tensors};
  }
};

/// Numbers of parameters and tensors, with their bytes.
struct Parameters {
  double count = 0;
  double tensors = 0;
  Bytes weights;  ///< bytes as stored and gathered
  Bytes copies;   ///< bytes of copies cast from them for products

  Parameters& operator+=(const Parameters& o);
  friend Parameters operator+(Parameters a, const Parameters& b) { return a += b; }
  friend Parameters operator*(double n, const Parameters& p) {
    return {n * p.count, n * p.tensors, n * p.weights, n * p.copies};
  }
};

struct ParameterGroup {
  ParallelGroup copies = ParallelGroup::data_shard;  ///< ranks that hold the same parameters
  Parameters held;
};

/// The parameters held for each of kCopyGroups, in their order.
class ParameterGroups {
 public:
  ParameterGroups() {
    for (std::size_t i = 0; i < groups_.size(); ++i) groups_[i].copies = kCopyGroups[i];
  }
  /// Puts all parameters into one group.
  ParameterGroups(ParallelGroup copies, const Parameters& held) : ParameterGroups() {
    (*this)[copies] = held;
  }

  [[nodiscard]] Parameters& operator[](ParallelGroup copies) {
    return std::ranges::find(groups_, copies, &ParameterGroup::copies)->held;
  }
  [[nodiscard]] const Parameters& operator[](ParallelGroup copies) const {
    return std::ranges::find(groups_, copies, &ParameterGroup::copies)->held;
  }
  [[nodiscard]] auto begin() const { return groups_.begin(); }
  [[nodiscard]] auto end() const { return groups_.end(); }
  [[nodiscard]] Parameters total() const;

  ParameterGroups& operator+=(const ParameterGroups& o);
  friend ParameterGroups operator+(ParameterGroups a, const ParameterGroups& b) { return a += b; }
  friend ParameterGroups operator*(double n, ParameterGroups p) {
    for (ParameterGroup& group : p.groups_) group.held = n * group.held;
    return p;
  }

 private:
  std::array<ParameterGroup, kCopyGroups.size()> groups_;
};

/// The parameters of a part of a block, with their bytes under a policy.
Parameters weights_of(const PartParameters& part, const PrecisionPolicy& policy);

/// Matrices, the biases of their columns and the vocabulary are split over the tensor group; norms, the
/// biases of row-parallel products and learned positions are not.
struct StageParameters {
  std::array<ParameterGroups, kMostBlockKinds> block;  ///< parameters of one block, by kind
  // The ranks of the data shard group hold copies of everything but experts.
  Parameters embedding;  ///< token and position tables
  Parameters final_norm;
  Parameters head;  ///< LM head
  bool tied = false;
  ParameterGroups further;   ///< one module that predicts a further token, in training
  Parameters further_table;  ///< the copy of the embedding that such modules read on other stages

  /// Parameters of these blocks.
  [[nodiscard]] ParameterGroups of_blocks(const StageLayers& layers) const;
  /// Number of parameters with copies on a group, in the last `blocks` of a stage's blocks, 0 to all of them.
  [[nodiscard]] double count_of_last(const StageLayers& layers, std::int32_t blocks,
                                     ParallelGroup copies) const;
  /// Parameters of a stage with these layers; the first stage has the embedding, the last the head.
  [[nodiscard]] ParameterGroups of_stage(const StageLayers& layers, bool first, bool last) const;
  /// Parameters of stage `stage`, where `layers` are those of every stage.
  [[nodiscard]] ParameterGroups of_stage(std::span<const StageLayers> layers, std::size_t stage) const;
  /// Final norm and head of the last stage. A tied head counts only where the stage has no embedding: it then holds a
  /// copy of the table.
  [[nodiscard]] Parameters of_head(bool with_embedding) const {
    return final_norm + (with_embedding && tied ? Parameters{} : head);
  }
  /// Parameters of `modules` modules of further tokens, which share the stage's table or, without one, a copy of it.
  [[nodiscard]] ParameterGroups of_further(std::int32_t modules, bool with_table) const {
    const Parameters table = modules == 0 || with_table ? Parameters{} : further_table;
    return modules * further + ParameterGroups(ParallelGroup::data_shard, table);
  }
};

StageParameters stage_parameters(const ModelSpec& model, const PrecisionPolicy& policy,
                                 const ParallelPlan& plan, Phase phase = Phase::inference);

}  // namespace shardscape::model
