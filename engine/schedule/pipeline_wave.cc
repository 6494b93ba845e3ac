// Walks the steps of a wave (see the header) as loops over stages, on two pipelines at once: the real one and the one
// whose messages take no time. Once the state repeats with a constant shift, the remaining periods are skipped.
#include "engine/schedule/pipeline_wave.h"

#include <algorithm>
#include <utility>

namespace shardscape::schedule {

namespace {

/// Two states count as shifted by a constant where all differences agree within this, relative to the state's own size.
/// Rounding alone is some 1e-16 per operation.
constexpr double kShiftTolerance = 1e-13;

std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }

using Lanes = PipelineWave::Lanes;

/// A stage works when it is free and its input has arrived, then sends its message.
template <bool kBlocking>
void work(const Lanes& lanes, std::int32_t s, std::int32_t from, std::int32_t to) {
  const TwoTimes done = later(lanes.end[s], lanes.input[from]) + lanes.work[s];
  const TwoTimes arrival = done + lanes.message[s];
  lanes.input[to] = arrival;
  lanes.end[s] = kBlocking ? arrival : done;
}

// Runs from the last stage to the first, so that a stage reads its input before its neighbour overwrites it.
template <bool kBlocking>
void work_forward(const Lanes& given, std::int32_t first, std::int32_t last) {
  const Lanes lanes = given;
  for (std::int32_t s = last; s >= first; --s) work<kBlocking>(lanes, s, s, s + 1);
}

template <bool kBlocking>
void work_backward(const Lanes& given, std::int32_t first, std::int32_t last) {
  const Lanes lanes = given;
  for (std::int32_t s = first; s <= last; ++s) work<kBlocking>(lanes, s, s + 1, s);
}

/// Every stage runs its backward, then its forward. A stage's input is read before the stage before it overwrites it.
template <bool kBlocking>
void work_both(const Lanes& back, const Lanes& ahead, std::int32_t stages) {
  const Lanes backward = back, forward = ahead;
  TwoTimes coming = forward.input[0];
  for (std::int32_t s = 0; s < stages; ++s) {
    const TwoTimes next = forward.input[s + 1];
    TwoTimes done = later(backward.end[s], backward.input[s + 1]) + backward.work[s];
    TwoTimes arrival = done + backward.message[s];
    backward.input[s] = arrival;
    done = later(kBlocking ? arrival : done, coming) + forward.work[s];
    arrival = done + forward.message[s];
    forward.input[s + 1] = arrival;
    backward.end[s] = kBlocking ? arrival : done;
    coming = next;
  }
}

/// Every second stage works backward, the others forward.
template <bool kBlocking>
void work_in_turn(const Lanes& back, const Lanes& ahead, std::int32_t first, std::int32_t last,
                  std::int32_t first_ahead, std::int32_t stages) {
  for (std::int32_t s = first; s <= last; s += 2) work<kBlocking>(back, s, s + 1, s);
  for (std::int32_t s = first_ahead; s < stages; s += 2) work<kBlocking>(ahead, s, s, s + 1);
}

}  // namespace

PipelineEnds PipelineWave::run(const PipelineShape& shape, std::span<const StageTime> times,
                               const Transfer& transfer) {
  shape_ = shape;
  stages_ = shape.stages;
  total_ = shape.microbatches * shape.virtual_stages;
  group_ = shape.stages * shape.virtual_stages;
  prepare(times, transfer);
  if (shape.virtual_stages > 1) {
    run_interleaved();
  } else {
    run_alternating();
  }
  if (skipped_ > 0) {
    for (TwoTimes& end : end_) end += skipped_ * per_period_;
    for (TwoTimes& end : chunk_end_) end += skipped_ * per_period_;
  }
  stage_ends_.clear();
  free_ends_.clear();
  chunk_ends_.clear();
  for (const TwoTimes end : end_) {
    stage_ends_.push_back(end.real());
    free_ends_.push_back(end.free());
  }
  for (const TwoTimes end : chunk_end_) chunk_ends_.push_back(end.real());
  return {stage_ends_, chunk_ends_, free_ends_};
}

