// Rows of a measurement table by what their cells say.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "sweep/validate/measured_table.h"

namespace shardscape::calibrate {

/// The rows for which `expression` holds (the language of sweep/space/expression.h, its names the columns of
/// the table). A column whose filled cells are all plain numbers is a number; any other is a choice among the
/// texts it has. A comparison with a blank cell holds for != only. Problems: what is wrong with the
/// expression, or that it holds for no row. Tables that name software have a column `release` besides, the number of
/// what software and source of their rows state (validate/release.h), where they state one.
tl::expected<validate::Table, std::string> rows_where(const validate::Table& rows,
                                                      std::string_view expression);

}  // namespace shardscape::calibrate
