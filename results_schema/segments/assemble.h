// Makes the finished file, from sealed segments or from finished shards.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "results_schema/disk/output_file.h"
#include "results_schema/rows/summary.h"
#include "results_schema/segments/segments.h"

namespace shardscape::results {

/// Writes `output` from a complete parts folder: compressed chunks are copied as they are, and the segments' summaries
/// are put together, one segment at a time. The file is written under a temporary name inside the
/// folder (or beside `output`, where that is on another file system), synced and put in place; the folder
/// is removed last. `run` says who assembled (root attributes only). Datasets depend on the study alone, not on the
/// segments' sizes or order.
///
/// StoreError where blocks are missing, the disk fails or a segment is broken; the folder is then as it was,
/// and `output` untouched. A process killed at any moment leaves either the folder or the finished file (or
/// both: resume assembles again).
Summary assemble(SegmentStore&& store, const OutputPath& output, const RunInfo& run);

/// A finished file that holds a part of a sweep.
struct SweepPart {
  std::filesystem::path path;
  Manifest manifest;
};

/// Opens finished files and sorts them by the order of their points. StoreError where one cannot be read.
std::vector<SweepPart> open_parts(std::span<const std::filesystem::path> files);

/// The reasons why these files (at least one, as open_parts() gives them) are not neighbouring parts of one sweep:
/// other studies, versions, columns or block sizes, points that occur twice or are missing between them. One line per
/// file, which names it.
std::vector<std::string> merge_problems(std::span<const SweepPart> parts);

/// Writes `output` from parts without merge_problems(): the file that an unsharded sweep of their points writes. The
/// parts are not changed. Writes under a temporary name beside `output`; StoreError where that fails, with nothing left
/// behind.
Summary merge(std::span<const SweepPart> parts, const OutputPath& output, const RunInfo& run);

}  // namespace shardscape::results
