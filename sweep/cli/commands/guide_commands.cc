// shardscape help, man and completion: all of them say what the tree of commands and options has.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iostream>
#include <limits>
#include <sstream>

#include "engine/base/safe_text.h"
#include "engine/base/shell_words.h"
#include "engine/base/suggest.h"
#include "engine/spec/fabric_numbers.h"
#include "engine/spec/plan_axes.h"
#include "engine/spec/precision_policy.h"
#include "engine/spec/spec_numbers.h"
#include "sweep/cli/command.h"
#include "sweep/cli/terminal/usage.h"
#include "sweep/input/input_file.h"
#include "sweep/study/column_names.h"
#include "sweep/study/placement_axis.h"
#include "sweep/study/starter.h"
#include "sweep/yaml/specs.h"

namespace shardscape::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* kHelpFooter =
    R"(Examples:
  shardscape help sweep          as 'shardscape sweep --help'
  shardscape help study          every key of a study
  shardscape help space          the axes of a plan; also workload, hardware, constraints, promises
  shardscape help values         the words that each key may have; help schedule: of one
  shardscape help faults         a section of the documents, by its heading

Topics are commands, space, workload, hardware, values, tables, documents (study, devices, models, results, columns,
ranks, placement, chakra, evidence, fabrics, engine) and the headings inside them.)";
constexpr const char* kManFooter =
    R"(Examples:
  shardscape man | man -l -            all commands on one page
  shardscape man sweep | man -l -)";
constexpr const char* kCompletionFooter =
    R"(Examples:
  source <(shardscape completion bash)         in ~/.bashrc
  source <(shardscape completion zsh)          in ~/.zshrc, behind compinit
  shardscape completion fish | source          in ~/.config/fish/config.fish

Commands, options, presets and the values of options; files elsewhere. 'cmake --install' puts all three in place.)";

struct GuideArguments {
  const CLI::App* app = nullptr;
  std::string word;
};

using Commands = std::vector<const CLI::App*>;

Commands commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

const CLI::App* find_command(const CLI::App& app, const std::string& name) {
  const Commands all = commands_of(app);
  const auto found = std::ranges::find(all, name, [](const CLI::App* one) { return one->get_name(); });
  return found == all.end() ? nullptr : *found;
}

/// Options that help shows, without positional arguments.
std::vector<const CLI::Option*> options_of(const CLI::App& command) {
  std::vector<const CLI::Option*> options;
  for (const CLI::Option* option : command.get_options())
    if (!option->get_group().empty() && option->nonpositional()) options.push_back(option);
  return options;
}

