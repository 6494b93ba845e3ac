// shardscape validate: compares predictions with measurements.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>

#include "engine/base/safe_text.h"
#include "engine/base/suggest.h"
#include "results_schema/disk/output_file.h"
#include "results_schema/disk/sha256.h"
#include "sweep/cli/command.h"
#include "sweep/cli/ranks/rank_agreement.h"
#include "sweep/cli/ranks/rank_part.h"
#include "sweep/cli/reports/validate_report.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/cli/terminal/usage.h"
#include "sweep/evidence/evidence_table.h"
#include "sweep/validate/evaluation.h"
#include "sweep/validate/published.h"
#include "sweep/validate/table_columns.h"
#include "sweep/yaml/loader.h"

namespace shardscape::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* kValidateExamples =
    R"(Examples:
  shardscape validate                                   the published figures that come with the program
  shardscape validate --template > runs.csv             a table to fill in; also: --template serving, gemm, ...
  shardscape validate runs.csv --worst 20
  shardscape validate runs.csv --predictions out.csv --json
  shardscape validate runs.csv --check --bar step_time.mape=5% --bar ranking.spearman=0.9
  shardscape validate runs.csv --hold-out 1/3           rows that a fit may see, and rows it may not
  shardscape validate *.csv --evidence evidence.yaml     what `simulate` expects its error from

Errors are relative to the measured value, shares are fractions in JSON. Exit code 3: --check found a bar missed.
'shardscape help tables' lists the columns of tables, --template those of one; 'shardscape help
validation' the statistics.)";

struct ValidateArguments {
  std::vector<fs::path> files;
  fs::path predictions, evidence;
  std::string device = validate::EvaluateOptions{}.device;
  std::string collective_stack = validate::EvaluateOptions{}.collective_stack;
  std::vector<std::string> bars;
  std::string hold_out;
  std::vector<std::string> by;
  std::string table;  ///< of --template
  std::size_t worst = ValidateView{}.worst;
  bool json = false, check = false, rows = false, force = false;
};

/// The bars of the command line. Each replaces a file's own bar for the same statistic.
std::vector<validate::Bar> parse_bars(const std::vector<std::string>& texts) {
  std::vector<validate::Bar> bars;
  ProblemList problems;
  for (const std::string& text : texts) {
    const auto bar = validate::parse_bar(text);
    if (bar) {
      bars.push_back(*bar);
    } else {
      problems.add("--bar " + text + ": " + bar.error());
    }
  }
  problems.finish();
  return bars;
}

void override_bars(const std::vector<validate::Bar>& given, std::vector<ValidatedFile>& files) {
  for (ValidatedFile& file : files) {
    for (const validate::Bar& bar : given) {
      std::erase_if(file.bars, [&](const validate::Bar& own) { return own.statistic == bar.statistic; });
      file.bars.push_back(bar);
    }
  }
  ProblemList problems;
  for (const validate::Bar& bar : given) {
    const bool used = std::ranges::any_of(files, [&](const ValidatedFile& file) {
      return std::ranges::any_of(bar_results(file), [&](const validate::BarResult& result) {
        return result.bar.statistic == bar.statistic;
      });
    });
    if (!used) problems.add("--bar " + bar.statistic + ": has no effect, no file measures it");
  }
  problems.finish();
}

/// The files of the command line, or the published ones.
std::vector<fs::path> files_of(const ValidateArguments& arguments) {
  if (!arguments.files.empty()) return arguments.files;
  const std::optional<fs::path> folder = published_folder();
  if (!folder) throw std::runtime_error("the published figures that belong to this program are gone");
  return validate::list_published(*folder);
}

/// Validates together with other ranks: each predicts some rows, and rank 0 gets all.
class Validation {
 public:
  Validation(const ValidateArguments& arguments, const CommonOptions& common, ranks::Ranks& ranks)
      : arguments_(arguments), common_(common), ranks_(ranks), presets_(make_catalog(common)) {}

  std::vector<ValidatedFile> run() {
    std::vector<ValidatedFile> files;
    for (const fs::path& path : files_of(arguments_)) {
      const bool published = path.extension() == ".yaml" || path.extension() == ".yml";
      files.push_back(published ? published_file(path) : measured_file(path));
    }
    const auto evidence_file = evidence::find_evidence(make_catalog(common_));
    const auto evidence = evidence_file ? evidence::read_evidence(*evidence_file)
                                        : tl::expected<evidence::Table, yaml::Diagnostics>();
    if (!evidence) throw BadInput(evidence.error().to_string());
    for (ValidatedFile& file : files) file.promises = kept_promises(file.evaluation, *evidence);
    return files;
  }

 private:
  validate::Evaluation evaluate(const validate::Table& table, const fs::path& path) {
    return validate::evaluate(
        table, presets_,
        {common_.reference, path.parent_path(), arguments_.device, arguments_.collective_stack, &ranks_});
  }

