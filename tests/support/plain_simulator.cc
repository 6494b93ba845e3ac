#include "tests/support/plain_simulator.h"

#include <memory>
#include <optional>
#include <utility>

#include "engine/evaluate/evaluators.h"
#include "engine/step/serving/inference.h"
#include "engine/step/serving/pools.h"
#include "tests/support/plain_courses.h"

namespace shardscape::test {

namespace {

/// Requests of replicas that prefill and decode.
void serve_by_replicas(evaluate::Machine& machine, const evaluate::Point& point, Prediction& out) {
  const Setting& setting = machine.setting();
  const step::InferenceInputs inputs{setting, point.plan, point.split->stages, point.serving};
  std::optional<step::FlattenedRun> run;
  if (machine.flattened()) run.emplace(machine.run_on(machine.options().placement));
  step::InferenceMemo memo;
  const serving::Timer timer =
      step::iteration_timer(inputs, machine.collectives(), memo, true, run ? &*run : nullptr);
  step::fill_latencies(serving::serve_plainly(step::load_of(inputs), step::rules_of(inputs), timer), out);
  // Served are the requests of the replica with most; the others that are coupled with it have as many or one less.
  const WorkloadSpec& workload = setting.workload;
  const std::int64_t coupled = point.serving.coupled, all = workload.concurrency * coupled / point.plan.data;
  out.decode_batch *= static_cast<double>(all) / static_cast<double>((all + coupled - 1) / coupled);
  out.tokens_per_s_per_gpu = static_cast<double>(workload.concurrency * workload.output_tokens) /
                             out.e2e.value() / static_cast<double>(point.plan.gpus());
}

void serve_by_pools(evaluate::Machine& machine, const evaluate::Point& point, Prediction& out) {
  const Setting reading = prefill_setting(machine.setting());
  network::CollectivePrices prefill = machine.pool_collectives(reading, point.prefill.placement),
                            decode = machine.pool_collectives(machine.setting(), point.decode.placement);
  std::optional<step::FlattenedRun> read, write;
  if (machine.flattened()) {
    read.emplace(machine.run_on(point.prefill.placement));
    write.emplace(machine.run_on(point.decode.placement));
  }
  step::InferenceMemo reads, writes;
  step::time_disaggregated({reading, reads, point.prefill, prefill, read ? &*read : nullptr},
                           {machine.setting(), writes, point.decode, decode, write ? &*write : nullptr},
                           machine.network(), true, out, nullptr, serving::serve_disaggregated_plainly);
}

}  // namespace

PlainSimulator::PlainSimulator(const Setting& setting, SimulateOptions options)
    : setting_(setting), options_(std::move(options)) {
  options_.reference = true;
}

Prediction PlainSimulator::run(const ParallelPlan& plan, const FaultSet& faults) {
  Prediction out = Simulator(setting_, options_).run(plan, faults);
  if (out.e2e <= Seconds(0)) return out;  // trains, or has no time
  evaluate::Machine machine(setting_, options_);
  machine.set_faults(faults);
  const bool pools = plan.disaggregated();
  const std::unique_ptr<evaluate::Evaluator> evaluator =
      pools ? evaluate::pool_evaluator(machine) : evaluate::replica_evaluator(machine);
  evaluate::Point point;
  point.restart(with_replicas(plan, setting_.model, setting_.system.stack.serving), nullptr);
  evaluator->partition(point);
  evaluator->memory(point);
  pools ? serve_by_pools(machine, point, out) : serve_by_replicas(machine, point, out);
  return out;
}

}  // namespace shardscape::test
