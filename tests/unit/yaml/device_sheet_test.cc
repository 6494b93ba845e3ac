// Are devices read from the figures of a data sheet, alone and over a base, with halves of a pair replaced?
#include "sweep/yaml/device_sheet.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "sweep/yaml/loader.h"
#include "tests/support/paths.h"
#include "tests/unit/yaml/problems_of.h"

namespace shardscape::yaml {
namespace {

namespace fs = std::filesystem;

struct Read {
  std::optional<DevicePreset> device;
  Diagnostics diagnostics;
  std::vector<AssumedShares> assumed;
};

Read device_of(const std::string& text) {
  Read read;
  const Catalog catalog({test::source_dir()});
  Loader loader(catalog, read.diagnostics);
  const std::optional<Node> node = parse(text, "d.yaml", read.diagnostics);
  if (node) read.device = loader.device({*node, "", {}});
  read.assumed = loader.assumed_shares();
  return read;
}
DevicePreset good_sheet(const std::string& text) {
  Read read = device_of(text);
  EXPECT_TRUE(read.diagnostics.empty()) << read.diagnostics.to_string();
  return read.device.value_or(DevicePreset());
}

constexpr const char* kFiveLines =
    "name: mine\n"
    "peak: {bf16: 1307.4 TFLOP/s, fp8: 2614.9 TFLOP/s}\n"
    "memory: 192 GB\n"
    "bandwidth: 5.3 TB/s\n"
    "links: 448 GB/s\n";

TEST(DeviceSheet, FiveLinesAreADevice) {
  const DevicePreset d = good_sheet(kFiveLines);
  EXPECT_NEAR(d.tensor_peak(Precision::bf16).value(), 1307.4e12, 1e6);
  EXPECT_NEAR(d.tensor_peak(Precision::fp16).value(), 1307.4e12, 1e6);  // the same units
  EXPECT_NEAR(d.tensor_peak(Precision::fp8).value(), 2614.9e12, 1e6);
  EXPECT_EQ(d.tensor_peak(Precision::fp4).value(), 0);
  EXPECT_DOUBLE_EQ(d.memory_capacity().value(), 192e9);
  EXPECT_DOUBLE_EQ(d.hbm_peak().value(), 5.3e12);
  EXPECT_DOUBLE_EQ(d.links.bandwidth_per_port.value() * static_cast<double>(d.links.ports), 448e9);
  EXPECT_GT(d.sustained.tensor, 0.5);
  EXPECT_LT(d.sustained.tensor, 0.9);
  const Read read = device_of(kFiveLines);
  ASSERT_EQ(read.assumed.size(), 1U);
  EXPECT_TRUE(read.assumed[0].sheet);
  EXPECT_EQ(read.assumed[0].shares.size(), 5U);
  const std::string said =
      describe_assumption(read.assumed[0], read.assumed[0].shares, Catalog({test::source_dir()}));
  EXPECT_NE(said.find("device mine is known by its data sheet alone"), std::string::npos) << said;
  EXPECT_EQ(sheet_device_of(said), "mine");
  EXPECT_EQ(sheet_device_of("s.yaml:1:1: device mine does not say sustained.hbm: taken as 1"), std::nullopt);
}

// The order of magnitude of a known card is met by its data sheet alone: rates that the sheet leaves open are near.
TEST(DeviceSheet, DefaultsAreThoseOfKnownCards) {
  const DevicePreset h100 = good_sheet("base: h100-sxm-80gb\nname: whole\n");
  const DevicePreset sheet =
      good_sheet("name: sheet\npeak: {bf16: 989.4 TFLOP/s}\nmemory: 80 GiB\nbandwidth: 3.35 TB/s\n");
  const auto l2 = [](const DevicePreset& d) { return d.l2.bytes_per_clock * d.sm.clock.value(); };
  EXPECT_NEAR(l2(sheet) / l2(h100), 1, 0.4);
  const auto lanes = [](const DevicePreset& d) {
    return d.sm.vector_flops_per_clock * d.sm.clock.value() * static_cast<double>(d.sm.count);
  };
  EXPECT_NEAR(lanes(sheet) / lanes(h100), 1, 0.4);
  EXPECT_NEAR(sheet.sustained.hbm, h100.sustained.hbm, 0.1);
}

TEST(DeviceSheet, WhatItLeavesOutIsTheBases) {
  const DevicePreset h100 = good_sheet("base: h100-sxm-80gb\nname: whole\n");
  const DevicePreset d = good_sheet("base: h100-sxm-80gb\nname: more\nmemory: 141 GB\nbandwidth: 4.8 TB/s\n");
  EXPECT_DOUBLE_EQ(d.memory_capacity().value(), 141e9);
  EXPECT_DOUBLE_EQ(d.hbm_peak().value(), 4.8e12);
  EXPECT_EQ(d.tensor_peak(Precision::bf16).value(), h100.tensor_peak(Precision::bf16).value());
  EXPECT_EQ(d.energy.flop_pj, h100.energy.flop_pj);  // its units are the base's
  const DevicePreset faster = good_sheet("base: h100-sxm-80gb\nname: faster\npeak: {bf16: 2000 TFLOP/s}\n");
  EXPECT_NEAR(faster.tensor_peak(Precision::bf16).value(), 2000e12, 1e6);
  EXPECT_EQ(faster.tensor_peak(Precision::fp8).value(), 0);  // the base's peaks are not its own
  EXPECT_EQ(faster.memory_capacity().value(), h100.memory_capacity().value());
  EXPECT_EQ(faster.energy.flop_pj, 0);  // the base's power would hold it at the base's rate
  EXPECT_EQ(faster.sustained.hbm, h100.sustained.hbm);
}

TEST(DeviceSheet, HalvesOfAPairReplaceThoseOfTheBase) {
  const DevicePreset d =
      good_sheet("base: h100-sxm-80gb\nname: more\nhbm: {capacity: 120 GB, bandwidth: 4 TB/s}\n");
  EXPECT_DOUBLE_EQ(d.memory_capacity().value(), 120e9);
  EXPECT_DOUBLE_EQ(d.hbm_peak().value(), 4e12);
  const DevicePreset each =
      good_sheet("base: h20-sxm-96gb\nname: each\nhbm: {bandwidth_per_stack: 0.5 TB/s}\n");
  EXPECT_DOUBLE_EQ(each.hbm_peak().value(), 0.5e12 * static_cast<double>(each.hbm.stacks));
}

TEST(DeviceSheet, ProblemsAreLocated) {
  const auto problem = [](const std::string& text, const std::string& where, const std::string& gist) {
    return reports(device_of(text).diagnostics, where, gist);
  };
  EXPECT_TRUE(problem("name: a\npeak: {bf16: 1 PFLOP/s}\nmemory: 80 GB\n", "d.yaml:1:1: bandwidth",
                      "needs peak, memory"));
  EXPECT_TRUE(problem("name: a\nmemory: 80 GB\nbandwidth: 1 TB/s\n", "d.yaml:1:1: peak", "missing"));
  EXPECT_TRUE(problem("base: h100-sxm-80gb\nname: a\npeak: {bf17: 1 PFLOP/s}\n", "d.yaml:3:8: peak.bf17",
                      "unknown precision"));
  EXPECT_TRUE(problem("base: h100-sxm-80gb\nname: a\npeak: {bf16: 1 TB/s}\n", "d.yaml:3:14: peak.bf16", ""));
  EXPECT_TRUE(
      problem("base: h100-sxm-80gb\nname: a\npeak: 900 TFLOP/s\n", "d.yaml:3:7: peak", "must be a map"));
  EXPECT_TRUE(problem("base: h100-sxm-80gb\nname: a\nmemory: 80 GB\nhbm: {capacity: 80 GB}\n",
                      "d.yaml:3:9: memory", "given twice"));
  EXPECT_TRUE(
      problem("base: h100-sxm-80gb\nname: a\nmemory: [1]\n", "d.yaml:3:9: memory", "must be a quantity"));
  EXPECT_TRUE(
      problem("base: h100-sxm-80gb\nname: a\nmemory: 80 GB\nhbm: 3\n", "d.yaml:4:6: hbm", "must be a map"));
  EXPECT_TRUE(problem("base: h100-sxm-80gb\nname: a\npeak: {bf16: 1 PFLOP/s}\nsm: {count: 0}\n",
                      "d.yaml:4:13: sm.count", ""));
}

}  // namespace
}  // namespace shardscape::yaml
