// 1f1b, zero_bubble and interleaved as a wave of steps, in each of which every stage works at most once and
// waits only for what the step before has sent. So a step is a loop over stages without a chain, and a message
// needs one place per stage:
//
//   warm-up      step d: stage s runs its forward d - s; the message of stage s - 1 came in step d - 1
//   1f1b         step n: stages with n - w even run their backward (n - w) / 2, the others their forward
//                (n + w - 1) / 2, with w = S - s forwards of warm-up. Both need what the neighbour, whose w is
//                one larger or smaller, sent in step n - 1.
//   interleaved  step j: every stage runs backward j - (S - 1 - s), then forward w + j - (S - 1 - s). With
//                w = 2 (S - 1 - s) + (v - 1) S + 1 the message of the neighbour, and from chunk to chunk that of
//                the pipeline's other end, is of step j - 1. Only the last two messages of a stage's warm-up
//                wait together for the first two steps of the next one.
//
// (S stages, v chunks each, s from 0.) Stages join a step when their warm-up is over and leave it when their
// microbatches are. Under zero_bubble a stage also works on a weight gradient after each backward from the s-th
// on.
//
// Once all stages take part, the steps are a max-plus linear system with a fixed pattern: when the whole state,
// ends and messages under way, has moved by one constant over a period, it will do so until the first stage
// runs out of forwards (Baccelli et al. 1992, "Synchronization and Linearity", chapter 3). The remaining periods
// are then taken off the microbatches, and their time is added at the end.
//
// In every step of either direction one stage at most begins another chunk, that whose operation has a number that S
// divides. With step j both directions are at place j mod S v of their group: the forwards of stage `place mod S` begin
// chunk `place / S`, and so do the backwards, counted from the last stage and the last chunk. What that stage's
// operations take from then on is listed by place, and the loops over stages stay as they are.
//
// The pipeline as it is and the one whose messages take no time run the same steps: every number here is a pair with
// one value for each, which a processor adds up and compares at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/schedule/pipeline.h"
#include "engine/schedule/two_times.h"

namespace shardscape::schedule {

class PipelineWave {
 public:
  /// Arrays of one direction, indexed by stage, which do not overlap.
  struct Lanes {
    TwoTimes* __restrict end;
    TwoTimes* __restrict input;  ///< the input of stage s is forward [s], backward [s + 1]
    const TwoTimes* __restrict work;
    const TwoTimes* __restrict message;
  };

  /// The results of run_in_order() and chunk_ends(), within 1e-9 relative, valid until the next call. Not for gpipe.
  /// Allocates nothing in steady state.
  PipelineEnds run(const PipelineShape& shape, std::span<const StageTime> times, const Transfer& transfer);

 private:
  void prepare(std::span<const StageTime> times, const Transfer& transfer);
  void prepare_chunks(std::span<const StageTime> times);

  void warm_up_alternating();
  void run_alternating();
  void warm_up_interleaved(std::int32_t longest);
  void run_interleaved();
  /// The stage that begins another chunk in a step, numbered in the direction's order, and where in the group that is.
  struct Turn {
    std::int32_t place = 0, number = 0;
  };
  void backward_of_chunks(std::int32_t step, Turn turn);
  void forward_of_chunks(std::int32_t step, Turn turn, std::int32_t longest);
  void both_of_chunks(Turn turn, std::int32_t steps);
  void begin_forward(Turn turn, std::int32_t first, std::int32_t last);
  void begin_backward(Turn turn, std::int32_t first, std::int32_t last);
  /// The turn of step n, which must be below two groups, and that of the step after one.
  [[nodiscard]] Turn turn_in(std::int32_t n) const { return {n < group_ ? n : n - group_, n % stages_}; }
  [[nodiscard]] Turn after(Turn turn) const {
    return {turn.place + 1 == group_ ? 0 : turn.place + 1, turn.number + 1 == stages_ ? 0 : turn.number + 1};
  }
  /// Whether the stages at the ends wait for no message at this place, since they begin the pipeline anew.
  [[nodiscard]] bool anew(std::int32_t place) const { return place < stages_; }
  /// Whether what they end there goes on to the pipeline's other end.
  [[nodiscard]] bool goes_round(std::int32_t place) const {
    return place >= stages_ - 1 && place < group_ - 1;
  }

  [[nodiscard]] Lanes backward_lanes();
  [[nodiscard]] Lanes forward_lanes();

  void forward(std::int32_t first, std::int32_t last);
  void backward(std::int32_t first, std::int32_t last);
  void alternate(std::int32_t backward_first, std::int32_t backward_last, std::int32_t forward_first);

  /// Whether the state now moves by one constant per cycle of periods; sets `cycle_` and `per_period_`. Tries cycles of
  /// one and two periods, and of `round` (neither 2 nor 3) and one or two fewer.
  bool settled(std::int32_t period, std::int32_t round);
  /// `operations`: number of operations of each direction per period.
  void skip(std::int32_t periods, std::int32_t operations);
  /// All that later steps depend on: ends and messages under way.
  using State = std::array<std::span<const TwoTimes>, 3>;
  [[nodiscard]] State state() const;
  void snapshot();
  [[nodiscard]] std::optional<TwoTimes> shift_since(std::size_t back) const;

  PipelineShape shape_;
  std::int32_t stages_ = 0;
  std::int32_t total_ = 0;  ///< operations of each direction per stage, without the skipped ones
  std::int32_t group_ = 0;  ///< operations until the chunks of a stage begin again
  bool blocking_ = false;

  std::vector<TwoTimes> end_;  ///< end of each stage's latest work
  /// End of the last microbatch's backward on each chunk.
  std::vector<TwoTimes> chunk_end_;
  std::vector<TwoTimes> forward_work_, backward_work_;    ///< work of each stage's current chunk
  std::vector<TwoTimes> weight_;                          ///< work that zero_bubble puts off, per stage
  std::vector<TwoTimes> forward_begun_, backward_begun_;  ///< work of the chunk begun, index: Turn::place
  std::vector<TwoTimes> forward_message_;  ///< seconds of a message to the next stage, by sender
  /// Seconds of a message to the stage before, by sender.
  std::vector<TwoTimes> backward_message_;
  std::vector<TwoTimes> forward_input_;      ///< arrivals, by receiver; one more: what the last stage sends
  std::vector<TwoTimes> backward_input_;     ///< arrivals, by receiver + 1; [0]: what the first stage sends
  std::vector<TwoTimes> second_;             ///< last message of a warm-up, by receiver
  TwoTimes forward_round_, backward_round_;  ///< seconds of messages between the last and the first stage

  double skipped_ = 0;                              ///< number of periods skipped
  TwoTimes per_period_;                             ///< seconds per period, mean over a cycle
  std::int32_t cycle_ = 1;                          ///< periods per cycle
  std::array<std::vector<TwoTimes>, 2> snapshots_;  ///< states at the beginning of rounds, the latest first
  std::size_t snapshot_count_ = 0;

  std::vector<double> stage_ends_, chunk_ends_, free_ends_;  ///< the results
};

}  // namespace shardscape::schedule
