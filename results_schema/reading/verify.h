// Checks that a result file holds what it says, and that its parts agree with each other.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "results_schema/reading/reader.h"

namespace shardscape::results {

struct Verification {
  std::uint64_t rows = 0, samples = 0;  ///< numbers of rows of /points and of /fault_samples
  std::vector<std::string> problems;    ///< one line each: the problem, how often it occurs, the first point
};

/// Reads every value of a finished file or of the segments of a running sweep, which holds it against its checksum, and
/// checks
///   - the fingerprints of study, sources and columns against the texts and columns that are there;
///   - that rows ascend, codes are in their range, exactly the points that are ok have no reason and have a
///     time, and breakdowns add up to it (training; 1e-5, they are f4);
///   - that /fault_samples belong to points that are ok, as many as each says, that slowdowns follow from the
///     times (1e-12) and their mean is that of the point (1e-9);
///   - that /summary is that of the rows (a finished file), as far as these say where not all are stored, and that
///     those that are stored are so many and such as the file says;
///   - the checksum of every segment (of a running sweep).
/// StoreError where the file is foreign or can't be read. `step` is called every so often.
Verification verify(const std::filesystem::path& file, const std::function<void()>& step = {});

}  // namespace shardscape::results