  ValidatedFile measured_file(const fs::path& path) {
    const auto text = validate::read_table(path);
    if (!text) {
      validate::Evaluation nothing;
      nothing.problems.push_back({path.string(), 0, "", text.error()});
      return {path.string(), "", "", std::move(nothing), {}};
    }
    ValidatedFile file{path.string(), "", "", evaluate(validate::parse_csv(*text, path.string()), path), {}};
    file.bars = validate::default_bars(file.evaluation.kind);
    return file;
  }

  ValidatedFile published_file(const fs::path& path) {
    const auto set = validate::load_published(path);
    if (set) return {path.string(), set->title, set->source, evaluate(set->table, path), set->bars};
    validate::Evaluation nothing;
    for (const yaml::Diagnostic& problem : set.error().list()) {
      nothing.problems.push_back({path.string(), problem.where.line, problem.path, problem.message});
    }
    return {path.string(), "", "", std::move(nothing), {}};
  }

  const ValidateArguments& arguments_;
  const CommonOptions& common_;
  ranks::Ranks& ranks_;
  validate::Presets presets_;
};

/// Writes the predictions, unless no row could be predicted.
void write_predictions(const results::OutputPath& output, const std::vector<ValidatedFile>& files) {
  std::vector<validate::NamedEvaluation> evaluations;
  std::size_t rows = 0, problems = 0;
  for (const ValidatedFile& file : files) {
    evaluations.push_back({file.path, &file.evaluation});
    rows += file.evaluation.rows.size() + file.evaluation.unpredicted.size();
    problems += file.evaluation.problems.size();
  }
  if (rows == 0 && problems > 0) return;
  results::write_output(output, validate::predictions_csv(evaluations));
}

void write_evidence(const results::OutputPath& output, const std::vector<ValidatedFile>& files) {
  std::vector<evidence::Residual> residuals;
  for (const ValidatedFile& file : files) {
    const std::vector<evidence::Residual> more = validate::residuals(file.evaluation);
    residuals.insert(residuals.end(), more.begin(), more.end());
  }
  if (residuals.empty()) throw BadInput("--evidence: no table has a plan that was measured and predicted");
  results::write_output(output, evidence::evidence_yaml(evidence::summarise(residuals)));
}

/// The exit code: problems come first, then missed bars; both are listed on stderr.
int verdict(const std::vector<ValidatedFile>& files, bool check) {
  std::vector<std::string> problems, missed;
  for (const ValidatedFile& file : files) {
    for (const validate::TableProblem& problem : file.evaluation.problems)
      problems.push_back(to_string(problem));
    for (const validate::BarResult& result : bar_results(file)) {
      if (!result.held) missed.push_back(file.path + ": " + result.bar.statistic + ": outside tolerance");
    }
  }
  std::cout.flush();
  if (!problems.empty()) {
    print_problems(std::cerr, problems);
    std::cerr << "shardscape: " << counted(problems.size(), "problem") << "; the other rows are reported\n";
    return kBadInput;
  }
  if (!check || missed.empty()) return kDone;
  print_problems(std::cerr, missed);
  std::cerr << "shardscape: accuracy outside tolerance\n";
  return kInaccurate;
}

/// Checks that all ranks have the same tables and presets; what is wrong is an exception on rank 0.
void agree_on_tables(const ValidateArguments& arguments, const CommonOptions& common, ranks::Ranks& ranks) {
  RankView view;
  const std::exception_ptr failure = note_failure(view, [&] {
    const results::RunInfo run = run_info(common, 1);
    view.facts = {{"the version of the program", run.software_version + " (" + run.git_commit + ")"},
                  {"--device", arguments.device},
                  {"--stack", arguments.collective_stack},
                  {"--reference", common.reference ? "given" : "not given"}};
    for (const fs::path& file : files_of(arguments)) {
      const auto text = validate::read_table(file);
      view.facts.push_back({"the text of " + file.string(), text ? results::sha256_hex(*text) : "", false});
    }
    if (ranks.size() > 1) std::ranges::move(facts_of(make_catalog(common)), std::back_inserter(view.facts));
  });
  agree_on(view, failure, ranks);
}

/// Rank 0's part: all that is printed and written.
int lead_validation(const ValidateArguments& arguments, const CommonOptions& common, ranks::Ranks& ranks) {
  Word word(ranks);
  agree_on_tables(arguments, common, ranks);
  ValidateView view{arguments.rows, arguments.worst, arguments.check, {}, {}};
  if (!arguments.hold_out.empty()) {
    const auto hold_out = validate::parse_hold_out(arguments.hold_out);
    if (!hold_out) throw BadInput("--hold-out: " + hold_out.error());
    view.hold_out = *hold_out;
  }
  for (const std::string& keys : arguments.by) {
    const auto by = validate::parse_regime_keys(keys);
    if (!by) throw BadInput("--by: " + by.error());
    view.by.push_back(*by);
  }
  const std::vector<validate::Bar> bars = parse_bars(arguments.bars);
  std::optional<results::OutputPath> predictions;
  if (!arguments.predictions.empty())
    predictions.emplace(arguments.predictions, arguments.force, arguments.files);
  std::optional<results::OutputPath> evidence;
  if (!arguments.evidence.empty()) evidence.emplace(arguments.evidence, arguments.force, arguments.files);
  word.begin();
  std::vector<ValidatedFile> files =
      in_common(ranks, [&] { return Validation(arguments, common, ranks).run(); });
  override_bars(bars, files);
  if (evidence) write_evidence(*evidence, files);  // it may refuse to write
  if (predictions) write_predictions(*predictions, files);
  if (arguments.json) {
    std::cout << json_text(validation_json(files, view), 2) << '\n';
  } else {
    print_validation(std::cout, files, view);
  }
  return verdict(files, arguments.check);
}

