// Times pipelines, and remembers the results: plans that differ only in ZeRO stage or rank order often run the same
// pipeline.
#pragma once

#include <span>
#include <vector>

#include "engine/schedule/ordered_run.h"
#include "engine/schedule/pipeline.h"
#include "engine/schedule/pipeline_wave.h"

namespace shardscape::schedule {

/// The production evaluator of pipeline schedules: the times of run_in_order(), fast.
///
/// gpipe has a closed form (gpipe.cc). 1f1b, zero_bubble and interleaved run as a wave of steps that stops where it
/// repeats itself (pipeline_wave.h). What runs in pairs, and any other schedule, is walked operation by operation
/// (ordered_run.h).
class PipelineTimer {
 public:
  /// The results of run_in_order() and chunk_ends(), within 1e-9 relative, valid until the next call. Allocates nothing
  /// in steady state.
  PipelineEnds run(const PipelineShape& shape, std::span<const StageTime> times, const Transfer& transfer);

 private:
  PipelineWave wave_;
  OrderedRun orders_;
  std::vector<double> stage_end_, chunk_end_, free_end_;
  Transfer no_transfer_;
};

/// Remembers the results of a PipelineTimer. Exact: a result is reused only where every input is equal. Bounded: each
/// slot of the table remembers the last input that hashed to it. Allocates nothing once the slots are filled.
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
