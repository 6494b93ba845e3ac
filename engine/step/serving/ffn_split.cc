// Prices iterations whose attention and experts lie on different ranks: times of a layer on both, the exchanges between
// them, and the batches that take turns.
#include "engine/step/serving/ffn_split.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "engine/memory/memory.h"
#include "engine/model/block_kinds.h"
#include "engine/network/collectives/traffic_builder.h"
#include "engine/spec/token_copies.h"
#include "engine/step/serving/serving_memory.h"

namespace shardscape::step {

namespace {

using serving::Iteration;
using serving::IterationTime;

/// Tokens of each rank of experts when every replica of attention sends those of one batch.
std::int64_t tokens_of_experts(const ParallelPlan& plan, std::int64_t of_batch) {
  return (of_batch * plan.data + plan.ffn - 1) / plan.ffn;
}

std::int64_t batches_of(const Setting& setting, std::int64_t tokens) {
  return std::min(setting.system.stack.serving.ffn_batches, tokens);
}

/// A moment, and what the time until then went by with.
struct Passed {
  double at = 0;
  IterationTime spent{};

  void add(TimeClass time_class, double seconds) {
    at += seconds;
    spent[time_class] += seconds;
  }
  void add(const IterationTime& seconds) {
    for (const TimeClass c : serving::kServingClasses) add(c, seconds[c]);
  }
};
const Passed& later(const Passed& a, const Passed& b) { return b.at > a.at ? b : a; }

class SplitIterations {
 public:
  SplitIterations(const InferenceInputs& inputs, const network::CollectivePrices& collectives,
                  TokenCosts& attention, TokenCosts& experts, const SplitFabric& fabric)
      : in_(inputs),
        stack_(inputs.setting.system.stack),
        collectives_(collectives),
        attention_(attention),
        experts_(experts),
        fabric_(fabric),
        layout_(inputs.plan) {
    const Setting& setting = in_.setting;
    const double copies = copies_sent({.top_k = static_cast<double>(setting.model.moe->top_k),
                                       .members = static_cast<double>(in_.plan.ffn)});
    values_ = copies * static_cast<double>(setting.model.hidden);
    sent_ = dispatched_value_bytes(setting.policy(), stack_.experts);
    returned_ = bytes_per_element(setting.policy().wire);
  }

  IterationTime operator()(const Iteration& all) {
    const auto tokens = static_cast<std::int64_t>(std::ceil(all.prompt_tokens + all.decoding));
    const std::int64_t batches = batches_of(in_.setting, std::max<std::int64_t>(1, tokens));
    const TokenTable table = table_of(all);
    const Iteration batch = part_of(all, batches);
    const auto of_batch = static_cast<std::int64_t>(std::ceil(batch.prompt_tokens + batch.decoding));
    std::vector<SplitRun> runs;
    for (const auto& [kind, count] : in_.layers.front())
      runs.push_back({layer(table, kind, batch, of_batch), count});
    IterationTime time = run_split(runs, batches);

    add(attention_.at(table, tokens).end, time);
    const double rows = all.decoding + all.first_tokens;
    if (rows > 0) add(attention_.at(TokenTable::head, static_cast<std::int64_t>(std::ceil(rows))).end, time);
    const IterationHost host = host_of_iteration(stack_, in_.batches(), rows);
    time[TimeClass::host] += host.total();
    return time;
  }

 private:
  /// Adds the calls of ranks of attention among each other.
  void add_calls(const PartCost& part, IterationTime& time) const {
    const auto seconds = call_times(
        part, stack_.communication,
        [&](const model::CollectiveCall& call) {
          return call.group == ParallelGroup::expert
                     ? Seconds(0)
                     : collectives_.time({call.op, call.bytes, layout_.group(call.group)});
        },
        [](const model::CollectiveCall&, const model::CollectiveCall&, Seconds) { return Seconds(0); });
    for (const ParallelGroup group : enum_values<ParallelGroup>())
      time[class_of(group)] += seconds[group].value();
  }
  void add(const PartCost& part, IterationTime& time) const {
    time[TimeClass::compute] += part.device.value();
    add_calls(part, time);
  }
  /// Adds what the host takes longer to launch a block than it runs.
  void add_host(double calls, IterationTime& time) const {
    const auto [launch, gap] = host_of_block(stack_, calls, 1);
    time[TimeClass::host] += std::max(0.0, launch - serving::total(time)) + gap;
  }

  SplitLayer layer(TokenTable table, std::size_t kind, const Iteration& batch, std::int64_t tokens) {
    const PartCost& cost = attention_.at(table, tokens).blocks[kind];
    const AttentionSeconds core = attention_.attention(kind, batch);
    SplitLayer split;
    split.deals = attention_.deals(kind);
    IterationTime& attention = split.attention;
    attention[TimeClass::compute] =
        (split.deals ? cost.between.front() : cost.device).value() + core.prompt + core.decode;
    add_calls(cost, attention);
    add_host(cost.call_count, attention);
    if (!split.deals) return split;
    split.behind[TimeClass::compute] = cost.between.back().value();
    const PartCost& of_experts = experts_.at(table, tokens_of_experts(in_.plan, tokens)).blocks[kind];
    split.experts[TimeClass::compute] = of_experts.between[1].value();
    // The gap between the kernels of a block is paid once, with attention.
    split.experts[TimeClass::host] =
        std::max(0.0, host_of_block(stack_, of_experts.call_count, 1).launch - serving::total(split.experts));
    const double values = values_ * static_cast<double>(tokens * in_.plan.data);
    split.dispatch = fabric_.latency + fabric_.dispatch * values * sent_;
    split.combine = fabric_.latency + fabric_.combine * values * returned_;
    return split;
  }

