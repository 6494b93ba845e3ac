#include "engine/schedule/pipeline_memo.h"

#include "engine/base/hash.h"

namespace shardscape::schedule {

namespace {
constexpr std::size_t kMaxEntries = 4096;  // some megabytes with pipelines of 64 stages
}  // namespace

std::size_t PipelineMemo::KeyHash::operator()(const std::vector<double>& key) const {
  return hash_words(key);
}

void PipelineMemo::make_key(const PipelineShape& shape, std::span<const StageTime> times,
                            const Transfer& transfer) {
  key_.assign({static_cast<double>(shape.kind), static_cast<double>(shape.stages),
               static_cast<double>(shape.virtual_stages), static_cast<double>(shape.microbatches),
               transfer.blocking ? 1.0 : 0.0});
  // Runs of equal stages count once, with their length; what is sent on belongs to its sender.
  for (std::size_t s = 0; s < times.size();) {
    std::size_t next = s + 1;
    while (next < times.size() && times[next].forward == times[s].forward &&
           times[next].backward == times[s].backward && times[next].weight == times[s].weight &&
           transfer.over(next) == transfer.over(s)) {
      ++next;
    }
    key_.insert(key_.end(), {times[s].forward, times[s].backward, times[s].weight, transfer.over(s),
                             static_cast<double>(next - s)});
    s = next;
  }
}

PipelineEnds PipelineMemo::run(const PipelineShape& shape, std::span<const StageTime> times,
                               const Transfer& transfer) {
  make_key(shape, times, transfer);
  const auto found = ends_.find(key_);
  if (found != ends_.end()) return {found->second.stages, found->second.chunks};
  if (ends_.size() >= kMaxEntries) ends_.clear();
  const PipelineEnds fresh = timer_.run(shape, times, transfer);
  const Ends& kept = ends_
                         .emplace(key_, Ends{{fresh.stages.begin(), fresh.stages.end()},
                                             {fresh.chunks.begin(), fresh.chunks.end()}})
                         .first->second;
  return {kept.stages, kept.chunks};
}

}  // namespace shardscape::schedule
