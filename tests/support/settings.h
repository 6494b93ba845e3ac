// Models, devices, fabrics and stacks that tests build their cases from, written out here so that no preset
// file can move a test.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/counter_rng.h"
#include "engine/spec/scenario.h"

namespace shardscape::test {

/// A seeded generator of test cases.
class CaseRng {
 public:
  CaseRng(std::uint64_t seed, std::uint64_t stream) : rng_(seed, stream) {}
  /// Uniform in [low, high].
  std::int64_t integer(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(high - low + 1)));
  }
  std::int32_t small(std::int32_t low, std::int32_t high) {
    return static_cast<std::int32_t>(integer(low, high));
  }
  double real(double low, double high) { return low + (high - low) * rng_.uniform(); }
  bool coin() { return rng_.below(2) == 1; }
  template <class T>
  T pick(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(rng_.below(values.size()))];
  }

 private:
  CounterRng rng_;
};

/// GPT in the shape of Narayanan et al. 2021: MLP of 4h, biases everywhere, learned positions, tied head,
/// dropout.
inline ModelSpec gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                     std::int64_t vocabulary = 51200, std::int64_t positions = 2048) {
  ModelSpec model;
  model.name = "gpt";
  model.layers = layers;
  model.hidden = hidden;
  model.heads = model.kv_heads = heads;
  model.head_dim = hidden / heads;
  model.ffn_hidden = 4 * hidden;
  model.vocabulary = vocabulary;
  model.max_positions = positions;
  model.tied_embeddings = true;
  model.linear_bias = true;
  model.dropout = 0.1;
  return model;
}

/// Llama: SwiGLU, RMSNorm, rotary positions, no biases, an untied head.
inline ModelSpec llama(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t kv_heads,
                       std::int64_t ffn, std::int64_t vocabulary) {
  ModelSpec model;
  model.name = "llama";
  model.layers = layers;
  model.hidden = hidden;
  model.heads = heads;
  model.kv_heads = kv_heads;
  model.head_dim = hidden / heads;
  model.ffn_hidden = ffn;
  model.vocabulary = vocabulary;
  model.mlp = MlpKind::swiglu;
  model.norm = NormKind::rmsnorm;
  model.position = PositionKind::rotary;
  return model;
}

inline ModelSpec llama2_7b() { return llama(32, 4096, 32, 32, 11008, 32000); }
inline ModelSpec llama31_8b() { return llama(32, 4096, 32, 8, 14336, 128256); }
inline ModelSpec llama31_70b() { return llama(80, 8192, 64, 8, 28672, 128256); }

/// The A100 SXM 80 GB of NVIDIA's white paper.
inline DeviceSpec a100() {
  DeviceSpec device;
  device.name = "a100";
  device.sm.count = 108;
  device.sm.clock = Hertz(1.41e9);
  device.sm.tensor_flops_per_clock = {0, 1024, 2048, 2048, 0, 0};
  device.sm.vector_flops_per_clock = 128;
  device.sm.registers = Bytes(256 * 1024);
  device.sm.sram = Bytes(164 * 1024);
  device.sm.sram_bytes_per_clock = 128;
  device.l2 = {Bytes(40.0 * 1024 * 1024), 5120};
  device.hbm = {5, Bytes(16.0 * 1024 * 1024 * 1024), BytesPerSecond(2039e9 / 5)};
  device.sustained = {0.85, 0.8, 0.8};
  device.kernel_latency = Seconds(3e-6);
  return device;
}

inline DimensionSpec dimension(std::string name, DimensionKind kind, std::vector<std::int64_t> shape,
                               double bandwidth = 100e9, double latency = 1e-6,
                               LinkScope scope = LinkScope::scale_up) {
  return {std::move(name), kind, std::move(shape), BytesPerSecond(bandwidth), Seconds(latency), scope};
}

inline FabricSpec fabric(std::vector<DimensionSpec> dimensions) { return {"fabric", std::move(dimensions)}; }

/// NVSwitch islands of `per_node` GPUs, one rail per GPU between them.
inline FabricSpec nodes(std::int64_t per_node, std::int64_t count) {
  FabricSpec spec{"nodes", {}};
  if (per_node > 1) {
    spec.dimensions.push_back(dimension("nvlink", DimensionKind::switched, {per_node}, 300e9, 0.5e-6));
  }
  if (count > 1) {
    spec.dimensions.push_back(
        dimension("rail", DimensionKind::switched, {count}, 25e9, 2e-6, LinkScope::scale_out));
  }
  return spec;
}

/// A stack without any overhead: no host time, no call cost, full link rates, no reserve.
inline StackProfile bare_stack() {
  StackProfile stack;
  stack.name = "bare";
  stack.communication.bucket = Bytes(1e18);
  return stack;
}

/// A stack with every overhead present.
inline StackProfile full_stack() {
  StackProfile stack = bare_stack();
  stack.name = "full";
  stack.host = {Seconds(0.4e-3), Seconds(0.8e-3), Seconds(15e-6),
                Seconds(10e-3),  Seconds(0.2e-3), Seconds(1e-3)};
  stack.communication.call = Seconds(10e-6);
  stack.communication.rank_step = Seconds(3e-6);
  stack.communication.scale_up_fraction = 0.75;
  stack.communication.scale_out_fraction = 0.8;
  stack.communication.tensor_overlap = 0.2;
  stack.communication.context_overlap = 0.8;
  stack.communication.data_overlap = 0.5;
  stack.communication.bucket = Bytes(25e6);
  stack.memory = {Bytes(3e9), 1.05};
  stack.zero_slice = Seconds(12e-6);
  return stack;
}

inline WorkloadSpec training(std::int64_t sequence, std::int64_t batch,
                             Precision precision = Precision::bf16) {
  WorkloadSpec workload;
  workload.precision = precision;
  workload.sequence_length = sequence;
  workload.global_batch = batch;
  return workload;
}

inline WorkloadSpec inference(std::int64_t prompt, std::int64_t output, std::int64_t concurrency,
                              Precision precision = Precision::bf16) {
  WorkloadSpec workload;
  workload.phase = Phase::inference;
  workload.precision = precision;
  workload.prompt_tokens = prompt;
  workload.output_tokens = output;
  workload.concurrency = concurrency;
  return workload;
}

}  // namespace shardscape::test
