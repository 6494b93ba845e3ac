// Functions that commands share: presets and studies are found and loaded, problems and failures are reported,
// points and settings are described, and commands are quoted for the shell.
#include "sweep/cli/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <ctime>
#include <iostream>
#include <sstream>

#include "engine/base/safe_text.h"
#include "engine/base/shell_words.h"
#include "results_schema/rows/columns.h"
#include "results_schema/segments/segments.h"
#include "sweep/cli/build_facts.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/cli/terminal/terminal.h"
#include "sweep/modules/module.h"
#include "sweep/study/column_names.h"
#include "sweep/study/expert_load_parser.h"
#include "sweep/study/load_parser.h"
#include "sweep/study/load_study.h"
#include "sweep/yaml/device_sheet.h"
#include "sweep/yaml/quantity_text.h"

namespace shardscape::cli {

namespace {

namespace fs = std::filesystem;

/// The directory with models/ and hw_presets/ that belongs to this binary; nothing where the binary has been moved away
/// from it.
std::optional<fs::path> built_in_presets() {
  std::error_code error;
  for (const fs::path& folder : modules::own_places()) {
    const fs::path installed = folder / build_facts::shared_folder();
    if (fs::is_directory(installed / "models", error)) return installed;
  }
  const fs::path source = build_facts::source_tree();
  if (fs::is_directory(source / "models", error)) return source;
  return std::nullopt;
}

/// Problems of columns that the study names and does not have: those of the other phase, of faults, of reliability.
ProblemList column_problems(const sweep::Study& study) {
  const results::ColumnTable table(study.phase(), {}, study.extras());
  const results::ColumnTable faulty(study.phase(), {}, {.faults = true, .reliability = true});
  const results::ColumnTable loaded(study.phase(), {}, {.load = true});
  const results::ColumnTable complete(study.phase(), {}, results::kAllExtras);
  ProblemList problems;
  const auto check = [&](const char* key, const std::string& name) {
    const bool axis =
        std::ranges::find(study.hardware, name, &sweep::HardwareAxis::column) != study.hardware.end();
    if (axis || table.find(name) != nullptr) return;
    const std::string lacking =
        faulty.find(name) != nullptr ? "a study without faults or reliability"
        : loaded.find(name) == nullptr && complete.find(name) != nullptr ? "a study without promises"
        : complete.find(name) != nullptr
            ? "a load that is not simulated request by request (client, request_rate, sessions, trace)"
            : std::string(name_of(study.phase()));
    problems.add(fmt::format("{}'{}' has no meaning for {}", study.at(key, name), name, lacking));
  };
  for (const std::string& objective : study.objectives) check("objectives", objective);
  for (const std::string& column : study.stored_columns.value_or(std::vector<std::string>()))
    check("store.columns", column);
  for (const std::string& column : study.stored_rows.front) check("store.rows.pareto", column);
  return problems;
}

/// Names of the columns, of either phase, for which `keep` holds.
template <class Keep>
std::vector<std::string> column_names(const Keep& keep) {
  std::vector<std::string> names;
  for (const results::ColumnInfo& column : sweep::fixed_columns()) {
    const bool known = std::ranges::find(names, column.name) != names.end();
    if (keep(column) && !known) names.push_back(column.name);
  }
  return names;
}

/// The word as $'...' (POSIX.1-2024), for words with characters that cannot be shown.
std::string ansi_quoted(std::string_view word) {
  std::string quoted = "$'";
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7F) {
      quoted += {'\\', static_cast<char>('0' + byte / 64), static_cast<char>('0' + byte / 8 % 8),
                 static_cast<char>('0' + byte % 8)};
    } else {
      quoted += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    }
  }
  return quoted + "'";
}

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text;
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

}  // namespace

BadInput::BadInput(const yaml::Diagnostics& diagnostics)
    : BadInput(
          [&] {
            std::vector<std::string> problems;
            for (const yaml::Diagnostic& diagnostic : diagnostics.list())
              problems.push_back(yaml::to_string(diagnostic));
            return problems;
          }(),
          diagnostics.size() - diagnostics.list().size()) {}

void ProblemList::add(const yaml::Diagnostics& diagnostics, std::string_view option) {
  for (const yaml::Diagnostic& diagnostic : diagnostics.list()) {
    const bool placed = option.empty() || !yaml::to_string(diagnostic.where).empty();
    add((placed ? "" : fmt::format("{}: ", option)) + yaml::to_string(diagnostic));
  }
  further_ += diagnostics.size() - diagnostics.list().size();
}

