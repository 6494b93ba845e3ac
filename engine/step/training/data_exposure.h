// How much of the gradients' reduction is exposed at the end of a step, in closed form.
//
// Gradients of a layer are whole when the last microbatch's backward has come past it: the head's first, then
// block after block, the embedding's at the very end. They travel in buckets of equal bytes, one after the
// other. A bucket leaves when all of its gradients are whole (so at the end of a layer) and the bucket before
// it has arrived; none leaves before 1 - data_overlap of that backward is done (Li et al. 2020, "PyTorch
// Distributed", section 3.2.3). Let layer j of J end at time t_j, n buckets take c each, g_j of them be whole
// after layer j, and the gate open at time G. Buckets are served in their order without a pause while any is
// there, so the last one arrives at
//
//     max( G + n c,  max over t_j > G of  t_j + (n - g_(j-1)) c )
//
// since the last time without a pause began when the gate opened or when some layer ended, and all buckets
// that were not whole before have been sent since then (Lindley 1952). The last layer always counts: at
// least the bucket that holds its gradients is exposed.
//
// Buckets of several groups of parameters (experts have one of their own) share the queue: what is left of it
// is then the sum over groups of (n - g_(j-1)) c. So do the gathers and scatters of every microbatch, in both modes:
// sharded data parallelism puts the gathers of all its modules on one stream, and their scatters (PyTorch's FSDP,
// FSDPCommContext; DeepSpeed's ZeRO-3, partitioned_param_coordinator's allgather stream).
//
// The weights of a head whose gradients are deferred (spec/deferred_head.h) are whole when those have been
// computed, after the last backward; until then all other buckets may leave.
//
// Chunks of an interleaved schedule have their last backwards at different times, with those of other
// microbatches in between; zero_bubble makes gradients of blocks whole in the last weight gradient, and all
// others before it.
#pragma once

#include <boost/container/static_vector.hpp>
#include <span>
#include <vector>

#include "engine/step/layers/training_step.h"
#include "engine/step/training/step_times.h"

namespace shardscape::step {

/// The share (0..1) of a stage's gradients of one group of parameters that is whole after a number of layers of the
/// last backward. The inputs must outlive it.
class GradientShares {
 public:
  GradientShares(const TrainingStep& inputs, std::int32_t stage, ParallelGroup copies);

  [[nodiscard]] double after(std::int32_t layers) const;

 private:
  /// Number of parameters in the last `blocks` blocks, whose backward comes first.
  [[nodiscard]] double of_last(std::int32_t blocks) const;

  const model::StageParameters& parameters_;
  ParallelGroup copies_;
  model::StageLayers layers_;
  double head_ = 0;     ///< parameters whole after the first layer
  double further_ = 0;  ///< parameters of each module of further tokens
  /// Parameters whole at the very end: of the embedding or of the deferred head; no stage has both.
  double end_ = 0;
  double sum_ = 0;
  std::int32_t heads_ = 0, modules_ = 0, blocks_ = 0;
  bool cut_ = false;
};

/// Number of buckets that are whole when this share (0..1) of the gradients is.
double whole_buckets(double buckets, double share);

/// Seconds of a chunk's pass that make gradients. `cut`: only the weight gradient does, as under zero_bubble.
constexpr double gradient_pass(const schedule::StageTime& chunk, bool cut) {
  return cut ? chunk.weight : chunk.backward;
}

/// The last microbatch's backward on one stage (under zero_bubble, its weight gradient).
struct LastBackward {
  BackwardByRole layer;                         ///< of one layer each
  std::span<const schedule::StageTime> passes;  ///< index: chunk; as the pipeline was timed
  bool cut = false;                             ///< only weight gradients count
  Seconds deferred;                             ///< weight gradients of the head that come after it
  std::span<const double> ends;                 ///< end by chunk, seconds; chunk 0 ends last

  /// Seconds of this backward on one chunk.
  [[nodiscard]] double pass(std::size_t chunk) const { return gradient_pass(passes[chunk], cut); }
};

/// The times of the chunks of a stage, as the pipeline was timed with them.
std::span<const schedule::StageTime> chunk_times(const TrainingStep& inputs, const StepTimes& step,
                                                 std::size_t stage);

/// Collects the last backward of a stage once the pipeline has been timed. The result refers to times in `step`.
LastBackward last_backward(const TrainingStep& inputs, const StepTimes& step, std::size_t stage);

/// The gradients of one group of parameters.
struct GroupGradients {
  ParallelGroup copies = ParallelGroup::data_shard;
  double buckets = 1;
  Seconds time;  ///< seconds of all buckets together
};
using GradientTraffic = boost::container::static_vector<GroupGradients, kCopyGroups.size()>;

/// Seconds from the end of the last backward (or of the head's weight gradients that follow it) to the arrival of the
/// last bucket, with all groups in one queue.
Seconds exposed_gradients(const TrainingStep& inputs, std::int32_t stage, const LastBackward& backward,
                          const GradientTraffic& gradients);
/// The same, where plans share what is `left` of the gradients.
Seconds exposed_gradients(const TrainingStep& inputs, std::int32_t stage, const LastBackward& backward,
                          std::span<const double> left);
/// Seconds of all buckets that are not whole after a number of layers of the last backward; index: that number, from
/// none to all.
std::vector<double> gradients_left(const TrainingStep& inputs, std::int32_t stage,
                                   const GradientTraffic& gradients);

}  // namespace shardscape::step
