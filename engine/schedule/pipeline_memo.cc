#include "engine/schedule/pipeline_memo.h"

#include <algorithm>

#include "engine/base/hash.h"
#include "engine/schedule/schedule_rules.h"

namespace shardscape::schedule {

namespace {
constexpr std::size_t kSlots = 4096;  // a power of two; takes some megabytes with pipelines of 64 stages
}  // namespace

void PipelineMemo::make_key(const PipelineShape& shape, std::span<const StageTime> times,
                            const Transfer& transfer) {
  key_.assign({static_cast<double>(shape.kind), static_cast<double>(shape.stages),
               static_cast<double>(shape.virtual_stages), static_cast<double>(shape.microbatches),
               transfer.blocking ? 1.0 : 0.0, shape.overlaps ? 1.0 : 0.0});
  // A run of equal stages counts once, with its length; a message counts with its sender. Chunks are listed one by one
  // where they have times of their own.
  const std::size_t each = times.size() / static_cast<std::size_t>(shape.stages);
  for (std::size_t s = 0; s < times.size();) {
    std::size_t next = s + 1;
    while (next < times.size() && times[next].forward == times[s].forward &&
           times[next].backward == times[s].backward && times[next].weight == times[s].weight &&
           times[next].hidden == times[s].hidden && times[next].hidden_rarely == times[s].hidden_rarely &&
           times[next].apart == times[s].apart && transfer.over(next / each) == transfer.over(s / each) &&
           transfer.back_over(next / each) == transfer.back_over(s / each)) {
      ++next;
    }
    key_.insert(key_.end(), {times[s].forward, times[s].backward, times[s].weight, times[s].hidden,
                             times[s].hidden_rarely, times[s].apart, transfer.over(s / each),
                             transfer.back_over(s / each), static_cast<double>(next - s)});
    s = next;
  }
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

}  // namespace shardscape::schedule
