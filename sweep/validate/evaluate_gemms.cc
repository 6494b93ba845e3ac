#include "engine/compute/gemm.h"
#include "sweep/validate/evaluators.h"

namespace shardscape::validate {

namespace {

constexpr double kLongKernel_s = 1e-4;

struct GemmRow {
  std::string id;
  compute::GemmShape shape;
  Precision precision = Precision::bf16;
  const DeviceSpec* device = nullptr;
  std::optional<double> clock_hz;
  double measured_s = 0;
};

std::optional<GemmRow> read_row(RowReader& reader, Presets& presets, const EvaluateOptions& options) {
  GemmRow row;
  for (const char* column : {"m", "n", "k", "measured_time_s"}) reader.need(column);
  row.shape.m = reader.integer("m").value_or(0);
  row.shape.n = reader.integer("n").value_or(0);
  row.shape.k = reader.integer("k").value_or(0);
  for (const char* column : {"tile_m", "tile_n", "tile_k", "stages", "grid_size"}) reader.integer(column);
  row.clock_hz = reader.positive("sm_clock_hz");
  row.measured_s = reader.positive("measured_time_s").value_or(0);
  row.precision = reader.choice<Precision>("precision").value_or(Precision::bf16);
  const auto device = presets.device(reader.text("device").value_or(options.device), options.folder);
  if (!device) {
    reader.bad("device", device.error());
  } else if (!(*device)->supports(row.precision)) {
    reader.bad("precision",
               "device " + (*device)->name + " has no unit for " + std::string(name_of(row.precision)));
  } else {
    row.device = *device;
  }
  if (reader.failed()) return std::nullopt;
  return row;
}

/// A locked clock is below what the power limit would leave: every cycle counts.
DeviceSpec at_clock(DeviceSpec device, double hertz) {
  device.sm.clock = Hertz(hertz);
  device.sustained.tensor = 1;
  return device;
}

double predict(const GemmRow& row) {
  if (!row.clock_hz) return compute::gemm(row.shape, row.precision, *row.device).time.value();
  return compute::gemm(row.shape, row.precision, at_clock(*row.device, *row.clock_hz)).time.value();
}

std::string describe(const compute::GemmShape& shape) {
  return std::to_string(shape.m) + " x " + std::to_string(shape.n) + " x " + std::to_string(shape.k);
}

}  // namespace

void evaluate_gemms(const Table& table, Presets& presets, const EvaluateOptions& options, Evaluation& out) {
  out.metrics = {{"time", "kernel time, own tile", "s", {}}, {"time_long", "the same, over 0.1 ms", "s", {}}};
  out.prediction_columns = {"predicted_time_s"};
  const ColumnIndex index(table);
  for (const TableRow& cells : table.rows) {
    RowReader reader(table, index, cells, out.problems);
    const std::optional<GemmRow> row = read_row(reader, presets, options);
    if (!row) continue;
    const double predicted = predict(*row);
    const Pair pair{out.rows.size(), row->measured_s, predicted};
    out.metrics[0].pairs.push_back(pair);
    if (row->measured_s > kLongKernel_s) out.metrics[1].pairs.push_back(pair);
    out.predictions.push_back({cell(predicted)});
    out.rows.push_back({cells.line, row_id(reader, table, cells), describe(row->shape), -1, {}, {}});
  }
}

}  // namespace shardscape::validate
