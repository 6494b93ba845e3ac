// One row of a table of plans: what was run, and what was measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/enum_names.h"
#include "engine/spec/plan.h"
#include "engine/spec/workload.h"
#include "sweep/validate/row_reader.h"
#include "sweep/validate/table_names.h"

namespace shardscape::validate {

/// Whose memory a row has, and what of it.
///   fullest_reserved      what the allocator reserves on the fullest device
///   last_stage_allocated  what of that lies in tensors on a device of the last pipeline stage, which logs (MLPerf's
///                         reference logger): without the allocator's fragmentation
enum class MemoryOf : std::uint8_t { fullest_reserved, last_stage_allocated };

struct PlanRow {
  int line = 0;
  std::string id, model, cluster, stack;
  std::string device, software;  ///< as the table says; empty where it names cluster and stack
  std::int64_t gpus = 0;
  WorkloadSpec workload;
  ParallelPlan plan;  ///< axes without effect are idle: no sequence parallelism at tp 1, no ZeRO at dp * cp 1
  /// The table does not say what was computed again: the plan's own where that fits, else the next stronger.
  bool recompute_unstated = false;
  /// The table does not state it: experts are dealt over as many ranks as there are for them.
  bool experts_unstated = false;
  /// Prompts are not stated, or requests queued in front of the server: only ITL is comparable.
  bool itl_only = false;
  std::optional<std::string> unmodelled;  ///< why the row, which is sound, cannot be predicted

  std::optional<double> step_time_s, memory_peak_bytes, ttft_s, itl_s, e2e_s;
  std::optional<bool> oom;
  MemoryOf memory_of = MemoryOf::fullest_reserved;
};

/// Whether the rows of a table name devices, on the machine that each is sold in. A column `cluster` is free text there.
bool names_device(const RowReader& reader);

/// Fills blanks as table_columns.cc documents. Reported: cells that cannot be read, degrees that do not
/// multiply to the GPUs, batches that do not, settings of the other phase. Nothing where anything is wrong. A
/// row that is `unmodelled` is read no further than that.
std::optional<PlanRow> read_plan_row(RowReader& reader, TableNames& names);

}  // namespace shardscape::validate

namespace shardscape {
SHARDSCAPE_ENUM_NAMES(validate::MemoryOf, "fullest_reserved", "last_stage_allocated");
}  // namespace shardscape
