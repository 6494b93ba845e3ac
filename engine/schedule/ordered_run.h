// Runs a schedule operation by operation, in the order lists of its stages.
//
// In which order operations run depends on the shape alone, not on how long they take: an operation runs when those
// before it on its stage and the one whose message it waits for have run. So the steps of a shape are found once, with
// the places of what they read and write, and a run goes through them from the first to the last.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/schedule/pipeline.h"
#include "engine/schedule/two_times.h"

namespace shardscape::schedule {

class OrderedRun {
 public:
  /// The results of run_in_order() and, where the schedule wraps, chunk_ends(), valid until the next call. The steps
  /// are kept while the shape stays the same.
  PipelineEnds run(const PipelineShape& shape, std::span<const StageTime> times, const Transfer& transfer,
                   std::vector<PipelineSpan>* spans = nullptr);

 private:
  /// An operation, with the places of what it needs and gives; -1: there is none.
  struct Work {
    const PipelineOperation* operation = nullptr;
    std::int32_t input = -1;      ///< in arrival_: the message that it waits for
    std::int32_t output = -1;     ///< in arrival_: its own message
    std::int32_t boundary = -1;   ///< what its message crosses
    bool down = true;             ///< its message goes to the next stage, not to the one before
    std::int32_t chunk_end = -1;  ///< in chunk_end_: it is the last backward of its chunk
  };
  /// What a stage does next: an operation, or two that are paired.
  struct Step {
    std::int32_t stage = 0;
    Work first, second;  ///< the second one may have no operation
  };

  void find_steps(const PipelineShape& shape);
  [[nodiscard]] Work work_of(std::int32_t stage, const PipelineOperation& op) const;
  void take(const Step& step, std::span<const StageTime> times, const Transfer& transfer,
            std::vector<PipelineSpan>* spans);
  TwoTimes send(const Work& work, TwoTimes end, const Transfer& transfer);

  PipelineShape shape_;
  std::vector<std::vector<PipelineOperation>> orders_;
  std::vector<Step> steps_;  ///< in the order in which they run
  bool by_chunk_ = false;
  /// By part and microbatch (under dualpipe also by chunk): what forwards wait for, then what backwards do.
  std::vector<TwoTimes> arrival_;
  std::vector<TwoTimes> end_;
  std::vector<double> stage_end_, chunk_end_, free_end_;  ///< the results
};

}  // namespace shardscape::schedule
