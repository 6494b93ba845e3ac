#include "sweep/validate/table_columns.h"

#include <algorithm>
#include <vector>

#include "engine/base/suggest.h"
#include "engine/spec/plan_axes.h"

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
// The plan's axes stand between.
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
    {"measured_oom", free, "1: the run went out of memory, 0: it did not"},
    {"measured_ttft_s", free, "time to first token, seconds"},
    {"measured_itl_s", free, "inter-token latency, seconds"},
    {"measured_e2e_s", free, "whole request, seconds"},
    {"source", free, "free text"},
};

std::vector<Column> plan_columns() {
  std::vector<Column> columns(std::begin(kRowColumns), std::end(kRowColumns));
  const auto add = [&](const PlanAxisRow& row) {
    if (row.cell != nullptr) columns.push_back({row.column, row.cell_due ? expected : free, row.cell});
  };
  for (const PlanAxisRow& row : kPlanRows) {
    if (row.key != PlanKey::microbatch) add(row);
  }
  add(row_of(PlanKey::microbatch));  // beside the batches
  columns.insert(columns.end(), std::begin(kLoadColumns), std::end(kLoadColumns));
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

bool names(std::span<const Column> columns, std::string_view name) {
  return std::ranges::find(columns, name, &Column::name) != columns.end();
}

}  // namespace

std::span<const Column> columns_of(TableKind kind) {
  switch (kind) {
    case TableKind::plans: {
      static const std::vector<Column> kPlanColumns = plan_columns();
      return kPlanColumns;
    }
    case TableKind::gemm:
      return kGemmColumns;
    case TableKind::collectives:
      return kCollectiveColumns;
  }
  return {};
}

std::optional<TableKind> recognise(std::span<const std::string> header) {
  std::optional<TableKind> best;
  double best_share = 0.5;
  for (const TableKind kind : {TableKind::plans, TableKind::gemm, TableKind::collectives}) {
    int due = 0, there = 0;
    for (const Column& column : columns_of(kind)) {
      if (column.use == free) continue;
      ++due;
      there += std::ranges::find(header, column.name) != header.end() ? 1 : 0;
    }
    const double share = static_cast<double>(there) / due;
    if (share < best_share || (best && share == best_share)) continue;
    best = kind;
    best_share = share;
  }
  return best;
}

std::vector<TableProblem> check_header(const Table& table, TableKind kind) {
  std::vector<TableProblem> problems;
  const std::span<const Column> known = columns_of(kind);
  std::vector<std::string_view> absent;
  for (const Column& column : known) {
    if (std::ranges::find(table.columns, column.name) != table.columns.end()) continue;
    absent.push_back(column.name);
    if (column.use == free) continue;
    const std::string right =
        column.use == needed ? "every row needs it" : "leave its cells blank where they are not known";
    problems.push_back({table.file, 1, std::string(column.name), "missing column; " + right});
  }
  for (const std::string& name : table.columns) {
    if (names(known, name)) continue;
    problems.push_back({table.file, 1, name.empty() ? "(no name)" : name,
                        "unknown column of a table of " + std::string(name_of(kind)) +
                            did_you_mean(name, absent) + "; 'shardscape validate --help' lists them"});
  }
  return problems;
}

}  // namespace shardscape::validate
