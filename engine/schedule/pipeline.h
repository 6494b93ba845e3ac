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
//   dualpipe     microbatches enter at both ends (DeepSeek-AI 2024, "DeepSeek-V3 Technical Report", section 3.2.1, and
//                the order lists of its published code): half of them run down the stages, half up. Every stage
//                holds two chunks, its own part of the model for those that go down and that of its mirror for those
//                that go up. Forwards of one direction run together with backwards of the other; in the warm-up
//                and the cool-down backwards put their weight gradients off. Needs an even number of stages, and
//                an even number of microbatches, at least two per stage.
//
// Pairs: a forward and a backward of another microbatch that run together take what both take less what
// they hide of each other's messages; both begin when both inputs are there, and send at their end. So do
// dualpipe's, and those of an interleaved schedule, or of one stage alone, that overlaps: after the warm-up
// every forward is paired with the backward that follows it (Megatron Core: overlap_moe_expert_parallel_comm, whose
// warm-up has a microbatch more for it).
//
// An operation starts when the stage has finished its previous one and the neighbour's message is there. A
// blocking transfer keeps the sender busy; an asynchronous one only delays the receiver. With equal stages,
// free transfers and m >= p the bubble is (p-1)(F+B+W) for gpipe and 1f1b, 1/v of that interleaved,
// (p-1)(F+B-W) for zero_bubble where W <= B, and (p/2-1)(P+B-3W) for dualpipe with pairs of P, whole backwards
// of B and F = W = B/2; unit tests hold all of them.
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
  /// The part of `backward` that zero_bubble and dualpipe put off; the other schedules don't look at it.
  double weight = 0;
  /// What a pair takes less than its forward, of this chunk, and its backward one after the other. Which chunk that
  /// backward is of, mate() says.
  double hidden = 0;
};

struct PipelineShape {
  ScheduleKind kind = ScheduleKind::one_f_one_b;
  std::int32_t stages = 1;
  std::int32_t virtual_stages = 1;  ///< chunks per stage; of dualpipe 2, one for each direction
  std::int32_t microbatches = 1;
  bool overlaps = false;  ///< interleaved, or one stage alone: forwards and backwards run in pairs

  [[nodiscard]] bool both_ways() const { return kind == ScheduleKind::dualpipe; }
  /// Stages that hold each part of the model.
  [[nodiscard]] double copies() const { return both_ways() ? 2 : 1; }
  /// Microbatches through each chunk.
  [[nodiscard]] std::int32_t per_chunk() const { return both_ways() ? microbatches / 2 : microbatches; }
  /// Parts of the model, in the order in which a microbatch meets them.
  [[nodiscard]] std::int32_t parts() const { return both_ways() ? stages : stages * virtual_stages; }
  /// The part that a chunk is.
  [[nodiscard]] std::int32_t part(std::int32_t stage, std::int32_t chunk) const {
    if (both_ways()) return chunk == 0 ? stage : stages - 1 - stage;
    return chunk * stages + stage;
  }
  /// Where a part lies for the microbatches of a chunk.
  [[nodiscard]] std::int32_t stage_of(std::int32_t part, std::int32_t chunk) const {
    if (both_ways()) return chunk == 0 ? part : stages - 1 - part;
    return part % stages;
  }
  [[nodiscard]] std::int32_t chunk_of(std::int32_t part, std::int32_t chunk) const {
    return both_ways() ? chunk : part / stages;
  }
  [[nodiscard]] bool holds(std::int32_t stage, std::int32_t searched) const {
    for (std::int32_t chunk = 0; chunk < virtual_stages; ++chunk)
      if (part(stage, chunk) == searched) return true;
    return false;
  }
  /// The last chunk leads back to the first stage.
  [[nodiscard]] bool wraps() const { return virtual_stages > 1 && !both_ways(); }
  friend bool operator==(const PipelineShape&, const PipelineShape&) = default;
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

/// One operation of a schedule. With `cut` a backward is the input gradient alone, and with `weight` the weight
/// gradient, which sends nothing and needs only that its stage has run the input gradient before. A forward with
/// `paired` runs together with the operation behind it, a whole backward.
struct PipelineOperation {
  bool backward = false;
  std::int32_t chunk = 0;       ///< 0 .. virtual_stages - 1
  std::int32_t microbatch = 0;  ///< of those of the chunk
  bool weight = false;
  bool cut = false;
  bool paired = false;
};

/// What the operation takes on a stage of these times, on its own.
inline double duration(const PipelineOperation& operation, const StageTime& time) {
  if (!operation.backward) return time.forward;
  if (operation.weight) return time.weight;
  return operation.cut ? time.backward - time.weight : time.backward;
}

/// The operations of one stage in their order.
/// Interleaved requires microbatches % stages == 0, zero_bubble virtual_stages = 1; dualpipe as above.
void stage_order(const PipelineShape& shape, std::int32_t stage, std::vector<PipelineOperation>& order);

/// Forwards of a stage before its first backward.
std::int32_t warm_up(const PipelineShape& shape, std::int32_t stage);

/// The largest number of chunk-microbatches between their forward and their backward (zero_bubble: their
/// input gradient) that stage `stage` holds at once: dualpipe stages + 1 everywhere.
std::int32_t in_flight(const PipelineShape& shape, std::int32_t stage);

/// What a stage holds when an input gradient (or whole backward) begins.
struct HeldMicrobatches {
  std::int32_t in_flight = 0;  ///< everything that their backward needs
  std::int32_t put_off = 0;    ///< what their weight gradient needs
};

/// The moments among which the peak of memory lies, whatever a microbatch of either kind takes. While an
/// input gradient runs, its microbatch goes over from the first kind to the second block by block. O(1).
std::array<HeldMicrobatches, 3> peaks(const PipelineShape& shape, std::int32_t stage);

/// Pairs of a stage whose forward is of a chunk.
std::int32_t pairs(const PipelineShape& shape, std::int32_t stage, std::int32_t chunk);

/// The chunk whose backwards most of them run with.
std::int32_t mate(const PipelineShape& shape, std::int32_t stage, std::int32_t chunk);

/// One executed operation; seconds from the start of the step.
struct PipelineSpan {
  std::int32_t stage = 0;
  PipelineOperation operation;
  double start = 0;
  double end = 0;   ///< of the work
  double sent = 0;  ///< when its message has reached the neighbour; = end where nothing is sent
};

/// Runs a schedule operation by operation, in the order lists of the stages: the plain truth that
/// PipelineTimer is held against. times: [stage * virtual_stages + chunk], or, where the chunks of each stage are
/// alike, one entry per stage (not of dualpipe). A pair is two spans, one behind the other. Returns the end of the last
/// operation of every stage; `spans`, where given, receives every operation in the order of execution.
std::vector<double> run_in_order(const PipelineShape& shape, std::span<const StageTime> times,
                                 const Transfer& transfer, std::vector<PipelineSpan>* spans = nullptr);

/// When the last microbatch's backward (input gradient) ends on each chunk, its message included where the
/// transfer blocks: [stage][chunk]. Empty where virtual_stages is 1, where that is the end of the stage, and
/// under dualpipe.
std::vector<double> chunk_ends(const PipelineShape& shape, std::span<const PipelineSpan> spans,
                               const Transfer& transfer);

/// What the timers return.
struct PipelineEnds {
  std::span<const double> stages;  ///< as run_in_order()
  std::span<const double> chunks;  ///< as chunk_ends()
  std::span<const double> free;    ///< of the stages, as run_in_order() where messages take no time
};

}  // namespace shardscape::schedule
