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

TwoTimes both(double seconds) { return {seconds, seconds}; }

using Lanes = PipelineWave::Lanes;

// Sweeps spend much of their time in the loops over stages below: two stages at a time take a tenth fewer instructions.

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
#pragma GCC unroll 2
  for (std::int32_t s = last; s >= first; --s) work<kBlocking>(lanes, s, s, s + 1);
}

template <bool kBlocking>
void work_backward(const Lanes& given, std::int32_t first, std::int32_t last) {
  const Lanes lanes = given;
#pragma GCC unroll 2
  for (std::int32_t s = first; s <= last; ++s) work<kBlocking>(lanes, s, s + 1, s);
}

/// Every stage runs its backward, then its forward. A stage's input is read before the stage before it overwrites it.
template <bool kBlocking>
void work_both(const Lanes& back, const Lanes& ahead, std::int32_t stages) {
  const Lanes backward = back, forward = ahead;
  TwoTimes coming = forward.input[0];
#pragma GCC unroll 2
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
#pragma GCC unroll 2
  for (std::int32_t s = first; s <= last; s += 2) work<kBlocking>(back, s, s + 1, s);
#pragma GCC unroll 2
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

/// Lists the work of the chunks in the order in which they begin; `times` are those of stages or of chunks.
void PipelineWave::prepare_chunks(std::span<const StageTime> times) {
  const std::size_t stages = index(stages_), each = times.size() / stages, last = stages - 1;
  forward_begun_.clear();
  backward_begun_.clear();
  for (std::size_t chunk = 0; chunk < index(shape_.virtual_stages); ++chunk) {
    const std::size_t ahead = each > 1 ? chunk : 0, back = each > 1 ? each - 1 - chunk : 0;
    for (std::size_t number = 0; number < stages; ++number) {
      forward_begun_.push_back(both(times[number * each + ahead].forward));
      backward_begun_.push_back(both(times[(last - number) * each + back].backward));
    }
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
  const auto message = [&](std::size_t boundary) { return TwoTimes(transfer.over(boundary), 0); };
  const auto back = [&](std::size_t boundary) { return TwoTimes(transfer.back_over(boundary), 0); };
  const bool chunked = shape_.virtual_stages > 1;  // each begins when its turn comes
  if (chunked) prepare_chunks(times);
  for (std::size_t s = 0; s < stages; ++s) {
    if (!chunked) {
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

/// `longest`: number of forwards in the first stage's warm-up; each further stage has two fewer.
void PipelineWave::warm_up_interleaved(std::int32_t longest) {
  Turn turn;
  for (std::int32_t d = 0;; ++d, turn = after(turn)) {
    const std::int32_t first = std::max(0, d - total_ + 1);
    const std::int32_t last = std::min({stages_ - 1, d, longest - 1 - d});
    if (first > last) return;
    begin_forward(turn, first, last);
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

/// Sets what the stages from `first` to `last` do otherwise from this turn on: the work of the one that begins a chunk,
/// what the first one waits for, and what the last one's message takes.
void PipelineWave::begin_forward(Turn turn, std::int32_t first, std::int32_t last) {
  const std::int32_t s = turn.number;
  if (s >= first && s <= last) forward_work_[index(s)] = forward_begun_[index(turn.place)];
  if (first == 0 && anew(turn.place)) forward_input_[0] = {};
  if (last == stages_ - 1) forward_message_.back() = goes_round(turn.place) ? forward_round_ : TwoTimes();
}

/// The same of backwards, which the last stage begins.
void PipelineWave::begin_backward(Turn turn, std::int32_t first, std::int32_t last) {
  const std::int32_t s = stages_ - 1 - turn.number;
  if (s >= first && s <= last) backward_work_[index(s)] = backward_begun_[index(turn.place)];
  if (last == stages_ - 1 && anew(turn.place)) backward_input_.back() = {};
  if (first == 0) backward_message_[0] = goes_round(turn.place) ? backward_round_ : TwoTimes();
}

void PipelineWave::backward_of_chunks(std::int32_t step, Turn turn) {
  const std::int32_t first = std::max(0, stages_ - 1 - step);
  const std::int32_t last = std::min(stages_ - 1, total_ + stages_ - 2 - step);
  begin_backward(turn, first, last);
  backward(first, last);
  if (first == 0) backward_input_.back() = backward_input_.front();
  // The stage that begins another chunk in the next step ends the one before it.
  const auto [place, number] = after(turn);
  const std::int32_t s = stages_ - 1 - number;
  if (step - number < total_ - group_ || s < first || s > last) return;
  const std::int32_t chunk = anew(place) ? 0 : shape_.virtual_stages - place / stages_;
  chunk_end_[index(s * shape_.virtual_stages + chunk)] = end_[index(s)];
}

void PipelineWave::forward_of_chunks(std::int32_t step, Turn turn, std::int32_t longest) {
  const std::int32_t joined = stages_ - 1 - step;  // the stage that joins in this step, if it is one
  const std::int32_t first = std::max({0, joined, longest + step - stages_ + 2 - total_});
  if (first >= stages_) return;
  begin_forward(turn, first, stages_ - 1);
  forward(first, stages_ - 1);
  forward_input_[0] = forward_input_.back();
  if (joined > 0 && first == joined) forward_input_[index(joined)] = second_[index(joined)];
}

/// Backward and forward of `steps` in which all stages take part and none ends a chunk's last microbatch.
void PipelineWave::both_of_chunks(Turn turn, std::int32_t steps) {
  const Lanes back = backward_lanes(), ahead = forward_lanes();
  const std::int32_t last = stages_ - 1;
  for (; steps > 0; --steps, turn = after(turn)) {
    begin_backward(turn, 0, last);
    begin_forward(turn, 0, last);
    blocking_ ? work_both<true>(back, ahead, stages_) : work_both<false>(back, ahead, stages_);
    back.input[stages_] = back.input[0];
    ahead.input[0] = ahead.input[stages_];
  }
}

void PipelineWave::run_interleaved() {
  // With as many microbatches as stages all forwards come first.
  const std::int32_t longest =
      shape_.microbatches == stages_ ? total_ + 2 * stages_ : 2 * (stages_ - 1) + group_ - stages_ + 1;
  warm_up_interleaved(longest);
  Turn
      turn;  // of both directions: the first stage has warmed up with a whole group, less what lies behind it
  for (std::int32_t step = 0; step <= total_ + stages_ - 2; ++step) {
    std::int32_t whole = total_ - longest + stages_ - 2 - step;  // further steps of all stages
    if (step >= stages_ - 1 && whole >= 0 && step < total_ - group_) {
      // The place at which the state is looked at next.
      const std::int32_t look = turn.place <= stages_ ? stages_ : stages_ + group_;
      const std::int32_t more = std::min({whole, total_ - group_ - 1 - step, look - turn.place});
      both_of_chunks(turn, more + 1);
      step += more;
      whole -= more;
      turn = turn_in(turn.place + more);
    } else {
      backward_of_chunks(step, turn);
      forward_of_chunks(step, turn, longest);
    }
    const bool begins = turn.place == stages_;  // a period begins
    turn = after(turn);
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
