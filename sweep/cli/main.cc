// shardscape: the program. Runs the subcommand of its command line, and turns failures into messages and exit codes.
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <csignal>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "results_schema/disk/output_file.h"
#include "sweep/cli/run_command.h"
#include "sweep/cli/terminal/failure_text.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/cli/terminal/terminal.h"

namespace shardscape::cli {

namespace {

int fail(const std::vector<std::string>& problems, const std::string& summary, int code,
         std::size_t further = 0) {
  print_problems(std::cerr, problems, further);
  std::cerr << styled(std::cerr, "shardscape: " + summary, "31") << '\n';
  return code;
}

int refuse(const std::vector<std::string>& problems, std::size_t further = 0) {
  const std::string count = (further > 0 ? "more than " : "") + counted(problems.size(), "problem");
  return fail(problems, count + "; nothing was written or changed", kBadInput, further);
}

int run(CommonOptions& common) {
  try {
    const int code = run_command(common);
    std::cout.flush();
    if (!std::cout) return fail({"standard output: can't be written"}, "stopped", kEnvironment);
    return code;
  } catch (const BadCommandLine& bad) {
    return fail(bad.problems(), "see '" + bad.help() + "'", kBadInput);
  } catch (const BadInput& bad) {
    return refuse(bad.problems(), bad.further());
  } catch (const results::OutputRefused& refused) {
    return refuse({refused.what()});
  } catch (const Failure& failure) {
    print_problems(std::cerr, std::vector<std::string>{failure.what()});
    std::cerr << failure.advice();
    return fail({}, "stopped", kEnvironment);
  } catch (const std::filesystem::filesystem_error& failure) {
    return fail({failure.path1().string() + ": " + failure.code().message()}, "stopped", kEnvironment);
  } catch (const std::exception& failure) {
    return fail({failure_text(failure)}, "stopped", kEnvironment);
  }
}

/// Keeps memory that is freed. Tables and files of megabytes come and go while a sweep runs: left to itself the C
/// library gives them back to the system, which clears every page of the next one again.
void keep_memory() {
#ifdef __GLIBC__
  constexpr int kMebibyte = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, 32 * kMebibyte);  // more is refused
  mallopt(M_TRIM_THRESHOLD, 1024 * kMebibyte);
  mallopt(M_TOP_PAD, 64 * kMebibyte);
#endif
}

}  // namespace

}  // namespace shardscape::cli

int main(int argc, char** argv) {
  shardscape::cli::keep_memory();
  std::signal(SIGXFSZ,
              SIG_IGN);  // exceeding a limit on file sizes is then an error of write(), like a full disk
  shardscape::cli::CommonOptions common;
  common.command_line.assign(argv, argv + argc);
  return shardscape::cli::run(common);
}
