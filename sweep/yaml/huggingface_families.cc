// The table of families. A row starts from a named one, such as kLlama or kGpt2, and sets what differs; at the end
// stand the families that are known but refused, with the reason.
#include "sweep/yaml/huggingface_families.h"

#include <utility>

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
      row.heads_otherwise = 8;
      row.kv_heads.otherwise = 4;
      row.vocabulary_otherwise = 262208;
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
     .experts = {.experts = "num_experts", .every = "decoder_sparse_step", .normalise_top_k = kNormaliseTopK,
                 .dense_layers = "mlp_only_layers"},
     .idle = {"max_window_layers"}},
    {.name = "qwen2_moe", .biases = {Bias{kQkv, "qkv_bias"}}, .window = kUpperLayers,
     .experts = {.experts = "num_experts", .every = "decoder_sparse_step", .shared_otherwise = 1, .shared_gate = true,
                 .shared_width = "shared_expert_intermediate_size", .shared_width_otherwise = 5632,
                 .normalise_top_k = kNormaliseTopK, .dense_layers = "mlp_only_layers"}},
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
     .idle = {"use_qk_norm", "moe_layers", "no_rope_layers", "attn_temperature_tuning", "attn_scale", "floor_scale",
              "for_llm_compressor", "router_jitter_noise"}},
    {.name = "minimax_m2", .qk_norm = QkNorm::full_width, .qk_norm_used = {"use_qk_norm", true},
     .positions = {.turned_dimensions = "rotary_dim"}, .window = kSliding,
     .experts = {.experts = "num_local_experts", .width = "intermediate_size", .shared_width = "shared_intermediate_size",
                 .normalise_top_k = {{}, true}, .router = RouterKind::sigmoid, .router_bias = true,
                 .mtp_layers = "num_mtp_modules"},
     .idle = {"qk_norm_type", "attn_type_list", "mlp_intermediate_size", "scoring_func", "use_routing_bias", "use_mtp",
              "mtp_transformer_layers", "postnorm", "layernorm_full_attention_alpha", "layernorm_full_attention_beta",
              "layernorm_linear_attention_alpha", "layernorm_linear_attention_beta", "layernorm_mlp_alpha",
              "layernorm_mlp_beta", "max_model_len", "swa_rope_theta"}},
    {.name = "ernie4_5", .tied = true, .biases = {Bias{kLinear, "use_bias", false}}},
    {.name = "ernie4_5_moe", .tied = true, .biases = {Bias{kLinear, "use_bias", false}},
     .experts = {.experts = "moe_num_experts", .top_k = {"moe_k", "num_experts_per_tok"},
                 .first_dense = "moe_layer_start_index", .every = "moe_layer_interval",
                 .shared = "moe_num_shared_experts", .normalise_top_k = {{}, true}, .router_bias = true,
                 .mtp_layers = "num_nextn_predict_layers"},
     .idle = {"moe_layer_end_index", "moe_capacity", "moe_gate", "moe_use_aux_free", "moe_norm_min", "moe_use_hard_gate",
              "moe_multimodal_dispatch_use_allgather", "use_rmsnorm", "compression_ratio", "rope_3d", "enable_mtp_magic_send",
              "num_acc_steps"}},
    {.name = "bailing_moe", .qk_norm = QkNorm::per_head, .qk_norm_used = {"use_qk_norm", false},
     .dropouts = {"output_dropout", "attention_dropout", "embedding_dropout"},
     .biases = {Bias{kQkv, "use_qkv_bias", false}, Bias{kOutput | kMlp, "use_bias", false}},
     .experts = {.experts = "num_experts", .first_dense = "first_k_dense_replace", .shared = "num_shared_experts",
                 .normalise_top_k = kNormaliseTopK, .router_keys = true, .mtp_layers = "num_nextn_predict_layers"},
     .idle = {"multi_gate", "moe_router_enable_expert_bias", "moe_shared_expert_intermediate_size", "score_function",
              "use_rmsnorm", "rotary_type", "router_dtype", "moe_router_topk_scaling_factor", "mtp_loss_scaling_factor",
              "max_window_layers", "use_sliding_window", "norm_head", "norm_softmax", "num_token_experts"}},
    // Norms without biases, and experts behind all layers; rates of dropout and shapes stand in maps of their own.
    {.name = "dbrx", .layers = "n_layers", .hidden = "d_model", .heads = "n_heads",
     .ffn_hidden = "ffn_config/ffn_hidden_size", .kv_heads = {.key = "attn_config/kv_n_heads"}, .head_dim = {},
     .heads_at = "d_model", .activation = {}, .norm = NormKind::layernorm,
     .dropouts = {"resid_pdrop", "attn_config/attn_pdrop", "emb_pdrop"}, .biases = {Bias{kNorms, {}, false}},
     .experts = {.experts = "ffn_config/moe_num_experts", .top_k = "ffn_config/moe_top_k",
                 .width = "ffn_config/ffn_hidden_size", .normalise_top_k = {{}, true}},
     .idle = {"max_seq_len"}},
    {.name = "hunyuan_v1_moe", .head_dim = {"head_dim", "attention_head_dim"}, .qk_norm = QkNorm::per_head,
     .qk_norm_used = {"use_qk_norm", false}, .biases = {kAttentionBias, kMlpBias},
     .experts = {.experts = "num_experts", .top_k = {"moe_topk", "num_experts_per_tok"},
                 .width = {"moe_intermediate_size", "intermediate_size"}, .first_dense = "moe_layer_num_skipped",
                 .shared = "num_shared_expert", .normalise_top_k = {{}, true}},
     .idle = {"cla_share_factor", "use_mixed_mlp_moe", "moe_drop_tokens", "moe_random_routing_dropped_token",
              "capacity_factor", "norm_type", "use_rotary_pos_emb", "org_vocab_size", "group_limited_greedy", "pool_type",
              "num_media_embeds", "class_num", "mask_init_id", "position_embedding_xdrope", "eod_token_id", "use_mla"}},
};
// clang-format on

