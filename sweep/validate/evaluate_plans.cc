// Evaluates tables of plans: reads the rows, predicts them by settings, pairs measured and predicted values, and
// numbers the rows among which a user would choose.
#include <fmt/format.h>

#include <map>
#include <tuple>

#include "sweep/evidence/evidence_table.h"
#include "sweep/space/point_text.h"
#include "sweep/validate/predict_plans.h"
#include "sweep/validate/table_evaluators.h"

namespace shardscape::validate {

namespace {

enum PlanMetric : std::size_t { kStepTime, kMemory, kTtftAlone, kServed };

/// Reads the rows, each id once. For rows with problems, those of their presets are reported as well.
std::vector<PlanRow> read_rows(const Table& table, Presets& presets, const EvaluateOptions& options,
                               std::vector<TableProblem>& problems) {
  const ColumnIndex index(table);
  TableNames names(presets, options.device);
  std::map<std::string, int> line_of;
  std::vector<PlanRow> rows;
  for (const TableRow& cells : table.rows) {
    RowReader reader(table, index, cells, problems);
    if (const auto id = reader.text("id")) {
      const auto [first, fresh] = line_of.emplace(*id, cells.line);
      if (!fresh) reader.bad("id", fmt::format("'{}' is the name of line {}, too", *id, first->second));
    }
    if (auto row = read_plan_row(reader, names)) {
      rows.push_back(*std::move(row));
      continue;
    }
    const auto named = [&](const char* column) { return reader.text(column).value_or(""); };
    const std::string cluster = names_device(reader) ? "" : named("cluster");
    for (const RowRefusal& why :
         check_presets(named("model"), cluster, named("stack"), presets, options.folder)) {
      reader.bad(why.column, why.message);
    }
  }
  return rows;
}

/// Numbers the groups of rows among which a user would choose.
class Groups {
 public:
  int number(const PlanRow& row) {
    if (row.workload.phase != Phase::training) return -1;
    return numbers_
        .emplace(std::tuple(row.model, row.gpus, row.workload.global_batch, row.workload.sequence_length,
                            row.stack),
                 static_cast<int>(numbers_.size()))
        .first->second;
  }

