// shardscape report: writes a result file as one interactive HTML page, with facts about the study beside the table of
// points, the commands that simulate them, and the sums of their fault samples.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/nearest_rank.h"
#include "engine/base/words.h"
#include "results_schema/disk/output_file.h"
#include "results_schema/reading/reader.h"
#include "results_schema/report/page.h"
#include "results_schema/report/report_data.h"
#include "sweep/cli/command.h"
#include "sweep/cli/reports/launch_report.h"
#include "sweep/cli/reports/near_misses.h"
#include "sweep/cli/reports/selection_text.h"
#include "sweep/cli/reports/top_output.h"
#include "sweep/cli/reports/top_table.h"
#include "sweep/cli/reports/verdicts.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/cli/terminal/usage.h"
#include "sweep/faults/sensitivity.h"
#include "sweep/space/design_space.h"
#include "sweep/yaml/node.h"

namespace shardscape::cli {

namespace {

namespace fs = std::filesystem;

using results::ResultReader;
using yaml::Node;

/// The text of a scalar, or the scalars of a list joined by commas; nothing for anything else.
std::optional<std::string> short_text(const Node& node) {
  const auto shown = [](const std::string& text) {
    const auto number = to_number<std::int64_t>(text);
    return number ? format_value(static_cast<double>(*number), "1") : text;
  };
  if (node.is_scalar()) return shown(node.text);
  if (!node.is_list() || node.items.empty()) return std::nullopt;
  std::string text;
  for (const Node& item : node.items) {
    if (!item.is_scalar()) return std::nullopt;
    text += (text.empty() ? "" : ", ") + shown(item.text);
  }
  return text;
}

std::optional<std::string> text_at(const Node& map, std::string_view key) {
  const Node* const node = map.find(key);
  return node == nullptr ? std::nullopt : short_text(*node);
}

/// The name of a part that is written out in full.
std::optional<std::string> name_of_part(const Node& study, std::string_view part) {
  const Node* const node = study.find(part);
  return node == nullptr ? std::nullopt : text_at(*node, "name");
}

std::string cluster_text(const Node& study, const Node& cluster) {
  std::string text = text_at(cluster, "name").value_or("");
  const auto count = text_at(study, "gpus"), device = name_of_part(cluster, "device");
  std::string inside = count ? *count + (device ? " x " : " GPUs") : "";
  if (device) inside += *device;
  if (!inside.empty()) text += (text.empty() ? "" : ", ") + inside;
  return text;
}

/// The workload as text: "training, sequence length 4096, global batch 128, bf16".
std::string workload_text(const Node& workload) {
  std::string text;
  for (const yaml::Entry& entry : workload.entries) {
    const auto value = short_text(entry.value);
    if (!value) continue;
    std::string label = entry.key;
    std::ranges::replace(label, '_', ' ');
    const bool plain = entry.key == "phase" || entry.key == "precision";
    text += (text.empty() ? "" : ", ") + (plain ? "" : label + " ") + *value;
  }
  return text;
}

/// The evidence as text: "4.1 % to 9.6 % (one sigma); measured, near"; nothing in files of older programs.
std::optional<std::string> evidence_text(const ResultReader& reader) {
  const results::ColumnInfo* const evidence = reader.find("evidence");
  if (evidence == nullptr || reader.find("expected_error") == nullptr) return std::nullopt;
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const double error : reader.read("expected_error")) {
    if (std::isnan(error)) continue;
    low = std::min(low, error);
    high = std::max(high, error);
  }
  if (high == 0) return "unknown";
  std::vector<bool> seen(evidence->meanings.size());
  for (const double code : reader.read("evidence")) {
    if (code > 0 && code < static_cast<double>(seen.size())) seen[static_cast<std::size_t>(code)] = true;
  }
  std::string text = format_percent(low);
  if (high > low) text += " to " + format_percent(high);
  const char* separator = " (one sigma); ";
  for (std::size_t code = 0; code < seen.size(); ++code) {
    if (seen[code]) text += std::exchange(separator, ", ") + evidence->meanings[code];
  }
  return text;
}

std::string fault_kinds(const Node& kind) {
  if (kind.is_scalar()) return kind.text;
  std::string text;
  for (const Node& item : kind.items) {
    const auto name = item.is_scalar() ? std::optional(item.text) : text_at(item, "kind");
    if (name) text += (text.empty() ? "" : ", ") + *name;
  }
  return text;
}

std::string faults_text(const Node& faults) {
  const Node* const kind = faults.find("kind");
  std::string text = kind == nullptr ? "" : fault_kinds(*kind);
  if (const auto samples = text_at(faults, "samples")) text += ", " + *samples + " samples per plan";
  if (const auto at_once = text_at(faults, "simultaneous"); at_once && *at_once != "1")
    text += ", " + *at_once + " at once";
  return text;
}

/// The slowdowns of all samples of a point that are not cut off, ascending.
std::vector<double> slowdowns_of(const ResultReader& reader, std::uint64_t point) {
  // Ids ascend: bisection finds the first row of the point, and the first after it, without reading the whole column.
  const auto first_not_below = [&](std::uint64_t id) {
    std::uint64_t low = 0, high = reader.samples().row_count();
    while (low < high) {
      const std::uint64_t middle = low + (high - low) / 2;
      if (reader.samples().point_ids({middle, middle + 1}).at(0) < id) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  };
  const results::RowRange range{first_not_below(point), first_not_below(point + 1)};
  const auto fault = reader.samples().read("fault", range),
             slowdown = reader.samples().read("slowdown", range);
  std::vector<double> values;
  for (std::size_t i = 0; i < fault.size(); ++i) {
    if (fault[i] == 0 && !std::isnan(slowdown[i])) values.push_back(slowdown[i]);
  }
  std::ranges::sort(values);
  return values;
}

/// The shares at which the distribution is shown: every percent, and the tail.
std::vector<double> distribution_shares() {
  std::vector<double> shares;
  for (int percent = 1; percent <= 99; ++percent) shares.push_back(0.01 * percent);
  shares.insert(shares.end(), {0.995, 0.999, 0.9999, 1.0});
  return shares;
}

report::Distribution plan_distribution(const ResultReader& reader, const std::string& name,
                                       std::uint64_t point) {
  report::Distribution distribution{fmt::format("{}, point {}", name, point), {}};
  const std::vector<double> values = slowdowns_of(reader, point);
  if (values.empty()) return distribution;
  for (const double share : distribution_shares())
    distribution.points.emplace_back(share, nearest_rank(values, share));
  return distribution;
}

std::vector<report::FaultPlace> places(const std::vector<sweep::PlaceSensitivity>& list, std::size_t count) {
  std::vector<report::FaultPlace> result;
  for (std::size_t i = 0; i < std::min(count, list.size()); ++i) {
    const sweep::PlaceSensitivity& p = list[i];
    result.push_back({p.place, p.samples, p.unreachable, p.mean, p.max, p.above_1pct});
  }
  return result;
}

/// Shell words that choose one of a study's workloads; empty where there is only one.
std::string workload_options(const sweep::Study& study, std::size_t workload) {
  std::vector<std::string> words;
  for (const auto& [key, value] : listed_settings(study, workload))
    words.insert(words.end(), {"--set", "workload." + key + "=" + value});
  return words.empty() ? "" : shell_line(words);
}

/// Model, cluster, GPUs, stack, workload, ... as (label, text), as far as the resolved study has them.
std::vector<std::pair<std::string, std::string>> study_facts(const ResultReader& reader) {
  std::vector<std::pair<std::string, std::string>> facts;
  const auto add = [&](const char* label, const std::optional<std::string>& text) {
    if (text && !text->empty()) facts.emplace_back(label, *text);
  };
  // A file of another version may be written differently; then fewer facts are shown.
  yaml::Diagnostics ignored;
  const auto study = yaml::parse(reader.resolved_yaml(), "study", ignored);
  if (!study || !study->is_map()) return facts;
  add("model", name_of_part(*study, "model"));
  if (const Node* const cluster = study->find("cluster")) add("cluster", cluster_text(*study, *cluster));
  add("stack", name_of_part(*study, "stack"));
  if (const Node* const workload = study->find("workload")) add("workload", workload_text(*workload));
  if (const Node* const hardware = study->find("hardware"); hardware != nullptr && hardware->is_map()) {
    add("hardware axes", joined(hardware->entries, ", ", &yaml::Entry::key));
  }
  add("constraints", text_at(*study, "constraints"));
  if (const Node* const faults = study->find("faults")) add("faults", faults_text(*faults));
  add("objectives", text_at(*study, "objectives"));
  add("mode", text_at(*study, "mode"));
  add("expected error", evidence_text(reader));
  return facts;
}

/// The best point by the first objective as `top` finds it, with up to `confirm` rows executed, and how it is launched.
report::Answer best_point(const ResultReader& reader, std::optional<std::size_t> confirm) {
  report::Answer answer;
  std::istringstream assumptions(assumptions_of(reader).value_or(""));
  for (std::string line; std::getline(assumptions, line);) answer.assumptions.push_back(line);
  TopQuestion question;
  question.by = report::ranking_column(reader).name;
  question.count = std::max<std::uint64_t>(results::kTopCount, confirm.value_or(0));
  TopTable table = table_of(reader, question, false);
  if (table.groups.empty()) return answer;
  ConfirmWish wish;
  wish.asked = confirm.has_value();
  wish.rows = confirm.value_or(wish.rows);
  Confirmation confirmation(reader, question, wish);
  confirmation.run(table.chosen, table.groups);
  answer.confirmed = confirmation.lasting_text();
  answer.remarks = remarks_on_rows(reader, question, table.chosen, table.groups).lines;
  const auto id_of = [&](std::size_t row) {
    return reader.point_ids({table.chosen.rows[row], table.chosen.rows[row] + 1}).at(0);
  };
  answer.point = id_of(table.groups.front().front());
  answer.rows = {table.chosen.rows[table.groups.front().front()]};
  for (const FurtherColumn& column : table.chosen.further) {
    for (std::size_t row = 0; row < column.values.size(); ++row) {
      if (std::isnan(column.values[row])) continue;
      answer.executed = *reader.find(column.behind);
      answer.times.emplace(id_of(row), column.values[row]);
      answer.rows.push_back(table.chosen.rows[row]);
    }
  }
  if (const auto stored = stored_study(reader); stored && *answer.point < stored->space.size()) {
    const sweep::PointIndex point = stored->space.point(*answer.point);
    const Setting setting = stored->study.setting(point.setting);
    const auto& framework = launch::nearest_framework(setting.system.stack, setting.workload.phase);
    answer.framework = framework.name;
    answer.refused = joined(plan_launch(stored->study, setting, point.plan, framework).launch.refused, "; ");
  }
  return answer;
}

/// The study as the command that wrote the file names it, behind what it changes; the file's name alone where that
/// command names none.
std::vector<std::string> study_words(const ResultReader& reader, const std::string& name) {
  std::vector<std::string> words = {name};
  const std::string line = reader.attribute("command_line");
  if (line.ends_with("...")) return words;  // too long a line is cut where it is stored
  const std::vector<std::string> command = expand_lists(shell_words(line));
  for (std::size_t i = 1; i < command.size(); ++i) {
    if (command[i] == "--set" || command[i] == "--presets") {
      words.push_back(command[i]);
      if (++i < command.size()) words.push_back(command[i]);
    } else if (command[i] == "--mode" && i + 1 < command.size()) {  // of search
      words.insert(words.end(), {"--set", "mode=" + command[++i]});
    } else if (command[i].starts_with("--mode=")) {
      words.insert(words.end(), {"--set", command[i].substr(2)});
    } else if (command[i].starts_with("--set=") || command[i].starts_with("--presets=")) {
      words.push_back(command[i]);
    } else if (std::filesystem::path(command[i]).filename() == name) {
      words.front() = command[i];
    }
  }
  return words;
}

/// Shell words with which `simulate` gets a point of the stored study.
report::Commands simulate_commands(const ResultReader& reader) {
  report::Commands commands;
  const auto sources = reader.sources();
  if (!sources.empty()) commands.study = shell_line(study_words(reader, sources.front().name));
  const auto stored = stored_study(reader);
  if (!stored) return commands;
  const sweep::Study& study = stored->study;
  if (study.gpu_counts.size() > 1) return commands;  // plans differ from one number of GPUs to the next
  commands.plans = stored->space.plans();
  for (const sweep::HardwareAxis& axis : study.hardware) {
    std::vector<std::string>& options = commands.settings.emplace_back();
    for (const std::string& label : axis.labels)
      options.push_back(
          axis.labels.size() == 1 ? "" : shell_line({"--set", "hardware." + axis.path + "=" + label}));
  }
  std::vector<std::string>& loads = commands.settings.emplace_back();
  for (std::size_t i = 0; i < study.workloads.size(); ++i) loads.push_back(workload_options(study, i));
  return commands;
}

/// Sums of the fault samples; empty where the file has none.
report::FaultFigures fault_figures(const ResultReader& reader) {
  constexpr std::size_t kWorst = 20, kAll = std::numeric_limits<std::size_t>::max();
  report::FaultFigures figures;
  if (reader.samples().columns().empty() || reader.samples().row_count() == 0) return figures;
  const std::vector<double> shares = distribution_shares();
  report::Distribution all{"all plans", {}};
  for (const sweep::DistributionPoint& point : sweep::slowdown_distribution(reader, shares))
    all.points.emplace_back(point.share, point.slowdown);
  figures.distributions.push_back(std::move(all));
  const auto plans = sweep::rank_plans(reader);
  if (!plans.empty()) {
    const auto& expected = plans.front();
    const auto& healthy = *std::ranges::min_element(plans, {}, &sweep::PlanSensitivity::healthy_rank);
    figures.distributions.push_back(
        plan_distribution(reader, "fastest plan under faults", expected.point_id));
    if (healthy.point_id != expected.point_id)
      figures.distributions.push_back(
          plan_distribution(reader, "fastest plan without faults", healthy.point_id));
  }
  const auto ranked = sweep::rank_places(reader);
  figures.places = places(ranked, kWorst);
  figures.place_count = ranked.size();
  figures.dimensions = places(sweep::rank_dimensions(reader), kAll);
  return figures;
}

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
