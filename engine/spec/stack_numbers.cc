// The table of a stack profile's numbers, one row each: path and field, range, meaning, how far measurements may move
// it, and whether a file must have it.
#include "engine/spec/spec_numbers.h"

#include <string_view>

#include "engine/spec/ranges.h"

namespace shardscape {

namespace {

using namespace ranges;
using enum FitActsOn;
using enum FitScale;

constexpr std::string_view kHostRange = "from one kernel launch to an eager framework on a slow host";
constexpr std::string_view kDecodeRange = "from a replayed graph to eager launches";
constexpr std::string_view kStepRange = "from an empty step to a loop that saves and logs";
constexpr FitRule kOverlap{time, linear, 0.0, 1.0, "nothing hidden to everything hidden", 0.3};

/// The path and the accessor of a field.
#define SHARDSCAPE_NUMBER(FIELD) \
#FIELD, [](StackProfile & s) -> auto& { return s.FIELD; }

// Widths of priors: 0.7 means "within a factor of two" (1 sigma) and is for times that depend on host and framework
// version; 0.2 is the scatter of vendors' and users' figures for achieved bandwidth.
constexpr StackNumber kStackNumbers[] = {
    {SHARDSCAPE_NUMBER(zero_slice), kTime, "ZeRO-1 and 2: per tensor and data-parallel rank, once per step",
     FitRule{time, logarithmic, 1e-7, 1e-3, "from one pointer to a tensor copied in an interpreter", 0.7}},
    {SHARDSCAPE_NUMBER(host.forward_layer), kTime, "launching one block's forward",
     FitRule{time, logarithmic, 5e-6, 2e-2, kHostRange, 0.7}},
    {SHARDSCAPE_NUMBER(host.backward_layer), kTime, "launching one block's backward",
     FitRule{time, logarithmic, 5e-6, 2e-2, kHostRange, 0.7}},
    {SHARDSCAPE_NUMBER(host.per_collective), kTime, "host time of each collective call in a block",
     FitRule{time, logarithmic, 1e-6, 5e-3, kHostRange, 0.7}},
    {SHARDSCAPE_NUMBER(host.per_collective_rank), kTime,
     "host time of each collective call and rank of its group",
     FitRule{time, logarithmic, 1e-7, 5e-3, "from one pointer per rank to one tensor copied per rank", 0.7}},
    {SHARDSCAPE_NUMBER(host.stage_pass), kTime, "before each pass of a chunk in a pipeline",
     FitRule{time, logarithmic, 1e-6, 5e-3, kHostRange, 0.7}},
    {SHARDSCAPE_NUMBER(host.step_fixed), kTime, "once per training step",
     FitRule{time, logarithmic, 1e-4, 2.0, kStepRange, 0.7}},
    {SHARDSCAPE_NUMBER(host.graph_step), kTime, "the same where passes are CUDA graphs; 0: none are"},
    {SHARDSCAPE_NUMBER(host.decode_layer), kTime, "launching one block of a decode step",
     FitRule{time, logarithmic, 1e-6, 5e-3, kDecodeRange, 0.7}},
    {SHARDSCAPE_NUMBER(host.decode_step_fixed), kTime, "once per decode step: sampling, scheduling",
     FitRule{time, logarithmic, 1e-5, 0.1, kDecodeRange, 0.7}},
    {SHARDSCAPE_NUMBER(host.decode_gap), kTime, "device idle between the kernels of a block in inference",
     FitRule{time, logarithmic, 1e-7, 1e-3,
             "from back-to-back kernels of a graph to a launch between all of them", 0.7}},
    {SHARDSCAPE_NUMBER(host.decode_sequence), kTime, "per sequence and iteration of inference",
     FitRule{time, logarithmic, 1e-7, 5e-3, "from a row of a batched kernel to a Python loop over requests",
             0.7}},
    {SHARDSCAPE_NUMBER(host.decode_stream), kTime, "per sequence of all replicas and iteration of inference",
     FitRule{time, logarithmic, 1e-6, 5e-4,
             "from a write to a socket to a task of an event loop for each token", 0.7}},
    {SHARDSCAPE_NUMBER(communication.call), kTime, "fixed cost of a collective call",
     FitRule{time, logarithmic, 1e-6, 2e-4, "from a kernel launch to a rendezvous of the group", 0.5}},
    {SHARDSCAPE_NUMBER(communication.rank_step), kTime, "latency of one step of a collective's algorithm",
     FitRule{time, logarithmic, 3e-7, 1e-4, kStepLatencyRange, 0.5}},
    {SHARDSCAPE_NUMBER(communication.rank_step_scale_out), kTime,
     "the same for steps over the scale-out network",
     FitRule{time, logarithmic, 1e-6, 1e-3, kStepLatencyRange, 0.7}},
    {SHARDSCAPE_NUMBER(communication.local_copy), kTimesOfPeak,
     "a collective's own copies and reductions: time over that at the memory's peak rate",
     FitRule{time, logarithmic, 0.1, 4.0,
             "from copies that stay in the caches to kernels that reach a quarter of the memory's peak",
             0.5}},
    {SHARDSCAPE_NUMBER(communication.scale_up_fraction), kShare, "collectives inside the scale-up domain",
     FitRule{time, logarithmic, 0.1, 1.0, kLinkShareRange, 0.2}},
    {SHARDSCAPE_NUMBER(communication.scale_out_fraction), kShare, "collectives and transfers between nodes",
     FitRule{time, logarithmic, 0.1, 1.0, kLinkShareRange, 0.3}},
    {SHARDSCAPE_NUMBER(communication.scale_out_scaling), kScaling,
     "what each doubling of the nodes leaves of the scale-out bandwidth",
     FitRule{time, logarithmic, 0.5, 1.0, "half per doubling of the nodes is one shared link, 1 a crossbar",
             0.1}},
    {SHARDSCAPE_NUMBER(communication.tensor_overlap), kFraction,
     "tensor-parallel communication hidden behind compute", kOverlap},
    {SHARDSCAPE_NUMBER(communication.context_overlap), kFraction,
     "context-parallel communication hidden behind attention", kOverlap},
    {SHARDSCAPE_NUMBER(communication.data_overlap), kFraction,
     "data-parallel communication hidden behind the last backward", kOverlap},
    {SHARDSCAPE_NUMBER(communication.data_hidden), kFraction,
     "what data-parallel traffic beside every microbatch hides without slowing compute", kOverlap},
    {SHARDSCAPE_NUMBER(communication.data_sms), kSmsOrNone,
     "SMs that traffic once a step takes from compute beside it",
     FitRule{time, linear, 0.0, 64.0, "from copies by engines to two for each of 32 channels", 8.0}},
    {SHARDSCAPE_NUMBER(communication.gather_overlap), kFraction,
     "the gather of updated weights hidden behind the first forwards", kOverlap},
    {SHARDSCAPE_NUMBER(communication.expert_overlap), kFraction,
     "exchanges of experts hidden behind the other pass of a pair", kOverlap},
    {SHARDSCAPE_NUMBER(communication.expert_hidden), kFraction,
     "what exchanges of experts hide in pairs without slowing compute", kOverlap},
    {SHARDSCAPE_NUMBER(communication.bucket), kBucket,
     "gradient bucket: data-parallel calls are bytes over it", std::nullopt, KeyUse::required},
    {SHARDSCAPE_NUMBER(communication.zero_bucket), kBucketOrDefault,
     "gradient bucket under ZeRO; 0: as bucket"},
    {SHARDSCAPE_NUMBER(communication.bucket_per_rank), kBytes,
     "the least that a gradient bucket holds for each rank of its group"},
    {SHARDSCAPE_NUMBER(serving.token_budget), kTokens, "the most tokens of one iteration"},
    {SHARDSCAPE_NUMBER(serving.max_batch), kRequests,
     "requests running at once, per replica and pipeline group"},
    {SHARDSCAPE_NUMBER(serving.kv_block), kTokens, "tokens of one block of the key-value cache"},
    {SHARDSCAPE_NUMBER(serving.kv_share), kShare,
     "share of the memory that weights, activations and reserve leave that the cache gets"},
    {SHARDSCAPE_NUMBER(serving.ffn_batches), kSplitBatches,
     "batches that take turns between attention and experts on GPUs of their own"},
    {SHARDSCAPE_NUMBER(serving.kv_watermark), kFraction,
     "share of the cache's blocks that admission leaves free; of simulated loads"},
    {SHARDSCAPE_NUMBER(serving.balance_wait), kTokensOrAll,
     "decode iterations for which prompts wait for one of each attention rank; of simulated loads"},
    {SHARDSCAPE_NUMBER(serving.host_cache), kBytes,
     "room in the host's memory, per device, for blocks of earlier requests; of simulated loads"},
    {SHARDSCAPE_NUMBER(serving.disk_cache), kBytes, "the same on a disk"},
    {SHARDSCAPE_NUMBER(serving.host_bandwidth), kBandwidth, "the rate at which they come back from the host"},
    {SHARDSCAPE_NUMBER(serving.disk_bandwidth), kBandwidth, "the same from the disk"},
    {SHARDSCAPE_NUMBER(serving.poll_interval), kTokens,
     "decode iterations between looks at new requests; of simulated loads"},
    {SHARDSCAPE_NUMBER(serving.schedule_ahead), kExpertsOrNone,
     "iterations that are fixed before requests that come may join; of simulated loads"},
    {SHARDSCAPE_NUMBER(serving.answer_after), kExpertsOrNone,
     "iterations where it decodes until the client has the first token; of simulated loads on two pools"},
    {SHARDSCAPE_NUMBER(serving.pool_prompts), kExpertsOrNone,
     "prompts of an iteration of each rank that reads, 0: what the budget holds; of simulated loads on two "
     "pools"},
    {SHARDSCAPE_NUMBER(serving.frontend), kTime,
     "from sending a request until the scheduler sees it; of simulated loads"},
    {SHARDSCAPE_NUMBER(serving.eager_floor), kTime,
     "the least cost of an iteration that reads a prompt; of simulated loads"},
    {SHARDSCAPE_NUMBER(serving.eager_layer), kTime, "the same for each layer without experts"},
    {SHARDSCAPE_NUMBER(serving.eager_expert_layer), kTime, "the same for each layer of experts"},
    {SHARDSCAPE_NUMBER(serving.first_prompts), kTime,
     "what the first iteration of a run that reads a prompt takes longer; of simulated loads"},
    {SHARDSCAPE_NUMBER(serving.graph_tokens), kExpertsOrNone,
     "the most tokens of an iteration that reads a prompt and has no such floor; of simulated loads"},
    {SHARDSCAPE_NUMBER(serving.converted_share), kShare,
     "rate of expert products whose 4-bit weights are converted first, relative to other products"},
    {SHARDSCAPE_NUMBER(serving.fp8_expert_share), kShare,
     "rate of expert products in fp8 without DeepEP's kernels, relative to other products"},
    {SHARDSCAPE_NUMBER(serving.redundant_experts), kExpertsOrNone,
     "copies of experts beyond one of each; of the pool that decodes"},
    {SHARDSCAPE_NUMBER(serving.prefill_redundant_experts), kExpertsOrNone,
     "the same of the pool that prefills"},
    {SHARDSCAPE_NUMBER(state.gradient_bytes), kBytesPerParameter,
     "bytes per parameter of the buffer that accumulates gradients"},
    {SHARDSCAPE_NUMBER(state.gradient_comm_bytes), kBytesPerParameter,
     "bytes per parameter that data parallelism sends"},
    {SHARDSCAPE_NUMBER(state.master_bytes), kBytesPerParameter,
     "bytes per parameter of the optimizer's weights"},
    {SHARDSCAPE_NUMBER(state.moment_bytes), kBytesPerParameter, "bytes per parameter of both Adam moments"},
    {SHARDSCAPE_NUMBER(quantisation.passes), kTimesOfPeak, "passes over a tensor by casts to 8 and 4 bits",
     FitRule{time, linear, 0.0, 5.0, "from casts within other kernels to one kernel for each step of them",
             0.5}},
    {SHARDSCAPE_NUMBER(quantisation.weight_bytes), kBytesOfWeight,
     "bytes of traffic per weight of narrow products and microbatch",
     FitRule{time, linear, 0.0, 40.0, "from no traffic to ten passes over fp32 sums", 4.0}},
    {SHARDSCAPE_NUMBER(experts.dispatch_sms), kSms, "SMs that kernels of dispatch run on"},
    {SHARDSCAPE_NUMBER(experts.forward_layer), kTime,
     "launching what forward of a layer of experts has beside a block",
     FitRule{time, logarithmic, 1e-5, 5e-2, kHostRange, 0.7}},
    {SHARDSCAPE_NUMBER(experts.backward_layer), kTime,
     "launching what backward of a layer of experts has beside a block",
     FitRule{time, logarithmic, 1e-5, 5e-2, kHostRange, 0.7}},
    {SHARDSCAPE_NUMBER(experts.per_expert), kTime, "launching what each expert of a layer takes in a pass",
     FitRule{time, logarithmic, 1e-7, 1e-3, kHostRange, 0.7}},
    {SHARDSCAPE_NUMBER(experts.load_wait), kTime, "the device's wait for the loads of experts",
     FitRule{time, logarithmic, 1e-5, 5e-2, "from one copy to the host to a host that launches all anew",
             0.7}},
    {SHARDSCAPE_NUMBER(experts.plain_launch), kTime, "launching one plain operator of experts with biases"},
    {SHARDSCAPE_NUMBER(head.deferral_limit), kMicrobatchesOrAll,
     "microbatches whose head is put off; 0: all"},
    {SHARDSCAPE_NUMBER(memory.reserve), kBytes, "context and communication library, on every device",
     FitRule{memory, logarithmic, 1e8, 2e10, "from a bare context to a quarter of an 80 GB card", 0.5}},
    {SHARDSCAPE_NUMBER(memory.workspace), kBytes, "scratch of kernels",
     FitRule{memory, logarithmic, 1e6, 5e9, "from cuBLAS's smallest workspace to several per stream", 0.7}},
    {SHARDSCAPE_NUMBER(memory.fragmentation), kOverhead, "reserved over allocated of activations",
     FitRule{memory, linear, 1.0, 1.6,
             "reserved is never less than allocated; past 1.6 allocators give memory back", 0.1}},
};
#undef SHARDSCAPE_NUMBER

}  // namespace

std::span<const StackNumber> stack_numbers() { return kStackNumbers; }

}  // namespace shardscape
