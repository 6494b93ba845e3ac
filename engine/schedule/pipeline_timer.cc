#include "engine/schedule/pipeline_timer.h"

#include <algorithm>
#include <cmath>

#include "engine/base/check.h"

namespace shardscape::schedule {

namespace {

/// Two states count as shifted by a constant where all differences agree this closely, relative to the
/// state's own size. Rounding alone is some 1e-16 per operation.
constexpr double kShiftTolerance = 1e-13;

/// Microbatches after which the pattern of dependencies repeats.
std::int32_t pattern_microbatches(const PipelineShape& shape) {
  return shape.virtual_stages > 1 ? shape.stages : 1;
}

/// Periods looked back for a constant shift: blocking transfers may alternate between two.
constexpr std::size_t kLongestCycle = 2;

/// A smaller number of microbatches, congruent modulo the period, that leaves room for the wave to settle.
std::int32_t reduced_microbatches(const PipelineShape& shape, std::int32_t at_least) {
  const std::int32_t period = static_cast<std::int32_t>(kLongestCycle) * pattern_microbatches(shape);
  if (shape.microbatches <= at_least) return shape.microbatches;
  return shape.microbatches - (shape.microbatches - at_least) / period * period;
}

}  // namespace

PipelineEnds PipelineTimer::run(const PipelineShape& shape, std::span<const StageTime> times,
                                const Transfer& transfer) {
  SHARDSCAPE_CHECK(times.size() == static_cast<std::size_t>(shape.stages), times.size(), shape.stages);
  SHARDSCAPE_CHECK(transfer.seconds.size() == 1 || transfer.seconds.size() == times.size(),
                   transfer.seconds.size(), shape.stages);
  stage_end_.assign(static_cast<std::size_t>(shape.stages), 0);
  chunk_end_.assign(
      shape.virtual_stages > 1 ? stage_end_.size() * static_cast<std::size_t>(shape.virtual_stages) : 0, 0);
  if (shape.stages == 1 && shape.virtual_stages == 1) {
    stage_end_[0] = shape.microbatches * (times[0].forward + times[0].backward);
    return {stage_end_, chunk_end_};
  }
  if (shape.kind == ScheduleKind::gpipe) {
    run_gpipe(shape, times, transfer);
    return {stage_end_, chunk_end_};
  }
  PipelineShape reduced = shape;
  std::int32_t attempt = (shape.kind == ScheduleKind::zero_bubble ? 5 : 3) * shape.stages + 4;
  for (;;) {
    reduced.microbatches = reduced_microbatches(shape, attempt);
    const Wave wave = run_wave(reduced, times, transfer);
    if (reduced.microbatches == shape.microbatches) return {stage_end_, chunk_end_};
    if (wave.periodic) {
      const double periods = (shape.microbatches - reduced.microbatches) / pattern_microbatches(shape);
      for (double& end : stage_end_) end += periods * wave.per_period;
      for (double& end : chunk_end_) end += periods * wave.per_period;
      return {stage_end_, chunk_end_};
    }
    attempt *= 2;
  }
}

void PipelineTimer::run_gpipe(const PipelineShape& shape, std::span<const StageTime> times,
                              const Transfer& transfer) {
  const std::size_t stages = times.size();
  const double repeats = shape.microbatches - 1;
  const auto busy = [&](std::size_t boundary) { return transfer.blocking ? transfer.over(boundary) : 0; };
  double arrival = 0, slowest = 0;  // of the first microbatch at this stage; of the stages so far
  for (std::size_t s = 0; s < stages; ++s) {
    const bool sends = s + 1 < stages;
    const double work = times[s].forward + (sends ? busy(s) : 0);
    slowest = std::max(slowest, work);
    stage_end_[s] = arrival + work + repeats * slowest;
    arrival += times[s].forward + (sends ? transfer.over(s) : 0);
  }
  arrival = stage_end_.back();
  slowest = 0;
  for (std::size_t s = stages; s-- > 0;) {
    const bool sends = s > 0;
    const double work = times[s].backward + (sends ? busy(s - 1) : 0);
    slowest = std::max(slowest, work);
    stage_end_[s] = arrival + work + repeats * slowest;
    arrival += times[s].backward + (sends ? transfer.over(s - 1) : 0);
  }
}

void PipelineTimer::snapshot() {
  std::rotate(snapshots_.begin(), snapshots_.end() - 1, snapshots_.end());
  std::vector<double>& state = snapshots_.front();
  state.assign(stage_end_.begin(), stage_end_.end());
  state.insert(state.end(), last_forward_.begin(), last_forward_.end());
  state.insert(state.end(), last_backward_.begin(), last_backward_.end());
  ++snapshot_count_;
}

std::optional<double> PipelineTimer::shift_since(std::size_t back) const {
  if (snapshot_count_ <= back) return std::nullopt;
  const std::vector<double>& now = snapshots_.front();
  const std::vector<double>& then = snapshots_[back];
  double smallest = now[0] - then[0], largest = smallest;
  for (std::size_t i = 1; i < now.size(); ++i) {
    smallest = std::min(smallest, now[i] - then[i]);
    largest = std::max(largest, now[i] - then[i]);
  }
  if (largest - smallest > kShiftTolerance * now[0]) return std::nullopt;
  return 0.5 * (smallest + largest);
}

PipelineTimer::Wave PipelineTimer::run_wave(const PipelineShape& shape, std::span<const StageTime> times,
                                            const Transfer& transfer) {
  const std::int32_t stages = shape.stages;
  const std::int32_t total = shape.microbatches * shape.virtual_stages;
  const std::int32_t group = stages * shape.virtual_stages;
  const auto at = [total](std::int32_t stage, std::int32_t ordinal) {
    return static_cast<std::size_t>(stage) * static_cast<std::size_t>(total) +
           static_cast<std::size_t>(ordinal);
  };
  std::ranges::fill(stage_end_, 0.0);
  const std::size_t slots = static_cast<std::size_t>(stages) * static_cast<std::size_t>(total);
  if (forward_arrival_.size() < slots) {
    forward_arrival_.resize(slots);
    backward_arrival_.resize(slots);
  }
  last_forward_.assign(static_cast<std::size_t>(stages), 0);
  last_backward_.assign(static_cast<std::size_t>(stages), 0);

  /// The chunk that the k-th forward of a stage works on (backwards count down from the last chunk).
  turns_.assign(static_cast<std::size_t>(total), 0);
  for (std::int32_t k = 0; shape.virtual_stages > 1 && k < total; ++k)
    turns_[static_cast<std::size_t>(k)] = k % group / stages;
  const auto chunk_turn = [&](std::int32_t k) { return turns_[static_cast<std::size_t>(k)]; };
  const std::int32_t last_turn = shape.virtual_stages - 1;
  const bool cut = shape.kind == ScheduleKind::zero_bubble;
  const double* const messages = transfer.seconds.data();
  const std::size_t stride = transfer.seconds.size() == 1 ? 0 : 1;
  const auto over = [=](std::int32_t boundary) {
    return messages[static_cast<std::size_t>(boundary) * stride];
  };
  /// `input`: 0 where nothing has to come from elsewhere. The first backward of a microbatch follows its own
  /// forward, which its stage has already ended.
  const auto finish = [&](std::int32_t s, double input, double work, bool sends, double message) {
    double& end = stage_end_[static_cast<std::size_t>(s)];
    end = std::max(end, input) + work;
    const double arrival = sends ? end + message : end;
    if (transfer.blocking) end = arrival;
    return arrival;
  };
  const auto forward = [&](std::int32_t s, std::int32_t k) {
    const std::int32_t turn = chunk_turn(k);
    const double input = s > 0      ? forward_arrival_[at(s - 1, k)]
                         : turn > 0 ? forward_arrival_[at(stages - 1, k - stages)]
                                    : 0.0;
    const bool sends = s + 1 < stages || turn < last_turn;
    last_forward_[static_cast<std::size_t>(s)] = forward_arrival_[at(s, k)] =
        finish(s, input, times[static_cast<std::size_t>(s)].forward, sends, over(s));
  };
  const auto backward = [&](std::int32_t s, std::int32_t k) {
    const std::int32_t turn = chunk_turn(k);
    const double input = s + 1 < stages ? backward_arrival_[at(s + 1, k)]
                         : turn > 0     ? backward_arrival_[at(0, k - stages)]
                                        : 0.0;
    const bool sends = s > 0 || turn < last_turn;
    const StageTime& time = times[static_cast<std::size_t>(s)];
    last_backward_[static_cast<std::size_t>(s)] = backward_arrival_[at(s, k)] = finish(
        s, input, cut ? time.backward - time.weight : time.backward, sends, over(s > 0 ? s - 1 : stages - 1));
    if (cut && k >= s) stage_end_[static_cast<std::size_t>(s)] += time.weight;
    if (last_turn > 0 && k >= total - group && k % stages == stages - 1) {
      const std::int32_t chunk = s * shape.virtual_stages + last_turn - turn;
      chunk_end_[static_cast<std::size_t>(chunk)] = stage_end_[static_cast<std::size_t>(s)];
    }
  };

  // Operation n of a stage with w warm-up forwards: forwards 0..w-1, then backward and forward in turn, then
  // the remaining backwards.
  warm_up_.resize(static_cast<std::size_t>(stages));
  for (std::int32_t s = 0; s < stages; ++s) warm_up_[static_cast<std::size_t>(s)] = warm_up(shape, s);
  snapshot_count_ = 0;
  const std::int32_t longest_warm_up = warm_up_.front();
  // Before that, late stages of zero_bubble have not begun with their weight gradients.
  const std::int32_t steady_begin = longest_warm_up + 2 + (cut ? 2 * stages : 0);
  const std::int32_t steady_end = 2 * total - longest_warm_up;
  const std::int32_t period =
      2 * pattern_microbatches(shape) * shape.virtual_stages;  // in operations of a stage
  Wave wave;
  for (std::int32_t n = 0; n < 2 * total; ++n) {
    for (std::int32_t s = 0; s < stages; ++s) {
      const std::int32_t w = warm_up_[static_cast<std::size_t>(s)];
      if (n < w) {
        forward(s, n);
      } else if (n < 2 * total - w && (n - w) % 2 == 1) {
        forward(s, w + (n - w) / 2);
      }
    }
    for (std::int32_t s = stages; s-- > 0;) {
      const std::int32_t w = warm_up_[static_cast<std::size_t>(s)];
      if (n < w) continue;
      if (n >= 2 * total - w) {
        backward(s, n - total);
      } else if ((n - w) % 2 == 0) {
        backward(s, (n - w) / 2);
      }
    }
    if (wave.periodic || n < steady_begin || n >= steady_end || (n - steady_begin) % period != 0) continue;
    snapshot();
    for (std::size_t back = 1; back <= kLongestCycle && !wave.periodic; ++back) {
      if (const std::optional<double> shift = shift_since(back)) {
        wave = {true, *shift / static_cast<double>(back)};
      }
    }
  }
  for (std::int32_t s = 0; cut && s < stages; ++s) {  // what was put off and not yet made up for
    stage_end_[static_cast<std::size_t>(s)] += std::min(s, total) * times[static_cast<std::size_t>(s)].weight;
  }
  return wave;
}

}  // namespace shardscape::schedule
