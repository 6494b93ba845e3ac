// The evaluation of a measurement table: every row is predicted, and measured and predicted values are paired; its
// statistics, bars, groups of errors and predictions as a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "sweep/evidence/evidence_table.h"
#include "sweep/ranks/ranks.h"
#include "sweep/validate/measured_table.h"
#include "sweep/validate/presets.h"
#include "sweep/validate/statistics.h"
#include "sweep/validate/table_columns.h"

namespace shardscape::validate {

/// Which rows are held out while constants are fitted: a fixed function of a row's id, so that fits and validations
/// agree and nobody can choose. Holds out `parts` of `of` equal classes of ids; 0 < parts < of.
struct HoldOut {
  std::uint64_t parts = 1;
  std::uint64_t of = 3;
};

/// Reads "1/3". The error says what would be right.
tl::expected<HoldOut, std::string> parse_hold_out(std::string_view text);

/// The 64-bit FNV-1a hash of an id.
std::uint64_t id_hash(std::string_view id);

/// Whether an id is held out: id_hash() modulo `of` is below `parts`.
bool is_held_out(std::string_view id, HoldOut share);

struct EvaluateOptions {
  bool reference = false;                       ///< use the engine's plain reference path
  std::filesystem::path folder;                 ///< folder at which relative paths of presets start
  std::string device = "a100-sxm-80gb";         ///< device of GEMM rows that name none
  std::string collective_stack = "nccl-tests";  ///< stack of collective rows that name none
  /// Processes that share the predictions of plans by making the same calls; the result is on rank 0. Null: this
  /// process alone.
  ranks::Ranks* together = nullptr;
};

/// The conditions of a row: rows of one regime are expected to err alike. A part is empty where the row has none.
struct Regime {
  std::string device, precision, phase, model, model_kind, stack, software, operation;
  std::string label, load, servers;  ///< of a server's run: run_labels.h, its clients, whether two pools
  std::int64_t gpus = 0;
};
/// Names of a regime's parts, as `--by` takes them.
std::span<const std::string_view> regime_keys();
/// The part of that name; "-" where the row has none.
std::string regime_part(const Regime& regime, std::string_view key);

struct EvaluatedRow {
  int line = 0;
  std::string id;
  std::string what;  ///< the row in brief, for readers: plan, shape or collective
  int group = -1;    ///< plans: rows of one number are those to choose among
  std::optional<bool> measured_oom, predicted_oom;
  Regime regime = {};
  /// Identifies the rows of a shape group or plan, which a cross-validation must not separate; empty: the row alone.
  std::string kin = {};
  evidence::Degrees degrees = evidence::degrees_of({});  ///< degrees of its plan
};

/// A row of the table as it was read, whether valid or not.
struct TableLine {
  int line = 0;
  std::string id;  ///< id in the table; empty where it has none
};

/// A row that is valid but cannot be predicted here.
struct UnpredictedRow {
  int line = 0;
  std::string reason;
};

/// A measured quantity; `pairs` has the rows where it is both measured and predicted.
struct Metric {
  std::string key;   ///< in JSON: "step_time"
  std::string name;  ///< for readers: "step time"
  std::string unit;  ///< "s", "1/s" or "byte"
  std::vector<Pair> pairs;
  std::string column = {};  ///< the table's, of measurements; empty where tables differ in it
};

struct Evaluation {
  TableKind kind = TableKind::plans;
  std::vector<EvaluatedRow> rows;  ///< the rows that could be predicted
  /// All metrics of the kind in a fixed order, measured or not.
  std::vector<Metric> metrics;
  std::vector<TableLine> lines;                 ///< every line of the table, in order
  std::vector<UnpredictedRow> unpredicted;      ///< rows that can count neither as right nor as wrong
  std::vector<std::string> prediction_columns;  ///< names of the columns behind `id`
  /// One list per row; a cell is empty where it makes no sense.
  std::vector<std::vector<std::string>> predictions;
  std::vector<TableProblem> problems;  ///< problems of the table and its rows, by line
};

/// Predicts every row of a table of any kind. Rows with a problem are reported and left out.
///   plans        step_time, memory, ttft, ttft_alone (at concurrency 1, where nothing waits), itl, e2e.
///                Ranking groups are rows of equal model, gpus, global_batch, sequence_length and stack.
///                memory is what the allocator reserves at its peak, as such runs are measured: the predicted
///                peak without the stack's reserve (context, communication library), which only the
///                out-of-memory verdict counts
///   gemm         time (the model's own tile, all rows), time_long (the same, kernels over 0.1 ms measured),
///                time_row_tile (the row's tile, rows that name one)
///   collectives  time (all rows), time_node (groups inside one node, 1 MB and more)
Evaluation evaluate(const Table& table, Presets& presets, const EvaluateOptions& options);

/// The part of an evaluation with the rows that `keep` accepts: rows, pairs and predictions; all problems stay.
Evaluation subset(const Evaluation& evaluation, const std::function<bool(const EvaluatedRow&)>& keep);

/// A number of a summary with its name, such as "step_time.mape", "oom.accuracy", "ranking.regret_mean".
struct Statistic {
  std::string section, name;
  std::optional<double> value;  ///< nothing where it is undefined, as without rows
  bool count = false;           ///< whether it is a number of rows or groups
  [[nodiscard]] std::string path() const { return section + '.' + name; }
};
/// All statistics that the kind of table has, in a fixed order; errors, shares and correlations are
/// fractions.
///   METRIC  n, mape (mean absolute error), median, p90, max, bias (mean signed error)
///   oom     n, accuracy, precision, recall        (plans)
///   ranking groups, spearman, regret_mean, regret_max  (plans)
std::vector<Statistic> statistics(const Evaluation& evaluation);

/// The number as text for a file: the shortest that parses back, empty where there is none.
std::string cell(std::optional<double> value);

/// A limit for one statistic: errors and regrets must be at most it; accuracies, precision, recall and Spearman at
/// least.
struct Bar {
  std::string statistic;  ///< name of the statistic, as Statistic::path()
  double limit = 0;       ///< as a fraction
};
bool is_lower_bound(const Bar& bar);

/// The bars of a kind of table where the user gives none.
std::vector<Bar> default_bars(TableKind kind);

/// Names of the statistics, of all kinds of tables, that may have a bar.
std::vector<std::string> bar_statistics();

/// A share written as "5 %", "5%" or "0.05"; at least 0.
tl::expected<double, std::string> parse_share(std::string_view text);
/// A bar written as "step_time.mape=5%". Errors say what is wrong and what would be right.
tl::expected<Bar, std::string> parse_bar(std::string_view text);

struct BarResult {
  Bar bar;
  double value = 0;
  bool held = false;
};
/// A result for each bar whose statistic is defined, in the order of the bars.
std::vector<BarResult> check_bars(std::span<const Bar> bars, std::span<const Statistic> statistics);

struct ErrorGroup {
  std::vector<std::string> key;  ///< one part of the regime for each name in the request
  std::string metric;            ///< Metric::key
  ErrorStatistics errors;        ///< of at least one row
};

/// Reads "device,precision": distinct names of regime_keys(). The error lists the known names.
tl::expected<std::vector<std::string>, std::string> parse_regime_keys(std::string_view text);

/// Errors of every metric by parts of the regime, in the order of the metrics, then of the keys.
std::vector<ErrorGroup> error_groups(const Evaluation& evaluation, const std::vector<std::string>& keys);

/// One residual for each row that was measured and predicted: of the step, of a token (ITL), or, if neither was
/// measured, of the whole request. Tables that are not of plans give none, as kernels are no whole steps.
std::vector<evidence::Residual> residuals(const Evaluation& evaluation);

struct NamedEvaluation {
  std::string file;
  const Evaluation* evaluation = nullptr;
};

/// The columns: `file` where there are several, `line` (the header is 1), `id` as in the table, the prediction columns
/// of every kind that occurs, `reason`. A cell is empty where the column makes no sense for the row; all are empty
/// where the row is not predicted, and `reason` says why.
std::string predictions_csv(std::span<const NamedEvaluation> evaluations);

}  // namespace shardscape::validate
