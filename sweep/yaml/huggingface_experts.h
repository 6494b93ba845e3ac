// Readers of the Hugging Face configs of models with experts.
#pragma once

#include "sweep/yaml/huggingface_config.h"

namespace shardscape::yaml::huggingface {

void read_mixtral(HuggingFaceConfig& config, ModelSpec& m);
void read_grok(HuggingFaceConfig& config, ModelSpec& m);
void read_qwen3_moe(HuggingFaceConfig& config, ModelSpec& m);
/// Only the experts of Qwen's families: those without and those with a gated shared expert.
void read_qwen_experts(HuggingFaceConfig& config, ModelSpec& m);
void read_qwen2_experts(HuggingFaceConfig& config, ModelSpec& m);
void read_deepseek_v2(HuggingFaceConfig& config, ModelSpec& m);
/// Reads Kimi K2, too.
void read_deepseek_v3(HuggingFaceConfig& config, ModelSpec& m);
void read_gpt_oss(HuggingFaceConfig& config, ModelSpec& m);
void read_glm4_moe(HuggingFaceConfig& config, ModelSpec& m);
void read_llama4(HuggingFaceConfig& config, ModelSpec& m);

}  // namespace shardscape::yaml::huggingface
