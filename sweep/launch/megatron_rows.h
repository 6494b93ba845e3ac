// Megatron-LM and NeMo as one table of rows, in two parts: what says the plan, its workload and its stack
// (megatron.cc), and what says the model (megatron_model.cc).
#pragma once

#include <span>
#include <string_view>

#include "sweep/launch/framework.h"

namespace shardscape::launch::megatron {

inline constexpr std::string_view kGuide =
    "https://docs.nvidia.com/megatron-core/developer-guide/latest/index.html";
inline constexpr std::string_view kConfig =
    "https://docs.nvidia.com/megatron-core/developer-guide/latest/api-guide/transformer.html";
inline constexpr std::string_view kParallel =
    "https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/training/arguments.py";
inline constexpr std::string_view kMoe =
    "https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/core/transformer/moe/README.md";
inline constexpr std::string_view kFsdp =
    "https://docs.nvidia.com/megatron-core/developer-guide/latest/api-guide/custom_fsdp.html";
inline constexpr std::string_view kNemo =
    "https://docs.nvidia.com/nemo-framework/user-guide/latest/nemotoolkit/features/parallelisms.html";

/// A row of both: the flag, and where NeMo's recipe has it; empty: it is the recipe's own there.
struct Row {
  std::string_view keys, flag;
  std::string_view nemo;
  Said (*say)(const Case& of);
  std::string_view source = kParallel;
  std::string_view since = {};
};

/// A row's function, from an expression of `of`.
#define SHARDSCAPE_SAY(EXPRESSION) [](const Case& of) -> Said { return EXPRESSION; }

inline const MixtureOfExperts& moe(const Case& of) { return *of.shape().moe; }

/// The rows of the model, and behind them those without which the programs do not start.
std::span<const Row> model_rows();

}  // namespace shardscape::launch::megatron
