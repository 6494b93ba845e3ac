#include "sweep/cli/terminal/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <iostream>

#include "engine/base/safe_text.h"
#include "sweep/cli/terminal/text_table.h"

namespace shardscape::cli {

namespace {

using namespace std::chrono_literals;

ProgressMode resolve(ProgressMode mode) {
  if (mode != ProgressMode::automatic) return mode;
  return isatty(STDERR_FILENO) != 0 ? ProgressMode::line : ProgressMode::plain;
}

std::chrono::nanoseconds interval(ProgressMode mode) {
  if (mode == ProgressMode::line) return 200ms;
  return mode == ProgressMode::json ? 1s : 5s;
}

std::size_t progress_width() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 120;
  return size.ws_col;
}

}  // namespace

ProgressLine::ProgressLine(ProgressMode mode)
    : mode_(resolve(mode)), start_(Clock::now()), next_(start_ + interval(mode_)) {}

void ProgressLine::update(const std::function<std::string()>& text,
                          const std::function<nlohmann::ordered_json()>& json) {
  const Clock::time_point now = Clock::now();
  if (mode_ == ProgressMode::none || now < next_) return;
  next_ = now + interval(mode_);
  if (mode_ == ProgressMode::json) {
    std::cout << json_text(json()) << std::endl;
  } else if (mode_ == ProgressMode::plain) {
    std::cerr << text() << '\n';
  } else {
    const std::string line = shortened(text(), progress_width() - 1);
    const std::size_t blanks = width_ > line.size() ? width_ - line.size() : 0;
    std::cerr << '\r' << line << std::string(blanks, ' ') << std::flush;
    width_ = line.size();
  }
}

void ProgressLine::close() {
  if (width_ > 0) std::cerr << '\n';
  width_ = 0;
  mode_ = ProgressMode::none;
}

double ProgressLine::elapsed_seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

}  // namespace shardscape::cli
