// Evaluates a table by its kind, takes subsets of evaluations, names the parts of regimes, and computes the statistics
// of every kind.
#include "sweep/validate/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "engine/base/enum_names.h"
#include "engine/base/safe_text.h"
#include "engine/base/suggest.h"
#include "engine/base/words.h"
#include "sweep/validate/run_labels.h"
#include "sweep/validate/table_evaluators.h"
#include "sweep/yaml/number.h"

namespace shardscape::validate {

namespace {

void sort_by_line(std::vector<TableProblem>& problems) {
  std::ranges::stable_sort(problems, {}, &TableProblem::line);
}

/// The lines of all rows, and of lines that could not be read as rows.
std::vector<TableLine> lines_of(const Table& table) {
  std::map<int, std::string> ids;
  for (const TableProblem& problem : table.problems) {
    if (problem.line > 1) ids.emplace(problem.line, "");
  }
  const auto id = table.column("id");
  for (const TableRow& row : table.rows) ids[row.line] = id ? row.cells[*id] : "";
  std::vector<TableLine> lines;
  for (const auto& [line, text] : ids) lines.push_back({line, text});
  return lines;
}

struct RegimeKey {
  std::string_view name;
  std::string (*get)(const Regime&);
};
constexpr RegimeKey kRegimeKeys[] = {
    {"device", [](const Regime& r) { return r.device; }},
    {"precision", [](const Regime& r) { return r.precision; }},
    {"phase", [](const Regime& r) { return r.phase; }},
    {"model", [](const Regime& r) { return r.model; }},
    {"model_kind", [](const Regime& r) { return r.model_kind; }},
    {"stack", [](const Regime& r) { return r.stack; }},
    {"software", [](const Regime& r) { return r.software; }},
    {"operation", [](const Regime& r) { return r.operation; }},
    {"label", [](const Regime& r) { return r.label; }},
    {"load", [](const Regime& r) { return r.load; }},
    {"servers", [](const Regime& r) { return r.servers; }},
    {"gpus", [](const Regime& r) { return r.gpus > 0 ? std::to_string(r.gpus) : std::string(); }},
};

void add_errors(const Metric& metric, std::vector<Statistic>& list) {
  const ErrorStatistics errors = error_statistics(metric.pairs);
  const auto add = [&](const char* name, double value) {
    list.push_back({metric.key, name, errors.n > 0 ? std::optional(value) : std::nullopt});
  };
  list.push_back({metric.key, "n", static_cast<double>(errors.n), true});
  add("mape", errors.mean);
  add("median", errors.median);
  add("p90", errors.p90);
  add("max", errors.max);
  add("bias", errors.bias);
}

void add_oom(const Evaluation& evaluation, std::vector<Statistic>& list) {
  OomStatistics oom;
  for (const EvaluatedRow& row : evaluation.rows) {
    if (row.measured_oom && row.predicted_oom) oom.add(*row.measured_oom, *row.predicted_oom);
  }
  list.push_back({"oom", "n", static_cast<double>(oom.n()), true});
  list.push_back({"oom", "accuracy", oom.accuracy()});
  list.push_back({"oom", "precision", oom.precision()});
  list.push_back({"oom", "recall", oom.recall()});
}

void add_ranking(const Evaluation& evaluation, std::vector<Statistic>& list) {
  std::vector<int> groups;
  for (const EvaluatedRow& row : evaluation.rows) groups.push_back(row.group);
  const auto step_time = std::ranges::find(evaluation.metrics, "step_time", &Metric::key);
  const RankingStatistics ranking = ranking_statistics(step_time->pairs, groups);
  list.push_back({"ranking", "groups", static_cast<double>(ranking.groups), true});
  list.push_back({"ranking", "spearman", ranking.spearman});
  list.push_back({"ranking", "regret_mean", ranking.regret_mean});
  list.push_back({"ranking", "regret_max", ranking.regret_max});
}

constexpr std::array kMetrics = {"step_time",     "memory",    "ttft",       "ttft_alone", "itl",
                                 "e2e",           "time",      "time_long",  "time_10us",  "time_20us",
                                 "time_row_tile", "time_node", "time_large", "time_small"};
constexpr std::array kErrors = {"mape", "median", "p90", "max"};
constexpr std::array kLowerBounds = {"oom.accuracy", "oom.precision", "oom.recall", "ranking.spearman"};
constexpr std::array kRegrets = {"ranking.regret_mean", "ranking.regret_max"};

/// By line, why nothing is predicted for it. Problems take precedence, since they can be mended.
std::map<int, std::string> reasons(const Evaluation& evaluation) {
  std::map<int, std::string> by_line;
  for (const TableProblem& problem : evaluation.problems) {
    std::string& text = by_line[problem.line];
    if (!text.empty()) text += "; ";
    if (!problem.column.empty()) text += problem.column + ": ";
    text += problem.message;
  }
  for (const UnpredictedRow& row : evaluation.unpredicted) by_line.emplace(row.line, row.reason);
  return by_line;
}

class Writer {
 public:
  explicit Writer(std::span<const NamedEvaluation> evaluations) : several_(evaluations.size() > 1) {
    for (const NamedEvaluation& named : evaluations) {
      for (const std::string& column : named.evaluation->prediction_columns) {
        if (std::ranges::find(columns_, column) == columns_.end()) columns_.push_back(column);
      }
    }
    text_ = several_ ? "file,line,id" : "line,id";
    for (const std::string& column : columns_) text_ += ',' + column;
    text_ += ",reason\n";
  }

