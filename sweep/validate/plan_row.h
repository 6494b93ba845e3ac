// One row of a table of plans: what was run, and what was measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/enum_names.h"
#include "engine/spec/plan.h"
#include "engine/spec/workload.h"
#include "sweep/validate/client_runs.h"
#include "sweep/validate/row_reader.h"
#include "sweep/validate/run_labels.h"
#include "sweep/validate/served_columns.h"
#include "sweep/validate/table_names.h"

namespace shardscape::validate {

/// Which memory a row has measured.
///   fullest_reserved      what the allocator reserves on the fullest device
///   last_stage_allocated  what tensors take of it on a device of the last pipeline stage, which logs (MLPerf's
///                         reference logger): without the allocator's fragmentation
enum class MemoryOf : std::uint8_t { fullest_reserved, last_stage_allocated };

struct PlanRow {
  int line = 0;
  std::string id, model, cluster, stack;
  std::string device, software;  ///< names in the table; empty where it names cluster and stack
  std::int64_t gpus = 0;
  WorkloadSpec workload;
  /// Axes without effect have their idle value: no sequence parallelism at tp 1, no ZeRO at dp * cp 1.
  ParallelPlan plan;
  /// The table does not state recomputation: the plan's own applies where it fits, else the next stronger one.
  bool recompute_unstated = false;
  /// The table does not state expert parallelism: experts are dealt over as many ranks as possible.
  bool experts_unstated = false;
  /// Prompts are not stated, or requests queued before the server, so that only ITL can be compared.
  bool itl_only = false;
  /// The run as its client sent it, where that is known; `workload` then has the load.
  std::string client;
  ServerRecipe recipe;
  RunLabel label = RunLabel::clean;
  std::optional<std::string> unmodelled;  ///< why the row, although valid, cannot be predicted

  std::optional<double> step_time_s, memory_peak_bytes;
  ServedValues served;  ///< what was measured of a server
  [[nodiscard]] std::optional<double> ttft_s() const { return served[kTtftColumn]; }
  [[nodiscard]] std::optional<double> itl_s() const { return served[kItlColumn]; }
  [[nodiscard]] std::optional<double> e2e_s() const { return served[kE2eColumn]; }
  /// Whether its ITL is the median gap between tokens, as ML.ENERGY's leaderboard prints it: prompts that others send
  /// lengthen the mean.
  bool median_itl = false;
  /// What is predicted for a served column of this row.
  [[nodiscard]] std::optional<double> predicted(std::size_t column, const Prediction& prediction) const {
    return column == kItlColumn && median_itl
               ? prediction.itl_spread.p50.value()
               : served_columns()[column].get(prediction, workload.load.has_value());
  }
  std::optional<bool> oom;
  MemoryOf memory_of = MemoryOf::fullest_reserved;

  /// Says why the row cannot be predicted, unless a reason is known already.
  void cannot_be_predicted(const std::string& why) {
    if (!unmodelled) unmodelled = why;
  }
};

/// The preset behind a name of the table. A name without a preset for good reason makes the row unmodelled.
std::string preset_named(RowReader& reader, const char* column, const TableNames::Named& name, PlanRow& row);

/// Whether rows of the table name devices, meaning the machine that each is sold in; a column `cluster` is then free
/// text.
bool names_device(const RowReader& reader);

/// Reads a row and fills blanks as table_columns.cc documents. Reports cells that cannot be read, degrees and batches
/// whose products are wrong, and settings of the other phase. Nothing where anything is wrong. The rest of an
/// `unmodelled` row is not read.
std::optional<PlanRow> read_plan_row(RowReader& reader, TableNames& names);

}  // namespace shardscape::validate
