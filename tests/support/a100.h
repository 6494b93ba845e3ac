// An A100 SXM 80 GB for tests: the numbers of its data sheet, and round achieved shares.
#pragma once

#include "engine/spec/device.h"

namespace shardscape::test {

inline DeviceSpec a100() {
  DeviceSpec device;
  device.name = "a100";
  device.sm.count = 108;
  device.sm.clock = Hertz(1.41e9);
  device.sm.tensor_flops_per_clock[static_cast<std::size_t>(Precision::tf32)] = 1024;
  device.sm.tensor_flops_per_clock[static_cast<std::size_t>(Precision::bf16)] = 2048;
  device.sm.tensor_flops_per_clock[static_cast<std::size_t>(Precision::fp16)] = 2048;
  device.sm.vector_flops_per_clock = 128;
  device.sm.registers = Bytes(256 * 1024);
  device.sm.sram = Bytes(164 * 1024);
  device.sm.sram_bytes_per_clock = 128;
  device.l2.capacity = Bytes(40 * 1024 * 1024);
  device.l2.bytes_per_clock = 5120;
  device.hbm.stacks = 5;
  device.hbm.capacity_per_stack = Bytes(16.0 * 1024 * 1024 * 1024);
  device.hbm.bandwidth_per_stack = BytesPerSecond(2039e9 / 5);
  device.sustained = {0.85, 0.8, 0.8};
  device.kernel_latency = Seconds(3e-6);
  return device;
}

}  // namespace shardscape::test
