#pragma once

#include <ctime>

namespace shardscape::cli {

/// CPU seconds of this process so far, user and system, of all threads.
inline double cpu_seconds() {
  std::timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace shardscape::cli
