// Do tiles fit where their operands and sums fit?
#include "engine/compute/gemm_tiles.h"

#include <gtest/gtest.h>

#include "tests/support/a100.h"

namespace shardscape::compute {
namespace {

TEST(GemmTiles, SharedMemoryRegistersAndFour) {
  const DeviceSpec device = test::a100();  // 164 KiB, 256 KiB
  // 128 x 128: 64 KiB of sums, half of the registers hold two; 16 KiB per stage of bf16, 164 / 64 = 2.
  EXPECT_EQ(resident_ctas({128, 128, 32, 4}, 2, device), 2);
  EXPECT_EQ(resident_ctas({128, 128, 32, 6}, 2, device), 1);   // 96 KiB
  EXPECT_EQ(resident_ctas({128, 128, 32, 11}, 2, device), 0);  // 176 KiB
  EXPECT_EQ(resident_ctas({256, 128, 32, 3}, 2, device), 1);   // 128 KiB of sums
  EXPECT_EQ(resident_ctas({256, 256, 32, 2}, 2, device), 0);   // 256 KiB of sums
  EXPECT_EQ(resident_ctas({32, 32, 32, 2}, 2, device), 4);     // never more
}

TEST(GemmTiles, AsManyStagesAsHelp) {
  const DeviceSpec device = test::a100();
  // 64 x 64 x 64: 16 KiB per stage, 16 KiB of sums. Alone on its SM a CTA takes all six; of many, two with
  // five stages have 2 x 4 loads in flight, three with three 3 x 2, four with two 4 x 1.
  EXPECT_EQ(fit_stages({64, 64, 64, 0}, 1, 2, device).tile.stages, 6);
  const FittedTile many = fit_stages({64, 64, 64, 0}, 100, 2, device);
  EXPECT_EQ(many.tile.stages, 5);
  EXPECT_EQ(many.resident, 2);
  EXPECT_EQ(fit_stages({256, 256, 64, 0}, 1, 2, device).resident, 0);
}

TEST(GemmTiles, OperandsCarryTheirScales) {
  EXPECT_EQ(operand_bytes(Precision::bf16), 2);
  EXPECT_EQ(operand_bytes(Precision::tf32), 4);
  EXPECT_EQ(operand_bytes(Precision::fp8), 1);
  EXPECT_EQ(operand_bytes(Precision::fp4), 0.5 + 1.0 / 16);
}

TEST(GemmTiles, CandidatesLieBothWays) {
  for (const GemmTile& tile : candidate_tiles()) {
    bool found = false;
    for (const GemmTile& other : candidate_tiles()) found |= other.m == tile.n && other.n == tile.m;
    EXPECT_TRUE(found) << tile.m << " x " << tile.n;
  }
}

}  // namespace
}  // namespace shardscape::compute
