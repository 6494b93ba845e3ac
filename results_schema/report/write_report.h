// From a result file to a page on disk.
#pragma once

#include "results_schema/output_file.h"
#include "results_schema/report/report_data.h"

namespace shardscape::report {

/// StoreError where the results cannot be read or the page cannot be written; what was there then stays.
/// Returns the size of the page in bytes.
std::uint64_t write_report(const results::ResultReader& reader, const ReportInput& input,
                           const results::OutputPath& output);

}  // namespace shardscape::report
