#include "engine/schedule/ordered_run.h"

#include "engine/base/check.h"

namespace shardscape::schedule {

/// The last part's forwards and the first part's backwards stay on their stage, as weight gradients do; everything else
/// is sent on.
OrderedRun::Work OrderedRun::work_of(std::int32_t stage, const PipelineOperation& op) const {
  Work work;
  work.operation = &op;
  if (op.weight) return work;
  const std::int32_t part = shape_.part(stage, op.chunk), parts = shape_.parts();
  const auto place = [&](std::int32_t of_part, bool backward) {
    const std::int32_t microbatch = shape_.both_ways() ? 2 * op.microbatch + op.chunk : op.microbatch;
    return ((backward ? parts : 0) + of_part) * shape_.microbatches + microbatch;
  };
  if (op.backward || part > 0) work.input = place(part, op.backward);
  if (op.backward && shape_.wraps() && op.microbatch + 1 == shape_.per_chunk())
    work.chunk_end = stage * shape_.virtual_stages + op.chunk;
  if (op.backward && part == 0) return work;
  if (!op.backward && part + 1 == parts) {
    work.output = place(part, true);
    return work;
  }
  work.output = place(op.backward ? part - 1 : part + 1, op.backward);
  // To the next stage (from the last to the first), or to the stage before.
  work.down = op.backward == (shape_.both_ways() && op.chunk == 1);
  work.boundary = work.down ? stage : stage > 0 ? stage - 1 : shape_.stages - 1;
  return work;
}

void OrderedRun::find_steps(const PipelineShape& shape) {
  const auto stages = static_cast<std::size_t>(shape.stages);
  if (shape == shape_ && orders_.size() == stages) return;
  shape_ = shape;
  orders_.resize(stages);
  for (std::size_t s = 0; s < stages; ++s) stage_order(shape, static_cast<std::int32_t>(s), orders_[s]);
  steps_.clear();
  const auto messages =
      static_cast<std::size_t>(shape.parts()) * static_cast<std::size_t>(shape.microbatches);
  arrival_.resize(2 * messages);
  std::vector<char> arrived(2 * messages, 0);
  std::vector<std::size_t> next(stages, 0);
  const auto has_input = [&](const Work& work) {
    return work.input < 0 || arrived[static_cast<std::size_t>(work.input)] != 0;
  };
  std::vector<Step> upcoming(stages);  // of each stage, which may be looked at over and over
  const auto look = [&](std::size_t s) {
    if (next[s] == orders_[s].size()) return;
    const auto stage = static_cast<std::int32_t>(s);
    const PipelineOperation& op = orders_[s][next[s]];
    upcoming[s] = {stage, work_of(stage, op), {}};
    if (op.paired) upcoming[s].second = work_of(stage, orders_[s][next[s] + 1]);
  };
  for (std::size_t s = 0; s < stages; ++s) look(s);
  const auto advance = [&](std::size_t s) {
    const Step& step = upcoming[s];
    if (!has_input(step.first) || !has_input(step.second)) return false;
    for (const Work* const work : {&step.first, &step.second})
      if (work->output >= 0) arrived[static_cast<std::size_t>(work->output)] = 1;
    steps_.push_back(step);
    next[s] += step.second.operation != nullptr ? 2 : 1;
    look(s);
    return true;
  };
  std::size_t waiting = stages;  // number of stages that have operations left
  while (waiting > 0) {
    bool moved = false;
    for (std::size_t s = 0; s < stages; ++s) {
      if (next[s] == orders_[s].size()) continue;
      while (next[s] < orders_[s].size() && advance(s)) moved = true;
      if (next[s] == orders_[s].size()) --waiting;
    }
    SHARDSCAPE_CHECK(moved || waiting == 0, "schedule deadlocks", shape.stages, shape.virtual_stages,
                     shape.microbatches);
  }
}

/// Returns when the message arrives, or `end` where nothing is sent.
TwoTimes OrderedRun::send(const Work& work, TwoTimes end, const Transfer& transfer) {
  TwoTimes arrival = end;
  if (work.boundary >= 0) {
    const auto boundary = static_cast<std::size_t>(work.boundary);
    arrival += TwoTimes(work.down ? transfer.over(boundary) : transfer.back_over(boundary), 0);
  }
  if (work.output >= 0) arrival_[static_cast<std::size_t>(work.output)] = arrival;
  if (work.chunk_end >= 0)
    chunk_end_[static_cast<std::size_t>(work.chunk_end)] = (transfer.blocking ? arrival : end).real();
  return arrival;
}

void OrderedRun::take(const Step& step, std::span<const StageTime> times, const Transfer& transfer,
                      std::vector<PipelineSpan>* spans) {
  const std::int32_t stage = step.stage;
  const PipelineOperation& op = *step.first.operation;
  const PipelineOperation* const other = step.second.operation;
  const auto time_of = [&](const PipelineOperation& of) -> const StageTime& {
    return times[static_cast<std::size_t>(by_chunk_ ? stage * shape_.virtual_stages + of.chunk : stage)];
  };
  TwoTimes& stage_end = end_[static_cast<std::size_t>(stage)];
  TwoTimes start = stage_end;
  for (const std::int32_t input : {step.first.input, step.second.input}) {
    if (input >= 0) start = later(start, arrival_[static_cast<std::size_t>(input)]);
  }
  double work = duration(op, time_of(op)), first = work;
  if (other != nullptr) {
    const double both = work + duration(*other, time_of(*other));
    work = both - (op.rare ? time_of(op).hidden_rarely : time_of(op).hidden);
    first = both > 0 ? first / both * work : 0;
  }
  const TwoTimes end = start + TwoTimes(work, work);
  TwoTimes sent = send(step.first, end, transfer);
  const double begin = start.real();
  if (spans != nullptr) spans->push_back({stage, op, begin, begin + first, sent.real()});
  if (other != nullptr) {
    const TwoTimes with = send(step.second, end, transfer);
    if (spans != nullptr) spans->push_back({stage, *other, begin + first, end.real(), with.real()});
    sent = later(sent, with);
  }
  stage_end = transfer.blocking ? sent : end;
}

PipelineEnds OrderedRun::run(const PipelineShape& shape, std::span<const StageTime> times,
                             const Transfer& transfer, std::vector<PipelineSpan>* spans) {
  const auto stages = static_cast<std::size_t>(shape.stages);
  const std::size_t chunks = stages * static_cast<std::size_t>(shape.virtual_stages);
  by_chunk_ = times.size() == chunks;
  SHARDSCAPE_CHECK(by_chunk_ || (times.size() == stages && !shape.both_ways()), times.size(), shape.stages,
                   shape.virtual_stages);
  find_steps(shape);
  end_.assign(stages, {});
  chunk_end_.assign(shape.wraps() ? chunks : 0, 0);
  for (const Step& step : steps_) take(step, times, transfer, spans);
  stage_end_.clear();
  free_end_.clear();
  for (const TwoTimes end : end_) {
    stage_end_.push_back(end.real());
    free_end_.push_back(end.free());
  }
  return {stage_end_, chunk_end_, free_end_};
}

}  // namespace shardscape::schedule
