#include "engine/serving/live/load_record.h"

#include <algorithm>

namespace shardscape::serving {

LoadMixes mixes_of(const LoadRecord& record) {
  LoadMixes mixes(record.readers > 0 ? 2 : 1);
  mixes.front().servers = record.readers > 0 ? record.readers : record.servers;
  mixes.back().servers = record.servers - record.readers;
  double span = 0;
  for (const WorkRecord& work : record.works) {
    LoadMix& mix = work.server < record.readers ? mixes.front() : mixes.back();
    LoadMix::Kind& kind = mix.kinds[work.kind()];
    const double seconds = work.end - work.begin;
    kind.iterations += static_cast<double>(work.iterations);
    kind.seconds += seconds;
    kind.prompt_tokens += work.prompt_tokens;
    kind.decoding += static_cast<double>(work.iterations * work.decoding);
    kind.decoding_seconds += static_cast<double>(work.decoding) * seconds;
    kind.paused_seconds += static_cast<double>(work.paused) * seconds;
    const double later = std::clamp(work.later_from, work.begin, work.end);
    mix.waits[work.waits] += later - work.begin;
    mix.waits[work.later] += work.end - later;
    span = std::max(span, work.end);
  }
  for (LoadMix& mix : mixes) mix.span = span;
  return mixes;
}

}  // namespace shardscape::serving
