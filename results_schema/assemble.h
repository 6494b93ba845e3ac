// From sealed segments to the finished file.
#pragma once

#include <filesystem>

#include "results_schema/segments.h"
#include "results_schema/summary.h"

namespace shardscape::results {

/// Writes `output` from a complete parts folder: compressed chunks are copied as they are, summary tables are
/// computed on the way, one chunk in memory at a time. The file is written under a temporary name inside the
/// folder, synced and renamed over `output`; the folder goes last. `run` says who assembled (root attributes
/// only). Datasets depend on the study alone, not on the segments' sizes or order.
///
/// StoreError where blocks are missing, the disk fails or a segment is broken; the folder is then as it was,
/// and `output` untouched. A process killed at any moment leaves either the folder or the finished file (or
/// both: resume assembles again).
Summary assemble(SegmentStore&& store, const std::filesystem::path& output, const RunInfo& run);

}  // namespace shardscape::results
