// Writes the page of a result file to the disk.
#pragma once

#include "results_schema/disk/output_file.h"
#include "results_schema/report/report_data.h"

namespace shardscape::report {

/// Returns the size of the page in bytes. StoreError where the results cannot be read or the page cannot be written; an
/// existing file then stays.
std::uint64_t write_report(const results::ResultReader& reader, const ReportInput& input,
                           const results::OutputPath& output);

}  // namespace shardscape::report
