// The documentation of the result file, generated from the table of columns.
#pragma once

#include <string>

namespace shardscape::results {

/// The text of results_schema/SCHEMA.md.
std::string schema_markdown();

}  // namespace shardscape::results