  void add(const NamedEvaluation& named) {
    const Evaluation& evaluation = *named.evaluation;
    const std::map<int, std::string> why = reasons(evaluation);
    std::map<int, std::size_t> rows;
    for (std::size_t i = 0; i < evaluation.rows.size(); ++i) rows.emplace(evaluation.rows[i].line, i);
    for (const TableLine& line : evaluation.lines) {
      if (several_) text_ += csv_cell(named.file) + ',';
      text_ += fmt::format("{},{}", line.line, csv_cell(line.id));
      const auto row = rows.find(line.line);
      const auto reason = why.find(line.line);
      for (const std::string& column : columns_) {
        text_ += ',';
        if (row != rows.end()) text_ += value(evaluation, row->second, column);
      }
      text_ += ',';
      if (row == rows.end() && reason != why.end()) text_ += csv_cell(reason->second);
      text_ += '\n';
    }
  }

  std::string take() { return std::move(text_); }

 private:
  static std::string value(const Evaluation& evaluation, std::size_t row, const std::string& column) {
    const std::vector<std::string>& own = evaluation.prediction_columns;
    const auto found = std::ranges::find(own, column);
    return found == own.end() ? ""
                              : evaluation.predictions[row][static_cast<std::size_t>(found - own.begin())];
  }

  bool several_;
  std::vector<std::string> columns_;
  std::string text_;
};

}  // namespace

std::span<const std::string_view> regime_keys() {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> names;
    for (const RegimeKey& key : kRegimeKeys) names.push_back(key.name);
    return names;
  }();
  return kNames;
}

std::string regime_part(const Regime& regime, std::string_view key) {
  const auto found = std::ranges::find(kRegimeKeys, key, &RegimeKey::name);
  const std::string text = found == std::end(kRegimeKeys) ? "" : found->get(regime);
  return text.empty() ? "-" : text;
}

Evaluation evaluate(const Table& table, Presets& presets, const EvaluateOptions& options) {
  Evaluation out;
  out.problems = table.problems;
  out.lines = lines_of(table);
  if (table.columns.empty()) return out;
  const std::optional<TableKind> kind = recognise(table.columns);
  if (!kind) {
    out.problems.push_back({table.file, 1, "",
                            "the header is that of no measurement table (plans, kernels, collectives); "
                            "'shardscape help tables' lists their columns"});
    return out;
  }
  out.kind = *kind;
  if (table.rows.empty() && table.problems.empty()) {
    out.problems.push_back({table.file, 1, "", "names the columns, but no row follows"});
  }
  for (TableProblem& problem : check_header(table, *kind)) out.problems.push_back(std::move(problem));
  switch (*kind) {
    case TableKind::plans:
      evaluate_plans(table, presets, options, out);
      break;
    case TableKind::open_loop:
      evaluate_open_loop(table, presets, options, out);
      break;
    default:
      evaluate_benchmarks(table, presets, options, out);
  }
  sort_by_line(out.problems);
  std::ranges::stable_sort(out.unpredicted, {}, &UnpredictedRow::line);
  return out;
}

