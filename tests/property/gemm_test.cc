// Random matrix products: physical lower bounds, and monotone in every part of the device.
#include "engine/compute/gemm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/settings.h"

namespace shardscape::compute {
namespace {

constexpr std::uint64_t kSeed = 4242;
constexpr int kCases = 1500;

GemmShape random_shape(test::CaseRng& rng) {
  const auto extent = [&] { return static_cast<std::int64_t>(std::exp(rng.real(0, std::log(32768.0)))); };
  return {extent(), extent(), extent(), rng.coin() ? 1 : rng.integer(1, 64)};
}

std::string describe(const GemmShape& s, std::uint64_t i) {
  return "seed " + std::to_string(kSeed) + " case " + std::to_string(i) + ": " + std::to_string(s.m) + " x " +
         std::to_string(s.n) + " x " + std::to_string(s.k) + ", batch " + std::to_string(s.batch);
}

TEST(GemmBounds, NeitherThePeakNorTheMemoryIsBeaten) {
  const DeviceSpec device = test::a100();
  for (std::uint64_t i = 0; i < kCases; ++i) {
    test::CaseRng rng(kSeed, i);
    const GemmShape shape = random_shape(rng);
    SCOPED_TRACE(describe(shape, i));
    const GemmCost cost = gemm(shape, Precision::bf16, device);
    ASSERT_TRUE(std::isfinite(cost.time.value()));
    EXPECT_GE(cost.time, shape.flops() / device.tensor_peak(Precision::bf16));
    // Both operands are read at least once and the result is written once.
    const auto m = static_cast<double>(shape.m), n = static_cast<double>(shape.n),
               k = static_cast<double>(shape.k);
    const Bytes compulsory(2 * static_cast<double>(shape.batch) * (m * k + k * n + m * n));
    EXPECT_GE(cost.hbm_bytes.value(), compulsory.value() * (1 - 1e-12));
    EXPECT_GE(cost.time, compulsory / device.hbm_peak());
    EXPECT_GE(cost.time, device.kernel_latency);
    EXPECT_GT(cost.tile.m, 0);
  }
}

TEST(GemmMonotone, ABetterPartNeverSlowsAProduct) {
  struct Change {
    const char* name;
    void (*apply)(DeviceSpec&, double);
  };
  const Change changes[] = {
      {"hbm bandwidth", [](DeviceSpec& d, double x) { d.hbm.bandwidth_per_stack *= x; }},
      {"clock", [](DeviceSpec& d, double x) { d.sm.clock *= x; }},
      {"tensor rate", [](DeviceSpec& d, double x) { d.sm.tensor_flops_per_clock[2] *= x; }},
      {"l2 bandwidth", [](DeviceSpec& d, double x) { d.l2.bytes_per_clock *= x; }},
      {"sram bandwidth", [](DeviceSpec& d, double x) { d.sm.sram_bytes_per_clock *= x; }},
      {"l2 capacity", [](DeviceSpec& d, double x) { d.l2.capacity *= x; }},
      {"launch", [](DeviceSpec& d, double x) { d.kernel_latency /= x; }},
  };
  const DeviceSpec device = test::a100();
  for (std::uint64_t i = 0; i < kCases; ++i) {
    test::CaseRng rng(kSeed + 1, i);
    const GemmShape shape = random_shape(rng);
    SCOPED_TRACE(describe(shape, i));
    const Seconds before = gemm(shape, Precision::bf16, device).time;
    for (const Change& change : changes) {
      DeviceSpec better = device;
      change.apply(better, rng.real(1, 4));
      EXPECT_LE(gemm(shape, Precision::bf16, better).time.value(), before.value() * (1 + 1e-12))
          << change.name;
    }
  }
}

// More SMs: fewer waves. The wave's footprint in L2 changes with them, so memory is taken out of the
// question.
TEST(GemmMonotone, MoreSmsNeverSlowAProductThatFitsInL2) {
  DeviceSpec device = test::a100();
  device.l2 = {Bytes(1e15), 1e15};
  for (std::uint64_t i = 0; i < kCases; ++i) {
    test::CaseRng rng(kSeed + 2, i);
    const GemmShape shape = random_shape(rng);
    SCOPED_TRACE(describe(shape, i));
    DeviceSpec larger = device;
    larger.sm.count += rng.integer(1, 100);
    EXPECT_LE(gemm(shape, Precision::bf16, larger).time.value(),
              gemm(shape, Precision::bf16, device).time.value() * (1 + 1e-12));
  }
}

TEST(GemmMonotone, ABatchIsNeverFasterThanOneOfItsProducts) {
  const DeviceSpec device = test::a100();
  for (std::uint64_t i = 0; i < kCases; ++i) {
    test::CaseRng rng(kSeed + 3, i);
    const GemmShape shape = random_shape(rng);
    SCOPED_TRACE(describe(shape, i));
    GemmShape batched = shape;
    batched.batch += rng.integer(1, 8);
    EXPECT_GE(gemm(batched, Precision::bf16, device).time.value(),
              gemm({shape.m, shape.n, shape.k, 1}, Precision::bf16, device).time.value() * (1 - 1e-12));
  }
}

}  // namespace
}  // namespace shardscape::compute
