// shardscape verify, merge and diff: whether a result file is whole and agrees with itself, the shards of a sweep
// joined into one, and two files of one study compared.
#include <iostream>
#include <nlohmann/json.hpp>

#include "engine/base/safe_text.h"
#include "results_schema/reading/diff.h"
#include "results_schema/reading/isolated.h"
#include "results_schema/segments/assemble.h"
#include "results_schema/segments/segments.h"
#include "sweep/cli/command.h"
#include "sweep/cli/reports/report.h"
#include "sweep/cli/reports/selection_text.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/cli/terminal/usage.h"

namespace shardscape::cli {

namespace {

constexpr const char* kVerifyFooter =
    R"(Examples:
  shardscape verify out.h5
  shardscape verify out.h5.parts          of a sweep that is running or was interrupted

Reads every value. Exit code 0: all is well; 1: something is damaged or does not fit, and stdout says what.)";

int run_verify(const std::filesystem::path& file, const CommonOptions& /*common*/) {
  prepare_results(file);
  const results::Verification verification = results::verify_isolated(file);
  // A damaged file is not opened here, as only the child process that verifies may hang on it.
  const std::string selection =
      verification.problems.empty() ? in_brackets(of_the_study(results::ResultReader(file))) : "";
  std::cout << file.string() << ": " << counted(verification.rows, "point") << selection << ", "
            << counted(verification.samples, "row") << " of fault samples: "
            << (verification.problems.empty() ? "all is well"
                                              : counted(verification.problems.size(), "problem"))
            << "\n";
  for (const std::string& problem : verification.problems) std::cout << "  " << message_line(problem) << "\n";
  return verification.problems.empty() ? kDone : kEnvironment;
}

namespace fs = std::filesystem;

constexpr const char* kMergeFooter =
    R"(Examples:
  shardscape sweep study.yaml -o a.h5 --shard 1/2        on one machine
  shardscape sweep study.yaml -o b.h5 --shard 2/2        on another
  shardscape merge a.h5 b.h5 -o all.h5                   as if one had done it all

The files are finished shards of one study by one version of the program, neighbours without a gap, in any order.
They stay as they are. Some of the shards make a larger shard.)";

struct MergeArguments {
  std::vector<fs::path> files;
  fs::path output;
  bool force = false;
};

results::OutputPath merge_output(const MergeArguments& arguments) {
  std::error_code error;
  if (fs::exists(results::parts_folder(arguments.output), error)) {
    throw BadInput(results::parts_folder(arguments.output).string() +
                   ": holds an unfinished sweep; choose another output\n");
  }
  return {arguments.output, arguments.force, arguments.files};
}

int run_merge(const MergeArguments& arguments, const CommonOptions& common) {
  for (const fs::path& file : arguments.files) prepare_results(file);
  results::remove_leftovers(arguments.output);
  const std::vector<results::SweepPart> parts = results::open_parts(arguments.files);
  if (auto problems = results::merge_problems(parts); !problems.empty()) throw BadInput(std::move(problems));
  results::RunInfo run = run_info(common, 1);
  run.command_line = parts.front().manifest.run.command_line;  // names the study and what it changes
  results::merge(parts, merge_output(arguments), run);
  std::uint64_t rows = 0;
  for (const results::SweepPart& part : parts) rows += part.manifest.layout.rows();
  std::cout << "merged " << counted(parts.size(), "file") << ": " << format_count(rows) << " of "
            << counted(parts.front().manifest.layout.total_points, "point")
            << in_brackets(of_the_study(results::ResultReader(arguments.output))) << " in "
            << arguments.output.string() << " ("
            << format_bytes(static_cast<double>(fs::file_size(arguments.output))) << ")\n";
  return kDone;
}

constexpr const char* kDiffFooter =
    R"(Examples:
  shardscape diff a.h5 b.h5
  shardscape sweep study.yaml -o plain.h5 --reference && shardscape diff out.h5 plain.h5 --tolerance 1e-9