/// prepare() for chunks with times of their own: a stage begins with the forward of its first chunk, and with the
/// backward of its last.
void PipelineWave::prepare_chunks(std::span<const StageTime> times) {
  chunks_.assign(times.begin(), times.end());
  const auto each = index(shape_.virtual_stages);
  for (std::size_t s = 0; s < index(stages_); ++s) {
    const double ahead = times[s * each].forward, back = times[s * each + each - 1].backward;
    forward_work_[s] = TwoTimes(ahead, ahead);
    backward_work_[s] = TwoTimes(back, back);
  }
}

void PipelineWave::prepare(std::span<const StageTime> times, const Transfer& transfer) {
  const auto stages = index(shape_.stages);
  const bool cut = shape_.cuts();
  blocking_ = transfer.blocking;
  end_.assign(stages, {});
  chunk_end_.assign(shape_.virtual_stages > 1 ? stages * index(shape_.virtual_stages) : 0, {});
  forward_work_.resize(stages);
  backward_work_.resize(stages);
  weight_.resize(stages);
  forward_message_.resize(stages);
  backward_message_.resize(stages);
  const auto both = [](double seconds) { return TwoTimes(seconds, seconds); };
  const auto message = [&](std::size_t boundary) { return TwoTimes(transfer.over(boundary), 0); };
  const auto back = [&](std::size_t boundary) { return TwoTimes(transfer.back_over(boundary), 0); };
  const bool by_chunk = times.size() > stages;
  chunks_.clear();
  if (by_chunk) prepare_chunks(times);
  for (std::size_t s = 0; s < stages; ++s) {
    if (!by_chunk) {
      forward_work_[s] = both(times[s].forward);
      backward_work_[s] = both(cut ? times[s].backward - times[s].weight : times[s].backward);
    }
    weight_[s] = both(cut ? times[s].weight : 0);
    forward_message_[s] = s + 1 < stages ? message(s) : TwoTimes();
    backward_message_[s] = s > 0 ? back(s - 1) : TwoTimes();
  }
  forward_round_ = message(stages - 1);
  backward_round_ = back(stages - 1);
  forward_input_.assign(stages + 1, {});
  backward_input_.assign(stages + 1, {});
  second_.assign(stages + 1, {});
  snapshot_count_ = 0;
  skipped_ = 0;
  per_period_ = {};
}

PipelineWave::Lanes PipelineWave::backward_lanes() {
  return {end_.data(), backward_input_.data(), backward_work_.data(), backward_message_.data()};
}

PipelineWave::Lanes PipelineWave::forward_lanes() {
  return {end_.data(), forward_input_.data(), forward_work_.data(), forward_message_.data()};
}

void PipelineWave::forward(std::int32_t first, std::int32_t last) {
  const Lanes lanes = forward_lanes();
  blocking_ ? work_forward<true>(lanes, first, last) : work_forward<false>(lanes, first, last);
}

void PipelineWave::backward(std::int32_t first, std::int32_t last) {
  const Lanes lanes = backward_lanes();
  blocking_ ? work_backward<true>(lanes, first, last) : work_backward<false>(lanes, first, last);
}

void PipelineWave::alternate(std::int32_t backward_first, std::int32_t backward_last,
                             std::int32_t forward_first) {
  const auto step = blocking_ ? work_in_turn<true> : work_in_turn<false>;
  step(backward_lanes(), forward_lanes(), backward_first, backward_last, forward_first, stages_);
}

void PipelineWave::warm_up_alternating() {
  for (std::int32_t d = 0; d < stages_; ++d) forward(std::max(0, d - total_ + 1), d);
}

