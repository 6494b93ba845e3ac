// Studies written in full, so that no test depends on a preset.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sweep/study/load_study.h"
#include "tests/unit/yaml/problems_of.h"

namespace shardscape::sweep {

using yaml::reports;

// Parts written in full, so that no test depends on a preset. The model occupies lines 1 to 9.
inline const char* const kModel = R"(model:
  name: tiny
  layers: 8
  hidden: 256
  heads: 8
  ffn_hidden: 1024
  vocabulary: 1000
  position: rotary
  mlp: swiglu
)";

// Lines 10 to 29: four GPUs under a switch, any number of switches on a rail.
inline const char* const kSystem = R"(cluster:
  name: pod
  device:
    name: gpu
    sm: {count: 10, clock: 1 GHz, tensor_flops_per_clock: {bf16: 1024}, vector_flops_per_clock: 128,
         registers: 256 KiB, sram: 100 KiB, sram_bytes_per_clock: 128}
    l2: {capacity: 4 MiB, bytes_per_clock: 512}
    hbm: {stacks: 4, capacity_per_stack: 16 GiB, bandwidth_per_stack: 0.5 TB/s}
    kernel_latency: 2 us
    power: 400 W
  dimensions:
    - {name: nvswitch, kind: switch, size: 4, bandwidth: 300 GB/s, latency: 1 us}
    - {name: rail-a, kind: switch, size: fill, bandwidth: 25 GB/s, latency: 2 us, scope: scale_out}
stack:
  name: soft
  communication: {bucket: 25 MB, call: 5 us}
  host:
    forward_layer: 10 us
gpus: 16
study: unit
)";

// These texts begin at line 30 of the study.
inline const char* const kTraining = "workload: {phase: training, sequence_length: 512, global_batch: 32}\n";
inline const char* const kInference =
    "workload: {phase: inference, prompt_tokens: 100, output_tokens: [10, 20], concurrency: [1, 8]}\n";

inline std::string training(const std::string& rest) {
  return std::string(kModel) + kSystem + kTraining + rest;
}
inline std::string inference(const std::string& rest) {
  return std::string(kModel) + kSystem + kInference + rest;
}

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

inline Study good(const std::string& text, const StudyOptions& options = {}) {
  auto study = parse_study(text, "s.yaml", {}, yaml::Catalog(), options);
  EXPECT_TRUE(study.has_value()) << study.error().to_string();
  return study ? *study : Study();
}

inline yaml::Diagnostics bad(const std::string& text, const StudyOptions& options = {}) {
  const auto study = parse_study(text, "s.yaml", {}, yaml::Catalog(), options);
  EXPECT_FALSE(study.has_value());
  return study ? yaml::Diagnostics() : study.error();
}

// A second cluster in the same words: twice the switch, another device.
inline const char* const kOther =
    "{name: other, device: {name: gpu2, sm: {count: 20, clock: 1 GHz, tensor_flops_per_clock: {bf16: 2048}, "
    "vector_flops_per_clock: 128, registers: 256 KiB, sram: 100 KiB, sram_bytes_per_clock: 128}, "
    "l2: {capacity: 8 MiB, bytes_per_clock: 512}, "
    "hbm: {stacks: 4, capacity_per_stack: 32 GiB, bandwidth_per_stack: 1 TB/s}, kernel_latency: 2 us}, "
    "dimensions: [{name: nvl, kind: switch, size: 8, bandwidth: 900 GB/s, latency: 1 us}, "
    "{name: net, kind: switch, size: fill, bandwidth: 50 GB/s, latency: 2 us, scope: scale_out}]}";

using Degrees = std::vector<std::int32_t>;

}  // namespace shardscape::sweep
