// A software-stack profile: what the framework, its kernels and its communication library do with the
// hardware. Named constants, each with a unit, none of them per case. YAML keys carry the same names, nested
// alike.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/enum_names.h"
#include "engine/base/problems.h"
#include "engine/base/quantity.h"
#include "engine/spec/collective_algorithm.h"
#include "engine/spec/device.h"
#include "engine/spec/fabric_spec.h"
#include "engine/spec/kept_activations.h"
#include "engine/spec/node_collectives.h"
#include "engine/spec/plan.h"
#include "engine/spec/precision_policy.h"

namespace shardscape {

/// The attention core. In all but the first the score matrix never leaves SRAM.
///   naive        the score matrix is written and read back
///   flash        FlashAttention-2 (Dao 2023), at the rates that the device gives for it
///   flash_alibi  FlashAttention-2 that adds a bias to each score (ALiBi)
///   flash3       FlashAttention-3 (Shah et al. 2024) on Hopper and later, FlashAttention-2 before
///   cudnn        the fused attention of cuDNN 9, which Transformer Engine calls
///   trtllm       the kernels of TensorRT-LLM for prompts and decoding
enum class AttentionKernel : std::uint8_t { naive, flash, flash_alibi, flash3, cudnn, trtllm };
constexpr bool is_fused(AttentionKernel kernel) { return kernel != AttentionKernel::naive; }

/// How layers are split over the stages (model/partition.h).
///   uniform   every stage holds the same number, by which the layers must divide
///   balanced  contiguous split by cumulative compute cost, the head counted
///   with_ends as uniform; where the layers do not divide, embedding and loss count as a layer each (Megatron
///             Core: account_for_embedding_in_pipeline_split, account_for_loss_in_pipeline_split); models with experts
///             as uneven
///   uneven    as with_ends; where neither divides, the layers fill the stages from the first on, and the last has
///             what is left, with the modules of further tokens and the loss counted as a layer each
enum class PartitionRule : std::uint8_t { uniform, balanced, with_ends, uneven };

/// What happens to the gradients of a microbatch under ZeRO-2: they are reduced and scattered at once, or
/// kept whole until the last microbatch.
enum class Zero2Gradients : std::uint8_t { per_microbatch, last_microbatch };

/// How a server fills its iterations (engine/serving).
///   prefill_priority  waiting prompts are read whole while decoding pauses
///   chunked           prompts are read in pieces beside the decoding sequences
/// The rules of three programs (engine/serving/live), which in the steady closed loop count as one of these:
///   vllm              chunked; blocks of the cache are taken as sequences grow, the youngest is preempted and
///                     read again where they run out
///   sglang            prompts alone, in pieces, while decoding pauses; as prefill_priority
///   trtllm            whole prompts beside the decoding sequences; as chunked
enum class ServingPolicy : std::uint8_t { prefill_priority, chunked, vllm, sglang, trtllm };
struct ServingRow {
  ServingPolicy policy;
  std::string_view name;
  bool beside;         ///< prompts are read beside decoding sequences rather than while these pause
  bool whole = false;  ///< prompts are read as a whole, not in chunks, where they are simulated one by one
  bool on_demand = false;  ///< what KvGrowth::usual means: blocks are taken as sequences grow
};
inline constexpr auto kServingPolicies = std::to_array<ServingRow>({
    {ServingPolicy::prefill_priority, "prefill_priority", false, true},
    {ServingPolicy::chunked, "chunked", true},
    {ServingPolicy::vllm, "vllm", true, false, true},
    {ServingPolicy::sglang, "sglang", false, false, true},
    {ServingPolicy::trtllm, "trtllm", true, true},
});
constexpr auto list_of_names(ServingPolicy /*value*/) {
  return names_of_table(kServingPolicies, &ServingRow::policy);
}
constexpr const ServingRow& row_of(ServingPolicy policy) {
  return kServingPolicies[static_cast<std::size_t>(policy)];
}
constexpr bool reads_beside(ServingPolicy policy) { return row_of(policy).beside; }

/// When a request takes the blocks of its cache: those of its last token at once (no sequence is ever evicted), or as
/// it grows. `usual`: as it grows in vLLM and SGLang, else at once (TensorRT-LLM: GUARANTEED_NO_EVICT; as it grows is
/// MAX_UTILIZATION).
enum class KvGrowth : std::uint8_t { usual, reserved, on_demand };

/// In which order waiting requests are admitted: as they came, the shortest prompt first, or by the priority that a
/// trace gives them.
enum class QueueOrder : std::uint8_t { fcfs, shortest, priority };

/// Replicas with attention of their own that share experts (data-parallel attention) in a simulated load. alike: all do
/// the same, each with its share of the requests. dealt: requests come to all of them together and are dealt out; an
/// iteration lasts as long as that of the one with most to do.
enum class AttentionRanks : std::uint8_t { alike, dealt };

/// Which replica gets a request: one after the other, the one with the fewest unfinished ones, or (prefix_aware) the
/// one that has most of the prompt in its cache (engine/serving/live/serve_load.h).
enum class Routing : std::uint8_t { round_robin, least_loaded, prefix_aware };

/// When the cache of a prompt leaves for the pool that decodes: when all of the prompt has been read (vLLM's
/// connectors; DistServe, Zhong et al. 2024), or each layer's as soon as that layer is done (Splitwise, Patel
/// et al. 2024).
enum class KvTransfer : std::uint8_t { after_prefill, per_layer };

/// The precision of the pool that prefills, by the name of a policy (spec/precision_policy.h); alike: that of the
/// workload, as in the pool that decodes.
enum class PrefillPrecision : std::uint8_t { alike, fp32, tf32, bf16, fp16, fp8, fp4, mxfp8, nvfp4 };
/// The policy of that pool, where the other one has `decode`.
constexpr PolicyName policy_name(PrefillPrecision prefill, PolicyName decode) {
  return prefill == PrefillPrecision::alike ? decode : static_cast<PolicyName>(static_cast<int>(prefill) - 1);
}

/// Who sends the tokens of a training step to the ranks of their experts: the collective library by all-to-all
/// (Megatron Core's dispatcher `alltoall`), or kernels of their own, which send a token once to each rank or node
/// that needs it: at the pace of DeepEP's (network/collectives/expert_dispatch.h), or, as HybridEP, which sorts tokens
/// as it sends them and leaves the copies to the engines of NVLink, at that of the links.
enum class ExpertDispatcher : std::uint8_t { library, kernels, hybrid };

/// Which exchanges of experts run beside another pass: all, or those alone that leave an NVLink domain.
enum class OverlappedExchanges : std::uint8_t { everywhere, between_domains };

/// How the ranks of a context group meet each other's keys and values in training.
///   ring    piece by piece, one more in every step (Liu et al. 2023, Ring Attention; Transformer Engine: p2p): each
///           step leaves partial results, which are merged
///   gather  all of them before one attention over all keys (Llama 3; Transformer Engine: all_gather)
enum class ContextExchange : std::uint8_t { ring, gather };

/// How a server's tokens reach experts that lie over several of its replicas (data-parallel attention).
///   all_gather  every rank gets the tokens of all, and sums of its experts' outputs go back: an all-gather, a
///               reduce-scatter (vLLM's default)
///   all_to_all  each rank gets the tokens that chose one of its experts, once each, and sends the results back
///   kernels     DeepEP's kernels do that (network/collectives/expert_dispatch.h): the normal ones in iterations that
///               read prompts, the low-latency ones where all sequences decode (SGLang: deepep-mode auto; DeepSeek's
///               own server)
///   trtllm      TensorRT-LLM's choice: all_to_all where experts lie over more ranks than a token has experts, else
///               all_gather, with prompts_summed; tokens whose experts multiply in 4 bits leave in these, and are never
///               summed
enum class ServedDispatch : std::uint8_t { all_gather, all_to_all, kernels, trtllm };

struct StackProfile {
  /// The host's own timeline: a block cannot finish before the host has launched it.
  struct Host {
    Seconds forward_layer;   ///< launching one block's forward
    Seconds backward_layer;  ///< launching one block's backward
    Seconds per_collective;  ///< added per collective call in a block
    /// A second thread beside the launches: per collective call and rank of its group, for libraries that
    /// cut and copy one tensor for each rank or drive each rank's transfers from the host. A block's pass
    /// takes at least the longer of the two.
    Seconds per_collective_rank;
    /// Before each pass of a chunk in a pipeline: messages posted and awaited, buffers freed, the loop over passes.
    Seconds stage_pass;
    Seconds step_fixed;  ///< once per step: data loading, logging, optimizer loop set-up
    /// The same in training whose passes are CUDA graphs (Setting::training_host); 0: no passes are.
    Seconds graph_step;
    Seconds decode_layer;       ///< launching one block of one decode step
    Seconds decode_step_fixed;  ///< once per decode step: sampling, scheduling
    Seconds decode_gap;         ///< device idle between the kernels of one block in inference, always paid
    Seconds decode_sequence;    ///< per sequence and iteration: sampling, detokenising, streaming a token
    /// Per sequence of all replicas and iteration: what one process does for all of them before the next iteration.
    Seconds decode_stream;
    /// Per sequence and iteration that verifies drafts, beside decode_sequence: what the host does with the accepted
    /// tokens before it can launch anything, as nothing is scheduled ahead of them.
    Seconds draft_sequence;
    friend bool operator==(const Host&, const Host&) = default;
  };
  struct Communication {
    Seconds call;                 ///< fixed cost of one collective call
    Seconds rank_step;            ///< latency of one step of a collective's algorithm, beside the links' own
    Seconds rank_step_scale_out;  ///< same for a step that crosses the scale-out network; 0: as rank_step
    /// Time of a collective's own copies and reductions over what the memory would need for their reads and
    /// writes at its peak rate (network::AlgorithmRules::copied), 0..10. 0: they cost nothing beside the wire; 1.5: its
    /// kernels, on a few SMs, reach two thirds of the peak.
    double local_copy = 0;
    double scale_up_fraction = 1;   ///< achieved share of link bandwidth inside the scale-up domain
    double scale_out_fraction = 1;  ///< same on the scale-out network, between two nodes
    /// The factor that each doubling of the nodes of the job puts on scale_out_fraction, 0..1: collisions of routes and
    /// stragglers on a network that is not a crossbar.
    double scale_out_scaling = 1;
    /// scale_out_fraction * scale_out_scaling^(log2(nodes) - 1) on a job that fills this fabric.
    [[nodiscard]] double scale_out_share(const FabricSpec& fabric) const;
    double tensor_overlap = 0;   ///< share of TP communication hidden behind compute, 0..1
    double context_overlap = 0;  ///< share of CP communication hidden behind attention, 0..1
    ContextExchange context_exchange = ContextExchange::ring;
    double data_overlap = 0;  ///< share of the last microbatch's backward that can hide DP traffic, 0..1
    /// Share of the time hidden behind compute by traffic beside every microbatch (gathers of ZeRO-3, scatters of
    /// ZeRO-2) that is a real gain, 0..1; the rest is lost to compute, which shares SMs and memory with it.
    double data_hidden = 1;
    /// SMs that kernels of the library take from compute while traffic that goes once a step is under way beside it
    /// (gradients, and the gather of updated weights), 0..1000. 0: none.
    double data_sms = 0;
    /// Share of the first microbatch's forward that can hide the gather of updated weights (ZeRO-1 and 2), 0..1
    /// (Megatron Core: overlap_param_gather).
    double gather_overlap = 0;
    /// Share of the exchanges of experts that can hide behind the compute of another microbatch's opposite pass, 0..1,
    /// where passes run in pairs (schedule/pipeline.h). Above 0 interleaved schedules and single stages run them so
    /// (Megatron Core: overlap_moe_expert_parallel_comm).
    double expert_overlap = 0;
    OverlappedExchanges overlapped_exchanges = OverlappedExchanges::everywhere;
    /// Share of the time hidden so that is a real gain, 0..1; the rest is lost to compute, which shares SMs with
    /// exchanges.
    double expert_hidden = 1;
    bool pipeline_async = false;  ///< stage sends overlap with the next operator
    /// Stage boundaries are cut over the tensor group, sent in parts and gathered again (Narayanan et al.
    /// 2021, section 4.1).
    bool scatter_boundaries = false;
    Bytes bucket;           ///< gradient bucket: DP calls = bytes / bucket
    Bytes zero_bucket;      ///< same under ZeRO; 0: as bucket
    Bytes bucket_per_rank;  ///< a bucket holds at least this for each rank of its group
    /// The algorithms of the library; each call takes the cheapest. A ring serves where none of them fits a group.
    std::vector<Algorithm> algorithms = {Algorithm::ring, Algorithm::dimension_wise};
    /// Calls inside a node take what the device's protocols do (network/collectives/protocols.h), where it has
    /// constants.
    bool protocols = false;
    /// The kernels that all-reduce inside a node; other than the library only with `protocols`.
    AllReduceKernels all_reduce = AllReduceKernels::library;
    /// The algorithms whose operations the engine prices.
    static std::vector<Algorithm> all_algorithms();
    friend bool operator==(const Communication&, const Communication&) = default;
  };
  /// Bytes per parameter of each copy that training keeps. The compute copy of the weights follows the
  /// precision.
  struct State {
    double gradient_bytes = 4;       ///< accumulation buffer
    double gradient_comm_bytes = 4;  ///< bytes per parameter that DP sends
    double master_bytes = 4;
    double moment_bytes = 8;  ///< both Adam moments
    friend bool operator==(const State&, const State&) = default;
  };
  /// Costs of casts to 8 and 4 bits in training, where they are kernels of their own.
  struct Quantisation {
    /// Time of the casts of an input or output gradient of a product, over the time to read it and write its row-wise
    /// and its column-wise copy once, 0..10. 0: the kernels before them write the copies.
    double passes = 0;
    /// Bytes of HBM traffic per weight of a product and microbatch, 0..100: casts, scales, sums of gradients.
    double weight_bytes = 0;
    friend bool operator==(const Quantisation&, const Quantisation&) = default;
  };
  /// Tensors of training that are kept in another format than they are computed in.
  struct Kept {
    /// Output of fused attention cores. If narrow, one tensor serves their own backward and the weight gradient of the
    /// product behind them; otherwise each keeps one of its own.
    KeptFormat attention_output = KeptFormat::computed;
    KeptFormat activation_inputs = KeptFormat::computed;  ///< inputs of the nonlinearity of MLPs and experts
    /// Whether weights of fp8 products are kept in fp8 alone rather than in bf16 beside their copies
    /// (PrecisionPolicy::keep_narrow_weights).
    bool fp8_weights = false;
    friend bool operator==(const Kept&, const Kept&) = default;
  };
  /// Layers of experts in training, beside what all layers have; `dispatch_sms` and `fp8_dispatch` of servers with
  /// kernels of their own, too (ServedDispatch).
  struct Experts {
    ExpertDispatcher dispatch = ExpertDispatcher::library;
    std::int64_t dispatch_sms = 20;  ///< SMs that kernels of dispatch run on, 1..1000; 20 is DeepEP's default
    /// Tokens go out in fp8 where products are of 8 bits or fewer (DeepSeek-V3, arXiv:2412.19437, section 3.3.2);
    /// all that comes back, and gradients, stay as they are.
    bool fp8_dispatch = false;
    /// Host time per layer beside a block's other launches: router, sorting, permutation, dispatch.
    Seconds forward_layer, backward_layer;
    /// Host time for each expert of all ranks, in both passes: loops over the chunks of a dispatch.
    Seconds per_expert;
    /// Time the device waits in each forward pass of a layer until the host has read how many tokens each expert gets
    /// and launched what depends on it (dropless routing).
    Seconds load_wait;
    /// Experts with biases run as fused as those without; false: activation, weighting by the router and the second
    /// bias are plain operators, each of which streams its tensors (model/mlp/expert_biases.h).
    bool fused_bias = true;
    /// Host time for each kernel of these plain operators, beside a block's other launches.
    Seconds plain_launch;
    /// In training the first product of the shared experts, with its nonlinearity, runs beside the dispatch of a layer,
    /// the second one beside the combine (Megatron Core: moe_shared_expert_overlap). Not where passes run in pairs.
    bool shared_overlap = false;
    friend bool operator==(const Experts&, const Experts&) = default;
  };
  /// How the LM head is trained.
  struct Head {
    /// The head's weight gradients wait until the last stage has run its last backward (spec/deferred_head.h).
    bool deferred_weight_gradient = false;
    /// Defer the first so many microbatches of a step, 0..1e6; 0: all of them.
    std::int64_t deferral_limit = 0;
    friend bool operator==(const Head&, const Head&) = default;
  };
  /// Settings of continuous batching. The defaults are those of TensorRT-LLM (max_num_tokens,
  /// kv_cache_free_gpu_mem_fraction) and vLLM (max_num_seqs, block_size).
  struct Serving {
    ServingPolicy scheduler = ServingPolicy::chunked;
    std::int64_t token_budget = 8192;  ///< the most tokens of one iteration; chunked: at least max_batch
    std::int64_t max_batch = 256;      ///< requests running at once, per replica and pipeline group
    std::int64_t kv_block = 16;        ///< tokens of one block of the key-value cache
    /// Share of the memory left by weights, activations and reserve that the cache gets.
    double kv_share = 0.9;
    // The following members apply only to loads that are simulated request by request (spec/request_load.h).
    KvGrowth kv_growth = KvGrowth::usual;
    double kv_watermark = 0;  ///< share of the cache's blocks that admission leaves free, 0..1
    QueueOrder queue = QueueOrder::fcfs;
    Routing routing = Routing::round_robin;
    AttentionRanks attention_ranks = AttentionRanks::alike;
    /// Of dealt requests: decode iterations for which prompts wait until there is one for each rank (TensorRT-LLM,
    /// attention_dp_config: enable_balance, timeout_iters): its counter starts anew whenever prompts are read. 0: none
    /// waits.
    std::int64_t balance_wait = 0;
    bool prefix_cache = true;  ///< blocks of earlier requests that begin alike are used again
    /// Of the host's memory and of a disk, per device: room for blocks that the device has no room for, and the rate at
    /// which they come back. 0: none.
    Bytes host_cache, disk_cache;
    BytesPerSecond host_bandwidth{50e9};  ///< of PCIe 5.0 x16, 64 GB/s, some four fifths
    BytesPerSecond disk_bandwidth{5e9};   ///< an NVMe disk of PCIe 4.0, 7 GB/s, for each device
    std::int64_t poll_interval = 1;       ///< decode iterations between looks at new requests (SGLang)
    /// Iterations that are launched before the one that a request may join is made up: a scheduler that works beside
    /// the device (vLLM: async scheduling; TensorRT-LLM and SGLang: overlap scheduling) has the next one fixed when one
    /// ends.
    std::int64_t schedule_ahead = 0;
    /// Of two pools: how many iterations its sequence takes part in where it decodes until the client has the first
    /// token, as that server answers: it looks at what has arrived between iterations, has the next one fixed
    /// (schedule_ahead), and answers with a token of its own (vLLM's NIXL connector meets the last token of a prompt
    /// again; SGLang and TensorRT-LLM under Dynamo stream what the decoding worker gives). 0: as the cache arrives.
    std::int64_t answer_after = 0;
    /// Of two pools: prompts of which a rank of a server that reads takes something into an iteration; 0: as many as
    /// the token budget holds.
    std::int64_t pool_prompts = 0;
    Seconds frontend;  ///< from sending a request until the scheduler may see it: HTTP, tokenizer
    /// The least cost of an iteration that reads a prompt, which runs without CUDA graphs: once, and for each layer of
    /// the model, or each that has experts, whose kernels the host launches one by one.
    Seconds eager_floor, eager_layer, eager_expert_layer;
    /// Beside these, of each layer whose experts multiply in 4 bits: kernels that quantise and order their inputs.
    Seconds eager_fp4_layer;
    /// What the first iteration of a run takes longer that reads a prompt: kernels that are compiled, tuned or loaded
    /// when they are first met, which a warm-up by copies of one prompt does not meet.
    Seconds first_prompts;
    /// Iterations of at most so many tokens are captured as graphs all the same.
    std::int64_t graph_tokens = 0;
    /// Where products are of 8 bits or fewer, the key-value cache and attention are fp8, too (checkpoints with
    /// kv_cache_quant_algo: FP8, which TensorRT-LLM serves so); elsewhere they stay as the policy has them.
    bool fp8_cache = false;
    /// As fp8_cache, but only for mixtures of experts on devices with units of 4 bits, whose recipes ask for it (vLLM's
    /// of gpt-oss on Blackwell, SGLang's of DeepSeek-R1: kv-cache-dtype fp8).
    bool fp8_cache_blackwell = false;
    /// Rate of expert products whose 4-bit weights are converted before they are multiplied, relative to other
    /// products, above 0, at most 1: these kernels have no asynchronous products and small tiles.
    double converted_share = 1;
    /// The same of expert products in fp8, above 0, at most 1: kernels of engines for 8 bits reach less of their peak
    /// than those for 16 bits, whose rates devices have. Not of tokens that DeepEP's kernels send to their experts
    /// (dispatch: kernels): they come as DeepGEMM wants them, which reaches that of other products (its README).
    double fp8_expert_share = 1;
    /// The same of other products in fp8 of models that are published with a scale for each block of values
    /// (ModelSpec::fp8_block_scales), on Hopper: partial sums leave its matrix units for every 128 of depth, where
    /// Blackwell's scale blocks themselves (DeepSeek-V3, arXiv:2412.19437, sections 3.3.2 and 3.5.2).
    double fp8_block_share = 1;
    /// Beside fp8_expert_share of prompts on Blackwell, above 0, at most 1: kernels for checkpoints with a scale for
    /// each 128 values gain nothing from its faster units for 8 bits (found, not documented).
    double fp8_blackwell_share = 1;
    KvTransfer kv_transfer = KvTransfer::after_prefill;            ///< disaggregated serving only
    PrefillPrecision prefill_precision = PrefillPrecision::alike;  ///< likewise
    ServedDispatch dispatch = ServedDispatch::all_gather;
    /// Where prompts are read, of which ranks have unequal numbers of tokens, each adds its own to a buffer of zeros
    /// for those of all, and the outputs are summed in full: two all-reduces, whatever `dispatch` says but for trtllm,
    /// which chooses itself (SGLang without a back end that sends tokens to experts: its padding SUM_LEN).
    bool prompts_summed = false;
    /// Copies of experts beyond one of each, where a plan deals them over ranks (compute/expert_replicas.h), 0..1e6; in
    /// the pool that decodes and, where there is one, in the pool that prefills.
    std::int64_t redundant_experts = 0, prefill_redundant_experts = 0;
    /// Iterations run as two half batches, one of which computes while the other's tokens are on their way to experts
    /// and back (step/layers/two_batches.h). The share communication.expert_overlap of that time is hidden.
    bool two_batch_overlap = false;
    /// Where experts have ranks of their own: batches of an iteration that take turns on these and on those of
    /// attention, 1..64 (MegaScale-Infer: three or four hide exchanges that take up to half as long as the work of a
    /// layer; Step-3: three).
    std::int64_t ffn_batches = 3;
    friend bool operator==(const Serving&, const Serving&) = default;
  };
  struct Memory {
    Bytes reserve;             ///< context, NCCL buffers, workspace: counted on every device
    Bytes workspace;           ///< scratch of matrix and reduction kernels, from the framework's allocator
    double fragmentation = 1;  ///< reserved / allocated of activations, >= 1
    friend bool operator==(const Memory&, const Memory&) = default;
  };