void PipelineWave::run_alternating() {
  warm_up_alternating();
  const bool cut = shape_.cuts();
  // The first step in which all stages take part, under zero_bubble with their weight gradients, too.
  const std::int32_t steady = stages_ + 2 + (cut ? 2 * stages_ : 0);
  // A message that goes down the pipeline and comes back as a gradient makes a cycle of S microbatches, or of one or
  // two fewer where the stages at the ends are quick.
  const std::int32_t round = stages_ * ((3 + stages_) / stages_);
  for (std::int32_t n = 1; n <= 2 * total_ - 2 + stages_; ++n) {
    const std::int32_t joined = n <= stages_ ? stages_ - n : (n - stages_) % 2;
    const std::int32_t out = n - (2 * total_ - 1 - stages_);  // stages before this one have no forward left
    std::int32_t ahead = n <= stages_ ? joined + 1 : 1 - joined;
    if (ahead < out) ahead = out + (out - ahead) % 2;
    const std::int32_t busy =
        std::min(stages_ - 1, 2 * total_ - 2 + stages_ - n);  // the last stage that has a backward left
    alternate(joined, busy, ahead);
    // Backward k = (n - S + s) / 2 of stage s is followed by a weight gradient where k >= s.
    for (std::int32_t s = joined; cut && s <= std::min(busy, n - stages_); s += 2)
      end_[index(s)] += weight_[index(s)];
    if (skipped_ > 0 || n < steady || out > -2 || (n - steady) % 2 != 0) continue;
    if (!settled((n - steady) / 2, round)) continue;
    skip(-out / 2, 1);
  }
  for (std::int32_t s = 0; cut && s < stages_; ++s)  // the weight gradients that are still put off at the end
    end_[index(s)] += static_cast<double>(std::min(s, shape_.microbatches)) * weight_[index(s)];
}

// Forward d - s of stage s begins chunk (d - s) / S of its group where S divides d - s.
PipelineWave::Turn PipelineWave::forward_turn(std::int32_t d) const {
  return {d % stages_, d / stages_ % shape_.virtual_stages};
}

/// `first`, `last`: the range of stages that work in this step.
void PipelineWave::begin_forward_chunk(std::int32_t first, std::int32_t last) {
  if (chunks_.empty()) return;
  const auto [s, chunk] = forward_turn_;
  if (s >= first && s <= last) {
    const double work = chunks_[index(s * shape_.virtual_stages + chunk)].forward;
    forward_work_[index(s)] = TwoTimes(work, work);
  }
  if (++forward_turn_.stage < stages_) return;
  forward_turn_ = {0, chunk + 1 == shape_.virtual_stages ? 0 : chunk + 1};
}

// Backward k - (S - 1 - s) of stage s begins a chunk by the same rule; chunks count down from the last.
void PipelineWave::begin_backward_chunk(std::int32_t first, std::int32_t last) {
  const auto [s, chunk] = backward_turn_;
  if (s >= first && s <= last && !chunks_.empty()) {
    const double work = chunks_[index(s * shape_.virtual_stages + chunk)].backward;
    backward_work_[index(s)] = TwoTimes(work, work);
  }
  if (--backward_turn_.stage >= 0) return;
  backward_turn_ = {stages_ - 1, chunk == 0 ? shape_.virtual_stages - 1 : chunk - 1};
}

/// `longest`: number of forwards in the first stage's warm-up; each further stage has two fewer.
void PipelineWave::warm_up_interleaved(std::int32_t longest) {
  const std::int32_t beginning = stages_, ending = group_ - stages_;
  forward_turn_ = {};
  for (std::int32_t d = 0;; ++d) {
    const std::int32_t first = std::max(0, d - total_ + 1);
    const std::int32_t last = std::min({stages_ - 1, d, longest - 1 - d});
    if (first > last) return;
    begin_forward_chunk(first, last);
    if (first == 0 && in_group(d) < beginning) forward_input_[0] = {};
    if (last == stages_ - 1)
      forward_message_.back() = in_group(d - last) < ending ? forward_round_ : TwoTimes();
    const std::size_t next = index(last) + 1;
    const TwoTimes waiting = forward_input_[next];
    forward(first, last);
    if (last == stages_ - 1) {
      forward_input_[0] = forward_input_.back();
      // The stage's last warm-up message, while the one before it still waits.
    } else if (last == longest - 1 - d) {
      second_[next] = forward_input_[next];
      forward_input_[next] = waiting;
    }
  }
}

