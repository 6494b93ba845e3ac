// Prices the operators of layers on one device, and sums them up by part: time, calls and what hides them, kernels, and
// bytes that are saved.
#include "engine/step/layers/price_layers.h"

#include <algorithm>
#include <utility>

#include "engine/compute/expert_products.h"
#include "engine/compute/fused_attention.h"
#include "engine/model/block_kinds.h"
#include "engine/model/embedding.h"
#include "engine/model/expert_shares.h"
#include "engine/model/head.h"
#include "engine/model/partition.h"

namespace shardscape::step {

namespace {

using model::Operator;
using model::OperatorKind;

compute::GemmShape input_gradient(const compute::GemmShape& f) { return {f.m, f.k, f.n, f.batch}; }
compute::GemmShape weight_gradient(const compute::GemmShape& f) { return {f.k, f.n, f.m, f.batch}; }

OperatorTimes price_gemm(const Operator& op, const Setting& setting) {
  const DeviceSpec& device = setting.system.device;
  const compute::GemmShape& f = op.gemm;
  const compute::GemmOutput gradient{.bytes_per_element = setting.system.stack.state.gradient_bytes,
                                     .accumulate = true};
  const compute::OperatorCost forward = price_product(op, f, device);
  const compute::OperatorCost dgrad = price_product(op, input_gradient(f), device);
  const compute::GemmCost wgrad = compute::gemm(weight_gradient(f), op.operands, device, gradient);
  const Work input_work = dgrad.work, weight_work{f.flops(), wgrad.hbm_bytes};
  return {forward,
          {dgrad.time + wgrad.time, dgrad.time > wgrad.time ? dgrad.bound : wgrad.bound,
           input_work + weight_work},
          wgrad.time,
          weight_work};
}

/// Adds the merge of what the steps of a ring leave, if there is one.
compute::OperatorCost with_merge(const compute::OperatorCost& core, const model::Stream& merge,
                                 const DeviceSpec& device) {
  if (merge.kernels == 0) return core;
  const compute::OperatorCost more =
      compute::pointwise(merge.traffic, merge.vector_flops, merge.kernels, device);
  return {core.time + more.time, core.time < more.time ? more.bound : core.bound, core.work + more.work};
}

OperatorTimes price_attention(const Operator& op, const Setting& setting) {
  const DeviceSpec& device = setting.system.device;
  const PrecisionPolicy policy = setting.policy();
  const Precision precision = policy.attention;
  const AttentionKernel kernel = op.naive_core ? AttentionKernel::naive : setting.system.stack.attention;
  const bool serves = setting.workload.phase == Phase::inference;
  if (op.attention.queries == 1) {
    if (!is_fused(kernel)) return {compute::decode(op.attention, policy.kv_cache, device), {}};
    return {compute::fused_decode(op.attention, kernel, policy.kv_cache, device), {}};
  }
  const compute::OperatorCost forward =
      compute::in_pieces(op.attention, [&](const compute::AttentionShape& shape) {
        return is_fused(kernel) ? compute::fused_forward(shape, kernel, precision, device)
                                : compute::naive_forward(shape, precision, device);
      });
  if (serves) return {forward, {}};
  const compute::OperatorCost backward =
      compute::in_pieces(op.attention, [&](const compute::AttentionShape& shape) {
        return is_fused(kernel) ? compute::fused_backward(shape, kernel, precision, device)
                                : compute::naive_backward(shape, precision, device);
      });
  return {with_merge(forward, op.forward, device), with_merge(backward, op.backward, device)};
}

/// The kernels that tell how a layer's launch falls into parts. It takes no longer with shared experts, whose kernels
/// are launched in the same proportion as the others: with them no part is launched sooner.
double kernels(const Operator& op, Pass pass) {
  if (op.shared_expert) return 0;
  switch (op.kind) {
    case OperatorKind::gemm:
      return pass == Pass::backward ? 2 : 1;
    case OperatorKind::attention:
      return 1;  // in a ring, too: a layer's launch is a constant, of which its kernels share as they do without one
    case OperatorKind::pointwise:
      return (pass == Pass::backward ? op.backward : op.forward).kernels;
    case OperatorKind::collective:
      break;
  }
  return 0;
}

/// Adds up the nodes of a part. `time(node)`: seconds of a node that is work.
template <class Time>
void add_nodes(const std::vector<Operator>& operators, LayerPart part, const Time& time_of, PartCost& sum) {
  std::vector<std::size_t> call_of(operators.size());
  const std::vector<TimedNode> in_order = timed_nodes(operators, part, time_of);
  std::vector<TimedNode> listed = in_order;
  std::ranges::stable_sort(listed, {}, &Node::index);
  for (const TimedNode& node : listed) {
    if (node.call) {
      call_of[node.index] = sum.calls.size();
      sum.calls.push_back({node.comm()});
      sum.call_count += node.comm().repeats;
      continue;
    }
    sum.device += node.time;
    if (node.op->wait > Seconds(0) && node.time > Seconds(0)) sum.meets_host = true;
    if (node.op->attention_core) sum.attention_core += node.time;
    if (!node.op->loads.runs.empty()) sum.experts += node.time;
  }
  sum.between.assign(1, Seconds(0));
  std::vector<std::int32_t> work_of(in_order.size(), -1);  // index: node; value: index in sum.works
  const model::CollectiveCall* exchange = nullptr;         // the node before, if it is a call
  Seconds before;                                          // compute since the last call
  for (const TimedNode& node : in_order) {
    if (node.op->attention_core && !node.call) sum.piece_of_core = sum.between.size() - 1;
    if (node.call) {
      exchange = &node.comm();
      PartCost::Call& call = sum.calls[call_of[node.index]];
      call.piece = sum.between.size() - 1;
      sum.turns.push_back({call_of[node.index], std::exchange(before, Seconds(0))});
      if (exchange->group == ParallelGroup::expert) sum.between.emplace_back(0);
      if (node.hider < 0) continue;
      const auto hider = static_cast<std::size_t>(node.hider);
      if (work_of[hider] < 0) {
        work_of[hider] = static_cast<std::int32_t>(sum.works.size());
        sum.works.push_back(in_order[hider].time);
      }
      call.hider = work_of[hider];
      continue;
    }
    sum.between.back() += node.time;
    before += node.time;
    if (!node.beside_exchange) {
      exchange = nullptr;
      continue;
    }
    if (exchange != nullptr) sum.overlaps.push_back({*std::exchange(exchange, nullptr), Seconds(0)});
    sum.overlaps.back().beside += node.time;
  }
}

/// Share of forward's kernels that are launched again; the attention core counts as one kernel, which is not launched
/// again here.
double repeated_kernels(const std::vector<Operator>& operators) {
  double repeated = 0, all = 0;
  for (const Operator& op : operators) {
    all += kernels(op, Pass::forward);
    if (op.again && !op.attention_core) repeated += kernels(op, Pass::forward);
  }
  return all > 0 ? repeated / all : 0;
}

}  // namespace

compute::OperatorCost price_product(const Operator& op, const compute::GemmShape& shape,
                                    const DeviceSpec& device) {
  if (op.grouped && device.architecture != Architecture::other) {
    const compute::ExpertLoads alike{{{static_cast<double>(shape.batch), static_cast<double>(shape.m)}}};
    return compute::grouped_product(op.loads.runs.empty() ? alike : op.loads, static_cast<double>(shape.n),
                                    static_cast<double>(shape.k), op.operands, device,
                                    {.stored = op.stored, .share = op.rate_share});
  }
  const compute::GemmCost cost =
      compute::gemm(shape, op.operands, device, {compute::output_bytes(op.operands)},
                    {.share = op.grouped ? 1 : op.rate_share});
  return {cost.time, cost.bound, {shape.flops(), cost.hbm_bytes}};
}

OperatorTimes price(const Operator& op, const Setting& setting, ProductMemo* known) {
  const DeviceSpec& device = setting.system.device;
  if (op.own_price != nullptr)
    if (const std::optional<OperatorTimes> own = op.own_price(op, setting)) return *own;
  switch (op.kind) {
    case OperatorKind::gemm:
      if (known == nullptr || op.grouped) return price_gemm(op, setting);
      return known->get({op.gemm, op.operands, op.rate_share}, [&] { return price_gemm(op, setting); });
    case OperatorKind::attention:
      return price_attention(op, setting);
    case OperatorKind::pointwise:
      if (op.wait > Seconds(0)) return {{op.wait, Bound::launch, {}}, {}};
      return {compute::pointwise(op.forward.traffic, op.forward.vector_flops, op.forward.kernels, device),
              compute::pointwise(op.backward.traffic, op.backward.vector_flops, op.backward.kernels, device)};
    case OperatorKind::collective:
      break;
  }
  return {{Seconds(0), Bound::link}, {Seconds(0), Bound::link}};
}

Seconds price_forward(const Operator& op, const Setting& setting) {
  if (op.kind != OperatorKind::gemm) return price(op, setting).forward.time;
  return price_product(op, op.gemm, setting.system.device).time;
}

PartCost price_served(const std::vector<Operator>& operators, const Setting& setting) {
  std::vector<Seconds> seconds;
  for (const Operator& op : operators)
    seconds.push_back(op.kind == OperatorKind::attention ? Seconds(0) : price_forward(op, setting));
  PartCost sum;
  add_nodes(
      operators, LayerPart::forward, [&](const Node& node) { return seconds[node.index]; }, sum);
  return sum;
}

ProductGradients price_gradients(const Operator& op, const Setting& setting) {
  const DeviceSpec& device = setting.system.device;
  const Precision precision = op.operands;
  ProductGradients gradients;
  gradients.input_shape = input_gradient(op.gemm);
  gradients.weight_shape = weight_gradient(op.gemm);
  gradients.input = price_product(op, gradients.input_shape, device);
  gradients.weight = compute::weight_gradient(gradients.weight_shape, precision,
                                              setting.system.stack.state.gradient_bytes, device);
  return gradients;
}

compute::OperatorCost cost_of(const OperatorTimes& times, LayerPart part) {
  switch (part) {
    case LayerPart::forward:
    case LayerPart::repeated:
      return times.forward;
    case LayerPart::backward:
      return times.backward;
    case LayerPart::weight:
      return {times.weight, times.backward.bound, times.weight_work};
    case LayerPart::input:
      break;
  }
  return {times.backward.time - times.weight, times.backward.bound, times.backward.work - times.weight_work};
}

LayerCost price_layer(const std::vector<Operator>& operators, const Setting& setting, ProductMemo* known) {
  std::vector<OperatorTimes> times;
  for (const Operator& op : operators) times.push_back(price(op, setting, known));
  LayerCost cost;
  const auto part_cost = [&](LayerPart part) -> PartCost& {
    return cost.parts[static_cast<std::size_t>(part)];
  };
  const auto time_of = [&](const Node& node) { return cost_of(times[node.index], node.part).time; };
  for (const LayerPart part :
       {LayerPart::forward, LayerPart::repeated, LayerPart::backward, LayerPart::weight, LayerPart::input})
    add_nodes(operators, part, time_of, part_cost(part));
  part_cost(LayerPart::input).device = cost[LayerPart::backward].device - cost[LayerPart::weight].device;
  double all = 0, products = 0;
  for (const Operator& op : operators) {
    all += kernels(op, Pass::backward);
    if (op.routes) ++cost.routers;
    if (op.plain) {
      cost.plain_forward += op.forward.kernels;
      cost.plain_backward += op.backward.kernels;
    }
    if (op.kind == OperatorKind::gemm && op.cut) products += kernels(op, Pass::forward);
  }
  if (all > 0) cost.weight_kernels = products / all;
  cost.repeated_kernels = repeated_kernels(operators);
  return cost;
}

std::vector<Operator> training_operators(LayerKind kind, const Setting& setting, const model::LayerKey& key) {
  const std::int64_t tokens = setting.workload.sequence_length;
  constexpr auto kMode = model::Mode::training;
  if (kind == kEmbeddingLayer) return model::embedding_operators(setting, key, tokens, kMode);
  if (kind == kHeadLayer) return model::head_operators(setting, key, tokens, kMode);
  if (kind == kFurtherLayer) return model::further_operators(setting, key, tokens);
  return model::block_operators(setting, kind.block, key, tokens, kMode);
}

std::vector<LayerKind> layer_kinds(const ModelSpec& model) {
  std::vector<LayerKind> kinds = {kEmbeddingLayer, kHeadLayer};
  if (model::further_modules(model, Phase::training) > 0) kinds.push_back(kFurtherLayer);
  for (std::size_t block = 0, count = model::block_kinds(model).size(); block < count; ++block)
    kinds.push_back(block_layer(block));
  return kinds;
}

namespace {

/// Of each part of a block the costs on the member of the expert group that is slowest with its own experts, for whom
/// the others wait in the next exchange: not always the one with most tokens.
void keep_slowest_members(LayerKind kind, const Setting& setting, const model::LayerKey& key,
                          ProductMemo* known, LayerCost& cost) {
  for (const std::int32_t member : model::distinct_members(setting, key)) {
    model::LayerKey of_member = key;
    of_member.expert_rank = member;
    LayerCost its = price_layer(training_operators(kind, setting, of_member), setting, known);
    for (std::size_t part = 0; part < kParts; ++part)
      if (its.parts[part].device > cost.parts[part].device) cost.parts[part] = std::move(its.parts[part]);
  }
}

}  // namespace

LayerCosts price_layers(const Setting& setting, const model::LayerKey& key, ProductMemo* known) {
  const std::int64_t tokens = setting.workload.sequence_length;
  LayerCosts costs;
  for (const LayerKind kind : layer_kinds(setting.model)) {
    const std::vector<Operator> operators = training_operators(kind, setting, key);
    LayerCost& cost = costs.layers[kind.index()];
    cost = price_layer(operators, setting, known);
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      cost.saved[static_cast<std::size_t>(recompute)] =
          model::saved_bytes(operators, recompute, setting, key, tokens);
    }
    cost.put_off = model::put_off_bytes(operators);
    if (!kind.is_block()) continue;
    keep_slowest_members(kind, setting, key, known, cost);
    cost.working = model::backward_working_bytes(setting, kind.block, key, tokens);
  }
  costs.logits = model::logits_bytes(setting, key, tokens);
  costs.logits_saved = model::saved_logits_bytes(setting, key, tokens);
  costs.boundary = model::boundary_bytes(setting, key, tokens);
  return costs;
}

Seconds hidden_by_attention(const StackProfile::Communication& stack, ParallelGroup group, Seconds comm,
                            Seconds attention) {
  if (group != ParallelGroup::context) return Seconds(0);
  Seconds room = stack.context_overlap * attention;
  return hide(comm, 1, room);
}

}  // namespace shardscape::step
