// Prints an evaluation: errors by metric and part, verdicts, ranking, worst rows, groups and bars; as text and as JSON.
#include "sweep/cli/reports/validate_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "engine/base/safe_text.h"
#include "sweep/cli/reports/report.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/evidence/assess.h"

namespace shardscape::cli {

namespace {

using nlohmann::ordered_json;
using Align = TextTable::Align;
using validate::EvaluatedRow;
using validate::Evaluation;
using validate::Metric;
using validate::Pair;
using validate::Statistic;

struct Part {
  std::string name, key;
  Evaluation evaluation;
};

/// The parts of the rows: those that may be fitted, and those that are held out.
std::vector<Part> parts(const Evaluation& evaluation, const ValidateView& view) {
  if (!view.hold_out) return {};
  const auto held = [&](const EvaluatedRow& row) { return validate::is_held_out(row.id, *view.hold_out); };
  return {{", fitted part", "fitted", validate::subset(evaluation, std::not_fn(held))},
          {", held out", "held_out", validate::subset(evaluation, held)}};
}

std::string value_text(double value, const std::string& unit) {
  if (unit == "1/s") return format_rate(value) + " /s";
  return unit == "byte" ? format_bytes(value) : format_seconds(value);
}

void add_error_row(const Metric& metric, const std::string& part, TextTable& table) {
  const validate::ErrorStatistics errors = validate::error_statistics(metric.pairs);
  if (errors.n == 0) return;
  std::vector<std::string> cells = error_texts(errors);
  cells.insert(cells.begin(), metric.name + part);
  table.add_row(std::move(cells));
}

/// Asks for the unit of a column most of whose values are about a thousand times what is predicted, or a thousandth.
void print_other_unit(std::ostream& out, const Metric& metric) {
  if (metric.pairs.empty() || metric.unit != "s") return;
  std::vector<double> ratios;
  for (const Pair& pair : metric.pairs) ratios.push_back(pair.measured / pair.predicted);
  std::ranges::sort(ratios);
  const double ratio = validate::quantile(ratios, 0.5), thousand = ratio > 1 ? ratio / 1e3 : 1e-3 / ratio;
  if (!(thousand > 0.3 && thousand < 3)) return;
  out << "  " << metric.name << ": measured values are about "
      << (ratio > 1 ? "1,000 times" : "a thousandth of") << " the predicted ones; are they in "
      << (ratio > 1 ? "milliseconds" : "kiloseconds") << "? "
      << (metric.column.empty() ? "Columns are" : metric.column + " is") << " in seconds\n";
}

void print_errors(std::ostream& out, const Evaluation& all, const std::vector<Part>& parts) {
  TextTable table({left("absolute error"), "rows", "mean", "median", "p90", "max", "bias"});
  for (std::size_t i = 0; i < all.metrics.size(); ++i) {
    add_error_row(all.metrics[i], "", table);
    for (const Part& part : parts) add_error_row(part.evaluation.metrics[i], part.name, table);
  }
  if (!table.empty()) table.print(out, 2);
  for (const Metric& metric : all.metrics) print_other_unit(out, metric);
}

Rows groups(const Evaluation& evaluation, const std::vector<std::string>& keys) {
  std::vector<Rows::Column> columns;
  for (const std::string& key : keys) columns.push_back({left(key), key.c_str()});
  for (const Rows::Column& column : std::initializer_list<Rows::Column>{{left("absolute error"), "metric"},
                                                                        {"rows", "n"},
                                                                        {"mean", "mape"},
                                                                        {"median", "median"},
                                                                        {"p90", "p90"},
                                                                        {"max", "max"},
                                                                        {"bias", "bias"}})
    columns.push_back(column);
  Rows rows(std::move(columns));
  for (const validate::ErrorGroup& group : validate::error_groups(evaluation, keys)) {
    const auto metric = std::ranges::find(evaluation.metrics, group.metric, &Metric::key);
    const validate::ErrorStatistics& errors = group.errors;
    std::vector<Cell> cells;
    for (const std::string& part : group.key) cells.push_back(cell::words(part));
    cells.push_back({metric->name, group.metric});
    cells.push_back(cell::count(errors.n));
    for (const double error : {errors.mean, errors.median, errors.p90, errors.max})
      cells.push_back(cell::share(error));
    cells.push_back({format_signed_percent(errors.bias), errors.bias});
    rows.add(std::move(cells));
  }
  return rows;
}

void print_groups(std::ostream& out, const Evaluation& evaluation, const std::vector<std::string>& keys) {
  const Rows rows = groups(evaluation, keys);
  if (rows.size() == 0) return;
  out << '\n';
  rows.print(out, 2);
}

/// Prints how many rows have no prediction, by reason.
void print_unpredicted(std::ostream& out, const Evaluation& evaluation) {
  if (evaluation.unpredicted.empty()) return;
  std::map<std::string, std::size_t> counts;
  for (const validate::UnpredictedRow& row : evaluation.unpredicted) ++counts[row.reason];
  const std::size_t rows = evaluation.unpredicted.size();
  out << "  not predicted: " << counted(rows, "row") << ", neither right nor wrong\n";
  for (const auto& [reason, n] : counts) out << "    " << format_count(n) << ": " << echo(reason) << '\n';
}

std::optional<double> value_of(std::span<const Statistic> statistics, const std::string& path) {
  const auto found = std::ranges::find(statistics, path, &Statistic::path);
  return found == statistics.end() ? std::nullopt : found->value;
}

void print_row_verdicts(std::ostream& out, const Evaluation& evaluation, const std::string& part) {
  const std::vector<Statistic> all = validate::statistics(evaluation);
  const auto share = [&](const char* path) {
    const std::optional<double> value = value_of(all, path);
    return value ? format_percent(*value) : std::string("undefined");
  };
  const auto number = [&](const char* path) {
    const std::optional<double> value = value_of(all, path);
    return value ? format_fixed(*value, 3) : std::string("undefined");
  };
  const auto rows = static_cast<std::uint64_t>(value_of(all, "oom.n").value_or(0));
  if (rows > 0) {
    out << "  out of memory" << part << ": " << share("oom.accuracy") << " of " << format_count(rows)
        << " rows right, precision " << share("oom.precision") << ", recall " << share("oom.recall") << '\n';
  }
  const auto groups = static_cast<std::uint64_t>(value_of(all, "ranking.groups").value_or(0));
  if (groups > 0) {
    out << "  ranking" << part << ": " << counted(groups, "group") << " of "
        << validate::RankingStatistics::kSmallestGroup << " rows and more, Spearman "
        << number("ranking.spearman") << ", regret mean " << number("ranking.regret_mean") << ", max "
        << number("ranking.regret_max") << '\n';
  }
}

/// Of a normal distribution 68 % of rows are within one sigma and 5 % beyond two.
void print_promises(std::ostream& out, const KeptPromises& kept) {
  if (kept.rows == 0) return;
  out << fmt::format("  expected error: {} of {} within it (68 % should be), {} beyond twice that (5 %)",
                     format_count(kept.within), counted(kept.rows, "row"), format_count(kept.beyond));
  if (kept.slower + kept.faster > 0)
    out << fmt::format("; of those not within {} measured slower, {} faster", format_count(kept.slower),
                       format_count(kept.faster));
  out << '\n';
}

void print_pairs(std::ostream& out, const ValidatedFile& file, const Metric& metric,
                 const ValidateView& view) {
  std::vector<Pair> pairs = metric.pairs;
  if (!view.rows) {
    std::ranges::stable_sort(pairs, std::greater{}, [](const Pair& pair) { return std::abs(pair.error()); });
    pairs.resize(std::min(pairs.size(), view.worst));
  }
  if (pairs.empty()) return;
  out << '\n' << "  " << metric.name << (view.rows ? ", all rows" : ", worst rows") << '\n';
  TextTable table({"line", left("id"), "measured", "predicted", "error", left("what")});
  for (const Pair& pair : pairs) {
    const EvaluatedRow& row = file.evaluation.rows[pair.row];
    table.add_row({std::to_string(row.line), row.id, value_text(pair.measured, metric.unit),
                   value_text(pair.predicted, metric.unit), format_signed_percent(pair.error()), row.what});
  }
  table.print(out, 4);
}

void print_misjudged(std::ostream& out, const ValidatedFile& file, const ValidateView& view) {
  std::vector<const EvaluatedRow*> wrong;
  for (const EvaluatedRow& row : file.evaluation.rows) {
    if (row.measured_oom && row.predicted_oom && *row.measured_oom != *row.predicted_oom)
      wrong.push_back(&row);
  }
  const std::size_t shown = view.rows ? wrong.size() : std::min(wrong.size(), view.worst);
  if (shown == 0) return;
  out << '\n' << "  out of memory, misjudged rows (" << shown << " of " << wrong.size() << ")\n";
  TextTable table({"line", left("id"), left("measured"), left("predicted"), left("what")});
  const auto word = [](bool oom) { return oom ? "out of memory" : "fits"; };
  for (std::size_t i = 0; i < shown; ++i) {
    const EvaluatedRow& row = *wrong[i];
    table.add_row(
        {std::to_string(row.line), row.id, word(*row.measured_oom), word(*row.predicted_oom), row.what});
  }
  table.print(out, 4);
}

bool is_share(const std::string& statistic) { return !statistic.starts_with("ranking."); }

std::string limit_text(const std::string& statistic, double value) {
  return is_share(statistic) ? format_percent(value) : format_fixed(value, 3);
}

void print_bars(std::ostream& out, const ValidatedFile& file) {
  const std::vector<validate::BarResult> results = bar_results(file);
  if (results.empty()) return;
  out << '\n';
  TextTable table({left("check"), "value", "bar", left("")});
  for (const validate::BarResult& result : results) {
    const std::string sign = validate::is_lower_bound(result.bar) ? ">= " : "<= ";
    table.add_row({result.bar.statistic, limit_text(result.bar.statistic, result.value),
                   sign + limit_text(result.bar.statistic, result.bar.limit),
                   result.held ? "held" : "MISSED"});
  }
  table.print(out, 2);
}

void print_file(std::ostream& out, const ValidatedFile& file, const ValidateView& view) {
  const Evaluation& evaluation = file.evaluation;
  const std::size_t rows = evaluation.rows.size();
  out << file.path << ": " << counted(rows, "row") << " of " << name_of(evaluation.kind) << " predicted\n";
  if (!file.title.empty()) out << "  " << echo(file.title) << '\n';
  if (!file.source.empty()) out << "  " << file.source << '\n';
  const std::vector<Part> split = parts(evaluation, view);
  print_unpredicted(out, evaluation);
  print_errors(out, evaluation, split);
  print_promises(out, file.promises);
  for (const std::vector<std::string>& keys : view.by) print_groups(out, evaluation, keys);
  print_row_verdicts(out, evaluation, "");
  for (const Part& part : split) print_row_verdicts(out, part.evaluation, part.name);
  for (const Metric& metric : evaluation.metrics) print_pairs(out, file, metric, view);
  print_misjudged(out, file, view);
  if (view.check) print_bars(out, file);
}

ordered_json rows_json(const Evaluation& evaluation) {
  ordered_json rows = ordered_json::array();
  for (const EvaluatedRow& row : evaluation.rows) {
    ordered_json& json =
        rows.emplace_back(ordered_json{{"id", row.id}, {"line", row.line}, {"what", row.what}});
    if (row.measured_oom) json["oom"] = {{"measured", *row.measured_oom}, {"predicted", *row.predicted_oom}};
  }
  for (const Metric& metric : evaluation.metrics) {
    for (const Pair& pair : metric.pairs) {
      rows[pair.row][metric.key] = {
          {"measured", pair.measured}, {"predicted", pair.predicted}, {"error", pair.error()}};
    }
  }
  return rows;
}

ordered_json bars_json(const ValidatedFile& file) {
  ordered_json bars = ordered_json::array();
  for (const validate::BarResult& result : bar_results(file)) {
    bars.push_back({{"statistic", result.bar.statistic},
                    {"value", result.value},
                    {validate::is_lower_bound(result.bar) ? "at_least" : "at_most", result.bar.limit},
                    {"held", result.held}});
  }
  return bars;
}

ordered_json file_json(const ValidatedFile& file, const ValidateView& view) {
  ordered_json json = {{"path", file.path}, {"kind", name_of(file.evaluation.kind)}};
  if (!file.title.empty()) json["title"] = file.title;
  if (!file.source.empty()) json["source"] = file.source;
  json["rows"] = file.evaluation.rows.size();
  json["not_predicted"] = file.evaluation.unpredicted.size();
  json.update(statistics_json(file.evaluation, Undefined::as_null));
  for (const Part& part : parts(file.evaluation, view)) {
    json["parts"][part.key] = statistics_json(part.evaluation, Undefined::as_null);
    json["parts"][part.key]["rows"] = part.evaluation.rows.size();
  }
  if (!view.by.empty()) json["groups"] = ordered_json::array();
  for (const std::vector<std::string>& keys : view.by)
    for (const ordered_json& group : groups(file.evaluation, keys).json()) json["groups"].push_back(group);
  if (view.rows) json["row_list"] = rows_json(file.evaluation);
  if (const KeptPromises& kept = file.promises; kept.rows > 0)
    json["expected_error"] = {{"rows", kept.rows},
                              {"within", kept.within},
                              {"beyond_twice", kept.beyond},
                              {"measured_slower", kept.slower},
                              {"measured_faster", kept.faster}};
  if (view.check) json["checks"] = bars_json(file);
  ordered_json problems = ordered_json::array();
  for (const validate::TableProblem& problem : file.evaluation.problems) {
    problems.push_back({{"line", problem.line}, {"column", problem.column}, {"message", problem.message}});
  }
  json["problems"] = problems;
  return json;
}

}  // namespace

KeptPromises kept_promises(const Evaluation& evaluation, const evidence::Table& evidence) {
  KeptPromises kept;
  for (const evidence::Residual& row : validate::residuals(evaluation)) {
    const evidence::Finding finding = evidence::assess(&evidence, row.regime);
    const double sigma = finding.assessment.expected_error;
    const bool measured = evidence::most_of(finding.most, row.degrees) == finding.most;
    if (!(sigma > 0) || !measured) continue;  // nothing is known of such plans
    ++kept.rows;
    const double off = std::abs(row.error);
    if (off <= sigma) {
      ++kept.within;
      continue;
    }
    kept.beyond += off > 2 * sigma ? 1 : 0;
    ++(row.error < 0 ? kept.slower : kept.faster);
  }
  return kept;
}

ordered_json statistics_json(const Evaluation& evaluation, Undefined undefined) {
  const bool nulls = undefined == Undefined::as_null;
  ordered_json json = nulls ? ordered_json::object() : ordered_json();
  for (const Statistic& statistic : validate::statistics(evaluation)) {
    if (!statistic.value && !nulls) continue;
    ordered_json& place = json[statistic.section][statistic.name];
    if (statistic.value && statistic.count) {
      place = static_cast<std::uint64_t>(*statistic.value);
    } else if (statistic.value) {
      place = *statistic.value;
    }
  }
  return json;
}

std::vector<std::string> error_texts(const validate::ErrorStatistics& errors) {
  return {format_count(errors.n),     format_percent(errors.mean), format_percent(errors.median),
          format_percent(errors.p90), format_percent(errors.max),  format_signed_percent(errors.bias)};
}

std::vector<validate::BarResult> bar_results(const ValidatedFile& file) {
  return validate::check_bars(file.bars, validate::statistics(file.evaluation));
}

void print_validation(std::ostream& out, std::span<const ValidatedFile> files, const ValidateView& view) {
  bool first = true;
  for (const ValidatedFile& file : files) {
    if (!std::exchange(first, false)) out << '\n';
    print_file(out, file, view);
  }
}

ordered_json validation_json(std::span<const ValidatedFile> files, const ValidateView& view) {
  ordered_json list = ordered_json::array();
  for (const ValidatedFile& file : files) list.push_back(file_json(file, view));
  return {{"files", list}};
}

}  // namespace shardscape::cli
