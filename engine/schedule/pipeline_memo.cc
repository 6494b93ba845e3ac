#include "engine/schedule/pipeline_memo.h"

#include <algorithm>

#include "engine/base/check.h"
#include "engine/base/hash.h"
#include "engine/schedule/schedule_rules.h"

namespace shardscape::schedule {

namespace {
constexpr std::size_t kSlots = 4096;  // a power of two; takes some megabytes with pipelines of 64 stages

bool alike(const StageTime& a, const StageTime& b) {
  return a.forward == b.forward && a.backward == b.backward && a.weight == b.weight && a.hidden == b.hidden &&
         a.hidden_rarely == b.hidden_rarely && a.apart == b.apart;
}

}  // namespace

void PipelineMemo::make_key(const PipelineShape& shape, std::span<const StageTime> times,
                            const Transfer& transfer) {
  key_.assign({static_cast<double>(shape.kind), static_cast<double>(shape.stages),
               static_cast<double>(shape.virtual_stages), static_cast<double>(shape.microbatches),
               transfer.blocking ? 1.0 : 0.0, shape.overlaps ? 1.0 : 0.0});
  // A run of equal stages counts once, with its length; a message counts with its sender. Chunks are listed one by one
  // where they have times of their own.
  const std::size_t stages = static_cast<std::size_t>(shape.stages), each = times.size() / stages;
  std::size_t first = 0, sender = 0;  // of the run, and its stage
  const auto end_run = [&](std::size_t end) {
    const StageTime& of = times[first];
    key_.insert(key_.end(),
                {of.forward, of.backward, of.weight, of.hidden, of.hidden_rarely, of.apart,
                 transfer.over(sender), transfer.back_over(sender), static_cast<double>(end - first)});
  };
  for (std::size_t stage = 0, i = 0; stage < stages; ++stage) {
    const bool sends_alike = transfer.over(stage) == transfer.over(sender) &&
                             transfer.back_over(stage) == transfer.back_over(sender);
    for (; i < (stage + 1) * each; ++i) {
      if ((sends_alike || stage == sender) && alike(times[i], times[first])) continue;
      end_run(i);
      first = i;
      sender = stage;
    }
  }
  end_run(times.size());
}

void PipelineMemo::Slot::keep(std::span<const double> question, const PipelineEnds& answer) {
  numbers.clear();
  for (const std::span<const double> part : {question, answer.stages, answer.chunks, answer.free})
    numbers.insert(numbers.end(), part.begin(), part.end());
  key = question.size();
  stages = answer.stages.size();
  chunks = answer.chunks.size();
}

bool PipelineMemo::Slot::answers(std::span<const double> question) const {
  return key == question.size() && std::equal(question.begin(), question.end(), numbers.begin());
}

PipelineEnds PipelineMemo::Slot::ends() const {
  const std::span<const double> all = numbers;
  return {all.subspan(key, stages), all.subspan(key + stages, chunks), all.subspan(key + stages + chunks)};
}

PipelineEnds PipelineMemo::run(const PipelineShape& shape, std::span<const StageTime> times,
                               const Transfer& transfer) {
  // A closed form takes no longer than a look-up.
  const bool lone = shape.stages == 1 && shape.virtual_stages == 1;
  if ((rules_of(shape).ends != nullptr || lone) && !shape.overlaps) return timer_.run(shape, times, transfer);
  make_key(shape, times, transfer);
  slots_.resize(kSlots);
  Slot& slot = slots_[hash_words(key_) % kSlots];
  if (!slot.answers(key_)) slot.keep(key_, timer_.run(shape, times, transfer));
  return slot.ends();
}

PipelineEnds PipelineTimer::run(const PipelineShape& shape, std::span<const StageTime> times,
                                const Transfer& transfer) {
  const auto stages = static_cast<std::size_t>(shape.stages);
  SHARDSCAPE_CHECK(transfer.seconds.size() == 1 || transfer.seconds.size() == stages, transfer.seconds.size(),
                   shape.stages);
  SHARDSCAPE_CHECK(transfer.back.empty() || transfer.back.size() == transfer.seconds.size(),
                   transfer.back.size(), transfer.seconds.size());
  const ScheduleRules& rules = rules_of(shape);
  const bool lone = shape.stages == 1 && shape.virtual_stages == 1;
  const bool fast = lone || rules.ends != nullptr || rules.waves;
  if (shape.overlaps || !fast) return orders_.run(shape, times, transfer);
  const bool by_chunk = times.size() == stages * static_cast<std::size_t>(shape.virtual_stages);
  SHARDSCAPE_CHECK(times.size() == stages || (by_chunk && row_of(shape.kind).chunks), times.size(),
                   shape.stages);
  if (!lone && rules.waves) return wave_.run(shape, times, transfer);
  const std::size_t chunks =
      shape.virtual_stages > 1 ? times.size() * static_cast<std::size_t>(shape.virtual_stages) : 0;
  stage_end_.assign(times.size(), 0);
  chunk_end_.assign(chunks, 0);
  if (lone) {
    stage_end_[0] = shape.microbatches * (times[0].forward + times[0].backward);
    free_end_ = stage_end_;
  } else {
    no_transfer_.blocking = transfer.blocking;
    rules.ends(shape, times, transfer, stage_end_);
    rules.ends(shape, times, no_transfer_, free_end_);
  }
  return {stage_end_, chunk_end_, free_end_};
}

}  // namespace shardscape::schedule
