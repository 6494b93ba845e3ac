// Scenarios for tests of the engine: small round machines and models by hand, and random ones from a seed.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/counter_rng.h"
#include "engine/spec/scenario.h"

namespace shardscape::test {

/// 128 SMs at 1 GHz with 1024 matrix FLOPs per clock: 131.072 TFLOP/s; 5 x 16 GB at 400 GB/s: 80 GB, 2 TB/s.
inline DeviceSpec round_device() {
  DeviceSpec d;
  d.name = "round";
  d.sm.count = 128;
  d.sm.clock = Hertz(1e9);
  d.sm.tensor_flops_per_clock = {256, 512, 1024, 1024, 0, 0};
  d.sm.vector_flops_per_clock = 128;
  d.sm.registers = Bytes(256 * 1024.0);
  d.sm.sram = Bytes(160 * 1024.0);
  d.sm.sram_bytes_per_clock = 128;
  d.l2.capacity = Bytes(40e6);
  d.l2.bytes_per_clock = 4096;
  d.hbm.stacks = 5;
  d.hbm.capacity_per_stack = Bytes(16e9);
  d.hbm.bandwidth_per_stack = BytesPerSecond(400e9);
  d.kernel_latency = Seconds(2e-6);
  return d;
}

/// Protocols with round constants: LL up to 1 kB, LL128 up to 1 MB a rank.
inline NodeCollectives round_protocols() {
  NodeCollectives node;
  node.nccl.start = Seconds(5e-6);
  node.nccl.ll = {Seconds(0), Seconds(1e-6), BytesPerSecond(10e9), Bytes(1000)};
  node.nccl.ll128 = {Seconds(2e-6), Seconds(1e-6), BytesPerSecond(50e9), Bytes(1e6)};
  node.nccl.simple = {Seconds(10e-6), Seconds(3e-6), 0.8, BytesPerSecond(400e9)};
  node.nccl.all_to_all = {Seconds(6e-6),         Seconds(0.5e-6), BytesPerSecond(20e9),
                          Seconds(4e-6),         Seconds(1e-6),   0.5,
                          BytesPerSecond(1000e9)};
  node.custom.vllm = {Seconds(4e-6),        Seconds(0.1e-6), BytesPerSecond(40e9), Seconds(3e-6),
                      BytesPerSecond(80e9), Bytes(8e6),      Bytes(2e6),           Seconds(30e-6)};
  node.custom.trtllm = node.custom.vllm;
  node.custom.trtllm.start = Seconds(3e-6);
  node.custom.multimem_start = Seconds(20e-6);
  node.custom.multimem_bandwidth = BytesPerSecond(90e9);
  return node;
}

/// Megatron's GPT block: multi-head attention, 4 h, GELU, LayerNorm, learned positions, dropout.
inline ModelSpec gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t vocabulary,
                     std::int64_t positions) {
  ModelSpec m;
  m.name = "gpt";
  m.layers = layers;
  m.hidden = hidden;
  m.heads = m.kv_heads = heads;
  m.head_dim = hidden / heads;
  m.ffn_hidden = 4 * hidden;
  m.vocabulary = vocabulary;
  m.max_positions = positions;
  m.tied_embeddings = true;
  m.linear_bias = true;
  m.dropout = 0.1;
  return m;
}

/// Llama's block: grouped queries, SwiGLU, RMSNorm, rotary positions, a head of its own.
inline ModelSpec llama(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t kv_heads,
                       std::int64_t ffn, std::int64_t vocabulary) {
  ModelSpec m;
  m.name = "llama";
  m.layers = layers;
  m.hidden = hidden;
  m.heads = heads;
  m.kv_heads = kv_heads;
  m.head_dim = hidden / heads;
  m.ffn_hidden = ffn;
  m.vocabulary = vocabulary;
  m.mlp = MlpKind::swiglu;
  m.norm = NormKind::rmsnorm;
  m.position = PositionKind::rotary;
  return m;
}

