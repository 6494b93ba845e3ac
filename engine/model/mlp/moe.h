// Experts in place of the MLP (spec/mixture_of_experts.h): a router chooses top_k of them for each token; tokens
// are copied into the order of experts, each expert runs its two products on what it got, and the outputs are
// added up in the order of tokens. Shared experts are one more MLP, on all tokens.
//
// Balanced loads: of the `tokens` tokens on the ranks that share a layer's experts, each expert gets tokens x top_k /
// experts, times the capacity factor where there is one (what is missing is padded). Where tokens are few, only the
// share 1 - (1 - top_k / experts)^tokens of the experts gets any token, as tokens choose independently, and only the
// weights of these are read. Where the workload has loads of its own (compute/expert_loads.h) each expert gets tokens x
// its popularity; what is priced, and counted in memory, is the rank of an expert group that gets most. A capacity
// factor makes all experts alike, so that such loads do not matter.
//
// Copies of experts (ExpertSplit::redundant) count in memory. Where loads differ they take over part of the load of
// their experts (compute/expert_replicas.h); where all experts are alike and each rank holds equally many, they stay
// idle.
//
// Shards: the router's weights are whole on every rank, as norms are; it works on the rank's own tokens (sequence
// parallelism). A rank holds experts / ranks of the experts, a `tensor`-th of the width of each (ExpertSplit).
//
// Where a plan folds experts into other ranks (LayerKey::dispatches), copies are sent to the ranks of their experts
// and back (expert_exchange.h), and tokens are not gathered for them; shared experts stay in the tensor group.
//
// Servers run fewer kernels (vLLM's and SGLang's fused_moe, TensorRT-LLM's and FlashInfer's fused mixture): the choice
// of experts is one kernel; the products of experts fetch the rows of their tokens themselves and apply the activation;
// and the kernel that sums the outputs adds those of the shared experts. All ranks of experts wait for the busiest one,
// which has sqrt(2 ln n) - 0.6 deviations of the binomial law more tokens than the mean of n ranks, and more experts
// that get any.
//
// Kept for backward: the copies of tokens in the order of experts, the inputs of activation and second product, and
// the probabilities, which multiply the activation's output (Megatron-Core 0.12 on), so that the experts' outputs
// are not kept. A lone expert has no router and no copies: it is the dense MLP.
#pragma once

#include "engine/model/mlp/mlp_block.h"

namespace shardscape::model {

/// The part of a layer's experts that falls to one rank.
struct ExpertShare {
  double experts = 0;          ///< experts on the rank, whole or in part
  double active = 0;           ///< experts of these that get any token
  double rows = 0;             ///< copies of tokens that they get together, with padding
  double mean = 0;             ///< copies of tokens that a mean rank gets
  double inner = 0;            ///< the rank's part of the inner width of each expert
  compute::ExpertLoads loads;  ///< the load of each expert; empty: all are alike
};
ExpertShare expert_share(const OperatorBuilder& b);

/// Tokens of the busiest of the `members` ranks that the experts are dealt to, over those of a mean one; >= 1.
double load_imbalance(const ModelSpec& model, const WorkloadSpec& workload, std::int32_t members);

class ExpertMlp final : public MlpBlock {
 public:
  void append_operators(std::vector<Operator>& ops, const OperatorBuilder& b, Bytes input) const override;
  [[nodiscard]] bool in_tensor_region(const OperatorBuilder& b) const override;
  [[nodiscard]] RecomputePart part() const override { return RecomputePart::experts; }
  [[nodiscard]] double gradient_width(const Setting& setting, const LayerKey& key) const override;
  [[nodiscard]] PartParameters parameters(const ModelSpec& model, std::int32_t tensor) const override;
  [[nodiscard]] PartParameters expert_parameters(const ModelSpec& model,
                                                 const ExpertSplit& split) const override;
  [[nodiscard]] double product_parameters(const ModelSpec& model) const override;
  [[nodiscard]] Reason tensor_rule(const ModelSpec& model, std::int32_t tensor,
                                   bool splits_experts) const override;
};

}  // namespace shardscape::model