void print_problems(std::ostream& out, std::span<const std::string> problems, std::size_t further) {
  constexpr std::size_t kShown = 100;
  for (const std::string& problem : problems.first(std::min(kShown, problems.size()))) {
    const std::size_t end = problem.find_last_not_of('\n');  // the end of a line is not part of its text
    out << message_line(std::string_view(problem).substr(0, end + 1)) << '\n';
  }
  const std::size_t left = problems.size() - std::min(kShown, problems.size());
  if (left + further > 0)
    out << "and " << (further > 0 ? "more than " : "") << format_count(left) << " more like these\n";
}

std::optional<double> number_before(std::string_view text, std::string_view unit) {
  if (!text.ends_with(unit)) return std::nullopt;
  text.remove_suffix(unit.size());
  while (text.ends_with(' ')) text.remove_suffix(1);
  const auto value = to_number<double>(text);
  return value && std::isfinite(*value) && *value >= 0 ? value : std::nullopt;
}

Budget parse_budget(const std::string& text, bool points) {
  Budget budget;
  if (text.empty()) return budget;
  const std::string_view point = text.ends_with('s') ? "points" : "point";
  const auto number = points ? number_before(text, point) : std::nullopt;
  const auto seconds = yaml::parse_quantity(text, yaml::Dimension::time);
  if (number && *number != std::floor(*number))
    throw BadInput("--budget: '" + text + "' is no whole number of points");
  if (number) {
    budget.points = *number;
  } else if (const auto minutes = number_before(text, "min")) {
    budget.cpu_seconds = 60 * *minutes;
  } else if (seconds && *seconds >= 0) {
    budget.cpu_seconds = *seconds;
  } else {
    throw BadInput("--budget: '" + text + "' is no CPU time, such as 10s or 5min" +
                   (points ? ", and no number of points, such as '20000 points'" : ""));
  }
  return budget;
}

std::vector<std::string> split_names(std::string_view text) {
  const std::vector<std::string_view> names = split(text, ',');
  return {names.begin(), names.end()};
}

yaml::Catalog make_catalog(const CommonOptions& common) {
  std::vector<fs::path> directories = common.presets;
  if (auto own = built_in_presets()) directories.push_back(*std::move(own));
  return yaml::Catalog(std::move(directories));
}

std::optional<fs::path> documents_folder() {
  const std::optional<fs::path> own = built_in_presets();
  std::error_code error;
  return own && fs::is_directory(*own / "doc", error) ? *own / "doc" : own;
}

std::optional<fs::path> published_folder() {
  const std::optional<fs::path> own = built_in_presets();
  if (!own) return std::nullopt;
  std::error_code error;
  for (const fs::path& folder : {*own / "published", *own / "sweep" / "published"}) {
    if (fs::is_directory(folder, error)) return folder;
  }
  return std::nullopt;
}

