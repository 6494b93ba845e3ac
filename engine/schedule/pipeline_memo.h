// Remembers the results of a PipelineTimer: plans that differ only in ZeRO stage or rank order often run the
// same pipeline.
#pragma once

#include <span>
#include <vector>

#include "engine/schedule/pipeline_timer.h"

namespace shardscape::schedule {

/// Exact: a result is reused only where every input is equal. Bounded: of questions with the same place in the
/// table the last one is remembered. No allocation once the places are filled.
class PipelineMemo {
 public:
  /// As PipelineTimer::run(); valid until the next call.
  PipelineEnds run(const PipelineShape& shape, std::span<const StageTime> times, const Transfer& transfer);

 private:
  void make_key(const PipelineShape& shape, std::span<const StageTime> times, const Transfer& transfer);

  /// One list, so that an answer is found in one place of memory.
  struct Slot {
    std::vector<double> numbers;  ///< key, ends of the stages, of their chunks, ends without messages
    std::size_t key = 0, stages = 0, chunks = 0;  ///< lengths; no key: not used yet
    void keep(std::span<const double> question, const PipelineEnds& answer);
    [[nodiscard]] bool answers(std::span<const double> question) const;
    [[nodiscard]] PipelineEnds ends() const;
  };

  PipelineTimer timer_;
  std::vector<double> key_;
  std::vector<Slot> slots_;
};

}  // namespace shardscape::schedule
