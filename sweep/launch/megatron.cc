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
#include "sweep/launch/megatron_rows.h"
#include "sweep/space/design_space.h"

namespace shardscape::launch {

namespace {

using C = const Case&;
using namespace megatron;

bool folded(C of) { return of.plan.folds_experts(); }
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

Said sequence_split(C of) {
  if (of.plan.sequence_parallel) return flag();
  if (!of.experts() || of.plan.tensor == 1) return unasked();
  return refused("with experts it asks for --sequence-parallel beside --tensor-model-parallel-size");
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
/// Whether Megatron Core takes the module of a model: moe_act asks for experts, mla_up_proj for latent attention.
bool has_module(C of, RecomputePart part) {
  if (part == RecomputePart::latent_up) return of.shape().latent.has_value();
  return of.experts() || (part != RecomputePart::activations && part != RecomputePart::experts);
}
bool delayed_scales(C of) { return of.workload().precision == PolicyName::fp8; }
bool scales_forbid(C of, RecomputePart part) {
  return delayed_scales(of) && (part == RecomputePart::norms || part == RecomputePart::activations);
}
Said modules(C of) {
  if (of.plan.recompute != Recompute::selective) return unasked();
  std::string words;
  for (const RecomputePart part : of.stack().selective_recompute)
    if (has_module(of, part) && !scales_forbid(of, part))
      words += (words.empty() ? "" : " ") + std::string(module_of(part));
  return value(words);
}
/// What the modules do not say.
Said further_modules(C of) {
  if (of.plan.recompute != Recompute::selective) return unasked();
  const auto forbidden = [&](RecomputePart part) { return has_module(of, part) && scales_forbid(of, part); };
  if (std::ranges::any_of(of.stack().selective_recompute, forbidden))
    return lacks("with the recipe delayed, layernorm and moe_act cannot be computed again");
  const bool dense = !of.experts() || of.shape().expert_layers() < of.shape().layers;
  return of.stack().repeats(RecomputePart::activations) && dense
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
Said moments(C of) {
  if (of.stack().state.moment_bytes == 8) return unasked();
  if (of.stack().state.moment_bytes != 4) return lacks("moments of 4 or 2 bytes each are known");
  return of.plan.zero_stage > 0
             ? flag()
             : lacks("--use-precision-aware-optimizer needs --use-distributed-optimizer, which is zero=1");
}
Said moment_type(C of) { return moments(of).kind == Said::Kind::option ? value("bf16") : unasked(); }
/// The engine keeps weights in fp8 with one scale per tensor, which the recipe delayed has, and no others.
Said narrow_gathers(C of) {
  if (!of.stack().kept.fp8_weights || !delayed_scales(of)) return unasked();
  return of.plan.zero_stage > 0
             ? flag()
             : lacks("--fp8-param-gather needs --use-distributed-optimizer, which is zero=1");
}

Said dispatcher(C of) {
  if (!of.experts() || of.plan.expert == 1) return unasked();
  return value(of.stack().experts.dispatch == ExpertDispatcher::kernels ? "flex" : "alltoall");
}
Said deepep(C of) {
  if (!of.experts() || of.plan.expert == 1) return unasked();
  if (of.stack().experts.dispatch == ExpertDispatcher::hybrid)
    return lacks("HybridEP is chosen by a flag that later versions have");
  return flag_if(of.stack().experts.dispatch == ExpertDispatcher::kernels);
}
Said expert_overlap(C of) {
  if (!of.experts() || of.plan.expert == 1 || of.stack().communication.expert_overlap == 0) return unasked();
  if (of.plan.recompute == Recompute::full)
    return lacks("--overlap-moe-expert-parallel-comm excludes --recompute-granularity full");
  if (of.plan.pipeline > 1 && !of.plan.chunked())
    return lacks(
        "--overlap-moe-expert-parallel-comm needs virtual stages in a pipeline (schedule=interleaved)");
  if (base_precision(of).kind != Said::Kind::option && of.workload().precision != PolicyName::fp16)
    return lacks("--overlap-moe-expert-parallel-comm needs --bf16 or --fp16");
  return flag();
}
/// Without exchanges there is nothing to overlap, and Megatron Core takes the flag with the dispatcher alltoall alone.
Said shared_overlap(C of) {
  const Said exchanges = dispatcher(of);
  if (exchanges.kind != Said::Kind::option || !of.stack().experts.shared_overlap ||
      moe(of).shared_experts == 0)
    return unasked();
  return exchanges.text == "alltoall"
             ? flag()
             : lacks("--moe-shared-expert-overlap needs --moe-token-dispatcher-type alltoall");
}

Said deferred(C of) { return flag_if(of.stack().head.deferred_weight_gradient && of.plan.pipeline > 1); }
Said deferral(C of) {
  const StackProfile::Head& head = of.stack().head;
  const bool set = head.deferred_weight_gradient && of.plan.pipeline > 1 && head.deferral_limit > 0;
  return set ? value(head.deferral_limit) : unasked();
}

constexpr Row kRows[] = {
    {"tp", "--tensor-model-parallel-size", "trainer.strategy.tensor_model_parallel_size",
     SHARDSCAPE_SAY(value(of.plan.tensor))},
    {"pp", "--pipeline-model-parallel-size", "trainer.strategy.pipeline_model_parallel_size",
     SHARDSCAPE_SAY(value(of.plan.pipeline))},
    {"cp", "--context-parallel-size", "trainer.strategy.context_parallel_size",
     SHARDSCAPE_SAY(value(of.plan.context))},
    {"sp", "--sequence-parallel", "trainer.strategy.sequence_parallel", sequence_split},
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
     further_modules},
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
    {"stack.kept.fp8_weights", "--fp8-param-gather", "trainer.plugins.fp8_param_gather", narrow_gathers},
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
     shared_overlap, kMoe},
    {"stack.communication.expert_overlap", "--overlap-moe-expert-parallel-comm", "", expert_overlap, kMoe,
     "0.14"},
    {"stack.head.deferred_weight_gradient", "--defer-embedding-wgrad-compute",
     "model.config.defer_embedding_wgrad_compute", deferred},
    {"stack.head.deferral_limit", "--wgrad-deferral-limit", "model.config.wgrad_deferral_limit", deferral},
};

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
  for (const std::span<const Row> part : {std::span<const Row>(kRows), model_rows()}) {
    for (const Row& row : part) {
      const bool bare = row.flag.empty() && row.nemo.empty();
      if (bare || !(row.*name).empty())
        options.push_back({row.keys, row.*name, row.say, row.source, row.since});
    }
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
