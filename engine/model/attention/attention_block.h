// What the engine asks of a kind of attention. A kind is one file beside this one and a row in block.cc.
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
  /// From the tensor-parallel region's beginning and the projections of the input to the output projection, on
  /// one rank.
  virtual void append_operators(std::vector<Operator>& ops, const OperatorBuilder& b) const = 0;
  /// What a token leaves in the key-value cache.
  [[nodiscard]] virtual KvUnits kv(const ModelSpec& model) const = 0;
  /// Earlier tokens and its own that a token meets at most; 0: all.
  [[nodiscard]] virtual double window(const ModelSpec& model) const = 0;
  /// On one rank of a tensor group; norms of its own are part of it.
  [[nodiscard]] virtual PartParameters parameters(const ModelSpec& model, std::int32_t tensor) const = 0;
  /// Weights that a token meets in products, of the whole model.
  [[nodiscard]] virtual double product_parameters(const ModelSpec& model) const = 0;
  /// Matrix FLOPs of the core's forward on one sequence, every score counted, also those that the causal mask
  /// takes; beyond a window twice those that are left, which is the same without one.
  [[nodiscard]] virtual double core_flops(const ModelSpec& model, double tokens) const = 0;
  /// The rule of its own that a tensor degree breaks; none where it divides.
  [[nodiscard]] virtual Reason tensor_rule(const ModelSpec& model, std::int32_t tensor) const = 0;
};

}  // namespace shardscape::model
