// The tables of fixed columns with a function for each that reads its value from a point, the columns of plan axes and
// of classes of time made from their own tables, and the packing of values.
#include "results_schema/rows/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <limits>
#include <type_traits>
#include <utility>

#include "engine/base/check.h"
#include "engine/spec/plan_axes.h"
#include "results_schema/disk/sha256.h"

namespace shardscape::results {
namespace {

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

bool has_value(ValuedRows rows, Record r) {
  const Status status = r.prediction.status;
  switch (rows) {
    case ValuedRows::all:
      return true;
    case ValuedRows::counted:
      return status == Status::ok || status == Status::memory || status == Status::unreachable;
    case ValuedRows::timed:
      return status == Status::ok;
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

/// Stands behind the microbatch size, the last plan axis that it follows from.
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

/// Of loads that are simulated request by request; they stand behind the others of the workload.
constexpr FixedColumn kLoadWorkloads[] = {
    {"request_rate_per_s", "s-1", f8, kWorkload, neither, kInference, nullptr,
     "requests per second over all replicas; 0 in closed loop and by a trace",
     {[](Record r) { return r.workload.load ? r.workload.load->request_rate : 0; }}},
};

/// The same behind the other outputs.
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
     "tokens generated per second and GPU", output_number<&Prediction::tokens_per_s_per_gpu>},
    {"kv_use_mean", "1", f8, kOutput, neither, kInference, nullptr,
     "share of the key-value cache's tokens that are held or reserved, mean over time", load_number<&LoadPrediction::kv_mean>},
    {"kv_use_peak", "1", f8, kOutput, neither, kInference, nullptr,
     "largest share of the key-value cache's blocks that a server had in use", load_number<&LoadPrediction::kv_peak>},
    {"preemptions", "1", f8, kOutput, smaller, kInference, nullptr,
     "how often a request gave its cache back and read its prompt again, mean", load_number<&LoadPrediction::preemptions>},
    {"overloaded", "1", boolean, kOutput, neither, kInference, nullptr,
     "more requests come than the servers keep up with: latencies grow with the number of requests",
     of_timed([](Record r) { return r.prediction.load.sustained_per_s > 0 ? 1.0 : 0.0; }, 0)},
    {"sustained_requests_per_s", "s-1", f8, kOutput, larger, kInference, nullptr,
     "requests per second that overloaded servers keep up with; NaN where they are not overloaded",
     of_timed([](Record r) { return r.prediction.load.sustained_per_s > 0 ? r.prediction.load.sustained_per_s : kNaN; })},
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
     "model FLOPs utilisation: matrix FLOPs of forward and backward without recomputation over peak dense FLOPs",
     output_number<&Prediction::mfu>},
    {"outside_domain", "1", boolean, kOutput, neither, kTraining, nullptr,
     "contention that the hierarchical mode cannot see may move the step by more than 5 %: compare with the flattened mode",
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

/// Stores one value per row. An integer that does not fit its column means that the study was not validated well.
template <class T, class Get>
void pack(std::size_t rows, std::byte* out, const Get& get) {
  for (std::size_t i = 0; i < rows; ++i) {
    const auto value = get(i);
    if constexpr (std::is_integral_v<T> && std::is_floating_point_v<decltype(value)>) {
      SHARDSCAPE_CHECK(value >= static_cast<double>(std::numeric_limits<T>::min()) &&
                           value <= static_cast<double>(std::numeric_limits<T>::max()),
                       value);
    }
    const T stored = static_cast<T>(value);
    std::memcpy(out + i * sizeof(T), &stored, sizeof(T));
  }
}

template <class Get>
void pack_as(ColumnType type, std::size_t rows, std::byte* out, const Get& get) {
  with_stored_type(type, [&](auto zero) { pack<decltype(zero)>(rows, out, get); });
}

using Packer = void (*)(ColumnType, std::span<const PointRecord>, std::byte*);

/// Packs a column; there is one function per column, so that its value is read inline and not by a call per row.
template <const auto& kTable, std::size_t kAt>
void pack_values(ColumnType type, std::span<const PointRecord> rows, std::byte* out) {
  pack_as(type, rows.size(), out, [&](std::size_t i) {
    constexpr Source kSource = kTable[kAt].source;
    return has_value(kSource.rows, rows[i]) ? kSource.value(rows[i]) : kSource.otherwise;
  });
}

/// The packers of a table's columns, in its order; null where a column has no value of its own.
template <const auto& kTable>
constexpr auto packers_of() {
  return []<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    const auto packer = []<std::size_t kAt>(std::integral_constant<std::size_t, kAt>) -> Packer {
      if constexpr (kTable[kAt].source.value == nullptr) {
        return nullptr;
      } else {
        return pack_values<kTable, kAt>;
      }
    };
    return std::array<Packer, sizeof...(kIndex)>{packer(std::integral_constant<std::size_t, kIndex>())...};
  }
  (std::make_index_sequence<std::size(kTable)>());
}

template <PlanKey kKey>
void pack_plan_codes(ColumnType type, std::span<const PointRecord> rows, std::byte* out) {
  pack_as(type, rows.size(), out, [&](std::size_t i) { return plan_code<kKey>(rows[i]); });
}

/// The packers of the plan axes, in the order of kPlanRows.
constexpr auto kPlanPackers = []<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
  return std::array<Packer, sizeof...(kIndex)>{pack_plan_codes<kPlanRows[kIndex].key>...};
}
(std::make_index_sequence<kPlanRows.size()>());

ColumnInfo info_of(const FixedColumn& c) {
  return {c.name,
          c.unit,
          c.long_name,
          c.type,
          c.group,
          c.better,
          c.meanings ? c.meanings() : std::vector<std::string>{},
          c.fill,
          c.ordered,
          c.levels};
}

/// The narrowest type that holds so many codes.
ColumnType type_of_codes(std::size_t codes) { return codes <= 256 ? ColumnType::u8 : ColumnType::i32; }

ColumnInfo info_of(const PlanAxisRow& row) {
  ColumnInfo info;
  info.name = row.column;
  info.unit = "1";
  info.long_name = row.meaning;
  info.type = ColumnType::i32;
  info.group = ColumnGroup::plan;
  info.ordered = row.ordered;
  if (row.kind == AxisKind::flag) info.type = ColumnType::boolean;
  if (row.kind == AxisKind::choice) info.meanings.assign(row.names.begin(), row.names.end());
  if (row.kind == AxisKind::order) info.meanings = rank_order_names();
  if (!info.meanings.empty()) info.type = type_of_codes(info.meanings.size());
  if (row.kind == AxisKind::integer && row.ordered) {
    info.levels = row.high + 1;
    info.type = type_of_codes(static_cast<std::size_t>(info.levels));
  }
  return info;
}

ColumnInfo info_of(const HardwareColumn& axis) {
  ColumnInfo info;
  info.name = axis.name;
  info.unit = axis.unit;
  info.long_name = axis.long_name;
  if (!axis.choices.empty()) info.type = type_of_codes(axis.choices.size());
  info.group = ColumnGroup::hardware;
  info.meanings = axis.choices;
  // Blanks separate CF's flag_meanings, so that names may contain none.
  for (std::string& meaning : info.meanings) std::ranges::replace(meaning, ' ', '_');
  return info;
}

}  // namespace