/// "-o" and "--output".
std::vector<std::string> spellings(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

/// The words that an option may have: those of its type "plan|model", or the presets of its kind.
std::vector<std::string> words_of(const CLI::Option& option, const yaml::Catalog& catalog) {
  constexpr std::array<std::pair<std::string_view, yaml::PresetKind>, 4> kKinds = {
      {{"model", yaml::PresetKind::model},
       {"cluster", yaml::PresetKind::cluster},
       {"device", yaml::PresetKind::device},
       {"stack", yaml::PresetKind::stack}}};
  std::vector<std::string> words;
  const std::string type = option.get_type_name();
  if (type.find('|') != std::string::npos && type == lower_case(type)) {
    for (const std::string_view word : split(type, '|')) words.emplace_back(word);
  }
  for (const auto& [name, kind] : kKinds) {
    if (!option.check_lname(std::string(name))) continue;
    for (const yaml::Catalog::Entry& entry : catalog.list(kind)) words.push_back(entry.name);
  }
  return words;
}

/// The words that a shell takes as they are: names of files in folders of presets may be anything.
std::string joined_words(std::vector<std::string> words) {
  std::erase_if(words, std::not_fn(is_plain_word));
  return fmt::format("{}", fmt::join(words, " "));
}

/// Words beside options: the commands that help and man take, the shells, presets, and the studies that come along.
std::vector<std::string> argument_words(const CLI::App& app, const CLI::App& command,
                                        const yaml::Catalog& catalog) {
  std::vector<std::string> words;
  const std::string& name = command.get_name();
  if (name == "completion") return {"bash", "zsh", "fish"};
  if (name == "presets") {
    for (const auto kind : enum_values<yaml::PresetKind>())
      for (const yaml::Catalog::Entry& entry : catalog.list(kind)) words.push_back(entry.name);
  }
  if (name == "help" || name == "man")
    for (const CLI::App* one : commands_of(app)) words.push_back(one->get_name());
  if (command.get_option_no_throw("STUDY") != nullptr) words = ready_studies();
  return words;
}

/// Whether files go beside those words.
bool takes_files(const CLI::App& command) {
  return command.get_option_no_throw("STUDY") != nullptr || command.get_name() == "presets";
}

std::string bash_script(const CLI::App& app, const yaml::Catalog& catalog) {
  std::string names, options, values;
  for (const CLI::App* command : commands_of(app)) {
    const std::string& name = command->get_name();
    names += (names.empty() ? "" : " ") + name;
    std::vector<std::string> all;
    for (const CLI::Option* option : options_of(*command)) {
      const std::vector<std::string> spelt = spellings(*option);
      all.insert(all.end(), spelt.begin(), spelt.end());
      if (!takes_value(*option)) continue;
      const std::vector<std::string> words = words_of(*option, catalog);
      for (const std::string& one : spelt)
        if (!words.empty())
          values += fmt::format("    {}:{}) words=\"{}\" files=\"\" ;;\n", name, one, joined_words(words));
    }
    const std::vector<std::string> beside = argument_words(app, *command, catalog);
    options += fmt::format("    {}) options=\"{}\"{}{} ;;\n", name, joined_words(all),
                           beside.empty() ? "" : fmt::format(" words=\"{}\"", joined_words(beside)),
                           takes_files(*command) ? " files=1" : "");
  }
  return fmt::format(R"(# bash completion of shardscape
_shardscape() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}}
  local options="" words="" files=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{} --help --version" -- "$word"))
    return
  fi
  case $command in
{}  esac
  case $command:$before in
{}    *:-*) words="" files="" ;;
  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  elif [ -n "$words" ]; then
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    if [ -n "$files" ]; then COMPREPLY+=($(compgen -f -- "$word")); fi
  else
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}}
complete -o filenames -F _shardscape shardscape
)",
                     names, options, values);
}

std::string zsh_script(const CLI::App& app, const yaml::Catalog& catalog) {
  const auto entry = [](std::string name, std::string what) {
    for (std::size_t at = 0; (at = name.find(':', at)) != std::string::npos; at += 2) name.insert(at, "\\");
    return single_quoted(name + ':' + what);
  };
  std::string names, options, values;
  for (const CLI::App* command : commands_of(app)) {
    names += ' ' + entry(command->get_name(), command->get_description());
    options += fmt::format("    {}) options=(", command->get_name());
    for (const CLI::Option* option : options_of(*command)) {
      const std::vector<std::string> words = words_of(*option, catalog);
      for (const std::string& one : spellings(*option)) {
        options += ' ' + entry(one, option->get_description());
        if (!words.empty())
          values += fmt::format("    {}:{}) choices=({}); files=0 ;;\n", command->get_name(), one,
                                joined_words(words));
      }
    }
    options +=
        fmt::format(" ); choices=({}); files={} ;;\n", joined_words(argument_words(app, *command, catalog)),
                    takes_files(*command) ? 1 : 0);
  }
  return fmt::format(R"(#compdef shardscape
_shardscape() {{
  local -a commands options choices
  local files=0
  if (( CURRENT == 2 )); then
    commands=({} )
    _describe command commands
    return
  fi
  case $words[2] in
{}  esac
  case $words[2]:$words[CURRENT-1] in
{}    *:-*) choices=(); files=0 ;;
  esac
  if [[ $words[CURRENT] == -* ]]; then
    _describe -o option options
  elif (( $#choices )); then
    compadd -- $choices
    (( files )) && _files
  else
    _files
  fi
}}
if [[ $funcstack[1] == _shardscape ]]; then
  _shardscape "$@"
else
  compdef _shardscape shardscape
fi
)",
                     names, options, values);
}

