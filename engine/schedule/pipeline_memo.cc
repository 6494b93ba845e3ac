#include "engine/schedule/pipeline_memo.h"

#include "engine/base/hash.h"

namespace shardscape::schedule {

namespace {
constexpr std::size_t kSlots = 4096;  // a power of two; some megabytes with pipelines of 64 stages
}  // namespace

void PipelineMemo::make_key(const PipelineShape& shape, std::span<const StageTime> times,
                            const Transfer& transfer) {
  key_.assign({static_cast<double>(shape.kind), static_cast<double>(shape.stages),
               static_cast<double>(shape.virtual_stages), static_cast<double>(shape.microbatches),
               transfer.blocking ? 1.0 : 0.0, shape.overlaps ? 1.0 : 0.0});
  // Runs of equal stages count once, with their length; what is sent on belongs to its sender. Dualpipe's chunks are
  // listed apart.
  const std::size_t each = shape.both_ways() ? 2 : 1;
  for (std::size_t s = 0; s < times.size();) {
    std::size_t next = s + 1;
    while (next < times.size() && times[next].forward == times[s].forward &&
           times[next].backward == times[s].backward && times[next].weight == times[s].weight &&
           times[next].hidden == times[s].hidden && transfer.over(next / each) == transfer.over(s / each)) {
      ++next;
    }
    key_.insert(key_.end(), {times[s].forward, times[s].backward, times[s].weight, times[s].hidden,
                             transfer.over(s / each), static_cast<double>(next - s)});
    s = next;
  }
}

PipelineEnds PipelineMemo::run(const PipelineShape& shape, std::span<const StageTime> times,
                               const Transfer& transfer) {
  make_key(shape, times, transfer);
  slots_.resize(kSlots);
  Slot& slot = slots_[hash_words(key_) % kSlots];
  if (slot.key != key_) {
    const PipelineEnds fresh = timer_.run(shape, times, transfer);
    slot.key = key_;
    slot.stages.assign(fresh.stages.begin(), fresh.stages.end());
    slot.chunks.assign(fresh.chunks.begin(), fresh.chunks.end());
    slot.free.assign(fresh.free.begin(), fresh.free.end());
  }
  return {slot.stages, slot.chunks, slot.free};
}

}  // namespace shardscape::schedule
