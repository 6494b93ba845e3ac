// Selects rows of tables by conditions, groups them so that each group shares a simulator, and computes their residuals under many
// candidates in parallel.
#include "sweep/calibrate/dataset.h"

#include <fmt/format.h>
#include <tbb/blocked_range.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/suggest.h"
#include "sweep/space/expression.h"
#include "sweep/validate/predict_plans.h"
#include "sweep/validate/row_reader.h"
#include "sweep/validate/run_labels.h"
#include "sweep/validate/served_columns.h"
#include "sweep/yaml/number.h"

namespace shardscape::calibrate {

namespace {

/// Rows per block, for tables that are not of plans.
constexpr std::size_t kBlock = 32;

std::string stacks_there(const validate::Table& table, std::size_t column) {
  std::map<std::string, std::size_t> counts;
  for (const validate::TableRow& row : table.rows) ++counts[row.cells[column]];
  std::vector<std::string> names;
  for (const auto& [name, count] : counts) {
    names.push_back(fmt::format("{} ({} rows)", name.empty() ? "(blank)" : name, count));
  }
  return names.empty() ? "the table has no rows" : "there are " + join_names(names);
}

/// The number of the column `name`, which is appended with empty cells where it does not exist.
std::size_t column_of(validate::Table& table, const std::string& name) {
  if (const auto found = table.column(name)) return *found;
  table.columns.push_back(name);
  for (validate::TableRow& row : table.rows) row.cells.emplace_back();
  return table.columns.size() - 1;
}

void fill_ids(validate::Table& table, const std::string& prefix) {
  const std::size_t id = column_of(table, "id");
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    std::string& cell = table.rows[i].cells[id];
    if (cell.empty()) cell = prefix + std::to_string(i + 1);
  }
}

/// Keeps the rows whose cell begins with one of the words; if none is left, reports which cells there are.
void keep_rows(validate::Table& table, std::size_t column, const std::vector<std::string>& words) {
  const std::string before = stacks_there(table, column);
  std::erase_if(table.rows, [&](const validate::TableRow& row) {
    const std::string& cell = row.cells[column];
    return std::ranges::none_of(
        words, [&](const std::string& word) { return cell == word || cell.starts_with(word + ' '); });
  });
  if (table.rows.empty())
    table.problems.push_back(
        {table.file, 0, table.columns[column], "no row has " + join_names(words) + "; " + before});
}

/// Selects rows of a public table.
void select_public(validate::Table& table, const RowSelection& selection) {
  if (const auto device = table.column("device"); device && !selection.devices.empty())
    keep_rows(table, *device, selection.devices);
  const auto software = table.column("software");
  if (!software) return;
  if (!selection.all && !table.rows.empty()) keep_rows(table, *software, selection.software);
  if (const auto source = table.column("source"); source && !selection.all && !selection.sources.empty())
    keep_rows(table, *source, selection.sources);
  for (validate::TableRow& row : table.rows) {  // the release tells how some servers are set up
    std::string& cell = row.cells[*software];
    cell = kFittedStack + (cell.find(' ') == std::string::npos ? "" : cell.substr(cell.find(' ')));
  }
}

double log_ratio(double predicted, double measured) {
  constexpr double kTiny = 1e-30;  // keeps the logarithm finite
  return std::log(std::max(predicted, kTiny) / measured);
}

constexpr double kBlank = std::numeric_limits<double>::quiet_NaN();

sweep::ExpressionName name_of_column(const validate::Table& table, std::size_t column) {
  std::set<std::string> texts;
  bool numbers = true;
  for (const validate::TableRow& row : table.rows) {
    const std::string& cell = row.cells[column];
    if (cell.empty()) continue;
    numbers = numbers && yaml::parse_number(cell).has_value();
    texts.insert(cell);
  }
  const std::string& name = table.columns[column];
  const bool rate = name.find("rate") != std::string::npos || name.find("per_s") != std::string::npos;
  if (numbers) return {name, sweep::NameKind::number, {}, rate};
  return {name, sweep::NameKind::choice, {texts.begin(), texts.end()}};
}

/// The table with a column of the releases that its rows state, unless it has a column of that name.
validate::Table with_release(const validate::Table& table) {
  validate::Table result = table;
  const auto software = table.column("software"), source = table.column("source");
  if (table.column("release") || !software) return result;
  result.columns.emplace_back("release");
  for (validate::TableRow& row : result.rows) {
    const std::string from = source ? row.cells[*source] : std::string();
    const std::optional<double> release = validate::stated_release(row.cells[*software], from);
    row.cells.push_back(release ? fmt::format("{}", *release) : "");
  }
  return result;
}

double value_of(const sweep::ExpressionName& name, const std::string& cell) {
  if (cell.empty()) return kBlank;
  if (name.kind == sweep::NameKind::number) return *yaml::parse_number(cell);
  return static_cast<double>(std::ranges::lower_bound(name.choices, cell) - name.choices.begin());
}

}  // namespace

