// Finds when gradients of the last backward are whole layer by layer, and from that when the last bucket arrives (the
// formulas of the header).
#include "engine/step/training/data_exposure.h"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <cstdint>

#include "engine/step/layers/host_work.h"

namespace shardscape::step {

GradientShares::GradientShares(const TrainingStep& in, std::int32_t stage, ParallelGroup copies)
    : parameters_(in.parameters),
      copies_(copies),
      layers_(in.layers[static_cast<std::size_t>(stage)]),
      modules_(layers_.further()),
      blocks_(layers_.count()),
      cut_(in.cuts()) {
  const bool first = in.first(stage), last = in.last(stage), common = copies == ParallelGroup::data_shard;
  heads_ = last ? 1 : 0;
  // Where the head shares the embedding's table, its gradient is whole only after the embedding.
  head_ = last && common ? parameters_.of_head(first).count : 0;
  if (modules_ > 0)  // the table that the modules share counts as whole with their own weights
    further_ = parameters_.of_further(modules_, first || (last && parameters_.tied))[copies].count / modules_;
  end_ = first && common ? parameters_.embedding.count : 0;
  if (last && common && in.deferred() > 0) {
    end_ = parameters_.head.count;
    head_ -= end_;
  }
  sum_ = in.parameters_of(stage)[copies].count;
}

double GradientShares::of_last(std::int32_t blocks) const {
  return parameters_.count_of_last(layers_, blocks, copies_);
}

double GradientShares::after(std::int32_t layers) const {
  if (sum_ <= 0) return 1;
  if (cut_) return (head_ + modules_ * further_ + end_ + of_last(std::min(layers, blocks_))) / sum_;
  if (layers <= 0) return 0;
  const std::int32_t modules = std::clamp(layers - heads_, 0, modules_);
  const std::int32_t blocks = std::clamp(layers - heads_ - modules_, 0, blocks_);
  const bool all = layers > heads_ + modules_ + blocks_;
  return (head_ + modules * further_ + of_last(blocks) + (all ? end_ : 0)) / sum_;
}

double whole_buckets(double buckets, double share) {
  constexpr double kRounding = 1e-9;
  // The cast is a floor without a library call: both factors are >= 0, and buckets are far fewer than 2^53.
  const double whole = static_cast<double>(static_cast<std::int64_t>(share * buckets + kRounding));
  return std::min(buckets, whole);
}

std::span<const schedule::StageTime> chunk_times(const TrainingStep& in, const StepTimes& step,
                                                 std::size_t stage) {
  const std::size_t chunks =
      in.pipeline.both_ways() ? 1 : static_cast<std::size_t>(in.pipeline.virtual_stages);
  return std::span(step.times).subspan(stage * chunks, chunks);
}

LastBackward last_backward(const TrainingStep& in, const StepTimes& step, std::size_t stage) {
  const std::span<const schedule::StageTime> passes = chunk_times(in, step, stage);
  const std::size_t chunks = passes.size();
  const std::vector<double>& ends = chunks == 1 ? step.pipeline.end : step.pipeline.chunk_end;
  const StagePasses& of = step.passes(stage);
  BackwardByRole layer = of.backwards;
  Seconds &further = layer[kFurtherLayer], &block = layer[block_layer(0)];
  further = (1.0 / std::max(1, in.layers[stage].further())) * further;
  block = (1.0 / std::max(1, in.layers[stage].count())) * (block + of.backward[TimeClass::data_comm]);
  return {layer, passes, in.cuts(), step.deferred_on(in, stage),
          std::span(ends).subspan(stage * chunks, chunks)};
}

namespace {

/// A moment of the last backward: the chunk whose pass is running, and how long it has run.
struct Moment {
  std::int32_t chunk = 0;
  double seconds = 0;  ///< since the pass began
};

/// When the first bucket may leave: 1 - overlap of the last backward, over all chunks of the stage, is done.
Moment gate_of(double overlap, const LastBackward& backward) {
  constexpr double kRounding = 1e-9;  // a gate at the end of a pass counts as the beginning of the next one
  double rest = 0;
  for (std::size_t c = 0; c < backward.ends.size(); ++c) rest += (1 - overlap) * backward.pass(c);
  std::size_t chunk = backward.ends.size() - 1;
  while (chunk > 0 && rest >= (1 - kRounding) * backward.pass(chunk)) rest -= backward.pass(chunk--);
  return {static_cast<std::int32_t>(chunk), std::clamp(rest, 0.0, backward.pass(chunk))};
}

double time_of(const Moment& moment, const LastBackward& backward) {
  const auto chunk = static_cast<std::size_t>(moment.chunk);
  return backward.ends[chunk] - (backward.pass(chunk) - moment.seconds);
}

/// The layers of a chunk whose gradients come from its last pass, in the order of backward. Blocks of a stage count as
/// alike, so where it has several kinds those of a chunk may add up to more than its pass. They are laid one after the
/// other from the beginning of the pass, each with its own time; what would end beyond the pass ends with it, so that
/// a slow embedding at the end doesn't move the blocks before it. Under zero_bubble (only weight gradients count) every
/// block takes the same share of the pass.
class ChunkLayers {
 public:
  ChunkLayers(const TrainingStep& in, std::int32_t stage, const LastBackward& backward, std::int32_t chunk)
      : chunk_(chunk),
        cut_(in.cuts()),
        pass_(backward.pass(static_cast<std::size_t>(chunk))),
        sum_(cut_ ? 0 : pass_lead(in).value()) {
    const LayerRuns runs = in.chunk_layers(stage, chunk);
    for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
      if (cut_ && !in.cuts(run->kind)) continue;
      const Seconds each = backward.layer[run->kind];
      runs_.push_back({run->count, each.value(), sum_});
      sum_ += run->count * each.value();
    }
  }

