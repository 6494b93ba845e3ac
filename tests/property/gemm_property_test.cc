// No shape beats the roofline, and no better device is slower.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/counter_rng.h"
#include "engine/compute/gemm.h"
#include "tests/support/a100.h"
#include "tests/support/seeds.h"

namespace shardscape::compute {
namespace {

struct Case {
  GemmShape shape;
  GemmOutput output;
};

/// Extents of 1 .. 2^14, even over the magnitudes, at random near powers of two.
Case random_case(CounterRng& random) {
  const auto extent = [&] { return static_cast<std::int64_t>(std::exp2(14 * random.uniform())); };
  Case c{{extent(), extent(), extent(), 1}, {random.below(2) == 0 ? 2.0 : 4.0, random.below(2) == 0}};
  if (random.below(3) == 0) c.shape.batch = 1 + static_cast<std::int64_t>(random.below(64));
  return c;
}

std::string text(std::uint64_t seed, const GemmShape& s) {
  return "seed " + std::to_string(seed) + ": " + std::to_string(s.batch) + " x (" + std::to_string(s.m) +
         ", " + std::to_string(s.n) + ", " + std::to_string(s.k) + ")";
}

/// An A100 with every part drawn anew.
DeviceSpec random_device(CounterRng& random) {
  DeviceSpec d = test::a100();
  const auto times = [&](double low, double high) { return low * std::pow(high / low, random.uniform()); };
  d.sm.count = 4 + static_cast<std::int64_t>(random.below(200));
  d.sm.clock *= times(0.3, 3);
  d.sm.sram *= times(0.2, 4);
  d.sm.registers *= times(0.25, 4);
  d.sm.sram_bytes_per_clock *= times(0.25, 4);
  d.sm.l2_bytes_per_clock *= times(0.25, 4);
  d.sm.load_latency_clocks *= times(0.1, 4);
  d.sm.tensor_flops_per_clock[static_cast<std::size_t>(Precision::bf16)] *= times(0.1, 8);
  d.sm.cluster = 1 << random.below(3);
  d.l2.capacity *= times(0.02, 8);
  d.l2.bytes_per_clock *= times(0.1, 4);
  d.hbm.bandwidth_per_stack *= times(0.05, 8);
  return d;
}

using Change = std::pair<const char*, std::function<void(DeviceSpec&, double)>>;
const std::vector<Change> kBetterParts = {
    {"hbm bandwidth", [](DeviceSpec& d, double k) { d.hbm.bandwidth_per_stack *= k; }},
    {"clock", [](DeviceSpec& d, double k) { d.sm.clock *= k; }},
    {"l2 bandwidth", [](DeviceSpec& d, double k) { d.l2.bytes_per_clock *= k; }},
    {"l2 port", [](DeviceSpec& d, double k) { d.sm.l2_bytes_per_clock *= k; }},
    {"sram bandwidth", [](DeviceSpec& d, double k) { d.sm.sram_bytes_per_clock *= k; }},
    {"load latency", [](DeviceSpec& d, double k) { d.sm.load_latency_clocks /= k; }},
    {"tensor cores",
     [](DeviceSpec& d, double k) {
       d.sm.tensor_flops_per_clock[static_cast<std::size_t>(Precision::bf16)] *= k;
     }},
    {"l2 capacity", [](DeviceSpec& d, double k) { d.l2.capacity *= k; }},
    {"sram capacity", [](DeviceSpec& d, double k) { d.sm.sram *= k; }},
    {"registers", [](DeviceSpec& d, double k) { d.sm.registers *= k; }}};

TEST(GemmProperty, NotBelowTheRoofline) {
  const DeviceSpec device = test::a100();
  for (std::uint64_t seed = 0; seed < test::seeds(3000); ++seed) {
    CounterRng random(seed, 1);
    const auto [shape, output] = random_case(random);
    SCOPED_TRACE(text(seed, shape));
    const GemmCost cost = gemm(shape, Precision::bf16, device, output);
    const auto b = static_cast<double>(shape.batch), m = static_cast<double>(shape.m),
               n = static_cast<double>(shape.n), k = static_cast<double>(shape.k);
    const double compulsory =
        b * (2 * m * k + 2 * k * n + output.bytes_per_element * m * n * (output.accumulate ? 2 : 1));
    EXPECT_GE(cost.time.value() * (1 + 1e-12),
              2 * b * m * n * k / (0.85 * device.tensor_peak(Precision::bf16).value()));
    EXPECT_GE(cost.time.value(), compulsory / device.hbm_peak().value());
    EXPECT_GE(cost.hbm_bytes.value() * (1 + 1e-12), compulsory);
    EXPECT_GE(cost.time, device.kernel_latency);
  }
}

TEST(GemmProperty, BetterPartsAreNeverSlower) {
  for (std::uint64_t seed = 0; seed < test::seeds(1000); ++seed) {
    CounterRng random(seed, 2);
    const auto [shape, output] = random_case(random);
    const double before = gemm(shape, Precision::bf16, test::a100(), output).time.value();
    for (const auto& [name, change] : kBetterParts) {
      SCOPED_TRACE(text(seed, shape) + " " + name);
      DeviceSpec better = test::a100();
      change(better, 1 + random.uniform());
      EXPECT_LE(gemm(shape, Precision::bf16, better, output).time.value(), before * (1 + 1e-12));
    }
  }
}

TEST(GemmProperty, BetterPartsOfAnyDeviceAreNeverSlower) {
  for (std::uint64_t seed = 0; seed < test::seeds(3000); ++seed) {
    CounterRng random(seed, 7);
    const auto [shape, output] = random_case(random);
    const DeviceSpec device = random_device(random);
    const double before = gemm(shape, Precision::bf16, device, output).time.value();
    for (const auto& [name, change] : kBetterParts) {
      SCOPED_TRACE(text(seed, shape) + " " + name);
      DeviceSpec better = device;
      change(better, 1 + 2 * random.uniform());
      EXPECT_LE(gemm(shape, Precision::bf16, better, output).time.value(), before * (1 + 1e-12));
    }
  }
}

TEST(GemmProperty, BetterPartsOfAPoweredDeviceAreNeverSlower) {
  auto parts = kBetterParts;
  parts.push_back({"power", [](DeviceSpec& d, double k) {
                     d.power = Watts(k * d.power.value());
                     d.energy.burst_watts *= k;
                   }});
  parts.push_back({"energy", [](DeviceSpec& d, double k) { d.energy.flop_pj /= k, d.energy.byte_pj /= k; }});
  parts.push_back({"idle", [](DeviceSpec& d, double k) { d.energy.idle_watts /= k; }});
  parts.push_back({"step", [](DeviceSpec& d, double k) { d.products.step /= k; }});
  parts.push_back({"reduction", [](DeviceSpec& d, double k) { d.products.reduction /= k; }});
  parts.push_back({"port", [](DeviceSpec& d, double k) { d.products.port *= k; }});
  parts.push_back({"multiprocessors", [](DeviceSpec& d, double k) {
                     d.sm.count = static_cast<std::int64_t>(k * static_cast<double>(d.sm.count));
                   }});
  for (std::uint64_t seed = 0; seed < test::seeds(2000); ++seed) {
    CounterRng random(seed, 10);
    const auto [shape, output] = random_case(random);
    DeviceSpec device = random_device(random);
    device.power = Watts(100 + 900 * random.uniform());
    device.energy = {90 * random.uniform(), 2 * random.uniform() + 0.01, 0.5, 0.25, 50, 1100};
    device.products = {
        Seconds(3e-6),       Seconds(5e-7 * random.uniform()), Seconds(5e-6 * random.uniform()), 1.2, 48,
        random.below(2) == 0};
    const bool burst = random.below(2) == 0;
    const GemmRequest request{{}, {}, burst};
    const GemmCost before = gemm(shape, Precision::bf16, device, output, request);
    // Never below what units, memory or watts need alone.
    const double units = shape.flops() / (device.tensor_peak(Precision::bf16)) / Seconds(1);
    EXPECT_GE(before.time.value(), units);
    EXPECT_GE(before.time, before.hbm_bytes / device.hbm_sustained());
    for (const auto& [name, change] : parts) {
      SCOPED_TRACE(text(seed, shape) + " " + name);
      DeviceSpec better = device;
      change(better, 1 + 2 * random.uniform());
      EXPECT_LE(gemm(shape, Precision::bf16, better, output, request).time, before.time * (1 + 1e-12));
    }
  }
}

TEST(GemmProperty, MoreSramIsNeverSlowerWhereMoreCtasWouldSpillL2) {
  // Products whose k is so long that the panels of few CTAs fill L2: what more of them at once would cost.
  for (std::uint64_t seed = 0; seed < test::seeds(1000); ++seed) {
    CounterRng random(seed, 8);
    const auto extent = [&](double low, double high) {
      return static_cast<std::int64_t>(low * std::pow(high / low, random.uniform()));
    };
    const GemmShape shape{extent(64, 512), extent(2000, 20000), extent(1000, 20000), 1};
    SCOPED_TRACE(text(seed, shape));
    DeviceSpec device = test::a100();
    device.sm.sram = Bytes(48 * 1024.0);
    double before = gemm(shape, Precision::bf16, device).time.value();
    for (int step = 0; step < 12; ++step) {
      device.sm.sram *= 1.2;
      const double now = gemm(shape, Precision::bf16, device).time.value();
      EXPECT_LE(now, before * (1 + 1e-12)) << device.sm.sram.value() / 1024 << " KiB";
      before = now;
    }
  }
}

TEST(GemmProperty, MoreMultiprocessorsAreNotSlower) {
  const DeviceSpec device = test::a100();
  for (std::uint64_t seed = 0; seed < test::seeds(1000); ++seed) {
    CounterRng random(seed, 3);
    const auto [shape, output] = random_case(random);
    SCOPED_TRACE(text(seed, shape));
    DeviceSpec larger = device;
    larger.sm.count += 1 + static_cast<std::int64_t>(random.below(100));
    EXPECT_LE(gemm(shape, Precision::bf16, larger, output).time.value(),
              gemm(shape, Precision::bf16, device, output).time.value() * (1 + 1e-12));
  }
}

TEST(GemmProperty, MoreMultiprocessorsOfAnyDeviceAreNotSlower) {
  // More CTAs at once read more panels at once. Where L2 holds both operands they never have to be read
  // again; where it does not, a machine that got SMs but no L2 may fetch more from HBM.
  constexpr double kSpilling = 0.05;
  for (std::uint64_t seed = 0; seed < test::seeds(3000); ++seed) {
    CounterRng random(seed, 9);
    const auto [shape, output] = random_case(random);
    SCOPED_TRACE(text(seed, shape));
    DeviceSpec device = random_device(random);
    const double operands =
        2 * static_cast<double>((shape.m + shape.n) * shape.k);  // bytes of one product of the batch
    const double band = operands <= device.l2.capacity.value() ? 1e-12 : kSpilling;
    const double before = gemm(shape, Precision::bf16, device, output).time.value();
    device.sm.count += 1 + static_cast<std::int64_t>(random.below(100));
    EXPECT_LE(gemm(shape, Precision::bf16, device, output).time.value(), before * (1 + band));
  }
}

TEST(GemmProperty, ADeeperOrLargerBatchIsNotFaster) {
  const DeviceSpec device = test::a100();
  for (std::uint64_t seed = 0; seed < test::seeds(1000); ++seed) {
    CounterRng random(seed, 4);
    auto [shape, output] = random_case(random);
    SCOPED_TRACE(text(seed, shape));
    const double before = gemm(shape, Precision::bf16, device, output).time.value();
    GemmShape twice = shape;
    twice.batch *= 2;
    EXPECT_GE(gemm(twice, Precision::bf16, device, output).time.value(), before * (1 - 1e-12));
    twice = shape;
    twice.k *= 2;
    EXPECT_GE(gemm(twice, Precision::bf16, device, output).time.value(), before * (1 - 1e-12)) << "k";
  }
}

TEST(GemmProperty, TheChosenTileBeatsEveryOther) {
  const DeviceSpec device = test::a100();
  for (std::uint64_t seed = 0; seed < test::seeds(500); ++seed) {
    CounterRng random(seed, 5);
    const auto [shape, output] = random_case(random);
    SCOPED_TRACE(text(seed, shape));
    const GemmCost best = gemm(shape, Precision::bf16, device, output);
    for (GemmTile tile : candidate_tiles()) {
      tile.stages = static_cast<std::int32_t>(random.below(5)) + 2;
      if (!tile_fits(tile, Precision::bf16, device)) continue;
      EXPECT_GE(gemm(shape, Precision::bf16, device, output, {tile, {}}).time.value(),
                best.time.value() * (1 - 1e-12))
          << tile.m << " x " << tile.n << " x " << tile.k << ", " << tile.stages << " stages";
    }
    // Asked for, the chosen tile costs the same.
    EXPECT_LE(gemm(shape, Precision::bf16, device, output, {best.tile, {}}).time.value(),
              best.time.value() * (1 + 1e-12));
  }
}

TEST(GemmProperty, AFasterClockIsNotSlower) {
  const DeviceSpec device = test::a100();
  for (std::uint64_t seed = 0; seed < test::seeds(500); ++seed) {
    CounterRng random(seed, 6);
    const auto [shape, output] = random_case(random);
    SCOPED_TRACE(text(seed, shape));
    const auto at = [&, &shape = shape, &output = output](double clock) {
      return gemm(shape, Precision::bf16, device, output, {{}, Hertz(clock)}).time.value();
    };
    const double clock = 0.5e9 + 1e9 * random.uniform();
    EXPECT_LE(at(clock * (1 + random.uniform())), at(clock) * (1 + 1e-12));
  }
}

}  // namespace
}  // namespace shardscape::compute