void add_study_arguments(CLI::App& command, StudyArguments& arguments) {
  command
      .add_option("STUDY", arguments.file,
                  std::string("The study: YAML, or the name of one that comes with the program") +
                      (arguments.results_too ? "; or the results of a sweep of it" : ""))
      ->required();
  command.add_option("--set", arguments.overrides, "Change a setting of the study; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

bool is_results(const fs::path& file) { return file.extension() == ".h5" || file.extension() == ".parts"; }

fs::path study_file(const fs::path& file) {
  std::error_code error;
  const std::optional<fs::path> published = published_folder();
  if (!published || fs::exists(file, error)) return file;
  const fs::path folder = published->parent_path() / "studies";
  const fs::path plain = file.lexically_normal();
  const bool path = plain.parent_path() == "sweep/studies";
  const bool whole = path || plain.extension() == ".yaml";
  const fs::path ready = folder / (plain.filename().string() + (whole ? "" : ".yaml"));
  return (path || !plain.has_parent_path()) && fs::is_regular_file(ready, error) ? ready : file;
}

std::vector<std::string> ready_studies() {
  std::vector<std::string> names;
  std::error_code error;
  if (const std::optional<fs::path> published = published_folder())
    for (fs::directory_iterator at(published->parent_path() / "studies", error), end; !error && at != end;
         at.increment(error))
      if (at->path().extension() == ".yaml") names.push_back(at->path().stem().string());
  std::ranges::sort(names);
  return names;
}

sweep::Study load(const StudyArguments& arguments, const CommonOptions& common, bool quiet) {
  const GivenStudy* given = common.given;
  GivenStudy stored;
  if (given == nullptr && arguments.results_too && is_results(arguments.file)) {
    stored = {arguments.file, open_results(arguments.file).resolved_yaml(), {}};
    given = &stored;
  }
  const bool as_given =
      arguments.overrides.empty() && !arguments.all_counts && !arguments.rates_instead && given != nullptr;
  if (as_given && given->study) return *given->study;
  sweep::StudyOptions options;
  if (given != nullptr) options.overrides = given->overrides;
  options.overrides.insert(options.overrides.end(), arguments.overrides.begin(), arguments.overrides.end());
  options.all_counts = arguments.all_counts;
  options.rates_instead = arguments.rates_instead;
  options.one_plan = arguments.one_plan;
  options.objective_columns = objective_columns();
  options.fixed_columns = column_names([](const auto&) { return true; });
  const yaml::Catalog catalog = make_catalog(common);
  auto study = given == nullptr ? sweep::load_study(study_file(arguments.file), catalog, options)
                                : sweep::parse_study(given->text, given->file.string(),
                                                     given->file.parent_path(), catalog, options);
  if (!study) throw BadInput(study.error());
  if (given == &stored) {  // what the study was read from: the names of its model's checkpoints stand there
    const results::ResultReader reader = open_results(arguments.file);
    study->sheet_devices = sheet_devices(reader);
    for (results::SourceText& source : reader.sources())
      if (source.name.starts_with("models/")) study->sources.push_back({source.name, source.text, {}});
  }
  column_problems(*study).finish();
  for (std::size_t i = 0; i < study->warned_of && !quiet; ++i)
    std::cerr << styled(std::cerr, "warning: ", "33") << message_line(study->assumptions[i]) << '\n';
  return *std::move(study);
}

std::vector<std::string> words_of(const StudyArguments& arguments, const CommonOptions& common) {
  std::vector<std::string> words = {arguments.file.string()};
  std::vector<std::string> changes = arguments.overrides;
  if (common.given != nullptr)
    changes.insert(changes.begin(), common.given->overrides.begin(), common.given->overrides.end());
  for (const std::string& change : changes) words.insert(words.end(), {"--set", change});
  for (const auto& folder : common.presets) words.insert(words.end(), {"--presets", folder.string()});
  return words;
}

std::vector<fs::path> input_files(const sweep::Study& study) {
  std::vector<fs::path> files = study.tables;
  for (const sweep::SourceText& source : study.sources) files.push_back(source.path);
  return files;
}

void add_results(CLI::App& command, fs::path& file) {
  command.add_option("RESULTS", file, "OUT.h5, or the OUT.h5.parts of a running sweep")->required();
}

void add_json(CLI::App& command, bool& json) {
  command.add_flag("--json", json, "One JSON document on stdout");
}

void add_progress(CLI::App& command, std::string& mode) {
  command.add_option("--progress", mode, "auto, plain, json (one object per line on stdout) or none")
      ->type_name("auto|plain|json|none");
}

CLI::Option* add_force(CLI::App& command, bool& force) {
  return command.add_flag("--force", force, "Replace what lies at the output path");
}

void prepare_results(const fs::path& file) {
  const bool yaml = file.extension() == ".yaml" || file.extension() == ".yml";
  if (std::error_code error; yaml && fs::is_regular_file(file, error))
    throw BadInput(file.string() + ": is a study, not what came of one: shardscape sweep " +
                   shell_line({file.string()}) + " -o OUT.h5 makes that");
  results::remove_leftovers(file);
}

std::optional<std::string> assumptions_of(const results::ResultReader& reader) {
  const auto found = reader.attributes().find("assumptions");
  return found == reader.attributes().end() ? std::nullopt : std::optional(found->second);
}

std::set<std::string> sheet_devices(const results::ResultReader& reader) {
  std::set<std::string> devices;
  std::istringstream assumptions(assumptions_of(reader).value_or(""));
  for (std::string line; std::getline(assumptions, line);)
    if (auto device = yaml::sheet_device_of(line)) devices.insert(*std::move(device));
  return devices;
}

results::ResultReader open_results(const fs::path& file) {
  prepare_results(file);
  return results::ResultReader(file);
}

std::vector<std::string> objective_columns() {
  return column_names([](const auto& column) { return column.better != results::Better::neither; });
}

std::vector<std::pair<std::string, std::string>> listed_settings(const sweep::Study& study,
                                                                 std::size_t workload) {
  const WorkloadSpec& load = study.workloads[workload];
  std::vector<std::pair<std::string, std::string>> settings;
  const auto add_if_listed = [&](const char* name, const auto& get, const auto& text_of) {
    const bool varies = std::ranges::any_of(study.workloads, [&](const WorkloadSpec& other) {
      return std::invoke(get, other) != std::invoke(get, load);
    });
    if (varies) settings.emplace_back(name, text_of(std::invoke(get, load)));
  };
  const auto number = [](std::int64_t value) { return std::to_string(value); };
  add_if_listed("precision", &WorkloadSpec::precision, [](PolicyName p) { return name_of(p); });
  add_if_listed("expert_load", &WorkloadSpec::expert_load,
                [](const ExpertLoad& l) { return sweep::to_text(l); });
  add_if_listed("sequence_length", &WorkloadSpec::sequence_length, number);
  add_if_listed("global_batch", &WorkloadSpec::global_batch, number);
  add_if_listed("prompt_tokens", &WorkloadSpec::prompt_tokens, number);
  add_if_listed("output_tokens", &WorkloadSpec::output_tokens, number);
  add_if_listed("concurrency", &WorkloadSpec::concurrency, number);
  if (!load.load) return settings;
  add_if_listed(
      "request_rate", [](const WorkloadSpec& w) { return w.load->request_rate; }, sweep::rate_text);
  add_if_listed(
      "draft_tokens", [](const WorkloadSpec& w) { return w.load->speculation.draft_tokens; }, number);
  return settings;
}

std::string describe_setting(const sweep::Study& study, std::uint64_t setting) {
  std::string text;
  const auto add = [&](const std::string& name, std::string_view value) {
    if (!text.empty()) text += ", ";
    text.append(name).append("=").append(value);
  };
  const std::size_t system = setting / study.workloads.size();
  std::size_t stride = study.systems.size();
  for (const sweep::HardwareAxis& axis : study.hardware) {
    stride /= axis.values.size();
    if (axis.values.size() > 1) add(axis.path, axis.labels[system / stride % axis.values.size()]);
  }
  for (const auto& [key, value] : listed_settings(study, setting % study.workloads.size())) add(key, value);
  return text;
}

std::string shell_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    const bool visible = printable(word) == word;
    line += is_plain_word(word) ? word : visible ? single_quoted(word) : ansi_quoted(word);
  }
  return line;
}