/// Sets what backwards of step `step`, `phase` steps after the beginning of a group, wait for at the end of a chunk,
/// and what they send there. `first`, `last`: the range of stages that work.
void PipelineWave::begin_backward(std::int32_t phase, std::int32_t first, std::int32_t last) {
  if (last == stages_ - 1 && phase < stages_) backward_input_.back() = {};
  if (first > 0) return;
  // The first stage's place in its group; negative: it is still in the group before.
  const std::int32_t of_first = phase - (stages_ - 1);
  backward_message_[0] = of_first >= 0 && of_first < group_ - stages_ ? backward_round_ : TwoTimes();
}

void PipelineWave::begin_forward(std::int32_t phase, std::int32_t longest, std::int32_t first) {
  const std::int32_t of_last = in_group(longest - 2 * (stages_ - 1)) + phase;
  forward_message_.back() = in_group(of_last) < group_ - stages_ ? forward_round_ : TwoTimes();
  if (first == 0 && in_group(in_group(longest - (stages_ - 1)) + phase) < stages_) forward_input_[0] = {};
}

void PipelineWave::backward_of_chunks(std::int32_t step, std::int32_t phase) {
  const std::int32_t first = std::max(0, stages_ - 1 - step);
  const std::int32_t last = std::min(stages_ - 1, total_ + stages_ - 2 - step);
  begin_backward(phase, first, last);
  begin_backward_chunk(first, last);
  backward(first, last);
  if (first == 0) backward_input_.back() = backward_input_.front();
  // The stage that begins another chunk in the next step ends the one before it.
  const auto [s, next] = backward_turn_;
  if (step - (stages_ - 1 - s) < total_ - group_ || s < first || s > last) return;
  const std::int32_t chunk = next + 1 == shape_.virtual_stages ? 0 : next + 1;
  chunk_end_[index(s * shape_.virtual_stages + chunk)] = end_[index(s)];
}

void PipelineWave::forward_of_chunks(std::int32_t step, std::int32_t phase, std::int32_t longest) {
  const std::int32_t joined = stages_ - 1 - step;  // the stage that joins in this step, if it is one
  const std::int32_t first = std::max({0, joined, longest + step - stages_ + 2 - total_});
  begin_forward_chunk(first, stages_ - 1);
  if (first >= stages_) return;
  begin_forward(phase, longest, first);
  forward(first, stages_ - 1);
  forward_input_[0] = forward_input_.back();
  if (joined > 0 && first == joined) forward_input_[index(joined)] = second_[index(joined)];
}

/// Backward and forward of `steps` in which all stages take part and none ends a chunk's last microbatch.
void PipelineWave::both_of_chunks(std::int32_t phase, std::int32_t longest, std::int32_t steps) {
  const std::int32_t last = stages_ - 1, inner = group_ - stages_;
  const TwoTimes none, backward_round = backward_round_, forward_round = forward_round_;
  TwoTimes *const backward_message = backward_message_.data(), *const forward_message =
                                                                   &forward_message_.back();
  // The places in their groups of the forwards of the first and of the last stage.
  std::int32_t of_first = in_group(in_group(longest - last) + phase),
               of_last = in_group(in_group(longest - 2 * last) + phase);
  const auto next = [&](std::int32_t n) { return n + 1 == group_ ? 0 : n + 1; };
  for (; steps > 0; --steps) {
    if (phase < stages_) backward_input_.back() = none;
    *backward_message = phase >= last && phase - last < inner ? backward_round : none;
    *forward_message = of_last < inner ? forward_round : none;
    if (of_first < stages_) forward_input_[0] = none;
    begin_backward_chunk(0, last);
    begin_forward_chunk(0, last);
    const Lanes back = backward_lanes(), ahead = forward_lanes();
    blocking_ ? work_both<true>(back, ahead, stages_) : work_both<false>(back, ahead, stages_);
    back.input[stages_] = back.input[0];
    ahead.input[0] = ahead.input[stages_];
    phase = next(phase);
    of_first = next(of_first);
    of_last = next(of_last);
  }
}

