#include "engine/compute/gemm_traffic.h"

#include <algorithm>
#include <cmath>

namespace shardscape::compute {

namespace {

constexpr double kBandRows = 8;

/// Share of reused data that a cache of `room` bytes still holds after `between` other bytes.
double kept_share(double room, double between) { return between <= room ? 1 : std::max(0.0, room / between); }

}  // namespace

double operand_hbm_bytes(const PanelShape& shape, const GemmTile& tile, double ctas_per_wave, double resident,
                         double l2_capacity) {
  const double a = shape.m * shape.k * shape.element_bytes;
  const double b = shape.n * shape.k * shape.element_bytes;
  if (a + b <= l2_capacity) return a + b;

  const double rows = std::ceil(shape.m / tile.m), columns = std::ceil(shape.n / tile.n);
  double patch_rows = std::min(rows, kBandRows);
  const double patch_columns = std::clamp(ctas_per_wave / patch_rows, 1.0, columns);
  patch_rows = std::clamp(ctas_per_wave / patch_columns, 1.0, rows);
  const double patch = a * patch_rows / rows + b * patch_columns / columns;

  const double room = l2_capacity - patch, rest = a + b - patch;
  const double patches = columns / patch_columns, bands = rows / patch_rows;
  const double a_reads = 1 + (patches - 1) * (1 - kept_share(room, std::min(patch, rest)));
  const double b_reads = 1 + (bands - 1) * (1 - kept_share(room, rest));
  const double spill = std::max(0.0, 1 - l2_capacity / patch);
  return (a * a_reads + b * b_reads) * (1 + (resident - 1) * spill);
}

}  // namespace shardscape::compute