Evaluation subset(const Evaluation& evaluation, const std::function<bool(const EvaluatedRow&)>& keep) {
  Evaluation part;
  part.kind = evaluation.kind;
  part.prediction_columns = evaluation.prediction_columns;
  part.problems = evaluation.problems;
  part.lines = evaluation.lines;
  part.unpredicted = evaluation.unpredicted;
  constexpr std::size_t kDropped = static_cast<std::size_t>(-1);
  std::vector<std::size_t> place(evaluation.rows.size(), kDropped);
  for (std::size_t i = 0; i < evaluation.rows.size(); ++i) {
    if (!keep(evaluation.rows[i])) continue;
    place[i] = part.rows.size();
    part.rows.push_back(evaluation.rows[i]);
    part.predictions.push_back(evaluation.predictions[i]);
  }
  for (const Metric& metric : evaluation.metrics) {
    Metric& kept = part.metrics.emplace_back(Metric{metric.key, metric.name, metric.unit, {}, metric.column});
    for (const Pair& pair : metric.pairs) {
      if (place[pair.row] != kDropped) kept.pairs.push_back({place[pair.row], pair.measured, pair.predicted});
    }
  }
  return part;
}

std::vector<Statistic> statistics(const Evaluation& evaluation) {
  std::vector<Statistic> list;
  for (const Metric& metric : evaluation.metrics) add_errors(metric, list);
  if (evaluation.kind == TableKind::plans && !evaluation.metrics.empty()) {
    add_oom(evaluation, list);
    add_ranking(evaluation, list);
  }
  return list;
}

std::string cell(std::optional<double> value) { return value ? yaml::format_number(*value) : std::string(); }

std::string row_id(const RowReader& reader, const Table& table, const TableRow& row) {
  if (auto id = reader.text("id")) return *std::move(id);
  return std::to_string(&row - table.rows.data() + 1);
}

bool is_lower_bound(const Bar& bar) {
  return std::ranges::find(kLowerBounds, bar.statistic) != kLowerBounds.end();
}

std::vector<Bar> default_bars(TableKind kind) {
  switch (kind) {
    case TableKind::plans:
      return {{"step_time.mape", 0.12},   {"memory.mape", 0.10},        {"ttft_alone.mape", 0.15},
              {"itl.mape", 0.08},         {"e2e.mape", 0.06},           {"oom.accuracy", 0.975},
              {"ranking.spearman", 0.90}, {"ranking.regret_mean", 1.03}};
    case TableKind::gemm:
      return {{"time_long.mape", 0.02}, {"time_row_tile.mape", 0.10}};
    case TableKind::collectives:
      return {{"time_node.median", 0.15}};
    default:
      break;
  }
  return {};
}

std::vector<std::string> bar_statistics() {
  std::vector<std::string> names;
  for (const char* metric : kMetrics) {
    for (const char* error : kErrors) names.push_back(fmt::format("{}.{}", metric, error));
  }
  names.insert(names.end(), kLowerBounds.begin(), kLowerBounds.end());
  names.insert(names.end(), kRegrets.begin(), kRegrets.end());
  return names;
}

tl::expected<double, std::string> parse_share(std::string_view text) {
  double unit = 1;
  if (text.ends_with('%')) {
    unit = 0.01;
    text.remove_suffix(1);
    while (text.ends_with(' ')) text.remove_suffix(1);
  }
  const std::optional<double> value = yaml::parse_finite(text);
  if (value && *value >= 0) return *value * unit;
  return tl::unexpected(fmt::format("'{}' is no share; write 5% or 0.05", text));
}

tl::expected<Bar, std::string> parse_bar(std::string_view text) {
  const std::size_t sign = text.find('=');
  if (sign == std::string_view::npos) {
    return tl::unexpected(std::string("write it as STATISTIC=VALUE, such as step_time.mape=5%"));
  }
  const std::string name(text.substr(0, sign));
  const std::vector<std::string> known = bar_statistics();
  if (std::ranges::find(known, name) == known.end()) {
    return tl::unexpected(fmt::format("unknown statistic '{}'{}; METRIC.mape|median|p90|max of {}, {}, {}",
                                      name, did_you_mean(name, known), join_names(kMetrics),
                                      join_names(kLowerBounds), join_names(kRegrets)));
  }
  const auto limit = parse_share(text.substr(sign + 1));
  if (!limit) return tl::unexpected(limit.error());
  return Bar{name, *limit};
}

