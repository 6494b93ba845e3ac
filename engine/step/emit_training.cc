#include "engine/step/emit_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "engine/model/partition.h"
#include "engine/schedule/pipeline.h"
#include "engine/step/data_exposure.h"

namespace shardscape::step {

namespace {

using execution::Account;
using execution::Instruction;
using network::CollectiveOp;
using network::PlanLayout;
using Kind = Instruction::Kind;

constexpr std::size_t at(Pass pass) { return static_cast<std::size_t>(pass); }

}  // namespace

TrainingEmitter::TrainingEmitter(const TrainingStep& inputs, execution::ProgramBuilder& builder)
    : in_(inputs),
      builder_(builder),
      stack_(inputs.setting.system.stack),
      lanes_(add_layer_lanes(inputs.plan, builder)),
      layer_emitter_(stack_.communication, builder, lanes_) {
  set_device(in_.setting);
  const PlanLayout layout(in_.plan);
  for (const ParallelGroup copies : kCopyGroups)
    if (in_.plan.folds_experts() || !is_of_experts(copies))
      lanes_[copies] = builder_.add_lane(layout.group(copies), name_of(copies));
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

void TrainingEmitter::set_device(const Setting& setting, std::int32_t expert_rank) {
  device_ = &setting.system.device;
  for (const LayerKind kind : layer_kinds(in_.setting.model)) {
    for (const Pass pass : {Pass::forward, Pass::backward, Pass::weight, Pass::input})
      steps_[kind.index()][at(pass)] = steps_of(kind, pass, setting, expert_rank);
  }
}

std::vector<TrainingEmitter::Step> TrainingEmitter::steps_of(LayerKind kind, Pass pass,
                                                             const Setting& setting,
                                                             std::int32_t expert_rank) const {
  // The same operators in the same order, of other loads.
  const std::vector<model::Operator> busiest = training_operators(kind, in_.setting, in_.key());
  model::LayerKey key = in_.key();
  key.expert_rank = expert_rank;
  const std::vector<model::Operator> operators = training_operators(kind, in_.setting, key);
  std::vector<Step> steps;
  for (const Segment& segment : in_.segments(kind, pass)) {
    layer_emitter_.append_part(
        steps, operators, segment.part, segment.again ? Account::recompute : Account::compute,
        [&](const Node& node) {
          const model::Operator& planned = busiest[static_cast<std::size_t>(node.op - operators.data())];
          return LayerEmitter::Costs{cost_of(price(*node.op, setting), node.part),
                                     cost_of(price(planned, in_.setting), node.part).time};
        });
  }
  return steps;
}

// ---- one pass ----

std::vector<TrainingEmitter::Item> TrainingEmitter::layers_of(const ChunkPass& pass) {
  std::vector<Item> items;
  const auto append = [&](const LayerRun& run) {
    const Pass runs = pass.defers && in_.defers(run.kind) ? Pass::input : pass.pass;
    const std::vector<Step>& steps = steps_[run.kind.index()][at(runs)];
    if (in_.segments(run.kind, runs).empty()) return;
    const Seconds launch = pass_launch(in_, run.kind, runs);
    for (std::int32_t n = 0; n < run.count; ++n) layer_emitter_.append(items, steps, launch);
  };
  const LayerRuns runs = in_.chunk_layers(pass.stage, pass.chunk);
  if (pass.forward()) {
    std::ranges::for_each(runs, append);
  } else {
    std::for_each(runs.rbegin(), runs.rend(), append);
  }
  return items;
}

bool TrainingEmitter::receives(const ChunkPass& pass) const {
  if (pass.pass == Pass::weight) return false;
  if (pass.forward()) return pass.stage > 0 || pass.chunk > 0;
  return !in_.last(pass.stage) || pass.chunk + 1 < in_.pipeline.virtual_stages;
}

bool TrainingEmitter::sends(const ChunkPass& pass) const {
  if (pass.pass == Pass::weight) return false;
  if (!pass.forward()) return pass.stage > 0 || pass.chunk > 0;
  return !in_.last(pass.stage) || pass.chunk + 1 < in_.pipeline.virtual_stages;
}

void TrainingEmitter::receive_boundary(const ChunkPass& pass) {
  builder_.add(on_channel(Kind::receive, pass.forward() ? down_ : up_, 0));
  const Boundary boundary = in_.boundary();
  if (boundary.gathered <= Bytes(0)) return;
  const std::int32_t lane = lanes_[ParallelGroup::tensor];
  const std::int32_t gather = builder_.call(lane, CollectiveOp::all_gather, boundary.gathered);
  builder_.add({Kind::start, Account::compute, static_cast<std::uint16_t>(lane), gather, 1, 0});
  builder_.add(join_lane(lane, Account::pipeline_comm));
}

void TrainingEmitter::send_boundary(const ChunkPass& pass) {
  const std::int32_t channel = pass.forward() ? down_ : up_;
  builder_.add(on_channel(Kind::send, channel, in_.boundary().message.value()));
  if (!stack_.communication.pipeline_async) builder_.add(on_channel(Kind::sent, channel, 0));
}

void TrainingEmitter::add(Instruction instruction, double stretch) const {
  if (instruction.kind == Kind::compute) instruction.value *= stretch;
  builder_.add(instruction);
}

void TrainingEmitter::emit(const std::vector<Item>& items) const {
  for (const Item& item : items) add(item.instruction, item.stretch);
}

/// The calls begin when 1 - data_overlap of the items' time has passed, and end before the pass does. What
/// compute loses to them is waited for behind it.
void TrainingEmitter::emit_beside(const std::vector<Item>& items, const std::vector<Instruction>& calls,
                                  Seconds traffic) {
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
  for (const ParallelGroup copies : kCopyGroups) {
    const auto on_lane = [lane = lanes_[copies]](const Instruction& call) { return call.lane == lane; };
    if (std::ranges::any_of(calls, on_lane)) builder_.add(join_lane(lanes_[copies], Account::data_comm));
  }
  const BesidePass beside = beside_pass(stack_.communication, traffic, Seconds(total));
  if (beside.lost > Seconds(0)) {
    builder_.add(compute(beside.lost.value(), Account::data_comm,
                         builder_.name("lost to data-parallel traffic", {Work{}, beside.lost.value()})));
  }
}

/// The first microbatch's forward, the gather of updated weights beside it.
void TrainingEmitter::emit_first(const std::vector<Item>& items) {
  const double chunks = in_.pipeline.virtual_stages;
  for (const DataTraffic::Part& part : traffic_.weights) {
    const double calls = std::max(1.0, std::round(part.calls / chunks));
    builder_.add(start(part, calls, weights_hidden_ * part.bytes / chunks / calls));
  }
  emit(items);
  join(traffic_.weights);
}

/// What the first forward cannot hide of the gather stays behind the optimizer.
void TrainingEmitter::split_weights(std::int32_t stage) {
  weights_hidden_ = 0;
  if (traffic_.weights.empty() || stack_.communication.gather_overlap <= 0) return;
  double forward = 0;
  for (std::int32_t c = 0; c < in_.pipeline.virtual_stages; ++c) {
    for (const Item& item : layers_of({stage, c, Pass::forward, false})) forward += item.expected;
  }
  Seconds gather;
  for (const DataTraffic::Part& part : traffic_.weights)
    gather += builder_.estimate(lanes_[part.group], part.op, part.bytes, part.calls);
  if (gather > Seconds(0))
    weights_hidden_ = hidden_gather(stack_.communication, gather, Seconds(forward)) / gather;
}

Instruction TrainingEmitter::start(const DataTraffic::Part& part, double calls, Bytes bytes) {
  const std::int32_t lane = lanes_[part.group], number = builder_.call(lane, part.op, bytes);
  return {Kind::start,
          Account::compute,
          static_cast<std::uint16_t>(lane),
          number,
          static_cast<std::int32_t>(std::lround(calls)),
          0};
}

void TrainingEmitter::join(const DataTraffic::Parts& parts) {
  for (const DataTraffic::Part& part : parts) builder_.add(join_lane(lanes_[part.group], Account::data_comm));
}

void TrainingEmitter::release_buckets(std::int32_t stage) {
  for (std::size_t i = 0; i < traffic_.gradients.size(); ++i) {
    const DataTraffic::Part& part = traffic_.gradients[i];
    double& gone = buckets_gone_[i];
    const double whole =
        whole_buckets(part.calls, GradientShares(in_, stage, part.group).after(layers_done_));
    if (whole <= gone) continue;
    builder_.add(start(part, whole - gone, part.bytes / part.calls));
    gone = whole;
  }
}

/// Buckets leave as the backward completes them, once the gate is open; those of the last layer with the
/// tail, or before the weight gradients that come first there.
void TrainingEmitter::emit_gradients(const ChunkPass& pass, const std::vector<Item>& items) {
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
    const bool tail = pass.chunk == 0 && &item == &items.back() && deferred_ == 0;
    if (gate_open_ && !tail) release_buckets(pass.stage);
  }
}

std::int32_t TrainingEmitter::build_pass(const ChunkPass& pass) {
  builder_.add({Kind::sync_host, Account::host, 0, 0, 1, 0});
  const double chunks = in_.pipeline.virtual_stages;
  if (receives(pass)) {
    receive_boundary(pass);
    builder_.add({Kind::sync_host, Account::host, 0, 0, 1, 0});
  }
  const std::vector<Item> items = layers_of(pass);
  std::vector<Instruction> calls;
  Seconds traffic;
  const auto add = [&](const DataTraffic::Part& part) {
    const double mine = std::max(1.0, std::round(part.calls / chunks));
    calls.push_back(start(part, mine, part.bytes / chunks / mine));
    traffic += builder_.estimate(lanes_[part.group], part.op, part.bytes / chunks, mine);
  };
  for (const DataTraffic::Part& part : traffic_.beside(pass.pass, in_.cuts())) add(part);
  if (!calls.empty()) {
    emit_beside(items, calls, traffic);
  } else if (pass.first_gathers) {
    emit_first(items);
  } else if (pass.last && pass.pass == gradient_pass()) {
    emit_gradients(pass, items);
  } else {
    emit(items);
  }
  if (sends(pass)) send_boundary(pass);
  std::string name = pass.pass == Pass::weight ? "W#" : pass.forward() ? "F#" : "B#";
  if (in_.pipeline.virtual_stages > 1) name += fmt::format(" chunk {}", pass.chunk);
  return builder_.end_block(name);
}

/// The weight gradient of the head of one microbatch.
std::int32_t TrainingEmitter::build_deferred() {
  builder_.add({Kind::sync_host, Account::host, 0, 0, 1, 0});
  std::vector<Item> items;
  layer_emitter_.append(items, steps_[kHeadLayer.index()][at(Pass::weight)],
                        pass_launch(in_, kHeadLayer, Pass::weight));
  emit(items);
  return builder_.end_block("W#");
}

std::int32_t TrainingEmitter::build_tail(std::int32_t stage) {
  for (std::size_t i = 0; i < traffic_.gradients.size(); ++i) {
    const DataTraffic::Part& part = traffic_.gradients[i];
    const double calls = part.calls - buckets_gone_[i];
    if (calls > 0) builder_.add(start(part, calls, part.bytes / part.calls));
  }
  join(traffic_.gradients);
  const OptimizerCost optimizer = optimizer_cost(in_, *device_, stage);
  builder_.add(compute(optimizer.total().value(), Account::optimizer,
                       builder_.name("optimizer", {optimizer.update.work, optimizer.total().value()}),
                       builder_.bound(name_of(optimizer.update.bound))));
  if (weights_hidden_ < 1) {
    for (const DataTraffic::Part& part : traffic_.weights) {
      const Bytes shown = (1 - weights_hidden_) * part.bytes;
      builder_.add(start(part, part.calls, shown / part.calls));
    }
    join(traffic_.weights);
  }
  return builder_.end_block("end of step");
}

std::vector<std::int32_t> TrainingEmitter::order_blocks(std::int32_t stage, const StageBlocks& of) const {
  std::vector<schedule::PipelineOperation> order;
  schedule::stage_order(in_.pipeline, stage, order);
  std::vector<std::int32_t> blocks;
  blocks.reserve(order.size() + static_cast<std::size_t>(deferred_) + 1);
  for (const schedule::PipelineOperation& op : order) {
    const auto chunk = static_cast<std::size_t>(op.chunk);
    const bool final = op.microbatch + 1 == in_.pipeline.microbatches;
    if (op.weight) {
      blocks.push_back(final ? of.last_weight : of.weight);
    } else if (op.backward) {
      const auto& backward = final ? of.last : op.microbatch < deferred_ ? of.deferring : of.backward;
      blocks.push_back(backward[chunk]);
    } else {
      blocks.push_back((op.microbatch == 0 && !of.first.empty() ? of.first : of.forward)[chunk]);
    }
  }
  return blocks;
}

/// Returns the sequence of its ranks.
std::int32_t TrainingEmitter::build_stage(std::int32_t stage) {
  traffic_ = data_traffic(in_, in_.parameters_of(stage));
  last_backward_ = backward_done_ = 0;
  buckets_gone_.fill(0);
  layers_done_ = 0;
  gate_open_ = false;
  deferred_ = in_.last(stage) ? in_.deferred() : 0;
  const bool last_defers = deferred_ > 0 && deferred_ == in_.pipeline.microbatches;
  const std::int32_t chunks = in_.pipeline.virtual_stages;
  for (std::int32_t c = 0; c < chunks; ++c) {
    for (const Item& item : layers_of({stage, c, gradient_pass(), true, false, last_defers}))
      last_backward_ += item.expected;
  }
  split_weights(stage);
  StageBlocks of;
  for (std::int32_t c = 0; c < chunks; ++c) {
    if (weights_hidden_ > 0) of.first.push_back(build_pass({stage, c, Pass::forward, false, true}));
    of.forward.push_back(build_pass({stage, c, Pass::forward, false}));
    of.backward.push_back(build_pass({stage, c, Pass::backward, false}));
    if (deferred_ > 0) of.deferring.push_back(build_pass({stage, c, Pass::backward, false, false, true}));
    if (in_.cuts()) of.weight = build_pass({stage, c, Pass::weight, false});
  }
  of.last.resize(static_cast<std::size_t>(chunks));
  for (std::int32_t c = chunks; c-- > 0;) {
    of.last[static_cast<std::size_t>(c)] = build_pass({stage, c, Pass::backward, true, false, last_defers});
  }
  of.last_weight = in_.cuts() ? build_pass({stage, 0, Pass::weight, true}) : 0;
  std::vector<std::int32_t> blocks = order_blocks(stage, of);
  if (deferred_ > 0) blocks.insert(blocks.end(), static_cast<std::size_t>(deferred_), build_deferred());
  blocks.push_back(build_tail(stage));
  return builder_.add_sequence(std::move(blocks), fmt::format("stage {}", stage));
}

/// Ranks of one stage whose devices and experts are alike share a program.
void TrainingEmitter::build_sick_ranks() {
  std::map<std::tuple<std::size_t, const Setting*, std::int32_t>, std::int32_t> built;
  for (const SickStage& sick : in_.sick) {
    const std::int32_t member = expert_member(in_.setting, in_.plan, sick.rank);
    const auto [entry, fresh] = built.try_emplace({sick.stage, &sick.setting, member}, 0);
    if (fresh) {
      set_device(sick.setting, member);
      entry->second = build_stage(static_cast<std::int32_t>(sick.stage));
    }
    builder_.set_sequence(sick.rank, entry->second);
    builder_.set_memory_share(sick.rank,
                              sick.setting.system.device.hbm_peak() / in_.setting.system.device.hbm_peak());
  }
}

void TrainingEmitter::build() {
  const std::int32_t stride = PlanLayout(in_.plan).stride(PlanAxis::pipeline);
  std::map<std::int32_t, std::vector<std::int32_t>>
      sequences;  // by member of the expert group, of each stage
  for (std::int32_t rank = 0; rank < static_cast<std::int32_t>(in_.plan.gpus()); ++rank) {
    const std::int32_t member = expert_member(in_.setting, in_.plan, rank);
    std::vector<std::int32_t>& of = sequences[member];
    if (of.empty()) {
      set_device(in_.setting, member);
      for (std::int32_t stage = 0; stage < in_.plan.pipeline; ++stage) of.push_back(build_stage(stage));
    }
    builder_.set_sequence(rank, of[static_cast<std::size_t>(rank / stride % in_.plan.pipeline)]);
  }
  build_sick_ranks();
}

}  // namespace shardscape::step