/// Model types whose language model has the blocks of a family.
constexpr std::pair<std::string_view, std::string_view> kSameBlocks[] = {
    {"qwen2_vl_text", "qwen2"},         {"qwen2_5_vl_text", "qwen2"},      {"qwen3_vl_text", "qwen3"},
    {"qwen3_vl_moe_text", "qwen3_moe"}, {"bailing_moe_v2", "bailing_moe"}, {"hunyuan", "hunyuan_v1_moe"}};

constexpr std::string_view kExpertsOf = "has experts of a kind that is not modelled";
constexpr std::string_view kModelWithin =
    "is a model inside a model: give the config of the language model alone";
constexpr std::string_view kStates = "has states in place of attention, which are not modelled";

struct RefusedFamily {
  std::string_view name, reason;
};
constexpr RefusedFamily kRefusedFamilies[] = {
    {"olmoe", kExpertsOf},        {"phimoe", kExpertsOf},     {"granitemoe", kExpertsOf},
    {"jamba", kExpertsOf},        {"gemma3", kModelWithin},   {"llama4", kModelWithin},
    {"mllama", kModelWithin},     {"llava", kModelWithin},    {"qwen2_vl", kModelWithin},
    {"qwen2_5_vl", kModelWithin}, {"mistral3", kModelWithin}, {"mamba", kStates},
    {"mamba2", kStates},          {"rwkv", kStates},          {"recurrent_gemma", kStates},
    {"falcon_mamba", kStates}};

}  // namespace

std::span<const Family> families() { return kFamilies; }

std::string_view family_of(std::string_view model_type, std::string_view architecture) {
  if (architecture == "MiniMaxM2ForCausalLM") return "minimax_m2";
  for (const auto& [type, family] : kSameBlocks)
    if (type == model_type) return family;
  return model_type;
}

std::string_view refused_family(std::string_view name) {
  for (const RefusedFamily& family : kRefusedFamilies)
    if (family.name == name) return family.reason;
  return "";
}

}  // namespace shardscape::yaml::huggingface
