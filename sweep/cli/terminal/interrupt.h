// Two-stage Ctrl-C: the first SIGINT or SIGTERM asks the program to stop, the second ends it at once.
#pragma once

#include <atomic>
#include <string>

namespace shardscape::cli {

/// Messages on stderr for signals, without "shardscape: "; where both are empty, another process prints messages.
struct InterruptTexts {
  std::string first;   ///< at the first signal: what is being finished, and what is kept
  std::string second;  ///< at the second one, before leaving: what was kept, and the command to continue
};

/// While it exists, the first signal sets stop() and prints a message; the second ends the process with code 130
/// without any clean-up (sealed segments are intact at every moment). At most one object may exist. Where `instead` is
/// given, as inside another program that hears signals itself, it is what stop() returns, and signals are left alone.
class InterruptGuard {
 public:
  explicit InterruptGuard(const InterruptTexts& texts, const std::atomic<bool>* instead = nullptr);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  [[nodiscard]] const std::atomic<bool>& stop() const;

 private:
  const std::atomic<bool>* instead_;
};

}  // namespace shardscape::cli
