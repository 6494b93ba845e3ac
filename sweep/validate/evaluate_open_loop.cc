// Evaluates tables of servers to which requests come at a rate: reads the rows, simulates their loads, and pairs what
// was measured with what is predicted, here and by the other programs whose predictions stand in the table.
//
// Prompts of such benchmarks repeat: so many groups of prompts with one beginning each. Where the server caches
// prefixes, all but the last block of a prompt lies in the cache when it comes, since each has come before; the first
// time of each is left out.
#include <fmt/format.h>

#include <algorithm>

#include "engine/base/words.h"
#include "sweep/evidence/evidence_table.h"
#include "sweep/validate/predict_plans.h"
#include "sweep/validate/table_evaluators.h"

namespace shardscape::validate {

namespace {

/// Requests of a run that are simulated at most, and where the row does not say how many there were.
constexpr std::int64_t kMostRequests = 4000, kUsualRequests = 2000;

struct OpenLoopRow {
  PlanRow plan;
  std::vector<std::optional<double>> measured;  ///< index: open_loop_columns()
};

class Rows {
 public:
  Rows(const Table& table, Presets& presets, const EvaluateOptions& options)
      : presets_(presets), folder_(options.folder), index_(table), names_(presets, options.device) {}

  std::optional<OpenLoopRow> read(RowReader& reader) {
    OpenLoopRow out;
    PlanRow& row = out.plan;
    row.line = reader.line();
    for (const char* column : {"id", "model", "device", "software", "gpus", "tensor_parallel"})
      reader.need(column);
    const auto text = [&](const char* column) { return reader.text(column).value_or(""); };
    row.id = row.client = text("id");
    row.model = text("model");
    row.device = text("device");
    row.software = text("software");
    row.cluster = preset_named(reader, "device", names_.cluster(row.device), row);
    row.stack = preset_named(
        reader, "software",
        names_.stack(row.software, has_experts(row.model), {{}, Architecture::other, text("source")}), row);
    if (const auto model = presets_.model(row.model, folder_); !model) row.cannot_be_predicted(model.error());
    row.workload.phase = Phase::inference;
    if (const auto cell = reader.text("precision")) {
      const auto policy = TableNames::policy(lower_case(*cell));
      if (!policy) reader.bad("precision", "unknown '" + *cell + "'; one of " + TableNames::policies());
      row.workload.precision = policy.value_or(PolicyName::bf16);
    }
    read_plan(reader, row);
    read_load(reader, row);
    if (reader.flag("overload").value_or(false)) row.label = RunLabel::saturated;
    if (reader.text("same_as")) row.label = RunLabel::repeated;
    for (const ServedColumn& column : open_loop_columns())
      out.measured.push_back(reader.positive(column.measured));
    return reader.failed() ? std::nullopt : std::optional(std::move(out));
  }

 private:
  static void read_plan(RowReader& reader, PlanRow& row) {
    const std::int64_t gpus = reader.integer("gpus").value_or(1);
    const std::int64_t tensor = reader.integer("tensor_parallel").value_or(1);
    const std::int64_t data =
        reader.integer("data_parallel").value_or(std::max<std::int64_t>(1, gpus / tensor));
    if (!reader.failed() && tensor * data != gpus)
      reader.bad("gpus",
                 fmt::format("there are {}, but tensor_parallel * data_parallel = {}", gpus, tensor * data));
    row.gpus = gpus;
    row.plan.tensor = static_cast<std::int32_t>(tensor);
    row.plan.data = static_cast<std::int32_t>(data);
  }

  static void read_load(RowReader& reader, PlanRow& row) {
    const std::optional<double> rate = reader.positive("requested_rate");
    const std::optional<std::int64_t> output = reader.rounded("output_tokens_requested");
    std::optional<std::int64_t> prompt = reader.rounded("prompt_tokens_mean");
    const std::optional<std::int64_t> question = reader.rounded("question_tokens");
    if (!prompt && question) prompt = *question + reader.rounded("system_prompt_tokens").value_or(0);
    const std::optional<ArrivalProcess> arrivals = reader.choice<ArrivalProcess>("arrival");
    row.recipe.token_budget = reader.integer("vllm_max_num_batched_tokens");
    row.recipe.max_batch = reader.integer("vllm_max_num_seqs");
    const bool cached = reader.flag("vllm_prefix_caching").value_or(false);
    if (!rate) row.cannot_be_predicted("the row does not say at which rate requests came");
    if (!prompt || !output) row.cannot_be_predicted("the row does not say how long prompts and outputs were");
    if (reader.text("set").value_or("").find("first") != std::string::npos)
      row.cannot_be_predicted("the first requests of a run, which meet a cold cache");
    if (row.unmodelled) return;
    LoadSpec load;
    load.request_rate = *rate;
    load.arrivals = arrivals.value_or(ArrivalProcess::poisson);
    load.prompt = Lengths::fixed(*prompt);
    load.output = Lengths::fixed(*output);
    load.requests = {std::min(kMostRequests, reader.integer("requests").value_or(kUsualRequests)), false};
    constexpr std::int64_t kBlock = 16;  // vLLM's block_size
    if (cached) load.common.end = (*prompt - 1) / kBlock * kBlock;
    row.workload.prompt_tokens = *prompt;
    row.workload.output_tokens = *output;
    row.workload.load = load;
  }

