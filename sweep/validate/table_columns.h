// The columns of all kinds of measurement tables, in one list for reading, messages and documentation, and tables to
// begin with: the columns that matter, and a row to replace.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/enum_names.h"
#include "sweep/validate/measured_table.h"

namespace shardscape::validate {

enum class TableKind : std::uint8_t {
  plans,
  open_loop,    ///< servers to which requests come at a rate
  mlperf,       ///< results of MLPerf Inference for language models
  gemm,         ///< matrix products under a profiler, with tile and clock
  collectives,  ///< collectives on clusters
  // Kernels or collectives that are launched repeatedly on one device or node, from public benchmarks.
  gemm_alone,
  attention_prefill,
  attention_decode,
  nccl,
  custom_all_reduce,
  experts,  ///< grouped products of experts
  latent_attention,
  expert_exchange  ///< dispatch and combine of experts
};
SHARDSCAPE_ENUM_NAMES(TableKind, "plans", "open-loop", "mlperf", "gemm", "collectives", "gemm-alone",
                      "attention-prefill", "attention-decode", "nccl", "custom-all-reduce", "experts",
                      "latent-attention", "expert-exchange");

/// needed: the column must exist and its cells must be filled. expected: most tables have it. free: few have. Where a
/// column is missing, all of its cells are blank.
enum class ColumnUse : std::uint8_t { needed, expected, free };

struct Column {
  std::string_view name;
  ColumnUse use;
  std::string_view meaning;  ///< with its unit, and the meaning of a blank cell
};

std::span<const Column> columns_of(TableKind kind);
/// The columns of public tables of plans: device and software in place of cluster and stack.
std::span<const Column> public_plan_columns();

/// Whether a column of an open loop has what another program predicts: NAME_ttft_mean_s, NAME_itl_p99_s, ...
bool is_prediction_of_another(std::string_view name);

/// The kind under which the header has the fewest faults (needed columns that are missing, and unknown ones), among
/// equals that with the largest share of its needed and expected columns. Nothing where every kind lacks more than half
/// of both these columns and the needed ones.
std::optional<TableKind> recognise(std::span<const std::string> header);

/// Needed columns that are missing, and columns that the kind does not have, each with what was probably meant.
std::vector<TableProblem> check_header(const Table& table, TableKind kind);

struct TableTemplate {
  std::string_view name;  ///< "training", "serving", or that of the kind
  TableKind kind;
  std::string_view csv;  ///< the header, and a row as an example
};

/// A template of plans for each phase, and one for every other kind of table.
std::span<const TableTemplate> table_templates();

/// What the columns of the template mean, a line for each.
std::string column_meanings(const TableTemplate& of);

}  // namespace shardscape::validate
