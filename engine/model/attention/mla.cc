#include "engine/model/attention/mla.h"

#include <algorithm>

#include "engine/compute/latent_attention.h"

namespace shardscape::model {

namespace {

/// Widths of the latent vectors and heads on one rank, in elements.
struct LatentWidths {
  double q_rank, kv_rank, rope, query, nope, value, heads;

  explicit LatentWidths(const OperatorBuilder& b)
      : q_rank(static_cast<double>(b.model().latent->q_rank)),
        kv_rank(static_cast<double>(b.model().latent->kv_rank)),
        rope(static_cast<double>(b.model().latent->rope_dim)),
        query(static_cast<double>(b.model().latent->query_dim())),
        nope(static_cast<double>(b.model().latent->nope_dim)),
        value(static_cast<double>(b.model().latent->value_dim)),
        heads(b.per_rank(b.model().heads)) {}
};

/// Products from the hidden states down to the latent vectors, on the rank's own tokens, and the gather of these
/// vectors as they enter the tensor-parallel region.
void append_down_projections(std::vector<Operator>& ops, const OperatorBuilder& b, const LatentWidths& w) {
  const Precision products = b.policy().products;
  const Bytes input(b.policy().operand_bytes(products) * b.own_tokens() * b.hidden());
  if (b.serves()) {  // servers have one product and one norm for both vectors
    ops.push_back(b.own_gemm("latent_down", b.hidden(), w.q_rank + w.kv_rank + w.rope, input));
    ops.push_back(b.latent_norm("latent_norm", w.q_rank + w.kv_rank));
    return;
  }
  if (w.q_rank > 0) {
    ops.push_back(b.remade(b.own_gemm("query_down", b.hidden(), w.q_rank, input), b.repeats_norms()));
    ops.push_back(b.latent_norm("query_norm", w.q_rank));
  }
  ops.push_back(
      b.remade(b.own_gemm("key_value_down", b.hidden(), w.kv_rank + w.rope, input), b.repeats_norms()));
  // Both down-projections read one input, which is kept once.
  if (w.q_rank > 0) ops.back().saved = ops.back().saved_selective = Bytes(0);
  ops.push_back(b.latent_norm("key_value_norm", w.kv_rank));
  const double queries = w.q_rank > 0 ? w.q_rank : b.hidden();
  ops.push_back(b.enter_tensor_region("latent_gather", queries + w.kv_rank + w.rope));
}

/// Product from a latent vector of `width` elements (or from the hidden state) to `columns` of the rank's heads.
Operator up_projection(const OperatorBuilder& b, std::string_view name, double width, double columns) {
  const Bytes input = b.gathered_input(b.policy().products, width);
  Operator product = b.remade(b.gemm(name, width, columns, input), b.repeats_norms());
  product.again = b.repeats(RecomputePart::latent_up);
  return product;
}

/// Product that makes the queries of the rank's heads.
void append_queries(std::vector<Operator>& ops, const OperatorBuilder& b, const LatentWidths& w) {
  const double width = w.q_rank > 0 ? w.q_rank : b.hidden();
  ops.push_back(up_projection(b, "query_up", width, w.heads * w.query));
}

/// One product for each head, in the format of attention: decoding multiplies the result with the cache.
Operator absorbed(const OperatorBuilder& b, std::string_view name, double heads, double k, double n) {
  const compute::GemmShape shape{static_cast<std::int64_t>(std::max(1.0, b.tokens())),
                                 static_cast<std::int64_t>(n), static_cast<std::int64_t>(k),
                                 static_cast<std::int64_t>(heads)};
  return b.product(name, shape, b.policy().attention, b.attention_tensor(heads * k));
}

/// Prices the core in a server, by kernels fitted for each architecture, and of one query as a plain decode elsewhere;
/// training runs kernels for ordinary heads.
std::optional<OperatorTimes> price_core(const Operator& op, const Setting& setting) {
  const compute::AttentionShape& core = op.attention;
  const DeviceSpec& device = setting.system.device;
  const Precision cache = setting.policy().kv_cache;
  const bool fitted = setting.workload.phase == Phase::inference && !op.naive_core &&
                      is_fused(setting.system.stack.attention) && device.architecture != Architecture::other;
  if (!fitted && core.queries != 1) return std::nullopt;
  if (!fitted) return OperatorTimes{compute::decode(core, cache, device), {}};
  const LatentAttention& widths = *setting.model.latent;
  compute::LatentShape shape;
  shape.batch = core.batch;
  shape.heads = core.heads;
  shape.queries = core.queries;
  shape.keys = core.keys;
  shape.visible = core.visible;
  shape.kv_rank = static_cast<double>(widths.kv_rank);
  shape.rope_dim = static_cast<double>(widths.rope_dim);
  shape.nope_dim = static_cast<double>(widths.nope_dim);
  shape.value_dim = static_cast<double>(widths.value_dim);
  return OperatorTimes{
      (core.queries == 1 ? compute::latent_decode : compute::latent_prompt)(shape, cache, device), {}};
}

}  // namespace

void Mla::append_operators(std::vector<Operator>& ops, const OperatorBuilder& b) const {
  const LatentWidths w(b);
  append_down_projections(ops, b, w);
  append_queries(ops, b, w);
  const bool decodes = b.mode() == Mode::decode;
  if (decodes) {
    ops.push_back(b.rotary((w.heads + 1) * w.rope));
    ops.push_back(absorbed(b, "absorb_keys", w.heads, w.nope, w.kv_rank));
    // Mean width: scores are over both parts of the cache, values over kv_rank alone.
    const double mean = w.kv_rank + w.rope / 2;
    ops.push_back(b.attention_core(w.heads, 1, mean, b.attention_tensor(w.heads * (w.kv_rank + w.rope)), 0));
    ops.back().attention.cached_dim = w.kv_rank + w.rope;
    ops.push_back(absorbed(b, "absorb_values", w.heads, w.kv_rank, w.value));
  } else {
    ops.push_back(up_projection(b, "key_value_up", w.kv_rank, w.heads * (w.nope + w.value)));
    // Rotates the queries' part; writes each head's key, joined from its own part and the shared one.
    ops.push_back(b.rotary(w.heads * (w.rope + w.query)));
    ops.back().again = b.repeats(RecomputePart::latent_up);
    const double pair = w.query + w.value;
    if (b.key().context > 1) ops.push_back(b.context_ring(b.message(w.heads * pair)));
    const Bytes inputs = b.attention_tensor(w.heads * (w.query + pair));
    ops.push_back(b.attention_core(w.heads, w.heads, pair / 2, inputs, 0));
    b.merge_ring(ops.back(), {w.heads * w.query, w.heads * w.value, w.heads * pair}, 0);
    if (b.repeats(RecomputePart::latent_up)) {
      // Without the other inputs only the part of the keys that heads share is kept: it comes straight from the
      // down-projection.
      ops.back().saved_selective += b.gathered_input(b.policy().attention, w.rope) - inputs;
    }
  }
  std::ranges::find(ops, true, &Operator::attention_core)->own_price = price_core;
  b.append_output_projection(ops, w.heads * w.value);
}

PartParameters Mla::parameters(const ModelSpec& model, std::int32_t tensor) const {
  const LatentAttention& a = *model.latent;
  const auto down = static_cast<double>(model.hidden * (a.q_rank + a.cached()));
  const double split = model.attention_matrix_parameters() - down;
  const double norms = model.norm_vectors(), q = a.q_rank > 0 ? 1 : 0;
  const double output_bias = model.has_output_bias() ? 1 : 0;
  return {down + split / tensor,
          norms * static_cast<double>(a.q_rank + a.kv_rank) + output_bias * static_cast<double>(model.hidden),
          4 + q + (1 + q) * norms + output_bias};
}

double Mla::core_flops(const ModelSpec& model, double tokens) const {
  const LatentAttention& a = *model.latent;
  return 2 * tokens * tokens * static_cast<double>(model.heads * (a.query_dim() + a.value_dim));
}

}  // namespace shardscape::model