  Presets& presets_;
  const std::filesystem::path folder_;
  const ColumnIndex index_;
  TableNames names_;
};

/// Names of other programs that predict the rows of a table, and the columns of the means that we have, too.
constexpr std::array<std::string_view, 3> kMeans = {"_ttft_mean_s", "_itl_mean_s", "_e2e_mean_s"};
struct Other {
  std::string name;
  std::array<std::string, kMeans.size()> columns;  ///< as the first ones of open_loop_columns(); empty: none
};
std::vector<Other> others_of(const Table& table) {
  std::vector<Other> others;
  for (const std::string& column : table.columns) {
    if (!is_prediction_of_another(column)) continue;
    for (std::size_t i = 0; i < kMeans.size(); ++i) {
      if (!column.ends_with(kMeans[i])) continue;
      const std::string name = column.substr(0, column.size() - kMeans[i].size());
      auto found = std::ranges::find(others, name, &Other::name);
      if (found == others.end()) found = others.insert(others.end(), Other{name, {}});
      found->columns[i] = column;
    }
  }
  return others;
}

/// A row that is to be predicted, with the means that other programs predict, three each.
struct Pending {
  OpenLoopRow row;
  std::vector<std::optional<double>> others;
};

std::vector<Pending> read_rows(const Table& table, Presets& presets, const EvaluateOptions& options,
                               const std::vector<Other>& others, Evaluation& out) {
  const ColumnIndex index(table);
  Rows rows(table, presets, options);
  std::vector<Pending> pending;
  for (const TableRow& cells : table.rows) {
    RowReader reader(table, index, cells, out.problems);
    std::optional<OpenLoopRow> row = rows.read(reader);
    if (!row) continue;
    if (row->plan.unmodelled) {
      out.unpredicted.push_back({row->plan.line, *row->plan.unmodelled});
      continue;
    }
    Pending& next = pending.emplace_back(Pending{*std::move(row), {}});
    for (const Other& other : others) {
      for (const std::string& column : other.columns)
        next.others.push_back(column.empty() ? std::nullopt : reader.positive(column));
    }
  }
  return pending;
}

void add(const Pending& of, const Prediction& prediction, Regime regime, Evaluation& out) {
  const std::span<const ServedColumn> columns = open_loop_columns();
  const PlanRow& row = of.row.plan;
  const std::size_t number = out.rows.size();
  std::vector<std::string>& cells = out.predictions.emplace_back();
  const auto pair = [&](std::size_t metric, std::size_t column, std::optional<double> predicted) {
    const std::optional<double> measured = of.row.measured[column];
    if (predicted && measured) out.metrics[metric].pairs.push_back({number, *measured, *predicted});
  };
  for (std::size_t k = 0; k < columns.size(); ++k) {
    const std::optional<double> predicted = columns[k].get(prediction, true);
    cells.push_back(cell(predicted));
    pair(k, k, predicted);
  }
  cells.emplace_back(name_of(row.label));
  for (std::size_t k = 0; k < of.others.size(); ++k)
    pair(columns.size() + k, k % kMeans.size(), of.others[k]);
  out.rows.push_back(
      {row.line,
       row.id,
       fmt::format("{}, {} GPUs, tp={}, {}+{} tokens, {} requests/s", row.model, row.gpus, row.plan.tensor,
                   row.workload.prompt_tokens, row.workload.output_tokens, row.workload.load->request_rate),
       -1,
       std::nullopt,
       std::nullopt,
       std::move(regime),
       {},
       evidence::degrees_of(row.plan)});
}

}  // namespace

void evaluate_open_loop(const Table& table, Presets& presets, const EvaluateOptions& options,
                        Evaluation& out) {
  const std::span<const ServedColumn> columns = open_loop_columns();
  for (const ServedColumn& column : columns) {
    out.metrics.push_back({column.key, column.name, column.unit, {}, column.measured});
    out.prediction_columns.push_back(column.predicted());
  }
  out.prediction_columns.emplace_back("label");
  const std::vector<Other> others = others_of(table);
  for (const Other& other : others) {
    for (std::size_t i = 0; i < kMeans.size(); ++i)
      out.metrics.push_back({fmt::format("{}_{}", other.name, columns[i].key),
                             fmt::format("{} by {}", columns[i].name, other.name),
                             "s",
                             {}});
  }
  const std::vector<Pending> pending = read_rows(table, presets, options, others, out);
  std::vector<PlanRow> plans;
  for (const Pending& of : pending) plans.push_back(of.row.plan);
  const std::vector<RowPrediction> predictions =
      predict_plans(plans, presets, options.folder, options.reference, options.together);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (predictions[i]) {
      add(pending[i], predictions[i]->prediction, regime_of(plans[i], presets, options.folder), out);
      continue;
    }
    add_refusals(table, plans[i], predictions[i].error(), out);
  }
}

}  // namespace shardscape::validate
