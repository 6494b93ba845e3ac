// Evaluates one design point by a list of passes (divisibility, partition, memory, time), each of which may end it with
// a status and a reason; repeats the last one under faults where these touch it.
#include "engine/simulate.h"

#include <algorithm>
#include <utility>

#include "engine/base/check.h"
#include "engine/evaluate/evaluators.h"
#include "engine/prediction_range.h"
#include "engine/step/feasibility.h"
#include "engine/token_prices.h"

namespace shardscape {

namespace {

using evaluate::Evaluator;
using evaluate::Machine;
using evaluate::Point;

/// The healthy prediction that rerun() starts from.
struct Healthy {
  Point point;         ///< point of the last run()
  Point again;         ///< the same point evaluated again by rerun(), while `links` was made
  bool timed = false;  ///< the last run() has found a time, with status ok
  bool links_known = false;
  network::LinkSet links;  ///< links that carry any traffic
};

void forget_times(Details* details) {
  if (details == nullptr) return;
  details->stage_forward.clear();
  details->stage_backward.clear();
  details->operators.clear();
  details->timeline.clear();
}

/// Rejects points without a time: groups that dead links cut, and ranks that wait for each other in a circle.
void reject_untimed(Point& point) {
  if (!point.unreachable && !point.deadlocked) return;
  Prediction rejected;
  rejected.status = point.unreachable ? Status::unreachable : Status::unsupported;
  rejected.reason = point.unreachable ? Reason::no_route : Reason::schedule;
  rejected.microbatches = point.out.microbatches;
  rejected.peak_stage = point.out.peak_stage;
  rejected.memory_peak = point.out.memory_peak;
  rejected.memory = point.out.memory;
  rejected.prefill_memory_peak = point.out.prefill_memory_peak;
  rejected.peak_in_prefill = point.out.peak_in_prefill;
  point.out = rejected;
  forget_times(point.details);
}

/// Rejects points with a figure that is no number, or beyond what any machine has.
void check_range(Point& point, Phase phase) {
  if (point.unreachable || point.deadlocked || in_range(point.out, phase)) return;
  reject_range(point.out);
  forget_times(point.details);
  if (point.details == nullptr) return;
  point.details->schedule.reset();
  point.details->programs.reset();
}

}  // namespace

struct Simulator::Impl {
  Impl(const Setting& s, SimulateOptions options)
      : setting(s),
        machine(s, std::move(options)),
        training(evaluate::training_evaluator(machine)),
        replicas(evaluate::replica_evaluator(machine)),
        pools(evaluate::pool_evaluator(machine)) {}

  Prediction run(const ParallelPlan& plan, const FaultSet& faults, Details* details);
  Prediction judge(const ParallelPlan& plan);
  Prediction rerun(const FaultSet& faults);

  [[nodiscard]] Evaluator& evaluator_of(const ParallelPlan& plan) const {
    if (setting.workload.phase == Phase::training) return *training;
    return plan.disaggregated() ? *pools : *replicas;
  }

  // The passes over a point, in this order; each that returns bool says whether to go on.
  bool check(Point& point) const;
  static bool partition(Point& point, Evaluator& evaluator);
  bool fit(Point& point, Evaluator& evaluator) const;
  void time(Point& point, Evaluator& evaluator) const;

  void find_links(Evaluator& evaluator);
  [[nodiscard]] bool in_the_way(const FaultSet& faults, const Evaluator& evaluator) const;

