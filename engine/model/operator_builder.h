// Sizes on one rank, and the operators that several parts of a model have in common.
//
// Parallelisation after Shoeybi et al. 2019 (column- then row-parallel pairs over the tensor group) and
// Korthikanti et al. 2022 (sequence parallelism: norms, dropouts and residuals hold 1/tp of the tokens;
// all-reduces become all-gather and reduce-scatter). Context parallelism splits the sequence of every
// operator.
//
// Biases take no time of their own: cuBLASLt adds them and sums up their gradients in the epilogues of the
// products (CUBLASLT_EPILOGUE_BIAS and _BGRADB). They count as parameters wherever parameters do.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/model/layer_key.h"
#include "engine/model/operator.h"
#include "engine/spec/scenario.h"

namespace shardscape::model {

inline constexpr double kMaskBytes = 1;  ///< dropout masks, one byte per element
inline constexpr double kFp32Bytes = 4;

/// Builds the operators of one rank. Holds references: the setting must outlive it.
class OperatorBuilder {
 public:
  /// `tokens` tokens of each of key.microbatch sequences, whose queries meet `keys` keys each.
  OperatorBuilder(const Setting& setting, const LayerKey& key, double tokens, double keys, Mode mode);

  [[nodiscard]] const ModelSpec& model() const { return model_; }
  [[nodiscard]] const StackProfile& stack() const { return stack_; }
  [[nodiscard]] const DeviceSpec& device() const { return device_; }
  /// Whether attention runs fused kernels, which write no scores; in training with sinks the stack may have none.
  [[nodiscard]] bool fused_attention() const { return fused_attention_; }
  [[nodiscard]] const WorkloadSpec& workload() const { return workload_; }
  [[nodiscard]] const LayerKey& key() const { return key_; }
  [[nodiscard]] Mode mode() const { return mode_; }
  [[nodiscard]] bool serves() const { return mode_ != Mode::training; }
  /// Tokens on this rank inside the tensor-parallel region.
  [[nodiscard]] double tokens() const { return tokens_; }
  [[nodiscard]] const PrecisionPolicy& policy() const { return policy_; }
  /// Bytes of an activation's element.
  [[nodiscard]] double element() const { return element_; }
  [[nodiscard]] double hidden() const { return static_cast<double>(model_.hidden); }
  [[nodiscard]] double per_rank(std::int64_t width) const { return static_cast<double>(width) / key_.tensor; }
  /// Whether selective recompute, which only training has, computes a part again.
  [[nodiscard]] bool repeats(RecomputePart part) const {
    return mode_ == Mode::training && stack_.repeats(part);
  }
  /// Whether it computes the norms again whose output goes into products.
  [[nodiscard]] bool repeats_norms() const {
    return repeats(RecomputePart::norms) && model_.norm_place != NormPlace::after;
  }
  /// Whether it computes the activation of an MLP again. Not a plain ReLU, which keeps its output alone.
  [[nodiscard]] bool repeats_activations() const {
    return repeats(RecomputePart::activations) && model_.mlp != MlpKind::relu;
  }
  /// Bytes per value that the stack may keep in `format`: only training with casts does; otherwise the type it has.
  [[nodiscard]] double kept_bytes(KeptFormat format) const {
    const bool narrow = mode_ == Mode::training && policy_.casts();
    return narrow ? kept_value_bytes(format, element_) : element_;
  }
  [[nodiscard]] bool dropout() const { return drops(model_.dropout); }
  [[nodiscard]] bool attention_dropout() const {
    return drops(model_.attention_dropout.value_or(model_.dropout));
  }
  [[nodiscard]] bool embedding_dropout() const {
    return drops(model_.embedding_dropout.value_or(model_.dropout));
  }

  /// A tensor of tokens x width elements on this rank.
  [[nodiscard]] Bytes tensor(double width) const { return Bytes(element_ * tokens_ * width); }
  /// A tensor of tokens x width elements as a message, and as input or output of attention.
  [[nodiscard]] Bytes message(double width) const;
  [[nodiscard]] Bytes attention_tensor(double width) const;
  /// Bytes that a product keeps of an input of that width; where it casts, the copy is kept.
  [[nodiscard]] Bytes product_input(double width) const;
  /// Bytes that a column-parallel product keeps of its input: of the rank's own tokens, or of all, as the stack has it.
  [[nodiscard]] Bytes gathered_input(Precision operands) const { return gathered_input(operands, hidden()); }
  [[nodiscard]] Bytes gathered_input(Precision operands, double width) const;
  /// Tokens outside the tensor-parallel region, per rank: fewer with sequence parallelism.
  [[nodiscard]] double own_tokens() const { return norm_tokens_; }

  /// A product [tokens, k] x [k, n] in the policy's format; `input`: bytes kept of its input.
  [[nodiscard]] Operator gemm(std::string_view name, double k, double n, Bytes input) const;
  /// As gemm(), but over own_tokens().
  [[nodiscard]] Operator own_gemm(std::string_view name, double k, double n, Bytes input) const;
  /// As gemm(), but in the format of experts' products: of experts that all tokens go to.
  [[nodiscard]] Operator shared_gemm(std::string_view name, double k, double n, Bytes input) const;
  /// A product of any shape and format.
  [[nodiscard]] Operator product(std::string_view name, const compute::GemmShape& shape, Precision operands,
                                 Bytes input) const;
  /// Marks a product whose input selective recompute makes again, so that it keeps none.
  [[nodiscard]] static Operator remade(Operator product, bool again);
  /// Appends the output projection of attention, with `width` input columns, which keeps the core's output; fused cores
  /// need that output in backward, too. If both keep it in a format of its own, a cast to it comes first.
  void append_output_projection(std::vector<Operator>& ops, double width) const;

