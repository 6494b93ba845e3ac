// The MLPs of a mixture of experts, by shape (Shazeer et al. 2017, arXiv:1701.06538; Fedus et al. 2022,
// arXiv:2101.03961): a router gives each token to a few of many small MLPs.
#pragma once

#include <cstdint>

#include "engine/base/enum_names.h"
#include "engine/base/problems.h"

namespace shardscape {

/// What turns the router's scores into weights: a softmax over all experts (Mixtral, Qwen3), or a sigmoid of
/// each by itself (DeepSeek-V3, arXiv:2412.19437, section 2.1.2; Llama 4).
enum class RouterKind : std::uint8_t { softmax, sigmoid };
SHARDSCAPE_ENUM_NAMES(RouterKind, "softmax", "sigmoid");

/// Of a model; YAML keys carry the same names. Experts have the activation and the biases of the model's MLP.
struct MixtureOfExperts {
  std::int64_t experts = 0;  ///< of a layer, shared ones not counted
  std::int64_t top_k = 1;    ///< experts that a token goes through
  std::int64_t expert_ffn_hidden = 0;
  std::int64_t shared_experts = 0;  ///< through which every token goes (Dai et al. 2024, arXiv:2401.06066)
  /// Width of all shared experts together, which are one MLP. YAML default: shared_experts x
  /// expert_ffn_hidden.
  std::int64_t shared_ffn_hidden = 0;
  /// What they give is scaled by the sigmoid of one more score of each token (Qwen1.5-MoE, Qwen2-MoE).
  bool shared_gate = false;
  std::int64_t first_dense_layers = 0;  ///< that have one MLP of ModelSpec::ffn_hidden instead
  std::int64_t every = 1;               ///< of the layers, the last of every so many has experts (Llama 4)
  RouterKind router = RouterKind::softmax;
  bool normalise_top_k = false;  ///< the weights of the chosen experts add up to 1
  bool router_bias = false;      ///< a bias for each expert (DeepSeek-V3: for the choice alone; gpt-oss)
  /// Experts lie in so many equal groups, of which a token's lie in `top_groups` (node-limited routing:
  /// DeepSeek-V3, section 2.1.2). It shapes the exchange between nodes by kernels alone.
  std::int64_t expert_groups = 1;
  std::int64_t top_groups = 1;
  /// An expert takes so many times the mean of tokens, and what is more is dropped and padded (Lepikhin et
  /// al. 2020, arXiv:2006.16668, section 2.2); 0: dropless.
  double capacity_factor = 0;
  /// Modules behind the last layer that predict further tokens in training: each a projection of twice the
  /// hidden size and one more layer (DeepSeek-V3, section 2.2). Servers leave them out.
  std::int64_t mtp_layers = 0;

  /// Whether layer `layer`, from 0 on, has experts.
  [[nodiscard]] bool in_layer(std::int64_t layer) const {
    return layer >= first_dense_layers && (layer + 1) % every == 0;
  }
  /// How many of the first `layers` have them.
  [[nodiscard]] std::int64_t in_layers(std::int64_t layers) const {
    return layers / every - first_dense_layers / every;
  }
  /// Every layer has them.
  [[nodiscard]] bool everywhere() const { return first_dense_layers == 0 && every == 1; }
  /// A lone expert is chosen by no one.
  [[nodiscard]] bool routes() const { return experts > 1; }

  /// Rules of its own, for fields `moe.*` of a model of so many layers.
  void check(Problems& problems, std::int64_t layers) const;
};

}  // namespace shardscape
