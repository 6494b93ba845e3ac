// Is HBM traffic what whole panels in an L2 of that size leave?
#include "engine/compute/gemm_traffic.h"

#include <gtest/gtest.h>

namespace shardscape::compute {
namespace {

constexpr GemmTile kTile = {128, 128, 32, 3};
// 64 x 64 tiles of 128 x 128, K = 4096 in bf16: panels of 1 MiB, A and B 64 MiB each.
constexpr PanelShape kSquare = {8192, 8192, 4096, 2};
constexpr double kMiB = 1024.0 * 1024;

double reads(double wave, double resident, double capacity_mib) {
  return operand_hbm_bytes(kSquare, kTile, wave, resident, capacity_mib * kMiB) / kMiB;
}

TEST(GemmTraffic, OnceWhereAllFits) {
  EXPECT_EQ(reads(108, 1, 128), 128);
  EXPECT_EQ(reads(216, 2, 1000), 128);
}

TEST(GemmTraffic, NothingIsKeptFromPatchToPatch) {
  // 128 tiles run together: 8 rows x 16 columns, 24 MiB of panels. With an L2 of exactly that, each of the
  // 8 bands x 4 patches reads its 24 panels: 768 MiB.
  EXPECT_DOUBLE_EQ(reads(128, 1, 24), 768);
  // Twice the patch: A's 8 panels of a band stay while its columns go by, 8 x (8 + 64); B is read by each
  // band, but for the 24 MiB of the 104 beside the patch that L2 has room for.
  const double kept = 24.0 / 104;
  EXPECT_NEAR(reads(128, 1, 48), 64 + 64 * (1 + 7 * (1 - kept)), 1e-9);
}

TEST(GemmTraffic, ResidentsOutOfPhaseFetchTheirOwn) {
  // The patch of 24 MiB in 12: half of it spills, which each of two residents fetches for itself.
  EXPECT_DOUBLE_EQ(reads(128, 2, 12), 768 * 1.5);
  EXPECT_DOUBLE_EQ(reads(128, 1, 12), 768);
}

TEST(GemmTraffic, OneTileRowReadsEverythingOnce) {
  // Few rows: A's single panel stays, B passes once.
  const double a = 128 * 4096 * 2, b = 65536.0 * 4096 * 2;
  EXPECT_DOUBLE_EQ(operand_hbm_bytes({128, 65536, 4096, 2}, kTile, 20, 1, 42 * kMiB), a + b);
}

TEST(GemmTraffic, ALargerCacheNeverReadsMore) {
  for (const double wave : {1.0, 20.0, 108.0, 216.0, 4096.0}) {
    double before = 1e300;
    for (double capacity = 1; capacity < 200; capacity += 0.5) {
      const double now = reads(wave, 2, capacity);
      EXPECT_LE(now, before * (1 + 1e-12)) << wave << ' ' << capacity;
      EXPECT_GE(now, 128);
      before = now;
    }
    EXPECT_EQ(before, 128);
  }
}

}  // namespace
}  // namespace shardscape::compute
