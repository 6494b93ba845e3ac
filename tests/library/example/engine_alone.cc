// The engine alone: a model, a device and a fabric made in C++, and the fastest of a few plans. No file is read.
#include <cstdio>
#include <string>

#include "engine/simulate.h"

namespace {

using namespace shardscape;

/// Llama 2 7B (arXiv:2307.09288).
ModelSpec model() {
  ModelSpec m;
  m.name = "llama2-7b";
  m.layers = 32;
  m.hidden = 4096;
  m.heads = m.kv_heads = 32;
  m.head_dim = 128;
  m.ffn_hidden = 11008;
  m.vocabulary = 32000;
  m.mlp = MlpKind::swiglu;
  m.norm = NormKind::rmsnorm;
  m.position = PositionKind::rotary;
  return m;
}

/// An invented device of 400 TFLOP/s in bf16, 64 GB at 2 TB/s.
DeviceSpec device() {
  DeviceSpec d;
  d.name = "invented";
  d.sm.count = 100;
  d.sm.clock = Hertz(2e9);
  d.sm.tensor_flops_per_clock[static_cast<std::size_t>(Precision::bf16)] = 2000;
  d.sm.vector_flops_per_clock = 128;
  d.sm.registers = Bytes(256 * 1024);
  d.sm.sram = Bytes(160 * 1024);
  d.sm.sram_bytes_per_clock = 128;
  d.l2.capacity = Bytes(40e6);
  d.l2.bytes_per_clock = 4096;
  d.hbm.stacks = 4;
  d.hbm.capacity_per_stack = Bytes(16e9);
  d.hbm.bandwidth_per_stack = BytesPerSecond(500e9);
  d.sustained = {0.85, 0.8, 0.8};
  d.kernel_latency = Seconds(3e-6);
  return d;
}

/// One switch of eight devices, 200 GB/s each and way.
FabricSpec fabric() {
  DimensionSpec dimension;
  dimension.name = "switch";
  dimension.kind = DimensionKind::switched;
  dimension.shape = {8};
  dimension.bandwidth = BytesPerSecond(200e9);
  dimension.latency = Seconds(1e-6);
  return {"node", {dimension}};
}

}  // namespace

int main() {
  Setting setting;
  setting.model = model();
  setting.system = {device(), fabric(), StackProfile{}};
  setting.system.stack.communication.bucket = Bytes(160e6);
  setting.workload.phase = Phase::training;
  setting.workload.sequence_length = 4096;
  setting.workload.global_batch = 64;

  // The engine trusts its input; whoever makes it asks each part for what it breaks.
  for (const Problems& broken :
       {setting.model.validate(), setting.system.device.validate(), setting.system.fabric.validate(),
        setting.system.stack.validate(), setting.workload.validate()}) {
    for (const Problem& problem : broken.list())
      std::fprintf(stderr, "%s: %s\n", problem.field.c_str(), problem.message.c_str());
    if (!broken.list().empty()) return 2;
  }

  Simulator simulator(setting);
  for (const int tensor : {1, 2, 4, 8}) {
    ParallelPlan plan;
    plan.tensor = tensor;
    plan.data = 8 / tensor;
    plan.zero_stage = 1;
    plan.recompute = Recompute::selective;
    const Prediction prediction = simulator.run(plan);
    const std::string verdict(prediction.status == Status::ok ? "ok" : name_of(prediction.reason));
    std::printf("tp=%d dp=%d  %-15s  %6.3f s  %6.2f GB\n", tensor, plan.data, verdict.c_str(),
                prediction.step_time.value(), prediction.memory_peak.value() / 1e9);
  }
}
