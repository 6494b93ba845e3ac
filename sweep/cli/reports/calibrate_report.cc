// Prints a calibration: constants before and after, errors by file and stage, verdicts and ranking; the same as JSON,
// and as the header of fitted files.
#include "sweep/cli/reports/calibrate_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>

#include "sweep/cli/reports/report.h"
#include "sweep/cli/reports/validate_report.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/cli/terminal/text_table.h"

namespace shardscape::cli {

namespace {

using calibrate::Calibration;
using calibrate::Constant;
using calibrate::ConstantResult;
using calibrate::FileReport;
using nlohmann::ordered_json;
using Align = TextTable::Align;

/// A group of columns in the tables of errors, such as before or after.
struct Stage {
  std::string name, key;
  const validate::Evaluation* evaluation;
};

std::vector<Stage> stages(const FileReport& file) {
  std::vector<Stage> list = {{"before", "before", &file.before}, {"after", "after", &file.after}};
  if (file.cross_validated) list.push_back({"cross-validated", "cross_validated", &*file.cross_validated});
  if (file.held_out_before) list.push_back({"held out, before", "held_out_before", &*file.held_out_before});
  if (file.held_out_after) list.push_back({"held out, after", "held_out_after", &*file.held_out_after});
  return list;
}

std::string unit_of(const Constant& constant) {
  return constant.dimension ? std::string(yaml::row_of(*constant.dimension).unit) : "1";
}

Rows constant_rows(const Calibration& calibration) {
  const Json absent = Json::value_t::discarded;
  Rows rows({{left("constant"), "path"},
             Rows::hidden("unit"),
             {"before", "before"},
             {"after", "after"},
             {"std. error", "standard_error"},
             {left("identified"), "identified"},
             Rows::hidden("why"),
             Rows::hidden("low"),
             Rows::hidden("high")});
  for (const ConstantResult& found : calibration.constants) {
    const Constant& constant = *found.constant;
    const auto value = [&](double of) -> Cell { return {of == 0 ? "0" : format_value(constant, of), of}; };
    const auto& error = found.standard_error;
    rows.add({cell::words(constant.path),
              {"", unit_of(constant)},
              value(found.before),
              value(found.after),
              error ? Cell{format_percent(*error / found.after), *error} : Cell{"", absent},
              {found.identified ? "yes" : "no: " + found.why, found.identified},
              {"", found.identified ? absent : Json(found.why)},
              {"", constant.low},
              {"", constant.high}});
  }
  return rows;
}

void print_errors(std::ostream& out, const FileReport& file) {
  TextTable table({left("absolute error"), left(""), "measured", "mean", "median", "p90", "max", "bias"});
  const std::vector<Stage> list = stages(file);
  for (std::size_t m = 0; m < file.before.metrics.size(); ++m) {
    std::string name = file.before.metrics[m].name;
    for (const Stage& stage : list) {
      const validate::ErrorStatistics errors = validate::error_statistics(stage.evaluation->metrics[m].pairs);
      if (errors.n == 0) continue;
      std::vector<std::string> cells = error_texts(errors);
      cells.insert(cells.begin(), {std::exchange(name, ""), stage.name});
      table.add_row(std::move(cells));
    }
  }
  table.print(out, 2);
}

std::optional<double> statistic(const validate::Evaluation& evaluation, const std::string& path) {
  for (const validate::Statistic& one : validate::statistics(evaluation)) {
    if (one.path() == path) return one.value;
  }
  return std::nullopt;
}

/// Prints out-of-memory verdicts and ranking, if the table has them.
void print_judgements(std::ostream& out, const FileReport& file) {
  TextTable table({left(""), "OOM accuracy", "Spearman", "regret mean"});
  bool any = false;
  for (const Stage& stage : stages(file)) {
    const auto accuracy = statistic(*stage.evaluation, "oom.accuracy");
    const auto spearman = statistic(*stage.evaluation, "ranking.spearman");
    const auto regret = statistic(*stage.evaluation, "ranking.regret_mean");
    any = any || accuracy || spearman || regret;
    table.add_row({stage.name, accuracy ? format_percent(*accuracy) : "",
                   spearman ? format_fixed(*spearman, 3) : "", regret ? format_fixed(*regret, 3) : ""});
  }
  if (!any) return;
  out << '\n';
  table.print(out, 2);
}

std::string file_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

std::string metric_line(const FileReport& file, std::size_t metric) {
  std::string text = file.before.metrics[metric].name + ", mean and median error:";
  for (const Stage& stage : stages(file)) {
    const validate::ErrorStatistics errors =
        validate::error_statistics(stage.evaluation->metrics[metric].pairs);
    if (errors.n == 0) continue;
    text += fmt::format("{}{} {}, {} ({})", text.back() == ':' ? " " : "; ", stage.name,
                        format_percent(errors.mean), format_percent(errors.median), format_count(errors.n));
  }
  return text;
}

/// The errors of a metric before a fit where all are of one sign and the fit leaves much of them; else empty, as where
/// they are few or small.
std::string one_sided(const FileReport& file, std::size_t metric) {
  const validate::Evaluation& before = file.before;
  if (before.kind != validate::TableKind::plans) return "";
  constexpr std::size_t kFewest = 3;
  constexpr double kSmall = 0.02, kMuch = 0.5;
  double low = HUGE_VAL, high = -HUGE_VAL;
  const auto& pairs = before.metrics[metric].pairs;
  for (const auto& pair : pairs) {
    const double more = pair.measured / pair.predicted - 1;
    low = std::min(low, more), high = std::max(high, more);
  }
  if (pairs.size() < kFewest || (low < kSmall && high > -kSmall)) return "";
  // What constants of a stack explain is no sign of the device, whose slowness they follow only in part.
  const auto mean = [&](const validate::Evaluation& stage) {
    return validate::error_statistics(stage.metrics[metric].pairs).mean;
  };
  if (!(mean(file.after) > kMuch * mean(before))) return "";
  const bool above = low > 0;
  return fmt::format("{} to {} {}", format_percent(above ? low : -high), format_percent(above ? high : -low),
                     above ? "longer" : "shorter");
}

}  // namespace

void print_calibration(std::ostream& out, const Calibration& calibration) {
  constant_rows(calibration).print(out, 0);
  for (const calibrate::FitReport& fit : calibration.fits) {
    out << "\nfit of " << name_of(fit.sort) << ": " << counted(fit.measurements, "measurement")
        << ", objective " << format_fixed(fit.objective_before, 1) << " -> "
        << format_fixed(fit.objective_after, 1) << ", " << counted(fit.rounds, "round") << ", "
        << counted(fit.iterations, "iteration") << ", " << counted(fit.evaluations, "evaluation")
        << ", typical error " << format_percent(fit.typical_error) << (fit.converged ? "" : ", not converged")
        << '\n';
    if (!fit.few) continue;
    out << "  few measurements: constants keep within " << calibrate::kFewWidths
        << " widths of their priors (calibrate --list), and the worst error may not grow";
    if (fit.share < 1) out << ", so that they go " << format_percent(fit.share, 0) << " of the way";
    out << "; " << calibrate::kFewMeasurements << " and more say what is typical\n";
  }
  for (const FileReport& file : calibration.files) {
    out << '\n'
        << file.file << ": " << counted(file.rows, "row") << ", " << format_count(file.fitted_rows)
        << " in the fit\n";
    print_errors(out, file);
    print_judgements(out, file);
    const std::string all = calibration.after.device ? "" : one_sided(file, 0);
    if (!all.empty())
      out << "  every " << file.before.metrics.front().name << " was measured " << all
          << " than predicted, and the fit leaves more than half of that, which looks like the device: "
             "--device "
             "NAME fits its shares, too\n";
  }
}

ordered_json calibration_json(const Calibration& calibration) {
  ordered_json json;
  json["stack"] = calibration.after.stack.name;
  if (calibration.after.device) json["device"] = calibration.after.device->name;
  if (!calibration.constants.empty()) json["constants"] = constant_rows(calibration).json();
  for (const calibrate::FitReport& fit : calibration.fits) {
    ordered_json& entry = json["fits"].emplace_back();
    entry["of"] = name_of(fit.sort);
    entry["measurements"] = fit.measurements;
    entry["few"] = fit.few;
    if (fit.few) entry["share_of_the_way"] = fit.share;
    entry["objective_before"] = fit.objective_before;
    entry["objective_after"] = fit.objective_after;
    entry["typical_error"] = fit.typical_error;
    entry["rounds"] = fit.rounds;
    entry["iterations"] = fit.iterations;
    entry["evaluations"] = fit.evaluations;
    entry["converged"] = fit.converged;
  }
  for (const FileReport& file : calibration.files) {
    ordered_json& entry = json["files"].emplace_back();
    entry["path"] = file.file;
    entry["rows"] = file.rows;
    entry["fitted_rows"] = file.fitted_rows;
    for (const Stage& stage : stages(file))
      entry[stage.key] = statistics_json(*stage.evaluation, Undefined::left_out);
  }
  for (const validate::TableProblem& problem : calibration.left_out) {
    json["left_out"].push_back(to_string(problem));
  }
  return json;
}

std::vector<std::string> calibration_header(const Calibration& calibration, const std::string& command) {
  std::vector<std::string> lines = {command};
  for (const FileReport& file : calibration.files) {
    lines.push_back(file_name(file.file) + ": " + counted(file.rows, "row") + ", " +
                    format_count(file.fitted_rows) + " in the fit. Errors with the number of measurements:");
    for (std::size_t m = 0; m < file.before.metrics.size(); ++m) {
      if (!file.before.metrics[m].pairs.empty()) lines.push_back(metric_line(file, m));
    }
  }
  return lines;
}

void print_constants(std::ostream& out) {
  TextTable table({left("constant"), "unit", "low", "high", "width", left("prior"), left("fitted to"),
                   left("acts on"), left("range")});
  for (const Constant& constant : calibrate::constants()) {
    table.add_row({std::string(constant.path), unit_of(constant), format_value(constant, constant.low),
                   format_value(constant, constant.high), format_fixed(constant.width, 2),
                   constant.scale == FitScale::logarithmic ? "log-normal" : "normal",
                   std::string(name_of(constant.acts_on)), std::string(constant.effect),
                   std::string(constant.reason)});
  }
  table.print(out);
  out << "\nwidth: standard deviation of the prior around the profile's own value, of ln(value) where it is "
         "log-normal\n";
}

}  // namespace shardscape::cli
