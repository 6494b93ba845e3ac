#include "engine/passes/layer_costs.h"

#include "engine/model/block.h"
#include "engine/model/embedding.h"
#include "engine/model/head.h"

namespace shardscape::passes {

namespace {

using model::Operator;
using model::OperatorKind;

compute::GemmShape input_gradient(const compute::GemmShape& f) { return {f.m, f.k, f.n, f.batch}; }
compute::GemmShape weight_gradient(const compute::GemmShape& f) { return {f.k, f.n, f.m, f.batch}; }

OperatorTimes price_gemm(const Operator& op, const Setting& setting) {
  const DeviceSpec& device = setting.system.device;
  const Precision precision = op.operands;
  const compute::GemmShape& f = op.gemm;
  const compute::GemmOutput activation{compute::output_bytes(precision), false};
  const compute::GemmOutput gradient{setting.system.stack.state.gradient_bytes, true};
  const compute::GemmCost forward = compute::gemm(f, precision, device, activation);
  const compute::GemmCost dgrad = compute::gemm(input_gradient(f), precision, device, activation);
  const compute::GemmCost wgrad = compute::gemm(weight_gradient(f), precision, device, gradient);
  const Work input_work{f.flops(), dgrad.hbm_bytes}, weight_work{f.flops(), wgrad.hbm_bytes};
  return {{forward.time, forward.bound, {f.flops(), forward.hbm_bytes}},
          {dgrad.time + wgrad.time, dgrad.time > wgrad.time ? dgrad.bound : wgrad.bound,
           input_work + weight_work},
          wgrad.time,
          weight_work};
}

OperatorTimes price_attention(const Operator& op, const Setting& setting) {
  const DeviceSpec& device = setting.system.device;
  const PrecisionPolicy policy = setting.workload.policy();
  const Precision precision = policy.attention;
  if (op.attention.queries == 1) return {compute::decode(op.attention, policy.kv_cache, device), {}};
  if (setting.system.stack.attention == AttentionKernel::flash) {
    return {compute::flash_forward(op.attention, precision, device),
            compute::flash_backward(op.attention, precision, device)};
  }
  return {compute::naive_forward(op.attention, precision, device),
          compute::naive_backward(op.attention, precision, device)};
}

double backward_kernels(const Operator& op) {
  switch (op.kind) {
    case OperatorKind::gemm:
      return 2;
    case OperatorKind::attention:
      return 1;
    case OperatorKind::pointwise:
      return op.backward.kernels;
    case OperatorKind::collective:
      break;
  }
  return 0;
}

}  // namespace

OperatorTimes price(const Operator& op, const Setting& setting) {
  const DeviceSpec& device = setting.system.device;
  switch (op.kind) {
    case OperatorKind::gemm:
      return price_gemm(op, setting);
    case OperatorKind::attention:
      return price_attention(op, setting);
    case OperatorKind::pointwise:
      return {compute::pointwise(op.forward.traffic, op.forward.vector_flops, op.forward.kernels, device),
              compute::pointwise(op.backward.traffic, op.backward.vector_flops, op.backward.kernels, device)};
    case OperatorKind::collective:
      break;
  }
  return {{Seconds(0), Bound::link}, {Seconds(0), Bound::link}};
}

ProductGradients price_gradients(const Operator& op, const Setting& setting) {
  const DeviceSpec& device = setting.system.device;
  const Precision precision = op.operands;
  ProductGradients gradients;
  gradients.input_shape = input_gradient(op.gemm);
  gradients.weight_shape = weight_gradient(op.gemm);
  const compute::GemmCost input =
      compute::gemm(gradients.input_shape, precision, device, {compute::output_bytes(precision), false});
  gradients.input = {input.time, input.bound};
  gradients.weight = compute::weight_gradient(gradients.weight_shape, precision,
                                              setting.system.stack.state.gradient_bytes, device);
  return gradients;
}

LayerCost price_layer(const std::vector<Operator>& operators, const Setting& setting) {
  LayerCost cost;
  double kernels = 0;  // of backward
  for (const Operator& op : operators) {
    const OperatorTimes times = price(op, setting);
    cost.forward += times.forward.time;
    cost.backward += times.backward.time;
    cost.weight += times.weight;
    kernels += backward_kernels(op);
    if (op.kind == OperatorKind::gemm) ++cost.weight_kernels;
    if (op.attention_core) {
      cost.attention_core += times.forward.time;
      cost.attention_core_backward += times.backward.time;
    }
    if (op.forward_comm.repeats > 0) cost.forward_calls.push_back(op.forward_comm);
    if (op.backward_comm.repeats > 0) cost.backward_calls.push_back(op.backward_comm);
    cost.forward_call_count += op.forward_comm.repeats;
    cost.backward_call_count += op.backward_comm.repeats;
  }
  if (kernels > 0) cost.weight_kernels /= kernels;
  return cost;
}

LayerCosts price_layers(const Setting& setting, const model::LayerKey& key) {
  const std::int64_t tokens = setting.workload.sequence_length;
  constexpr auto kMode = model::Mode::training;
  const auto layer = [&](const std::vector<Operator>& operators) {
    LayerCost cost = price_layer(operators, setting);
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      cost.saved[static_cast<std::size_t>(recompute)] =
          model::saved_bytes(operators, recompute, setting, key, tokens);
    }
    return cost;
  };
  LayerCosts costs;
  for (std::size_t kind = 0; kind < model::block_kinds(setting.model).size(); ++kind) {
    const auto operators = model::block_operators(setting, kind, key, tokens, kMode);
    LayerCost& block = costs.blocks.emplace_back(layer(operators));
    block.put_off = model::put_off_bytes(operators);
    block.working = model::backward_working_bytes(setting, kind, key, tokens);
  }
  costs.embedding = layer(model::embedding_operators(setting, key, tokens, kMode));
  costs.head = layer(model::head_operators(setting, key, tokens, kMode));
  costs.logits = model::logits_bytes(setting, key, tokens);
  costs.logits_saved = model::saved_logits_bytes(setting, key, tokens);
  costs.boundary = model::boundary_bytes(setting, key, tokens);
  return costs;
}

}  // namespace shardscape::passes