 private:
  std::map<std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t, std::string>, int> numbers_;
};

std::string describe(const PlanRow& row) {
  std::string text = fmt::format("{}, {} GPUs, ", row.model, row.gpus);
  text += sweep::to_point_text(row.plan, row.workload.phase);
  if (row.workload.phase == Phase::inference) {
    text += fmt::format(", {}+{} tokens, concurrency {}", row.workload.longest_prompt(),
                        row.workload.longest_output(), row.workload.concurrency);
  }
  return text;
}

/// Identifies a plan that public tables repeat over releases, precisions and numbers of replicas.
std::string kin_of(const PlanRow& row) {
  if (row.software.empty()) return {};
  const ParallelPlan& plan = row.plan;
  std::string text = row.model;
  for (const std::int32_t degree : {plan.tensor, plan.context, plan.pipeline, plan.virtual_stages})
    text += fmt::format(" {}", degree);
  return text;
}

/// Whether requests of a run that nothing is known against wait for room in the cache, or the median one for servers
/// that prefill.
bool saturates(const PlanRow& row, const Prediction& prediction) {
  constexpr double kFull = 0.9, kLong = 0.2;
  if ((row.label != RunLabel::clean && row.label != RunLabel::jump) || !row.workload.load) return false;
  const bool waits = prediction.ttft_spread.p50.value() > kLong * prediction.e2e_spread.p50.value();
  return prediction.load.kv_peak > kFull || (row.plan.disaggregated() && waits);
}

/// What a table measures of servers: the means that every table may have, and those of which it has columns.
struct ServedPart {
  std::vector<std::size_t> columns;  ///< indices of served_columns()
  bool labels = false;               ///< whether rows are runs of software, which have labels
};
ServedPart served_part(const Table& table) {
  const ColumnIndex index(table);
  ServedPart part;
  for (std::size_t i = 0; i < kServedColumns; ++i) {
    if (i <= kE2eColumn || index.find(served_columns()[i].measured)) part.columns.push_back(i);
  }
  part.labels = index.find("software").has_value();
  return part;
}

void add(const PlanRow& row, const PlanPrediction& of, const ServedPart& part, Groups& groups, Regime regime,
         Evaluation& out) {
  const Prediction& prediction = of.prediction;
  const bool training = row.workload.phase == Phase::training;
  const bool oom = prediction.status == Status::memory;
  const std::size_t number = out.rows.size();
  std::vector<std::string>& cells = out.predictions.emplace_back();
  const auto pair = [&](PlanMetric metric, double predicted, std::optional<double> measured) {
    if (measured) out.metrics[metric].pairs.push_back({number, *measured, predicted});
  };
  const auto value = [&](PlanMetric metric, bool has_meaning, double predicted,
                         std::optional<double> measured) {
    cells.push_back(has_meaning ? cell(predicted) : "");
    if (has_meaning) pair(metric, predicted, measured);
  };
  value(kStepTime, training, prediction.step_time.value(), row.step_time_s);
  cells.push_back(cell(of.memory.value()));
  pair(kMemory, of.memory.value(), row.memory_peak_bytes);
  cells.push_back(oom ? "1" : "0");
  const bool prompts = !training && !row.itl_only;
  if (prompts && row.workload.concurrency == 1) pair(kTtftAlone, prediction.ttft.value(), row.ttft_s());
  for (std::size_t place = 0; place < part.columns.size(); ++place) {
    const std::size_t i = part.columns[place];
    const bool of_tokens = i == kItlColumn;
    const bool meant = of_tokens ? !training && row.workload.output_tokens > 1 : prompts;
    const std::optional<double> predicted = meant ? row.predicted(i, prediction) : std::nullopt;
    cells.push_back(cell(predicted));
    if (predicted && row.served[i])
      out.metrics[kServed + place].pairs.push_back({number, *row.served[i], *predicted});
  }
  if (part.labels) cells.emplace_back(training ? "" : name_of(row.label));
  out.rows.push_back({row.line, row.id, describe(row), groups.number(row), row.oom, oom, std::move(regime),
                      kin_of(row), evidence::degrees_of(row.plan)});
}

}  // namespace

Regime regime_of(const PlanRow& row, Presets& presets, const std::filesystem::path& folder) {
  Regime regime;
  const auto cluster = presets.cluster(row.cluster, folder);
  regime.device = cluster ? (*cluster)->device.name : row.device;
  regime.precision = name_of(row.workload.precision);
  regime.phase = name_of(row.workload.phase);
  regime.model = row.model;
  if (const auto model = presets.model(row.model, folder)) regime.model_kind = evidence::model_kind(**model);
  regime.stack = row.stack;
  regime.software = row.software.substr(0, row.software.find(' '));
  regime.gpus = row.gpus;
  if (row.workload.phase == Phase::training) return regime;
  constexpr std::int64_t kMany = 64;
  const std::int64_t clients = row.workload.concurrency;
  regime.label = name_of(row.label);
  regime.servers = row.plan.disaggregated() ? "two pools" : "one server";
  regime.load = clients == 0 ? "" : clients == 1 ? "1" : clients <= kMany ? "2 to 64" : "above 64";
  return regime;
}

void evaluate_plans(const Table& table, Presets& presets, const EvaluateOptions& options, Evaluation& out) {
  out.metrics = {{"step_time", "step time", "s", {}, "measured_step_time_s"},
                 {"memory", "peak memory", "byte", {}, "measured_memory_peak_bytes"},
                 {"ttft_alone", "TTFT at concurrency 1", "s", {}, served_columns()[kTtftColumn].measured}};
  out.prediction_columns = {"predicted_step_time_s", "predicted_memory_peak_bytes", "predicted_oom"};
  const ServedPart part = served_part(table);
  for (const std::size_t i : part.columns) {
    const ServedColumn& column = served_columns()[i];
    out.metrics.push_back({column.key, column.name, column.unit, {}, column.measured});
    out.prediction_columns.push_back(column.predicted());
  }
  if (part.labels) out.prediction_columns.emplace_back("label");
  std::vector<PlanRow> rows = read_rows(table, presets, options, out.problems);
  for (const PlanRow& row : rows) {
    if (row.unmodelled) out.unpredicted.push_back({row.line, *row.unmodelled});
  }
  std::erase_if(rows, [](const PlanRow& row) { return row.unmodelled.has_value(); });
  label_runs(rows);
  const std::vector<RowPrediction> predictions =
      predict_plans(rows, presets, options.folder, options.reference, options.together);
  Groups groups;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (predictions[i]) {
      if (saturates(rows[i], predictions[i]->prediction)) rows[i].label = RunLabel::saturated;
      add(rows[i], *predictions[i], part, groups, regime_of(rows[i], presets, options.folder), out);
      continue;
    }
    add_refusals(table, rows[i], predictions[i].error(), out);
  }
}

void add_refusals(const Table& table, const PlanRow& row, std::span<const RowRefusal> refusals,
                  Evaluation& out) {
  for (const RowRefusal& why : refusals) {
    // If a public table of servers asks for an impossible plan, we have not understood how it describes the plan: the
    // row is unpredicted, not wrong.
    if (why.rejected && !row.software.empty() && row.workload.phase == Phase::inference) {
      out.unpredicted.push_back({row.line, why.message});
    } else {
      out.problems.push_back({table.file, row.line, why.column, why.message, why.rejected});
    }
  }
}

}  // namespace shardscape::validate