  /// The attention core over all queries and keys of this rank's `heads`. It keeps `inputs` and core_bytes(); under
  /// selective recompute of the core `inputs` alone. `window`: see AttentionBlock. In decode the keys lie in order over
  /// a context group, so that its last ranks hold those of the window.
  [[nodiscard]] Operator attention_core(double heads, double kv_heads, double head_dim, Bytes inputs,
                                        double window) const;
  /// Bytes that the core keeps beside its inputs: for flash the log-sum-exp of each row of scores; naive keeps softmax
  /// output, dropout mask and dropout output of each score (5 a s^2 b).
  [[nodiscard]] Bytes core_bytes(double rows, double scores) const;
  /// Keys and values, `kv` bytes on each rank, go round the context group, one piece per step (Liu et al.
  /// 2023, Ring Attention), with a causally balanced assignment (each rank holds one early and one late
  /// piece); backward passes them again together with their gradients.
  [[nodiscard]] Operator context_ring(Bytes kv) const;
  /// Elements for each token on this rank: of the queries, of the core's output, of keys and values together.
  struct CoreWidths {
    double queries, output, keys_values;
  };
  /// Gives the core the merge of what each step of a ring leaves, if it runs as one (rings()).
  ///
  /// Of c steps, forward reads and scales the first output and adds each other one, scaled, to it (read, read,
  /// written); scales are of the log-sum-exp of rows, which are merged before, in small kernels. Backward copies the
  /// first dQ, dK and dV and adds the others likewise, in the precision of attention. Behind the first step either the
  /// late half of the queries or the early half of the keys is met; of a group's ranks the first has always the former,
  /// the last always the latter, and the others wait for the slower of both at the next exchange. So, in elements for
  /// each token,
  ///
  ///   forward   (2 + 3 (c - 1)) output                                                        2 c - 1 kernels
  ///   backward  2 (queries + kv) + 3 (c - 1) (queries + kv - min(queries, kv) / 2)             2 c kernels
  ///
  /// Meanwhile the outputs of all steps wait for the merge; in backward two pieces of keys and values are under way,
  /// with their gradients, beside the step's own gradients. Source: Transformer Engine, context_parallel.py (p2p). Left
  /// out: copies that put keys and values, or halves of them, side by side.
  ///
  /// A core that does not ring merges nothing, but holds all keys and values that were gathered, and their gradients;
  /// what is gathered for windows is not counted.
  void merge_ring(Operator& core, const CoreWidths& widths, double window) const;
  /// Rotary positions applied to `columns` columns.
  [[nodiscard]] Operator rotary(double columns) const;

  /// The norms of queries and keys, with `columns` columns in all, as one kernel each. Over the whole width a tensor
  /// group would add up a sum of squares for each token; that message of 4 bytes is left out.
  [[nodiscard]] Operator qk_norm(double columns) const;

  /// The norm of a latent vector of `width` elements, over own_tokens().
  [[nodiscard]] Operator latent_norm(std::string_view name, double width) const;

  /// A norm of the hidden width.
  [[nodiscard]] Operator norm(std::string_view name) const;
  /// A norm ahead of a block's products, which selective recompute may repeat.
  [[nodiscard]] Operator input_norm(std::string_view name) const;
  /// As norm(), where another operator keeps the norm's input.
  [[nodiscard]] Operator norm_of_kept_input(std::string_view name) const;
  /// Bias, dropout and residual addition in one kernel.
  [[nodiscard]] Operator residual(std::string_view name, bool dropout) const;
  /// Sum of the outputs of attention and MLP in a parallel block, each with its dropout: each rank of a tensor group
  /// adds its partial sums before one reduction of both. Backward passes both dropouts, or adds the two gradients of
  /// the shared input.
  [[nodiscard]] Operator branch_sum(std::string_view name) const;

  /// The collective before a column-parallel product: an all-gather of the tokens (sequence parallel), or nothing in
  /// forward and an all-reduce of the input's gradient in backward. Sequence parallelism gathers the input again in
  /// backward, for the weight gradient, unless the stack keeps it; that gather also serves recomputation. If the stack
  /// keeps it but norms are recomputed, it is gathered with them.
  [[nodiscard]] Operator enter_tensor_region(std::string_view name) const {
    return enter_tensor_region(name, hidden());
  }
  [[nodiscard]] Operator enter_tensor_region(std::string_view name, double width) const;
  /// After a row-parallel product: reduce-scatter of the partial sums (sequence parallel), or all-reduce.
  [[nodiscard]] Operator leave_tensor_region(std::string_view name) const;

 private:
  /// Whether the core meets keys piece by piece. Local attention (`window`) gathers them: Transformer Engine has no
  /// windows in rings.
  [[nodiscard]] bool rings(double window) const;
  [[nodiscard]] Operator dense_product(std::string_view name, double tokens, double k, double n,
                                       Precision operands, Bytes input) const;

  struct NormUse {
    bool keeps_input = true;
    bool again = false;  ///< selective recompute repeats it
  };
  [[nodiscard]] Operator norm_of(std::string_view name, double elements, NormUse use) const;
  [[nodiscard]] bool drops(double probability) const { return mode_ == Mode::training && probability > 0; }
  [[nodiscard]] CollectiveCall call(network::CollectiveOp op, double width, double repeats) const;

  const ModelSpec& model_;
  const StackProfile& stack_;
  const DeviceSpec& device_;
  const WorkloadSpec& workload_;
  const LayerKey key_;
  const PrecisionPolicy policy_;
  Mode mode_;
  bool fused_attention_;
  double element_;
  double keys_;
  double queries_;  ///< queries per sequence
  double tokens_, norm_tokens_;
};

}  // namespace shardscape::model