ColumnTable::ColumnTable(Phase phase, std::span<const HardwareColumn> hardware, StudyExtras extras) {
  const auto take = [&](std::span<const FixedColumn> table, std::span<const Packer> packers) {
    for (std::size_t c = 0; c < table.size(); ++c) {
      if (!applies(table[c].phases, phase)) continue;
      columns_.push_back(info_of(table[c]));
      packings_.push_back({packers[c], table[c].source.rows});
    }
  };
  take(kVerdicts, packers_of<kVerdicts>());
  for (const PlanAxisRow& row : kPlanRows) {
    if (!applies(row.phases, phase)) continue;
    columns_.push_back(info_of(row));
    packings_.push_back({kPlanPackers[static_cast<std::size_t>(row.key)]});
    if (row.key == PlanKey::microbatch) take(kMicrobatches, packers_of<kMicrobatches>());
  }
  take(kWorkloads, packers_of<kWorkloads>());
  if (extras.load) take(kLoadWorkloads, packers_of<kLoadWorkloads>());
  for (std::size_t axis = 0; axis < hardware.size(); ++axis) {
    columns_.push_back(info_of(hardware[axis]));
    packings_.push_back({nullptr, ValuedRows::all, axis});
  }
  take(kOutputs, packers_of<kOutputs>());
  if (extras.load) take(kLoadOutputs, packers_of<kLoadOutputs>());
  take(kBreakdownColumns, packers_of<kBreakdownColumns>());
  if (extras.faults) take(kFaults, packers_of<kFaults>());
  if (extras.reliability) take(kReliability, packers_of<kReliability>());
  for (const ColumnInfo& column : columns_) {
    SHARDSCAPE_CHECK(find(column.name) == &column, "column named twice:", column.name);
  }
}

