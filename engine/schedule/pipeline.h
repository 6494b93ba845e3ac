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
// Pairs: a forward and a backward of another microbatch that run together. A pair takes the sum of both less what they
// hide of each other's messages; it begins when both inputs are there, and sends both outputs at its end. Dualpipe runs
// pairs, and so do interleaved schedules and single stages that overlap (PipelineShape::overlaps): after the warm-up
// every forward is paired with the backward that follows it (Megatron Core: overlap_moe_expert_parallel_comm, whose
// warm-up has a microbatch more for it).
//
// An operation starts when the stage has finished its previous one and the neighbour's message is there. A
// blocking transfer keeps the sender busy; an asynchronous one only delays the receiver. With equal stages,
// free transfers and m >= p the bubble is (p-1)(F+B+W) for gpipe and 1f1b, 1/v of that interleaved,
// (p-1)(F+B-W) for zero_bubble where W <= B, and (p/2-1)(P+B-3W) for dualpipe with pairs of P, whole backwards
// of B and F = W = B/2; unit tests hold all of them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/base/quantity.h"
#include "engine/spec/plan.h"

namespace shardscape::schedule {

/// Times of one microbatch on one chunk of one stage.
struct StageTime {
  double forward = 0;   ///< seconds
  double backward = 0;  ///< seconds, weight gradients included
  /// The part of `backward` that zero_bubble and dualpipe put off; other schedules ignore it.
  double weight = 0;
  /// Seconds by which a pair of this chunk's forward and a backward is shorter than the two one after the other: of a
  /// backward of the first of its partners(), and of the second.
  double hidden = 0, hidden_rarely = 0;
  /// Dualpipe: seconds that a backward and the weight gradient which it puts off take more than a whole backward. Cut,
  /// it has less to hide its messages beside.
  double apart = 0;
};

struct PipelineShape {
  ScheduleKind kind = ScheduleKind::one_f_one_b;
  std::int32_t stages = 1;
  std::int32_t virtual_stages = 1;  ///< chunks per stage; under dualpipe 2, one for each direction
  std::int32_t microbatches = 1;
  bool overlaps = false;  ///< pairs forwards with backwards; only interleaved schedules and single stages

  [[nodiscard]] bool both_ways() const { return row_of(kind).both_ways; }
  [[nodiscard]] bool cuts() const { return row_of(kind).cuts; }
  /// Number of stages that hold each part of the model.
  [[nodiscard]] double copies() const { return both_ways() ? 2 : 1; }
  /// Number of microbatches that pass through each chunk.
  [[nodiscard]] std::int32_t per_chunk() const { return both_ways() ? microbatches / 2 : microbatches; }
  /// Number of forwards that a stage runs.
  [[nodiscard]] std::int32_t forwards() const { return per_chunk() * virtual_stages; }
  /// Number of parts of the model; a microbatch meets them in ascending order.
  [[nodiscard]] std::int32_t parts() const { return both_ways() ? stages : stages * virtual_stages; }
  /// The part of the model that a chunk of a stage holds.
  [[nodiscard]] std::int32_t part(std::int32_t stage, std::int32_t chunk) const {
    if (both_ways()) return chunk == 0 ? stage : stages - 1 - stage;
    return chunk * stages + stage;
  }
  /// Whether microbatches go from the last stage back to the first, for its next chunk.
  [[nodiscard]] bool wraps() const { return virtual_stages > 1 && !both_ways(); }
  friend bool operator==(const PipelineShape&, const PipelineShape&) = default;
};

/// Times of the messages between neighbouring stages. Boundary b lies between stages b and b + 1; the boundary of the
/// last stage leads to the first, where the next chunk of an interleaved schedule begins.
struct Transfer {
  Transfer() = default;
  Transfer(double everywhere, bool blocks) : seconds{everywhere}, blocking(blocks) {}
  Transfer(std::vector<double> by_boundary, bool blocks)
      : seconds(std::move(by_boundary)), blocking(blocks) {}

  /// Seconds per message to the next stage, by boundary; a single entry holds for all.
  std::vector<double> seconds = {0};
  std::vector<double> back;  ///< likewise to the stage before; empty: as long as to the next one
  bool blocking = false;     ///< the sender is busy until its message has arrived

