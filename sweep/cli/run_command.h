// All commands of the program, for main.cc and for others that run them inside a program of their own (sweep/python).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sweep/cli/command.h"

namespace shardscape::cli {

/// A command line that is none of the program's.
class BadCommandLine : public BadInput {
 public:
  BadCommandLine(std::vector<std::string> problems, std::string help)
      : BadInput(std::move(problems)), help_(std::move(help)) {}
  /// The command that says what would be right: "shardscape sweep --help".
  [[nodiscard]] const std::string& help() const { return help_; }

 private:
  std::string help_;
};

/// Runs the command of common.command_line, whose first word is the program's name, with its results on stdout and its
/// notes on stderr; returns its exit code. Options that commands share are added to `common`. Failures are exceptions:
/// BadInput where the input is wrong, else any other of std::exception.
int run_command(CommonOptions& common);

}  // namespace shardscape::cli
