#include "engine/step/emit_layer.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace shardscape::step {

using execution::Account;
using execution::Instruction;
using Kind = Instruction::Kind;

Instruction compute(double seconds, Account account, std::int32_t name, std::uint16_t bound) {
  return {Kind::compute, account, bound, name, 1, seconds};
}
Instruction join_lane(std::int32_t lane, Account account) {
  return {Kind::join, account, static_cast<std::uint16_t>(lane), 0, 1, 0};
}
Instruction on_channel(Kind kind, std::int32_t channel, double bytes) {
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
  // Counted in the rank order without the pipeline (spec/parallel_groups.h).
  const std::int32_t stride = network::PlanLayout(plan).stride(PlanAxis::pipeline);
  const std::int32_t in_stage = rank / (stride * plan.pipeline) * stride + rank % stride;
  return in_stage / plan.expert_tensor % plan.expert;
}

LayerEmitter::Step LayerEmitter::compute_step(std::string_view name, double seconds, Account account,
                                              const compute::OperatorCost& here) const {
  return {seconds,
          account,
          builder_.name(name, {here.work, here.time.value()}),
          builder_.bound(name_of(here.bound)),
          here.time.value() / seconds,
          {},
          false,
          false};
}

void LayerEmitter::append_calls(std::vector<Item>& items, const model::CollectiveCall& call, double share) {
  const std::int32_t lane = lanes_[call.group];
  const std::int32_t number = builder_.call(lane, call.op, share * call.bytes);
  if (number < 0) return;
  const auto repeats = static_cast<std::int32_t>(std::lround(call.repeats));
  items.push_back(
      {{Kind::start, Account::compute, static_cast<std::uint16_t>(lane), number, repeats, 0}, 0, false, 1});
}

void LayerEmitter::append_join(std::vector<Item>& items, ParallelGroup group, double expected) const {
  items.push_back({join_lane(lanes_[group], class_of(group)), expected, false, 1});
}

/// Adds `seconds` of the step's compute.
void LayerEmitter::append_compute(std::vector<Item>& items, const Step& step, double seconds) {
  items.push_back({compute(seconds, step.account, step.name, step.bound), seconds, false, step.stretch});
}

/// The exchange of keys and values beside the first part of attention.
void LayerEmitter::append_context(std::vector<Item>& items, const Step& step) {
  const double hider = communication_.context_overlap * step.seconds, comm = seconds_of(step.comm, 1);
  append_calls(items, step.comm, 1);
  if (hider > 0) append_compute(items, step, hider);
  append_join(items, ParallelGroup::context, std::max(0.0, comm - hider));
  if (step.seconds > hider) append_compute(items, step, step.seconds - hider);
}

double LayerEmitter::seconds_of(const model::CollectiveCall& call, double share) {
  if (share <= 0) return 0;
  return call.repeats * builder_.estimate(lanes_[call.group], call.op, share * call.bytes).value();
}

/// The share of calls that runs beside an operator of so many seconds: the stack's, or none where the two
/// parts, each with the latencies of a call, take longer than the call in one piece.
double LayerEmitter::hidden_share(const model::CollectiveCall& call, double beside) {
  const double overlap = overlapped_share(communication_, call.group);
  if (overlap <= 0) return 0;
  const double exposed = std::max(0.0, seconds_of(call, overlap) - beside) + seconds_of(call, 1 - overlap);
  return exposed < seconds_of(call, 1) ? overlap : 0;
}

void LayerEmitter::append(std::vector<Item>& items, const std::vector<Step>& steps, Seconds launch,
                          double& lead) {
  const std::size_t first = items.size();
  append_steps(items, steps);
  double expected = 0;
  for (std::size_t i = first; i < items.size(); ++i) expected += items[i].expected;
  lead += expected - launch.value();
  items.push_back({{Kind::launch, Account::host, 0, 0, 1, launch.value()}, std::max(0.0, -lead), true, 1});
  lead = std::max(0.0, lead);
}

void LayerEmitter::append_steps(std::vector<Item>& items, const std::vector<Step>& steps) {
  const auto seconds = [&](std::size_t i) { return i < steps.size() ? steps[i].seconds : 0; };
  // Whether the calls at i hide behind the operator before them (rather than behind the one after).
  const auto hides_before = [&](std::size_t i) { return i > 0 && seconds(i - 1) >= seconds(i + 1); };
  const auto is_call = [&](std::size_t i) { return i < steps.size() && steps[i].seconds == 0; };
  const auto hidden = [&](std::size_t i) {
    return hidden_share(steps[i].comm, std::max(i > 0 ? seconds(i - 1) : 0, seconds(i + 1)));
  };
  const auto expected_since = [&](std::size_t from) {
    double sum = 0;
    for (std::size_t i = from; i < items.size(); ++i) sum += items[i].expected;
    return sum;
  };
  double outlasting = 0;  // what hidden calls take beyond the operator beside them, until they are waited for
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    if (is_call(i)) {
      const double exposed = 1 - hidden(i);
      append_calls(items, step.comm, exposed);
      double beside = 0;
      for (; i + 1 < steps.size() && steps[i + 1].beside_exchange; ++i) {
        append_compute(items, steps[i + 1], seconds(i + 1));
        beside += seconds(i + 1);
      }
      const double left = std::max(0.0, seconds_of(step.comm, exposed) - beside);
      append_join(items, step.comm.group, std::exchange(outlasting, 0) + left);
      continue;
    }
    const double of_next = is_call(i + 1) && hides_before(i + 1) ? hidden(i + 1) : 0;
    const double of_last = i > 0 && is_call(i - 1) && !hides_before(i - 1) ? hidden(i - 1) : 0;
    if (of_last > 0) append_calls(items, steps[i - 1].comm, of_last);
    if (of_next > 0) append_calls(items, steps[i + 1].comm, of_next);
    const std::size_t operator_begin = items.size();
    if (step.hidden_context) {
      append_context(items, step);
    } else {
      append_compute(items, step, step.seconds);
    }
    double calls = 0;
    if (of_last > 0) calls += seconds_of(steps[i - 1].comm, of_last);
    if (of_next > 0) calls += seconds_of(steps[i + 1].comm, of_next);
    outlasting = std::max(0.0, calls - expected_since(operator_begin));
    if (of_last > 0) append_join(items, steps[i - 1].comm.group, std::exchange(outlasting, 0));
  }
}

}  // namespace shardscape::step