  /// Calls visit(moment) at the end of each layer, from the last to the first, until it returns false. Returns whether
  /// it never did.
  template <class Visit>
  [[nodiscard]] bool each_from_the_last(Visit visit) const {
    for (auto run = runs_.rbegin(); run != runs_.rend(); ++run) {
      for (std::int32_t n = run->count; n > 0; --n)
        if (!visit(end_of(*run, n))) return false;
    }
    return true;
  }

 private:
  struct Run {
    std::int32_t count = 1;
    double each = 0, before = 0;  ///< seconds of one layer, and of all layers before the run
  };

  [[nodiscard]] Moment end_of(const Run& run, std::int32_t n) const {
    const double seconds = run.before + n * run.each;
    const double share = sum_ > 0 ? seconds / sum_ : 1;
    return {chunk_, cut_ || share >= 1 ? share * pass_ : std::min(seconds, pass_)};
  }

  std::int32_t chunk_;
  bool cut_;
  double pass_;
  double sum_;  ///< seconds of all layers together, and of what comes before them
  boost::container::small_vector<Run, 8> runs_;
};

/// Number of layers of a stage whose gradients come from its last passes.
std::int32_t layers_of(const TrainingStep& in, std::int32_t stage) {
  std::int32_t layers = 0;
  for (const LayerRun& run : in.stage_layers(stage)) {
    if (!in.cuts() || in.cuts(run.kind)) layers += run.count;
  }
  return layers;
}

/// Seconds of buckets that are not whole after some layers, of groups whose buckets share a queue.
class LeftOfGradients {
 public:
  LeftOfGradients(const TrainingStep& in, std::int32_t stage, const GradientTraffic& gradients)
      : gradients_(gradients) {
    for (const GroupGradients& group : gradients) shares_.emplace_back(in, stage, group.copies);
  }

  [[nodiscard]] double after(std::int32_t layers) const {
    double left = 0;
    for (std::size_t i = 0; i < gradients_.size(); ++i) {
      const auto& [copies, buckets, time] = gradients_[i];
      const double whole = layers > 0 ? whole_buckets(buckets, shares_[i].after(layers)) : 0;
      left += layers > 0 ? (buckets - whole) * (time.value() / buckets) : time.value();
    }
    return left;
  }

 private:
  const GradientTraffic& gradients_;
  boost::container::static_vector<GradientShares, kCopyGroups.size()> shares_;
};

/// `layers`: of the stage; `left(n)`: seconds of buckets that are not whole after n of them.
template <class Left>
Seconds exposed(const TrainingStep& in, std::int32_t stage, const LastBackward& backward, std::int32_t layers,
                const Left& left) {
  const double overlap = in.setting.system.stack.communication.data_overlap, all = left(0);
  if (overlap <= 0 || all <= 0 || in.pipeline.both_ways()) return Seconds(all);
  const double gate = time_of(gate_of(overlap, backward), backward);
  const double end = backward.ends[0] + backward.deferred.value();
  double arrival = gate + all;
  if (backward.deferred > Seconds(0)) arrival = std::max(arrival, end + left(layers));
  // Go backwards from the end until no earlier moment can bring a later arrival.
  const auto matters = [&](const Moment& moment) {
    const double at = time_of(moment, backward);
    if (at <= gate || at + all <= arrival) return false;
    arrival = std::max(arrival, at + left(--layers));
    return true;
  };
  const auto chunks = static_cast<std::int32_t>(backward.ends.size());
  for (std::int32_t c = 0; c < chunks; ++c)
    if (!ChunkLayers(in, stage, backward, c).each_from_the_last(matters)) break;
  return Seconds(std::max(0.0, arrival - end));
}

}  // namespace

Seconds exposed_gradients(const TrainingStep& in, std::int32_t stage, const LastBackward& backward,
                          const GradientTraffic& gradients) {
  const LeftOfGradients left(in, stage, gradients);
  return exposed(in, stage, backward, layers_of(in, stage), [&](std::int32_t n) { return left.after(n); });
}

Seconds exposed_gradients(const TrainingStep& in, std::int32_t stage, const LastBackward& backward,
                          std::span<const double> left) {
  return exposed(in, stage, backward, static_cast<std::int32_t>(left.size()) - 1,
                 [&](std::int32_t n) { return left[static_cast<std::size_t>(n)]; });
}

std::vector<double> gradients_left(const TrainingStep& in, std::int32_t stage,
                                   const GradientTraffic& gradients) {
  const LeftOfGradients of(in, stage, gradients);
  std::vector<double> left(static_cast<std::size_t>(layers_of(in, stage)) + 1);
  for (std::size_t n = 0; n < left.size(); ++n) left[n] = of.after(static_cast<std::int32_t>(n));
  return left;
}

}  // namespace shardscape::step
