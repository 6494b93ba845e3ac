// What Megatron-LM and NeMo call the parts of a model, and what they do not start without.
#include <fmt/format.h>

#include <algorithm>

#include "sweep/launch/megatron_rows.h"

namespace shardscape::launch::megatron {

namespace {

using C = const Case&;

Said swiglu(C of) {
  const MlpKind kind = of.shape().mlp;
  if (kind == MlpKind::gelu || kind == MlpKind::squared_relu) return unasked();
  return kind == MlpKind::swiglu ? flag() : lacks("flags are there for gelu, swiglu and squared relu");
}
Said squared_relu(C of) { return flag_if(of.shape().mlp == MlpKind::squared_relu); }
Said number(double value_of) { return value(fmt::format("{}", value_of)); }
Said biases(C of) {
  const ModelSpec& m = of.shape();
  if (m.linear_bias) return unasked();
  if (m.output_bias || m.mlp_bias) return lacks("linear layers have biases, all or none but that of QKV");
  return flag();
}
Said positions(C of) {
  switch (of.shape().position) {
    case PositionKind::rotary:
      return value("rope");
    case PositionKind::learned:
      return value("learned_absolute");
    case PositionKind::alibi:
      break;
  }
  return lacks("--position-embedding-type knows learned_absolute and rope");
}
std::int64_t longest(C of) { return std::max(of.shape().max_positions, of.workload().sequence_length); }
Said grouped(C of) { return flag_if(!of.shape().latent && of.shape().kv_heads != of.shape().heads); }
Said shared_width(C of) {
  if (!of.experts() || moe(of).shared_experts == 0) return unasked();
  const std::int64_t width =
      moe(of).shared_ffn_hidden > 0 ? moe(of).shared_ffn_hidden : moe(of).expert_ffn_hidden;
  return value(moe(of).shared_experts * width);
}
Said layer_pattern(C of) {
  if (!of.experts() || moe(of).everywhere()) return unasked();
  const std::int64_t dense = moe(of).first_dense_layers;
  if (dense == 0) return value(moe(of).every);
  if (moe(of).every == 1) return value(fmt::format("([0]*{}+[1]*{})", dense, of.shape().layers - dense));
  return lacks("--moe-layer-freq has one period");
}
/// The same as a list: 1 for each layer with experts.
Said listed_pattern(C of) {
  if (!of.experts() || moe(of).everywhere()) return unasked();
  std::string words;
  for (std::int64_t layer = 0; layer < of.shape().layers; ++layer)
    words += moe(of).in_layer(layer) ? "1 " : "0 ";
  return value(words);
}
Said router_bias(C of) {
  if (!of.experts() || !moe(of).router_bias) return unasked();
  return moe(of).router == RouterKind::sigmoid
             ? flag()
             : lacks("--moe-router-enable-expert-bias is for scores of sigmoid alone");
}
Said capacity(C of) {
  return of.experts() && moe(of).capacity_factor > 0 ? number(moe(of).capacity_factor) : unasked();
}
Said norms_of_keys(C of) {
  if (of.shape().qk_norm == QkNorm::full_width) return lacks("--qk-layernorm has a norm for each head");
  return flag_if(of.shape().qk_norm == QkNorm::per_head);
}
Said window(C of) {
  if (of.shape().sliding_window == 0) return unasked();
  if (!of.shape().window_pattern.empty())
    return lacks("which layers have the window is not said by --window-size");
  return value(fmt::format("{},0", of.shape().sliding_window - 1));
}
Said experts(C of, std::int64_t MixtureOfExperts::*field) {
  return of.experts() ? value(moe(of).*field) : unasked();
}
Said latent(C of, std::int64_t LatentAttention::*rank) {
  return of.shape().latent && (*of.shape().latent).*rank > 0 ? value((*of.shape().latent).*rank) : unasked();
}

constexpr Row kModelRows[] = {
    {"model.layers", "--num-layers", "model.config.num_layers", SHARDSCAPE_SAY(value(of.shape().layers)),
     kConfig},
    {"model.hidden", "--hidden-size", "model.config.hidden_size", SHARDSCAPE_SAY(value(of.shape().hidden)),
     kConfig},
    {"model.ffn_hidden", "--ffn-hidden-size", "model.config.ffn_hidden_size",
     SHARDSCAPE_SAY(value(of.shape().ffn_hidden)), kConfig},
    {"model.heads", "--num-attention-heads", "model.config.num_attention_heads",
     SHARDSCAPE_SAY(value(of.shape().heads)), kConfig},
    {"model.kv_heads", "--group-query-attention", "", grouped},
    {"model.kv_heads", "--num-query-groups", "model.config.num_query_groups",
     SHARDSCAPE_SAY(grouped(of).kind == Said::Kind::option ? value(of.shape().kv_heads) : unasked()),
     kConfig},
    {"model.head_dim", "--kv-channels", "model.config.kv_channels",
     SHARDSCAPE_SAY(of.shape().latent ? unasked() : value(of.shape().head_dim)), kConfig},
    {"model.vocabulary", "--vocab-size", "", SHARDSCAPE_SAY(value(of.shape().vocabulary))},
    {"model.max_positions", "--max-position-embeddings", "", SHARDSCAPE_SAY(value(longest(of)))},
    {"model.position", "--position-embedding-type", "model.config.position_embedding_type", positions,
     kConfig},
    {"model.rotary_fraction", "--rotary-percent", "model.config.rotary_percent",
     SHARDSCAPE_SAY(of.shape().rotary_fraction < 1 ? number(of.shape().rotary_fraction) : unasked())},
    {"model.norm", "--normalization", "model.config.normalization",
     SHARDSCAPE_SAY(value(of.shape().norm == NormKind::rmsnorm ? "RMSNorm" : "LayerNorm")), kConfig},
    {"model.mlp", "--swiglu", "", swiglu},
    {"model.mlp", "--squared-relu", "", squared_relu},
    {"model.linear_bias model.output_bias model.mlp_bias", "--disable-bias-linear", "", biases},
    {"model.qkv_bias", "--add-qkv-bias", "model.config.add_qkv_bias",
     SHARDSCAPE_SAY(flag_if(of.shape().qkv_bias && !of.shape().linear_bias)), kConfig},
    {"model.qk_norm", "--qk-layernorm", "model.config.qk_layernorm", norms_of_keys, kConfig},
    {"model.tied_embeddings", "--untie-embeddings-and-output-weights", "",
     SHARDSCAPE_SAY(flag_if(!of.shape().tied_embeddings))},
    {"model.dropout model.embedding_dropout", "--hidden-dropout", "model.config.hidden_dropout",
     SHARDSCAPE_SAY(number(of.shape().dropout)), kConfig},
    {"model.dropout model.attention_dropout", "--attention-dropout", "model.config.attention_dropout",
     SHARDSCAPE_SAY(number(of.shape().attention_dropout.value_or(of.shape().dropout))), kConfig},
    {"model.sliding_window model.window_pattern", "--window-size", "", window},
    {"model.attention.kind", "--multi-latent-attention", "",
     SHARDSCAPE_SAY(flag_if(of.shape().latent.has_value()))},
    {"model.attention.q_rank", "--q-lora-rank", "model.config.q_lora_rank",
     SHARDSCAPE_SAY(latent(of, &LatentAttention::q_rank))},
    {"model.attention.kv_rank", "--kv-lora-rank", "model.config.kv_lora_rank",
     SHARDSCAPE_SAY(latent(of, &LatentAttention::kv_rank))},
    {"model.attention.nope_dim", "--qk-head-dim", "model.config.qk_head_dim",
     SHARDSCAPE_SAY(latent(of, &LatentAttention::nope_dim))},
    {"model.attention.rope_dim", "--qk-pos-emb-head-dim", "model.config.qk_pos_emb_head_dim",
     SHARDSCAPE_SAY(latent(of, &LatentAttention::rope_dim))},
    {"model.attention.value_dim", "--v-head-dim", "model.config.v_head_dim",
     SHARDSCAPE_SAY(latent(of, &LatentAttention::value_dim))},
    {"model.moe.experts", "--num-experts", "model.config.num_moe_experts",
     SHARDSCAPE_SAY(experts(of, &MixtureOfExperts::experts)), kMoe},
    {"model.moe.top_k", "--moe-router-topk", "model.config.moe_router_topk",
     SHARDSCAPE_SAY(experts(of, &MixtureOfExperts::top_k)), kMoe},
    {"model.moe.expert_ffn_hidden", "--moe-ffn-hidden-size", "model.config.moe_ffn_hidden_size",
     SHARDSCAPE_SAY(experts(of, &MixtureOfExperts::expert_ffn_hidden)), kMoe},
    {"model.moe.shared_experts model.moe.shared_ffn_hidden", "--moe-shared-expert-intermediate-size",
     "model.config.moe_shared_expert_intermediate_size", shared_width, kMoe},
    {"model.moe.first_dense_layers model.moe.every", "--moe-layer-freq", "", layer_pattern, kMoe},
    {"model.moe.first_dense_layers model.moe.every", "", "model.config.moe_layer_freq[]", listed_pattern,
     kMoe},
    {"model.moe.router", "--moe-router-score-function", "model.config.moe_router_score_function",
     SHARDSCAPE_SAY(of.experts() ? value(std::string(name_of(moe(of).router))) : unasked()), kMoe},
    {"model.moe.normalise_top_k", "--moe-router-pre-softmax", "model.config.moe_router_pre_softmax",
     SHARDSCAPE_SAY(
         flag_if(of.experts() && moe(of).router == RouterKind::softmax && !moe(of).normalise_top_k)),
     kMoe},
    {"model.moe.router_bias", "--moe-router-enable-expert-bias", "model.config.moe_router_enable_expert_bias",
     router_bias, kMoe},
    {"model.moe.expert_groups", "--moe-router-num-groups", "model.config.moe_router_num_groups",
     SHARDSCAPE_SAY(of.experts() && moe(of).expert_groups > 1 ? value(moe(of).expert_groups) : unasked()),
     kMoe},
    {"model.moe.top_groups", "--moe-router-group-topk", "model.config.moe_router_group_topk",
     SHARDSCAPE_SAY(of.experts() && moe(of).expert_groups > 1 ? value(moe(of).top_groups) : unasked()), kMoe},
    {"model.moe.capacity_factor", "--moe-expert-capacity-factor", "model.config.moe_expert_capacity_factor",
     capacity, kMoe},
    {"model.moe.mtp_layers", "--mtp-num-layers", "model.config.mtp_num_layers",
     SHARDSCAPE_SAY(of.experts() && moe(of).mtp_layers > 0 ? value(moe(of).mtp_layers) : unasked()), kGuide,
     "0.12"},
    {"", "--moe-grouped-gemm", "model.config.moe_grouped_gemm", SHARDSCAPE_SAY(flag_if(of.experts())), kMoe},
    {"", "", "trainer.num_nodes", SHARDSCAPE_SAY(value(of.nodes())), kNemo},
    {"", "", "trainer.devices", SHARDSCAPE_SAY(value(std::min(of.gpus(), of.gpus_per_node))), kNemo},
    {"", "--transformer-impl", "", SHARDSCAPE_SAY(((void)of, value("transformer_engine")))},
    {"", "--tokenizer-type", "", SHARDSCAPE_SAY(((void)of, value("NullTokenizer")))},
    {"", "--mock-data", "", SHARDSCAPE_SAY(((void)of, flag()))},
    {"", "--train-iters", "", SHARDSCAPE_SAY(((void)of, value(50)))},
    {"", "--lr", "", SHARDSCAPE_SAY(((void)of, value("1e-4")))},
    {"", "--eval-iters", "", SHARDSCAPE_SAY(((void)of, value(0)))},
    {"", "--log-interval", "", SHARDSCAPE_SAY(((void)of, value(1)))},
    {"", "--log-throughput", "", SHARDSCAPE_SAY(((void)of, flag()))},
};

}  // namespace

std::span<const Row> model_rows() { return kModelRows; }

}  // namespace shardscape::launch::megatron
