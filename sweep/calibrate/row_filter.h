// Selects rows of a measurement table by a condition on their cells.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "sweep/validate/measured_table.h"

namespace shardscape::calibrate {

/// The rows for which `expression` holds (in the language of sweep/space/expression.h, with the table's columns as
/// names). A column whose filled cells are all plain numbers is a number; any other is a choice among its texts. A
/// comparison with a blank cell holds only for !=. Problems: what is wrong with the expression, or that it holds for no
/// row. Tables that name software also have a column `release`: the number of the release that software and source of a
/// row state (validate/run_labels.h), if they do.
tl::expected<validate::Table, std::string> rows_where(const validate::Table& rows,
                                                      std::string_view expression);

}  // namespace shardscape::calibrate