  const InferenceInputs in_;
  const StackProfile& stack_;
  const network::CollectivePrices& collectives_;
  TokenCosts &attention_, &experts_;
  const SplitFabric fabric_;
  network::PlanLayout layout_;
  double values_ = 0;               ///< that a token sends, and gets back
  double sent_ = 0, returned_ = 0;  ///< bytes of one of them
};

/// The seconds for each byte that all connections share out evenly, on the link that carries most; raises `latency`.
double slowest_link(network::TrafficBuilder& builder, double call, network::PricedNetwork& network,
                    double& latency) {
  const network::Traffic wires = builder.finish().first;
  const std::span<const double> rates = network.bytes_per_second();
  std::vector<double> flows(rates.size(), 0);
  for (const network::Connection& connection : wires.connections) {
    const std::span<const std::int32_t> path = wires.path(connection);
    latency = std::max(latency, network.step_latency(path) + call);
    for (const std::int32_t link : path) ++flows[static_cast<std::size_t>(link)];
  }
  double slowest = 0;
  for (std::size_t link = 0; link < rates.size(); ++link)
    if (flows[link] > 0) slowest = std::max(slowest, flows[link] / rates[link]);
  return slowest / static_cast<double>(wires.connections.size());
}

}  // namespace

ParallelPlan attention_side(ParallelPlan plan) {
  if (plan.ffn == 0) return plan;
  plan.expert = plan.ffn;
  plan.expert_tensor = 1;
  return plan;
}

ParallelPlan expert_side(const ParallelPlan& plan) {
  ParallelPlan side = attention_side(plan);
  side.tensor = 1;
  side.data = plan.ffn;
  return side;
}

IterationTime run_split(std::span<const SplitRun> layers, std::int64_t batches) {
  struct Batch {
    Passed ready;                           ///< for the ranks of attention
    const IterationTime* behind = nullptr;  ///< what they have still to do for its layer before
  };
  std::vector<Batch> all(static_cast<std::size_t>(batches));
  Passed attention, dispatch, experts, combine;  // each: when it has done what came so far
  const auto attend = [&](const Batch& batch, const IterationTime* further) {
    Passed now = later(attention, batch.ready);
    if (batch.behind != nullptr) now.add(*batch.behind);
    if (further != nullptr) now.add(*further);
    attention = now;
  };
  for (const auto& [layer, count] : layers) {
    for (std::int32_t i = 0; i < count; ++i) {
      for (Batch& batch : all) {
        attend(batch, &layer.attention);
        batch = {attention, nullptr};
        if (!layer.deals) continue;
        dispatch = later(attention, dispatch);
        dispatch.add(TimeClass::expert_comm, layer.dispatch);
        experts = later(dispatch, experts);
        experts.add(layer.experts);
        combine = later(experts, combine);
        combine.add(TimeClass::expert_comm, layer.combine);
        batch = {combine, &layer.behind};
      }
    }
  }
  for (const Batch& batch : all) attend(batch, nullptr);
  return attention.spent;
}

SplitFabric split_fabric(const Setting& setting, const ParallelPlan& plan, std::span<const std::int32_t> pool,
                         network::PricedNetwork& network) {
  const std::size_t attention = pool.size() - static_cast<std::size_t>(plan.ffn);
  network::TrafficBuilder there(network.routes()), back(network.routes());
  for (const std::int32_t rank : pool.first(attention)) {
    for (const std::int32_t of_experts : pool.subspan(attention)) {
      there.connection(rank, of_experts);
      back.connection(of_experts, rank);
    }
  }
  SplitFabric fabric;
  fabric.unreachable = !there.unreachable().empty() || !back.unreachable().empty();
  if (fabric.unreachable) return fabric;
  const double call = setting.system.stack.communication.call.value();
  fabric.dispatch = slowest_link(there, call, network, fabric.latency);
  fabric.combine = slowest_link(back, call, network, fabric.latency);
  return fabric;
}

serving::Timer split_timer(const InferenceInputs& in, const network::CollectivePrices& collectives,
                           InferenceMemo& memo, const SplitFabric& fabric) {
  const auto split = std::make_shared<SplitIterations>(
      in, collectives, memo.token_costs(in.setting, attention_side(in.plan)),
      memo.token_costs(in.setting, expert_side(in.plan)), fabric);
  return [split](const Iteration& iteration) { return (*split)(iteration); };
}

MemoryUse expert_ranks_memory(const Setting& setting, const ParallelPlan& plan,
                              const std::vector<model::StageLayers>& layers, std::int64_t sequences) {
  const ParallelPlan side = expert_side(plan);
  const std::int64_t batches = batches_of(setting, sequences);
  Iteration most;
  most.decoding = static_cast<double>(tokens_of_experts(plan, (sequences + batches - 1) / batches));
  most.cached = most.decoding;
  memory::MemoryInputs inputs{setting,
                              side,
                              layers,
                              model::stage_parameters(setting.model, setting.policy(), side),
                              serving_activations(setting, side, {most}),
                              {}};
  const model::ParameterGroups all = inputs.parameters.of_stage(layers, 0);
  const model::ParameterGroups experts(ParallelGroup::expert_data, all[ParallelGroup::expert_data]);
  inputs.held = {&experts, 1};
  inputs.activations.logits = Bytes(0);
  return memory::inference_stage(inputs, 0, 0, 0);
}

}  // namespace shardscape::step
