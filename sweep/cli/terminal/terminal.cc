#include "sweep/cli/terminal/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "engine/base/words.h"

namespace shardscape::cli {

namespace {

constexpr std::size_t kNarrowest = 20;  // tables are not readable on less

/// The width in COLUMNS, where that is a plausible number.
std::optional<std::size_t> stated_width() {
  const char* const text = std::getenv("COLUMNS");
  if (text == nullptr) return std::nullopt;
  const auto width = to_number<std::size_t>(text);
  return width >= kNarrowest ? width : std::nullopt;
}

// Where the streams write when the program begins, or is loaded by another one, which may then take what is written
// elsewhere.
const std::streambuf* const kOut = std::cout.rdbuf();
const std::streambuf* const kErr = std::cerr.rdbuf();

/// The file of the terminal behind a stream; -1 where there is none.
int terminal_of(const std::ostream& out) {
  const int file = out.rdbuf() == kOut ? STDOUT_FILENO : out.rdbuf() == kErr ? STDERR_FILENO : -1;
  return file >= 0 && isatty(file) != 0 ? file : -1;
}

}  // namespace

std::string styled(const std::ostream& out, std::string_view text, std::string_view style) {
  const char* const no_color = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  // mpirun gives its first process a terminal of its own, wherever the output goes.
  const bool launched = std::getenv("OMPI_COMM_WORLD_RANK") != nullptr || std::getenv("PMI_RANK") != nullptr;
  const bool plain = launched || (no_color != nullptr && *no_color != '\0') ||
                     (terminal != nullptr && std::string_view(terminal) == "dumb") || terminal_of(out) < 0;
  return plain ? std::string(text)
               : std::string("\x1b[").append(style).append("m").append(text).append("\x1b[0m");
}

std::optional<std::size_t> terminal_width(const std::ostream& out) {
  const int file = terminal_of(out);
  if (file < 0) return std::nullopt;
  if (const auto stated = stated_width()) return stated;
  winsize size{};
  if (ioctl(file, TIOCGWINSZ, &size) != 0 || size.ws_col < kNarrowest) return std::nullopt;
  return size.ws_col;
}

}  // namespace shardscape::cli
