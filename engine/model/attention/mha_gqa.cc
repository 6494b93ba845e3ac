#include "engine/model/attention/mha_gqa.h"

#include "engine/spec/causal_window.h"

namespace shardscape::model {

namespace {

/// Columns of the QKV projection on one rank.
double qkv_columns(const ModelSpec& model, std::int32_t tensor) {
  const std::int64_t kv_heads = MhaGqa().kv(model).local(tensor);
  return static_cast<double>((model.heads / tensor + 2 * kv_heads) * model.head_dim);
}

/// Gains of the norms of queries and keys on one rank: every rank has those per head; those over the whole width are
/// split as the columns are.
double qk_gains(const ModelSpec& model, std::int32_t tensor) {
  if (model.qk_norm != QkNorm::full_width) return model.qk_norm_parameters();
  const std::int64_t kv_heads = MhaGqa().kv(model).local(tensor);
  return model.norm_vectors() * static_cast<double>((model.heads / tensor + kv_heads) * model.head_dim);
}

}  // namespace

void MhaGqa::append_operators(std::vector<Operator>& ops, const OperatorBuilder& b) const {
  const ModelSpec& model = b.model();
  const std::int32_t tensor = b.key().tensor;
  const std::int64_t kv_heads = kv(model).local(tensor);
  const double qkv = qkv_columns(model, tensor);
  ops.push_back(b.enter_tensor_region("attention_gather"));
  ops.push_back(b.remade(b.gemm("qkv_projection", b.hidden(), qkv, b.gathered_input(b.policy().products)),
                         b.repeats_norms()));
  if (model.qk_norm != QkNorm::none) {
    ops.push_back(b.qk_norm(static_cast<double>((model.heads / tensor + kv_heads) * model.head_dim)));
  }
  if (model.position == PositionKind::rotary) {
    ops.push_back(b.rotary(static_cast<double>((model.heads / tensor + kv_heads) * model.head_dim)));
  }
  if (b.key().context > 1) ops.push_back(b.context_ring(b.message(kv(model).local_elements(tensor))));
  ops.push_back(b.attention_core(b.per_rank(model.heads), static_cast<double>(kv_heads),
                                 static_cast<double>(model.head_dim), b.attention_tensor(qkv),
                                 window(model)));
  b.merge_ring(ops.back(),
               {b.per_rank(model.attention_width()), b.per_rank(model.attention_width()),
                kv(model).local_elements(tensor)},
               window(model));
  b.append_output_projection(ops, b.per_rank(model.attention_width()));
}

PartParameters MhaGqa::parameters(const ModelSpec& model, std::int32_t tensor) const {
  const auto hidden = static_cast<double>(model.hidden);
  const double columns = qkv_columns(model, tensor);
  const double rows = static_cast<double>(model.attention_width()) / tensor;
  const double qkv_bias = model.has_qkv_bias() ? 1 : 0, output_bias = model.has_output_bias() ? 1 : 0;
  const double norms = model.qk_norm == QkNorm::none ? 0 : 2 * model.norm_vectors();
  const double sinks = model.attention_sinks ? static_cast<double>(model.heads) / tensor : 0;
  return {(columns + rows) * hidden,
          qkv_bias * columns + output_bias * hidden + qk_gains(model, tensor) + sinks,
          2 + qkv_bias + output_bias + norms + (model.attention_sinks ? 1 : 0)};
}

double MhaGqa::product_parameters(const ModelSpec& model) const {
  return static_cast<double>(model.hidden) * static_cast<double>(model.qkv_width() + model.attention_width());
}

double MhaGqa::core_flops(const ModelSpec& model, double tokens) const {
  const double visible = visible_share(tokens, window(model));
  return 4 * tokens * tokens * (2 * visible) * static_cast<double>(model.attention_width());
}

Reason MhaGqa::tensor_rule(const ModelSpec& model, std::int32_t tensor) const {
  if (model.heads % tensor != 0) return Reason::heads_by_tensor;
  if (model.kv_heads % tensor != 0 && tensor % model.kv_heads != 0) return Reason::kv_heads_by_tensor;
  return Reason::none;
}

}  // namespace shardscape::model
