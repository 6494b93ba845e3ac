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
std::span<const GemmTile> skinny_tiles() { return kSkinnyTiles; }

}  // namespace shardscape::compute
