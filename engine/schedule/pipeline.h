// Pipeline schedules: the order of forwards and backwards on each stage, and the time they take.
//
//   gpipe        all forwards, then all backwards (Huang et al. 2019)
//   1f1b         min(p - s, m) forwards to warm up, then one backward and one forward in turn (Narayanan et
//                al. 2019, 2021)
//   interleaved  each stage holds v chunks of the model and works on groups of p microbatches per chunk
//                (Narayanan et al. 2021, section 2.2)
//   zero_bubble  ZB-H1 (Qi et al. 2023, "Zero Bubble Pipeline Parallelism", section 2.3): 1f1b with the
//                backward cut into the input gradient B, which the stage before waits for, and the weight
//                gradient W, which nobody waits for. Stage s runs the W of a microbatch after the B of the
//                s-th microbatch behind it, so that the last stages hand gradients on early and fill the
//                cool-down with what they put off
//
// An operation starts when the stage has finished its previous one and the neighbour's message is there. A
// blocking transfer keeps the sender busy; an asynchronous one only delays the receiver. With equal stages,
// free transfers and m >= p the bubble is (p-1)(F+B+W) for gpipe and 1f1b, 1/v of that interleaved, and
// (p-1)(F+B-W) for zero_bubble where W <= B; unit tests hold all of them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/base/quantity.h"
#include "engine/spec/plan.h"

namespace shardscape::schedule {

/// One microbatch on one chunk of one stage.
struct StageTime {
  double forward = 0;   ///< seconds
  double backward = 0;  ///< seconds, weight gradients included
  /// The part of `backward` that zero_bubble puts off; the other schedules don't look at it.
  double weight = 0;
};

struct PipelineShape {
  ScheduleKind kind = ScheduleKind::one_f_one_b;
  std::int32_t stages = 1;
  std::int32_t virtual_stages = 1;
  std::int32_t microbatches = 1;
};

/// What the messages between neighbouring stages take. Boundary b lies between stage b and the next one, that
/// of the last stage between it and the first, where the next chunk of an interleaved schedule begins.
struct Transfer {
  Transfer() = default;
  Transfer(double everywhere, bool blocks) : seconds{everywhere}, blocking(blocks) {}
  Transfer(std::vector<double> by_boundary, bool blocks)
      : seconds(std::move(by_boundary)), blocking(blocks) {}

  std::vector<double> seconds = {0};  ///< one message, by boundary; a single entry: over any of them
  bool blocking = false;              ///< the sender waits until it is gone

  [[nodiscard]] double over(std::size_t boundary) const {
    return seconds.size() == 1 ? seconds.front() : seconds[boundary];
  }
};

/// One operation of a schedule. Under zero_bubble `backward` alone is the input gradient, and with `weight`
/// it is the weight gradient, which sends nothing and needs only that its stage has run the input gradient
/// before.
struct PipelineOperation {
  bool backward = false;
  std::int32_t chunk = 0;  ///< 0 .. virtual_stages - 1
  std::int32_t microbatch = 0;
  bool weight = false;
};

/// What the operation takes on a stage of these times.
inline double duration(const PipelineShape& shape, const PipelineOperation& operation,
                       const StageTime& time) {
  if (!operation.backward) return time.forward;
  if (operation.weight) return time.weight;
  return shape.kind == ScheduleKind::zero_bubble ? time.backward - time.weight : time.backward;
}

/// The operations of one stage in their order.
/// Interleaved requires microbatches % stages == 0, zero_bubble virtual_stages = 1.
void stage_order(const PipelineShape& shape, std::int32_t stage, std::vector<PipelineOperation>& order);

/// Forwards of a stage before its first backward.
std::int32_t warm_up(const PipelineShape& shape, std::int32_t stage);

/// The largest number of chunk-microbatches between their forward and their backward (zero_bubble: their
/// input gradient) that stage `stage` holds at once.
std::int32_t in_flight(const PipelineShape& shape, std::int32_t stage);

/// What a stage holds when an input gradient (or whole backward) begins.
struct HeldMicrobatches {
  std::int32_t in_flight = 0;  ///< everything that their backward needs
  std::int32_t put_off = 0;    ///< what their weight gradient needs
};

/// The moments among which the peak of memory lies, whatever a microbatch of either kind takes. While an
/// input gradient runs, its microbatch goes over from the first kind to the second block by block. O(1).
std::array<HeldMicrobatches, 3> peaks(const PipelineShape& shape, std::int32_t stage);

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
                                 const Transfer& transfer, std::vector<PipelineSpan>* spans = nullptr);

/// When the last microbatch's backward (input gradient) ends on each chunk, its message included where the
/// transfer blocks: [stage][chunk]. Empty where virtual_stages is 1, where that is the end of the stage.
std::vector<double> chunk_ends(const PipelineShape& shape, std::span<const PipelineSpan> spans,
                               const Transfer& transfer);

/// What the timers return.
struct PipelineEnds {
  std::span<const double> stages;  ///< as run_in_order()
  std::span<const double> chunks;  ///< as chunk_ends()
};

}  // namespace shardscape::schedule
