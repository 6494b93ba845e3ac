#include "engine/step/layers/emit_layer.h"

#include <algorithm>
#include <cmath>

namespace shardscape::step {

using execution::Account;
using execution::Instruction;

Instruction compute(double seconds, Account account, std::int32_t name, std::uint16_t bound) {
  return {Instruction::Kind::compute, account, bound, name, 1, seconds};
}
Instruction host_launch(double seconds) {
  return {Instruction::Kind::launch, Account::host, 0, 0, 1, seconds};
}
Instruction host_sync() { return {Instruction::Kind::sync_host, Account::host, 0, 0, 1, 0}; }
Instruction join_lane(std::int32_t lane, Account account) {
  return {Instruction::Kind::join, account, static_cast<std::uint16_t>(lane), 0, 1, 0};
}
Instruction on_channel(Instruction::Kind kind, std::int32_t channel, double bytes) {
  return {kind, Account::pipeline_comm, static_cast<std::uint16_t>(channel), 0, 1, bytes};
}

GroupLanes add_layer_lanes(const ParallelPlan& plan, execution::ProgramBuilder& builder) {
  GroupLanes lanes;
  lanes.values.fill(-1);
  const network::PlanLayout layout(plan);
  for (const ParallelGroup group : kLayerGroups)
    if (plan.folds_experts() || !is_of_experts(group))
      lanes[group] = builder.add_lane(layout.group(group), name_of(group));
  return lanes;
}

std::int32_t expert_member(const Setting& setting, const ParallelPlan& plan, std::int32_t rank) {
  if (plan.expert == 1 || !loads_differ(setting.model, setting.workload)) return model::LayerKey::kBusiest;
  // The rank's number in an order of ranks without the pipeline (spec/parallel_groups.h).
  const std::int32_t stride = network::PlanLayout(plan).stride(PlanAxis::pipeline);
  const std::int32_t in_stage = rank / (stride * plan.pipeline) * stride + rank % stride;
  return in_stage / plan.expert_tensor % plan.expert;
}

LayerEmitter::Step LayerEmitter::compute_step(std::string_view name, double seconds, Account account,
                                              const compute::OperatorCost& here) const {
  return {seconds, account, builder_.name(name, {here.work, here.time.value()}),
          builder_.bound(name_of(here.bound)), here.time.value() / seconds};
}

void LayerEmitter::append_calls(std::vector<Item>& items, const model::CollectiveCall& call) {
  const std::int32_t lane = lanes_[call.group];
  const std::int32_t number = builder_.call(lane, call.op, call.bytes);
  if (number < 0) return;
  const auto repeats = static_cast<std::int32_t>(std::lround(call.repeats));
  items.push_back(
      {{Instruction::Kind::start, Account::compute, static_cast<std::uint16_t>(lane), number, repeats, 0}});
}

void LayerEmitter::append_join(std::vector<Item>& items, ParallelGroup group, double expected) const {
  items.push_back({join_lane(lanes_[group], class_of(group)), expected});
}

/// Appends `seconds` of the compute of a step.
void LayerEmitter::append_compute(std::vector<Item>& items, const Step& step, double seconds) {
  items.push_back({.instruction = compute(seconds, step.account, step.name, step.bound),
                   .expected = seconds,
                   .stretch = step.stretch});
}

/// Appends attention, and the exchange of keys and values beside the first part of it.
void LayerEmitter::append_context(std::vector<Item>& items, const Step& step) {
  const double hider = communication_.context_overlap * step.seconds, comm = seconds_of(step.comm);
  append_calls(items, step.comm);
  if (hider > 0) append_compute(items, step, hider);
  append_join(items, ParallelGroup::context, std::max(0.0, comm - hider));
  if (step.seconds > hider) append_compute(items, step, step.seconds - hider);
}

void LayerEmitter::add(Instruction instruction, double stretch) const {
  if (instruction.kind == Instruction::Kind::compute) instruction.value *= stretch;
  builder_.add(instruction);
}

void LayerEmitter::add_lost_to_exchanges(double hidden) const {
  const double lost = (1 - communication_.expert_hidden) * hidden;
  if (lost > 0)
    builder_.add(
        compute(lost, Account::expert_comm, builder_.name("lost to exchanges of experts", {Work{}, lost})));
}

double LayerEmitter::seconds_of(const model::CollectiveCall& call) {
  return call.repeats * builder_.estimate(lanes_[call.group], call.op, call.bytes, 1, slice_).value();
}

/// Appends compute between two calls: its first part hides the call before, which has begun, its last part the one
/// behind.
void LayerEmitter::append_beside(std::vector<Item>& items, const Step& step, const Step* before,
                                 const Step* behind) {
  double room = step.seconds;
  const double of_before = before != nullptr ? seconds_of(before->comm) : 0;
  const double of_behind = behind != nullptr ? seconds_of(behind->comm) : 0;
  const double first = hide(of_before, communication_.tensor_overlap, room);
  const double last = hide(of_behind, communication_.tensor_overlap, room);
  if (first > 0) append_compute(items, step, first);
  if (before != nullptr) append_join(items, before->comm.group, of_before - first);
  if (room > 0) append_compute(items, step, room);
  if (behind == nullptr) return;
  append_calls(items, behind->comm);
  if (last > 0) append_compute(items, step, last);
  append_join(items, behind->comm.group, of_behind - last);
}

void LayerEmitter::append(std::vector<Item>& items, const std::vector<Step>& steps, Seconds launch,
                          HostLead& lead, bool meets) {
  if (meets) items.push_back({.instruction = host_sync()});
  const std::size_t first = items.size();
  append_steps(items, steps);
  double expected = 0;
  for (std::size_t i = first; i < items.size(); ++i) expected += items[i].expected;
  items.push_back({.instruction = host_launch(launch.value()),
                   .expected = lead.launch(1, Seconds(expected), launch, meets).value(),
                   .layer_end = true});
}

void LayerEmitter::append_steps(std::vector<Item>& items, const std::vector<Step>& steps) {
  const auto is_call = [&](std::size_t i) { return i < steps.size() && steps[i].seconds == 0; };
  const auto hides = [&](std::size_t i, Step::Hider hider) {
    return is_call(i) && steps[i].hider == hider && communication_.tensor_overlap > 0;
  };
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    if (hides(i, Step::Hider::before)) continue;  // it was appended with the compute before it
    if (is_call(i)) {
      append_calls(items, step.comm);
      if (hides(i, Step::Hider::behind)) continue;
      double beside = 0;
      for (; i + 1 < steps.size() && steps[i + 1].beside_exchange; ++i) {
        append_compute(items, steps[i + 1], steps[i + 1].seconds);
        beside += steps[i + 1].seconds;
      }
      append_join(items, step.comm.group, std::max(0.0, seconds_of(step.comm) - beside));
    } else if (step.hidden_context) {
      append_context(items, step);
    } else {
      append_beside(items, step, i > 0 && hides(i - 1, Step::Hider::behind) ? &steps[i - 1] : nullptr,
                    hides(i + 1, Step::Hider::before) ? &steps[i + 1] : nullptr);
    }
  }
}

}  // namespace shardscape::step
