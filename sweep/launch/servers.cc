// Servers: vLLM, SGLang, TensorRT-LLM, and Dynamo, which deploys them.
#include <fmt/format.h>

#include <algorithm>

#include "engine/spec/parallel_groups.h"
#include "engine/spec/plan_axes.h"
#include "sweep/launch/framework.h"
#include "sweep/space/design_space.h"

namespace shardscape::launch {

namespace {

using C = const Case&;
using Pool = Case::Pool;

constexpr std::string_view kVllm = "https://docs.vllm.ai/en/latest/cli/serve.html";
constexpr std::string_view kVllmData = "https://docs.vllm.ai/en/latest/serving/data_parallel_deployment.html";
constexpr std::string_view kVllmPools = "https://docs.vllm.ai/en/latest/features/nixl_connector_usage.html";
constexpr std::string_view kVllmDrafts = "https://docs.vllm.ai/en/latest/features/spec_decode.html";
constexpr std::string_view kSglang = "https://docs.sglang.ai/advanced_features/server_arguments.html";
constexpr std::string_view kSglangPools = "https://docs.sglang.ai/advanced_features/pd_disaggregation.html";
constexpr std::string_view kTrtllm =
    "https://nvidia.github.io/TensorRT-LLM/commands/trtllm-serve/trtllm-serve.html";
constexpr std::string_view kTrtllmArguments = "https://nvidia.github.io/TensorRT-LLM/llm-api/reference.html";
constexpr std::string_view kDynamo = "https://docs.nvidia.com/dynamo/latest/index.html";

const StackProfile::Serving& serving(C of) { return of.stack().serving; }
bool plain_order(C of) {
  // Servers have tensor groups innermost, then pipelines, then replicas; replicas of their own lie anywhere.
  return sweep::same_layout(of.plan, of.plan.order, *parse_rank_order("tp-cp-pp-dp")) ||
         of.plan.pipeline == 1 || of.plan.data == 1;
}
Said server_order(C of) {
  const bool inside = of.plan.tensor == 1 || of.plan.order.front() == PlanAxis::tensor ||
                      sweep::same_layout(of.plan, of.plan.order, kDefaultRankOrder);
  return inside && (plain_order(of) || of.coupled() == 1)
             ? unasked()
             : lacks("a server has its tensor groups side by side, its stages behind them");
}
std::int64_t longest_request(C of) { return of.workload().longest_prompt() + of.workload().longest_output(); }
bool narrow_cache(C of) { return of.setting.policy().kv_cache == Precision::fp8; }
std::int64_t drafts(C of) { return of.workload().load ? of.workload().load->speculation.draft_tokens : 0; }
bool own_drafts(C of) { return of.workload().load->speculation.method == DraftMethod::mtp; }
Said drafted_by_model() { return lacks("give the draft model by hand: how differs between versions"); }
/// The share of the whole memory that weights and cache get, where the study has it of what is left. Near enough for
/// most: programs measure what they need beside.
Said memory_share(C of) { return value(fmt::format("{:.2f}", serving(of).kv_share)); }
Said checkpoint(C of) { return value(of.model); }
Said type(C of, const char* bf16, const char* fp16) {
  switch (of.workload().precision) {
    case PolicyName::bf16:
      return value(bf16);
    case PolicyName::fp16:
      return value(fp16);
    case PolicyName::fp8:
      return unasked();
    case PolicyName::fp32:
    case PolicyName::tf32:
    case PolicyName::fp4:
    case PolicyName::mxfp8:
    case PolicyName::nvfp4:
      break;
  }
  return lacks("the checkpoint brings its format");
}
Said narrow_weights(C of) { return of.workload().precision == PolicyName::fp8 ? value("fp8") : unasked(); }
Said as_unasked(bool is, const char* why) { return is ? unasked() : lacks(why); }
Said scheduler_is(C of, ServingPolicy own, ServingPolicy like, const char* why) {
  const ServingPolicy policy = serving(of).scheduler;
  return as_unasked(policy == own || policy == like, why);
}
constexpr const char* kUnlike = "the study's servers make up iterations in another way";
Said prefixes(C of) { return flag_if(!serving(of).prefix_cache); }

/// Of several nodes.
constexpr const char* kHead = "# $HEAD_ADDR: the address of the first node, the same on all of them\n";

// ---- vLLM: experts lie over all ranks of a program, dealt or split ----

std::int64_t replica_gpus(C of) { return static_cast<std::int64_t>(of.plan.tensor) * of.plan.pipeline; }
/// Whether several nodes have whole replicas of one program.
bool dealt_over_nodes(C of) {
  return of.nodes() > 1 && of.replicas() > 1 && replica_gpus(of) <= of.gpus_per_node;
}
Said vllm_replicas(C of) {
  if (of.replicas() == 1) return unasked();
  if (!dealt_over_nodes(of) || of.gpus_per_node % replica_gpus(of) == 0) return value(of.replicas());
  return refused(
      fmt::format("each node has --data-parallel-size-local whole replicas, and those of {} GPUs do not fill "
                  "a node of {}",
                  replica_gpus(of), of.gpus_per_node));
}
Said vllm_experts(C of) {
  const ParallelPlan& plan = of.plan;
  if (!of.experts() || plan.expert == 1) return unasked();
  if (plan.expert_tensor == 1) return flag();
  return refused(
      "experts are dealt over all ranks of tensor and data parallelism (--enable-expert-parallel), or split "
      "over all of them without it; a flag for an expert-parallel degree would be needed, and there is none");
}
Said vllm_dispatch(C of) {
  if (of.coupled() == 1) return unasked();
  if (serving(of).dispatch == ServedDispatch::all_gather) return unasked();
  return lacks("VLLM_ALL2ALL_BACKEND or --all2all-backend, by version, and what is installed");
}
Said vllm_block(C of) {
  const std::int64_t tokens = serving(of).kv_block;
  const bool known = tokens == 1 || tokens == 8 || tokens == 16 || tokens == 32;
  return known ? value(tokens) : lacks("on these devices it takes 1, 8, 16 or 32");
}
Said vllm_attention(C of) {
  const AttentionKernel kernel = of.stack().attention;
  return as_unasked(kernel == AttentionKernel::flash || kernel == AttentionKernel::flash3,
                    "VLLM_ATTENTION_BACKEND or --attention-config, by version, chooses it");
}
Said vllm_redundant(C of) {
  return of.plan.redundant_experts == 0
             ? unasked()
             : lacks("--enable-eplb has redundant experts, and its settings differ between versions");
}
std::string vllm_drafts(C of) {
  return fmt::format(R"({{"method": "mtp", "num_speculative_tokens": {}}})", drafts(of));
}

}  // namespace

Framework vllm() {
  return {
      .name = "vllm",
      .title = "vLLM",
      .version = "vLLM 0.11",
      .phase = Phase::inference,
      .dense_together = true,
      .options =
          {{"model.", "", checkpoint, kVllm},
           {"tp", "--tensor-parallel-size", [](C of) { return value(of.plan.tensor); }, kVllm},
           {"pp", "--pipeline-parallel-size", [](C of) { return value(of.plan.pipeline); }, kVllm},
           {"dp", "--data-parallel-size", vllm_replicas, kVllmData},
           {"ep etp", "--enable-expert-parallel", vllm_experts, kVllm},
           {"order", "", server_order, kVllm},
           {"pools stack.serving.kv_transfer", "--kv-transfer-config",
            [](C of) {
              if (of.pool == Pool::whole) return unasked();
              if (serving(of).kv_transfer == KvTransfer::per_layer)
                return lacks("NixlConnector sends the cache when the prompt has been read");
              return value(R"({"kv_connector": "NixlConnector", "kv_role": "kv_both"})");
            },
            kVllmPools},
           {"workload.precision", "--dtype", [](C of) { return type(of, "bfloat16", "float16"); }, kVllm},
           {"workload.precision", "--quantization", narrow_weights, kVllm},
           {"stack.serving.fp8_cache", "--kv-cache-dtype",
            [](C of) { return narrow_cache(of) ? value("fp8") : unasked(); }, kVllm},
           {"workload.prompt_tokens workload.output_tokens", "--max-model-len",
            [](C of) { return value(longest_request(of)); }, kVllm},
           {"stack.serving.token_budget", "--max-num-batched-tokens",
            [](C of) { return value(serving(of).token_budget); }, kVllm},
           {"stack.serving.max_batch", "--max-num-seqs", [](C of) { return value(serving(of).max_batch); },
            kVllm},
           {"stack.serving.kv_block", "--block-size", vllm_block, kVllm},
           {"stack.serving.kv_share", "--gpu-memory-utilization", memory_share, kVllm},
           {"stack.serving.prefix_cache", "--no-enable-prefix-caching", prefixes, kVllm},
           {"stack.serving.scheduler", "",
            [](C of) { return scheduler_is(of, ServingPolicy::vllm, ServingPolicy::chunked, kUnlike); },
            kVllm},
           {"stack.serving.queue", "--scheduling-policy",
            [](C of) {
              const QueueOrder queue = serving(of).queue;
              if (queue == QueueOrder::shortest) return lacks("it knows fcfs and priority");
              return queue == QueueOrder::priority ? value("priority") : unasked();
            },
            kVllm},
           {"stack.serving.schedule_ahead", "--async-scheduling",
            [](C of) { return flag_if(of.workload().load.has_value() && serving(of).schedule_ahead > 0); },
            kVllm},
           {"workload.speculation", "--speculative-config",
            [](C of) {
              if (drafts(of) == 0) return unasked();
              return own_drafts(of) ? value(vllm_drafts(of)) : drafted_by_model();
            },
            kVllmDrafts, "0.11.1"},
           {"stack.serving.dispatch", "", vllm_dispatch, kVllmData},
           {"stack.attention", "", vllm_attention, kVllm},
           {"stack.serving.redundant_experts stack.serving.prefill_redundant_experts", "", vllm_redundant,
            kVllm},
           {"", "--distributed-executor-backend",
            [](C of) { return replica_gpus(of) > of.gpus_per_node ? value("ray") : unasked(); }, kVllm},
           {"", "--data-parallel-size-local",
            [](C of) {
              return dealt_over_nodes(of) ? value(of.gpus_per_node / replica_gpus(of)) : unasked();
            },
            kVllmData},
           {"", "--data-parallel-address",
            [](C of) { return dealt_over_nodes(of) ? value("$HEAD_ADDR") : unasked(); }, kVllmData}},
      .missing = {{"workload.concurrency", "what clients send: vllm bench serve --max-concurrency"},
                  {"workload.load", "what clients send: vllm bench serve --request-rate, or a closed loop"},
                  {"stack.serving.routing", "of the router in front of several servers"}},
      .program = [](C /*of*/) -> std::string { return "vllm serve"; },
      .before = [](C of) -> std::string {
        std::string remarks = dealt_over_nodes(of) ? kHead : "";
        if (of.nodes() > 1 && of.replicas() > 1)
          remarks += "# on every further node the same with --headless --data-parallel-start-rank RANK\n";
        return remarks;
      }};
}

namespace {

// ---- SGLang: the ranks of a program are one tensor group, in which attention may be data parallel ----

std::int64_t sglang_ranks(C of) { return of.plan.tensor * of.coupled(); }
Said sglang_dispatch(C of) {
  if (!of.experts() || of.plan.expert == 1 || serving(of).dispatch == ServedDispatch::all_gather)
    return unasked();
  if (of.coupled() > 1) return value("deepep");
  const bool kernels = serving(of).dispatch == ServedDispatch::kernels && of.plan.expert == sglang_ranks(of);
  return kernels ? value("deepep") : unasked();
}
Said sglang_experts(C of) {
  if (!of.experts()) return unasked();
  if (sglang_dispatch(of).kind == Said::Kind::option && of.plan.expert != sglang_ranks(of))
    return refused(
        "--moe-a2a-backend deepep deals experts over all ranks of a program, whatever --ep-size says; a "
        "backend that splits them as well would be needed, and none is known");
  return value(of.plan.expert);
}
Said sglang_attention(C of) {
  if (!of.shape().latent && of.stack().attention == AttentionKernel::flash3) return value("fa3");
  return lacks("unasked it takes the kernel that suits the model and the device");
}
Said sglang_drafts(C of, std::int64_t number) {
  if (drafts(of) == 0) return unasked();
  return own_drafts(of) ? value(number) : drafted_by_model();
}

}  // namespace

Framework sglang() {
  return {
      .name = "sglang",
      .title = "SGLang",
      .version = "SGLang 0.5",
      .phase = Phase::inference,
      .options =
          {{"model.", "--model-path", checkpoint, kSglang},
           {"tp dp", "--tp-size", [](C of) { return value(sglang_ranks(of)); }, kSglang},
           {"dp", "--dp-size", [](C of) { return of.coupled() > 1 ? value(of.coupled()) : unasked(); },
            kSglang},
           {"dp tp", "--enable-dp-attention", [](C of) { return flag_if(of.coupled() > 1); }, kSglang},
           {"pp", "--pp-size",
            [](C of) { return of.plan.pipeline > 1 ? value(of.plan.pipeline) : unasked(); }, kSglang},
           {"ep etp", "--ep-size", sglang_experts, kSglang},
           {"order", "", server_order, kSglang},
           {"pools", "--disaggregation-mode",
            [](C of) {
              if (of.pool == Pool::whole) return unasked();
              return value(of.pool == Pool::prefill ? "prefill" : "decode");
            },
            kSglangPools},
           {"stack.serving.kv_transfer", "--disaggregation-transfer-backend",
            [](C of) { return of.pool == Pool::whole ? unasked() : value("nixl"); }, kSglangPools},
           {"workload.precision", "--dtype", [](C of) { return type(of, "bfloat16", "float16"); }, kSglang},
           {"workload.precision", "--quantization", narrow_weights, kSglang},
           {"stack.serving.fp8_cache", "--kv-cache-dtype",
            [](C of) { return narrow_cache(of) ? value("fp8_e4m3") : unasked(); }, kSglang},
           {"workload.prompt_tokens workload.output_tokens", "--context-length",
            [](C of) { return value(longest_request(of)); }, kSglang},
           {"stack.serving.token_budget", "--chunked-prefill-size",
            [](C of) { return value(serving(of).token_budget * of.coupled()); }, kSglang},
           {"stack.serving.max_batch", "--max-running-requests",
            [](C of) { return value(serving(of).max_batch * of.coupled()); }, kSglang},
           {"stack.serving.kv_block", "--page-size", [](C of) { return value(serving(of).kv_block); },
            kSglang},
           {"stack.serving.kv_share", "--mem-fraction-static", memory_share, kSglang},
           {"stack.serving.prefix_cache", "--disable-radix-cache", prefixes, kSglang},
           {"stack.serving.scheduler", "",
            [](C of) {
              return scheduler_is(of, ServingPolicy::sglang, ServingPolicy::prefill_priority, kUnlike);
            },
            kSglang},
           {"stack.serving.queue", "--schedule-policy",
            [](C of) {
              return serving(of).queue == QueueOrder::fcfs ? value("fcfs") : lacks("it knows no such order");
            },
            kSglang},
           {"stack.serving.schedule_ahead", "--disable-overlap-schedule",
            [](C of) { return flag_if(of.workload().load.has_value() && serving(of).schedule_ahead == 0); },
            kSglang},
           {"stack.serving.two_batch_overlap stack.communication.expert_overlap",
            "--enable-two-batch-overlap",
            [](C of) { return flag_if(serving(of).two_batch_overlap && of.coupled() > 1); }, kSglang},
           {"stack.serving.dispatch stack.experts.fp8_dispatch", "--moe-a2a-backend", sglang_dispatch,
            kSglang},
           {"stack.serving.dispatch", "--deepep-mode",
            [](C of) {
              if (of.coupled() == 1 || serving(of).dispatch != ServedDispatch::kernels) return unasked();
              return value(of.pool == Pool::prefill  ? "normal"
                           : of.pool == Pool::decode ? "low_latency"
                                                     : "auto");
            },
            kSglang},
           {"stack.serving.redundant_experts stack.serving.prefill_redundant_experts",
            "--ep-num-redundant-experts",
            [](C of) { return of.plan.redundant_experts > 0 ? value(of.plan.redundant_experts) : unasked(); },
            kSglang},
           {"workload.speculation", "--speculative-algorithm",
            [](C of) {
              if (drafts(of) == 0) return unasked();
              return own_drafts(of) ? value("EAGLE") : drafted_by_model();
            },
            kSglang},
           {"workload.speculation", "--speculative-num-steps",
            [](C of) { return sglang_drafts(of, drafts(of)); }, kSglang},
           {"workload.speculation", "--speculative-eagle-topk", [](C of) { return sglang_drafts(of, 1); },
            kSglang},
           {"workload.speculation", "--speculative-num-draft-tokens",
            [](C of) { return sglang_drafts(of, drafts(of) + 1); }, kSglang},
           {"stack.attention", "--attention-backend", sglang_attention, kSglang},
           {"", "--nnodes", [](C of) { return of.nodes() > 1 ? value(of.nodes()) : unasked(); }, kSglang},
           {"", "--node-rank", [](C of) { return of.nodes() > 1 ? value("$NODE_RANK") : unasked(); },
            kSglang},
           {"", "--dist-init-addr",
            [](C of) { return of.nodes() > 1 ? value("$HEAD_ADDR:5000") : unasked(); }, kSglang}},
      .missing = {{"workload.concurrency", "what clients send: sglang.bench_serving --max-concurrency"},
                  {"workload.load",
                   "what clients send: sglang.bench_serving --request-rate, or a closed loop"},
                  {"stack.serving.routing", "of the router in front of several servers"}},
      .program = [](C /*of*/) -> std::string { return "python3 -m sglang.launch_server"; },
      .before = [](C of) -> std::string { return of.nodes() > 1 ? kHead : ""; }};
}

namespace {

// ---- TensorRT-LLM: as SGLang, where attention is data parallel it is not split ----

Said attention_data(C of) {
  if (of.coupled() == 1) return unasked();
  if (of.plan.tensor == 1) return value("true");
  return refused(
      "enable_attention_dp has attention whole on every rank; an option for a tensor-parallel degree of "
      "attention beside it would be needed, and there is none");
}
Said trtllm_precision(C of) {
  return of.workload().precision == PolicyName::bf16 ? unasked() : lacks("the checkpoint brings its format");
}

}  // namespace

Framework trtllm() {
  return {
      .name = "trtllm",
      .title = "TensorRT-LLM",
      .version = "TensorRT-LLM 1.0",
      .phase = Phase::inference,
      .kind = FileKind::yaml,
      .file = "trtllm.yaml",
      .options =
          {{"model.", "", checkpoint, kTrtllm},
           {"tp dp", "--tp_size", [](C of) { return value(sglang_ranks(of)); }, kTrtllm},
           {"pp", "--pp_size", [](C of) { return value(of.plan.pipeline); }, kTrtllm},
           {"ep etp", "--ep_size", [](C of) { return of.experts() ? value(of.plan.expert) : unasked(); },
            kTrtllm},
           {"dp tp", "enable_attention_dp", attention_data, kTrtllmArguments},
           {"stack.serving.balance_wait stack.serving.attention_ranks", "attention_dp_config.enable_balance",
            [](C of) { return of.coupled() > 1 && serving(of).balance_wait > 0 ? value("true") : unasked(); },
            kTrtllmArguments},
           {"stack.serving.balance_wait", "attention_dp_config.timeout_iters",
            [](C of) {
              return of.coupled() > 1 && serving(of).balance_wait > 0 ? value(serving(of).balance_wait)
                                                                      : unasked();
            },
            kTrtllmArguments},
           {"order", "", server_order, kTrtllm},
           {"pools stack.serving.kv_transfer", "cache_transceiver_config.backend",
            [](C of) { return of.pool == Pool::whole ? unasked() : value("DEFAULT"); }, kTrtllmArguments},
           {"workload.precision", "", trtllm_precision, kTrtllmArguments},
           {"stack.serving.fp8_cache", "kv_cache_config.dtype",
            [](C of) { return narrow_cache(of) ? value("fp8") : unasked(); }, kTrtllmArguments},
           {"workload.prompt_tokens workload.output_tokens", "--max_seq_len",
            [](C of) { return value(longest_request(of)); }, kTrtllm},
           {"stack.serving.token_budget", "--max_num_tokens",
            [](C of) { return value(serving(of).token_budget); }, kTrtllm},
           {"stack.serving.max_batch", "--max_batch_size", [](C of) { return value(serving(of).max_batch); },
            kTrtllm},
           {"stack.serving.kv_share", "--kv_cache_free_gpu_memory_fraction", memory_share, kTrtllm},
           {"stack.serving.kv_block", "",
            [](C of) {
              return as_unasked(serving(of).kv_block == 32, "its option differs between versions");
            },
            kTrtllmArguments},
           {"stack.serving.prefix_cache", "kv_cache_config.enable_block_reuse",
            [](C of) { return value(serving(of).prefix_cache ? "true" : "false"); }, kTrtllmArguments},
           {"stack.serving.kv_growth", "scheduler_config.capacity_scheduler_policy",
            [](C of) {
              return value(serving(of).kv_growth == KvGrowth::on_demand ? "MAX_UTILIZATION"
                                                                        : "GUARANTEED_NO_EVICT");
            },
            kTrtllmArguments},
           {"stack.serving.scheduler", "",
            [](C of) { return scheduler_is(of, ServingPolicy::trtllm, ServingPolicy::trtllm, kUnlike); },
            kTrtllm},
           {"stack.serving.schedule_ahead", "disable_overlap_scheduler",
            [](C of) {
              const bool none = of.workload().load.has_value() && serving(of).schedule_ahead == 0;
              return none ? value("true") : unasked();
            },
            kTrtllmArguments},
           {"workload.speculation", "speculative_config.decoding_type",
            [](C of) {
              if (drafts(of) == 0) return unasked();
              return own_drafts(of) ? value("MTP") : drafted_by_model();
            },
            kTrtllmArguments},
           {"workload.speculation", "speculative_config.num_nextn_predict_layers",
            [](C of) { return drafts(of) > 0 && own_drafts(of) ? value(drafts(of)) : unasked(); },
            kTrtllmArguments},
           {"stack.attention", "",
            [](C of) {
              return as_unasked(of.stack().attention == AttentionKernel::trtllm,
                                "attn_backend has no such kernel");
            },
            kTrtllmArguments},
           {"stack.serving.dispatch", "",
            [](C of) {
              return as_unasked(serving(of).dispatch != ServedDispatch::kernels,
                                "it chooses how tokens are exchanged");
            },
            kTrtllmArguments},
           {"", "--gpus_per_node", [](C of) { return of.nodes() > 1 ? value(of.gpus_per_node) : unasked(); },
            kTrtllm}},
      .missing = {{"workload.concurrency", "what clients send"},
                  {"workload.load", "what clients send"},
                  {"stack.serving.redundant_experts",
                   "moe_config.load_balancer takes a file with the slots of each layer"},
                  {"stack.serving.prefill_redundant_experts", "as redundant_experts"},
                  {"stack.serving.routing", "of the router in front of several servers"}},
      .program = [](C of) -> std::string {
        // On several nodes the launcher starts a process a GPU, one of which serves.
        const std::string ranks =
            of.nodes() > 1 ? fmt::format("mpirun -n {} trtllm-llmapi-launch ", of.gpus()) : std::string();
        return ranks + "trtllm-serve serve";
      },
      .before = [](C /*of*/) -> std::string { return ""; }};
}

Framework dynamo() {
  return {.name = "dynamo",
          .title = "NVIDIA Dynamo",
          .version = "Dynamo 0.6",
          .phase = Phase::inference,
          .kind = FileKind::yaml,
          .file = "dynamo.yaml",
          .options = {{"dp", "spec.services.*.replicas", [](C of) { return value(of.programs()); }, kDynamo},
                      {"pools", "spec.services.*.subComponentType",
                       [](C of) {
                         if (of.pool == Pool::whole) return unasked();
                         return value(of.pool == Pool::prefill ? "prefill" : "decode");
                       },
                       kDynamo},
                      {"stack.serving.routing", "spec.services.Frontend: --router-mode",
                       [](C of) {
                         switch (serving(of).routing) {
                           case Routing::round_robin:
                             return value("round-robin");
                           case Routing::prefix_aware:
                             return value("kv");
                           case Routing::least_loaded:
                             break;
                         }
                         return lacks("--router-mode knows round-robin, random and kv");
                       },
                       kDynamo},
                      {"", "spec.services.*.resources.limits.gpu",
                       [](C of) { return value(std::min(of.gpus(), of.gpus_per_node)); }, kDynamo},
                      {"", "spec.services.*.multinode.nodeCount",
                       [](C of) { return of.nodes() > 1 ? value(of.nodes()) : unasked(); }, kDynamo}},
          .missing = {},
          .program = [](C /*of*/) -> std::string { return "kubectl apply -f dynamo.yaml"; },
          .before = [](C /*of*/) -> std::string { return ""; }};
}

}  // namespace shardscape::launch
