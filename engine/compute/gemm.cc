#include "engine/compute/gemm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "engine/base/check.h"

namespace shardscape::compute {

namespace {

/// Output tiles that vendor libraries ship for tensor cores, largest first: on equal time the larger tile
/// wins.
constexpr std::array<GemmTile, 9> kTiles = {{{256, 128, 32, 3},
                                             {128, 256, 32, 3},
                                             {128, 128, 32, 4},
                                             {256, 64, 32, 4},
                                             {64, 256, 32, 4},
                                             {128, 64, 32, 4},
                                             {64, 128, 32, 4},
                                             {64, 64, 64, 4},
                                             {32, 64, 64, 4}}};

/// Fits every device that validates; tried only where none of the others fits, as hand-written kernels for
/// small shared memories do.
constexpr GemmTile kLastResort = {32, 32, 32, 2};

/// Cycles from a global load's issue to its data in shared memory: an L2 hit on recent NVIDIA parts
/// (microbenchmarks of V100 and A100 report 190..270; Jia et al. 2018, Luo et al. 2024) plus the copy into
/// shared memory.
constexpr double kLoadLatencyCycles = 400;

/// Each operand element in shared memory is read once per warp row or column of a CTA of 2 x 2 warps.
constexpr double kSramReadsPerElement = 2;

/// fp32 accumulators live in registers, at most half of the file is theirs.
constexpr double kAccumulatorShare = 0.5;

struct Candidate {
  GemmTile tile;
  std::int32_t split_k;
};

double ceil_div(double a, double b) { return std::ceil(a / b); }

/// CTAs of this tile that fit on one SM at once; 0 where not even one fits.
std::int32_t resident_ctas(const GemmTile& tile, double operand_bytes, const DeviceSpec& device) {
  const double stage_bytes = (tile.m + tile.n) * static_cast<double>(tile.k) * operand_bytes;
  const double by_sram = device.sm.sram.value() / (stage_bytes * tile.stages);
  const double accumulator_bytes = 4.0 * tile.m * tile.n;
  const double by_registers = kAccumulatorShare * device.sm.registers.value() / accumulator_bytes;
  return static_cast<std::int32_t>(std::min({by_sram, by_registers, 4.0}));
}

/// Bytes of A and B that a wave of CTAs has to fetch from HBM, over all waves.
///
/// The CTAs of one wave form a patch of rows x columns of output tiles; they share panels through L2. A panel
/// of A (tile rows x K) is fetched once per column of patches, unless all of A stays in L2; likewise B.
double operand_hbm_bytes(const GemmShape& shape, const GemmTile& tile, double ctas_per_wave,
                         double operand_bytes, double l2_bytes) {
  const auto m = static_cast<double>(shape.m), n = static_cast<double>(shape.n),
             k = static_cast<double>(shape.k);
  const double rows = ceil_div(m, tile.m), columns = ceil_div(n, tile.n);
  const double a = m * k * operand_bytes, b = k * n * operand_bytes;
  if (a + b <= l2_bytes) return a + b;
  // CTAs are rasterised so that a wave covers a patch as square as the grid allows, which minimises its
  // panels.
  double patch_rows = std::clamp(std::round(std::sqrt(ctas_per_wave * tile.n / tile.m)), 1.0, rows);
  const double patch_columns = std::clamp(std::floor(ctas_per_wave / patch_rows), 1.0, columns);
  patch_rows = std::clamp(std::floor(ctas_per_wave / patch_columns), 1.0, rows);
  // Patches walk down the columns: B's panels of one column of patches are reused from L2 only while they fit
  // beside the stream of A.
  const double a_reads = ceil_div(columns, patch_columns);
  const double b_panel = std::min(n, patch_columns * tile.n) * k * operand_bytes;
  const double b_reads = b_panel <= 0.5 * l2_bytes ? 1 : ceil_div(rows, patch_rows);
  return (a <= 0.5 * l2_bytes ? a : a * a_reads) + b * b_reads;
}

GemmCost evaluate(const GemmShape& shape, Precision precision, const DeviceSpec& device, GemmOutput output,
                  const Candidate& candidate, std::int32_t resident) {
  const GemmTile& tile = candidate.tile;
  const double operand_bytes = bytes_per_element(precision);
  const auto m = static_cast<double>(shape.m), n = static_cast<double>(shape.n),
             k = static_cast<double>(shape.k);
  const double batch = static_cast<double>(shape.batch);
  const double ctas = batch * ceil_div(m, tile.m) * ceil_div(n, tile.n) * candidate.split_k;
  const double sms = static_cast<double>(device.sm.count);
  const double clock = device.sm.clock.value();

  // Compute: CTAs that share an SM share its tensor cores, so a wave of one CTA per SM is the unit of math,
  // and residents hide latency.
  const double steps = ceil_div(k / candidate.split_k, tile.k);
  const double rate =
      device.sustained.tensor * device.sm.tensor_flops_per_clock[static_cast<std::size_t>(precision)] * clock;
  const double step_math = 2.0 * tile.m * tile.n * tile.k / rate;
  const double rounds = ceil_div(ctas, sms);
  const double on_one_sm = std::min<double>(resident, rounds);
  const double step_latency = kLoadLatencyCycles / clock / (tile.stages - 1) / on_one_sm;
  const double prologue = kLoadLatencyCycles / clock;
  const double compute = rounds * steps * std::max(step_math, step_latency) + prologue;

  // SRAM, per SM.
  const double step_sram = kSramReadsPerElement * (tile.m + tile.n) * tile.k * operand_bytes;
  const double sram = rounds * steps * step_sram / (device.sm.sram_bytes_per_clock * clock);

  // L2 and HBM. Split-K adds fp32 partial sums, written and read once.
  const double c_elements = batch * m * n;
  const double c_bytes = c_elements * output.bytes_per_element * (output.accumulate ? 2 : 1);
  const double partial_bytes = candidate.split_k > 1 ? 2.0 * 4.0 * c_elements * candidate.split_k : 0;
  const double l2_bytes = ctas * steps * (tile.m + tile.n) * tile.k * operand_bytes + c_bytes + partial_bytes;
  const double ctas_per_wave = std::max(1.0, std::min(ctas / batch, sms * resident));
  const double spilled_partials = partial_bytes > device.l2.capacity.value() ? partial_bytes : 0;
  const double hbm_bytes =
      batch * operand_hbm_bytes(shape, tile, ctas_per_wave, operand_bytes, device.l2.capacity.value()) +
      c_bytes + spilled_partials;
  const double l2 = l2_bytes / device.l2_sustained().value();
  const double hbm = hbm_bytes / device.hbm_sustained().value();

  GemmCost cost;
  const double body = std::max({compute, sram, l2, hbm});
  const double reduction =
      candidate.split_k > 1 ? device.kernel_latency.value() : 0;  // a second kernel adds the parts up
  cost.time = device.kernel_latency + Seconds(body + reduction);
  cost.bound = device.kernel_latency.value() + reduction > body ? Bound::launch
               : body == hbm                                    ? Bound::hbm
               : body == l2                                     ? Bound::l2
               : body == sram                                   ? Bound::sram
                                                                : Bound::compute;
  cost.tile = tile;
  cost.split_k = candidate.split_k;
  cost.waves = ctas / (sms * resident);
  cost.hbm_bytes = Bytes(hbm_bytes);
  cost.l2_bytes = Bytes(l2_bytes);
  cost.sram_bytes = Bytes(ctas * steps * step_sram);
  return cost;
}

}  // namespace

GemmCost gemm(const GemmShape& shape, Precision precision, const DeviceSpec& device, GemmOutput output) {
  SHARDSCAPE_CHECK(shape.m >= 1 && shape.n >= 1 && shape.k >= 1 && shape.batch >= 1, shape.m, shape.n,
                   shape.k, shape.batch);
  SHARDSCAPE_CHECK(device.supports(precision), name_of(precision), device.name);
  GemmCost best;
  best.time = Seconds(std::numeric_limits<double>::infinity());
  const double sms = static_cast<double>(device.sm.count);
  const auto consider = [&](const GemmTile& tile) {
    const std::int32_t resident = resident_ctas(tile, bytes_per_element(precision), device);
    if (resident == 0) return;
    const double grid = static_cast<double>(shape.batch) * ceil_div(static_cast<double>(shape.m), tile.m) *
                        ceil_div(static_cast<double>(shape.n), tile.n);
    for (std::int32_t split = 1; split <= 16; split *= 2) {
      if (split > 1 && (grid * split > 2 * sms || shape.k < 2L * split * tile.k)) break;
      const GemmCost cost = evaluate(shape, precision, device, output, {tile, split}, resident);
      if (cost.time < best.time) best = cost;
    }
  };
  for (const GemmTile& tile : kTiles) consider(tile);
  if (best.tile.m == 0) consider(kLastResort);
  SHARDSCAPE_CHECK(best.tile.m > 0, "no tile fits", device.name);
  return best;
}

}  // namespace shardscape::compute
