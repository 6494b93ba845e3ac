// What the engine asks of a kind of attention, or of what stands in its place, and asks nowhere else. A kind is two
// files beside this one, and the places in the table of block_kinds() (model/block_kinds.cc) that have it. A kernel
// that only its blocks have is priced there (Operator::own_price).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/model/operator_builder.h"
#include "engine/model/parameters.h"
#include "engine/spec/verdict.h"

namespace shardscape::model {

/// The cache of one token in one block: a number of units that no rank splits (KV heads), each of `elements` elements
/// (a key and a value). A tensor group with more ranks than units holds copies of them.
struct KvUnits {
  std::int64_t units = 1;
  std::int64_t elements = 0;  ///< elements per unit

  /// Units on each rank of a tensor group: units / tensor, at least 1.
  [[nodiscard]] std::int64_t local(std::int32_t tensor) const {
    return std::max<std::int64_t>(1, units / tensor);
  }
  /// The index of the first unit on a rank.
  [[nodiscard]] std::int64_t first(std::int32_t tensor, std::int32_t rank) const {
    return rank * units / tensor;
  }
  /// How many ranks of a tensor group hold the same units.
  [[nodiscard]] std::int32_t copies(std::int32_t tensor) const {
    return static_cast<std::int32_t>(std::max<std::int64_t>(1, tensor / units));
  }
  /// Elements per token and block on each rank.
  [[nodiscard]] double local_elements(std::int32_t tensor) const {
    return static_cast<double>(local(tensor) * elements);
  }
};

class AttentionBlock {
 public:
  virtual ~AttentionBlock() = default;
  /// Appends the operators of one rank, from the input's projections and the entry into the tensor-parallel region to
  /// the output projection.
  virtual void append_operators(std::vector<Operator>& ops, const OperatorBuilder& b) const = 0;
  /// How many of a sequence's `tokens` the cache keeps: those of the window. What has a state of fixed size for each
  /// sequence keeps one, of kv() units.
  [[nodiscard]] virtual double cached(const ModelSpec& model, double tokens) const {
    const double most = window(model);
    return most > 0 ? std::min(tokens, most) : tokens;
  }
  /// Kernels that are launched one by one where a server reads prompts, over those of attention with heads of its own.
  [[nodiscard]] virtual double launches() const { return 1; }
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