validate::Table select_rows(const validate::Table& table, validate::TableKind kind,
                            const RowSelection& selection) {
  validate::Table result = table;
  const bool own = kind == validate::TableKind::plans || kind == validate::TableKind::gemm ||
                   kind == validate::TableKind::collectives;
  if (kind != validate::TableKind::plans) fill_ids(result, own ? "" : fmt::format("{} ", name_of(kind)));
  if (!own || result.column("software")) {
    select_public(result, selection);
    return result;
  }
  const bool collectives = kind == validate::TableKind::collectives;
  if (!result.column("stack") && (!collectives || result.rows.empty())) return result;
  const std::size_t column = column_of(result, "stack");
  const std::string before = stacks_there(result, column);
  std::erase_if(result.rows, [&](const validate::TableRow& row) {
    const std::string& stack = row.cells[column];
    const bool open = stack.empty() && collectives;
    return !selection.all && !open && std::ranges::find(selection.stacks, stack) == selection.stacks.end();
  });
  if (result.rows.empty()) {
    result.problems.push_back(
        {table.file, 0, "stack",
         "no row has " + join_names(selection.stacks) + "; " + before +
             ". --rows-of takes the rows of another stack, --all those of every stack"});
  }
  for (validate::TableRow& row : result.rows) row.cells[column] = kFittedStack;
  return result;
}

void install(validate::Presets& presets, const Candidate& candidate) {
  presets.replace_stack(kFittedStack, candidate.stack);
  if (candidate.device) presets.replace_device(*candidate.device);
}

Dataset::Dataset(const std::vector<SourceTable>& tables, FitActsOn sort, const validate::Presets& presets,
                 const std::function<bool(const std::string& id)>& keep)
    : presets_(presets) {
  for (const SourceTable& source : tables) {
    if (source.kind == validate::TableKind::plans) {
      add_plans(source, sort, keep);
    } else if (sort == FitActsOn::time) {
      add_table(source, keep);
    }
  }
}

void Dataset::add_plans(const SourceTable& source, FitActsOn sort,
                        const std::function<bool(const std::string&)>& keep) {
  const validate::ColumnIndex index(source.table);
  std::vector<validate::TableProblem> problems;
  std::vector<validate::PlanRow> rows;
  validate::TableNames names(presets_);
  for (const validate::TableRow& cells : source.table.rows) {
    validate::RowReader reader(source.table, index, cells, problems);
    std::optional<validate::PlanRow> row = validate::read_plan_row(reader, names);
    SHARDSCAPE_CHECK(row.has_value(), source.table.file, cells.line);
    if (keep(row->id) && !row->unmodelled) rows.push_back(*std::move(row));
  }
  std::ranges::stable_sort(rows, validate::setting_less);
  Group group;
  for (validate::PlanRow& row : rows) {
    if (!group.rows.empty() && validate::setting_less(group.rows.back(), row)) {
      group.options = source.options;
      add_group(std::move(group), sort);
      group = {};
    }
    group.rows.push_back(std::move(row));
  }
  group.options = source.options;
  add_group(std::move(group), sort);
}

void Dataset::add_group(Group group, FitActsOn sort) {
  std::vector<validate::PlanRow> rows;
  const auto target = [&](Measure measure, std::optional<double> measured) {
    if (measured) group.targets.push_back({rows.size(), measure, *measured});
  };
  for (validate::PlanRow& row : group.rows) {
    // Reads the presets' files here, once, so that each thread's copies have them already.
    validate::check_presets(row.model, row.cluster, {}, presets_, group.options.folder);
    const std::size_t before = group.targets.size();
    if (sort == FitActsOn::time) {
      target(Measure::step_time, row.step_time_s);
      // TTFT of public tables is left out: for saturated servers it is time in the client's queue.
      if (row.software.empty()) target(Measure::ttft, row.ttft_s());
      if (row.workload.output_tokens > 1) target(Measure::itl, row.itl_s());
      target(Measure::e2e, row.e2e_s());
    } else {
      target(Measure::memory, row.memory_peak_bytes);
      const auto cluster = presets_.cluster(row.cluster, group.options.folder);
      SHARDSCAPE_CHECK(cluster.has_value(), row.cluster);
      const double capacity = (*cluster)->device.memory_capacity().value();
      if (row.oom) target(*row.oom ? Measure::does_not_fit : Measure::fits, capacity);
    }
    if (group.targets.size() > before) rows.push_back(std::move(row));
  }
  group.rows = std::move(rows);
  if (group.rows.empty()) return;
  group.first = size_;
  group.count = group.targets.size();
  size_ += group.count;
  groups_.push_back(std::move(group));
}

