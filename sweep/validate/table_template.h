// Tables to begin with: the columns that matter, and a row to replace.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sweep/validate/table_columns.h"

namespace shardscape::validate {

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
