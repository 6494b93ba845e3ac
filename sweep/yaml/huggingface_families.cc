// The table of families. A row starts from a named one, such as kLlama or kGpt2, and sets what differs; at the end
// stand the families that are known but refused, with the reason.
#include "sweep/yaml/huggingface_families.h"

namespace shardscape::yaml::huggingface {

namespace {

constexpr Bias kAttentionBias = {kAttention, "attention_bias", false};
constexpr Bias kMlpBias = {kMlp, "mlp_bias", false};
constexpr Dropouts kPhiDropouts = {"resid_pdrop", "attention_dropout", "embd_pdrop"};
constexpr Dropouts kHiddenDropouts = {"hidden_dropout", "attention_dropout", {}};
constexpr KvHeads kOneEach = {.key = {}};
constexpr Window kSliding = {.key = "sliding_window"};
constexpr Flag kWindowUsed = {"use_sliding_window", false};
constexpr Window kUpperLayers = {
    .key = "sliding_window", .otherwise = 4096, .used = kWindowUsed, .first = "max_window_layers"};
constexpr Parallel kOneNormForBoth = {.residual = {{}, true}, .shared_norm = true};
constexpr Flag kNormaliseTopK = {"norm_topk_prob", false};
constexpr Demand kNoSingleLayers = {
    "mlp_only_layers", Must::be_empty,
    "a list of single layers without experts is not modelled; it must be empty"};
constexpr std::string_view kNormsBefore =
    "norms after the residual, or without gains, are not modelled; it must be true";
/// The format of the published checkpoint's weights: the study chooses it.
constexpr Names kPublishedFormat = "quantization_config";

/// A row that differs from another in what `change` sets.
constexpr Family like(Family row, std::string_view name, void (*change)(Family&)) {
  row.name = name;
  change(row);
  return row;
}

constexpr void nothing_else(Family& /*row*/) {}

// clang-format off
constexpr Family kLlama = {.name = "llama", .biases = {kAttentionBias, kMlpBias}, .window = kSliding};

constexpr Family kGemma = {
    .name = "gemma", .head_dim_otherwise = 256, .tied = true,
    .activation = {"hidden_activation", "hidden_act"},  // older files have the second, with the same meaning
    .mlp = MlpKind::gelu, .biases = {kAttentionBias}};

/// A block with LayerNorm, GELU, biases and a table of learned positions.
constexpr Family kGpt2 = {
    .name = "gpt2", .layers = {"n_layer", "num_hidden_layers"}, .hidden = {"n_embd", "hidden_size"},
    .heads = {"n_head", "num_attention_heads"}, .ffn_hidden = "n_inner", .ffn_multiple = 4, .kv_heads = kOneEach,
    .head_dim = {}, .heads_at = "n_head", .tied = true, .activation = "activation_function", .mlp = MlpKind::gelu,
    .gated = false, .norm = NormKind::layernorm,
    .positions = {.rows = {"n_positions", "max_position_embeddings"}},
    .dropouts = {"resid_pdrop", "attn_pdrop", "embd_pdrop", 0.1, 0.1}, .biases = {Bias{kLinear}}};

/// Latent attention, and experts behind a few dense layers.
constexpr Family kDeepSeekV2 = {
    .name = "deepseek_v2", .head_dim = {}, .biases = {kAttentionBias}, .latent = true,
    .experts = {.experts = "n_routed_experts", .first_dense = "first_k_dense_replace", .shared = "n_shared_experts",
                .normalise_top_k = kNormaliseTopK, .router_keys = true, .mtp_layers = "num_nextn_predict_layers"},
    .demands = {Demand{"moe_layer_freq", Must::be_one,
                       "only 1 is supported: experts in all layers but the first ones"}},
    .idle = {kPublishedFormat}};

constexpr void deepseek_v3(Family& row) {
  row.experts.router = RouterKind::sigmoid;
  row.experts.router_bias = true;
}

constexpr Family kFamilies[] = {
    kLlama,
    {.name = "mistral", .window = {.key = "sliding_window", .otherwise = 4096}},
    {.name = "qwen2", .biases = {Bias{kQkv}}, .window = kUpperLayers},
    {.name = "qwen3", .qk_norm = QkNorm::per_head, .biases = {kAttentionBias}, .window = kUpperLayers},
    kGemma,
    like(kGemma, "gemma2", [](Family& row) {
      row.norm_place = NormPlace::both;
      row.attention_cap = {"attn_logit_softcapping", 50};
      row.logit_cap = {"final_logit_softcapping", 30};
      row.window = {.key = "sliding_window", .otherwise = 4096, .pattern = "LG"};
    }),
    like(kGemma, "gemma3_text", [](Family& row) {
      row.norm_place = NormPlace::both;
      row.qk_norm = QkNorm::per_head;
      row.attention_cap = {"attn_logit_softcapping"};
      row.logit_cap = {"final_logit_softcapping"};
      row.window = {.key = "sliding_window", .otherwise = 4096,
                    .period = {"sliding_window_pattern", "_sliding_window_pattern"}, .period_otherwise = 6};
    }),
    {.name = "phi", .head_dim = {}, .mlp = MlpKind::gelu, .gated = false, .norm = NormKind::layernorm,
     .qk_norm = QkNorm::per_head, .qk_norm_used = {"qk_layernorm", false}, .positions = {.turned_otherwise = 0.5},
     .dropouts = kPhiDropouts, .biases = {Bias{kLinear}}, .head_bias = true, .parallel = kOneNormForBoth},
    {.name = "phi3", .dropouts = kPhiDropouts, .window = kSliding},
    {.name = "olmo2", .norm_place = NormPlace::after, .qk_norm = QkNorm::full_width, .biases = {kAttentionBias}},
    {.name = "internlm2", .biases = {Bias{kAttention, "bias"}}},
    like(kLlama, "granite", nothing_else),
    // Norms of each head have gains of their own: as many as norms of the whole width.
    {.name = "cohere", .head_dim = {}, .tied = true, .norm = NormKind::layernorm, .qk_norm = QkNorm::full_width,
     .qk_norm_used = {"use_qk_norm", false}, .biases = {kAttentionBias, Bias{kNorms, {}, false}},
     .parallel = kOneNormForBoth},
    {.name = "stablelm", .head_dim = {}, .norm = NormKind::layernorm, .positions = {.turned_otherwise = 0.25},
     .dropouts = kHiddenDropouts, .biases = {Bias{kQkv, "use_qkv_bias", false}},
     .parallel = {.residual = {"use_parallel_residual", false}, .shared_norm = true}},
    {.name = "nemotron", .mlp = MlpKind::squared_relu, .gated = false, .norm = NormKind::layernorm,
     .positions = {.turned = "rope_percent", .turned_otherwise = 0.5}, .dropouts = kHiddenDropouts,
     .biases = {kAttentionBias, kMlpBias}},
    {.name = "starcoder2", .tied = true, .mlp = MlpKind::gelu, .gated = false, .norm = NormKind::layernorm,
     .dropouts = {"residual_dropout", "attention_dropout", "embedding_dropout"},
     .biases = {Bias{kLinear, "use_bias"}}, .window = kSliding,
     .demands = {Demand{"norm_type", Must::contain, "layer_norm"}, Demand{"mlp_type", Must::contain, "default"}}},
    // Falcon has three kinds: 7B (one KV head, a shared norm), 40B and 180B (new_decoder_architecture: grouped queries,
    // two norms), RW (ALiBi, biases, sequential branches).
    {.name = "falcon", .layers = {"num_hidden_layers", "n_layer"}, .heads = {"num_attention_heads", "n_head"},
     .ffn_hidden = "ffn_hidden_size", .ffn_multiple = 4,
     .kv_heads = {.key = {"num_kv_heads", "n_head_kv"}, .grouped = {"new_decoder_architecture", false},
                  .one = {"multi_query", true}},
     .head_dim = {}, .tied = true, .activation = "activation", .mlp = MlpKind::gelu, .gated = false,
     .norm = NormKind::layernorm, .positions = {.alibi = {"alibi", false}}, .dropouts = kHiddenDropouts,
     .biases = {Bias{kLinear, "bias", false}},
     .parallel = {.residual = {"parallel_attn", true}, .shared_norm = true, .norms = "num_ln_in_parallel_attn"}},
    kGpt2,
    like(kGpt2, "gpt_bigcode", [](Family& row) {
      row.kv_heads = {.key = {}, .grouped = {{}, false}, .one = {"multi_query", true}};
    }),
    {.name = "gpt_neo", .layers = "num_layers", .heads = "num_heads", .ffn_multiple = 4, .kv_heads = kOneEach,
     .head_dim = {}, .tied = true, .activation = "activation_function", .mlp = MlpKind::gelu, .gated = false,
     .norm = NormKind::layernorm, .positions = {.rows = "max_position_embeddings"},
     .dropouts = {"resid_dropout", "attention_dropout", "embed_dropout"}, .biases = {Bias{kOutput | kMlp}},
     .window = {.key = "window_size", .otherwise = 256, .null_is_none = false, .pattern = "GL",
                .types = {"attention_layers", "attention_types"}, .local = "local", .whole = "global"}},
    {.name = "gpt_neox", .kv_heads = kOneEach, .head_dim = {}, .mlp = MlpKind::gelu, .gated = false,
     .norm = NormKind::layernorm, .positions = {.turned = "rotary_pct", .turned_otherwise = 0.25},
     .dropouts = {"hidden_dropout", "attention_dropout", "hidden_dropout"},
     .biases = {Bias{kAttention, "attention_bias"}, Bias{kMlp}}, .parallel = {{"use_parallel_residual", true}}},
    like(kGpt2, "gptj", [](Family& row) {
      row.tied = false;
      row.positions = {.turned_dimensions = "rotary_dim"};
      row.dropouts = {"resid_pdrop", "attn_pdrop", "embd_pdrop"};
      row.biases = {Bias{kMlp}};
      row.head_bias = true;
      row.parallel = kOneNormForBoth;
      row.idle = {"n_positions"};  // there is no table
    }),
    {.name = "opt", .ffn_hidden = "ffn_dim", .kv_heads = kOneEach, .head_dim = {}, .tied = true,
     .activation = "activation_function", .mlp = MlpKind::relu, .gated = false, .norm = NormKind::layernorm,
     .positions = {.rows = "max_position_embeddings", .rows_otherwise = 2048, .further_rows = 2},
     .dropouts = {"dropout", "attention_dropout", {}, 0.1}, .biases = {Bias{kLinear, "enable_bias"}},
     .demands = {Demand{"do_layer_norm_before", Must::be_true, kNormsBefore},
                 Demand{"layer_norm_elementwise_affine", Must::be_true, kNormsBefore},
                 Demand{"word_embed_proj_dim", Must::be_hidden_size,
                        "embeddings of another width than hidden_size are not modelled"}}},
    {.name = "bloom", .layers = {"num_hidden_layers", "n_layer"}, .hidden = {"hidden_size", "n_embed"},
     .heads = {"num_attention_heads", "n_head"}, .ffn_hidden = {}, .ffn_multiple = 4, .kv_heads = kOneEach,
     .head_dim = {}, .tied = true, .activation = {}, .mlp = MlpKind::gelu, .gated = false,
     .norm = NormKind::layernorm, .embedding_norm = true, .positions = {.alibi = {{}, true}},
     .dropouts = kHiddenDropouts, .biases = {Bias{kLinear}}},
    {.name = "mpt", .layers = "n_layers", .hidden = "d_model", .heads = "n_heads", .ffn_hidden = {},
     .ffn_multiple = 4, .ffn_multiple_key = "expansion_ratio", .kv_heads = {.key = "attn_config/kv_n_heads"},
     .head_dim = {}, .heads_at = "d_model", .tied = true, .activation = {}, .mlp = MlpKind::gelu, .gated = false,
     .norm = NormKind::layernorm, .qk_norm = QkNorm::full_width, .qk_norm_used = {"attn_config/qk_ln", false},
     .positions = {.alibi = {"attn_config/alibi", true}, .rows = "max_seq_len", .learned = {"learned_pos_emb", true}},
     .dropouts = {"resid_pdrop", "attn_config/attn_pdrop", "emb_pdrop"},
     .biases = {Bias{kLinear | kNorms, "no_bias", false, true}},
     .demands = {Demand{"norm_type", Must::contain, "layernorm"}}},
    {.name = "grok-1", .head_dim = {}, .tied = true, .mlp = MlpKind::gelu, .norm_place = NormPlace::both,
     .dropouts = {}, .attention_cap = {"max_attn_value", 30, false},
     .experts = {.experts = "num_experts", .width = "intermediate_size"}},
    {.name = "mixtral", .window = kSliding,
     .experts = {.experts = "num_local_experts", .width = "intermediate_size", .normalise_top_k = {{}, true}}},
    {.name = "qwen3_moe", .qk_norm = QkNorm::per_head, .biases = {kAttentionBias},
     .window = {.key = "sliding_window", .used = kWindowUsed},
     .experts = {.experts = "num_experts", .every = "decoder_sparse_step", .normalise_top_k = kNormaliseTopK},
     .demands = {kNoSingleLayers}, .idle = {"max_window_layers"}},
    {.name = "qwen2_moe", .biases = {Bias{kQkv, "qkv_bias"}}, .window = kUpperLayers,
     .experts = {.experts = "num_experts", .every = "decoder_sparse_step", .shared_otherwise = 1, .shared_gate = true,
                 .shared_width = "shared_expert_intermediate_size", .shared_width_otherwise = 5632,
                 .normalise_top_k = kNormaliseTopK},
     .demands = {kNoSingleLayers}},
    kDeepSeekV2,
    like(kDeepSeekV2, "deepseek_v3", deepseek_v3),
    like(kDeepSeekV2, "kimi_k2", deepseek_v3),
    {.name = "gpt_oss", .biases = {Bias{kAttention, "attention_bias"}, Bias{kMlp}},
     .window = {.key = "sliding_window", .otherwise = 128, .pattern = "LG"}, .attention_sinks = true,
     .experts = {.experts = "num_local_experts", .top_k = {"num_experts_per_tok", "experts_per_token"},
                 .width = "intermediate_size", .normalise_top_k = {{}, true}, .router_bias = true},
     .idle = {kPublishedFormat}},
    {.name = "glm4_moe", .qk_norm = QkNorm::per_head, .qk_norm_used = {"use_qk_norm", false},
     .biases = {Bias{kQkv, "attention_bias", false}},
     .experts = {.experts = "n_routed_experts", .first_dense = "first_k_dense_replace", .shared = "n_shared_experts",
                 .normalise_top_k = {"norm_topk_prob", true}, .router = RouterKind::sigmoid, .router_bias = true,
                 .mtp_layers = "num_nextn_predict_layers"}},
    // Layers without rotary positions meet all tokens, the others only those of their chunk, which is modelled as a
    // window. Norms of queries and keys have no gains; the layers in lists follow from their intervals.
    {.name = "llama4_text", .biases = {kAttentionBias},
     .window = {.key = "attention_chunk_size", .otherwise = 8192, .null_is_none = false,
                .period = "no_rope_layer_interval", .period_otherwise = 4, .local = "chunked_attention"},
     .experts = {.experts = "num_local_experts", .width = "intermediate_size", .dense_width = "intermediate_size_mlp",
                 .every = "interleave_moe_layer_step", .shared_otherwise = 1, .router = RouterKind::sigmoid},
     .idle = {"use_qk_norm", "moe_layers", "no_rope_layers"}},
};
// clang-format on

constexpr std::string_view kExpertsOf = "has experts of a kind that is not modelled";
constexpr std::string_view kModelWithin =
    "is a model inside a model: give the config of the language model alone";
constexpr std::string_view kStates = "has states in place of attention, which are not modelled";

struct RefusedFamily {
  std::string_view name, reason;
};
constexpr RefusedFamily kRefusedFamilies[] = {
    {"dbrx", kExpertsOf},         {"olmoe", kExpertsOf},        {"phimoe", kExpertsOf},
    {"granitemoe", kExpertsOf},   {"jamba", kExpertsOf},        {"gemma3", kModelWithin},
    {"llama4", kModelWithin},     {"mllama", kModelWithin},     {"llava", kModelWithin},
    {"qwen2_vl", kModelWithin},   {"qwen2_5_vl", kModelWithin}, {"mistral3", kModelWithin},
    {"mamba", kStates},           {"mamba2", kStates},          {"rwkv", kStates},
    {"recurrent_gemma", kStates}, {"falcon_mamba", kStates}};

}  // namespace

std::span<const Family> families() { return kFamilies; }

std::string_view refused_family(std::string_view name) {
  for (const RefusedFamily& family : kRefusedFamilies)
    if (family.name == name) return family.reason;
  return "";
}

}  // namespace shardscape::yaml::huggingface
