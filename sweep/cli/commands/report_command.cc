// shardscape report: writes a result file as one interactive HTML page.
#include <iostream>

#include "results_schema/disk/output_file.h"
#include "results_schema/reading/reader.h"
#include "results_schema/report/page.h"
#include "sweep/cli/command.h"
#include "sweep/cli/reports/near_misses.h"
#include "sweep/cli/reports/report_facts.h"
#include "sweep/cli/reports/selection_text.h"
#include "sweep/cli/reports/top_output.h"
#include "sweep/cli/reports/verdicts.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/cli/terminal/usage.h"

namespace shardscape::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* kReportFooter =
    R"(Examples:
  shardscape report out.h5 -o report.html
  shardscape report out.h5 -o report.html --force          replace the page of an earlier run
  shardscape report out.h5 -o report.html --points 5000    a smaller page of a large study
  shardscape report out.h5 -o report.html --confirm 20     20 plans executed, however long that takes

The page holds its data and scripts: it opens from disk, without a network, and can be sent as it is. Studies with
more feasible points than --points show a sample, always with the Pareto front and the best plans; the page says so.
The same results give the same page. A sweep that is still running, or was interrupted, can be read too.)";

struct ReportArguments {
  fs::path file, output;
  std::size_t points = report::ReportInput{}.max_points;
  std::optional<std::size_t> confirm;
  bool force = false;
};

int run_report(const ReportArguments& arguments, const CommonOptions& /*common*/) {
  const results::ResultReader reader = open_results(arguments.file);
  const fs::path inputs[] = {arguments.file};
  const results::OutputPath output(arguments.output, arguments.force, inputs);
  report::ReportInput input;
  input.words = {short_heading, describe, status_of};
  input.max_points = arguments.points;
  input.facts = study_facts(reader);
  input.faults = fault_figures(reader);
  input.of_the_study = of_the_study(reader);
  input.near_misses = near_misses(reader);
  input.commands = simulate_commands(reader);
  input.answer = best_point(reader, arguments.confirm);
  const std::string title = reader.attribute("title");
  const std::string page =
      report::html_page(title.empty() ? "Shardscape" : title, report::report_json(reader, input));
  results::write_output(output, page);
  const bool part = reader.complete() && !input.of_the_study.empty();
  std::cout << "report on " << (part ? "" : format_count(reader.point_count()) + " of ")
            << counted(part ? reader.row_count() : reader.total_points(), "point")
            << in_brackets(input.of_the_study) << " in " << arguments.output.string() << " ("
            << format_bytes(static_cast<double>(page.size())) << ")\n";
  return kDone;
}

}  // namespace

void add_report_command(const Program& program) {
  const auto [command, arguments] =
      program.add("report", "Results as one interactive HTML page", kReportFooter, run_report);
  add_results(*command, arguments->file);
  add_value(*command, "-o,--output", arguments->output, "REPORT.html", "The page to write")->required();
  add_value(*command, "--points", arguments->points, "N",
            "Feasible points shown at most, besides the best ones")
      ->check(whole_number(1))
      ->capture_default_str();
  add_confirm(*command, arguments->confirm);
  add_force(*command, arguments->force);
}

}  // namespace shardscape::cli