/// One whose first layer is dense and whose others have 16 experts of width 512, of which a token goes through 4,
/// and so many shared ones of the same width.
inline ModelSpec llama_of_experts(std::int64_t layers, std::int64_t kv_heads, std::int64_t shared) {
  ModelSpec m = llama(layers, 1024, 16, kv_heads, 4096, 32000);
  m.moe = MixtureOfExperts{.experts = 16, .top_k = 4, .expert_ffn_hidden = 512};
  m.moe->shared_experts = shared;
  m.moe->shared_ffn_hidden = shared * m.moe->expert_ffn_hidden;
  m.moe->first_dense_layers = 1;
  return m;
}

/// A stack that costs nothing: no host, no call overheads, no overlap, no reserve.
inline StackProfile plain_stack() {
  StackProfile s;
  s.name = "plain";
  s.communication.bucket = Bytes(1e18);
  return s;
}

inline DimensionSpec dimension(std::string name, DimensionKind kind, std::vector<std::int64_t> shape,
                               double bytes_per_second, double latency = 0) {
  return {std::move(name),    kind, std::move(shape), BytesPerSecond(bytes_per_second), Seconds(latency),
          LinkScope::scale_up};
}

/// One crossbar over all ranks; no dimension at all for a single rank.
inline FabricSpec crossbar(std::int64_t ranks, double bytes_per_second = 100e9, double latency = 0) {
  FabricSpec f{"crossbar", {}};
  if (ranks > 1)
    f.dimensions.push_back(dimension("switch", DimensionKind::switched, {ranks}, bytes_per_second, latency));
  return f;
}

inline WorkloadSpec training(std::int64_t sequence, std::int64_t batch) {
  WorkloadSpec w;
  w.sequence_length = sequence;
  w.global_batch = batch;
  return w;
}

inline WorkloadSpec inference(std::int64_t prompt, std::int64_t output, std::int64_t concurrency) {
  WorkloadSpec w;
  w.phase = Phase::inference;
  w.prompt_tokens = prompt;
  w.output_tokens = output;
  w.concurrency = concurrency;
  return w;
}

inline ParallelPlan plan_of(std::int32_t tensor, std::int32_t context, std::int32_t pipeline,
                            std::int32_t data) {
  ParallelPlan p;
  p.tensor = tensor;
  p.context = context;
  p.pipeline = pipeline;
  p.data = data;
  return p;
}

/// Random scenarios; a pure function of the seed.
class ScenarioGenerator {
 public:
  explicit ScenarioGenerator(std::uint64_t seed) : rng_(seed, 0) {}

  bool coin() { return rng_.below(2) == 0; }
  double between(double low, double high) { return low + (high - low) * rng_.uniform(); }
  std::uint64_t below(std::uint64_t n) { return rng_.below(n); }
  template <class T>
  T pick(std::initializer_list<T> choices) {
    return *(choices.begin() + static_cast<std::ptrdiff_t>(rng_.below(choices.size())));
  }

  Setting setting(Phase phase) {
    Setting s;
    s.model = model();
    s.system.device = device();
    s.system.fabric = fabric(pick<std::int64_t>({1, 2, 4, 8, 8, 16, 16, 32}));
    s.system.stack = stack();
    s.workload = phase == Phase::training
                     ? training(pick<std::int64_t>({256, 512, 1024}), pick<std::int64_t>({16, 32, 64, 192}))
                     : inference(pick<std::int64_t>({128, 512, 1000}), pick<std::int64_t>({1, 2, 64}),
                                 pick<std::int64_t>({1, 4, 16, 24}));
    s.workload.precision = pick({PolicyName::bf16, PolicyName::bf16, PolicyName::fp32});
    return s;
  }

