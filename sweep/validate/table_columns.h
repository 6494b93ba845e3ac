// The columns of the kinds of measurement tables: one list for reading, messages and documentation.
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
  gemm,         ///< under a profiler, with its tile and clock
  collectives,  ///< on clusters
  // Repeated launches of one kernel or collective on one device or node, by its public benchmarks.
  gemm_alone,
  attention_prefill,
  attention_decode,
  nccl,
  custom_all_reduce,
  experts,  ///< grouped products
  latent_attention,
  expert_exchange  ///< dispatch and combine
};

/// needed: the column must be there and its cells filled. expected: the column must be there, cells may be
/// blank. free: the column may be absent.
enum class ColumnUse : std::uint8_t { needed, expected, free };

struct Column {
  std::string_view name;
  ColumnUse use;
  std::string_view meaning;  ///< with unit, and what a blank cell stands for
};

std::span<const Column> columns_of(TableKind kind);
/// Those of other people's tables of plans: device and software in place of cluster and stack.
std::span<const Column> public_plan_columns();

/// The kind that shares most column names with the header, among equals the one with more columns; nothing
/// where none shares half of its own needed and expected columns.
std::optional<TableKind> recognise(std::span<const std::string> header);

/// Columns that are missing, and columns that the kind does not have, each with what was probably meant.
std::vector<TableProblem> check_header(const Table& table, TableKind kind);

}  // namespace shardscape::validate

namespace shardscape {
SHARDSCAPE_ENUM_NAMES(validate::TableKind, "plans", "gemm", "collectives", "gemm-alone", "attention-prefill",
                      "attention-decode", "nccl", "custom-all-reduce", "experts", "latent-attention",
                      "expert-exchange");
SHARDSCAPE_ENUM_NAMES(validate::ColumnUse, "needed", "expected", "free");
}  // namespace shardscape
