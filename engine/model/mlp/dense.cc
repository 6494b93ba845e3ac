#include "engine/model/mlp/dense.h"

#include "engine/model/mlp/activation.h"

namespace shardscape::model {

void DenseMlp::append_operators(std::vector<Operator>& ops, const OperatorBuilder& b, Bytes input) const {
  const double ffn = b.per_rank(b.model().ffn_hidden);
  ops.push_back(
      b.remade(b.gemm("mlp_in", b.hidden(), b.per_rank(b.model().mlp_in_width()), input), b.repeats_norms()));
  ops.push_back(activation(b, b.tokens() * ffn));
  ops.push_back(b.remade(b.gemm("mlp_out", ffn, b.hidden(), b.product_input(ffn)), b.repeats_activations()));
}

double DenseMlp::gradient_width(const Setting& setting, const LayerKey& key) const {
  const ModelSpec& model = setting.model;
  return activation_gradients(model) * static_cast<double>(model.ffn_hidden) / key.tensor;
}

PartParameters DenseMlp::parameters(const ModelSpec& model, std::int32_t tensor) const {
  const auto hidden = static_cast<double>(model.hidden);
  const double bias = model.has_mlp_bias() ? 1 : 0, in = model.gated() ? 2 : 1;
  const double columns = static_cast<double>(model.mlp_in_width()) / tensor;
  const double rows = static_cast<double>(model.ffn_hidden) / tensor;
  return {(columns + rows) * hidden, bias * (columns + hidden), (1 + bias) * (in + 1)};
}

double DenseMlp::product_parameters(const ModelSpec& model) const {
  return static_cast<double>(model.hidden) * static_cast<double>(model.mlp_in_width() + model.ffn_hidden);
}

Reason DenseMlp::tensor_rule(const ModelSpec& model, std::int32_t tensor, bool /*splits_experts*/) const {
  return model.ffn_hidden % tensor != 0 ? Reason::ffn_by_tensor : Reason::none;
}

}  // namespace shardscape::model