Compares every value of /points and /fault_samples. Exit code 0: none differs by more than the tolerance; 3: some
do; 2: the files hold different studies or points. Fault samples beside a target_ci must be as many.)";

struct DiffArguments {
  std::filesystem::path a, b;
  double tolerance = 0;
  bool json = false;
};

std::string exactly(double value) { return json_text(nlohmann::json(value)); }

Cell exact(double value) { return {exactly(value), value}; }

Rows rows_of(const std::vector<results::ColumnDifference>& differences) {
  Rows rows({Rows::hidden("table"),
             {left("column")},
             Rows::hidden("column"),
             {"rows", "rows"},
             {"largest", "largest_relative"},
             {"at point", "point_id"},
             {"first file", "a"},
             {"second file", "b"}});
  for (const results::ColumnDifference& d : differences) {
    rows.add({cell::words(d.table),
              cell::words("/" + d.table + "/" + d.column),
              cell::words(d.column),
              cell::count(d.rows),
              exact(d.largest),
              {std::to_string(d.point_id), d.point_id},
              exact(d.a),
              exact(d.b)});
  }
  return rows;
}

int run_diff(const DiffArguments& arguments, const CommonOptions& /*common*/) {
  const results::ResultReader a = open_results(arguments.a), b = open_results(arguments.b);
  if (const auto why = results::why_not_comparable(a, b)) {
    const bool others = a.attribute("study_sha256") != b.attribute("study_sha256");
    throw BadInput(arguments.a.string() + " and " + arguments.b.string() + ": " + *why +
                   (others ? "; 'shardscape compare' says why the best plan of one is faster" : "") + "\n");
  }
  const auto differences = results::differing_columns(a, b, arguments.tolerance);
  if (arguments.json) {
    const nlohmann::ordered_json document = {{"points", a.row_count()},
                                             {"fault_samples", a.samples().row_count()},
                                             {"tolerance", arguments.tolerance},
                                             {"differences", rows_of(differences).json()}};
    std::cout << json_text(document, 2) << "\n";
  } else {
    std::cout << counted(a.row_count(), "point") << ", " << counted(a.samples().row_count(), "row")
              << " of fault samples: "
              << (differences.empty() ? "nothing differs"
                                      : "values differ in " + counted(differences.size(), "column"));
    if (arguments.tolerance > 0) std::cout << " by more than " << exactly(arguments.tolerance);
    std::cout << "\n";
    if (!differences.empty()) rows_of(differences).print(std::cout, 2);
  }
  return differences.empty() ? kDone : kInaccurate;
}

}  // namespace

void add_verify_command(const Program& program) {
  const auto [command, file] = program.add(
      "verify", "Check that a result file is whole and agrees with itself", kVerifyFooter, run_verify);
  add_results(*command, *file);
}

void add_merge_command(const Program& program) {
  const auto [command, arguments] =
      program.add("merge", "Put the shards of a sweep together into one file", kMergeFooter, run_merge);
  command->add_option("RESULTS", arguments->files, "The shards' files")->required()->type_name("PART.h5");
  add_value(*command, "-o,--output", arguments->output, "ALL.h5", "The file to write")->required();
  add_force(*command, arguments->force);
}

void add_diff_command(const Program& program) {
  const auto [command, arguments] =
      program.add("diff", "Compare two result files of one study, value by value", kDiffFooter, run_diff);
  command->add_option("A", arguments->a, "OUT.h5 or OUT.h5.parts")->required();
  command->add_option("B", arguments->b, "The other one")->required();
  add_value(*command, "--tolerance", arguments->tolerance, "SHARE",
            "Relative difference of numbers that counts as none; with it, 1e-12 of any unit does, too "
            "(default 0: to the bit)")
      ->check(share());
  add_json(*command, arguments->json);
}

}  // namespace shardscape::cli
