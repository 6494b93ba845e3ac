// Makes the programs of a training step: the blocks of each stage (passes, pairs, the end of the step) with what runs
// beside them, put in the order of the schedule, and further programs for ranks with sick devices.
#include "engine/step/training/emit_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <utility>

#include "engine/step/layers/layer_timer.h"
#include "engine/step/layers/paired_passes.h"
#include "engine/step/training/data_exposure.h"
#include "engine/step/training/stage_tails.h"

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
  // All data-parallel traffic shares one stream, whatever its group (data_exposure.h), so these lanes take turns.
  if (in_.plan.folds_experts())
    builder_.take_turns(lanes_[ParallelGroup::expert_data], lanes_[ParallelGroup::data_shard]);
  const std::int32_t stages = in_.plan.pipeline, stride = layout.stride(PlanAxis::pipeline);
  const bool wraps = in_.pipeline.wraps();
  const auto neighbour = [=](std::int32_t rank, std::int32_t step) {
    const std::int32_t stage = rank / stride % stages, next = stage + step;
    if (!wraps && (next < 0 || next >= stages)) return rank;
    return rank + ((next + stages) % stages - stage) * stride;
  };
  for (std::size_t way = 0; way < (in_.pipeline.both_ways() ? 2 : 1); ++way) {
    const char* const note = way == 0 ? "" : ", upward microbatches";
    down_[way] = builder_.add_channel([=](std::int32_t rank) { return neighbour(rank, 1); },
                                      fmt::format("to next stage{}", note));
    up_[way] = builder_.add_channel([=](std::int32_t rank) { return neighbour(rank, -1); },
                                    fmt::format("to previous stage{}", note));
  }
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
  // The operators of the busiest rank: the same ones in the same order, but with other loads.
  const std::vector<model::Operator> busiest = training_operators(kind, in_.setting, in_.key());
  model::LayerKey key = in_.key();
  key.expert_rank = expert_rank;
  const std::vector<model::Operator> operators = training_operators(kind, in_.setting, key);
  std::vector<Step> steps;
  for (const Segment& segment : in_.segments(kind, pass)) {
    layer_emitter_.append_part(
        steps, operators, segment.part, segment.again ? Account::recompute : Account::compute,
        [&](const Node& node) { return cost_of(price(busiest[node.index], in_.setting), node.part).time; },
        [&](const Node& node) { return cost_of(price(*node.op, setting), node.part); });
  }
  return steps;
}

/// From here on, calls are expected to take what they take on the devices of this stage.
void TrainingEmitter::set_slice(std::int32_t stage) {
  layer_emitter_.set_slice(slice_of(static_cast<std::size_t>(stage), in_, builder_.collectives()));
}

// ---- one pass ----

