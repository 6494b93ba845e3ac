// What each kind of tensor is made of. The words of a study (`precision: bf16 | fp8 | ...`) are names of such
// policies.
//
// Products of 8 and 4 bits take and keep quantised copies of their inputs, and leave bf16. All the rest stays
// bf16, as real stacks have it:
// - Norms, residuals, activation functions, attention, and with them what they keep for backward and what
//   ranks send each other: Micikevicius et al. 2022, FP8 Formats for Deep Learning, arXiv:2209.05433, section
//   4 (only inputs of products are fp8); NVIDIA Transformer Engine's user guide, "Using FP8 with Transformer
//   Engine" (its layers take and return bf16, save the fp8 copy of a product's input for the weight gradient;
//   fp8_dpa, fp8 attention, is off by default); NVFP4: NVIDIA 2025, Pretraining Large Language Models with
//   NVFP4, arXiv:2509.25149, section 4 (norms, embeddings, head, attention in bf16 or fp32).
// - Embedding, final norm and LM head: Megatron-LM's output layer is none of Transformer Engine's; ModelOpt
//   and llm-compressor, which make the checkpoints that TensorRT-LLM and vLLM serve, leave lm_head out.
// - Weights of products: in training bf16, with a row-wise and a column-wise copy that are cast once per step
//   (Transformer Engine's weight workspaces), or the copies alone (keep_narrow_weights()). A server stores one copy
//   alone.
// - The key-value cache: vLLM's kv_cache_dtype "auto" and TensorRT-LLM without kv_cache_quant_algo keep it in
//   the type of the activations.
//
// Gradients of weights accumulate, and masters and moments are kept, in what the stack says
// (StackProfile::State). What casts cost that no kernel before them writes out is the stack's
// (StackProfile::Quantisation); tensors that it keeps narrower than it computes them stand there, too
// (StackProfile::Kept). Left out: messages that are cast before they are sent (fp8 parameter gathers); layers that a
// recipe keeps in bf16 (NVFP4's last ones).
#pragma once

#include <array>

#include "engine/base/enum_names.h"
#include "engine/spec/phase.h"
#include "engine/spec/precision.h"

namespace shardscape {

/// Names of policies: those of number formats, for fp8 with a scale per tensor, and the block-scaled recipes.
///   mxfp8  fp8 with an 8-bit scale per 32 elements (OCP Microscaling 1.0)
///   nvfp4  fp4 with an 8-bit scale per 16 elements: what `fp4` stands for, too
enum class PolicyName : std::uint8_t { fp32, tf32, bf16, fp16, fp8, fp4, mxfp8, nvfp4 };

/// The format that a policy multiplies.
constexpr Precision format_of(PolicyName name) {
  if (name == PolicyName::mxfp8) return Precision::fp8;
  if (name == PolicyName::nvfp4) return Precision::fp4;
  return static_cast<Precision>(name);
}

struct PrecisionPolicy {
  Precision weights;      ///< weights of products, as stored, gathered and written by the optimizer
  double weight_copies;   ///< number of further copies of those weights, in the type of the products
  Precision products;     ///< inputs of products, as multiplied and as kept for weight gradients
  Precision ends;         ///< embedding, final norm and LM head: weights, and what the head multiplies
  Precision activations;  ///< tensors between operators, and what is kept by all but products and attention
  Precision attention;    ///< queries, keys, values, scores and output of the core
  Precision kv_cache;     ///< the cache, and what decoding multiplies with it
  Precision wire;         ///< messages between ranks of tensor, context and pipeline groups
  Precision gradients;    ///< gradients of activations; those of weights: see above
  /// Bytes of scales per element of the products' operands, beside those of the format.
  double block_scales;
  /// Weights of a mixture's experts, shared ones included, as stored, and the type that their products multiply. As for
  /// other products, except in servers of 4 bits (serve_experts).
  Precision experts;
  Precision expert_products;

  /// Bytes that store one element of a product's operand, scales included.
  [[nodiscard]] constexpr double operand_bytes(Precision operands) const {
    return shardscape::operand_bytes(operands) + (operands == products ? block_scales : 0);
  }
  /// Whether products take quantised copies of tensors that are kept wider.
  [[nodiscard]] constexpr bool casts() const { return products != activations; }

  /// Weights of products in training are kept as they are multiplied, and nothing wider: fp8 with one scale per tensor
  /// (Transformer Engine's fp8_model_init, Megatron Core's fp8_param_gather, NeMo's fp8_params). They are gathered so,
  /// too. `transposed`: fp8 units read both operands along the inner dimension alone (Hopper's), so that backward
  /// has a transposed copy; those of Blackwell read either way. Block scales go along one dimension, so that such
  /// recipes keep what they cast from.
  constexpr void keep_narrow_weights(bool transposed) {
    if (products != Precision::fp8 || block_scales > 0 || weight_copies == 0) return;
    weights = experts = products;
    weight_copies = transposed ? 1 : 0;
  }

  /// The number formats that the device's matrix units must support.
  [[nodiscard]] std::array<Precision, 5> multiplied() const {
    return {products, expert_products, ends, attention, kv_cache};
  }

  /// Checkpoints of mixtures of experts in 4 bits have nothing else in 4 bits than experts: gpt-oss (OpenAI 2025,
  /// arXiv:2508.10925, section 2.1: MXFP4 weights of the mixture, 90 % of all parameters), NVIDIA's of DeepSeek-R1
  /// (ModelOpt, DeepSeek-R1-FP4). A device without units for them multiplies in bf16 what it reads in 4 bits (the
  /// Marlin and Triton kernels of vLLM, W4A16 of TensorRT-LLM). Of those that have weights alone in 4 bits it
  /// multiplies them at the rate of 8 bits, which inputs are cast to (MXFP4 x MXFP8 of FlashInfer and TensorRT-LLM; PTX
  /// ISA 8.7, tcgen05.mma kind::mxf8f6f4).
  constexpr void serve_experts(bool has_unit, bool weights_alone) {
    experts = Precision::fp4;
    expert_products = !has_unit ? Precision::bf16 : weights_alone ? Precision::fp8 : Precision::fp4;
    weights = products = Precision::bf16;
  }
  /// The policy with the experts' types in place of those of other products.
  [[nodiscard]] constexpr PrecisionPolicy of_experts() const {
    PrecisionPolicy policy = *this;
    if (experts == Precision::fp4) policy.weights = experts, policy.products = expert_products;
    return policy;
  }
};

constexpr PrecisionPolicy policy_of(PolicyName name, Phase phase) {
  constexpr Precision kBf16 = Precision::bf16;
  const Precision format = format_of(name);
  // The scales of fp4 are counted in operand_bytes().
  const double scales = name == PolicyName::mxfp8 ? 1.0 / 32 : 0;
  if (format == Precision::fp8 || format == Precision::fp4) {
    const bool training = phase == Phase::training;
    return {training ? kBf16 : format,
            training ? 2.0 : 0.0,
            format,
            kBf16,
            kBf16,
            kBf16,
            kBf16,
            kBf16,
            kBf16,
            scales,
            training ? kBf16 : format,
            format};
  }
  return {format, 0, format, format, format, format, format, format, format, 0, format, format};
}

}  // namespace shardscape
