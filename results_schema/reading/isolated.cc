// Verifies a file in a child process: the parent forks, reads the child's findings from a pipe until it closes, and
// turns the signal of a child that crashed, or used too much CPU time, into a problem of the file.
#include "results_schema/reading/isolated.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/words.h"
#include "results_schema/disk/files.h"
#include "results_schema/hdf5/tables_io.h"

namespace shardscape::results {

namespace fs = std::filesystem;

namespace {

// The child sends texts, each as "LENGTH:TEXT": first "ok" or "failed", then the counts and problems, or the reason of
// the failure. Problems of dimensions follow in the end, where following them has not ended the child.

constexpr std::string_view kOk = "2:ok";

void add_text(std::string& message, std::string_view text) {
  message.append(std::to_string(text.size())).append(":").append(text);
}

std::optional<std::string> take_text(std::string_view& message) {
  std::size_t size = 0;
  const auto [colon, error] = std::from_chars(message.data(), message.data() + message.size(), size);
  const auto start = static_cast<std::size_t>(colon - message.data()) + 1;
  if (error != std::errc() || start > message.size() || *colon != ':' || size > message.size() - start) {
    return std::nullopt;
  }
  std::string text(message.substr(start, size));
  message.remove_prefix(start + size);
  return text;
}

/// The problem of the dimensions, which only other readers of the file follow, as a text of a message; empty where
/// there is none.
std::string dimensions_message(const fs::path& file) {
  const QuietErrors quiet;
  std::string message;
  try {
    if (fs::is_regular_file(file)) check_dimensions(H5File::open(file));
  } catch (const StoreError& error) {
    add_text(message, error.reason());
  }
  return message;
}

std::string message_of(const fs::path& file, const std::function<void()>& step) {
  std::string message;
  try {
    const Verification found = verify(file, step);
    add_text(message, "ok");
    add_text(message, std::to_string(found.rows));
    add_text(message, std::to_string(found.samples));
    for (const std::string& problem : found.problems) add_text(message, problem);
  } catch (const StoreError& failure) {
    add_text(message, "failed");
    add_text(message, failure.path().string());
    add_text(message, failure.reason());
  } catch (const std::exception& failure) {
    add_text(message, "failed");
    add_text(message, file.string());
    add_text(message, failure.what());
  }
  return message;
}

/// Makes SIGPROF end this process once it has used `limit` of CPU time from now on.
void allow_cpu_time(std::chrono::seconds limit) {
  const itimerval timer{{0, 0}, {limit.count(), 0}};
  ::setitimer(ITIMER_PROF, &timer, nullptr);
}

void send(int pipe, std::string_view rest) {
  while (!rest.empty()) {
    const ssize_t sent = ::write(pipe, rest.data(), rest.size());
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) break;
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
}

[[noreturn]] void run_child(const fs::path& file, std::chrono::seconds limit, int pipe) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGPROF, SIG_DFL);
  allow_cpu_time(limit);
  const std::string message = message_of(file, [limit] { allow_cpu_time(limit); });
  send(pipe, message);
  allow_cpu_time(limit);
  if (message.starts_with(kOk)) send(pipe, dimensions_message(file));
  ::_exit(0);
}

std::string receive(int pipe) {
  std::string message;
  std::array<char, 4096> piece;
  for (;;) {
    const ssize_t size = ::read(pipe, piece.data(), piece.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return message;
    message.append(piece.data(), static_cast<std::size_t>(size));
  }
}

Verification decode(const fs::path& file, std::string_view message) {
  const auto kind = take_text(message), first = take_text(message), second = take_text(message);
  if (!second) throw StoreError(file, "can't be verified: the process that reads it broke off");
  if (*kind == "failed") throw StoreError(*first, *second);
  Verification found{
      to_number<std::uint64_t>(*first).value_or(0), to_number<std::uint64_t>(*second).value_or(0), {}};
  while (const auto problem = take_text(message)) found.problems.push_back(*problem);
  return found;
}

}  // namespace

Verification verify_isolated(const fs::path& file, std::chrono::seconds limit) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail_with(file, "can't start to read it", errno);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    run_child(file, limit, ends[1]);
  }
  const int fork_error = errno;
  ::close(ends[1]);
  const std::string message = child < 0 ? "" : receive(ends[0]);
  ::close(ends[0]);
  if (child < 0) fail_with(file, "can't start to read it", fork_error);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFSIGNALED(status)) return decode(file, message);
  // Findings from before the crash count, too.
  const bool verified = message.starts_with(kOk);
  Verification found = verified ? decode(file, message) : Verification();
  const int signal = WTERMSIG(status);
  found.problems.push_back(
      fmt::format("is damaged: reading {} {}", verified ? "its dimensions" : "it",
                  signal == SIGPROF ? "does not end" : fmt::format("crashes (signal {})", signal)));
  return found;
}

}  // namespace shardscape::results
