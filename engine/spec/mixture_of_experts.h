// The MLPs of a mixture of experts, by shape (Shazeer et al. 2017, arXiv:1701.06538; Fedus et al. 2022,
// arXiv:2101.03961): a router gives each token to a few of many small MLPs.
#pragma once

#include <cstdint>

#include "engine/base/enum_names.h"
#include "engine/base/problems.h"

namespace shardscape {

/// The function that turns the router's scores into weights: a softmax over all experts (Mixtral, Qwen3), or a sigmoid
/// of each by itself (DeepSeek-V3, arXiv:2412.19437, section 2.1.2; Llama 4).
enum class RouterKind : std::uint8_t { softmax, sigmoid };

/// The experts of a model; YAML keys carry the same names, and the rows of the numbers say what they are
/// (model_numbers.cc). They have the activation and the biases of the model's MLP.
struct MixtureOfExperts {
  std::int64_t experts = 0;
  std::int64_t top_k = 1;
  std::int64_t expert_ffn_hidden = 0;
  /// Experts that every token goes through (Dai et al. 2024, arXiv:2401.06066).
  std::int64_t shared_experts = 0;
  std::int64_t shared_ffn_hidden = 0;
  /// The output of the shared experts is scaled by the sigmoid of one more score per token (Qwen1.5-MoE, Qwen2-MoE).
  bool shared_gate = false;
  std::int64_t first_dense_layers = 0;
  std::int64_t every = 1;
  RouterKind router = RouterKind::softmax;
  bool normalise_top_k = false;  ///< the weights of the chosen experts add up to 1
  /// Checkpoints of 4 bits have the weights of experts in 4 bits and nothing else (MXFP4), so that products multiply
  /// them with inputs of 8 bits where the device's units mix both.
  bool weights_alone = false;
  bool router_bias = false;  ///< a bias for each expert (DeepSeek-V3: for the choice alone; gpt-oss)
  /// The experts form this many equal groups, and those of a token lie in `top_groups` of them (node-limited routing:
  /// DeepSeek-V3, section 2.1.2). Only kernels' exchanges between nodes depend on it.
  std::int64_t expert_groups = 1;
  std::int64_t top_groups = 1;
  /// An expert takes up to this multiple of the mean number of tokens; the excess is dropped, and less is padded
  /// (Lepikhin et al. 2020, arXiv:2006.16668, section 2.2). 0: dropless.
  double capacity_factor = 0;
  /// Modules behind the last layer that predict further tokens in training: each a projection of twice the
  /// hidden size and one more layer (DeepSeek-V3, section 2.2). Servers leave them out.
  std::int64_t mtp_layers = 0;

  /// Whether layer `layer`, from 0 on, has experts.
  [[nodiscard]] bool in_layer(std::int64_t layer) const {
    return layer >= first_dense_layers && (layer + 1) % every == 0;
  }
  /// How many of the first `layers` layers have experts.
  [[nodiscard]] std::int64_t in_layers(std::int64_t layers) const {
    return layers / every - first_dense_layers / every;
  }
  /// Whether every layer has experts.
  [[nodiscard]] bool everywhere() const { return first_dense_layers == 0 && every == 1; }
  /// Whether a router chooses: a single expert needs none.
  [[nodiscard]] bool routes() const { return experts > 1; }

  /// Checks the fields; problems are reported at `moe.*` of a model of `layers` layers.
  void check(Problems& problems, std::int64_t layers) const;
};

}  // namespace shardscape
