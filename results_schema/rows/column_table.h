// The tables of fixed columns, with a function for each that reads its value from a point, and the columns of classes
// of time made from their own table. Only for columns.cc.
#pragma once

#include <array>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/spec/plan_axes.h"
#include "results_schema/rows/columns.h"

namespace shardscape::results::table {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

using Record = const PointRecord&;
using Value = double (*)(Record);

/// How a column gets its values: `value` of rows that have one, `otherwise` for other rows.
struct Source {
  Value value = nullptr;  ///< null: hardware axis or point id, which have no function
  ValuedRows rows = ValuedRows::all;
  double otherwise = 0;
};

using Meanings = std::vector<std::string> (*)();

struct FixedColumn {
  const char* name;
  const char* unit;
  ColumnType type;
  ColumnGroup group;
  Better better;
  Phases phases;
  Meanings meanings;
  const char* long_name;
  Source source;
  std::optional<double> fill = {};
  bool ordered = false;
  int levels = 0;
};

template <class E>
std::vector<std::string> codes() {
  const auto names = enum_names<E>();
  return {names.begin(), names.end()};
}

inline bool has_value(ValuedRows rows, Record r) {
  const Status status = r.prediction.status;
  switch (rows) {
    case ValuedRows::all:
      return true;
    case ValuedRows::counted:
      return is_timed(status) || status == Status::memory || status == Status::unreachable;
    case ValuedRows::timed:
      return is_timed(status);
    case ValuedRows::sampled:
      return r.faults != nullptr;
  }
  return true;
}

constexpr Source of_timed(Value value, double otherwise = kNaN) {
  return {value, ValuedRows::timed, otherwise};
}
constexpr Source of_counted(Value value, double otherwise = kNaN) {
  return {value, ValuedRows::counted, otherwise};
}
constexpr Source of_sampled(Value value, double otherwise = kNaN) {
  return {value, ValuedRows::sampled, otherwise};
}

template <auto Member>
constexpr Source output_time = of_timed([](Record r) { return (r.prediction.*Member).value(); });
template <auto Member, auto Percentile>
constexpr Source output_percentile = of_timed([](Record r) {
  return (r.prediction.*Member.*Percentile).value();
});
template <auto Member>
constexpr Source output_number = of_timed([](Record r) { return r.prediction.*Member; });
template <auto Member>
constexpr Source load_time = of_timed([](Record r) { return (r.prediction.load.*Member).value(); });
template <auto Member, auto Percentile>
constexpr Source load_tail = of_timed([](Record r) {
  return (r.prediction.load.*Member.*Percentile).value();
});
template <auto Member>
constexpr Source load_number = of_timed([](Record r) { return r.prediction.load.*Member; });
template <std::size_t Tier>
constexpr Source hit_share = of_timed([](Record r) { return r.prediction.load.prefix_hits[Tier]; });
template <TimeClass Class>
constexpr Source breakdown_part = of_timed([](Record r) { return r.prediction.breakdown[Class].value(); });
template <auto Member>
constexpr Source memory_part = of_counted([](Record r) { return (r.prediction.memory.*Member).value(); });
template <PlanKey Key>
double plan_code(Record r) {
  return static_cast<double>(row_of(Key).get(r.plan));
}
template <auto Member>
constexpr Source workload_number = {[](Record r) { return static_cast<double>(r.workload.*Member); }};
template <auto Member>
constexpr Source fault_number = of_sampled([](Record r) { return static_cast<double>(r.faults->*Member); });
template <auto Member, int kOtherwise>
constexpr Source fault_number_or = of_sampled(fault_number<Member>.value, kOtherwise);
template <auto Member>
constexpr Source expected_time = of_sampled([](Record r) {
  return r.faults->expected((r.prediction.*Member).value());
});

using enum ColumnType;
using enum Better;
constexpr auto kId = ColumnGroup::id;
constexpr auto kPlan = ColumnGroup::plan;
constexpr auto kWorkload = ColumnGroup::workload;
constexpr auto kOutput = ColumnGroup::output;
constexpr auto kMemory = ColumnGroup::memory;
constexpr auto kBreakdown = ColumnGroup::breakdown;
constexpr auto kFaultGroup = ColumnGroup::faults;
constexpr auto kBoth = Phases::both;
constexpr auto kTraining = Phases::training;
constexpr auto kInference = Phases::inference;

// clang-format off
constexpr FixedColumn kVerdicts[] = {
    {"point_id", "1", u64, kId, neither, kBoth, nullptr,
     "identity of the point in the study's design space", {}},
    {"status", "1", u8, kId, neither, kBoth, codes<Status>,
     "verdict on the point", {[](Record r) { return static_cast<double>(r.prediction.status); }}},
    {"reason", "1", u8, kId, neither, kBoth, codes<Reason>,
     "first rule that a point which is not ok breaks", {[](Record r) { return static_cast<double>(r.prediction.reason); }}},
};

/// The number of microbatches. It stands behind the microbatch size, the last plan axis that it follows from.
constexpr FixedColumn kMicrobatches[] = {
    {"microbatches", "1", i32, kPlan, neither, kTraining, nullptr,
     "microbatches per step and replica; missing where the plan was rejected before they were counted",
     {[](Record r) { return static_cast<double>(r.prediction.microbatches); }}, 0.0},
};

// Hardware axes stand between the workload and the outputs.
constexpr FixedColumn kWorkloads[] = {
    {"precision", "1", u8, kWorkload, neither, kBoth, codes<PolicyName>,
     "number format of matrix products", workload_number<&WorkloadSpec::precision>},
    {"expert_load", "1", u8, kWorkload, neither, kBoth, codes<LoadDistribution>,
     "how routers give tokens to experts", {[](Record r) { return static_cast<double>(r.workload.expert_load.distribution); }}},
    {"expert_load_exponent", "1", f4, kWorkload, neither, kBoth, nullptr,
     "exponent of the power law of experts' popularity; 0 with other loads",
     {[](Record r) { return r.workload.expert_load.exponent; }}},
    {"sequence_length", "1", i32, kWorkload, neither, kTraining, nullptr,
     "tokens per sample", workload_number<&WorkloadSpec::sequence_length>},
    {"global_batch", "1", i32, kWorkload, neither, kTraining, nullptr,
     "samples per step over all replicas", workload_number<&WorkloadSpec::global_batch>},
    {"prompt_tokens", "1", i32, kWorkload, neither, kInference, nullptr,
     "tokens of the prompt", workload_number<&WorkloadSpec::prompt_tokens>},
    {"output_tokens", "1", i32, kWorkload, neither, kInference, nullptr,
     "tokens generated per request", workload_number<&WorkloadSpec::output_tokens>},
    {"concurrency", "1", i32, kWorkload, neither, kInference, nullptr,
     "requests in flight over all replicas", workload_number<&WorkloadSpec::concurrency>},
};

/// The columns of loads that are simulated request by request, behind the other columns of the workload.
constexpr FixedColumn kLoadWorkloads[] = {
    {"request_rate_per_s", "s-1", f8, kWorkload, neither, kInference, nullptr,
     "requests per second over all replicas; 0 in closed loop and by a trace",
     {[](Record r) { return r.workload.load ? r.workload.load->request_rate : 0; }}},
    {"draft_tokens", "1", i32, kWorkload, neither, kInference, nullptr,
     "tokens that are drafted for each sequence and decode iteration",
     {[](Record r) { return r.workload.load ? static_cast<double>(r.workload.load->speculation.draft_tokens) : 0; }}},
};

/// The outputs of such loads, behind the other outputs.
constexpr FixedColumn kLoadOutputs[] = {
    {"ttft_p90_s", "s", f8, kOutput, smaller, kInference, nullptr,
     "time to first token, 90th percentile over requests", load_tail<&LoadPrediction::ttft, &LoadPrediction::Tail::p90>},
    {"ttft_p99_s", "s", f8, kOutput, smaller, kInference, nullptr,
     "time to first token, 99th percentile over requests", load_tail<&LoadPrediction::ttft, &LoadPrediction::Tail::p99>},
    {"itl_p90_s", "s", f8, kOutput, smaller, kInference, nullptr,
     "inter-token latency, 90th percentile over tokens", load_tail<&LoadPrediction::itl, &LoadPrediction::Tail::p90>},
    {"itl_p99_s", "s", f8, kOutput, smaller, kInference, nullptr,
     "inter-token latency, 99th percentile over tokens", load_tail<&LoadPrediction::itl, &LoadPrediction::Tail::p99>},
    {"tpot_s", "s", f8, kOutput, smaller, kInference, nullptr,
     "time per output token after the first, mean over requests", load_time<&LoadPrediction::tpot_mean>},
    {"tpot_p50_s", "s", f8, kOutput, smaller, kInference, nullptr,
     "time per output token, median over requests", load_tail<&LoadPrediction::tpot_spread, &InferenceLatency::p50>},
    {"tpot_p90_s", "s", f8, kOutput, smaller, kInference, nullptr,
     "time per output token, 90th percentile over requests", load_tail<&LoadPrediction::tpot, &LoadPrediction::Tail::p90>},
    {"tpot_p95_s", "s", f8, kOutput, smaller, kInference, nullptr,
     "time per output token, 95th percentile over requests", load_tail<&LoadPrediction::tpot_spread, &InferenceLatency::p95>},
    {"tpot_p99_s", "s", f8, kOutput, smaller, kInference, nullptr,
     "time per output token, 99th percentile over requests", load_tail<&LoadPrediction::tpot, &LoadPrediction::Tail::p99>},
    {"e2e_p90_s", "s", f8, kOutput, smaller, kInference, nullptr,
     "time of one whole request, 90th percentile over requests", load_tail<&LoadPrediction::e2e, &LoadPrediction::Tail::p90>},
    {"e2e_p99_s", "s", f8, kOutput, smaller, kInference, nullptr,
     "time of one whole request, 99th percentile over requests", load_tail<&LoadPrediction::e2e, &LoadPrediction::Tail::p99>},
    {"queue_s", "s", f8, kOutput, smaller, kInference, nullptr,
     "from sending a request until its prompt is first read, mean", load_time<&LoadPrediction::queue>},
    {"requests_per_s", "s-1", f8, kOutput, larger, kInference, nullptr,
     "requests done per second over all replicas", load_number<&LoadPrediction::requests_per_s>},
    {"output_tokens_per_s_per_gpu", "s-1", f8, kOutput, larger, kInference, nullptr,
     "tokens generated per second and GPU: tokens_per_s_per_gpu, which for loads has this name too", output_number<&Prediction::tokens_per_s_per_gpu>},
    {"kv_use_mean", "1", f8, kOutput, neither, kInference, nullptr,
     "share of the key-value cache's tokens that are held or reserved, mean over time", load_number<&LoadPrediction::kv_mean>},
    {"kv_use_peak", "1", f8, kOutput, neither, kInference, nullptr,
     "largest share of the key-value cache's blocks that a server had in use", load_number<&LoadPrediction::kv_peak>},
    {"preemptions", "1", f8, kOutput, smaller, kInference, nullptr,
     "how often a request gave its cache back and read its prompt again, mean", load_number<&LoadPrediction::preemptions>},
    {"prefix_hit_share", "1", f8, kOutput, larger, kInference, nullptr,
     "share of the tokens of prompts that were found in the cache", hit_share<0>},
    {"host_hit_share", "1", f8, kOutput, neither, kInference, nullptr,
     "share of the tokens of prompts that were found in the memory of the host", hit_share<1>},
    {"disk_hit_share", "1", f8, kOutput, neither, kInference, nullptr,
     "share of the tokens of prompts that were found on disk", hit_share<2>},
    {"accepted_tokens", "1", f8, kOutput, larger, kInference, nullptr,
     "tokens that a decode iteration gives a sequence: 1, or more where drafts are accepted", load_number<&LoadPrediction::accepted_tokens>},
    {"overloaded", "1", boolean, kOutput, neither, kInference, nullptr,
     "more requests come than the servers keep up with: latencies grow with the number of requests",
     of_timed([](Record r) { return r.prediction.load.sustained_per_s > 0 ? 1.0 : 0.0; }, 0)},
    {"sustained_requests_per_s", "s-1", f8, kOutput, larger, kInference, nullptr,
     "requests per second that overloaded servers keep up with; NaN where they are not overloaded",
     of_timed([](Record r) { return r.prediction.load.sustained_per_s > 0 ? r.prediction.load.sustained_per_s : kNaN; })},
};

/// Of studies whose loads have promises, behind those.
constexpr FixedColumn kPromiseOutputs[] = {
    {"attainment", "1", f8, kOutput, larger, kInference, nullptr,
     "share of the requests of which each keeps the promised latencies by its own", load_number<&LoadPrediction::attainment>},
    {"goodput_requests_per_s_per_gpu", "s-1", f8, kOutput, larger, kInference, nullptr,
     "requests per second and GPU that keep the promised latencies: requests_per_s times attainment over the GPUs",
     of_timed([](Record r) {
       const LoadPrediction& load = r.prediction.load;
       return load.requests_per_s * load.attainment / static_cast<double>(r.plan.gpus());
     })},
    {"promises_kept", "1", boolean, kOutput, neither, kInference, nullptr,
     "whether the servers are not overloaded and every promised mean or percentile is kept",
     of_timed([](Record r) { return r.promises_kept ? 1.0 : 0.0; }, 0)},
};

/// Of studies with promises or constraints on results; it stands behind the verdicts.
constexpr FixedColumn kMisses[] = {
    {"missed_by", "1", f8, kId, neither, kBoth, nullptr,
     "by how much the point misses the bound that `reason` names, as a share of the bound; NaN where it misses none",
     {[](Record r) { return r.missed_by; }}},
};

constexpr FixedColumn kFaults[] = {
    {"fault_samples", "1", i32, kFaultGroup, neither, kBoth, nullptr,
     "fault samples of the point; 0 where it is not ok",
     fault_number_or<&FaultSummary::samples, 0>},
    {"expected_step_time_s", "s", f8, kFaultGroup, smaller, kTraining, nullptr,
     "mean time of one training step over the fault samples", expected_time<&Prediction::step_time>},
    {"expected_e2e_s", "s", f8, kFaultGroup, smaller, kInference, nullptr,
     "mean time of one whole request over the fault samples", expected_time<&Prediction::e2e>},
    {"slowdown_mean", "1", f8, kFaultGroup, smaller, kBoth, nullptr,
     "mean over the fault samples of time with faults over time without, less 1", fault_number<&FaultSummary::mean>},
    {"slowdown_standard_error", "1", f8, kFaultGroup, neither, kBoth, nullptr,
     "standard error of slowdown_mean", fault_number<&FaultSummary::standard_error>},
    {"slowdown_p50", "1", f8, kFaultGroup, smaller, kBoth, nullptr,
     "median slowdown", fault_number<&FaultSummary::p50>},
    {"slowdown_p95", "1", f8, kFaultGroup, smaller, kBoth, nullptr,
     "95th percentile of the slowdown", fault_number<&FaultSummary::p95>},
    {"slowdown_p99", "1", f8, kFaultGroup, smaller, kBoth, nullptr,
     "99th percentile of the slowdown", fault_number<&FaultSummary::p99>},
    {"slowdown_max", "1", f8, kFaultGroup, smaller, kBoth, nullptr,
     "largest slowdown", fault_number<&FaultSummary::max>},
    {"slowdown_above_1pct_share", "1", f8, kFaultGroup, smaller, kBoth, nullptr,
     "share of the fault samples that slow by more than 1 %", fault_number<&FaultSummary::above_1pct>},
    {"unreachable_share", "1", f8, kFaultGroup, smaller, kBoth, nullptr,
     "share of the fault samples that cut the fabric or have no time in range; the other columns leave them out",
     of_sampled([](Record r) { return static_cast<double>(r.faults->unreachable) / r.faults->samples; })},
    {"worst_link", "1", i32, kFaultGroup, neither, kBoth, nullptr,
     "link_id of the slowest sample's first fault; missing where it is none of a link, or nothing slows",
     fault_number_or<&FaultSummary::worst_link, -1>, -1.0},
    {"worst_device", "1", i32, kFaultGroup, neither, kBoth, nullptr,
     "device of the slowest sample's first fault; missing where it is one of a link, or nothing slows",
     fault_number_or<&FaultSummary::worst_device, -1>, -1.0},
};

constexpr FixedColumn kReliability[] = {
    {"goodput_share", "1", f8, kFaultGroup, larger, kTraining, nullptr,
     "share of the time of a long run that becomes healthy work: less failures, checkpoints, restarts and faults",
     of_timed([](Record r) { return r.goodput; })},
    {"goodput_tokens_per_s_per_gpu", "s-1", f8, kFaultGroup, larger, kTraining, nullptr,
     "tokens per second and GPU over a long run: tokens_per_s_per_gpu times goodput_share",
     of_timed([](Record r) { return r.prediction.tokens_per_s_per_gpu * r.goodput; })},
};

constexpr FixedColumn kOutputs[] = {
    {"step_time_s", "s", f8, kOutput, smaller, kTraining, nullptr,
     "time of one training step", output_time<&Prediction::step_time>},
    {"ttft_s", "s", f8, kOutput, smaller, kInference, nullptr,
     "time to first token, mean", output_time<&Prediction::ttft>},
    {"ttft_p50_s", "s", f8, kOutput, smaller, kInference, nullptr,
     "time to first token, median over requests", output_percentile<&Prediction::ttft_spread, &InferenceLatency::p50>},
    {"ttft_p95_s", "s", f8, kOutput, smaller, kInference, nullptr,
     "time to first token, 95th percentile over requests", output_percentile<&Prediction::ttft_spread, &InferenceLatency::p95>},
    {"itl_s", "s", f8, kOutput, smaller, kInference, nullptr,
     "inter-token latency, mean", output_time<&Prediction::itl>},
    {"itl_p50_s", "s", f8, kOutput, smaller, kInference, nullptr,
     "inter-token latency, median over tokens", output_percentile<&Prediction::itl_spread, &InferenceLatency::p50>},
    {"itl_p95_s", "s", f8, kOutput, smaller, kInference, nullptr,
     "inter-token latency, 95th percentile over tokens", output_percentile<&Prediction::itl_spread, &InferenceLatency::p95>},
    {"e2e_s", "s", f8, kOutput, smaller, kInference, nullptr,
     "time of one whole request, mean", output_time<&Prediction::e2e>},
    {"e2e_p50_s", "s", f8, kOutput, smaller, kInference, nullptr,
     "time of one whole request, median over requests", output_percentile<&Prediction::e2e_spread, &InferenceLatency::p50>},
    {"e2e_p95_s", "s", f8, kOutput, smaller, kInference, nullptr,
     "time of one whole request, 95th percentile over requests", output_percentile<&Prediction::e2e_spread, &InferenceLatency::p95>},
    {"decode_batch", "1", f8, kOutput, neither, kInference, nullptr,
     "sequences decoded together, mean over the iterations that decode", output_number<&Prediction::decode_batch>},
    {"kv_transfer_s", "s", f8, kOutput, smaller, kInference, nullptr,
     "time in which a request's key-value cache travels from pool to pool, mean; 0 without such pools", output_time<&Prediction::kv_transfer>},
    {"kv_transfer_bytes", "byte", f8, kOutput, neither, kInference, nullptr,
     "what one request's key-value cache sends from pool to pool; 0 without such pools", output_time<&Prediction::kv_bytes>},
    {"tokens_per_s_per_gpu", "s-1", f8, kOutput, larger, kBoth, nullptr,
     "tokens per second and GPU", output_number<&Prediction::tokens_per_s_per_gpu>},
    {"mfu", "1", f8, kOutput, larger, kTraining, nullptr,
     "model FLOPs utilisation: matrix FLOPs of forward and backward without recomputation, of attention all and not the half that a causal mask leaves, over peak dense FLOPs",
     output_number<&Prediction::mfu>},
    {"energy_per_token_j", "J", f8, kOutput, smaller, kBoth, nullptr,
     "energy of a token (inference: of one that is generated) where GPUs draw their power limit all the time: an upper bound, without hosts, switches and cooling; NaN where the device says no `power`",
     output_number<&Prediction::joules_per_token>},
    {"cost_per_million_tokens", "1", f8, kOutput, smaller, kBoth, nullptr,
     "what a million tokens (inference: generated ones) cost, in the currency of the device's price_per_hour; NaN where it says none",
     output_number<&Prediction::cost_per_million_tokens>},
    {"outside_domain", "1", boolean, kOutput, neither, kTraining, nullptr,
     "contention that the hierarchical mode cannot see may move the step by more than 5 %: compare with the flattened mode (the mode checked has executed all of them but those of very many events)",
     of_timed([](Record r) { return r.prediction.outside_domain() ? 1.0 : 0.0; }, 0)},
    {"expected_error", "1", f4, kOutput, neither, kBoth, nullptr,
     "relative error to expect of the predicted time of a step (inference: of itl_s, not of TTFT or percentiles), one sigma: 68 % of measurements lie within it; NaN where it is unknown",
     of_timed([](Record r) { return static_cast<double>(r.assessment.expected_error); })},
    {"evidence", "1", u8, kOutput, neither, kBoth, codes<Evidence>,
     "whether predictions like it have been measured",
     of_timed([](Record r) { return static_cast<double>(r.assessment.evidence); }, 0)},
    {"evidence_gap", "1", u8, kOutput, neither, kBoth, codes<EvidenceGap>,
     "in what the nearest measurements differ most",
     of_timed([](Record r) { return static_cast<double>(r.assessment.gap); }, 0)},
    {"memory_peak_bytes", "byte", f8, kOutput, smaller, kBoth, nullptr,
     "peak memory of the fullest device, also where it exceeds the capacity",
     of_counted([](Record r) { return r.prediction.memory_peak.value(); })},
    {"prefill_memory_peak_bytes", "byte", f8, kOutput, smaller, kInference, nullptr,
     "peak memory of the fullest device of the pool that prefills; 0 without such a pool",
     of_counted([](Record r) { return r.prediction.prefill_memory_peak.value(); })},
    {"peak_stage", "1", i32, kOutput, neither, kBoth, nullptr,
     "pipeline stage of the fullest device; missing where memory was not counted",
     of_counted([](Record r) { return static_cast<double>(r.prediction.peak_stage); }, -1), -1.0},

    {"weights_bytes", "byte", f4, kMemory, smaller, kBoth, nullptr,
     "weights on the fullest device", memory_part<&MemoryUse::weights>},
    {"gradients_bytes", "byte", f4, kMemory, smaller, kTraining, nullptr,
     "gradients on the fullest device", memory_part<&MemoryUse::gradients>},
    {"optimizer_bytes", "byte", f4, kMemory, smaller, kTraining, nullptr,
     "optimizer state on the fullest device", memory_part<&MemoryUse::optimizer>},
    {"activations_bytes", "byte", f4, kMemory, smaller, kBoth, nullptr,
     "activations on the fullest device", memory_part<&MemoryUse::activations>},
    {"logits_bytes", "byte", f4, kMemory, smaller, kBoth, nullptr,
     "logits on the fullest device", memory_part<&MemoryUse::logits>},
    {"kv_cache_bytes", "byte", f4, kMemory, smaller, kInference, nullptr,
     "key-value cache on the fullest device", memory_part<&MemoryUse::kv_cache>},
    {"buffers_bytes", "byte", f4, kMemory, smaller, kBoth, nullptr,
     "communication buffers on the fullest device", memory_part<&MemoryUse::buffers>},
    {"reserve_bytes", "byte", f4, kMemory, smaller, kBoth, nullptr,
     "reserve of the allocator and the runtime on the fullest device", memory_part<&MemoryUse::reserve>},
};
// clang-format on

template <std::size_t... Index>
constexpr auto breakdown_columns(std::index_sequence<Index...> /*classes*/) {
  return std::array{FixedColumn{kTimeClasses[Index].column, "s", f4, kBreakdown, smaller,
                                kTimeClasses[Index].phases, nullptr, kTimeClasses[Index].meaning,
                                breakdown_part<kTimeClasses[Index].time_class>}...};
}
constexpr auto kBreakdownColumns = breakdown_columns(std::make_index_sequence<kTimeClasses.size()>());

}  // namespace shardscape::results::table
