// shardscape diff: compares two result files of one study.
#include <iostream>
#include <nlohmann/json.hpp>

#include "engine/base/safe_text.h"
#include "results_schema/reading/diff.h"
#include "sweep/cli/command.h"
#include "sweep/cli/reports/report.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/cli/terminal/usage.h"

namespace shardscape::cli {

namespace {

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
