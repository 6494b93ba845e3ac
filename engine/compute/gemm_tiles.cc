#include "engine/compute/gemm_tiles.h"

#include <algorithm>

namespace shardscape::compute {

namespace {

constexpr std::array<GemmTile, 10> kTiles = {{{256, 128, 32, 0},
                                              {128, 256, 32, 0},
                                              {128, 128, 32, 0},
                                              {256, 64, 32, 0},
                                              {64, 256, 32, 0},
                                              {128, 64, 32, 0},
                                              {64, 128, 32, 0},
                                              {64, 64, 64, 0},
                                              {32, 64, 64, 0},
                                              {64, 32, 64, 0}}};

constexpr std::array<GemmTile, 3> kSkinnyTiles = {{{16, 64, 128, 0}, {16, 32, 256, 0}, {16, 16, 512, 0}}};

/// Largest first: tiles of all devices, then those that need warpgroups, then those that need pairs of SMs; devices use
/// the front part that they support.
constexpr std::size_t kPlainTiles = 23, kWarpgroupTiles = 29;
constexpr std::array<LibraryTile, 34> kLibraryTiles = {
    {{256, 128, 1}, {256, 64, 1},  {256, 32, 1},  {256, 16, 1},  {128, 256, 1}, {128, 128, 1}, {128, 64, 1},
     {128, 32, 1},  {128, 16, 1},  {64, 256, 1},  {64, 128, 1},  {64, 64, 1},   {64, 32, 1},   {64, 16, 1},
     {32, 256, 1},  {32, 128, 1},  {32, 64, 1},   {16, 256, 1},  {16, 128, 1},  {16, 64, 1},   {32, 32, 1},
     {16, 32, 1},   {32, 16, 1},   {8, 256, 1},   {8, 128, 1},   {8, 64, 1},    {256, 8, 1},   {128, 8, 1},
     {64, 8, 1},    {256, 256, 2}, {256, 192, 2}, {192, 256, 2}, {256, 128, 2}, {128, 256, 2}}};

constexpr double kAccumulatorShare = 0.5;
constexpr std::int32_t kMaxStages = 6;

}  // namespace

std::int32_t resident_ctas(const GemmTile& tile, double operand_bytes, const DeviceSpec& device) {
  const double stage_bytes = (tile.m + tile.n) * static_cast<double>(tile.k) * operand_bytes;
  const double by_sram = device.sm.sram.value() / (stage_bytes * tile.stages);
  const double by_registers =
      kAccumulatorShare * device.sm.registers.value() / (4.0 * tile.m * static_cast<double>(tile.n));
  return static_cast<std::int32_t>(std::min({by_sram, by_registers, static_cast<double>(kMostResident)}));
}

FittedTile fit_stages(GemmTile tile, double rounds, double operand_bytes, const DeviceSpec& device) {
  FittedTile best{tile, 0};
  double most = 0;
  for (tile.stages = 2; tile.stages <= kMaxStages; ++tile.stages) {
    const std::int32_t resident = resident_ctas(tile, operand_bytes, device);
    if (resident == 0) break;
    const double in_flight = (tile.stages - 1) * std::min<double>(resident, rounds);
    if (in_flight <= most) continue;
    most = in_flight;
    best = {tile, resident};
  }
  return best;
}

GemmTile deepest_stages(GemmTile tile, std::int32_t resident, double operand_bytes,
                        const DeviceSpec& device) {
  for (tile.stages = kMaxStages; tile.stages > 2; --tile.stages) {
    if (resident_ctas(tile, operand_bytes, device) >= resident) break;
  }
  return tile;
}

std::span<const GemmTile> candidate_tiles() { return kTiles; }
std::span<const LibraryTile> library_tiles(const DeviceSpec& device) {
  const std::span<const LibraryTile> all = kLibraryTiles;
  if (device.products.pairs) return all;
  return all.first(device.sm.fragment.per_cta == 1 ? kWarpgroupTiles : kPlainTiles);
}

std::span<const GemmTile> skinny_tiles() { return kSkinnyTiles; }

}  // namespace shardscape::compute
