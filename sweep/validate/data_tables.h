// The texts of table_columns.csv and table_templates.csv, which are built into the program.
#pragma once

#include <string_view>

namespace shardscape::validate::data {

std::string_view table_columns();
std::string_view table_templates();

}  // namespace shardscape::validate::data
