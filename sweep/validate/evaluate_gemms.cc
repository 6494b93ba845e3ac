#include <fmt/format.h>

#include "engine/compute/gemm.h"
#include "sweep/validate/table_evaluators.h"

namespace shardscape::validate {

namespace {

constexpr double kLongKernel_s = 1e-4;

struct GemmRow {
  std::string id;
  compute::GemmShape shape;
  Precision precision = Precision::bf16;
  const DeviceSpec* device = nullptr;
  compute::GemmRequest request;  ///< with the row's clock and, if given, its tile
  double measured_s = 0;
};

/// The row's tile: all extents or none must be given; the number of stages may be missing.
std::optional<compute::GemmTile> read_tile(RowReader& reader) {
  constexpr std::int64_t kMaxExtent = 4096;
  const auto m = reader.integer("tile_m", 1, kMaxExtent), n = reader.integer("tile_n", 1, kMaxExtent);
  const auto k = reader.integer("tile_k", 1, kMaxExtent), stages = reader.integer("stages", 2, kMaxExtent);
  if (m && n && k) {
    return compute::GemmTile{static_cast<std::int32_t>(*m), static_cast<std::int32_t>(*n),
                             static_cast<std::int32_t>(*k), static_cast<std::int32_t>(stages.value_or(0))};
  }
  const bool partly = reader.text("tile_m") || reader.text("tile_n") || reader.text("tile_k");
  if (partly && !reader.failed()) reader.bad("tile_m", "give tile_m, tile_n and tile_k, or none of them");
  return std::nullopt;
}

std::optional<GemmRow> read_gemm(RowReader& reader, Presets& presets, const EvaluateOptions& options) {
  GemmRow row;
  for (const char* column : {"m", "n", "k", "measured_time_s"}) reader.need(column);
  row.shape.m = reader.integer("m").value_or(0);
  row.shape.n = reader.integer("n").value_or(0);
  row.shape.k = reader.integer("k").value_or(0);
  reader.integer("grid_size");
  row.request.tile = read_tile(reader);
  if (const auto clock = reader.positive("sm_clock_hz")) row.request.locked_clock = Hertz(*clock);
  row.measured_s = reader.positive("measured_time_s").value_or(0);
  row.precision = reader.choice<Precision>("precision").value_or(Precision::bf16);
  const auto device = presets.device(reader.text("device").value_or(options.device), options.folder);
  if (!device) {
    reader.bad("device", device.error());
  } else if (!(*device)->supports(row.precision)) {
    reader.bad("precision",
               fmt::format("device {} has no unit for {}", (*device)->name, name_of(row.precision)));
  } else if (row.request.tile && !compute::tile_fits(*row.request.tile, row.precision, **device)) {
    reader.bad("tile_m", "an SM of " + (*device)->name + " cannot hold the tile");
  } else {
    row.device = *device;
  }
  if (reader.failed()) return std::nullopt;
  return row;
}

/// Predicted seconds with this tile, or with the one that the model chooses.
double predict(const GemmRow& row, const std::optional<compute::GemmTile>& tile) {
  compute::GemmRequest request = row.request;
  request.tile = tile;
  return compute::gemm(row.shape, row.precision, *row.device, {}, request).time.value();
}

std::string describe(const compute::GemmShape& shape) {
  return fmt::format("{} x {} x {}", shape.m, shape.n, shape.k);
}

Regime regime_of(const GemmRow& row) {
  Regime regime;
  regime.device = row.device->name;
  regime.precision = name_of(row.precision);
  regime.operation = "gemm";
  return regime;
}

}  // namespace

void evaluate_gemms(const Table& table, Presets& presets, const EvaluateOptions& options, Evaluation& out) {
  out.metrics = {{"time", "kernel time, own tile", "s", {}},
                 {"time_long", "own tile, over 0.1 ms", "s", {}},
                 {"time_row_tile", "row's tile", "s", {}}};
  out.prediction_columns = {"predicted_time_s", "predicted_row_tile_time_s"};
  const ColumnIndex index(table);
  for (const TableRow& cells : table.rows) {
    RowReader reader(table, index, cells, out.problems);
    const std::optional<GemmRow> row = read_gemm(reader, presets, options);
    if (!row) continue;
    const Pair own{out.rows.size(), row->measured_s, predict(*row, std::nullopt)};
    out.metrics[0].pairs.push_back(own);
    if (row->measured_s > kLongKernel_s) out.metrics[1].pairs.push_back(own);
    std::optional<double> with_tile;
    if (row->request.tile) {
      with_tile = predict(*row, row->request.tile);
      out.metrics[2].pairs.push_back({own.row, row->measured_s, *with_tile});
    }
    out.predictions.push_back({cell(own.predicted), cell(with_tile)});
    out.rows.push_back(
        {cells.line, row_id(reader, table, cells), describe(row->shape), -1, {}, {}, regime_of(*row)});
  }
}

}  // namespace shardscape::validate
