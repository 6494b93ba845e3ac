#include "sweep/cli/terminal/interrupt.h"

#include <csignal>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

#include "sweep/cli/terminal/exit_code.h"

namespace shardscape::cli {

namespace {

// Global, as a signal handler can reach nothing else.
std::atomic<bool> stop_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free);
struct sigaction previous_interrupt, previous_terminate;

std::string warning, farewell;  // written before the handler is installed, which only reads them

void say(std::string_view text) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
}

extern "C" void on_signal(int /*signal*/) {
  if (stop_requested.exchange(true)) {
    say(farewell);
    _exit(kInterrupted);
  }
  say(warning);
}

}  // namespace

InterruptGuard::InterruptGuard(const InterruptTexts& texts, const std::atomic<bool>* instead)
    : instead_(instead) {
  if (instead_ != nullptr) return;
  warning = texts.first.empty() ? "" : fmt::format("\nshardscape: {}\n", texts.first);
  farewell = texts.second.empty() ? "" : fmt::format("\ninterrupted: left at once; {}\n", texts.second);
  stop_requested = false;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &previous_interrupt);
  sigaction(SIGTERM, &action, &previous_terminate);
}

InterruptGuard::~InterruptGuard() {
  if (instead_ != nullptr) return;
  sigaction(SIGINT, &previous_interrupt, nullptr);
  sigaction(SIGTERM, &previous_terminate, nullptr);
}

const std::atomic<bool>& InterruptGuard::stop() const {
  return instead_ != nullptr ? *instead_ : stop_requested;
}

}  // namespace shardscape::cli
