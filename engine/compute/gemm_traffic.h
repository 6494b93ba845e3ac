// What a tiled matrix product reads from HBM: reuse of panels in L2.
//
// A CTA needs a panel of A (tile rows x K) and one of B (K x tile columns). Tiles are taken in bands of 8
// tile rows, column after column inside a band, as the threadblock swizzles of CUTLASS and cuBLAS do; so the
// CTAs that run together, a wave, cover a patch of up to 8 rows and as many columns as are left. With C the
// L2 capacity, W the bytes of the panels of a patch and a + b all of A and B:
//
//   A  is read once per band and then stays for the next patch as far as it finds room beside that one:
//      the share clamp((C - W) / min(W, a + b - W)) is not read again
//   B  is read once, and once more per further band but for the share clamp((C - W) / (a + b - W))
//
// Co-resident CTAs of one SM run out of phase: of the share of a patch that L2 cannot hold, 1 - C / W, each
// of them fetches its own.
//
// Source: reuse-distance analysis of an LRU cache (Mattson et al. 1970) applied to whole panels; CUTLASS
// "Threadblock rasterization". Against the DRAM reads that Nsight Compute counted for 18 large bf16 products
// on an A100 it is off by 6 % in the median, and 35 % low at worst (K = 8192, 128 tile rows, 448 tile
// columns). Left out: set conflicts, the split of L2 into partitions.
#pragma once

#include "engine/compute/gemm_tiles.h"

namespace shardscape::compute {

/// C[m,n] = A[m,k] B[k,n] in elements, as the caches see it.
struct PanelShape {
  double m = 0, n = 0, k = 0;
  double element_bytes = 2;
};

/// Bytes of A and B read from HBM by one product whose waves hold `ctas_per_wave` output tiles, `resident` of
/// them on each SM.
double operand_hbm_bytes(const PanelShape& shape, const GemmTile& tile, double ctas_per_wave, double resident,
                         double l2_capacity);

}  // namespace shardscape::compute
