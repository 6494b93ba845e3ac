// The time of one matrix product on a GPU.
//
//   time = kernel latency + min over tiles, split-K, co-resident CTAs of max(compute, SRAM, L2, HBM)
//          + reduction of split-K
//
//   compute    waves x k-steps x time per step + epilogues + load latency. A CTA works on a tile_m x tile_n
//              output tile and walks K in steps of tile_k; waves = ceil(CTAs / SMs), since CTAs that share an
//              SM share its matrix units. A step takes its math or its share of the load latency, whichever
//              is larger: latency / (stages - 1) / co-resident CTAs. Math runs at efficiency x FLOPs per
//              clock x clock. The epilogue of a CTA writes its part of C to L2 (and reads it first where it
//              accumulates); nothing hides it. All of them take waves x tile bytes / port of an SM, or
//              CTAs x tile bytes / L2 bandwidth, whichever is longer.
//   SRAM       as compute, with steps that read the operands from shared memory: A once per column of
//              fragments, B once per row of them (DeviceSpec::Fragment).
//   L2         each CTA reads its panels of A and B through L2, those that a cluster shares once, and moves
//              its part of C.
//   HBM        operands as in gemm_traffic.h, and C. Co-resident CTAs are as many as fit or fewer, whichever
//              is faster: more hide the load latency, fewer keep their panels in L2.
//   reduction  split-K leaves fp32 partial sums; a second kernel adds them up.
//
// On a device whose energy is known (DeviceSpec::Energy) the kernels are those that a library chooses from:
//
//   time = kernel latency + (compute^4 + HBM^4 + power^4)^(1/4) + reduction of split-K
//
//   compute    the least over tiles (library_tiles) and splits of K of rounds x (steps x step + store): a round
//              is a tile per SM, or per pair of SMs; a step is 128 bytes deep and takes its math at the boost
//              clock, its operands through the port (products.port), or the latency that pipelining leaves
//              (products.step), whichever is longest. Partial sums are of 4 bytes.
//   HBM        operands once, since a whole layer lies between two uses, and C (products.output times)
//   power      what the limit of the step or of the burst allows (power.h)
//   reduction  products.reduction, where K is split: into as many parts as fill the SMs once or twice, 64 at
//              most, of two steps at least
//
// Compute, HBM and power get into each other's way where they are of a size, hence the 4-norm. Fitted to 1,500
// bf16 products that TensorRT-LLM's benchmark timed on five devices (AIConfigurator's tables, NVIDIA 2025); of
// shapes held out of the fit those over 0.1 ms are off by 3.5 to 7 % in the mean of a device. Without the power
// term it is 11 to 22 %, with 128 x 128 tiles alone 35 % on Blackwell, with a hard maximum 1 to 4 % more.
//
// Without energies the clock is the share of the boost clock that the power limit leaves (sustained.tensor); the
// time is that of one kernel in a busy stream. With `locked_clock` the time is what a profiler reports that locks the
// clock and clears the caches before each kernel (Nsight Compute's defaults): nothing throttles, and a cold
// start is added.
//
// Sources: NVIDIA, "Matrix Multiplication Background User's Guide" (tile and wave quantisation); CUTLASS
// "Efficient GEMM in CUDA" (tiling, split-K, software pipelining); the roofline model (Williams et al. 2009).
// Left out: clock changes within a kernel, stream-K, sparsity, layout effects, epilogues of one CTA behind
// the main loop of another.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/base/enum_names.h"
#include "engine/compute/gemm_tiles.h"
#include "engine/spec/device.h"

namespace shardscape {
/// The resource that limits an operator.
enum class Bound : std::uint8_t { compute, sram, l2, hbm, launch, link };
}  // namespace shardscape

namespace shardscape::compute {

/// `batch` independent products C[m,n] (+)= A[m,k] B[k,n] of equal shape.
struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t batch = 1;

  [[nodiscard]] Flops flops() const {
    return Flops(2.0 * static_cast<double>(batch) * static_cast<double>(m) * static_cast<double>(n) *
                 static_cast<double>(k));
  }
  friend bool operator==(const GemmShape&, const GemmShape&) = default;
};

/// How C is written: bytes per element, and whether it is read first (fp32 gradient accumulation: 4 bytes,
/// accumulated).
struct GemmOutput {
  double bytes_per_element = 2;
  bool accumulate = false;
};

/// Bytes per element of a product's output: fp8 and fp4 products give bf16.
constexpr double output_bytes(Precision precision) {
  return precision == Precision::fp8 || precision == Precision::fp4 ? bytes_per_element(Precision::bf16)
                                                                    : bytes_per_element(precision);
}

struct GemmRequest {
  /// This tile instead of the cheapest one; stages 0: as many as help. Both orientations over C are tried, since
  /// libraries that compute the transpose name tiles the other way round; the faster one counts.
  std::optional<GemmTile> tile = {};
  std::optional<Hertz> locked_clock = {};  ///< price it as profiled at this clock, see above
  /// Price a kernel alone, launched over and over for a short time, at the clock that such a burst leaves rather than
  /// the one that a whole step sustains.
  bool burst = false;
  /// Share of the rate of the device's matrix units that the kernel's products reach, above 0, at most 1.
  double share = 1;
};

struct GemmCost {
  Seconds time;  ///< time of the whole product, kernel latency included
  GemmTile tile;
  std::int32_t split_k = 1;
  double waves = 0;  ///< waves: ceil(CTAs / SMs)
  Bound bound = Bound::compute;
  Bytes hbm_bytes, l2_bytes, sram_bytes;
};

/// Cost with the cheapest tile, or with the requested one. All extents >= 1; the device must support `precision`; a
/// requested tile must fit. Takes about a microsecond and allocates nothing.
GemmCost gemm(const GemmShape& shape, Precision precision, const DeviceSpec& device, GemmOutput output = {},
              const GemmRequest& request = {});

/// Whether an SM holds at least one CTA of the tile.
bool tile_fits(GemmTile tile, Precision precision, const DeviceSpec& device);

}  // namespace shardscape::compute
