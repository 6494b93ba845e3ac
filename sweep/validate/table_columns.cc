// Lists of the columns of every kind of table with their meanings, recognition of a table's kind by its header, and the
// check of a header with suggestions for unknown names.
#include "sweep/validate/table_columns.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/enum_array.h"
#include "engine/base/suggest.h"
#include "engine/spec/plan_axes.h"
#include "sweep/validate/served_columns.h"

namespace shardscape::validate {

namespace {

using enum ColumnUse;

constexpr Column kRowColumns[] = {
    {"id", needed, "name of the row, each once"},
    {"phase", needed, "training or inference"},
    {"model", needed, "a model preset or path"},
    {"cluster", needed, "a cluster preset or path"},
    {"stack", needed, "a software-stack preset or path"},
    {"precision", free, "of weights, activations and matrix products; blank: bf16"},
    {"gpus", expected, "blank: tp * cp * pp * dp"},
};
// The plan's axes come between kRowColumns and these.
constexpr Column kLoadColumns[] = {
    {"num_microbatches", expected, "per step and replica; blank: global_batch / (dp * microbatch_size)"},
    {"global_batch", expected, "samples per step; blank: dp * microbatch_size * num_microbatches"},
    {"sequence_length", expected, "tokens per sample; needed in training"},
    {"prompt_tokens", expected, "needed in inference"},
    {"output_tokens", expected, "needed in inference"},
    {"concurrency", expected, "requests in flight; blank: 1"},
    {"measured_step_time_s", free, "training step, seconds"},
    {"measured_memory_peak_bytes", free,
     "peak bytes that the framework's allocator reserved, fullest device"},
    {"memory_of", free,
     "fullest_reserved (or blank), as above, or last_stage_allocated, what tensors take on the last stage"},
    {"measured_oom", free, "1: the run went out of memory, 0: it did not"},
};
constexpr Column kSource = {"source", free, "free text"};

constexpr Column kPublicRowColumns[] = {
    {"id", needed, "name of the row, each once"},
    {"model", needed, "a model preset or path; -lN: only N layers"},
    {"device", needed, "a device preset or a name it goes by; its preset names the cluster"},
    {"software", needed,
     "software that a stack preset stands for; what follows the first word is its version"},
    {"release", free,
     "of the software, as 26.04; no such column: behind its name, or where source has it in NVIDIA's words"},
    {"gpus", needed, "all of them"},
    {"phase", free, "blank: training where there is a column sequence_length"},
    {"cluster", free, "in place of device; beside it free text"},
    {"stack", free, "in place of software"},
    {"precision", free, "of the policy; bfloat16, fp8-mx, .. are understood; blank: bf16"},
};
// The plan's axes come between kPublicRowColumns and these; a blank cell means what the stack says is usual.
constexpr Column kPublicLoadColumns[] = {
    {"moe_tensor_parallel", free, "likewise"},
    {"attention_data_parallel", free, "replicas that share experts"},
    {"mode", free, "agg, disagg or energy (agg; ITL is the median gap between tokens)"},
    {"prefill_workers", free, "replicas of the pool that prefills; blank: as a public recipe has them"},
    {"prefill_tensor_parallel", free, "of the pool that prefills"},
    {"prefill_expert_parallel", free, ""},
    {"prefill_attention_data_parallel", free, "likewise of its replicas"},
    {"decode_workers", free, "replicas of the pool that decodes; blank: likewise"},
    {"decode_tensor_parallel", free, "of the pool that decodes"},
    {"decode_expert_parallel", free, ""},
    {"decode_attention_data_parallel", free, "likewise of its replicas"},
    {"mean_batch", free,
     "sequences decoded together; stands in for a blank concurrency, then only ITL counts"},
    {"spec_method", free, "of speculative decoding: mtp or none"},
    {"date", free, "of the run, YYYY-MM-DD"},
    {"client", free, "the program that sent requests, which says how it sends them"},
    {"itl_over_tpot_mean", free, "printed gaps between tokens over time per token"},
    {"n_runs", free, "runs behind the measurements"},
    {"spread", free, "of them, relative; not compared"},
    {"file", free, "free text"},
};

/// What tables of servers say beside and nothing here is compared with.
constexpr std::string_view kNotCompared[] = {"measured_power_w",
                                             "image",
                                             "framework",
                                             "disaggregated",
                                             "multinode",
                                             "tp_printed",
                                             "ep_printed",
                                             "dp_attention_printed",
                                             "prefill_gpus",
                                             "prefill_tp_printed",
                                             "prefill_ep_printed",
                                             "prefill_dp_attention_printed",
                                             "decode_gpus",
                                             "decode_tp_printed",
                                             "decode_ep_printed",
                                             "decode_dp_attention_printed",
                                             "measured_itl_kind",
                                             "measured_ttft_p999_s",
                                             "measured_ttft_std_s",
                                             "measured_itl_p999_s",
                                             "measured_itl_std_s",
                                             "measured_tpot_std_s",
                                             "measured_e2e_std_s",
                                             "measured_total_tokens_per_s_per_gpu",
                                             "output_tput_per_gpu_printed",
                                             "input_tput_per_gpu_printed",
                                             "prefill_power_w",
                                             "decode_power_w",
                                             "power_scope",
                                             "joules_per_output_token",
                                             "request_rate",
                                             "range_ratio",
                                             "warmups",
                                             "num_prompts",
                                             "inflight_check",
                                             "flag"};

void add_not_compared(std::span<const std::string_view> names, std::vector<Column>& columns) {
  for (const std::string_view name : names) columns.push_back({name, free, "not compared"});
}

enum class PlanForm : std::uint8_t { ours, others };

std::vector<Column> plan_columns(PlanForm form) {
  const bool ours = form == PlanForm::ours;
  const std::span<const Column> rows = ours ? std::span<const Column>(kRowColumns) : kPublicRowColumns;
  std::vector<Column> columns(rows.begin(), rows.end());
  const auto add = [&](const PlanAxisRow& row) {
    if (row.cell != nullptr)
      columns.push_back({row.column, ours && row.cell_due ? expected : free, row.cell});
  };
  for (const PlanAxisRow& row : kPlanRows) {
    if (row.key != PlanKey::microbatch) add(row);
  }
  add(row_of(PlanKey::microbatch));  // among the columns of batches
  for (const Column& column : kLoadColumns)
    columns.push_back({column.name, ours ? column.use : free, column.meaning});
  const std::size_t measured = ours ? kE2eColumn + 1 : kServedColumns;
  for (const ServedColumn& column : served_columns().first(measured))
    columns.push_back({column.measured, free, column.name});
  columns.push_back(kSource);
  if (!ours) add_not_compared(kNotCompared, columns);
  if (!ours) columns.insert(columns.end(), std::begin(kPublicLoadColumns), std::end(kPublicLoadColumns));
  return columns;
}

constexpr Column kOpenLoopColumns[] = {
    {"id", needed, "name of the row, each once"},
    {"model", needed, "a model preset or path"},
    {"device", needed, "a device preset or a name it goes by"},
    {"software", needed, "software that a stack preset stands for"},
    {"gpus", needed, "all of them"},
    {"tensor_parallel", needed, "of each replica"},
    {"data_parallel", expected, "replicas; blank: gpus / tensor_parallel"},
    {"precision", expected, "blank: bf16"},
    {"requested_rate", expected, "requests per second; blank: not predicted"},
    {"arrival", expected, "constant, poisson or gamma"},
    {"requests", expected, "that were sent; blank: 2000"},
    {"system_prompt_tokens", expected, "of every prompt of a group"},
    {"question_tokens", expected, "of a prompt beside them"},
    {"prompt_tokens_mean", expected, "of both; blank: their sum"},
    {"output_tokens_requested", expected, "blank: not predicted"},
    {"shared_prefix_groups", free, "groups of prompts, which repeat all the time"},
    {"prompts_per_group", free, ""},
    {"vllm_prefix_caching", free, "1: but for the last block a prompt is in the cache when it comes"},
    {"vllm_max_num_batched_tokens", free, "blank: as the stack has it"},
    {"vllm_max_num_seqs", free, "blank: as the stack has it"},
    {"set", free, "rows of first requests meet a cold cache: not predicted"},
    {"overload", free, "1: more requests came than were served; their rows are labelled saturated"},
    {"same_as", free, "the row of which this one is a copy; it is labelled repeated"},
    {"source", free, "free text"},
};
/// Columns of an open loop that are read by what they begin with: other programs' predictions of the same rows.
constexpr Column kOpenLoopOthers = {
    "NAME_ttft_mean_s", free, "what another program predicts, likewise NAME_itl_mean_s, NAME_e2e_mean_s"};
constexpr std::string_view kOpenLoopNotCompared[] = {"vllm_max_model_len",
                                                     "vllm_gpu_memory_utilization",
                                                     "vllm_cpu_kv_offload",
                                                     "vllm_chunked_prefill",
                                                     "workload",
                                                     "stage",
                                                     "rate_source",
                                                     "achieved_rate",
                                                     "duration_s",
                                                     "failures",
                                                     "prompt_tokens_requested",
                                                     "ignore_eos",
                                                     "prompt_tokens_p50",
                                                     "prompt_tokens_p90",
                                                     "prompt_tokens_p99",
                                                     "output_tokens_mean_retokenised",
                                                     "output_tokens_p50_retokenised",
                                                     "itl_mean_printed_s",
                                                     "itl_p50_printed_s",
                                                     "itl_p90_printed_s",
                                                     "itl_p99_printed_s",
                                                     "tpot_mean_printed_s",
                                                     "tpot_p50_printed_s",
                                                     "tpot_p99_printed_s",
                                                     "output_tokens_per_s_printed",
                                                     "requests_per_s"};

std::vector<Column> open_loop_list() {
  std::vector<Column> columns(std::begin(kOpenLoopColumns), std::end(kOpenLoopColumns));
  for (const ServedColumn& column : open_loop_columns())
    columns.push_back({column.measured, free, column.name});
  add_not_compared(kOpenLoopNotCompared, columns);
  columns.push_back(kOpenLoopOthers);
  return columns;
}

constexpr Column kMlperfColumns[] = {
    {"id", needed, "name of the row, each once"},
    {"model", needed, "of the benchmark"},
    {"scenario", needed, "Offline, Server or Interactive"},
    {"device", needed, "a device preset or a name it goes by"},
    {"software", needed, "TensorRT .. or vLLM .."},
    {"gpus", expected, "all of them"},
    {"precision", expected, "fp16 and blank: fp4 on Blackwell, fp8 on Hopper"},
    {"ttft_limit_s", expected, "promised to 99 % of requests"},
    {"tpot_limit_s", expected, "likewise"},
    {"mean_output_tokens", expected, "blank: those of the benchmark's data"},
    {"completed_requests_per_s", expected, ""},
    {"tokens_per_s", expected, ""},
    {"source", free, "free text"},
};
constexpr std::string_view kMlperfNotCompared[] = {"round",
                                                   "division",
                                                   "category",
                                                   "submitter",
                                                   "system",
                                                   "platform",
                                                   "availability",
                                                   "device_raw",
                                                   "nodes",
                                                   "tensor_parallel",
                                                   "pipeline_parallel",
                                                   "plan_source",
                                                   "target_qps",
                                                   "result",
                                                   "scheduled_requests_per_s",
                                                   "tokens_per_s_per_gpu",
                                                   "samples_completed",
                                                   "duration_s"};
/// Statistics of latencies, which stand between those columns and these.
constexpr std::string_view kMlperfLatencies[] = {"ttft", "tpot", "e2e"};
constexpr std::string_view kMlperfStatistics[] = {"mean", "p50", "p90", "p95", "p97", "p99", "p999", "max"};
constexpr std::string_view kMlperfNotes[] = {
    "system_power_w", "system_power_w_submitted", "power_w_per_gpu_share", "power_note",
    "notes",          "official_tokens_per_s"};

std::vector<Column> mlperf_list() {
  static const std::vector<std::string> kLatencies = [] {
    std::vector<std::string> names;
    for (const std::string_view latency : kMlperfLatencies)
      for (const std::string_view statistic : kMlperfStatistics)
        names.push_back(fmt::format("{}_{}_s", latency, statistic));
    return names;
  }();
  std::vector<Column> columns(std::begin(kMlperfColumns), std::end(kMlperfColumns));
  add_not_compared(kMlperfNotCompared, columns);
  for (const std::string& name : kLatencies) columns.push_back({name, free, "not compared"});
  add_not_compared(kMlperfNotes, columns);
  return columns;
}

constexpr Column kGemmColumns[] = {
    {"id", free, "name of the row; absent: the number of the row"},
    {"device", free, "a device preset; blank: --device"},
    {"precision", free, "of the operands; blank: bf16"},
    {"m", needed, "rows of the output"},
    {"n", needed, "columns of the output"},
    {"k", needed, "length of the inner product"},
    {"tile_m", expected, "the kernel's tile; blank: unknown"},
    {"tile_n", expected, "likewise"},
    {"tile_k", expected, "likewise"},
    {"stages", expected, "pipeline stages of the kernel; blank: as many as help"},
    {"grid_size", expected, "CTAs launched"},
    {"sm_clock_hz", expected, "clock the kernel ran at; blank: the device's own"},
    {"measured_time_s", needed, "of the kernel, seconds"},
    {"measured_dram_read_bytes", free, ""},
    {"measured_dram_write_bytes", free, ""},
    {"measured_l2_hit_percent", free, ""},
    {"source", free, "free text"},
};

constexpr Column kCollectiveColumns[] = {
    {"id", free, "name of the row; absent: the number of the row"},
    {"cluster", needed, "a cluster preset or path"},
    {"stack", free, "a software-stack preset or path; blank: --stack"},
    {"collective", needed, "all_reduce, reduce_scatter, all_gather or send_recv"},
    {"gpus", needed, "ranks of the group"},
    {"gpus_per_node", needed, "ranks of the group inside one node"},
    {"bytes", needed,
     "all_reduce: the buffer; reduce_scatter: the input; all_gather: the output; send_recv: a "
     "message"},
    {"median_s", needed, "seconds"},
    {"min_s", free, "seconds"},
    {"max_s", free, "seconds"},
    {"source", free, "free text"},
};

// What tables of kernels and collectives that run alone on a device say of a call, between the columns that all have.

constexpr Column kGemmAloneColumns[] = {
    {"gemm_dtype", needed, "of the operands"},
    {"m", needed, "rows of the output"},
    {"n", needed, "columns of the output"},
    {"k", needed, "length of the inner product"},
};

constexpr Column kPrefillColumns[] = {
    {"batch_size", needed, "sequences"},
    {"isl", needed, "tokens of each prompt"},
    {"num_heads", needed, "of the queries"},
    {"num_key_value_heads", needed, "of the keys"},
    {"head_dim", needed, ""},
};

constexpr Column kDecodeColumns[] = {
    {"batch_size", needed, "sequences"},
    {"isl", needed, "tokens before the first step"},
    {"num_heads", needed, "of the queries"},
    {"num_key_value_heads", needed, "of the keys"},
    {"head_dim", needed, ""},
    {"step", needed, "tokens made before; isl + step are cached"},
};

constexpr Column kNcclColumns[] = {
    {"op_name", needed, "all_reduce, reduce_scatter, all_gather or alltoall"},
    {"nccl_dtype", needed, "half, bfloat16, float or int8"},
    {"num_gpus", needed, "ranks, in one node or NVLink domain"},
    {"message_size", needed, "elements, as nccl-tests counts: of the whole tensor"},
};

constexpr Column kCustomAllReduceColumns[] = {
    {"op_name", needed, "all_reduce"},
    {"kernel_source", needed, "the engine: TRTLLM, vLLM_.. or SGLang_.., and eager or graph"},
    {"allreduce_dtype", needed, "half, bfloat16 or float"},
    {"num_gpus", needed, "ranks, in one node or NVLink domain"},
    {"message_size", needed, "elements"},
};

constexpr Column kExpertColumns[] = {
    {"num_tokens", needed, "of all ranks together"},
    {"hidden_size", needed, "values of a token"},
    {"inter_size", needed, "width of an expert"},
    {"topk", needed, "experts that a token chooses"},
    {"num_experts", needed, "of all ranks"},
    {"moe_tp_size", needed, "ranks that share the width of an expert"},
    {"moe_ep_size", needed, "ranks that share the experts"},
    {"distribution", needed, "of tokens over experts: balanced or power_law_EXPONENT"},
};

constexpr Column kLatentColumns[] = {
    {"op_name", needed, "mla_context or mla_generation"},
    {"mla_dtype", needed, "of the queries"},
    {"kv_cache_dtype", needed, "of the cache"},
    {"batch_size", needed, "sequences"},
    {"isl", needed, "tokens of each prompt"},
    {"step", needed, "tokens made before; isl + step are cached"},
    {"num_heads", needed, "of this rank"},
    {"tp_size", needed, "ranks that share the heads"},
};

constexpr Column kExchangeColumns[] = {
    {"op_name", needed, "ll (low latency) or normal"},
    {"node_num", needed, "nodes of 8 ranks"},
    {"hidden_size", needed, "values of a token"},
    {"num_token", needed, "of each rank"},
    {"num_topk", needed, "experts that a token chooses"},
    {"num_experts", needed, "of all ranks"},
    {"dispatch_sms", free, "that the kernel ran on; normal rows need it"},
    {"dispatch_transmit_us", free, "microseconds, like all below"},
    {"dispatch_notify_us", free, ""},
    {"combine_sms", free, "likewise"},
    {"combine_transmit_us", free, ""},
    {"combine_notify_us", free, ""},
    {"dispatch_avg_t_us", free, ""},
    {"combine_avg_t_us", free, ""},
};

enum class Times : std::uint8_t { one, own };

/// The columns of a table of kernels alone; its times may have columns of their own.
std::vector<Column> alone(std::span<const Column> call, Times times = Times::one) {
  std::vector<Column> columns = {{"id", free, "name of the row"},
                                 {"device", needed, "a device preset or a name it goes by"}};
  columns.insert(columns.end(), call.begin(), call.end());
  if (times == Times::one) columns.push_back({"measured_time_s", free, "seconds"});
  columns.push_back({"file", free, "free text"});
  columns.push_back(kSource);
  return columns;
}

bool names(std::span<const Column> columns, std::string_view name) {
  return std::ranges::find(columns, name, &Column::name) != columns.end();
}

/// Whether the header is of a public table, which names device or software.
bool is_public(std::span<const std::string> header) {
  const auto has = [&](std::string_view name) { return std::ranges::find(header, name) != header.end(); };
  return (has("device") || has("software")) && !(has("cluster") && has("stack"));
}

std::span<const Column> columns_for(TableKind kind, std::span<const std::string> header) {
  return kind == TableKind::plans && is_public(header) ? public_plan_columns() : columns_of(kind);
}

/// The column that may replace another; itself where none may.
std::string_view alternative(std::string_view column) {
  if (column == "device") return "cluster";
  return column == "software" ? "stack" : column;
}

/// How well a header matches a form: the better of two is the larger one.
struct Match {
  int faults = 0;    ///< less than 0, for each needed column that is missing and each unknown one
  double share = 0;  ///< of the form's needed and expected columns
  int due = 0;       ///< number of these
  friend auto operator<=>(const Match&, const Match&) = default;
};

bool knows(TableKind kind, std::span<const Column> columns, std::string_view name) {
  return names(columns, name) || (kind == TableKind::open_loop && is_prediction_of_another(name));
}

/// Nothing where too few columns are there to tell.
std::optional<Match> match(TableKind kind, std::span<const Column> columns,
                           std::span<const std::string> header) {
  Match found;
  int there = 0, needed_columns = 0, missing = 0;
  const auto has = [&](std::string_view name) { return std::ranges::find(header, name) != header.end(); };
  for (const Column& column : columns) {
    if (column.use == free) continue;
    ++found.due;
    there += has(column.name) ? 1 : 0;
    if (column.use != needed) continue;
    ++needed_columns;
    missing += has(column.name) || has(alternative(column.name)) ? 0 : 1;
  }
  found.share = static_cast<double>(there) / found.due;
  found.faults = -missing;
  for (const std::string& name : header) found.faults -= knows(kind, columns, name) ? 0 : 1;
  if (found.share <= 0.5 && 2 * missing > needed_columns) return std::nullopt;
  return found;
}

}  // namespace

std::span<const Column> columns_of(TableKind kind) {
  const auto list = [](std::span<const Column> columns) {
    return std::vector<Column>(columns.begin(), columns.end());
  };
  static const EnumArray<TableKind, std::vector<Column>> kColumns{
      {plan_columns(PlanForm::ours), open_loop_list(), mlperf_list(), list(kGemmColumns),
       list(kCollectiveColumns), alone(kGemmAloneColumns), alone(kPrefillColumns), alone(kDecodeColumns),
       alone(kNcclColumns), alone(kCustomAllReduceColumns), alone(kExpertColumns), alone(kLatentColumns),
       alone(kExchangeColumns, Times::own)}};
  return kColumns[kind];
}

std::span<const Column> public_plan_columns() {
  static const std::vector<Column> kColumns = plan_columns(PlanForm::others);
  return kColumns;
}

bool is_prediction_of_another(std::string_view name) {
  for (const std::string_view what : {"_ttft_", "_itl_", "_e2e_"}) {
    const std::size_t at = name.find(what);
    if (at != std::string_view::npos && at > 0 && name.ends_with("_s") &&
        !names(columns_of(TableKind::open_loop), name))
      return true;
  }
  return false;
}

std::optional<TableKind> recognise(std::span<const std::string> header) {
  std::optional<TableKind> best;
  std::optional<Match> best_match;
  for (const TableKind kind : enum_values<TableKind>()) {
    const std::optional<Match> found = match(kind, columns_for(kind, header), header);
    if (!found || (best_match && *found <= *best_match)) continue;
    best = kind;
    best_match = found;
  }
  return best;
}

std::vector<TableProblem> check_header(const Table& table, TableKind kind) {
  std::vector<TableProblem> problems;
  const std::span<const Column> known = columns_for(kind, table.columns);
  std::vector<std::string_view> absent;
  for (const Column& column : known) {
    if (table.column(column.name)) continue;
    absent.push_back(column.name);
    if (column.use != needed || table.column(alternative(column.name))) continue;
    problems.push_back({table.file, 1, std::string(column.name), "missing column; every row needs it"});
  }
  for (const std::string& name : table.columns) {
    if (knows(kind, known, name)) continue;
    problems.push_back(
        {table.file, 1, name.empty() ? "(no name)" : name,
         fmt::format("unknown column of a table of {}{}; 'shardscape validate --help' lists them",
                     name_of(kind), did_you_mean(name, absent))});
  }
  return problems;
}

}  // namespace shardscape::validate
