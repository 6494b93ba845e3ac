// Explains what is wrong with a command line that could not be parsed.
#pragma once

#include <CLI/CLI.hpp>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace shardscape::cli {

struct UsageProblem {
  std::vector<std::string> lines;  ///< "sweep: unknown option '--out' (did you mean '--output'?)"
  std::string help;                ///< the command that says more: "shardscape sweep --help"
};

/// `words`: argv, beginning with the program.
UsageProblem usage_problem(const CLI::App& app, const CLI::ParseError& error,
                           const std::vector<std::string>& words);

/// Writes help in lines that the terminal has room for, of at most 100 characters; those of the program itself, of at
/// most 80 where there is no terminal.
std::shared_ptr<CLI::FormatterBase> help_formatter();

/// For CLI::Option::check(): an integer from `low` to `high`. CLI11's own check names the largest double as the limit.
CLI::Validator whole_number(long long low, long long high = std::numeric_limits<long long>::max());
/// For CLI::Option::check(): a number from 0 to 1.
CLI::Validator share();
/// For CLI::Option::check(): one of these words.
CLI::Validator one_of(const std::vector<std::string>& names);
/// For CLI::Option::check(): a word of at least one character.
CLI::Validator not_empty();

}  // namespace shardscape::cli
