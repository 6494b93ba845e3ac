// shardscape sensitivity: shows how plans and links bear faults, from the fault samples of a result file.
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "engine/base/safe_text.h"
#include "results_schema/reading/reader.h"
#include "results_schema/reading/row_scan.h"
#include "sweep/cli/command.h"
#include "sweep/cli/reports/report.h"
#include "sweep/cli/reports/selection_text.h"
#include "sweep/cli/reports/top_output.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/cli/terminal/usage.h"
#include "sweep/faults/sensitivity.h"

namespace shardscape::cli {

namespace {

using results::ColumnInfo;
using results::ResultReader;

constexpr const char* kSensitivityFooter =
    R"(Examples:
  shardscape sensitivity out.h5                      plans, links and the distribution at a glance
  shardscape sensitivity out.h5 --by-plan -n 20
  shardscape sensitivity out.h5 --by-plan --pareto   the plans worth choosing from
  shardscape sensitivity out.h5 --by-link --format csv
  shardscape sensitivity out.h5 --distribution --format csv > slowdown.csv
  shardscape sensitivity out.h5 --format json

Plans are ranked by their mean time under faults; 'healthy' is their rank without. A star marks plans that no other
beats in healthy time, 95th percentile of the slowdown and memory together. Links are ranked by the mean slowdown of
all plans' samples in which they are sick: of few draws it is that of what was drawn, not of the place. A sweep that is
still running, or was interrupted, can be read too.)";

struct SensitivityArguments {
  std::filesystem::path file;
  bool by_plan = false, by_link = false, by_dimension = false, distribution = false;
  bool pareto = false;  ///< for plans: show only those that no other beats
  std::optional<std::uint64_t> count;
  std::string format = "table";
};

/// A ranking that can be printed in all formats.
struct Report {
  const char* key;
  std::string title;
  Rows rows;
  std::size_t total = 0;
};

Cell fine_share(double value) { return cell::share(value, 2); }

/// Plans and settings of some points as text, as far as these differ within the file.
class PlanTexts {
 public:
  PlanTexts(const ResultReader& reader, std::vector<std::uint64_t> rows) : rows_(std::move(rows)) {
    std::ranges::sort(rows_);
    for (const ColumnInfo& column : reader.columns()) {
      if (is_axis(column) && reader.row_count() > 1 && results::varies(reader, column.name))
        columns_.emplace_back(column, results::values_of(reader, column.name, rows_));
    }
  }
  [[nodiscard]] std::string of(std::uint64_t row) const {
    const auto place = static_cast<std::size_t>(std::ranges::lower_bound(rows_, row) - rows_.begin());
    std::string text;
    for (const auto& [column, values] : columns_) {
      text += (text.empty() ? "" : ",") + short_heading(column) + "=" + plain_value(column, values[place]);
    }
    return text;
  }

