// shardscape diff: compares two result files of one study.
#include <iostream>
#include <nlohmann/json.hpp>

#include "engine/base/safe_text.h"
#include "results_schema/diff.h"
#include "sweep/cli/commands.h"
#include "sweep/cli/format.h"
#include "sweep/cli/text_table.h"
#include "sweep/cli/usage.h"

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

nlohmann::ordered_json to_json(const std::vector<results::ColumnDifference>& differences) {
  auto list = nlohmann::ordered_json::array();
  for (const results::ColumnDifference& d : differences) {
    list.push_back({{"table", d.table},
                    {"column", d.column},
                    {"rows", d.rows},
                    {"largest_relative", d.largest},
                    {"point_id", d.point_id},
                    {"a", d.a},
                    {"b", d.b}});
  }
  return list;
}

void print(const std::vector<results::ColumnDifference>& differences) {
  TextTable table({left("column"), "rows", "largest", "at point", "first file", "second file"});
  for (const results::ColumnDifference& d : differences) {
    table.add_row({"/" + d.table + "/" + d.column, format_count(d.rows), exactly(d.largest),
                   std::to_string(d.point_id), exactly(d.a), exactly(d.b)});
  }
  table.print(std::cout, 2);
}

int run_diff(const DiffArguments& arguments, const CommonOptions& /*common*/) {
  const results::ResultReader a = open_results(arguments.a), b = open_results(arguments.b);
  if (const auto why = results::why_not_comparable(a, b))
    throw BadInput(arguments.a.string() + " and " + arguments.b.string() + ": " + *why + "\n");
  const auto differences = results::differing_columns(a, b, arguments.tolerance);
  if (arguments.json) {
    const nlohmann::ordered_json document = {{"points", a.row_count()},
                                             {"fault_samples", a.sample_count()},
                                             {"tolerance", arguments.tolerance},
                                             {"differences", to_json(differences)}};
    std::cout << json_text(document, 2) << "\n";
  } else {
    std::cout << format_count(a.row_count()) << " points, " << format_count(a.sample_count())
              << " rows of fault samples: "
              << (differences.empty()
                      ? "nothing differs"
                      : format_count(differences.size()) +
                            (differences.size() == 1 ? " column differs" : " columns differ"));
    if (arguments.tolerance > 0) std::cout << " by more than " << exactly(arguments.tolerance);
    std::cout << "\n";
    if (!differences.empty()) print(differences);
  }
  return differences.empty() ? kDone : kInaccurate;
}

}  // namespace

void add_diff_command(const Program& program) {
  const auto [command, arguments] =
      program.add("diff", "Compare two result files of one study, value by value", kDiffFooter, run_diff);
  command->add_option("A", arguments->a, "OUT.h5 or OUT.h5.parts")->required();
  command->add_option("B", arguments->b, "The other one")->required();
  command
      ->add_option("--tolerance", arguments->tolerance,
                   "Relative difference of numbers that counts as none; with it, 1e-12 of any unit does, too "
                   "(default 0: to the bit)")
      ->type_name("SHARE")
      ->check(share());
  add_json(*command, arguments->json);
}

}  // namespace shardscape::cli
