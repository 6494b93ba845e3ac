#include "engine/passes/training_program.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "engine/model/block.h"
#include "engine/model/embedding.h"
#include "engine/model/head.h"
#include "engine/model/partition.h"
#include "engine/network/plan_groups.h"
#include "engine/passes/data_exposure.h"
#include "engine/schedule/pipeline.h"

namespace shardscape::passes {

namespace {

using execution::Account;
using execution::Instruction;
using network::CollectiveOp;
using network::PlanLayout;
using Kind = Instruction::Kind;

double stretch(double on_device, double healthy) { return healthy > 0 ? on_device / healthy : 1; }

}  // namespace

TrainingProgram::TrainingProgram(const TrainingInputs& inputs, execution::ProgramBuilder& builder)
    : in_(inputs),
      builder_(builder),
      stack_(inputs.setting.system.stack),
      tensor_lane_(builder.add_lane(network::PlanGroups(inputs.plan)[ParallelGroup::tensor], "tensor")),
      context_lane_(builder.add_lane(network::PlanGroups(inputs.plan)[ParallelGroup::context], "context")),
      layer_program_(stack_.communication, builder, tensor_lane_, context_lane_) {
  set_device(in_.setting);
  const PlanLayout layout(in_.plan);
  data_lane_ = builder_.add_lane(network::PlanGroups(in_.plan)[ParallelGroup::data_shard], "data");
  const std::int32_t stages = in_.plan.pipeline, stride = layout.stride(PlanAxis::pipeline);
  const bool wraps = in_.pipeline.virtual_stages > 1;
  const auto neighbour = [=](std::int32_t rank, std::int32_t step) {
    const std::int32_t stage = rank / stride % stages, next = stage + step;
    if (!wraps && (next < 0 || next >= stages)) return rank;
    return rank + ((next + stages) % stages - stage) * stride;
  };
  down_ = builder_.add_channel([=](std::int32_t rank) { return neighbour(rank, 1); }, "to next stage");
  up_ = builder_.add_channel([=](std::int32_t rank) { return neighbour(rank, -1); }, "to previous stage");
}

void TrainingProgram::set_device(const Setting& setting) {
  const model::LayerKey key{in_.plan.tensor, in_.plan.context, in_.plan.microbatch,
                            in_.plan.sequence_parallel};
  const std::int64_t tokens = in_.setting.workload.sequence_length;
  constexpr auto kMode = model::Mode::training;
  device_ = &setting.system.device;
  blocks_.clear();
  for (std::size_t kind = 0; kind < in_.costs.blocks.size(); ++kind) {
    const auto operators = model::block_operators(in_.setting, kind, key, tokens, kMode);
    blocks_.push_back(price_layer(operators, setting));
  }
  embedding_ = price_layer(model::embedding_operators(in_.setting, key, tokens, kMode), setting);
  head_ = price_layer(model::head_operators(in_.setting, key, tokens, kMode), setting);
}

PricedLayer TrainingProgram::price_layer(const std::vector<model::Operator>& operators,
                                         const Setting& setting) {
  PricedLayer layer;
  for (const model::Operator& op : operators) {
    const OperatorTimes healthy = price(op, in_.setting), here = price(op, setting);
    PricedOperator priced;
    const auto named = [&](const Work& work, Seconds time) {
      return builder_.name(op.name, {work, time.value()});
    };
    priced.name = named(here.forward.work, here.forward.time);
    priced.backward_name = named(here.backward.work, here.backward.time);
    priced.input_name = named(here.backward.work - here.weight_work, here.backward.time - here.weight);
    priced.weight_name = named(here.weight_work, here.weight);
    priced.forward = healthy.forward.time.value();
    priced.backward = healthy.backward.time.value();
    priced.weight = healthy.weight.value();
    priced.forward_bound = builder_.bound(name_of(here.forward.bound));
    priced.backward_bound = builder_.bound(name_of(here.backward.bound));
    priced.forward_stretch = stretch(here.forward.time.value(), priced.forward);
    priced.backward_stretch = stretch(here.backward.time.value(), priced.backward);
    priced.weight_stretch = stretch(here.weight.value(), priced.weight);
    priced.input_stretch =
        stretch((here.backward.time - here.weight).value(), priced.backward - priced.weight);
    priced.attention_core = op.attention_core;
    priced.forward_comm = op.forward_comm;
    priced.backward_comm = op.backward_comm;
    layer.push_back(priced);
  }
  return layer;
}

// ---- one layer ----

void TrainingProgram::append_backward(std::vector<Step>& steps, const PricedLayer& layer, bool cut) const {
  model::CollectiveCall context;
  for (const PricedOperator& op : layer) {
    if (op.backward_comm.repeats > 0 && op.backward_comm.axis == PlanAxis::context)
      context = op.backward_comm;
  }
  for (std::size_t i = layer.size(); i-- > 0;) {
    const PricedOperator& op = layer[i];
    const double seconds = cut ? op.backward - op.weight : op.backward;
    if (seconds > 0) {
      const double on_device = cut ? op.input_stretch : op.backward_stretch;
      const std::int32_t name = cut ? op.input_name : op.backward_name;
      steps.push_back({seconds, Account::compute, name, op.backward_bound, on_device, {}, false});
      if (op.attention_core && context.repeats > 0) {
        steps.back().comm = context;
        steps.back().hidden_context = true;
      }
    }
    const bool ring = op.backward_comm.axis == PlanAxis::context;
    if (op.backward_comm.repeats > 0 && !ring) {
      steps.push_back({0, Account::compute, op.name, 0, 1, op.backward_comm, false});
    }
  }
}

void TrainingProgram::append_weight(std::vector<Step>& steps, const PricedLayer& layer) {
  for (std::size_t i = layer.size(); i-- > 0;) {
    const PricedOperator& op = layer[i];
    if (op.weight <= 0) continue;
    steps.push_back(
        {op.weight, Account::compute, op.weight_name, op.backward_bound, op.weight_stretch, {}, false});
  }
}

/// The attention core again, with the keys and values of the other context ranks.
void TrainingProgram::append_selective(std::vector<Step>& steps, const PricedLayer& layer) const {
  std::vector<Step> all;
  LayerProgram::append_forward(all, layer, Account::recompute);
  for (const PricedOperator& op : layer) {
    if (!op.attention_core) continue;
    const auto same = [&](const Step& s) { return s.name == op.name; };
    std::ranges::copy_if(all, std::back_inserter(steps), same);
  }
}

// ---- one pass ----

std::vector<TrainingProgram::Item> TrainingProgram::layers_of(const Pass& pass) {
  const std::int32_t chunks = in_.pipeline.virtual_stages;
  std::vector<std::size_t> blocks;  // by their kinds
  model::layers_of_chunk(in_.layers[static_cast<std::size_t>(pass.stage)], chunks, pass.chunk)
      .each([&](std::size_t kind) { blocks.push_back(kind); });
  if (pass.backward) std::ranges::reverse(blocks);
  const bool embeds = pass.stage == 0 && pass.chunk == 0;
  const bool heads = pass.stage + 1 == in_.plan.pipeline && pass.chunk + 1 == chunks;
  std::vector<Item> items;
  if (pass.weight) {
    for (const std::size_t kind : blocks) {
      std::vector<Step> steps;
      append_weight(steps, blocks_[kind]);
      layer_program_.append(items, steps,
                            backward_launch(in_, in_.costs.blocks[kind], in_.plan.recompute, true).weight);
    }
    return items;
  }
  const auto layer = [&](const PricedLayer& priced, const LayerCost& cost, Recompute recompute, bool cut) {
    std::vector<Step> steps;
    if (!pass.backward) {
      LayerProgram::append_forward(steps, priced, Account::compute);
    } else {
      if (recompute == Recompute::full) LayerProgram::append_forward(steps, priced, Account::recompute);
      if (recompute == Recompute::selective) append_selective(steps, priced);
      append_backward(steps, priced, cut);
    }
    const Seconds launch = pass.backward ? backward_launch(in_, cost, recompute, cut).input
                                         : pass_launch(in_, stack_.host.forward_layer, cost.forward_calls);
    layer_program_.append(items, steps, launch);
  };
  const auto embedding = [&] { layer(embedding_, in_.costs.embedding, Recompute::none, false); };
  const auto head = [&] { layer(head_, in_.costs.head, Recompute::none, false); };
  if (pass.backward && heads) head();
  if (!pass.backward && embeds) embedding();
  for (const std::size_t kind : blocks)
    layer(blocks_[kind], in_.costs.blocks[kind], in_.plan.recompute, cuts());
  if (pass.backward && embeds) embedding();
  if (!pass.backward && heads) head();
  return items;
}

bool TrainingProgram::receives(const Pass& pass) const {
  if (pass.weight) return false;
  if (!pass.backward) return pass.stage > 0 || pass.chunk > 0;
  return pass.stage + 1 < in_.plan.pipeline || pass.chunk + 1 < in_.pipeline.virtual_stages;
}

bool TrainingProgram::sends(const Pass& pass) const {
  if (pass.weight) return false;
  if (pass.backward) return pass.stage > 0 || pass.chunk > 0;
  return pass.stage + 1 < in_.plan.pipeline || pass.chunk + 1 < in_.pipeline.virtual_stages;
}

void TrainingProgram::receive_boundary(const Pass& pass) {
  builder_.add(on_channel(Kind::receive, pass.backward ? up_ : down_, 0));
  const bool cut =
      stack_.communication.scatter_boundaries && !in_.plan.sequence_parallel && in_.plan.tensor > 1;
  if (!cut) return;
  const std::int32_t gather = builder_.call(tensor_lane_, CollectiveOp::all_gather, in_.costs.boundary);
  builder_.add({Kind::start, Account::compute, static_cast<std::uint16_t>(tensor_lane_), gather, 1, 0});
  builder_.add(join_lane(tensor_lane_, Account::pipeline_comm));
}

void TrainingProgram::send_boundary(const Pass& pass) {
  const bool cut =
      stack_.communication.scatter_boundaries && !in_.plan.sequence_parallel && in_.plan.tensor > 1;
  const double bytes = in_.costs.boundary.value() / (cut ? in_.plan.tensor : 1);
  const std::int32_t channel = pass.backward ? up_ : down_;
  builder_.add(on_channel(Kind::send, channel, bytes));
  if (!stack_.communication.pipeline_async) builder_.add(on_channel(Kind::sent, channel, 0));
}

void TrainingProgram::add(Instruction instruction, double stretch) const {
  if (instruction.kind == Kind::compute) instruction.value *= stretch;
  builder_.add(instruction);
}

void TrainingProgram::emit(const std::vector<Item>& items) const {
  for (const Item& item : items) add(item.instruction, item.stretch);
}

/// The calls begin when 1 - data_overlap of the items' time has passed, and end before the pass does.
void TrainingProgram::emit_beside(const std::vector<Item>& items, const std::vector<Instruction>& calls) {
  double total = 0;
  for (const Item& item : items) total += item.expected;
  const double begin = (1 - stack_.communication.data_overlap) * total;
  double passed = 0;
  bool begun = false;
  const auto begin_calls = [&] {
    begun = true;
    for (const Instruction& call : calls) builder_.add(call);
  };
  for (const Item& item : items) {
    const double rest = begin - passed;
    passed += item.expected;
    const bool here = !begun && passed > begin;
    Instruction instruction = item.instruction;
    if (here && instruction.kind == Kind::compute && rest > 0) {
      Instruction before = instruction;
      before.value = rest;
      add(before, item.stretch);
      instruction.value -= rest;
    }
    if (here) begin_calls();
    add(instruction, item.stretch);
  }
  if (!begun) begin_calls();
  builder_.add(join_lane(data_lane_, Account::data_comm));
}

Instruction TrainingProgram::start(const DataTraffic::Part& part, double calls, Bytes bytes) {
  const std::int32_t number = builder_.call(data_lane_, part.op, bytes);
  return {Kind::start,
          Account::compute,
          static_cast<std::uint16_t>(data_lane_),
          number,
          static_cast<std::int32_t>(std::lround(calls)),
          0};
}

void TrainingProgram::release_buckets(std::int32_t stage) {
  const DataTraffic::Part& part = traffic_.gradients;
  if (part.bytes <= Bytes(0)) return;
  const double whole = whole_buckets(part.calls, GradientShares(in_, stage).after(layers_done_));
  if (whole <= buckets_gone_) return;
  builder_.add(start(part, whole - buckets_gone_, part.bytes / part.calls));
  buckets_gone_ = whole;
}

/// Buckets leave as the backward completes them, once the gate is open; those of the last layer with the
/// tail.
void TrainingProgram::emit_gradients(const Pass& pass, const std::vector<Item>& items) {
  constexpr double kRounding = 1e-9;  // chunks add up in another order than last_backward_
  const double gate = (1 - stack_.communication.data_overlap) * last_backward_;
  for (const Item& item : items) {
    const double rest = gate - backward_done_;
    backward_done_ += item.expected;
    Instruction instruction = item.instruction;
    if (!gate_open_ && backward_done_ > gate + kRounding * last_backward_) {
      if (instruction.kind == Kind::compute && rest > 0) {
        Instruction before = instruction;
        before.value = rest;
        add(before, item.stretch);
        instruction.value -= rest;
      }
      gate_open_ = true;
      release_buckets(pass.stage);
    }
    add(instruction, item.stretch);
    if (!item.layer_end) continue;
    ++layers_done_;
    const bool tail = pass.chunk == 0 && &item == &items.back();
    if (gate_open_ && !tail) release_buckets(pass.stage);
  }
}

std::int32_t TrainingProgram::build_pass(const Pass& pass) {
  builder_.add({Kind::sync_host, Account::host, 0, 0, 1, 0});
  const double chunks = in_.pipeline.virtual_stages;
  if (receives(pass)) {
    receive_boundary(pass);
    builder_.add({Kind::sync_host, Account::host, 0, 0, 1, 0});
  }
  const std::vector<Item> items = layers_of(pass);
  std::vector<Instruction> calls;
  const auto add = [&](const DataTraffic::Part& part) {
    if (part.bytes <= Bytes(0)) return;
    const double mine = std::max(1.0, std::round(part.calls / chunks));
    calls.push_back(start(part, mine, part.bytes / chunks / mine));
  };
  if (!pass.backward) add(traffic_.forward_gather);
  if (pass.backward && !pass.weight) add(traffic_.backward_gather);
  if (pass.backward && pass.weight == cuts()) add(traffic_.backward_scatter);
  if (!calls.empty()) {
    emit_beside(items, calls);
  } else if (pass.last && pass.weight == cuts()) {
    emit_gradients(pass, items);
  } else {
    emit(items);
  }
  if (sends(pass)) send_boundary(pass);
  std::string name = pass.weight ? "W#" : pass.backward ? "B#" : "F#";
  if (in_.pipeline.virtual_stages > 1) name += " chunk " + std::to_string(pass.chunk);
  return builder_.end_block(name);
}

std::int32_t TrainingProgram::build_tail(std::int32_t stage) {
  const auto finish = [&](const DataTraffic::Part& part, double calls) {
    if (part.bytes <= Bytes(0)) return;
    if (calls > 0) builder_.add(start(part, calls, part.bytes / part.calls));
    builder_.add(join_lane(data_lane_, Account::data_comm));
  };
  finish(traffic_.gradients, traffic_.gradients.calls - buckets_gone_);
  const OptimizerCost optimizer = optimizer_cost(in_, *device_, static_cast<std::size_t>(stage));
  builder_.add(compute(optimizer.total().value(), Account::optimizer,
                       builder_.name("optimizer", {optimizer.update.work, optimizer.total().value()}),
                       builder_.bound(name_of(optimizer.update.bound))));
  finish(traffic_.weights, traffic_.weights.calls);
  return builder_.end_block("end of step");
}

/// Returns the sequence of its ranks.
std::int32_t TrainingProgram::build_stage(std::int32_t stage) {
  traffic_ = data_traffic(in_, in_.parameters.of_stage(in_.layers, static_cast<std::size_t>(stage)));
  last_backward_ = backward_done_ = buckets_gone_ = 0;
  layers_done_ = 0;
  gate_open_ = false;
  const std::int32_t chunks = in_.pipeline.virtual_stages;
  for (std::int32_t c = 0; c < chunks; ++c) {
    for (const Item& item : layers_of({stage, c, true, true, cuts()})) last_backward_ += item.expected;
  }
  std::vector<std::int32_t> forward, backward, last, weight;
  for (std::int32_t c = 0; c < chunks; ++c) {
    forward.push_back(build_pass({stage, c, false, false, false}));
    backward.push_back(build_pass({stage, c, true, false, false}));
    if (cuts()) weight.push_back(build_pass({stage, c, true, false, true}));
  }
  last.resize(static_cast<std::size_t>(chunks));
  for (std::int32_t c = chunks; c-- > 0;) {
    last[static_cast<std::size_t>(c)] = build_pass({stage, c, true, true, false});
  }
  const std::int32_t last_weight = cuts() ? build_pass({stage, 0, true, true, true}) : 0;
  const std::int32_t tail = build_tail(stage);

  std::vector<schedule::PipelineOperation> order;
  schedule::stage_order(in_.pipeline, stage, order);
  std::vector<std::int32_t> blocks;
  blocks.reserve(order.size() + 1);
  for (const schedule::PipelineOperation& op : order) {
    const bool final = op.microbatch + 1 == in_.pipeline.microbatches;
    if (op.weight) {
      blocks.push_back(final ? last_weight : weight.front());
      continue;
    }
    const std::vector<std::int32_t>& of = !op.backward ? forward : final ? last : backward;
    blocks.push_back(of[static_cast<std::size_t>(op.chunk)]);
  }
  blocks.push_back(tail);
  return builder_.add_sequence(std::move(blocks), "stage " + std::to_string(stage));
}

/// Ranks of one stage whose devices are alike share a program.
void TrainingProgram::build_sick_ranks() {
  std::map<std::pair<std::size_t, const Setting*>, std::int32_t> built;
  for (const SickStage& sick : in_.sick) {
    const auto [entry, fresh] = built.try_emplace({sick.stage, &sick.setting}, 0);
    if (fresh) {
      set_device(sick.setting);
      entry->second = build_stage(static_cast<std::int32_t>(sick.stage));
    }
    builder_.set_sequence(sick.rank, entry->second);
    builder_.set_memory_share(sick.rank,
                              sick.setting.system.device.hbm_peak() / in_.setting.system.device.hbm_peak());
  }
}

void TrainingProgram::build() {
  const std::int32_t stride = PlanLayout(in_.plan).stride(PlanAxis::pipeline);
  std::vector<std::int32_t> sequences;
  for (std::int32_t stage = 0; stage < in_.plan.pipeline; ++stage) sequences.push_back(build_stage(stage));
  for (std::int32_t rank = 0; rank < static_cast<std::int32_t>(in_.plan.gpus()); ++rank) {
    builder_.set_sequence(rank, sequences[static_cast<std::size_t>(rank / stride % in_.plan.pipeline)]);
  }
  build_sick_ranks();
}

}  // namespace shardscape::passes
