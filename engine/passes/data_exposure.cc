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

Seconds exposed_gradients(const TrainingInputs& in, std::int32_t stage, const LastBackward& backward,
                          double buckets, Seconds time) {
  const double overlap = in.setting.system.stack.communication.data_overlap;
  const double all = time.value(), each = all / buckets;
  if (overlap <= 0 || all <= 0) return time;
  const auto chunks = static_cast<std::int32_t>(backward.ends.size());
  const double pass = backward.chunk.value(), end = backward.ends[0];

  // The gate lies in the chunk where the passes so far are 1 - overlap of them all.
  const double passes = (1 - overlap) * chunks;
  const auto gate_chunk = static_cast<std::int32_t>(std::min(passes, chunks - 1.0));
  const std::int32_t opening = chunks - 1 - gate_chunk;
  const double gate = backward.ends[static_cast<std::size_t>(opening)] - (gate_chunk + 1 - passes) * pass;

  const GradientShares shares(in, stage);
  const bool cut = in.pipeline.kind == ScheduleKind::zero_bubble;
  const bool head = stage + 1 == in.plan.pipeline && !cut, embedding = stage == 0 && !cut;
  const std::int32_t blocks = in.layers[static_cast<std::size_t>(stage)];
  double arrival = gate + all, left = buckets * each;
  std::int32_t layers = 0;
  for (std::int32_t c = chunks; c-- > 0;) {
    const std::int32_t here = workload::layers_of_chunk(blocks, chunks, c);
    const double first = head && c + 1 == chunks ? backward.head.value() : 0;
    const double last = embedding && c == 0 ? backward.embedding.value() : 0;
    const double sum = first + here * backward.block.value() + last;
    const double scale = sum > 0 ? pass / sum : 0, block = scale * backward.block.value();
    double at = backward.ends[static_cast<std::size_t>(c)] - pass;
    const auto end_layer = [&](double seconds) {
      at += seconds;
      if (at > gate) arrival = std::max(arrival, at + left);
      left = (buckets - whole_buckets(buckets, shares.after(++layers))) * each;
    };
    if (head && c + 1 == chunks) end_layer(scale * first);
    for (std::int32_t b = 0; b < here; ++b) end_layer(block);
    if (embedding && c == 0) end_layer(scale * last);
  }
  return Seconds(std::max(0.0, arrival - end));
}

}  // namespace shardscape::passes
