// Remembers the results of a PipelineTimer: plans that differ only in ZeRO stage or rank order often run the
// same pipeline.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/schedule/pipeline_timer.h"

namespace shardscape::schedule {

/// Exact: a result is reused only where every input is equal to the bit. Bounded: forgets everything when
/// full.
class PipelineMemo {
 public:
  /// As PipelineTimer::run(); valid until the next call.
  PipelineEnds run(const PipelineShape& shape, std::span<const StageTime> times, const Transfer& transfer);

 private:
  struct KeyHash {
    std::size_t operator()(const std::vector<double>& key) const;
  };
  void make_key(const PipelineShape& shape, std::span<const StageTime> times, const Transfer& transfer);

  PipelineTimer timer_;
  std::vector<double> key_;
  struct Ends {
    std::vector<double> stages, chunks;
  };
  std::unordered_map<std::vector<double>, Ends, KeyHash> ends_;
};

}  // namespace shardscape::schedule
