// Two-stage Ctrl-C: the first SIGINT or SIGTERM asks, the second leaves at once.
#pragma once

#include <atomic>
#include <string>

namespace shardscape::cli {

/// What is said on stderr on a signal, without "shardscape: " before it; where both are empty another process speaks.
struct InterruptTexts {
  std::string first;   ///< on the first one: what is being finished, and what is kept
  std::string second;  ///< on the second one, in leaving: what was kept, and the command that goes on
};

/// While alive, the first signal sets stop() and says so; the second ends the process with code 130 without any clean-up
/// (sealed segments are intact at every moment). At most one object at a time.
class InterruptGuard {
 public:
  explicit InterruptGuard(const InterruptTexts& texts);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  [[nodiscard]] const std::atomic<bool>& stop() const;
};

}  // namespace shardscape::cli
