#include "engine/passes/data_exposure.h"

#include <algorithm>
#include <cmath>

#include "engine/model/partition.h"

namespace shardscape::passes {

GradientShares::GradientShares(const TrainingInputs& in, std::int32_t stage)
    : parameters_(in.parameters),
      layers_(in.layers[static_cast<std::size_t>(stage)]),
      blocks_(layers_.count()),
      cut_(in.pipeline.kind == ScheduleKind::zero_bubble) {
  const bool first = stage == 0, last = stage + 1 == in.plan.pipeline;
  heads_ = last ? 1 : 0;
  // A table that the head shares is whole after the embedding.
  head_ = last ? parameters_.of_head(first).count : 0;
  embedding_ = first ? parameters_.embedding.count : 0;
  sum_ = in.parameters.of_stage(in.layers, static_cast<std::size_t>(stage)).count;
}

double GradientShares::of_last(std::int32_t blocks) const {
  return parameters_.of_blocks(layers_.slice(blocks_ - blocks, blocks)).count;
}

double GradientShares::after(std::int32_t layers) const {
  if (sum_ <= 0) return 1;
  if (cut_) return (head_ + embedding_ + of_last(std::min(layers, blocks_))) / sum_;
  if (layers <= 0) return 0;
  const std::int32_t blocks = std::clamp(layers - heads_, 0, blocks_);
  return (head_ + of_last(blocks) + (layers > heads_ + blocks_ ? embedding_ : 0)) / sum_;
}

double whole_buckets(double buckets, double share) {
  constexpr double kRounding = 1e-9;
  return std::min(buckets, std::floor(share * buckets + kRounding));
}

LastBackward last_backward(const TrainingInputs& in, const TrainingScratch& scratch, std::size_t stage) {
  const auto chunks = static_cast<std::size_t>(in.pipeline.virtual_stages);
  const auto ends = chunks == 1 ? std::span(scratch.end).subspan(stage, 1)
                                : std::span(scratch.chunk_end).subspan(stage * chunks, chunks);
  const EndLayers& end = scratch.ends[stage];
  const Seconds blocks = scratch.backward[stage].total() - end.head - end.embedding;
  const schedule::StageTime& time = scratch.times[stage];
  const bool cut = in.pipeline.kind == ScheduleKind::zero_bubble;
  return {end.head, (1.0 / std::max(1, in.layers[stage].count())) * blocks, end.embedding,
          Seconds(cut ? time.weight : time.backward), ends};
}

namespace {

/// A moment of the last backward: a chunk's pass, and how much of it is done.
struct Moment {
  std::int32_t chunk = 0;
  double share = 0;    ///< of the chunk's own layers
  double seconds = 0;  ///< since the pass began, where all chunks of the stage take its mean
};

/// The gate lies in the chunk where the passes so far are 1 - overlap of them all.
Moment gate_of(double overlap, const LastBackward& backward) {
  const auto chunks = static_cast<double>(backward.ends.size());
  const double passes = (1 - overlap) * chunks;
  const double before = std::min(std::floor(passes), chunks - 1.0), share = passes - before;
  return {static_cast<std::int32_t>(chunks - 1 - before), share, share * backward.chunk.value()};
}

double time_of(const Moment& moment, const LastBackward& backward) {
  return backward.ends[static_cast<std::size_t>(moment.chunk)] - (backward.chunk.value() - moment.seconds);
}

/// visit(moment) at the end of every layer, in order. Layers take their own time from the beginning of the
/// pass on, of which no more is there than its mean, and the last ends with it: so that a slower embedding,
/// of which a chunk is given its part only, leaves the blocks before it where they are. What is put off to
/// weight gradients is as long for every block.
template <class Visit>
void each_layer(const TrainingInputs& in, std::int32_t stage, const LastBackward& backward, Visit visit) {
  const bool cut = in.pipeline.kind == ScheduleKind::zero_bubble;
  const auto chunks = static_cast<std::int32_t>(backward.ends.size());
  for (std::int32_t c = chunks; c-- > 0;) {
    const bool head = stage + 1 == in.plan.pipeline && c + 1 == chunks && !cut;
    const bool embedding = stage == 0 && c == 0 && !cut;
    const std::int32_t blocks =
        model::layers_of_chunk(in.layers[static_cast<std::size_t>(stage)], chunks, c).count();
    const double first = head ? backward.head.value() : 0, last = embedding ? backward.embedding.value() : 0;
    const double sum = first + blocks * backward.block.value() + last;
    const double pass = backward.chunk.value();
    const auto at = [&](double seconds) {
      const double share = sum > 0 ? seconds / sum : 1;
      return Moment{c, share, cut || share >= 1 ? share * pass : std::min(seconds, pass)};
    };
    if (head) visit(at(first));
    for (std::int32_t b = 1; b <= blocks; ++b) visit(at(first + b * backward.block.value()));
    if (embedding) visit(at(sum));
  }
}

}  // namespace

Seconds exposed_gradients(const TrainingInputs& in, std::int32_t stage, const LastBackward& backward,
                          double buckets, Seconds time) {
  const double overlap = in.setting.system.stack.communication.data_overlap;
  const double all = time.value(), each = all / buckets;
  if (overlap <= 0 || all <= 0) return time;
  const double gate = time_of(gate_of(overlap, backward), backward);
  const GradientShares shares(in, stage);
  double arrival = gate + all, left = all;
  std::int32_t layers = 0;
  each_layer(in, stage, backward, [&](const Moment& moment) {
    const double at = time_of(moment, backward);
    if (at > gate) arrival = std::max(arrival, at + left);
    left = (buckets - whole_buckets(buckets, shares.after(++layers))) * each;
  });
  return Seconds(std::max(0.0, arrival - backward.ends[0]));
}

std::vector<timeline::BucketRelease> bucket_releases(const TrainingInputs& in, std::int32_t stage,
                                                     const LastBackward& backward, double buckets) {
  const double overlap = in.setting.system.stack.communication.data_overlap;
  std::vector<timeline::BucketRelease> releases;
  if (overlap <= 0) return releases;
  const Moment gate = gate_of(overlap, backward);
  const GradientShares shares(in, stage);
  double gone = 0;
  std::int32_t layers = 0;
  const auto release = [&](const Moment& moment) {
    const double whole = whole_buckets(buckets, shares.after(layers));
    if (whole > gone)
      releases.push_back({moment.chunk, moment.share, static_cast<std::int32_t>(whole - gone)});
    gone = whole;
  };
  bool open = false;
  each_layer(in, stage, backward, [&](const Moment& moment) {
    const bool past = moment.chunk < gate.chunk || (moment.chunk == gate.chunk && moment.share >= gate.share);
    if (past && !open) release(gate);
    open = open || past;
    ++layers;
    if (open && !(moment.chunk == 0 && moment.share >= 1)) release(moment);
  });
  return releases;
}

}  // namespace shardscape::passes