  std::string name;
  AttentionKernel attention = AttentionKernel::flash;
  /// Training of models with attention sinks runs `attention` from this architecture on, `naive` before it: fused
  /// kernels learned sinks late. `other`: everywhere.
  Architecture fused_sinks_from = Architecture::other;
  /// The first architecture on which the passes of dense models are CUDA graphs in training, with `host.graph_step`.
  Architecture graphs_from = Architecture::other;
  PartitionRule partition = PartitionRule::uniform;
  /// Training: layout in place of the rule, see spec/pipeline_layout.h; empty: none.
  std::string pipeline_layout;
  Zero2Gradients zero2_gradients = Zero2Gradients::per_microbatch;
  bool fused_loss = false;  ///< cross-entropy keeps no fp32 copy of the logits
  /// Norms and gated activations are one kernel each. Else, as with the plain operators of PyTorch, a norm
  /// casts its input to fp32, keeps that copy for backward and casts its result, and a gated activation
  /// writes and keeps the output of its nonlinearity before it multiplies.
  bool fused_pointwise = true;
  /// The norm behind a residual addition does it in its kernel, which reads and writes both tensors (vLLM and SGLang:
  /// fused_add_rms_norm; TensorRT-LLM likewise). Forward only.
  bool fused_residual = false;
  bool keep_gathered = false;  ///< gathered TP/SP inputs are saved, not gathered again in backward
  std::vector<RecomputePart> selective_recompute = {RecomputePart::attention_core};
  [[nodiscard]] bool repeats(RecomputePart part) const {
    return std::ranges::find(selective_recompute, part) != selective_recompute.end();
  }
  Seconds zero_slice;  ///< ZeRO-1/2: time per tensor and DP rank, once per step
  Host host;
  Communication communication;
  Serving serving;
  State state;
  Quantisation quantisation;
  Kept kept;
  Experts experts;
  Head head;
  Memory memory;

  [[nodiscard]] Problems validate() const;
  friend bool operator==(const StackProfile&, const StackProfile&) = default;
};

}  // namespace shardscape
