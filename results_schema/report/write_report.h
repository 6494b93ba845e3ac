// From a result file to a page on disk.
#pragma once

#include <filesystem>

#include "results_schema/report/report_data.h"

namespace shardscape::report {

/// Writes the page under a temporary name and renames it over `output`; on failure what was there stays.
/// StoreError where the results cannot be read or the page cannot be written. Returns its size in bytes.
std::uint64_t write_report(const results::ResultReader& reader, const ReportInput& input,
                           const std::filesystem::path& output);

}  // namespace shardscape::report
