// Two-stage Ctrl-C: the first SIGINT or SIGTERM asks, the second leaves at once.
#pragma once

#include <atomic>

namespace shardscape::program {

/// While alive, the first signal sets stop() and says so on stderr; the second ends the process with code 130
/// without any clean-up (sealed segments are intact at every moment). At most one object at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  [[nodiscard]] const std::atomic<bool>& stop() const;
};

}  // namespace shardscape::program
