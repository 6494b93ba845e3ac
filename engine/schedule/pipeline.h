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

/// The largest number of chunk-microbatches whose activations stage `stage` holds at once.
std::int32_t in_flight(const PipelineShape& shape, std::int32_t stage);

/// Runs a schedule. Holds scratch memory; one object per thread.
class PipelineTimer {
 public:
  /// times: stages entries, the same for each chunk of a stage. Returns the end of the last operation of
  /// every stage, valid until the next call.
  std::span<const double> run(const PipelineShape& shape, std::span<const StageTime> times,
                              Transfer transfer);

 private:
  std::vector<double> forward_end_, backward_end_;  ///< arrival at the neighbour, [stage][chunk][microbatch]
  std::vector<double> stage_end_;
  std::vector<std::int32_t> next_;
  std::vector<std::vector<PipelineOperation>> orders_;
  PipelineShape orders_shape_{ScheduleKind::gpipe, 0, 0, 0};
};

}  // namespace shardscape::schedule
