#include <fmt/format.h>

#include "engine/compute/gemm.h"
#include "sweep/validate/benchmark_row.h"

namespace shardscape::validate {

namespace {

struct GemmRow {
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

void read_row(RowReader& reader, Presets& presets, const EvaluateOptions& options, Benchmark& row) {
  const std::optional<GemmRow> read = read_gemm(reader, presets, options);
  if (!read) return;
  const compute::GemmShape& shape = read->shape;
  row.what = fmt::format("{} x {} x {}", shape.m, shape.n, shape.k);
  row.regime.device = read->device->name;
  row.regime.precision = name_of(read->precision);
  row.regime.operation = "gemm";
  row.measured = {read->measured_s, read->measured_s};
  row.predicted[0] = predict(*read, std::nullopt);
  if (read->request.tile) row.predicted[1] = predict(*read, read->request.tile);
}

}  // namespace

ReadBenchmark gemm_rows(Presets& presets, const EvaluateOptions& options) {
  return [&](RowReader& reader, Benchmark& row) { read_row(reader, presets, options, row); };
}

}  // namespace shardscape::validate
