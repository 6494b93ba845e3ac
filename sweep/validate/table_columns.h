// The columns of the three kinds of measurement tables: one list for reading, messages and documentation.
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

enum class TableKind : std::uint8_t { plans, gemm, collectives };

/// needed: the column must be there and its cells filled. expected: the column must be there, cells may be
/// blank. free: the column may be absent.
enum class ColumnUse : std::uint8_t { needed, expected, free };

struct Column {
  std::string_view name;
  ColumnUse use;
  std::string_view meaning;  ///< with unit, and what a blank cell stands for
};

std::span<const Column> columns_of(TableKind kind);

/// The kind that shares most column names with the header; nothing where none shares half of its own needed
/// and expected columns.
std::optional<TableKind> recognise(std::span<const std::string> header);

/// Columns that are missing, and columns that the kind does not have, each with what was probably meant.
std::vector<TableProblem> check_header(const Table& table, TableKind kind);

}  // namespace shardscape::validate

namespace shardscape {
SHARDSCAPE_ENUM_NAMES(validate::TableKind, "plans", "gemm", "collectives");
SHARDSCAPE_ENUM_NAMES(validate::ColumnUse, "needed", "expected", "free");
}  // namespace shardscape