std::vector<std::string> shell_words(std::string_view line) {
  std::vector<std::string> words;
  char quote = 0;  // '\'', or '$' where escapes have a meaning
  bool open = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const std::string_view rest = line.substr(i);
    if (quote == 0 && rest.front() == ' ') {
      open = false;
      continue;
    }
    if (!std::exchange(open, true)) words.emplace_back();
    if (rest.front() == '\'') {
      quote = quote == 0 ? '\'' : '\0';
    } else if (quote == 0 && rest.starts_with("$'")) {
      quote = '$';
      ++i;
    } else if (rest.front() != '\\' || quote == '\'' || rest.size() < 2) {
      words.back() += rest.front();
    } else if (quote == '$' && rest[1] >= '0' && rest[1] <= '3' && rest.size() > 3) {
      words.back() += static_cast<char>((rest[1] - '0') * 64 + (rest[2] - '0') * 8 + rest[3] - '0');
      i += 3;
    } else {
      words.back() += rest[1];
      ++i;
    }
  }
  return words;
}

std::vector<std::string> expand_lists(const std::vector<std::string>& words) {
  std::vector<std::string> expanded;
  std::string list;  // the list option being expanded
  bool first = false;
  for (const std::string& word : words) {
    const bool assignment =
        !word.starts_with("-") && word.find('=') != std::string::npos && word.find('/') > word.find('=');
    if (!first && !assignment) list.clear();
    if (!first && !list.empty()) expanded.push_back(list);
    expanded.push_back(word);
    first = word == "--set" || word == "--fault";
    if (first) list = word;
  }
  return expanded;
}

std::string_view version() { return build_facts::version(); }

results::RunInfo run_info(const CommonOptions& common, int threads) {
  results::RunInfo run;
  run.created_utc = utc_now();
  run.software_version = build_facts::version();
  run.git_commit = build_facts::git_commit();
  run.compiler = build_facts::compiler();
  run.hostname = host_name();
  std::vector<std::string> words = common.command_line;
  if (common.given != nullptr)
    for (const std::string& change : common.given->overrides) words.insert(words.end(), {"--set", change});
  run.command_line = shell_line(words);
  run.threads = threads;
  return run;
}

}  // namespace shardscape::cli
