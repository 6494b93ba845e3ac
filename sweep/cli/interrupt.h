// Two-stage Ctrl-C: the first SIGINT or SIGTERM asks, the second leaves at once.
#pragma once

#include <atomic>
#include <string_view>

namespace shardscape::cli {

/// While alive, the first signal sets stop() and says so on stderr; the second says how to go on and ends the
/// process with code 130 without any clean-up (sealed segments are intact at every moment). At most one
/// object at a time.
class InterruptGuard {
 public:
  /// `resume`: the command that continues what is interrupted; empty: nothing is said, as another process
  /// does.
  explicit InterruptGuard(std::string_view resume);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  [[nodiscard]] const std::atomic<bool>& stop() const;
};

}  // namespace shardscape::cli
