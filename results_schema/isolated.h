// verify() in a process of its own: HDF5 may crash over a damaged file, or never come back from it.
#pragma once

#include <chrono>
#include <filesystem>

#include "results_schema/verify.h"

namespace shardscape::results {

/// As verify(), and ends for any bytes whatsoever: a file that HDF5 crashes over, or on which it spends
/// `limit` of CPU time without getting anywhere, has that as its problem. Starts a process; call it from a
/// program that runs one thread.
Verification verify_isolated(const std::filesystem::path& file,
                             std::chrono::seconds limit = std::chrono::seconds(10));

}  // namespace shardscape::results