std::string fish_script(const CLI::App& app, const yaml::Catalog& catalog) {
  std::string text = "# fish completion of shardscape\n";
  for (const CLI::App* command : commands_of(app)) {
    const std::string& name = command->get_name();
    text += fmt::format("complete -c shardscape -n __fish_use_subcommand -f -a {} -d {}\n", name,
                        single_quoted(command->get_description()));
    const std::string inside = single_quoted("__fish_seen_subcommand_from " + name);
    if (const std::vector<std::string> beside = argument_words(app, *command, catalog); !beside.empty())
      text += fmt::format("complete -c shardscape -n {}{} -a '{}'\n", inside,
                          takes_files(*command) ? "" : " -f", joined_words(beside));
    for (const CLI::Option* option : options_of(*command)) {
      std::string line = fmt::format("complete -c shardscape -n {}", inside);
      for (const std::string& one : option->get_snames()) line += " -s " + one;
      for (const std::string& one : option->get_lnames()) line += " -l " + one;
      const std::vector<std::string> words = words_of(*option, catalog);
      if (takes_value(*option)) line += " -r";
      if (!words.empty()) line += " -f -a '" + joined_words(words) + "'";
      text += line + " -d " + single_quoted(option->get_description()) + '\n';
    }
  }
  return text;
}

int run_completion(const GuideArguments& arguments, const CommonOptions& common) {
  const yaml::Catalog catalog = make_catalog(common);
  if (arguments.word == "bash") std::cout << bash_script(*arguments.app, catalog);
  if (arguments.word == "zsh") std::cout << zsh_script(*arguments.app, catalog);
  if (arguments.word == "fish") std::cout << fish_script(*arguments.app, catalog);
  return kDone;
}