std::vector<BarResult> check_bars(std::span<const Bar> bars, std::span<const Statistic> statistics) {
  std::vector<BarResult> results;
  for (const Bar& bar : bars) {
    const auto found = std::ranges::find(statistics, bar.statistic, &Statistic::path);
    if (found == statistics.end() || !found->value) continue;
    const double value = *found->value;
    results.push_back({bar, value, is_lower_bound(bar) ? value >= bar.limit : value <= bar.limit});
  }
  return results;
}

tl::expected<std::vector<std::string>, std::string> parse_regime_keys(std::string_view text) {
  std::vector<std::string> keys;
  const std::span<const std::string_view> known = regime_keys();
  for (const std::string_view part : split(text, ',')) {
    const std::string key(part);
    if (std::ranges::find(known, key) == known.end())
      return tl::unexpected("'" + key + "' is no part of a regime" + did_you_mean(key, known) + "; one of " +
                            join_names(known));
    if (std::ranges::find(keys, key) != keys.end()) return tl::unexpected("'" + key + "' is given twice");
    keys.push_back(key);
  }
  return keys;
}

std::vector<ErrorGroup> error_groups(const Evaluation& evaluation, const std::vector<std::string>& keys) {
  std::vector<ErrorGroup> groups;
  for (const Metric& metric : evaluation.metrics) {
    std::map<std::vector<std::string>, std::vector<Pair>> pairs;
    for (const Pair& pair : metric.pairs) {
      std::vector<std::string> key;
      for (const std::string& name : keys) key.push_back(regime_part(evaluation.rows[pair.row].regime, name));
      pairs[std::move(key)].push_back(pair);
    }
    for (const auto& [key, list] : pairs) groups.push_back({key, metric.key, error_statistics(list)});
  }
  return groups;
}

std::vector<evidence::Residual> residuals(const Evaluation& evaluation) {
  std::vector<evidence::Residual> list;
  if (evaluation.kind != TableKind::plans) return list;
  std::set<std::size_t> taken;
  for (const char* key : {"step_time", "itl", "e2e"}) {
    const auto metric = std::ranges::find(evaluation.metrics, key, &Metric::key);
    if (metric == evaluation.metrics.end()) continue;
    for (const Pair& pair : metric->pairs) {
      const EvaluatedRow& row = evaluation.rows[pair.row];
      const auto phase = parse_enum<Phase>(row.regime.phase);
      const auto precision = parse_enum<PolicyName>(row.regime.precision);
      // What a run of another server may have taken says nothing of predictions.
      const bool doubtful = row.regime.label == name_of(RunLabel::two_recipes);
      if (!phase || !precision || doubtful || !taken.insert(pair.row).second) continue;
      evidence::Residual& residual = list.emplace_back();
      residual.regime = {
          *phase,           row.regime.device, evidence::own_name(*precision), row.regime.model_kind,
          row.regime.stack, row.regime.gpus};
      residual.plan = row.kin;
      residual.degrees = row.degrees;
      residual.error = pair.error();
    }
  }
  return list;
}

std::string predictions_csv(std::span<const NamedEvaluation> evaluations) {
  Writer writer(evaluations);
  for (const NamedEvaluation& named : evaluations) writer.add(named);
  return writer.take();
}

tl::expected<HoldOut, std::string> parse_hold_out(std::string_view text) {
  constexpr std::int64_t kMostClasses = 1000;
  const std::size_t slash = text.find('/');
  if (slash != std::string_view::npos) {
    const auto of = yaml::parse_integer(text.substr(slash + 1), 2, kMostClasses);
    const auto parts = yaml::parse_integer(text.substr(0, slash), 1, of.value_or(2) - 1);
    if (parts && of) return HoldOut{static_cast<std::uint64_t>(*parts), static_cast<std::uint64_t>(*of)};
  }
  return tl::unexpected(
      fmt::format("'{}' is no share of the rows; write it as N/M with 0 < N < M, such as 1/3", text));
}

std::uint64_t id_hash(std::string_view id) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;  // FNV's offset basis; its prime is below
  for (const char c : id) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return hash;
}

bool is_held_out(std::string_view id, HoldOut share) { return id_hash(id) % share.of < share.parts; }

}  // namespace shardscape::validate