 private:
  std::vector<std::uint64_t> rows_;  ///< in ascending order
  /// Columns with their values in those rows.
  std::vector<std::pair<ColumnInfo, std::vector<double>>> columns_;
};

Report plan_report(const ResultReader& reader, std::uint64_t most, bool pareto) {
  auto plans = sweep::rank_plans(reader);
  if (pareto) std::erase_if(plans, [](const sweep::PlanSensitivity& plan) { return !plan.pareto; });
  const std::size_t shown = std::min<std::size_t>(most, plans.size());
  std::vector<std::uint64_t> rows;
  for (std::size_t i = 0; i < shown; ++i) rows.push_back(plans[i].row);
  const PlanTexts texts(reader, std::move(rows));
  Report report{
      "by_plan",
      pareto ? "plans that no other beats, by mean time under faults" : "plans by mean time under faults",
      {{"rank", "rank"},
       {"healthy", "healthy_rank"},
       {"point", "point_id"},
       {"expected", "expected_s"},
       {"healthy time", "healthy_s"},
       {"mean", "slowdown_mean"},
       {"p95", "slowdown_p95"},
       {"max", "slowdown_max"},
       {"memory", "memory_peak_bytes"},
       {"", "pareto"},
       {left("plan"), "plan"}},
      plans.size()};
  for (std::size_t i = 0; i < shown; ++i) {
    const sweep::PlanSensitivity& p = plans[i];
    report.rows.add({cell::count(p.rank),
                     cell::count(p.healthy_rank),
                     {std::to_string(p.point_id), p.point_id},
                     cell::seconds(p.expected_s),
                     cell::seconds(p.healthy_s),
                     fine_share(p.mean),
                     fine_share(p.p95),
                     fine_share(p.max),
                     cell::bytes(p.memory_bytes),
                     {p.pareto ? "*" : "", p.pareto},
                     cell::words(texts.of(p.row))});
  }
  return report;
}

Report place_report(const char* key, const std::string& title,
                    const std::vector<sweep::PlaceSensitivity>& places, std::uint64_t most) {
  Report report{key,
                title,
                {{left("place"), "place"},
                 {"draws", "draws"},
                 {"mean rate left", "rate_left_mean"},
                 {"samples", "samples"},
                 {"unreachable", "unreachable"},
                 {"mean", "slowdown_mean"},
                 {"max", "slowdown_max"},
                 {"above 1 %", "slowdown_above_1pct_share"}},
                places.size()};
  for (std::size_t i = 0; i < std::min<std::size_t>(most, places.size()); ++i) {
    const sweep::PlaceSensitivity& p = places[i];
    report.rows.add({cell::words(p.place), cell::count(p.draws), cell::share(p.left), cell::count(p.samples),
                     cell::count(p.unreachable), fine_share(p.mean), fine_share(p.max),
                     fine_share(p.above_1pct)});
  }
  return report;
}

Report distribution_report(const ResultReader& reader, bool fine) {
  std::vector<double> shares = {0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0};
  if (fine) {
    shares.clear();
    for (int percent = 1; percent <= 99; ++percent) shares.push_back(0.01 * percent);
    shares.insert(shares.end(), {0.999, 0.9999, 1.0});
  }
  const auto points = sweep::slowdown_distribution(reader, shares);
  Report report{"distribution",
                "slowdown of all samples",
                {{"share of the samples", "share"}, {"slow by at most", "slowdown"}},
                points.size()};
  for (const sweep::DistributionPoint& point : points) {
    report.rows.add({fine_share(point.share), fine_share(point.slowdown)});
  }
  return report;
}

std::vector<Report> reports(const ResultReader& reader, const SensitivityArguments& arguments) {
  constexpr std::uint64_t kGlance = 10, kAll = ~std::uint64_t{0};
  const bool all =
      !arguments.by_plan && !arguments.by_link && !arguments.by_dimension && !arguments.distribution;
  const bool table = arguments.format == "table";
  const std::uint64_t most = arguments.count.value_or(table ? kGlance : kAll);
  std::vector<Report> list;
  if (all || arguments.by_plan) list.push_back(plan_report(reader, most, arguments.pareto));
  if (all || arguments.by_link) {
    const auto places = sweep::rank_places(reader);
    const bool links = std::ranges::all_of(places, &sweep::PlaceSensitivity::link);
    const char* const title = links ? "links by mean slowdown" : "links and devices by mean slowdown";
    list.push_back(place_report("by_link", title, places, most));
  }
  if (all || arguments.by_dimension) {
    list.push_back(place_report("by_dimension", "dimensions by mean slowdown", sweep::rank_dimensions(reader),
                                arguments.count.value_or(kAll)));
  }
  if (all || arguments.distribution) list.push_back(distribution_report(reader, !all && !table));
  return list;
}

void print(const Report& report) {
  std::cout << report.title;
  if (report.rows.size() < report.total)
    std::cout << ", " << format_count(report.rows.size()) << " of " << format_count(report.total);
  std::cout << "\n";
  report.rows.print(std::cout, 2);
}

/// Checks that the file has fault samples; otherwise throws and says why there are none.
void require_samples(const ResultReader& reader, const std::filesystem::path& file) {
  if (reader.samples().columns().empty()) {
    throw BadInput(file.string() + ": holds no fault samples; sweep a study with a 'faults:' key\n");
  }
  if (reader.samples().row_count() > 0) return;
  throw BadInput(file.string() + (reader.complete() ? ": holds no fault samples: no point is feasible\n"
                                                    : ": holds no fault samples yet\n"));
}

int run_sensitivity(const SensitivityArguments& arguments, const CommonOptions& /*common*/) {
  if (arguments.pareto && !arguments.by_plan)
    throw BadInput("--pareto: chooses among plans; give --by-plan\n");
  const int rankings = static_cast<int>(arguments.by_plan) + static_cast<int>(arguments.by_link) +
                       static_cast<int>(arguments.by_dimension) + static_cast<int>(arguments.distribution);
  if (arguments.format == "csv" && rankings != 1)
    throw BadInput("--format csv: needs one of --by-plan, --by-link, --by-dimension and --distribution\n");
  const ResultReader reader = open_results(arguments.file);
  require_samples(reader, arguments.file);
  const std::vector<Report> list = reports(reader, arguments);
  if (arguments.format == "json") {
    auto document = nlohmann::ordered_json::object();
    for (const Report& report : list) document[report.key] = report.rows.json();
    const results::PointSelection& selection = reader.layout().selection;
    document["points"] = {{"rows", reader.row_count()},
                          {"study_points", selection.study_points},
                          {"selection", name_of(selection.kind)},
                          {"text", of_the_study(reader)}};
    std::cout << json_text(document, 2) << "\n";
  } else if (arguments.format == "csv") {
    note_selection(reader);
    list.front().rows.print_csv(std::cout);
  } else {
    const std::string of_study = of_the_study(reader);
    if (!reader.complete()) {
      std::cout << "so far, " << format_count(reader.point_count()) << " of "
                << counted(reader.total_points(), "point") << in_brackets(of_study) << "\n\n";
    } else if (!of_study.empty()) {
      std::cout << counted(reader.row_count(), "point") << in_brackets(of_study) << "\n\n";
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (i > 0) std::cout << "\n";
      print(list[i]);
    }
  }
  return kDone;
}

}  // namespace

void add_sensitivity_command(const Program& program) {
  const auto [command, arguments] =
      program.add("sensitivity", "How plans and links bear faults: rankings from the fault samples",
                  kSensitivityFooter, run_sensitivity);
  add_results(*command, arguments->file);
  command->add_flag("--by-plan", arguments->by_plan, "Plans by mean time under faults");
  command->add_flag("--by-link", arguments->by_link, "Links (and devices) by mean slowdown");
  command->add_flag("--by-dimension", arguments->by_dimension, "Fabric dimensions by mean slowdown");
  command->add_flag("--distribution", arguments->distribution,
                    "Cumulative distribution of the slowdown of all samples");
  command->add_flag("--pareto", arguments->pareto,
                    "With --by-plan: those alone that no other plan beats in healthy time, p95 and memory");
  add_value(*command, "-n,--count", arguments->count, "N",
            "Rows of each ranking (default: 10 in tables, else all)")
      ->check(whole_number(1));
  add_value(*command, "--format", arguments->format, "table|csv|json", "How rows are printed; default: table")
      ->check(one_of({"table", "csv", "json"}));
}

}  // namespace shardscape::cli
