// The documentation of the result file: its tables come from the table of columns.
#pragma once

#include <string>

namespace shardscape::results {

/// The text of results_schema/SCHEMA.md with its tables of columns and codes, and the version, as this program has
/// them.
std::string with_tables(std::string document);

}  // namespace shardscape::results