std::vector<TrainingEmitter::Item> TrainingEmitter::layers_of(const ChunkPass& pass) {
  std::vector<Item> items;
  double lead = 0;
  const auto append = [&](const LayerRun& run) {
    const Pass runs = pass.defers && in_.defers(run.kind) ? Pass::input : pass.pass;
    const std::vector<Step>& steps = steps_[run.kind.index()][at(runs)];
    if (in_.segments(run.kind, runs).empty()) return;
    const Seconds launch = pass_launch(in_, run.kind, runs);
    const bool meets = !pass.paired && meets_host(in_, run.kind, runs);
    for (std::int32_t n = 0; n < run.count; ++n) {
      if (meets) {
        items.push_back({.instruction = host_sync()});
        lead = 0;
      }
      layer_emitter_.append(items, steps, launch, lead);
    }
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
  const std::int32_t part = in_.pipeline.part(pass.stage, pass.chunk);
  return pass.forward() ? part > 0 : part + 1 < in_.pipeline.parts();
}

bool TrainingEmitter::sends(const ChunkPass& pass) const {
  if (pass.pass == Pass::weight) return false;
  const std::int32_t part = in_.pipeline.part(pass.stage, pass.chunk);
  return pass.forward() ? part + 1 < in_.pipeline.parts() : part > 0;
}

/// The channel by which the messages of a pass travel.
std::int32_t TrainingEmitter::channel(const ChunkPass& pass) const {
  const bool upward = in_.pipeline.both_ways() && pass.chunk == 1;
  return (pass.forward() == upward ? up_ : down_)[upward ? 1 : 0];
}

/// Receives the input of a pass from the neighbour stage, if it has any; the host launches nothing before it is there.
void TrainingEmitter::receive_inputs(const ChunkPass& pass) {
  if (!receives(pass)) return;
  receive_boundary(pass);
  builder_.add(host_sync());
}

void TrainingEmitter::receive_boundary(const ChunkPass& pass) {
  builder_.add(on_channel(Kind::receive, channel(pass), 0));
  const Boundary boundary = in_.boundary();
  if (boundary.gathered <= Bytes(0)) return;
  const std::int32_t lane = lanes_[ParallelGroup::tensor];
  const std::int32_t gather = builder_.call(lane, CollectiveOp::all_gather, boundary.gathered);
  builder_.add({Kind::start, Account::compute, static_cast<std::uint16_t>(lane), gather, 1, 0});
  builder_.add(join_lane(lane, Account::pipeline_comm));
}

void TrainingEmitter::send_boundary(const ChunkPass& pass) {
  builder_.add(on_channel(Kind::send, channel(pass), in_.boundary().message.value()));
}

void TrainingEmitter::await_boundary(const ChunkPass& pass) {
  if (!stack_.communication.pipeline_async) builder_.add(on_channel(Kind::sent, channel(pass), 0));
}

/// Whether something else can begin in the middle of the item.
bool TrainingEmitter::cuttable(const Item& item) {
  return item.instruction.kind == Kind::compute || item.instruction.kind == Kind::launch;
}

void TrainingEmitter::emit(const std::vector<Item>& items) const {
  for (const Item& item : items) layer_emitter_.add(item.instruction, item.stretch);
}

/// Adds the part of an item before something that begins `begin` seconds into it, and returns the rest. Operators are
/// cut there, and so are waits for the host, the end of a launch. Waits for calls can't be cut: what begins within one
/// is to begin before it.
Instruction TrainingEmitter::cut(const Item& item, double begin) const {
  Instruction rest = item.instruction;
  if (!cuttable(item) || begin <= 0) return rest;
  Instruction before = rest;
  rest.value = rest.kind == Kind::compute ? rest.value - begin : item.expected - begin;
  before.value -= rest.value;
  layer_emitter_.add(before, item.stretch);
  return rest;
}

/// Adds a pass and the calls beside it. The calls begin when 1 - data_overlap of the items' time has passed (or before
/// the wait for calls that this falls into), and end before the pass does. What compute loses to them follows behind
/// it.
void TrainingEmitter::emit_beside(const std::vector<Item>& items, const std::vector<Instruction>& calls,
                                  Seconds traffic) {
  double total = 0;
  for (const Item& item : items) total += item.expected;
  const double begin = (1 - stack_.communication.data_overlap) * total;
  double passed = 0, together = 0;
  bool begun = false;
  const auto begin_calls = [&](double now) {
    begun = true;
    together = total - now;
    for (const Instruction& call : calls) builder_.add(call);
  };
  for (const Item& item : items) {
    const double start = passed;
    passed += item.expected;
    Instruction instruction = item.instruction;
    if (!begun && passed > begin) {
      instruction = cut(item, begin - start);
      begin_calls(cuttable(item) ? begin : start);
    }
    layer_emitter_.add(instruction, item.stretch);
  }
  if (!begun) begin_calls(total);
  for (const ParallelGroup copies : kCopyGroups) {
    const auto on_lane = [lane = lanes_[copies]](const Instruction& call) { return call.lane == lane; };
    if (std::ranges::any_of(calls, on_lane)) builder_.add(join_lane(lanes_[copies], Account::data_comm));
  }
  const Seconds lost = lost_beside(stack_.communication, std::min(traffic, Seconds(together)));
  if (lost > Seconds(0)) builder_.add(lost_compute(lost));
}

Instruction TrainingEmitter::lost_compute(Seconds lost) {
  return compute(lost.value(), Account::data_comm,
                 builder_.name("lost to data-parallel traffic", {Work{}, lost.value()}));
}

/// What compute loses to the traffic that goes once in a step, by the same prices as in stage_tails.cc.
Seconds TrainingEmitter::lost_in_step() {
  Seconds beside = gather_beside_;
  if (!in_.pipeline.both_ways()) {
    Seconds all_but_last;
    for (const DataTraffic::Part& part : traffic_.gradients)
      all_but_last +=
          (1 - 1 / part.calls) * builder_.estimate(lanes_[part.group], part.op, part.bytes, part.calls);
    beside += gradients_beside(stack_.communication, all_but_last, Seconds(last_backward_));
  }
  return lost_once(in_.setting.system, beside);
}

/// Adds the first microbatch's forward, and beside it the gather of updated weights.
void TrainingEmitter::emit_first(const std::vector<Item>& items) {
  const double chunks = in_.pipeline.virtual_stages;
  for (const DataTraffic::Part& part : traffic_.weights) {
    const double calls = std::max(1.0, std::round(weights_hidden_ * part.calls / chunks));
    builder_.add(start(part, calls, weights_hidden_ * part.bytes / chunks / calls));
  }
  emit(items);
  join(traffic_.weights);
}

/// Decides how much of the weights' gather the first forward hides; the rest stays behind the optimizer.
void TrainingEmitter::split_weights(std::int32_t stage) {
  weights_hidden_ = 0;
  gather_beside_ = {};
  if (traffic_.weights.empty() || stack_.communication.gather_overlap <= 0) return;
  // Under dualpipe a stage and its mirror make these calls together, so both must find the same share. So both sum up
  // in the order of the model, whichever chunk that puts first, and take the lesser of their two forwards, which differ
  // where only one of them has sick links.
  const std::int32_t chunks = in_.pipeline.virtual_stages;
  const bool upward = in_.pipeline.both_ways() && in_.pipeline.part(stage, 0) > in_.pipeline.part(stage, 1);
  const auto forward_on = [&](std::int32_t devices) {
    set_slice(devices);
    double sum = 0;
    for (std::int32_t c = 0; c < chunks; ++c) {
      const std::int32_t chunk = upward ? chunks - 1 - c : c;
      for (const Item& item : layers_of({stage, chunk, Pass::forward})) sum += item.expected;
    }
    return sum;
  };
  double forward = forward_on(stage);
  if (in_.pipeline.both_ways()) {
    forward = std::min(forward, forward_on(in_.plan.pipeline - 1 - stage));
    set_slice(stage);
  }
  WeightGather gather;
  for (const DataTraffic::Part& part : traffic_.weights)
    gather.add(builder_.estimate(lanes_[part.group], part.op, part.bytes, part.calls), part.calls);
  if (gather.whole <= Seconds(0)) return;
  const Seconds hidden = hidden_gather(stack_.communication, gather, Seconds(forward));
  weights_hidden_ = hidden / gather.whole;
  gather_beside_ = hidden;
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

/// Adds a backward, and lets buckets leave as it completes them, once the gate is open. Buckets of the last layer leave
/// in the tail or, if the head's weight gradients are deferred, before those.
void TrainingEmitter::emit_gradients(const ChunkPass& pass, const std::vector<Item>& items) {
  constexpr double kRounding = 1e-9;  // sums over chunks here and in last_backward_ are rounded differently
  const double gate = (1 - stack_.communication.data_overlap) * last_backward_;
  for (const Item& item : items) {
    const double rest = gate - backward_done_;
    backward_done_ += item.expected;
    Instruction instruction = item.instruction;
    if (!gate_open_ && backward_done_ > gate + kRounding * last_backward_) {
      instruction = cut(item, rest);
      gate_open_ = true;
      release_buckets(pass.stage);
    }
    layer_emitter_.add(instruction, item.stretch);
    if (!item.layer_end) continue;
    ++layers_done_;
    const bool tail = pass.chunk == 0 && &item == &items.back() && deferred_ == 0;
    if (gate_open_ && !tail) release_buckets(pass.stage);
  }
}

std::int32_t TrainingEmitter::build_pass(const ChunkPass& pass) {
  builder_.add(host_sync());
  const double chunks = in_.pipeline.virtual_stages;
  receive_inputs(pass);
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
  } else if (pass.last && pass.pass == gradient_pass() && !in_.pipeline.both_ways()) {
    emit_gradients(pass, items);
  } else {
    emit(items);
  }
  if (sends(pass)) {
    send_boundary(pass);
    await_boundary(pass);
  }
  std::string name = pass.pass == Pass::weight  ? "W#"
                     : pass.pass == Pass::input ? "B# (inputs)"
                     : pass.forward()           ? "F#"
                                                : "B#";
  if (in_.pipeline.virtual_stages > 1) name += fmt::format(" chunk {}", pass.chunk);
  return builder_.end_block(name);
}

std::int32_t TrainingEmitter::build_pair(const ChunkPass& forward, const ChunkPass& backward) {
  builder_.add(host_sync());
  receive_inputs(forward);
  receive_inputs(backward);
  double hidden = 0;
  emit(pair_up(layers_of(forward), layers_of(backward), lanes_[ParallelGroup::expert],
               stack_.communication.expert_overlap, hidden));
  layer_emitter_.add_lost_to_exchanges(hidden);
  for (const ChunkPass& pass : {forward, backward})
    if (sends(pass)) send_boundary(pass);
  for (const ChunkPass& pass : {forward, backward})
    if (sends(pass)) await_boundary(pass);
  return builder_.end_block(in_.pipeline.virtual_stages > 1
                                ? fmt::format("FB# chunks {} and {}", forward.chunk, backward.chunk)
                                : std::string("FB#"));
}

/// Builds the deferred weight gradient of the head for one microbatch.
std::int32_t TrainingEmitter::build_deferred() {
  builder_.add(host_sync());
  std::vector<Item> items;
  double lead = 0;
  layer_emitter_.append(items, steps_[kHeadLayer.index()][at(Pass::weight)],
                        pass_launch(in_, kHeadLayer, Pass::weight), lead);
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
  if (const Seconds lost = lost_in_step(); lost > Seconds(0)) builder_.add(lost_compute(lost));
  const OptimizerCost optimizer = optimizer_cost(in_, *device_, stage);
  builder_.add(compute(optimizer.total().value(), Account::optimizer,
                       builder_.name("optimizer", {optimizer.update.work, optimizer.total().value()}),
                       builder_.bound(name_of(optimizer.update.bound))));
  if (weights_hidden_ < 1) {
    for (const DataTraffic::Part& part : traffic_.weights) {
      const double calls = std::max(1.0, std::round((1 - weights_hidden_) * part.calls));
      builder_.add(start(part, calls, (1 - weights_hidden_) * part.bytes / calls));
    }
    join(traffic_.weights);
  }
  return builder_.end_block("end of step");
}

std::int32_t TrainingEmitter::backward_block(const StageBlocks& of,
                                             const schedule::PipelineOperation& op) const {
  const auto chunk = static_cast<std::size_t>(op.chunk);
  const bool final = op.microbatch + 1 == in_.pipeline.per_chunk();
  if (op.weight) return final && in_.cuts() ? of.last_weight : of.weight[chunk];
  if (op.cut && !in_.cuts()) return of.cut[chunk];
  return (final ? of.last : op.microbatch < deferred_ ? of.deferring : of.backward)[chunk];
}

std::int32_t TrainingEmitter::pair_block(std::int32_t stage, const schedule::PipelineOperation& forward,
                                         const schedule::PipelineOperation& backward, StageBlocks& of) {
  const bool defers = backward.microbatch < deferred_;
  const auto [entry, fresh] = of.pairs.try_emplace({forward.chunk, backward.chunk, defers ? 1 : 0}, 0);
  if (fresh) {
    entry->second = build_pair(
        {.stage = stage, .chunk = forward.chunk, .pass = Pass::forward, .paired = true},
        {.stage = stage, .chunk = backward.chunk, .pass = Pass::backward, .defers = defers, .paired = true});
  }
  return entry->second;
}

std::vector<std::int32_t> TrainingEmitter::order_blocks(std::int32_t stage, StageBlocks& of) {
  std::vector<schedule::PipelineOperation> order;
  schedule::stage_order(in_.pipeline, stage, order);
  std::vector<std::int32_t> blocks;
  blocks.reserve(order.size() + static_cast<std::size_t>(deferred_) + 1);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const schedule::PipelineOperation& op = order[i];
    if (op.paired) {
      blocks.push_back(pair_block(stage, op, order[++i], of));
    } else if (op.backward) {
      blocks.push_back(backward_block(of, op));
    } else {
      const bool gathers = op.microbatch == 0 && !of.first.empty();
      blocks.push_back((gathers ? of.first : of.forward)[static_cast<std::size_t>(op.chunk)]);
    }
  }
  return blocks;
}

