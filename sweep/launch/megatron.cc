// Megatron-LM, and NeMo 2.0, whose strategy and model take the same settings of Megatron Core: one table for both.
//
// Sources are the documentation of the arguments of Megatron-LM (megatron/training/arguments.py prints it with --help)
// and of Megatron Core's configurations, and the API documentation of NeMo's MegatronStrategy.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/model/partition.h"
#include "engine/spec/pipeline_layout.h"
#include "engine/spec/plan_axes.h"
#include "engine/spec/zero.h"
#include "sweep/launch/framework.h"
#include "sweep/space/design_space.h"

namespace shardscape::launch {

namespace {

using C = const Case&;

constexpr std::string_view kGuide = "https://docs.nvidia.com/megatron-core/developer-guide/latest/index.html";
constexpr std::string_view kConfig =
    "https://docs.nvidia.com/megatron-core/developer-guide/latest/api-guide/transformer.html";
constexpr std::string_view kParallel =
    "https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/training/arguments.py";
constexpr std::string_view kMoe =
    "https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/core/transformer/moe/README.md";
constexpr std::string_view kFsdp =
    "https://docs.nvidia.com/megatron-core/developer-guide/latest/api-guide/custom_fsdp.html";
constexpr std::string_view kNemo =
    "https://docs.nvidia.com/nemo-framework/user-guide/latest/nemotoolkit/features/parallelisms.html";

bool folded(C of) { return of.plan.folds_experts(); }
const MixtureOfExperts& moe(C of) { return *of.shape().moe; }
Said of_experts(C of, const Said& said) { return of.experts() ? said : unasked(); }
bool gathers_weights(C of) { return of.plan.zero_stage > 0 && of.plan.zero_stage < 3; }
/// ZeRO stages that are Megatron FSDP rather than the distributed optimizer.
bool fsdp(C of) {
  return of.plan.zero_stage == 3 ||
         (of.plan.zero_stage == 2 && scatters_each_microbatch(of.plan, of.stack()));
}

/// The layout of Megatron Core where the layers do not lie as it deals them unasked; empty: they do.
std::string layout_of(C of) {
  const ParallelPlan& plan = of.plan;
  if (plan.pipeline == 1) return {};
  if (!of.stack().pipeline_layout.empty()) return of.stack().pipeline_layout;
  const std::int64_t chunks = static_cast<std::int64_t>(plan.pipeline) * plan.virtual_stages;
  const std::int32_t further = model::further_modules(of.shape(), Phase::training);
  model::Partition partition;
  if (!model::partition_layers(of.shape(), of.stack(), {plan.pipeline, plan.virtual_stages, Phase::training},
                               partition))
    return {};
  const auto even = [&](const model::StageLayers& chunk) {
    return chunk.count() * chunks == of.shape().layers;
  };
  if (std::ranges::all_of(partition.chunks, even)) return {};
  PipelineLayout layout;
  layout.stages.resize(static_cast<std::size_t>(chunks));
  for (std::size_t i = 0; i < layout.stages.size(); ++i) {
    // Chunks are listed stage by stage, a layout in the order in which a microbatch meets them.
    const std::size_t stages = static_cast<std::size_t>(plan.pipeline);
    const model::StageLayers& chunk =
        partition.chunks[i % stages * static_cast<std::size_t>(plan.virtual_stages) + i / stages];
    layout.stages[i] = {chunk.count(), chunk.further()};
  }
  if (further > 0 && layout.further() == 0) layout.stages.back().further = further;
  return layout.text();
}
Said layout(C of) {
  const std::string text = layout_of(of);
  return text.empty() ? unasked() : value(text);
}

/// Where embedding and loss count as a layer each.
Said both_ends(C of) {
  if (layout_of(of).empty()) return unasked();
  const std::int64_t chunks = static_cast<std::int64_t>(of.plan.pipeline) * of.plan.virtual_stages;
  const bool counted = of.stack().partition == PartitionRule::with_ends && of.stack().pipeline_layout.empty();
  return counted && !of.experts() && (of.shape().layers + 2) % chunks == 0
             ? flag()
             : lacks("embedding and loss count as a layer each, or as none");
}

Said virtual_stages(C of) {
  if (!of.plan.chunked() || !layout_of(of).empty()) return unasked();
  return value(of.shape().layers / (static_cast<std::int64_t>(of.plan.pipeline) * of.plan.virtual_stages));
}

Said schedule(C of) {
  const std::string name(name_of(of.plan.schedule));
  switch (of.plan.schedule) {
    case ScheduleKind::one_f_one_b:
      return unasked();  // without chunks it is what runs
    case ScheduleKind::interleaved:
      return of.plan.chunked() ? value(of.plan.pipeline) : unasked();
    case ScheduleKind::gpipe:
    case ScheduleKind::zero_bubble:
    case ScheduleKind::dualpipe:
      break;
  }
  return refused(
      "it runs 1f1b, and interleaved with --num-layers-per-virtual-pipeline-stage; a flag that chooses " +
      name + " would be needed, and there is none");
}

Said order(C of) {
  using sweep::same_layout;
  if (same_layout(of.plan, of.plan.order, kDefaultRankOrder)) return unasked();
  if (same_layout(of.plan, of.plan.order, *parse_rank_order("tp-cp-pp-dp"))) return flag();
  return lacks("ranks lie as tp-cp-dp-pp, or with --use-tp-pp-dp-mapping as tp-cp-pp-dp");
}

Said zero(C of) {
  if (of.plan.zero_stage == 0) return unasked();
  if (fsdp(of) && of.plan.pipeline > 1)
    return refused(
        "stages 2 and 3 are Megatron FSDP (--use-megatron-fsdp), whose documentation names no "
        "--pipeline-model-parallel-size beside it; --use-distributed-optimizer is stage 1");
  return flag();
}
Said fsdp_flag(C of) { return flag_if(fsdp(of)); }
Said fsdp_strategy(C of) {
  if (!fsdp(of)) return unasked();
  return value(of.plan.zero_stage == 3 ? "optim_grads_params" : "optim_grads");
}

Said granularity(C of) {
  return of.plan.recompute == Recompute::none ? unasked() : value(std::string(name_of(of.plan.recompute)));
}
std::string_view module_of(RecomputePart part) {
  switch (part) {
    case RecomputePart::attention_core:
      return "core_attn";
    case RecomputePart::norms:
      return "layernorm";
    case RecomputePart::latent_up:
      return "mla_up_proj";
    case RecomputePart::activations:
      return "moe_act";
    case RecomputePart::mlp:
      return "mlp";
    case RecomputePart::experts:
      return "moe";
  }
  return {};  // not reached: the switch handles every part, or does not compile
}
Said modules(C of) {
  if (of.plan.recompute != Recompute::selective) return unasked();
  std::string words;
  for (const RecomputePart part : of.stack().selective_recompute)
    words += (words.empty() ? "" : " ") + std::string(module_of(part));
  return value(words);
}
/// What the modules do not say: moe_act is that of experts alone.
Said dense_activations(C of) {
  const bool dense = !of.experts() || of.shape().expert_layers() < of.shape().layers;
  const bool asked =
      of.plan.recompute == Recompute::selective && of.stack().repeats(RecomputePart::activations);
  return asked && dense
             ? lacks("moe_act computes the activations of experts again, not those of layers without them")
             : unasked();
}

Said attention(C of) {
  switch (of.stack().attention) {
    case AttentionKernel::naive:
      return value("unfused");
    case AttentionKernel::flash:
    case AttentionKernel::flash3:
      return value("flash");
    case AttentionKernel::cudnn:
      return value("fused");
    case AttentionKernel::flash_alibi:
    case AttentionKernel::trtllm:
      break;
  }
  return lacks("--attention-backend knows flash, fused and unfused");
}

bool eight_bits(C of) { return format_of(of.workload().precision) == Precision::fp8; }
Said base_precision(C of) {
  const PolicyName name = of.workload().precision;
  if (name == PolicyName::tf32) return lacks("fp32 products in tf32 are PyTorch's own setting");
  return flag_if(name != PolicyName::fp16 && name != PolicyName::fp32);
}
Said fp8_format(C of) { return eight_bits(of) ? value("hybrid") : unasked(); }
Said fp8_recipe(C of) {
  if (!eight_bits(of)) return unasked();
  return value(of.workload().precision == PolicyName::mxfp8 ? "mxfp8" : "delayed");
}
Said fp4_format(C of) {
  return format_of(of.workload().precision) == Precision::fp4 ? value("e2m1") : unasked();
}

Said tensor_overlap(C of) {
  if (of.stack().communication.tensor_overlap == 0 || of.plan.tensor == 1) return unasked();
  return of.plan.sequence_parallel ? flag() : lacks("--tp-comm-overlap needs --sequence-parallel");
}
Said pipeline_sends(C of) {
  if (of.plan.pipeline == 1) return unasked();
  const bool async = of.stack().communication.pipeline_async;
  if (of.plan.chunked()) return flag_if(!async);
  return async ? lacks("sends overlap in interleaved schedules alone") : unasked();
}
Said bucket(C of) {
  if (of.plan.data * of.plan.context == 1) return unasked();
  const double bytes = gradient_bucket(of.plan, of.stack(), ParallelGroup::data_shard).value();
  return value(std::llround(bytes / of.stack().state.gradient_comm_bytes));
}
Said gradient_type(C of) {
  const StackProfile::State& state = of.stack().state;
  if (state.gradient_bytes == 4 && state.gradient_comm_bytes == 4) return unasked();  // with --bf16
  if (state.gradient_bytes == 2 && state.gradient_comm_bytes == 2) return flag();
  return lacks("gradients are kept and reduced in fp32, or both in bf16 (--grad-reduce-in-bf16)");
}
bool narrow_moments(C of) { return of.stack().state.moment_bytes == 4; }
Said moments(C of) {
  if (of.stack().state.moment_bytes == 8) return unasked();
  return narrow_moments(of) ? flag() : lacks("moments of 4 or 2 bytes each are known");
}
Said moment_type(C of) { return narrow_moments(of) ? value("bf16") : unasked(); }

Said dispatcher(C of) {
  if (!of.experts() || of.plan.expert == 1) return unasked();
  return value(of.stack().experts.dispatch == ExpertDispatcher::library ? "alltoall" : "flex");
}
Said deepep(C of) {
  if (!of.experts() || of.plan.expert == 1) return unasked();
  if (of.stack().experts.dispatch == ExpertDispatcher::hybrid)
    return lacks("HybridEP is chosen by a flag that later versions have");
  return flag_if(of.stack().experts.dispatch == ExpertDispatcher::kernels);
}
Said expert_overlap(C of) {
  return flag_if(of.experts() && of.plan.expert > 1 && of.stack().communication.expert_overlap > 0);
}

Said deferred(C of) { return flag_if(of.stack().head.deferred_weight_gradient && of.plan.pipeline > 1); }
Said deferral(C of) {
  const StackProfile::Head& head = of.stack().head;
  const bool set = head.deferred_weight_gradient && of.plan.pipeline > 1 && head.deferral_limit > 0;
  return set ? value(head.deferral_limit) : unasked();
}

// ---- the model ----

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

/// A row of both: the flag, and where NeMo's recipe has it; null: it is the recipe's own there.
struct Row {
  std::string_view keys, flag;
  std::string_view nemo;
  Said (*say)(C of);
  std::string_view source = kParallel;
  std::string_view since = {};
};

#define SHARDSCAPE_SAY(EXPRESSION) [](C of) -> Said { return EXPRESSION; }

constexpr Row kRows[] = {
    {"tp", "--tensor-model-parallel-size", "trainer.strategy.tensor_model_parallel_size",
     SHARDSCAPE_SAY(value(of.plan.tensor))},
    {"pp", "--pipeline-model-parallel-size", "trainer.strategy.pipeline_model_parallel_size",
     SHARDSCAPE_SAY(value(of.plan.pipeline))},
    {"cp", "--context-parallel-size", "trainer.strategy.context_parallel_size",
     SHARDSCAPE_SAY(value(of.plan.context))},
    {"sp", "--sequence-parallel", "trainer.strategy.sequence_parallel",
     SHARDSCAPE_SAY(flag_if(of.plan.sequence_parallel))},
    {"ep", "--expert-model-parallel-size", "trainer.strategy.expert_model_parallel_size",
     SHARDSCAPE_SAY(of_experts(of, value(of.plan.expert))), kMoe},
    {"etp", "--expert-tensor-parallel-size", "trainer.strategy.expert_tensor_parallel_size",
     SHARDSCAPE_SAY(folded(of) ? value(of.plan.expert_tensor) : unasked()), kMoe},
    {"order", "--use-tp-pp-dp-mapping", "trainer.strategy.use_tp_pp_dp_mapping", order},
    {"schedule vpp", "--num-layers-per-virtual-pipeline-stage", "", virtual_stages},
    {"vpp", "", "trainer.strategy.virtual_pipeline_model_parallel_size",
     SHARDSCAPE_SAY(of.plan.chunked() ? value(of.plan.virtual_stages) : unasked()), kNemo},
    {"schedule", "--microbatch-group-size-per-virtual-pipeline-stage",
     "model.config.microbatch_group_size_per_vp_stage", schedule},
    {"stack.partition stack.pipeline_layout vpp", "--pipeline-model-parallel-layout", "", layout, kParallel,
     "0.13"},
    {"stack.partition stack.pipeline_layout vpp", "", "model.config.account_for_embedding_in_pipeline_split",
     both_ends, kNemo},
    {"stack.partition stack.pipeline_layout vpp", "", "model.config.account_for_loss_in_pipeline_split",
     both_ends, kNemo},
    {"mbs", "--micro-batch-size", "data.micro_batch_size", SHARDSCAPE_SAY(value(of.plan.microbatch))},
    {"workload.global_batch dp", "--global-batch-size", "data.global_batch_size",
     SHARDSCAPE_SAY(value(of.workload().global_batch))},
    {"workload.sequence_length", "--seq-length", "data.seq_length",
     SHARDSCAPE_SAY(value(of.workload().sequence_length))},
    {"zero", "--use-distributed-optimizer", "trainer.strategy.ddp.use_distributed_optimizer", zero},
    {"zero", "--use-megatron-fsdp", "trainer.strategy.ddp.use_megatron_fsdp", fsdp_flag, kFsdp, "0.14"},
    {"zero stack.zero2_gradients", "--data-parallel-sharding-strategy",
     "trainer.strategy.ddp.data_parallel_sharding_strategy", fsdp_strategy, kFsdp, "0.14"},
    {"", "--no-gradient-accumulation-fusion", "", fsdp_flag, kFsdp},
    {"", "", "model.config.gradient_accumulation_fusion",
     SHARDSCAPE_SAY(fsdp(of) ? value("false") : unasked()), kFsdp},
    {"recompute", "--recompute-granularity", "model.config.recompute_granularity", granularity},
    {"recompute", "--recompute-method", "model.config.recompute_method",
     SHARDSCAPE_SAY(of.plan.recompute == Recompute::full ? value("uniform") : unasked())},
    {"recompute", "--recompute-num-layers", "model.config.recompute_num_layers",
     SHARDSCAPE_SAY(of.plan.recompute == Recompute::full ? value(1) : unasked())},
    {"stack.selective_recompute", "--recompute-modules[]", "model.config.recompute_modules[]", modules,
     kParallel, "0.12"},
    {"stack.selective_recompute", "--recompute-modules[]", "model.config.recompute_modules[]",
     dense_activations},
    {"stack.attention", "--attention-backend", "", attention, kParallel, "0.11"},
    {"workload.precision", "--bf16", "", base_precision},
    {"workload.precision", "--fp16", "",
     SHARDSCAPE_SAY(flag_if(of.workload().precision == PolicyName::fp16))},
    {"workload.precision", "", "trainer.plugins.precision",
     SHARDSCAPE_SAY(of.workload().precision == PolicyName::fp16   ? value("16-mixed")
                    : of.workload().precision == PolicyName::fp32 ? value("32")
                    : of.workload().precision == PolicyName::tf32 ||
                            format_of(of.workload().precision) == Precision::fp4
                        ? lacks("its settings of precision have no such format")
                        : value("bf16-mixed")),
     kNemo},
    {"workload.precision", "--fp8-format", "trainer.plugins.fp8", fp8_format},
    {"workload.precision", "--fp8-recipe", "trainer.plugins.fp8_recipe", fp8_recipe, kParallel, "0.12"},
    {"workload.precision", "--fp4-format", "", fp4_format, kParallel, "0.15"},
    {"stack.kept.fp8_weights", "--fp8-param-gather", "trainer.plugins.fp8_param_gather",
     SHARDSCAPE_SAY(flag_if(of.stack().kept.fp8_weights&& eight_bits(of)))},
    {"stack.communication.tensor_overlap", "--tp-comm-overlap", "", tensor_overlap},
    {"stack.communication.context_overlap", "--cp-comm-type", "model.config.cp_comm_type",
     SHARDSCAPE_SAY(of.plan.context > 1 ? value("p2p") : unasked()), kGuide, "0.10"},
    {"stack.communication.data_overlap", "--overlap-grad-reduce", "trainer.strategy.ddp.overlap_grad_reduce",
     SHARDSCAPE_SAY(
         flag_if(of.stack().communication.data_overlap > 0 && of.plan.data * of.plan.context > 1))},
    {"stack.communication.gather_overlap", "--overlap-param-gather",
     "trainer.strategy.ddp.overlap_param_gather",
     SHARDSCAPE_SAY(!gathers_weights(of) || of.stack().communication.gather_overlap == 0 ? unasked()
                    : of.stack().communication.data_overlap > 0
                        ? flag()
                        : lacks("--overlap-param-gather needs --overlap-grad-reduce"))},
    {"stack.communication.pipeline_async", "--no-overlap-p2p-communication", "", pipeline_sends},
    {"stack.communication.bucket stack.communication.zero_bucket stack.communication.bucket_per_rank",
     "--ddp-bucket-size", "trainer.strategy.ddp.bucket_size", bucket},
    {"stack.state.gradient_bytes stack.state.gradient_comm_bytes", "--grad-reduce-in-bf16", "", gradient_type,
     kParallel, "0.11"},
    {"stack.state.gradient_bytes stack.state.gradient_comm_bytes", "",
     "trainer.strategy.ddp.grad_reduce_in_fp32",
     SHARDSCAPE_SAY(gradient_type(of).kind == Said::Kind::unasked  ? flag()
                    : gradient_type(of).kind == Said::Kind::option ? value("false")
                                                                   : lacks("fp32 or bf16, both alike")),
     kNemo},
    {"stack.state.master_bytes", "", "",
     SHARDSCAPE_SAY(of.stack().state.master_bytes == 4 ? unasked()
                                                       : lacks("the optimizer keeps them in fp32"))},
    {"stack.state.moment_bytes", "--use-precision-aware-optimizer", "", moments, kParallel, "0.11"},
    {"stack.state.moment_bytes", "--exp-avg-dtype", "", moment_type, kParallel, "0.11"},
    {"stack.state.moment_bytes", "--exp-avg-sq-dtype", "", moment_type, kParallel, "0.11"},
    {"stack.state.moment_bytes", "", "optim.config.use_precision_aware_optimizer",
     SHARDSCAPE_SAY(of.stack().state.moment_bytes == 8
                        ? unasked()
                        : lacks("types of moments are objects of PyTorch there")),
     kNemo},
    {"stack.fused_loss", "--cross-entropy-loss-fusion", "model.config.cross_entropy_loss_fusion",
     SHARDSCAPE_SAY(flag_if(of.stack().fused_loss))},
    {"stack.experts.dispatch", "--moe-token-dispatcher-type", "model.config.moe_token_dispatcher_type",
     dispatcher, kMoe},
    {"stack.experts.dispatch", "--moe-enable-deepep", "model.config.moe_enable_deepep", deepep, kMoe, "0.11"},
    {"stack.experts.shared_overlap", "--moe-shared-expert-overlap", "model.config.moe_shared_expert_overlap",
     SHARDSCAPE_SAY(flag_if(of.experts() && of.stack().experts.shared_overlap)), kMoe},
    {"stack.communication.expert_overlap", "--overlap-moe-expert-parallel-comm", "", expert_overlap, kMoe,
     "0.14"},
    {"stack.head.deferred_weight_gradient", "--defer-embedding-wgrad-compute",
     "model.config.defer_embedding_wgrad_compute", deferred},
    {"stack.head.deferral_limit", "--wgrad-deferral-limit", "model.config.wgrad_deferral_limit", deferral},
    // ---- the model ----
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
     SHARDSCAPE_SAY(flag_if(of.experts() && moe(of).router_bias)), kMoe},
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
#undef SHARDSCAPE_SAY

std::string torchrun(C of) {
  const std::string nodes = of.nodes() > 1
                                ? " --nnodes " + std::to_string(of.nodes()) +
                                      " --node-rank $NODE_RANK --master-addr $MASTER_ADDR --master-port 6000"
                                : "";
  return fmt::format("torchrun --nproc-per-node {}{}", std::min(of.gpus(), of.gpus_per_node), nodes);
}

/// The rows that have a name in a framework; a row with `bare` has none in either and says what is lacking.
std::vector<Option> rows(std::string_view Row::*name) {
  std::vector<Option> options;
  for (const Row& row : kRows) {
    const bool bare = row.flag.empty() && row.nemo.empty();
    if (bare || !(row.*name).empty())
      options.push_back({row.keys, row.*name, row.say, row.source, row.since});
  }
  return options;
}

}  // namespace

Framework megatron_lm() {
  return {
      .name = "megatron-lm",
      .title = "Megatron-LM",
      .version = "Megatron Core 0.14",
      .phase = Phase::training,
      .options = rows(&Row::flag),
      .missing = {{"stack.graphs_from", "flags of CUDA graphs differ between versions"},
                  {"stack.keep_gathered", "gathered inputs are gathered again in backward"},
                  {"workload.expert_load",
                   "the router deals tokens; --moe-router-force-load-balancing evens them"}},
      .program = [](C of) { return torchrun(of) + " pretrain_gpt.py"; },
      // Asked for where tensor or context parallelism overlaps, before Blackwell; Megatron FSDP asks for its absence.
      .before = [](C of) -> std::string {
        const bool ordered = (of.plan.tensor > 1 || of.plan.context > 1) && !fsdp(of) &&
                             of.setting.system.device.architecture < Architecture::blackwell;
        return ordered ? "export CUDA_DEVICE_MAX_CONNECTIONS=1\n" : "";
      }};
}

Framework nemo() {
  constexpr std::string_view kOfRecipe = "the recipe of the model has it";
  constexpr std::string_view kOfOverlap = "settings of the recipe's MegatronCommOverlapCallback";
  return {
      .name = "nemo",
      .title = "NeMo",
      .version = "NeMo 2.0 (25.09)",
      .phase = Phase::training,
      .kind = FileKind::yaml,
      .file = "nemo.yaml",
      .options = rows(&Row::nemo),
      .missing = {{"model.mlp", kOfRecipe},
                  {"model.vocabulary", kOfRecipe},
                  {"model.tied_embeddings", kOfRecipe},
                  {"model.attention.kind", kOfRecipe},
                  {"model.max_positions", kOfRecipe},
                  {"stack.communication.tensor_overlap", kOfOverlap},
                  {"stack.communication.expert_overlap", kOfOverlap}},
      .program = [](C of) { return torchrun(of) + " train.py nemo.yaml"; },
      .before = [](C /*of*/) -> std::string {
        return "# nemo.yaml: settings of a NeMo 2.0 recipe by their paths. train.py is yours: it makes the\n"
               "# model's pretrain_recipe and sets them.\n";
      }};
}

}  // namespace shardscape::launch
