// Which CTA tiles a matrix product may use, and how many CTAs of a tile an SM holds.
//
// A CTA needs, per pipeline stage, (m + n) x k operands in shared memory, and m x n fp32 accumulators in
// registers, of which half of the file at most is theirs (addresses, fragments and epilogue take the rest):
//
//   CTAs per SM = min(SRAM / (stages x (m + n) x k x operand bytes), registers / 2 / (4 m n), 4)
//
// Source: CUTLASS, "Efficient GEMM in CUDA"; the tiles are those that NVIDIA's libraries ship for tensor
// cores.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "engine/spec/device.h"

namespace shardscape::compute {

inline constexpr std::int32_t kMostResident = 4;  ///< most CTAs of one kernel on an SM

struct GemmTile {
  std::int32_t m = 0, n = 0, k = 0;
  std::int32_t stages = 0;  ///< buffers of the load pipeline, >= 2; in a request 0: as many as help
};

/// A tile that fits on an SM, and how many CTAs of it do.
struct FittedTile {
  GemmTile tile;
  std::int32_t resident = 0;  ///< CTAs of it on one SM at once; 0: the tile does not fit
};

/// Number of CTAs of `tile` that fit on one SM at once; `tile.stages` must be given.
std::int32_t resident_ctas(const GemmTile& tile, double operand_bytes, const DeviceSpec& device);

/// `tile` with the number of stages, 2 to 6, that keeps most loads in flight on an SM to which at most
/// `rounds` CTAs come; among equals the smallest number.
FittedTile fit_stages(GemmTile tile, double rounds, double operand_bytes, const DeviceSpec& device);

/// `tile` with the largest number of stages, 2 to 6, at which `resident` CTAs of it fit; 2 where none does.
GemmTile deepest_stages(GemmTile tile, std::int32_t resident, double operand_bytes, const DeviceSpec& device);

/// The tiles that are tried, largest first, so that the larger of two equally fast tiles wins. k is for two-byte
/// operands.
std::span<const GemmTile> candidate_tiles();

/// Further tiles for a C of at most kSkinnyRows rows (for as few columns, their transposes). They are one
/// matrix instruction high and deep in k, so that a few columns keep enough loads in flight.
std::span<const GemmTile> skinny_tiles();
inline constexpr std::int64_t kSkinnyRows = 16;

/// A tile of a library's kernels, which `sms` SMs compute: one, or a pair that shares it.
struct LibraryTile {
  std::int32_t m = 0, n = 0;
  std::int32_t sms = 1;
};

/// Tiles that NVIDIA's libraries choose from, with sides of 16 to 256; from 8 on where a warpgroup feeds all matrix
/// units (wgmma and tcgen05 take 8 columns); and those of pairs of SMs where the device has pairs.
std::span<const LibraryTile> library_tiles(const DeviceSpec& device);

/// The tile that fits every valid device, at any precision.
inline constexpr GemmTile kSmallestTile = {32, 32, 32, 2};

}  // namespace shardscape::compute