  const Setting& setting;
  Machine machine;
  std::unique_ptr<Evaluator> training, replicas, pools;
  Healthy healthy;  ///< of the last run(), kept for rerun()
};

// One design point: what does not divide is rejected first, then what does not fit, and only the rest is
// timed.
Prediction Simulator::Impl::run(const ParallelPlan& plan, const FaultSet& faults, Details* details) {
  // Pools of servers may leave the last ranks of a machine idle.
  const std::int64_t ranks = machine.fabric().ranks();
  SHARDSCAPE_CHECK(plan.gpus() == ranks || (plan.disaggregated() && plan.gpus() < ranks), plan.gpus(), ranks);
  Evaluator& evaluator = evaluator_of(plan);
  if (machine.options().reference) evaluator.forget();
  machine.set_faults(faults);
  healthy.timed = healthy.links_known = false;

  Point& point = healthy.point;
  const bool trains = setting.workload.phase == Phase::training;
  point.restart(trains ? plan : with_replicas(plan, setting.model, setting.system.stack.serving), details);
  // Divisibility and support; O(1), computes no times or bytes.
  const bool timed = check(point) &&
                     partition(point, evaluator)  // assigns layers to stages, by the stack's rule
                     && fit(point, evaluator);    // peak memory of every stage
  if (timed)
    // Times operators, collectives, pipeline or server, and tail; rejects points cut off or out of range.
    time(point, evaluator);
  point.details = nullptr;
  healthy.timed = timed && faults.empty() && point.out.status == Status::ok;
  return point.out;
}

Prediction Simulator::Impl::judge(const ParallelPlan& plan) {
  Evaluator& evaluator = evaluator_of(plan);
  if (machine.options().reference) evaluator.forget();
  Point point;
  point.plan = plan;
  if (check(point) && partition(point, evaluator)) fit(point, evaluator);
  return point.out;
}

bool Simulator::Impl::check(Point& point) const {
  const step::Verdict verdict = step::check_plan(setting, point.plan);
  point.out.status = verdict.status;
  point.out.reason = verdict.reason;
  if (verdict.status != Status::ok) return false;
  const bool every_pass =
      machine.options().mode == ExecutionMode::flattened ||
      (point.details != nullptr &&
       (point.details->want_schedule || point.details->want_programs || point.details->want_timeline));
  if (!step::too_long(setting, point.plan, every_pass)) return true;
  reject_range(point.out);
  return false;
}

bool Simulator::Impl::partition(Point& point, Evaluator& evaluator) {
  if (evaluator.partition(point)) return true;
  point.out.status = Status::indivisible;
  point.out.reason = Reason::layers_by_pipeline;
  return false;
}

bool Simulator::Impl::fit(Point& point, Evaluator& evaluator) const {
  evaluator.memory(point);
  if (!memory_in_range(point.out)) {
    reject_range(point.out);
    return false;
  }
  if (point.out.memory_peak <= point.capacity_or(setting.system.device.memory_capacity())) return true;
  point.out.status = Status::memory;
  point.out.reason = Reason::memory_capacity;
  return machine.options().time_infeasible;
}

void Simulator::Impl::time(Point& point, Evaluator& evaluator) const {
  evaluator.find_sick(point);
  evaluator.time(point);
  fill_token_prices(setting.system, point.plan, point.out);
  reject_untimed(point);
  check_range(point, setting.workload.phase);
}

/// Times the healthy plan once more, to find which links carry anything.
void Simulator::Impl::find_links(Evaluator& evaluator) {
  machine.set_faults({});
  healthy.again = Point(healthy.point);
  healthy.again.out = healthy.point.by_prices();
  const network::LinkRecorder recorder(machine.collectives());
  time(healthy.again, evaluator);
  healthy.links = recorder.all();
  healthy.links_known = true;
}

bool Simulator::Impl::in_the_way(const FaultSet& faults, const Evaluator& evaluator) const {
  if (!healthy.links_known) return !faults.empty();
  if (evaluator.minds_sick_devices() && !faults.devices.empty()) return true;
  return std::ranges::any_of(faults.links,
                             [&](const LinkFault& fault) { return healthy.links.contains(fault.link); });
}

// Divisibility, partition and memory of the plan are those of the last run(); so are the costs of operations that cross
// no faulty link.
Prediction Simulator::Impl::rerun(const FaultSet& faults) {
  SHARDSCAPE_CHECK(healthy.timed, faults.links.size());
  if (machine.options().reference) {
    Healthy kept = std::exchange(healthy, {});
    const Prediction out = run(kept.point.plan, faults, nullptr);
    healthy = std::move(kept);
    return out;
  }
  Evaluator& evaluator = evaluator_of(healthy.point.plan);
  if (evaluator.links_are_recorded() && !healthy.links_known) find_links(evaluator);
  if (!in_the_way(faults, evaluator)) return healthy.point.out;
  machine.set_faults(faults);
  if (!healthy.links_known) healthy.again = Point(healthy.point);
  healthy.again.out = healthy.point.by_prices();
  healthy.again.unreachable = healthy.again.deadlocked = false;
  time(healthy.again, evaluator);
  return healthy.again.out;
}

Simulator::Simulator(const Setting& setting, SimulateOptions options)
    : impl_(std::make_unique<Impl>(setting, std::move(options))) {}
Simulator::~Simulator() = default;
Simulator::Simulator(Simulator&&) noexcept = default;
Simulator& Simulator::operator=(Simulator&&) noexcept = default;

Prediction Simulator::run(const ParallelPlan& plan, const FaultSet& faults, Details* details) {
  return impl_->run(plan, faults, details);
}

void Simulator::watch(StepWatch watch) { impl_->machine.watch(std::move(watch)); }

Prediction Simulator::judge(const ParallelPlan& plan) { return impl_->judge(plan); }

Prediction Simulator::rerun(const FaultSet& faults) { return impl_->rerun(faults); }

}  // namespace shardscape
