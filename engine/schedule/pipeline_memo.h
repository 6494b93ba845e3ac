// Remembers the results of a PipelineTimer: plans that differ only in ZeRO stage or rank order often run the
// same pipeline.
#pragma once

#include <span>
#include <vector>

#include "engine/schedule/pipeline_timer.h"

namespace shardscape::schedule {

/// Exact: a result is reused only where every input is equal. Bounded: each slot of the table remembers the last input
/// that hashed to it. Allocates nothing once the slots are filled.
class PipelineMemo {
 public:
  /// PipelineTimer::run(), remembered; the result is valid until the next call.
  PipelineEnds run(const PipelineShape& shape, std::span<const StageTime> times, const Transfer& transfer);

 private:
  void make_key(const PipelineShape& shape, std::span<const StageTime> times, const Transfer& transfer);

  /// Key and answer are one list, so that an answer lies in one place of memory.
  struct Slot {
    std::vector<double> numbers;  ///< key, ends of the stages, of their chunks, ends without messages
    std::size_t key = 0, stages = 0, chunks = 0;  ///< lengths of these parts; key 0: not used yet
    void keep(std::span<const double> question, const PipelineEnds& answer);
    [[nodiscard]] bool answers(std::span<const double> question) const;
    [[nodiscard]] PipelineEnds ends() const;
  };

  PipelineTimer timer_;
  std::vector<double> key_;
  std::vector<Slot> slots_;
};

}  // namespace shardscape::schedule
