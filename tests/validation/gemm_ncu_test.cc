// Kernels of cuBLAS on an A100, timed by Nsight Compute at a locked clock, against the shipped device.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/compute/gemm.h"
#include "sweep/yaml/load.h"
#include "tests/support/csv.h"
#include "tests/support/paths.h"

namespace shardscape::compute {
namespace {

constexpr double kLongKernel = 1e-4;

struct Kernel {
  GemmShape shape;
  GemmTile tile;
  Hertz clock;
  double time = 0, hbm_bytes = 0;
};

std::vector<Kernel> measured_kernels(const std::filesystem::path& file) {
  std::vector<Kernel> kernels;
  for (const test::CsvRow& cell : test::read_csv(file)) {
    const auto whole = [&](const char* name) { return std::stoi(cell.at(name)); };
    const auto real = [&](const char* name) { return std::stod(cell.at(name)); };
    kernels.push_back({{whole("m"), whole("n"), whole("k"), 1},
                       {whole("tile_m"), whole("tile_n"), whole("tile_k"), whole("stages")},
                       Hertz(real("sm_clock_hz")),
                       real("measured_time_s"),
                       real("measured_dram_read_bytes") + real("measured_dram_write_bytes")});
  }
  return kernels;
}

class GemmNcu : public testing::Test {
 protected:
  void SetUp() override {
    const std::filesystem::path file =
        std::filesystem::path(test::reference_dir()) / "measurements" / "gemm-a100-ncu.csv";
    if (!std::filesystem::exists(file)) GTEST_SKIP() << "no reference measurements at " << file;
    kernels_ = measured_kernels(file);
    ASSERT_EQ(kernels_.size(), 24U);
    const yaml::Catalog catalog({std::filesystem::path(test::source_dir())});
    device_ = yaml::load_device(catalog, "a100-sxm-80gb").value();
  }

  [[nodiscard]] GemmCost predict(const Kernel& kernel, const std::optional<GemmTile>& tile) const {
    return gemm(kernel.shape, Precision::bf16, device_, {}, {tile, kernel.clock});
  }

  std::vector<Kernel> kernels_;
  DeviceSpec device_;
};

struct Mean {
  double sum = 0;
  int count = 0;
  void add(double error) { sum += std::abs(error), ++count; }
  [[nodiscard]] double value() const { return sum / count; }
};

TEST_F(GemmNcu, LongKernelsWithTheModelsOwnTile) {
  Mean mean;
  for (const Kernel& kernel : kernels_) {
    if (kernel.time <= kLongKernel) continue;
    mean.add(predict(kernel, {}).time.value() / kernel.time - 1);
  }
  std::printf("%d kernels over 0.1 ms: mean error %.2f %%\n", mean.count, 100 * mean.value());
  EXPECT_LE(mean.value(), 0.02);
}

TEST_F(GemmNcu, AllKernelsWithTheirOwnTile) {
  Mean given, free;
  for (const Kernel& kernel : kernels_) {
    given.add(predict(kernel, kernel.tile).time.value() / kernel.time - 1);
    GemmTile tile = kernel.tile;
    tile.stages = 0;
    free.add(predict(kernel, tile).time.value() / kernel.time - 1);
  }
  std::printf("%d kernels: mean error %.2f %%, with free stages %.2f %%\n", given.count, 100 * given.value(),
              100 * free.value());
  EXPECT_LE(given.value(), 0.10);
  EXPECT_LE(free.value(), 0.10);
}

TEST_F(GemmNcu, DramTraffic) {
  Mean mean;
  for (const Kernel& kernel : kernels_)
    mean.add(predict(kernel, kernel.tile).hbm_bytes.value() / kernel.hbm_bytes - 1);
  std::printf("%d kernels: mean error of HBM bytes %.1f %%\n", mean.count, 100 * mean.value());
  EXPECT_LE(mean.value(), 0.15);
}

}  // namespace
}  // namespace shardscape::compute