/// Builds the programs of a stage; returns the number of its sequence.
std::int32_t TrainingEmitter::build_stage(std::int32_t stage) {
  set_slice(stage);
  traffic_ = data_traffic(in_, in_.parameters_of(stage));
  last_backward_ = backward_done_ = 0;
  buckets_gone_.fill(0);
  layers_done_ = 0;
  gate_open_ = false;
  deferred_ = in_.last(stage) ? in_.deferred() : 0;
  const bool last_defers = deferred_ > 0 && deferred_ == in_.pipeline.microbatches;
  const auto last_pass = [&](std::int32_t chunk, Pass pass) {
    return ChunkPass{.stage = stage, .chunk = chunk, .pass = pass, .last = true, .defers = last_defers};
  };
  const std::int32_t chunks = in_.pipeline.virtual_stages;
  for (std::int32_t c = 0; c < chunks; ++c) {
    for (const Item& item : layers_of(last_pass(c, gradient_pass()))) last_backward_ += item.expected;
  }
  split_weights(stage);
  StageBlocks of;
  for (std::int32_t c = 0; c < chunks; ++c) {
    if (weights_hidden_ > 0)
      of.first.push_back(
          build_pass({.stage = stage, .chunk = c, .pass = Pass::forward, .first_gathers = true}));
    of.forward.push_back(build_pass({stage, c, Pass::forward}));
    of.backward.push_back(build_pass({stage, c, Pass::backward}));
    if (deferred_ > 0)
      of.deferring.push_back(
          build_pass({.stage = stage, .chunk = c, .pass = Pass::backward, .defers = true}));
    if (in_.cuts() || in_.pipeline.both_ways()) of.weight.push_back(build_pass({stage, c, Pass::weight}));
    if (in_.pipeline.both_ways()) of.cut.push_back(build_pass({stage, c, Pass::input}));
  }
  of.last.resize(static_cast<std::size_t>(chunks));
  for (std::int32_t c = chunks; c-- > 0;) {
    of.last[static_cast<std::size_t>(c)] = build_pass(last_pass(c, Pass::backward));
  }
  of.last_weight = in_.cuts() ? build_pass({.stage = stage, .pass = Pass::weight, .last = true}) : 0;
  std::vector<std::int32_t> blocks = order_blocks(stage, of);
  if (deferred_ > 0) blocks.insert(blocks.end(), static_cast<std::size_t>(deferred_), build_deferred());
  blocks.push_back(build_tail(stage));
  return builder_.add_sequence(std::move(blocks), fmt::format("stage {}", stage));
}

/// Builds programs for ranks with sick devices. Ranks of one stage with the same device and experts share a program.
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
    builder_.set_memory_share(sick.rank, sick.memory_share);
  }
}

void TrainingEmitter::build() {
  set_sequences(
      in_.setting, in_.plan, builder_, [&](std::int32_t member) { set_device(in_.setting, member); },
      [&](std::int32_t stage) { return build_stage(stage); });
  build_sick_ranks();
}

}  // namespace shardscape::step
