// Finds the words of a command line that no command or option has, says which one is near or who takes it, and wraps
// help to the terminal. Checks of values say what would be right.
#include "sweep/cli/terminal/usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <sstream>

#include "engine/base/safe_text.h"
#include "engine/base/suggest.h"
#include "engine/base/words.h"
#include "sweep/cli/terminal/terminal.h"
#include "sweep/cli/terminal/text_table.h"

namespace shardscape::cli {

namespace {

std::vector<const CLI::App*> commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

/// The message about an unknown command, with the command that was probably meant ("shardscape swep").
std::string unknown_command(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands(app)) names.push_back(command->get_name());
  std::vector<std::string> likely = names;
  likely.insert(likely.end(), {"--version", "--help"});
  return "unknown command '" + word + "'" + did_you_mean(word, likely) + "; commands: " + join_names(names);
}

/// The options of the command as they are written, with dashes.
std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

bool is_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && word.find_first_not_of("-.0123456789") != std::string::npos;
}

/// "; sweep and search take it" of the other commands with an option of that name, some of them where they are many;
/// empty where none has one.
std::string who_takes(const CLI::App& app, const std::string& option) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands(app))
    if (const auto known = option_names(*command); std::ranges::find(known, option) != known.end())
      names.push_back(command->get_name());
  if (names.empty()) return "";
  constexpr std::size_t kNamed = 5;
  const std::size_t more = names.size() > kNamed ? names.size() - kNamed : 0;
  names.resize(names.size() - more);
  const std::string others = more > 0 ? fmt::format(" and {} other{}", more, more == 1 ? "" : "s") : "";
  return fmt::format("; {}{} take{} it", join_names(names), others, names.size() == 1 ? "s" : "");
}

/// The words of the command line that the command does not know. Words after an unknown option are taken as its value.
std::vector<std::string> unknown_words(const CLI::App& app, const CLI::App& command) {
  const std::vector<std::string> extras = command.remaining();
  const std::vector<std::string> names = option_names(command);
  const std::string lead = command.get_name() + ": ";
  std::vector<std::string> lines;
  for (const std::string& word : extras) {
    if (!is_option(word)) continue;
    const std::string name = word.substr(0, word.find('='));
    const std::string takes = who_takes(app, name);
    lines.push_back(lead + "unknown option '" + name + "'" +
                    (takes.empty() ? did_you_mean(name, names) : takes));
  }
  if (!lines.empty()) return lines;
  for (const std::string& word : extras) lines.push_back(lead + "unexpected argument '" + word + "'");
  return lines;
}

/// Characters to a line of help: as many as the terminal has, up to 100. Where there is none it fits narrow ones, too.
std::size_t help_width() {
  constexpr std::size_t kWidest = 100, kNarrow = 80;
  return std::min(terminal_width(std::cout).value_or(kNarrow), kWidest);
}

/// What fits to the right of a column; never so little that no word does.
std::size_t beside(std::size_t column, std::size_t width) { return std::max(width, column + 20) - column; }

/// The line in several, which begin below its last column.
std::string folded(const std::string& line, std::size_t width) {
  if (character_count(line) <= width) return line;
  const std::size_t lead = line.find_first_not_of(' '), gap = line.rfind("  ", width / 2);
  const std::size_t indent = gap == std::string::npos || gap < lead ? lead : line.find_first_not_of(' ', gap);
  std::string text = line.substr(0, indent);
  const std::string between = '\n' + std::string(indent, ' ');
  return text + fmt::format("{}", fmt::join(wrapped(line.substr(indent), beside(indent, width)), between));
}

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override {
    return in_column(option->get_description());
  }
  std::string make_subcommand(const CLI::App* command) const override {
    std::ostringstream out;
    const std::string text = in_column(command->get_description());
    CLI::detail::format_help(out, command->get_display_name(true), text, get_column_width());
    return out.str();
  }
  /// Lines of a paragraph become one, which make_help() folds anew.
  std::string make_footer(const CLI::App* app) const override {
    const auto is_prose = [](const std::string& line) {
      return !line.empty() && line.front() != ' ' && !line.ends_with(':');
    };
    std::string text, before;
    for (const std::string& line : split_lines(app->get_footer())) {
      if (!text.empty()) text += is_prose(before) && is_prose(line) ? ' ' : '\n';
      text += line;
      before = line;
    }
    return text;
  }
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    const std::string help = CLI::Formatter::make_help(app, std::move(name), mode);
    std::string text;
    for (const std::string_view line : lines_of(help)) text += folded(std::string(line), help_width()) + '\n';
    return text;
  }

 private:
  /// What stands to the right of an option or a command.
  [[nodiscard]] std::string in_column(const std::string& text) const {
    const std::size_t column = get_column_width();
    return fmt::format("{}", fmt::join(wrapped(text, beside(column, help_width())), "\n"));
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() { return std::make_shared<HelpFormatter>(); }

UsageProblem usage_problem(const CLI::App& app, const CLI::ParseError& error,
                           const std::vector<std::string>& words) {
  UsageProblem problem{{}, "shardscape --help"};
  if (words.size() < 2) {
    problem.lines.push_back(fmt::format("command line: {}", error.what()));
    return problem;
  }
  const std::vector<const CLI::App*> list = commands(app);
  const auto command = std::ranges::find(list, words[1], [](const CLI::App* one) { return one->get_name(); });
  if (command == list.end()) {
    const bool option = is_option(words[1]);
    problem.lines.push_back(option
                                ? "command line: the command comes first, then " + words[1] + " and the rest"
                                : "command line: " + unknown_command(app, words[1]));
    return problem;
  }
  problem.help = "shardscape " + words[1] + " --help";
  problem.lines = unknown_words(app, **command);
  if (problem.lines.empty()) problem.lines.push_back(words[1] + ": " + error.what());
  return problem;
}

CLI::Validator whole_number(long long low, long long high) {
  const std::string range = high == std::numeric_limits<long long>::max()
                                ? fmt::format("of {} and more", low)
                                : fmt::format("from {} to {}", low, high);
  const auto check = [=](const std::string& text) -> std::string {
    const auto value = to_number<long long>(text);
    return value && *value >= low && *value <= high ? "" : "'" + text + "' must be a whole number " + range;
  };
  return {check, ""};
}

CLI::Validator share() {
  const auto check = [](const std::string& text) -> std::string {
    const auto value = to_number<double>(text);
    return value && *value >= 0 && *value <= 1 ? ""
                                               : "'" + text + "' must be a share from 0 to 1, such as 1e-9";
  };
  return {check, ""};
}

CLI::Validator one_of(const std::vector<std::string>& names) {
  const auto check = [=](const std::string& text) -> std::string {
    if (std::ranges::find(names, text) != names.end()) return "";
    return "'" + text + "' is not one of " + join_names(names) + did_you_mean(text, names);
  };
  return {check, ""};
}

CLI::Validator not_empty() {
  const auto check = [](const std::string& text) -> std::string {
    return text.empty() ? "must not be empty; leave it out where it is not meant" : "";
  };
  return {check, ""};
}

}  // namespace shardscape::cli
