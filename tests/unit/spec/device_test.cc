#include "engine/spec/device.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/settings.h"
#include "tests/support/violations.h"

namespace shardscape {
namespace {

using test::violations;

// NVIDIA's A100 data sheet: 312 TFLOP/s bf16, 156 tf32, 19.5 fp32, 80 GB (80 GiB of HBM), 2039 GB/s.
TEST(Device, PeaksFollowFromThePartsAndMatchTheDataSheet) {
  const DeviceSpec device = test::a100();
  EXPECT_NEAR(device.tensor_peak(Precision::bf16).value(), 312e12, 0.5e12);
  EXPECT_NEAR(device.tensor_peak(Precision::tf32).value(), 156e12, 0.25e12);
  EXPECT_NEAR(device.vector_peak().value(), 19.5e12, 0.05e12);
  EXPECT_DOUBLE_EQ(device.memory_capacity().value(), 80 * std::pow(2.0, 30));
  EXPECT_DOUBLE_EQ(device.hbm_peak().value(), 2039e9);
  EXPECT_DOUBLE_EQ(device.hbm_sustained().value(), 0.8 * 2039e9);
  EXPECT_DOUBLE_EQ(device.l2_sustained().value(), 0.8 * 5120 * 1.41e9);
  EXPECT_TRUE(device.supports(Precision::bf16));
  EXPECT_FALSE(device.supports(Precision::fp8));
}

TEST(Device, PrecisionsHaveTheirStorageSizes) {
  EXPECT_EQ(bytes_per_element(Precision::fp32), 4);
  EXPECT_EQ(bytes_per_element(Precision::tf32), 4);
  EXPECT_EQ(bytes_per_element(Precision::bf16), 2);
  EXPECT_EQ(bytes_per_element(Precision::fp16), 2);
  EXPECT_EQ(bytes_per_element(Precision::fp8), 1);
  EXPECT_EQ(bytes_per_element(Precision::fp4), 0.5);
}

TEST(DeviceValidate, EveryRuleOnce) {
  const auto broken = [](auto change) {
    DeviceSpec device = test::a100();
    change(device);
    return violations(device);
  };
  EXPECT_EQ(broken([](DeviceSpec&) {}), "");
  EXPECT_EQ(broken([](DeviceSpec& d) { d.sm.count = 0; }), "sm.count");
  EXPECT_EQ(broken([](DeviceSpec& d) { d.sm.clock = Hertz(0); }), "sm.clock");
  EXPECT_EQ(broken([](DeviceSpec& d) { d.sm.clock = Hertz(std::nan("")); }), "sm.clock");
  EXPECT_EQ(broken([](DeviceSpec& d) { d.sm.vector_flops_per_clock = 0; }), "sm.vector_flops_per_clock");
  EXPECT_EQ(broken([](DeviceSpec& d) { d.sm.registers = Bytes(0); }), "sm.registers");
  EXPECT_EQ(broken([](DeviceSpec& d) { d.sm.sram = Bytes(-1); }), "sm.sram");
  EXPECT_EQ(broken([](DeviceSpec& d) { d.sm.sram_bytes_per_clock = 0; }), "sm.sram_bytes_per_clock");
  EXPECT_EQ(broken([](DeviceSpec& d) { d.sm.tensor_flops_per_clock = {}; }), "sm.tensor_flops_per_clock");
  EXPECT_EQ(broken([](DeviceSpec& d) { d.sm.tensor_flops_per_clock[0] = -1; }), "sm.tensor_flops_per_clock");
  EXPECT_EQ(broken([](DeviceSpec& d) { d.l2.capacity = Bytes(0); }), "l2.capacity");
  EXPECT_EQ(broken([](DeviceSpec& d) { d.l2.bytes_per_clock = 0; }), "l2.bytes_per_clock");
  EXPECT_EQ(broken([](DeviceSpec& d) { d.hbm.stacks = 0; }), "hbm.stacks");
  EXPECT_EQ(broken([](DeviceSpec& d) { d.hbm.capacity_per_stack = Bytes(0); }), "hbm.capacity_per_stack");
  EXPECT_EQ(broken([](DeviceSpec& d) { d.hbm.bandwidth_per_stack = BytesPerSecond(0); }),
            "hbm.bandwidth_per_stack");
  EXPECT_EQ(broken([](DeviceSpec& d) { d.sustained.tensor = 0; }), "sustained.tensor");
  EXPECT_EQ(broken([](DeviceSpec& d) { d.sustained.hbm = 1.01; }), "sustained.hbm");
  EXPECT_EQ(broken([](DeviceSpec& d) { d.sustained.l2 = -1; }), "sustained.l2");
  EXPECT_EQ(broken([](DeviceSpec& d) { d.kernel_latency = Seconds(-1e-6); }), "kernel_latency");
}

}  // namespace
}  // namespace shardscape