  /// A plan for all ranks of the setting; it may break a rule or fill the memory.
  ParallelPlan plan(const Setting& setting) {
    std::array<std::int32_t, kPlanAxes> degree = {1, 1, 1, 1};
    for (std::int64_t left = setting.system.fabric.size(); left > 1; left /= 2)
      degree[rng_.below(kPlanAxes)] *= 2;
    ParallelPlan p = plan_of(degree[0], degree[1], degree[2], degree[3]);
    p.sequence_parallel = p.tensor > 1 && coin();
    p.zero_stage = p.data * p.context > 1 ? static_cast<std::int32_t>(rng_.below(4)) : 0;
    p.recompute = pick({Recompute::none, Recompute::selective, Recompute::full});
    p.microbatch = pick({1, 1, 2, 4});
    if (p.pipeline > 1 && setting.workload.phase == Phase::training) {
      p.schedule = pick({ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::interleaved,
                         ScheduleKind::zero_bubble});
      if (p.schedule == ScheduleKind::interleaved) p.virtual_stages = pick({2, 2, 4});
    }
    for (std::size_t i = kPlanAxes - 1; i > 0; --i) std::swap(p.order[i], p.order[rng_.below(i + 1)]);
    return p;
  }

 private:
  ModelSpec model() {
    const auto layers = pick<std::int64_t>({4, 8, 16, 24});
    const auto heads = pick<std::int64_t>({8, 16, 32});
    const std::int64_t hidden = heads * pick<std::int64_t>({32, 64});
    ModelSpec m = coin() ? gpt(layers, hidden, heads, pick<std::int64_t>({1000, 50257}), 2048)
                         : llama(layers, hidden, heads, pick<std::int64_t>({1, 2, 8}), 3 * hidden,
                                 pick<std::int64_t>({32000, 128256}));
    m.tied_embeddings = coin();
    if (m.position == PositionKind::learned && coin()) m.dropout = 0;
    if (m.position == PositionKind::rotary) m.qkv_bias = coin();
    return m;
  }
  DeviceSpec device() {
    DeviceSpec d = round_device();
    d.hbm.bandwidth_per_stack *= between(0.2, 3);
    d.hbm.capacity_per_stack *= pick({0.05, 1.0, 1.0, 4.0});
    d.sm.clock *= between(0.5, 2);
    d.sustained = {between(0.4, 1), between(0.4, 1), between(0.4, 1)};
    d.kernel_latency = Seconds(between(0, 5e-6));
    d.node = round_protocols();
    // Without another draw, so that all that follows stays as it was. 128 SMs x 1,024 x 1 GHz at 1 pJ are 131 W.
    if (d.sustained.tensor > 0.7) {
      d.power = Watts(150);
      d.energy = {40, 1, 0.5, 0.25, 30, 200};
    }
    return d;
  }
  StackProfile stack() {
    StackProfile s = plain_stack();
    s.attention = coin() ? AttentionKernel::flash : AttentionKernel::naive;
    s.partition = coin() ? PartitionRule::uniform : PartitionRule::balanced;
    s.zero2_gradients = coin() ? Zero2Gradients::per_microbatch : Zero2Gradients::last_microbatch;
    s.fused_loss = coin();
    s.keep_gathered = coin();
    s.zero_slice = Seconds(pick({0.0, 1e-6}));
    const double host = pick({0.0, 1e-5, 1e-3});
    s.host = {Seconds(host * between(0, 2)),
              Seconds(host * between(0, 2)),
              Seconds(host * between(0, 0.2)),
              Seconds(host * pick({0.0, 0.1})),
              Seconds(s.keep_gathered ? host : 0),
              Seconds(host * between(0, 9)),
              {},
              Seconds(host * between(0, 1)),
              Seconds(host * between(0, 9)),
              Seconds(host * between(0, 0.1)),
              Seconds(host * between(0, 0.1)),
              Seconds(s.keep_gathered ? 0.02 * host : 0),
              Seconds(s.keep_gathered ? 0.1 * host : 0)};
    s.serving.scheduler = coin() ? ServingPolicy::chunked : ServingPolicy::prefill_priority;
    s.serving.max_batch = pick<std::int64_t>({1, 4, 256});
    s.serving.token_budget = s.serving.max_batch + pick<std::int64_t>({0, 100, 2048});
    s.communication.call = Seconds(between(0, 1e-5));
    s.communication.rank_step = Seconds(between(0, 1e-5));
    s.communication.scale_up_fraction = between(0.3, 1);
    s.communication.scale_out_fraction = between(0.3, 1);
    s.communication.tensor_overlap = pick({0.0, 0.3, 1.0});
    s.communication.context_overlap = pick({0.0, 0.5, 1.0});
    s.communication.data_overlap = pick({0.0, 0.5, 1.0});
    s.communication.pipeline_async = coin();
    s.communication.scatter_boundaries = coin();
    s.communication.bucket = Bytes(pick({1e6, 25e6, 1e12}));
    s.state.gradient_comm_bytes = pick({2.0, 4.0});
    s.fused_pointwise = coin();
    s.communication.rank_step_scale_out = Seconds(pick({0.0, 2e-5}));
    s.communication.scale_out_scaling = pick({1.0, 0.9});
    s.communication.local_copy = s.zero_slice > Seconds(0) ? 1.5 : 0;
    s.communication.zero_bucket = Bytes(pick({0.0, 1e8}));
    s.communication.protocols = s.fused_pointwise;
    if (s.fused_pointwise && s.keep_gathered) s.communication.all_reduce = AllReduceKernels::vllm;
    // Of what has been drawn, so that scenarios of earlier numbers stay as they are.
    s.communication.data_hidden = s.fused_loss ? 0.4 : 1;
    s.communication.gather_overlap = s.keep_gathered ? 0.7 : 0;
    if (s.communication.context_overlap == 0 && s.fused_loss)
      s.communication.context_exchange = ContextExchange::gather;
    s.communication.bucket_per_rank = Bytes(s.communication.zero_bucket > Bytes(0) ? 2e7 : 0);
    if (s.fused_loss) s.host.graph_step = 0.5 * s.host.step_fixed;
    s.graphs_from = s.keep_gathered ? Architecture::hopper : Architecture::other;
    s.quantisation = {s.keep_gathered ? 1.0 : 0.0, s.fused_loss ? 8.0 : 0.0};
    s.memory = {Bytes(between(0, 2e9)), Bytes(pick({0.0, 1e8})), between(1, 1.2)};
    return s;
  }
  FabricSpec fabric(std::int64_t ranks) {
    FabricSpec f{"random", {}};
    for (std::int64_t left = ranks; left > 1;) {
      const std::int64_t extent = std::min(left, pick<std::int64_t>({2, 4, 8, 32}));
      const auto kind = pick({DimensionKind::ring, DimensionKind::mesh, DimensionKind::torus,
                              DimensionKind::fully_connected, DimensionKind::switched});
      const bool grid = extent >= 4 && (kind == DimensionKind::torus || kind == DimensionKind::mesh);
      std::vector<std::int64_t> shape = {extent};
      if (grid) shape = {extent / 2, 2};
      f.dimensions.push_back(dimension("d" + std::to_string(f.dimensions.size()), kind, shape,
                                       between(5e9, 300e9), between(0, 5e-6)));
      f.dimensions.back().scope = f.dimensions.size() == 1 ? LinkScope::scale_up : LinkScope::scale_out;
      left /= extent;
    }
    return f;
  }

  CounterRng rng_;
};

/// Describes a case so that a failure can be repeated.
inline std::string describe(std::uint64_t seed, const ParallelPlan& p) {
  return "seed " + std::to_string(seed) + ": tp " + std::to_string(p.tensor) + " cp " +
         std::to_string(p.context) + " pp " + std::to_string(p.pipeline) + " dp " + std::to_string(p.data) +
         " sp " + std::to_string(p.sequence_parallel) + " zero " + std::to_string(p.zero_stage) + " mbs " +
         std::to_string(p.microbatch) + " vpp " + std::to_string(p.virtual_stages) + " recompute " +
         std::string(name_of(p.recompute)) + " schedule " + std::string(name_of(p.schedule)) + " order " +
         to_string(p.order);
}

}  // namespace shardscape::test