int run_validate(const ValidateArguments& arguments, const CommonOptions& common) {
  if (!arguments.table.empty()) return print_template(arguments.table), kDone;
  const std::unique_ptr<ranks::Ranks> ranks = join_ranks(common);
  return run_together(
      *ranks, [&] { return lead_validation(arguments, common, *ranks); },
      [&] {
        agree_on_tables(arguments, common, *ranks);
        if (hear_begin(*ranks)) Validation(arguments, common, *ranks).run();
      });
}

std::vector<std::string> template_names() {
  std::vector<std::string> names;
  for (const validate::TableTemplate& one : validate::table_templates()) names.emplace_back(one.name);
  return names;
}

}  // namespace

std::string tables_topic() {
  std::string text =
      "A table is recognised by its header. Only columns with * must be there; those in []\n"
      "few tables have. Blank cells are unknown, as are all of a column that is missing.\n";
  const auto add = [&](const std::string& title, std::span<const validate::Column> columns) {
    text += "\nColumns of a table of " + title + ":\n";
    for (const validate::Column& column : columns) {
      const bool free = column.use == validate::ColumnUse::free;
      std::string name = free ? fmt::format("[{}]", column.name) : std::string(column.name);
      if (column.use == validate::ColumnUse::needed) name += " *";
      name.resize(std::max<std::size_t>(name.size(), 30), ' ');
      text += fmt::format("  {} {}\n", name, column.meaning);
    }
  };
  for (const validate::TableKind kind : enum_values<validate::TableKind>()) {
    add(std::string(name_of(kind)), validate::columns_of(kind));
    if (kind == validate::TableKind::plans)
      add("plans of others, by device and software; those of plans besides, which may be absent",
          validate::public_plan_columns());
  }
  return text + "\n* cells must be filled.\n";
}

void add_template(CLI::App& command, std::string& chosen) {
  command
      .add_option("--template", chosen,
                  "Print a table to fill in, and what its columns mean: " + join_names(template_names()))
      ->type_name("[TABLE]")
      ->expected(0, 1)
      ->default_str("training")
      ->check(one_of(template_names()));
}

void print_template(const std::string& name) {
  const validate::TableTemplate& found =
      *std::ranges::find(validate::table_templates(), name, &validate::TableTemplate::name);
  std::cout << found.csv << std::flush;
  std::cerr << "columns (* cells must be filled; columns and cells that are not known may be left out)\n"
            << column_meanings(found);
}

void add_validate_command(const Program& program) {
  const auto [command, arguments] =
      program.add("validate", "Compare predictions with measurements", kValidateExamples, run_validate);
  command->add_option("MEASUREMENTS", arguments->files,
                      "Tables (CSV) or published figures (YAML); none: the published figures of the program");
  add_template(*command, arguments->table);
  add_value(*command, "--predictions", arguments->predictions, "OUT.csv",
            "Write the prediction of every row as CSV");
  add_value(*command, "--evidence", arguments->evidence, "OUT.yaml",
            "Sum up the errors of plans by regime, as hw_presets/evidence.yaml has them");
  command->add_flag("--force", arguments->force, "Replace the file that --predictions or --evidence names");
  add_json(*command, arguments->json);
  command->add_flag(
      "--check", arguments->check,
      "Exit code 3 where accuracy misses a bar: of the published file, given by --bar, or the default");
  add_value(*command, "--bar", arguments->bars, "STATISTIC=VALUE",
            "A bar for --check: step_time.mape=5%; repeatable");
  command->add_flag("--rows", arguments->rows, "List every row: measured, predicted, error");
  add_value(*command, "--worst", arguments->worst, "N", "How many of the worst rows are listed")
      ->check(whole_number(0));
  add_value(*command, "--hold-out", arguments->hold_out, "N/M",
            "Report the rows that a fit holds out apart from the others");
  add_value(
      *command, "--by", arguments->by, "KEYS",
      "Errors by group, too: " + join_names(validate::regime_keys()) + ", joined by commas; repeatable");
  command
      ->add_option("--device", arguments->device,
                   "Device of GEMM rows that name none; a file of yours stands for the name in it")
      ->capture_default_str();
  command->add_option("--stack", arguments->collective_stack, "Stack of collective rows that name none")
      ->capture_default_str();
}

}  // namespace shardscape::cli
