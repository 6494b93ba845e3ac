#include <fmt/format.h>

#include "sweep/validate/collective_bench.h"
#include "sweep/validate/predict_plans.h"
#include "sweep/validate/table_evaluators.h"

namespace shardscape::validate {

namespace {

enum class MeasuredCollective : std::uint8_t { all_reduce, reduce_scatter, all_gather, send_recv };
SHARDSCAPE_ENUM_NAMES(MeasuredCollective, "all_reduce", "reduce_scatter", "all_gather", "send_recv");

constexpr double kLargeMessage = 1e6;

struct CollectiveRow {
  std::string cluster, stack;
  MeasuredCollective collective = MeasuredCollective::all_reduce;
  std::int64_t gpus = 0, per_node = 0;
  double bytes = 0, measured_s = 0;
};

std::optional<CollectiveRow> read_collective(RowReader& reader, Presets& presets,
                                             const EvaluateOptions& options) {
  CollectiveRow row;
  for (const char* column : {"cluster", "collective", "gpus", "gpus_per_node", "bytes", "median_s"}) {
    reader.need(column);
  }
  row.cluster = reader.text("cluster").value_or("");
  row.stack = reader.text("stack").value_or(options.collective_stack);
  row.collective = reader.choice<MeasuredCollective>("collective").value_or(MeasuredCollective::all_reduce);
  constexpr std::int64_t kMostGpus = 1 << 20;
  row.gpus = reader.integer("gpus", 2, kMostGpus).value_or(2);
  row.per_node = reader.integer("gpus_per_node", 1, kMostGpus).value_or(1);
  row.bytes = reader.positive("bytes").value_or(0);
  row.measured_s = reader.positive("median_s").value_or(0);
  for (const char* column : {"min_s", "max_s"}) reader.positive(column);
  if (row.gpus % row.per_node != 0) {
    reader.bad("gpus_per_node", fmt::format("{} GPUs do not divide by {}", row.gpus, row.per_node));
  }
  for (const RowRefusal& why : check_presets("", row.cluster, row.stack, presets, options.folder)) {
    reader.bad(why.column, why.message);
  }
  if (reader.failed()) return std::nullopt;
  return row;
}

network::CollectiveOp operation_of(MeasuredCollective collective) {
  switch (collective) {
    case MeasuredCollective::all_reduce:
      return network::CollectiveOp::all_reduce;
    case MeasuredCollective::reduce_scatter:
      return network::CollectiveOp::reduce_scatter;
    case MeasuredCollective::all_gather:
      return network::CollectiveOp::all_gather;
    case MeasuredCollective::send_recv:
      return network::CollectiveOp::ring_pass;
  }
  return network::CollectiveOp::all_reduce;
}

std::string describe(const CollectiveRow& row) {
  return fmt::format("{}, {} of {} B, {} GPUs, {} per node", row.cluster, name_of(row.collective),
                     cell(row.bytes), row.gpus, row.per_node);
}

Regime regime_of(const CollectiveRow& row, Presets& presets, const std::filesystem::path& folder) {
  Regime regime;
  const auto cluster = presets.cluster(row.cluster, folder);
  if (cluster) regime.device = (*cluster)->device.name;
  regime.stack = row.stack;
  regime.operation = name_of(row.collective);
  regime.gpus = row.gpus;
  return regime;
}

}  // namespace

void evaluate_collectives(const Table& table, Presets& presets, const EvaluateOptions& options,
                          Evaluation& out) {
  out.metrics = {{"time", "time", "s", {}}, {"time_node", "one node, 1 MB and more", "s", {}}};
  out.prediction_columns = {"predicted_time_s"};
  CollectiveBenches benches(presets, options.folder);
  const ColumnIndex index(table);
  for (const TableRow& cells : table.rows) {
    RowReader reader(table, index, cells, out.problems);
    const std::optional<CollectiveRow> row = read_collective(reader, presets, options);
    if (!row) continue;
    const auto time = benches.time({row->cluster, row->stack, row->gpus, row->per_node},
                                   operation_of(row->collective), row->bytes);
    if (!time) {
      for (const RowRefusal& why : time.error()) reader.bad(why.column, why.message);
      continue;
    }
    const double predicted = *time;
    const Pair pair{out.rows.size(), row->measured_s, predicted};
    out.metrics[0].pairs.push_back(pair);
    if (row->gpus == row->per_node && row->bytes >= kLargeMessage) out.metrics[1].pairs.push_back(pair);
    out.predictions.push_back({cell(predicted)});
    out.rows.push_back({cells.line,
                        row_id(reader, table, cells),
                        describe(*row),
                        -1,
                        {},
                        {},
                        regime_of(*row, presets, options.folder)});
  }
}

}  // namespace shardscape::validate
