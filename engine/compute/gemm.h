// The time of one matrix product on a GPU.
//
//   time = kernel latency + min over tiles, split-K of max(compute, SRAM, L2, HBM)
//
//   compute  rounds x k-steps x time per step + prologue. A CTA works on a tile_m x tile_n output tile and
//            walks K in steps of tile_k; rounds = ceil(CTAs / SMs), since CTAs that share an SM share its
//            tensor cores. A step takes the larger of its math and its share of the memory latency, which
//            the pipeline stages and the co-resident CTAs hide.
//   SRAM     every step reads (tile_m + tile_n) x tile_k operands per CTA from shared memory, as many times
//   as warps share no registers. L2       each CTA reads its panels of A and B through L2: CTAs x (tile_m +
//   tile_n) x K operands, and writes C. HBM      compulsory traffic, plus re-reads of the panels that the
//   co-resident wave does not find in L2.
//
// Sources: NVIDIA, "Matrix Multiplication Background User's Guide" (tile and wave quantisation); CUTLASS
// "Efficient GEMM in CUDA" (tiling, split-K, software pipelining); Mei and Chu 2017 and later microbenchmarks
// for latencies.
//
// Left out: clock changes within a kernel, stream-K, sparsity, layout effects.
#pragma once

#include <cstdint>

#include "engine/base/enum_names.h"
#include "engine/spec/device.h"

namespace shardscape {
/// What limits an operator.
enum class Bound : std::uint8_t { compute, sram, l2, hbm, launch, link };
SHARDSCAPE_ENUM_NAMES(Bound, "compute", "sram", "l2", "hbm", "launch", "link");
}  // namespace shardscape

namespace shardscape::compute {

/// `batch` independent products C[m,n] (+)= A[m,k] B[k,n].
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

struct GemmTile {
  std::int32_t m = 0, n = 0, k = 0;
  std::int32_t stages = 0;
};

struct GemmCost {
  Seconds time;  ///< kernel latency included
  GemmTile tile;
  std::int32_t split_k = 1;
  double waves = 0;  ///< CTAs / (SMs x CTAs per SM), not rounded up
  Bound bound = Bound::compute;
  Bytes hbm_bytes, l2_bytes, sram_bytes;
};

/// The cheapest tile's cost. All extents >= 1; the device must support `precision`.
GemmCost gemm(const GemmShape& shape, Precision precision, const DeviceSpec& device, GemmOutput output = {});

}  // namespace shardscape::compute