void ColumnTable::keep_only(std::span<const std::string> names, std::span<const std::string> objectives) {
  constexpr std::string_view kAlways[] = {
      "step_time_s", "e2e_s",         "memory_peak_bytes", "prefill_memory_peak_bytes",
      "peak_stage",  "fault_samples", "slowdown_mean"};
  std::size_t kept = 0;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const ColumnInfo& column = columns_[c];
    const auto names_it = [&](const auto& list) {
      return std::ranges::find(list, column.name) != std::end(list);
    };
    if (column.group != ColumnGroup::id && !names_it(kAlways) && !names_it(names) && !names_it(objectives))
      continue;
    if (kept != c) {
      columns_[kept] = std::move(columns_[c]);
      packings_[kept] = packings_[c];
    }
    ++kept;
  }
  columns_.resize(kept);
  packings_.resize(kept);
}

const ColumnInfo* ColumnTable::find(std::string_view name) const {
  const auto found = std::ranges::find(columns_, name, &ColumnInfo::name);
  return found == columns_.end() ? nullptr : &*found;
}

void ColumnTable::put(std::size_t column, std::span<const PointRecord> rows, std::byte* out) const {
  const ColumnType type = columns_[column].type;
  if (const Packer packer = packings_[column].packer) {
    packer(type, rows, out);
  } else if (columns_[column].group == ColumnGroup::hardware) {
    const std::size_t axis = packings_[column].axis;
    pack_as(type, rows.size(), out, [&](std::size_t i) { return rows[i].hardware[axis]; });
  } else {
    pack<std::uint64_t>(rows.size(), out, [&](std::size_t i) { return rows[i].point_id; });
  }
}

std::vector<std::pair<std::string_view, double>> load_outputs(const PointRecord& row) {
  std::vector<std::pair<std::string_view, double>> values;
  for (const FixedColumn& column : kLoadOutputs) values.emplace_back(column.name, column.source.value(row));
  return values;
}

RowsInCommon in_common(std::span<const PointRecord> rows) {
  RowsInCommon common;
  for (const PointRecord& row : rows) {
    common.none_counted &= !has_value(ValuedRows::counted, row);
    common.none_timed &= !has_value(ValuedRows::timed, row);
    common.none_sampled &= !has_value(ValuedRows::sampled, row);
    common.one_workload &= &row.workload == &rows.front().workload;
    common.one_hardware &= row.hardware.data() == rows.front().hardware.data();
  }
  return common;
}

bool ColumnTable::is_same_in_all(std::size_t column, const RowsInCommon& common) const {
  switch (packings_[column].rows) {
    case ValuedRows::counted:
      return common.none_counted;
    case ValuedRows::timed:
      return common.none_timed;
    case ValuedRows::sampled:
      return common.none_sampled;
    case ValuedRows::all:
      break;
  }
  const ColumnGroup group = columns_[column].group;
  return (group == ColumnGroup::workload && common.one_workload) ||
         (group == ColumnGroup::hardware && common.one_hardware);
}

void append_numbers(ColumnType type, std::span<const std::byte> packed, std::size_t count,
                    std::vector<double>& numbers) {
  SHARDSCAPE_CHECK(packed.size() >= count * size_of(type), packed.size(), count);
  with_stored_type(type, [&](auto zero) {
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(&zero, packed.data() + i * sizeof(zero), sizeof(zero));
      numbers.push_back(static_cast<double>(zero));
    }
  });
}

