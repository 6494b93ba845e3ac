// Are pools of unequal devices and precisions read, written out again, and refused where they have no effect or cannot
// take each other's caches?
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/study/study_text.h"

namespace shardscape::sweep {
namespace {

const std::string kPools = "space: {prefill_gpus: 8, tensor_parallel: [1]}\n";

/// A device in full, with so many SMs.
std::string device(const std::string& name, int sms) {
  return "{name: " + name + ", sm: {count: " + std::to_string(sms) +
         ", clock: 1 GHz, tensor_flops_per_clock: {bf16: 1024}, vector_flops_per_clock: 128, registers: 256 "
         "KiB, "
         "sram: 100 KiB, sram_bytes_per_clock: 128}, l2: {capacity: 4 MiB, bytes_per_clock: 512}, hbm: "
         "{stacks: 4, "
         "capacity_per_stack: 16 GiB, bandwidth_per_stack: 0.5 TB/s}, kernel_latency: 2 us}";
}

TEST(UnequalPools, HaveNoEffectWithoutAPoolThatPrefills) {
  const std::string one = "prefill_device: " + device("large", 20) + "\n";
  EXPECT_TRUE(reports(bad(inference(one)), "s.yaml:31:17: prefill_device",
                      "has no effect without space.prefill_gpus"));
  EXPECT_TRUE(reports(bad(training(one)), "s.yaml:31:17: prefill_device", "has no effect in training"));
  const std::string axis =
      "hardware: {prefill_device: [" + device("large", 20) + ", " + device("small", 5) + "]}\n";
  EXPECT_TRUE(
      reports(bad(inference(axis)), "s.yaml:31:28: hardware.prefill_device", "without space.prefill_gpus"));
  EXPECT_TRUE(reports(bad(inference("hardware: {stack.serving.kv_transfer: [after_prefill, per_layer]}\n")),
                      "s.yaml:31:39: hardware.stack.serving.kv_transfer", "without space.prefill_gpus"));
}

TEST(UnequalPools, DevicesAreReadAndWrittenOut) {
  const Study one = good(inference(kPools + "prefill_device: " + device("large", 20) + "\n"));
  ASSERT_TRUE(one.systems.front().prefill_device);
  EXPECT_EQ(one.systems.front().prefill_device->name, "large");
  const Study again = good(one.resolved_yaml);
  ASSERT_EQ(again.systems.size(), 1U);
  EXPECT_EQ(again.systems.front(), one.systems.front());
  const Study axis = good(inference(kPools + "hardware: {prefill_device: [" + device("large", 20) + ", " +
                                    device("small", 5) + "]}\n"));
  ASSERT_EQ(axis.systems.size(), 2U);
  EXPECT_EQ(axis.systems[0].prefill_device->name, "large");
  EXPECT_EQ(axis.systems[1].prefill_device->sm.count, 5);
  EXPECT_EQ(axis.systems[1].device, axis.systems[0].device) << "of the pool that decodes";
  EXPECT_EQ(axis.hardware.front().column, "prefill_device");
  EXPECT_EQ(good(axis.resolved_yaml).systems, axis.systems);
}

TEST(UnequalPools, KeepTheirCachesInOneType) {
  EXPECT_TRUE(reports(bad(inference(kPools + "hardware: {stack.serving.prefill_precision: [alike, fp16]}\n")),
                      "s.yaml:24:3: stack.serving.prefill_precision",
                      "keeps its key-value cache in fp16, bf16 on gpu in bf16"));
  EXPECT_EQ(
      good(inference(kPools + "hardware: {stack.serving.prefill_precision: [alike, fp8]}\n")).systems.size(),
      2U);
}

}  // namespace
}  // namespace shardscape::sweep
