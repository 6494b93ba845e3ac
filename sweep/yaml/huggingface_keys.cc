// Lists of keys: those without effect, by reason, and those that are refused because they change time or memory in a
// way that is not modelled.
#include "sweep/yaml/huggingface_keys.h"

#include <algorithm>
#include <array>

namespace shardscape::yaml {

namespace {

using Keys = std::string_view;

constexpr Keys kTokens[] = {"bos_token_id",        "eos_token_id",
                            "pad_token_id",        "sep_token_id",
                            "unk_token_id",        "decoder_start_token_id",
                            "forced_bos_token_id", "forced_eos_token_id",
                            "tokenizer_class",     "prefix",
                            "suppress_tokens",     "begin_suppress_tokens",
                            "bad_words_ids",       "model_max_length"};
constexpr Keys kSampling[] = {"max_length",
                              "min_length",
                              "max_new_tokens",
                              "do_sample",
                              "early_stopping",
                              "num_beams",
                              "num_beam_groups",
                              "diversity_penalty",
                              "temperature",
                              "top_k",
                              "top_p",
                              "typical_p",
                              "repetition_penalty",
                              "length_penalty",
                              "no_repeat_ngram_size",
                              "encoder_no_repeat_ngram_size",
                              "num_return_sequences",
                              "exponential_decay_length_penalty",
                              "remove_invalid_values",
                              "renormalize_logits",
                              "task_specific_params"};
constexpr Keys kReturned[] = {"return_dict",       "use_return_dict",      "output_hidden_states",
                              "output_attentions", "output_scores",        "return_dict_in_generate",
                              "torchscript",       "output_router_logits", "router_aux_loss_coef"};
constexpr Keys kNumbers[] = {"initializer_range",
                             "rms_norm_eps",
                             "layer_norm_eps",
                             "layer_norm_epsilon",
                             "norm_eps",
                             "rope_theta",
                             "rope_scaling",
                             "rope_interleaved",
                             "rotary_emb_base",
                             "scale_attn_weights",
                             "max_position_embeddings",
                             "scale_attn_by_inverse_layer_idx",
                             "original_max_position_embeddings",
                             "max_sequence_length",
                             "use_mrope",
                             "seq_length",
                             "n_ctx",
                             "norm_epsilon",
                             "init_std",
                             "query_pre_attn_scalar",
                             "rope_local_base_freq",
                             "logit_scale",
                             "embedding_multiplier",
                             "logits_scaling",
                             "residual_multiplier",
                             "attention_multiplier",
                             "embedding_fraction",
                             "scale_attention_softmax_in_fp32",
                             "attention_softmax_in_fp32",
                             "offset_alibi",
                             "rotary"};
constexpr Keys kRouting[] = {"router_jitter_noise",
                             "n_group",
                             "topk_group",
                             "routed_scaling_factor",
                             "aux_loss_alpha",
                             "seq_aux",
                             "swiglu_limit",
                             "initial_context_length",
                             "attn_temperature_tuning",
                             "floor_scale",
                             "attn_scale",
                             "attn_output_multiplier",
                             "embedding_multiplier_scale",
                             "output_multiplier_scale",
                             "qk_head_dim",
                             "ep_size"};
constexpr Keys kOthersChoice[] = {"torch_dtype",
                                  "dtype",
                                  "use_bfloat16",
                                  "use_cache",
                                  "gradient_checkpointing",
                                  "pretraining_tp",
                                  "use_flash_attn",
                                  "attn_implementation",
                                  "chunk_size_feed_forward",
                                  "tp_plan",
                                  "cache_implementation",
                                  "init_config",
                                  "init_device",
                                  "slow_but_exact",
                                  "masked_softmax_fusion",
                                  "bias_dropout_fusion",
                                  "skip_bias_add",
                                  "skip_bias_add_qkv",
                                  "inference_runner",
                                  "validate_runner_input",
                                  "pre_allocate_kv_cache",
                                  "max_batch_size"};
constexpr Keys kOtherTasks[] = {"num_labels",
                                "id2label",
                                "label2id",
                                "problem_type",
                                "finetuning_task",
                                "classifier_dropout",
                                "summary_type",
                                "summary_use_proj",
                                "summary_activation",
                                "summary_proj_to_labels",
                                "summary_first_dropout",
                                "predict_special_tokens",
                                "tie_encoder_decoder",
                                "cross_attention_hidden_size",
                                "is_decoder"};
constexpr Keys kProvenance[] = {"transformers_version",
                                "transformers_weights",
                                "transformers.js_config",
                                "name_or_path",
                                "auto_map",
                                "custom_pipelines",
                                "tokenizer_name",
                                "verbose",
                                "unsloth_version",
                                "unsloth_fixed",
                                "is_llama_config",
                                "tf_legacy_loss"};

constexpr std::array kIdle = {
    IdleKeys{"tokens and the tokenizer: numbers and names of entries in the vocabulary", kTokens},
    IdleKeys{"how a text is sampled; the workload says how many tokens there are", kSampling},
    IdleKeys{"what a call gives back", kReturned},
    IdleKeys{"numbers that enter the same operations: initial values, epsilons, angles of rotary positions",
             kNumbers},
    IdleKeys{"limits and factors of routers, experts and scores, which enter the same operations", kRouting},
    IdleKeys{"the study decides: its precision, recompute policy, stack and plan", kOthersChoice},
    IdleKeys{"heads for other tasks than predicting the next token", kOtherTasks},
    IdleKeys{"where the file comes from", kProvenance},
};

constexpr std::string_view kExperts = "this family has no experts; model_type names one that has";
constexpr std::string_view kLatent = "this family has no latent attention; model_type names one that has";
constexpr std::string_view kQuantised =
    "weights quantised to integers are not modelled (fp8, mxfp4 and nvfp4 are); take the config of the model "
    "before quantisation, and let "
    "workload.precision say what it is computed in";
constexpr std::string_view kQueryNorms =
    "norms of queries and keys are not modelled; this family has none of its own";
constexpr std::string_view kWithin = "a model inside a model; give the config of the language model alone";
constexpr std::string_view kEncoder = "only models of a decoder alone are supported";
constexpr std::string_view kSoftcap = "soft caps on logits are not modelled; this family has none of its own";
constexpr std::string_view kMultiToken = "this family has no layers that predict further tokens";

constexpr std::array kRefused = {
    RefusedKey{"quantization_config", kQuantised},
    RefusedKey{"quantization", kQuantised},
    RefusedKey{"compression_config", kQuantised},
    RefusedKey{"num_local_experts", kExperts},
    RefusedKey{"num_experts", kExperts},
    RefusedKey{"num_experts_per_tok", kExperts},
    RefusedKey{"n_routed_experts", kExperts},
    RefusedKey{"n_shared_experts", kExperts},
    RefusedKey{"moe_intermediate_size", kExperts},
    RefusedKey{"q_lora_rank", kLatent},
    RefusedKey{"kv_lora_rank", kLatent},
    RefusedKey{"use_qk_norm", kQueryNorms},
    RefusedKey{"qk_layernorm", kQueryNorms},
    RefusedKey{"vision_config", kWithin},
    RefusedKey{"audio_config", kWithin},
    RefusedKey{"use_cla", "keys and values that layers share are not modelled; it must be false"},
    RefusedKey{"is_encoder_decoder", kEncoder},
    RefusedKey{"add_cross_attention", kEncoder},
    RefusedKey{"attn_logit_softcapping", kSoftcap},
    RefusedKey{"final_logit_softcapping", kSoftcap},
    RefusedKey{"num_nextn_predict_layers", kMultiToken},
    RefusedKey{"apply_residual_connection_post_layernorm",
               "a residual stream behind the norm is not modelled; it must be false"},
    RefusedKey{"use_bidirectional_attention", "attention to later tokens is not modelled"},
    RefusedKey{"layerdrop", "dropping whole layers is not modelled; it must be 0"},
    RefusedKey{"activation_dropout", "dropout behind the activation is not modelled; it must be 0"},
    RefusedKey{
        "pruned_heads",
        "heads that some layers lack are not modelled: all blocks are alike; take it out for the whole "
        "model"},
    RefusedKey{"reorder_and_upcast_attn",
               "attention scores in fp32 are not modelled; set it to false for those of workload.precision"},
    RefusedKey{
        "attention_bias",
        "this family does not read it: qwen2 has biases of Q, K and V alone, mistral has none; take it "
        "out"},
    RefusedKey{"attention_probs_dropout_prob", "this family does not read it: its key is attention_dropout"},
    RefusedKey{"hidden_dropout_prob", "this family does not read it: its key is hidden_dropout"},
    RefusedKey{"mlp_bias", "this family does not read it; take it out"},
    RefusedKey{"use_sliding_window",
               "this family does not read it: sliding_window alone decides; take it out"},
};

}  // namespace

std::span<const IdleKeys> idle_keys() { return kIdle; }

bool is_idle_key(std::string_view key) {
  // transformers marks keys for its own use so: _name_or_path, _attn_implementation_autoset, ...
  if (key.starts_with('_')) return true;
  return std::ranges::any_of(
      kIdle, [&](const IdleKeys& group) { return std::ranges::find(group.keys, key) != group.keys.end(); });
}

std::span<const RefusedKey> refused_keys() { return kRefused; }

std::string_view refusal_of(std::string_view key) {
  const auto at = std::ranges::find(kRefused, key, &RefusedKey::key);
  return at == kRefused.end() ? std::string_view() : at->reason;
}

}  // namespace shardscape::yaml