  [[nodiscard]] double over(std::size_t boundary) const {
    return seconds.size() == 1 ? seconds.front() : seconds[boundary];
  }
  [[nodiscard]] double back_over(std::size_t boundary) const {
    return back.empty() ? over(boundary) : back.size() == 1 ? back.front() : back[boundary];
  }
  /// The longest message.
  [[nodiscard]] double longest() const {
    const double there = std::ranges::max(seconds);
    return back.empty() ? there : std::max(there, std::ranges::max(back));
  }
};

/// One operation of a schedule. With `cut` a backward is the input gradient alone, and with `weight` the weight
/// gradient, which sends nothing and needs only that its stage has run the input gradient before. A forward with
/// `paired` runs together with the operation behind it, a whole backward.
struct PipelineOperation {
  bool backward = false;
  std::int32_t chunk = 0;       ///< 0 .. virtual_stages - 1
  std::int32_t microbatch = 0;  ///< number among the microbatches of the chunk
  bool weight = false;
  bool cut = false;
  bool paired = false;
  bool rare = false;  ///< the pair is with the second of the chunk's partners()
};

/// Seconds that the operation takes alone, on a stage with these times.
inline double duration(const PipelineOperation& operation, const StageTime& time) {
  if (!operation.backward) return time.forward;
  if (operation.weight) return time.weight;
  return operation.cut ? time.backward - time.weight + time.apart : time.backward;
}

/// Lists the operations of one stage in their order. Interleaved requires microbatches % stages == 0, zero_bubble
/// virtual_stages = 1; for dualpipe see above.
void stage_order(const PipelineShape& shape, std::int32_t stage, std::vector<PipelineOperation>& order);

/// Number of forwards of a stage before its first backward.
std::int32_t warm_up(const PipelineShape& shape, std::int32_t stage);

/// The largest number of microbatches, counted per chunk, between their forward and their backward (zero_bubble: their
/// input gradient) that a stage holds at once; with dualpipe it is stages + 1 on all stages.
std::int32_t in_flight(const PipelineShape& shape, std::int32_t stage);

/// Numbers of microbatches that a stage holds when an input gradient (or whole backward) begins.
struct HeldMicrobatches {
  std::int32_t in_flight = 0;  ///< microbatches that keep everything that their backward needs
  std::int32_t put_off = 0;    ///< microbatches that keep what their weight gradient needs
};

/// The moments one of which is the peak of memory, however much either kind of microbatch takes; the first has most in
/// flight. While an input gradient runs, its microbatch turns from the first kind into the second, block by block.
/// O(1).
std::array<HeldMicrobatches, 3> peaks(const PipelineShape& shape, std::int32_t stage);

/// The numbers of microbatches that each of the two chunks holds at the moments of peaks() where stages run both ways,
/// [moment][chunk]. Where chunks differ in size, the largest of the three moments is the peak if nothing is put off;
/// otherwise it may miss part of one microbatch.
std::array<std::array<HeldMicrobatches, 2>, 3> peaks_by_chunk(const PipelineShape& shape, std::int32_t stage);

/// A chunk whose backwards are paired with forwards of another one, and how many pairs they make.
struct Partner {
  std::int32_t chunk = 0, pairs = 0;
};
/// The two chunks whose backwards are paired with forwards of the given chunk; the first is that of most forwards where
/// there are many microbatches. A second one without pairs may be any.
std::array<Partner, 2> partners(const PipelineShape& shape, std::int32_t stage, std::int32_t chunk);

/// One executed operation; seconds from the start of the step.
struct PipelineSpan {
  std::int32_t stage = 0;
  PipelineOperation operation;
  double start = 0;
  double end = 0;   ///< end of the work
  double sent = 0;  ///< arrival of its message at the neighbour; = end where nothing is sent
};

/// Runs a schedule operation by operation, in the order lists of the stages: the reference that PipelineTimer is tested
/// against. times: [stage * virtual_stages + chunk], or, where the chunks of each stage are alike, one entry per stage
/// (not of dualpipe). A pair is two spans, one behind the other. Returns the end of the last operation of every stage;
/// `spans`, where given, receives every operation in the order of execution.
std::vector<double> run_in_order(const PipelineShape& shape, std::span<const StageTime> times,
                                 const Transfer& transfer, std::vector<PipelineSpan>* spans = nullptr);

/// When the last microbatch's backward (input gradient) ends on each chunk, its message included where the
/// transfer blocks: [stage][chunk]. Empty where virtual_stages is 1, where that is the end of the stage, and
/// under dualpipe.
std::vector<double> chunk_ends(const PipelineShape& shape, std::span<const PipelineSpan> spans,
                               const Transfer& transfer);

/// The results of the timers.
struct PipelineEnds {
  std::span<const double> stages;  ///< ends of the stages, as from run_in_order()
  std::span<const double> chunks;  ///< ends of the chunks, as from chunk_ends()
  /// Ends of the stages in the same pipeline with messages that take no time.
  std::span<const double> free;
};

}  // namespace shardscape::schedule
