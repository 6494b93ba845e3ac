#include "engine/passes/data_exposure.h"

#include <algorithm>
#include <cmath>

#include "engine/workload/partition.h"

namespace shardscape::passes {

GradientShares::GradientShares(const TrainingInputs& in, std::int32_t stage)
    : block_(in.parameters.block), cut_(in.pipeline.kind == ScheduleKind::zero_bubble) {
  const bool first = stage == 0, last = stage + 1 == in.plan.pipeline;
  const bool tied = in.setting.model.tied_embeddings;
  heads_ = last ? 1 : 0;
  blocks_ = in.layers[static_cast<std::size_t>(stage)];
  head_ = in.parameters.of_stage(0, false, last, tied);
  embedding_ = in.parameters.of_stage(0, first, false, tied);
  sum_ = in.parameters.of_stage(blocks_, first, last, tied);
  // A table that the head shares is whole after the embedding.
  if (first && last && tied) head_ = sum_ - blocks_ * block_ - embedding_;
}

double GradientShares::after(std::int32_t layers) const {
  if (sum_ <= 0) return 1;
  if (cut_) return (head_ + embedding_ + std::min(layers, blocks_) * block_) / sum_;
  if (layers <= 0) return 0;
  const std::int32_t blocks = std::clamp(layers - heads_, 0, blocks_);
  return (head_ + blocks * block_ + (layers > heads_ + blocks_ ? embedding_ : 0)) / sum_;
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
  const schedule::StageTime& time = scratch.times[stage];
  const bool cut = in.pipeline.kind == ScheduleKind::zero_bubble;
  const Seconds blocks =
      cut ? Seconds(time.weight) : scratch.backward[stage].total() - end.head - end.embedding;
  return {end.head, (1.0 / std::max(1, in.layers[stage])) * blocks, end.embedding,
          Seconds(cut ? time.weight : time.backward), ends};
}

namespace {

/// A moment of the last backward: a chunk's pass, and how much of it is done.
struct Moment {
  std::int32_t chunk = 0;
  double share = 0;
};

/// The gate lies in the chunk where the passes so far are 1 - overlap of them all.
Moment gate_of(double overlap, std::int32_t chunks) {
  const double passes = (1 - overlap) * chunks;
  const double before = std::min(std::floor(passes), chunks - 1.0);
  return {chunks - 1 - static_cast<std::int32_t>(before), passes - before};
}

double time_of(const Moment& moment, const LastBackward& backward) {
  return backward.ends[static_cast<std::size_t>(moment.chunk)] - (1 - moment.share) * backward.chunk.value();
}

/// visit(moment) at the end of every layer, in order. Where a chunk's layers take longer than the mean pass
/// by which the pipeline was timed, the last of them end with it; the stage's last layer always does. So no
/// moment comes earlier because a layer takes longer.
template <class Visit>
void each_layer(const TrainingInputs& in, std::int32_t stage, const LastBackward& backward, Visit visit) {
  const bool cut = in.pipeline.kind == ScheduleKind::zero_bubble;
  const auto chunks = static_cast<std::int32_t>(backward.ends.size());
  const double pass = backward.chunk.value();
  for (std::int32_t c = chunks; c-- > 0;) {
    const bool head = stage + 1 == in.plan.pipeline && c + 1 == chunks && !cut;
    const bool embedding = stage == 0 && c == 0 && !cut;
    const std::int32_t blocks =
        workload::layers_of_chunk(in.layers[static_cast<std::size_t>(stage)], chunks, c);
    std::int32_t layers = (head ? 1 : 0) + blocks + (embedding ? 1 : 0);
    double seconds = 0;
    const auto end_of = [&](Seconds layer) {
      seconds += layer.value();
      const bool last = c == 0 && --layers == 0;
      visit(Moment{c, last || seconds >= pass ? 1 : seconds / pass});
    };
    if (head) end_of(backward.head);
    for (std::int32_t b = 0; b < blocks; ++b) end_of(backward.block);
    if (embedding) end_of(backward.embedding);
  }
}

}  // namespace

Seconds exposed_gradients(const TrainingInputs& in, std::int32_t stage, const LastBackward& backward,
                          double buckets, Seconds time) {
  const double overlap = in.setting.system.stack.communication.data_overlap;
  const double all = time.value(), each = all / buckets;
  if (overlap <= 0 || all <= 0) return time;
  const double gate = time_of(gate_of(overlap, static_cast<std::int32_t>(backward.ends.size())), backward);
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

std::vector<trace::BucketRelease> bucket_releases(const TrainingInputs& in, std::int32_t stage,
                                                  const LastBackward& backward, double buckets) {
  const double overlap = in.setting.system.stack.communication.data_overlap;
  std::vector<trace::BucketRelease> releases;
  if (overlap <= 0) return releases;
  const Moment gate = gate_of(overlap, static_cast<std::int32_t>(backward.ends.size()));
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