void PipelineWave::run_interleaved() {
  // With as many microbatches as stages all forwards come first.
  const std::int32_t longest =
      shape_.microbatches == stages_ ? total_ + 2 * stages_ : 2 * (stages_ - 1) + group_ - stages_ + 1;
  warm_up_interleaved(longest);
  forward_turn_ = forward_turn(longest - (stages_ - 1));
  backward_turn_ = {stages_ - 1, shape_.virtual_stages - 1};
  std::int32_t phase = 0;  // step % group_
  for (std::int32_t step = 0; step <= total_ + stages_ - 2; ++step) {
    std::int32_t whole = total_ - longest + stages_ - 2 - step;  // further steps of all stages
    if (step >= stages_ - 1 && whole >= 0 && step < total_ - group_) {
      // The phase at which the state is looked at next.
      const std::int32_t look = phase <= stages_ ? stages_ : stages_ + group_;
      const std::int32_t more = std::min({whole, total_ - group_ - 1 - step, look - phase});
      both_of_chunks(phase, longest, more + 1);
      step += more;
      whole -= more;
      phase = in_group(phase + more);
    } else {
      backward_of_chunks(step, phase);
      forward_of_chunks(step, phase, longest);
    }
    const bool begins = phase == stages_;  // a period begins
    phase = phase + 1 == group_ ? 0 : phase + 1;
    if (!begins || skipped_ > 0 || whole < group_) continue;
    if (!settled((step - stages_) / group_, 1)) continue;
    skip(whole / group_, group_);
  }
}

/// Skips as many of the coming `periods` as make whole cycles.
void PipelineWave::skip(std::int32_t periods, std::int32_t operations) {
  const std::int32_t whole = periods - periods % cycle_;
  total_ -= whole * operations;
  skipped_ = whole;
}

bool PipelineWave::settled(std::int32_t period, std::int32_t round) {
  const auto moved = [&](std::size_t back, std::int32_t cycle) {
    const std::optional<TwoTimes> shift = shift_since(back);
    if (!shift) return false;
    cycle_ = cycle;
    per_period_ = TwoTimes(shift->real() / cycle, shift->free() / cycle);
    return true;
  };
  const std::int32_t phase = period % round;
  if (phase > 2 && phase < round - 2) return false;
  const bool repeats = round == 1 ? moved(0, 1) || moved(1, 2) : moved(0, phase == 0 ? round : phase);
  if (phase == 0) snapshot();
  return repeats;
}

PipelineWave::State PipelineWave::state() const {
  // Without chunks nothing is sent between the last stage and the first.
  const std::size_t ends = shape_.virtual_stages > 1 ? 0 : 1, sent = end_.size() - ends;
  return {end_, std::span(forward_input_).subspan(ends, sent), std::span(backward_input_).subspan(1, sent)};
}

void PipelineWave::snapshot() {
  std::swap(snapshots_[0], snapshots_[1]);
  snapshots_[0].clear();
  for (const std::span<const TwoTimes> part : state())
    snapshots_[0].insert(snapshots_[0].end(), part.begin(), part.end());
  ++snapshot_count_;
}

/// The shift from the snapshot with `back` later ones to the state as it is, if all numbers have moved by one constant.
std::optional<TwoTimes> PipelineWave::shift_since(std::size_t back) const {
  if (snapshot_count_ <= back) return std::nullopt;
  const TwoTimes* then = snapshots_[back].data();
  const TwoTimes tolerance = kShiftTolerance * end_[0];
  TwoTimes smallest = end_[0] - *then, largest = smallest;
  for (const std::span<const TwoTimes> part : state()) {
    for (const TwoTimes now : part) {
      const TwoTimes shift = now - *then++;
      smallest = earlier(smallest, shift);
      largest = later(largest, shift);
      const TwoTimes apart = largest - smallest;
      if (apart.real() > tolerance.real() || apart.free() > tolerance.free()) return std::nullopt;
    }
  }
  return 0.5 * (smallest + largest);
}

}  // namespace shardscape::schedule
