// What the engine asks of a kind of attention. A kind is two files beside this one, with an entry in the tables of
// block_kinds() (model/block_kinds.cc).
#pragma once

#include <cstdint>
#include <vector>

#include "engine/model/kv_units.h"
#include "engine/model/operator_builder.h"
#include "engine/model/parameters.h"
#include "engine/spec/verdict.h"

namespace shardscape::model {

class AttentionBlock {
 public:
  virtual ~AttentionBlock() = default;
  /// Appends the operators of one rank, from the input's projections and the entry into the tensor-parallel region to
  /// the output projection.
  virtual void append_operators(std::vector<Operator>& ops, const OperatorBuilder& b) const = 0;
  /// The units that a token leaves in the key-value cache.
  [[nodiscard]] virtual KvUnits kv(const ModelSpec& model) const = 0;
  /// The most tokens that a token attends to, itself included; 0: all tokens up to it.
  [[nodiscard]] virtual double window(const ModelSpec& model) const = 0;
  /// Parameters on one rank of a tensor group, with the norms inside the attention.
  [[nodiscard]] virtual PartParameters parameters(const ModelSpec& model, std::int32_t tensor) const = 0;
  /// Weights of the whole model's attention that a token is multiplied with, per block.
  [[nodiscard]] virtual double product_parameters(const ModelSpec& model) const = 0;
  /// Matrix FLOPs of the core's forward on one sequence. Every score counts, also those that the causal mask removes;
  /// with a window twice the visible ones count, which agrees with that where there is no window.
  [[nodiscard]] virtual double core_flops(const ModelSpec& model, double tokens) const = 0;
  /// The rule that a tensor degree breaks for this attention; none where the degree divides its heads.
  [[nodiscard]] virtual Reason tensor_rule(const ModelSpec& model, std::int32_t tensor) const = 0;
};

}  // namespace shardscape::model
