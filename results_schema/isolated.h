// verify() in a process of its own: HDF5 may crash over a damaged file, or never come back from it.
#pragma once

#include <chrono>
#include <filesystem>

#include "results_schema/verify.h"

namespace shardscape::results {

/// As verify() and the dimensions of a finished file, but certain to return, whatever the bytes: that HDF5 crashes over a file, or spends `limit` of
/// CPU time on it, is then reported as the file's problem. Starts a process; call it from a
/// program that runs one thread.
Verification verify_isolated(const std::filesystem::path& file,
                             std::chrono::seconds limit = std::chrono::seconds(10));

}  // namespace shardscape::results