std::string upper_case(std::string text) {
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

/// The text as roff takes it.
std::string roff(const std::string& text) {
  std::string result;
  bool starts = true;
  for (const char c : text) {
    if (starts && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
    starts = c == '\n';
  }
  return result;
}

/// Usage, options and examples of a command, under its name as a section.
std::string man_section(const CLI::App& command, const std::string& heading) {
  std::string usage = "shardscape " + command.get_name() + " [options]";
  std::string lines;
  const auto add = [&](const std::string& head, const std::string& what) {
    lines += ".TP\n.B " + roff(head) + '\n' + roff(what) + '\n';
  };
  for (const CLI::Option* option : command.get_options()) {
    if (option->nonpositional() || option->get_group().empty()) continue;
    const std::string name = option->get_name(true);
    usage += option->get_required() ? ' ' + name : " [" + name + ']';
    add(name, option->get_description());
  }
  for (const CLI::Option* option : options_of(command)) {
    std::string head = fmt::format("{}", fmt::join(spellings(*option), ", "));
    if (takes_value(*option)) head += ' ' + option->get_type_name();
    add(head, option->get_description());
  }
  return ".SH " + heading + '\n' + roff(command.get_description()) + ".\n.PP\n.B " + roff(usage) + '\n' +
         lines + ".PP\n.nf\n" + roff(command.get_footer()) + "\n.fi\n";
}

int run_man(const GuideArguments& arguments, const CommonOptions& /*common*/) {
  const CLI::App& app = *arguments.app;
  Commands shown = commands_of(app);
  std::string title = "shardscape", what = app.get_description();
  if (!arguments.word.empty()) {
    const CLI::App* const one = find_command(app, arguments.word);
    if (one == nullptr) {
      std::vector<std::string> names;
      for (const CLI::App* command : shown) names.push_back(command->get_name());
      throw BadInput("COMMAND: unknown command '" + arguments.word + "'" +
                     did_you_mean(arguments.word, names));
    }
    shown = {one};
    title += "-" + one->get_name();
    what = one->get_description();
  }
  std::string page = fmt::format(".TH {} 1 \"\" \"shardscape {}\" \"Shardscape\"\n.SH NAME\n{} \\- {}\n",
                                 roff(upper_case(title)), version(), roff(title), roff(what));
  for (const CLI::App* command : shown) page += man_section(*command, roff(upper_case(command->get_name())));
  if (arguments.word.empty()) page += ".SH NOTES\n.nf\n" + roff(app.get_footer()) + "\n.fi\n";
  std::cout << page;
  return kDone;
}

/// The documents, with the topics that are called otherwise than the headings in them.
constexpr std::array<std::pair<std::string_view, const char*>, 18> kDocuments = {
    {{"study", "sweep/study/README.md"},
     {"commands", "sweep/README.md"},
     {"devices", "hw_presets/README.md"},
     {"models", "models/README.md"},
     {"results", "results_schema/README.md"},
     {"columns", "results_schema/SCHEMA.md"},
     {"ranks", "sweep/ranks/README.md"},
     {"placement", "sweep/placement/README.md"},
     {"chakra", "sweep/chakra/README.md"},
     {"evidence", "sweep/evidence/README.md"},
     {"fabrics", "engine/network/README.md"},
     {"engine", "engine/README.md"},
     {"studies", "sweep/studies/README.md"},
     {"", "sweep/search/README.md"},
     {"", "sweep/capacity/README.md"},
     {"", "sweep/validate/README.md"},
     {"", "sweep/calibrate/README.md"},
     {"", "results_schema/report/README.md"}}};

/// Whether a heading is called so, or has it as the first or last of two ("promises and constraints").
bool names(const std::string& heading, const std::string& topic) {
  return heading == topic ||
         (!topic.empty() && (heading.starts_with(topic + " and ") || heading.ends_with(" and " + topic)));
}

/// The part of a document under a heading, which `found` is set to; empty where it has none of that name.
std::string section(const std::string& text, const std::string& topic) {
  std::istringstream lines(text);
  std::string part;
  std::size_t depth = 0;
  bool fenced = false;
  for (std::string line; std::getline(lines, line);) {
    fenced = fenced != line.starts_with("```");
    const std::size_t hashes = fenced ? 0 : line.find_first_not_of('#');
    const bool heading = hashes > 0 && hashes != std::string::npos && line[hashes] == ' ';
    if (heading && depth > 0 && hashes <= depth) return part;
    if (heading && depth == 0 && names(lower_case(line.substr(hashes + 1)), topic)) depth = hashes;
    if (depth > 0) part += line + '\n';
  }
  return part;
}

/// What an axis of a plan may be.
std::string values_of(const PlanAxisRow& row) {
  const bool open = row.high == std::numeric_limits<std::int32_t>::max();
  return row.kind == AxisKind::choice  ? fmt::format("{}", fmt::join(row.names, ", "))
         : row.kind == AxisKind::flag  ? "false, true"
         : row.kind == AxisKind::order ? "such as " + to_string(kDefaultRankOrder)
         : open                        ? fmt::format("from {} on", row.low)
                                       : fmt::format("{} to {}", row.low, row.high);
}

/// The keys of `space`, by the table of axes.
std::string space_topic() {
  std::string text =
      R"(Axes of `space:`, each a value or a list, of numbers also powers_of_two, divisors or {from:, to:, step:}.
data_parallel: fill takes what the other degrees leave of the GPUs. In brackets the name in --point and constraints.

  prefill_gpus: from 0 on, inference
    GPUs of a pool that only reads prompts, whose degrees are the prefill_ axes; 0: no such pool
)";
  for (const PlanAxisRow& row : kPlanRows) {
    text += fmt::format("\n  {} ({}): {}, {}\n    {}\n", row.column, row.name, values_of(row),
                        row.phases == Phases::both ? "both phases" : name_of(row.phases), row.meaning);
  }
  return text;
}

/// A line for every key whose values are words, with these words; of those that are called `topic`, or all.
std::string values_topic(std::string_view topic = "") {
  std::string text;
  const auto add = [&](const std::string& key, const auto& words) {
    const std::string low = lower_case(key);
    if (topic.empty() || low == topic || low.substr(low.rfind('.') + 1) == topic)
      text += fmt::format("  {}: {}\n", key, fmt::join(words, ", "));
  };
  for (const PlanAxisRow& row : kPlanRows)
    if (row.kind == AxisKind::choice) add(std::string("space.") + row.column, row.names);
  add("mode", enum_names<ExecutionMode>());
  add("workload.phase", enum_names<Phase>());
  add("workload.precision", enum_names<PolicyName>());
  add("workload.expert_load.distribution", enum_names<LoadDistribution>());
  add("workload.arrivals", enum_names<ArrivalProcess>());
  add("workload.client", client_profile_names());
  add("workload.client.profile", client_profile_names());
  add("workload.client.statistic", enum_names<ClientStatistic>());
  add("placement", enum_names<sweep::PlacementChoice>());
  add("fabric.NAME.kind", enum_names<DimensionKind>());
  add("fabric.NAME.scope", enum_names<LinkScope>());
  for (const auto& leaves :
       {yaml::device_leaves("device"), yaml::stack_leaves("stack"), yaml::model_leaves("model")})
    for (const yaml::Leaf& leaf : leaves)
      if (leaf.type == yaml::Leaf::Type::choice) add(leaf.path, leaf.choices);
  return text;
}

/// The keys of `workload`, by the table of those that `new` asks for.
std::string workload_topic() {
  std::string text =
      "Keys of `workload:`, each a value or a list. Of simulated loads: shardscape help inference\n\n"
      "  phase: training or inference\n  expert_load: {distribution: power_law, exponent: 1.2}\n";
  text += "  precision: " + join_names(enum_names<PolicyName>()) + '\n';
  for (const sweep::StarterKey& key : sweep::kStarterKeys)
    if (key.name != "promises" && key.name != "precision")
      text += fmt::format("  {} ({}): {}\n", key.name, name_of(key.phases), key.meaning);
  return text;
}

/// All numbers that an axis of `hardware` or `--set` may change, by their tables.
std::string hardware_numbers() {
  std::string text;
  const auto add = [&](const char* prefix, const auto& numbers) {
    for (const auto& row : numbers)
      if (row.use != KeyUse::for_the_reader)
        text += fmt::format("  {}{}: {}\n", prefix, row.path, row.meaning);
  };
  add("device.", device_numbers());
  add("fabric.NAME.", dimension_numbers());  // NAME: of the dimension
  add("stack.", stack_numbers());
  return text;
}

/// The meanings of the columns of results that a word names, by any of their names.
std::string columns_named(const std::string& topic) {
  std::string text;
  for (const results::ColumnInfo& column : sweep::fixed_columns()) {
    const std::vector<std::string> names = sweep::names_of_column(column);
    const std::string line =
        fmt::format("column {}{}: {}\n", column.name, column.unit == "1" ? "" : " (" + column.unit + ")",
                    column.long_name);
    if (std::ranges::find(names, topic) != names.end() && text.find(line) == std::string::npos) text += line;
  }
  return text;
}

int run_help(const GuideArguments& arguments, const CommonOptions& /*common*/) {
  const std::string topic = lower_case(arguments.word);
  const CLI::App* const command = topic.empty() ? arguments.app : find_command(*arguments.app, topic);
  if (command != nullptr) {  // App::help() is that of the command which was parsed
    const std::string name = arguments.app->get_name() + (topic.empty() ? "" : ' ' + topic);
    return std::cout << command->get_formatter()->make_help(command, name, CLI::AppFormatMode::Normal), kDone;
  }
  if (topic == "space") return std::cout << space_topic(), kDone;
  if (topic == "workload") return std::cout << workload_topic(), kDone;
  if (topic == "values") return std::cout << values_topic(), kDone;
  if (topic == "tables") return std::cout << tables_topic(), kDone;
  const auto folder = documents_folder();
  if (!folder) throw std::runtime_error("the documents that belong to this program are gone");
  std::vector<std::string> topics = {"space", "workload", "hardware", "values", "tables"};
  for (const bool whole : {true, false}) {
    for (const auto& [name, file] : kDocuments) {
      const auto text = input::read_file(*folder / file, input::kMostTableBytes, "a document");
      if (!text) continue;
      std::string part = whole ? (name == topic ? *text : "") : section(*text, topic);
      if (!part.empty() && topic == "hardware") part += section(*text, "in five lines") + hardware_numbers();
      if (!part.empty()) return std::cout << part, kDone;
      if (!name.empty() && whole) topics.emplace_back(name);
    }
  }
  if (const std::string text = values_topic(topic) + columns_named(topic); !text.empty())
    return std::cout << text, kDone;
  const std::string hint = did_you_mean(topic, topics);
  for (const CLI::App* one : commands_of(*arguments.app)) topics.push_back(one->get_name());
  throw BadInput("TOPIC: nothing is called '" + arguments.word + "'" +
                 (hint.empty() ? did_you_mean(topic, topics) : hint) + "; topics: " + join_names(topics) +
                 ", and the headings of the documents");
}

}  // namespace

void add_guide_commands(const Program& program) {
  const auto [help, topic] =
      program.add("help", "Say more about a command or a topic", kHelpFooter, run_help);
  topic->app = &program.app;
  help->add_option("TOPIC", topic->word, "A command, a document, or a heading in one; none: all commands");
  const auto [completion, shell] =
      program.add("completion", "Print what completes commands and options in a shell", kCompletionFooter,
                  run_completion);
  shell->app = &program.app;
  completion->add_option("SHELL", shell->word, "bash, zsh or fish")
      ->required()
      ->check(one_of({"bash", "zsh", "fish"}));
  const auto [man, page] = program.add("man", "Print a manual page", kManFooter, run_man);
  page->app = &program.app;
  man->add_option("COMMAND", page->word, "Of this command; none: of all");
}

}  // namespace shardscape::cli