namespace {

using Sample = const FaultSampleRecord&;

struct SampleColumn {
  const char* name;
  const char* unit;
  ColumnType type;
  Meanings meanings;
  const char* long_name;
  double (*value)(Sample);  ///< null: the point id
  std::optional<double> fill = {};
};

// clang-format off
constexpr SampleColumn kSampleColumns[] = {
    {"point_id", "1", u64, nullptr, "the point that was sampled", nullptr},
    {"sample", "1", i32, nullptr, "number of the sample: the same number is the same faults for every point",
     [](Sample s) { return static_cast<double>(s.sample); }},
    {"fault", "1", u8, nullptr, "number of the fault within the sample; time and slowdown are those of the whole sample",
     [](Sample s) { return static_cast<double>(s.fault); }},
    {"status", "1", u8, codes<Status>, "ok, unreachable where the sample cuts the fabric, or out_of_range",
     [](Sample s) { return static_cast<double>(s.status); }},
    {"kind", "1", u8, codes<FaultKind>, "what is sick",
     [](Sample s) { return static_cast<double>(s.kind); }},
    {"link_id", "1", i32, nullptr, "the sick link (the lower one of both directions), as in /links; else missing",
     [](Sample s) { return static_cast<double>(s.link); }, -1.0},
    {"device", "1", i32, nullptr, "rank of a sick device, lowest rank on a dead adapter, vertex of a dead switch; else missing",
     [](Sample s) { return static_cast<double>(s.device); }, -1.0},
    {"derate", "1", f8, nullptr, "share that remains of the link's bandwidth, the memory bandwidth or the clock; 0 where it is gone",
     [](Sample s) { return s.derate; }},
    {"step_time_s", "s", f8, nullptr, "time of one training step (inference: of one whole request) under the sample",
     [](Sample s) { return s.step_time_s; }},
    {"slowdown", "1", f8, nullptr, "that time over the one without faults, less 1",
     [](Sample s) { return s.slowdown; }},
};
// clang-format on

}  // namespace

std::span<const ColumnInfo> fault_sample_columns() {
  static const std::vector<ColumnInfo> kColumns = [] {
    std::vector<ColumnInfo> columns;
    for (const SampleColumn& c : kSampleColumns) {
      columns.push_back({c.name, c.unit, c.long_name, c.type, ColumnGroup::faults, Better::neither,
                         c.meanings ? c.meanings() : std::vector<std::string>{}, c.fill});
    }
    return columns;
  }();
  return kColumns;
}

void put_fault_samples(std::size_t column, std::span<const FaultSampleRecord> rows, std::byte* out) {
  const SampleColumn& c = kSampleColumns[column];
  if (c.value == nullptr) {
    pack<std::uint64_t>(rows.size(), out, [&](std::size_t i) { return rows[i].point_id; });
  } else {
    pack_as(c.type, rows.size(), out, [&](std::size_t i) { return c.value(rows[i]); });
  }
}

std::optional<int> percent_digits(const ColumnInfo& column) {
  if (column.unit != "1" || (column.group != ColumnGroup::output && column.group != ColumnGroup::faults))
    return std::nullopt;
  if (column.name == "mfu" || column.name == "expected_error") return 1;
  // One more digit than for other shares, since faults slow most plans by far less than a percent.
  if (column.name.starts_with("slowdown") || column.name.ends_with("_share")) return 2;
  return std::nullopt;
}

std::vector<std::string> rank_order_names() {
  std::vector<std::string> names;
  for (std::int32_t code = 0; code < kRankOrders; ++code) names.push_back(to_string(rank_order_of(code)));
  return names;
}

std::string columns_sha256(std::span<const ColumnInfo> columns) {
  std::string text;
  for (const ColumnInfo& column : columns) {
    text += fmt::format("{}\t{}\t{}", column.name, column.unit, static_cast<int>(column.type));
    for (const std::string& meaning : column.meanings) text += '\t' + meaning;
    text += '\n';
  }
  return sha256_hex(text);
}

}  // namespace shardscape::results
