// Runs verify() in a process of its own, since HDF5 may crash or loop forever over a damaged file.
#pragma once

#include <chrono>
#include <filesystem>

#include "results_schema/reading/verify.h"

namespace shardscape::results {

/// verify(), and the dimensions of a finished file, but certain to return, whatever the bytes: if HDF5 crashes over a
/// file, or spends `limit` of CPU time on it, that is reported as a problem of the file. Forks a process; call it from
/// a program with one thread.
Verification verify_isolated(const std::filesystem::path& file,
                             std::chrono::seconds limit = std::chrono::seconds(10));

}  // namespace shardscape::results
