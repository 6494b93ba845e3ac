#include "engine/schedule/ordered_run.h"

#include <algorithm>

#include "engine/base/check.h"

namespace shardscape::schedule {

namespace {
constexpr double kPending = -1;
}  // namespace

void OrderedRun::prepare(const PipelineShape& shape) {
  const auto stages = static_cast<std::size_t>(shape.stages);
  if (!(shape == shape_) || orders_.size() != stages) {
    shape_ = shape;
    orders_.resize(stages);
    for (std::size_t s = 0; s < stages; ++s) stage_order(shape, static_cast<std::int32_t>(s), orders_[s]);
  }
  const auto slots = static_cast<std::size_t>(shape.parts()) * static_cast<std::size_t>(shape.microbatches);
  forward_arrival_.assign(slots, kPending);
  backward_arrival_.assign(slots, kPending);
  end_.assign(stages, 0);
  next_.assign(stages, 0);
}

std::size_t OrderedRun::slot(std::int32_t part, const PipelineOperation& op) const {
  const std::int32_t microbatch = shape_.both_ways() ? 2 * op.microbatch + op.chunk : op.microbatch;
  return static_cast<std::size_t>(part) * static_cast<std::size_t>(shape_.microbatches) +
         static_cast<std::size_t>(microbatch);
}

/// Time at which the input of an operation has arrived; kPending where it has not been computed yet.
double OrderedRun::ready(std::int32_t stage, const PipelineOperation& op) const {
  if (op.weight) return 0;
  const std::size_t here = slot(shape_.part(stage, op.chunk), op);
  if (op.backward) return backward_arrival_[here];
  return shape_.part(stage, op.chunk) == 0 ? 0 : forward_arrival_[here];
}

const StageTime& OrderedRun::time_of(std::int32_t stage, const PipelineOperation& op) const {
  return times_[static_cast<std::size_t>(by_chunk_ ? stage * shape_.virtual_stages + op.chunk : stage)];
}

/// The last part's forwards and the first part's backwards stay on their stage, as weight gradients do; everything else
/// is sent on.
double OrderedRun::send(std::int32_t stage, const PipelineOperation& op, double end) {
  if (op.weight) return end;
  const std::int32_t part = shape_.part(stage, op.chunk);
  if (!op.backward && part + 1 == shape_.parts()) return backward_arrival_[slot(part, op)] = end;
  if (op.backward && part == 0) return end;
  // The boundary: to the next stage (from the last to the first), or to the stage before.
  const bool down = op.backward == (shape_.both_ways() && op.chunk == 1);
  const std::int32_t boundary = down ? stage : stage > 0 ? stage - 1 : shape_.stages - 1;
  const double arrival = end + transfer_->over(static_cast<std::size_t>(boundary));
  (op.backward ? backward_arrival_ : forward_arrival_)[slot(op.backward ? part - 1 : part + 1, op)] = arrival;
  return arrival;
}

bool OrderedRun::step(std::int32_t stage) {
  const auto s = static_cast<std::size_t>(stage);
  const PipelineOperation& op = orders_[s][next_[s]];
  const PipelineOperation* const other = op.paired ? &orders_[s][next_[s] + 1] : nullptr;
  const double input = ready(stage, op), more = other != nullptr ? ready(stage, *other) : 0;
  if (input == kPending || more == kPending) return false;
  const double start = std::max({end_[s], input, more});
  double work = duration(op, time_of(stage, op)), first = work;
  if (other != nullptr) {
    const double both = work + duration(*other, time_of(stage, *other));
    const StageTime& time = time_of(stage, op);
    work = both - (op.rare ? time.hidden_rarely : time.hidden);
    first = both > 0 ? first / both * work : 0;
  }
  const double end = start + work;
  double sent = send(stage, op, end);
  if (spans_ != nullptr) spans_->push_back({stage, op, start, start + first, sent});
  if (other != nullptr) {
    const double with = send(stage, *other, end);
    if (spans_ != nullptr) spans_->push_back({stage, *other, start + first, end, with});
    sent = std::max(sent, with);
  }
  end_[s] = transfer_->blocking ? sent : end;
  next_[s] += other != nullptr ? 2 : 1;
  return true;
}

const std::vector<double>& OrderedRun::run(const PipelineShape& shape, std::span<const StageTime> times,
                                           const Transfer& transfer, std::vector<PipelineSpan>* spans) {
  const auto stages = static_cast<std::size_t>(shape.stages);
  by_chunk_ = times.size() == stages * static_cast<std::size_t>(shape.virtual_stages);
  SHARDSCAPE_CHECK(by_chunk_ || (times.size() == stages && !shape.both_ways()), times.size(), shape.stages,
                   shape.virtual_stages);
  prepare(shape);
  times_ = times;
  transfer_ = &transfer;
  spans_ = spans;
  std::size_t waiting = orders_.size();  // number of stages that have operations left
  while (waiting > 0) {
    bool moved = false;
    for (std::size_t s = 0; s < orders_.size(); ++s) {
      if (next_[s] == orders_[s].size()) continue;
      while (next_[s] < orders_[s].size() && step(static_cast<std::int32_t>(s))) moved = true;
      if (next_[s] == orders_[s].size()) --waiting;
    }
    SHARDSCAPE_CHECK(moved || waiting == 0, "schedule deadlocks", shape.stages, shape.virtual_stages,
                     shape.microbatches);
  }
  return end_;
}

}  // namespace shardscape::schedule
