// Pipeline schedules: the order of forwards and backwards on each stage, and the time they take.
//
//   gpipe        all forwards, then all backwards (Huang et al. 2019)
//   1f1b         min(p - s, m) forwards to warm up, then one backward and one forward in turn (Narayanan et
//   al. 2019, 2021) interleaved  each stage holds v chunks of the model and works on groups of p microbatches
//   per chunk (Narayanan et al. 2021, section 2.2)
//
// An operation starts when the stage has finished its previous one and the neighbour's message is there. A
// blocking transfer keeps the sender busy; an asynchronous one only delays the receiver. With equal stages
// and free transfers the bubble is (p-1)/m of the ideal time, (p-1)/(v m) interleaved; unit tests hold both.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/quantity.h"
#include "engine/spec/plan.h"

namespace shardscape::schedule {

/// One microbatch on one chunk of one stage.
struct StageTime {
  double forward = 0;   ///< seconds
  double backward = 0;  ///< seconds
};

struct PipelineShape {
  ScheduleKind kind = ScheduleKind::one_f_one_b;
  std::int32_t stages = 1;
  std::int32_t virtual_stages = 1;
  std::int32_t microbatches = 1;
};

struct Transfer {
  double seconds = 0;     ///< one message between neighbouring stages
  bool blocking = false;  ///< the sender waits until it is gone
};

struct PipelineOperation {
  bool backward = false;
  std::int32_t chunk = 0;  ///< 0 .. virtual_stages - 1
  std::int32_t microbatch = 0;
};

/// The operations of one stage in their order.
/// Interleaved requires microbatches % stages == 0; zero_bubble is not modelled.
void stage_order(const PipelineShape& shape, std::int32_t stage, std::vector<PipelineOperation>& order);

/// Forwards of a stage before its first backward.
std::int32_t warm_up(const PipelineShape& shape, std::int32_t stage);

/// The largest number of chunk-microbatches whose activations stage `stage` holds at once.
std::int32_t in_flight(const PipelineShape& shape, std::int32_t stage);

/// One executed operation; seconds from the start of the step.
struct PipelineSpan {
  std::int32_t stage = 0;
  PipelineOperation operation;
  double start = 0;
  double end = 0;   ///< of the work
  double sent = 0;  ///< when its message has reached the neighbour; = end where nothing is sent
};

/// Runs a schedule operation by operation, in the order lists of the stages: the plain truth that
/// PipelineTimer is held against. times: one entry per stage, the same for each of its chunks. Returns the
/// end of the last operation of every stage; `spans`, where given, receives every operation in the order of
/// execution.
std::vector<double> run_in_order(const PipelineShape& shape, std::span<const StageTime> times,
                                 Transfer transfer, std::vector<PipelineSpan>* spans = nullptr);

}  // namespace shardscape::schedule
