// An executed step of a small model on nodes of four, drawn.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "engine/simulate.h"
#include "tests/support/engine_fixture.h"

namespace shardscape::test {

struct DrawnText {
  Prediction prediction;
  std::string text;
};
struct Drawn {
  Prediction prediction;
  nlohmann::json document;
};

/// All axes, on nodes of four; every class of Breakdown has something, recompute included.
inline DrawnText drawn_text(ScheduleKind kind, std::int64_t batch, const FaultSet& faults = {},
                            bool async = false) {
  Setting s;
  s.model = llama(4, 1024, 16, 4, 4096, 32000);
  s.system.device = round_device();
  s.system.fabric = {"nodes",
                     {dimension("inner", DimensionKind::switched, {4}, 100e9, 1e-6),
                      dimension("outer", DimensionKind::ring, {4}, 10e9, 2e-6)}};
  s.system.stack = plain_stack();
  s.system.stack.communication.tensor_overlap = 0.25;
  s.system.stack.communication.data_overlap = 0.5;
  s.system.stack.communication.pipeline_async = async;
  s.system.stack.communication.call = Seconds(1e-5);
  s.system.stack.host.forward_layer = Seconds(2e-3);
  s.system.stack.host.step_fixed = Seconds(1e-3);
  s.workload = training(1024, batch);
  ParallelPlan plan = plan_of(2, 2, 2, 2);
  plan.schedule = kind;
  plan.zero_stage = 1;
  plan.recompute = Recompute::full;
  if (kind == ScheduleKind::interleaved) plan.virtual_stages = 2;
  Details details;
  details.want_timeline = true;
  Simulator simulator(s, {.time_infeasible = true, .mode = ExecutionMode::flattened});
  DrawnText d;
  d.prediction = simulator.run(plan, faults, &details);
  d.text = std::move(details.timeline);
  return d;
}

inline Drawn drawn(ScheduleKind kind, std::int64_t batch, const FaultSet& faults = {}, bool async = false) {
  const DrawnText d = drawn_text(kind, batch, faults, async);
  return {d.prediction, nlohmann::json::parse(d.text)};
}

}  // namespace shardscape::test