void Dataset::add_table(const SourceTable& source, const std::function<bool(const std::string&)>& keep) {
  const std::size_t id = source.table.column("id").value();
  validate::Table kept = source.table;
  std::erase_if(kept.rows, [&](const validate::TableRow& row) { return !keep(row.cells[id]); });
  for (std::size_t begin = 0; begin < kept.rows.size(); begin += kBlock) {
    const std::size_t end = std::min(begin + kBlock, kept.rows.size());
    Group group;
    group.table = {kept.file, kept.columns, {}, {}};
    group.table.rows.assign(kept.rows.begin() + static_cast<std::ptrdiff_t>(begin),
                            kept.rows.begin() + static_cast<std::ptrdiff_t>(end));
    group.options = source.options;
    group.first = size_;
    group.ways = source.kind == validate::TableKind::expert_exchange ? 2 : 1;
    group.count = group.ways * (end - begin);
    size_ += group.count;
    groups_.push_back(std::move(group));
  }
}

void Dataset::predict(const Group& group, validate::Presets& presets, std::vector<double>& out) const {
  if (group.rows.empty()) {
    const validate::Evaluation evaluation = validate::evaluate(group.table, presets, group.options);
    SHARDSCAPE_CHECK(group.ways * evaluation.rows.size() == group.count, evaluation.rows.size(), group.count);
    struct Source {
      const char* metric;
      std::size_t way;
    };
    // If a kernel's tile is known, the time with that tile overrides the other.
    constexpr Source kSources[] = {{"time", 0},
                                   {"time_row_tile", 0},
                                   {"dispatch_low_latency", 0},
                                   {"dispatch_normal", 0},
                                   {"combine_low_latency", 1},
                                   {"combine_normal", 1}};
    for (const Source& of : kSources) {
      const auto metric = std::ranges::find(evaluation.metrics, of.metric, &validate::Metric::key);
      if (metric == evaluation.metrics.end()) continue;
      for (const validate::Pair& pair : metric->pairs)
        out[group.first + group.ways * pair.row + of.way] = log_ratio(pair.predicted, pair.measured);
    }
    return;
  }
  const auto predictions =
      validate::predict_plans(group.rows, presets, group.options.folder, group.options.reference);
  for (std::size_t i = 0; i < group.targets.size(); ++i) {
    const Target& target = group.targets[i];
    SHARDSCAPE_CHECK(predictions[target.row].has_value(), group.rows[target.row].id);
    const Prediction& predicted = predictions[target.row]->prediction;
    const auto ratio = [&](double value) { return log_ratio(value, target.measured); };
    double& residual = out[group.first + i];
    switch (target.measure) {
      case Measure::step_time:
        residual = ratio(predicted.step_time.value());
        break;
      case Measure::ttft:
        residual = ratio(predicted.ttft.value());
        break;
      case Measure::itl:
        residual = ratio(*group.rows[target.row].predicted(validate::kItlColumn, predicted));
        break;
      case Measure::e2e:
        residual = ratio(predicted.e2e.value());
        break;
      case Measure::memory:
        residual = ratio(predictions[target.row]->memory.value());
        break;
      case Measure::fits:
        residual = std::max(0.0, ratio(predicted.memory_peak.value()));
        break;
      case Measure::does_not_fit:
        residual = std::min(0.0, ratio(predicted.memory_peak.value()));
        break;
    }
  }
}

std::vector<std::vector<double>> Dataset::residuals(const std::vector<Candidate>& candidates) const {
  std::vector<std::vector<double>> results(candidates.size(), std::vector<double>(size_));
  tbb::enumerable_thread_specific<validate::Presets> presets([&] { return presets_; });
  const std::size_t tasks = candidates.size() * groups_.size();
  tbb::parallel_for(tbb::blocked_range<std::size_t>(0, tasks, 1), [&](const auto& range) {
    for (std::size_t task = range.begin(); task < range.end(); ++task) {
      const std::size_t candidate = task / groups_.size();
      validate::Presets& mine = presets.local();
      install(mine, candidates[candidate]);
      predict(groups_[task % groups_.size()], mine, results[candidate]);
    }
  });
  return results;
}

tl::expected<validate::Table, std::string> rows_where(const validate::Table& rows,
                                                      std::string_view expression) {
  const validate::Table table = with_release(rows);
  std::vector<sweep::ExpressionName> names;
  for (std::size_t c = 0; c < table.columns.size(); ++c) names.push_back(name_of_column(table, c));
  const auto parsed = sweep::Expression::parse(expression, names);
  if (!parsed) {
    return tl::unexpected(
        fmt::format("'{}', character {}: {}", expression, parsed.error().offset + 1, parsed.error().message));
  }
  validate::Table result = rows;
  result.rows.clear();
  std::vector<double> values(names.size());
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    for (const std::size_t c : parsed->references()) values[c] = value_of(names[c], table.rows[i].cells[c]);
    if (parsed->holds(values)) result.rows.push_back(rows.rows[i]);
  }
  if (result.rows.empty()) return tl::unexpected(fmt::format("'{}' holds for no row", expression));
  return result;
}

}  // namespace shardscape::calibrate
