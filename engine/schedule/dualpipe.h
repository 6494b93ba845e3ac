// The order lists of dualpipe (pipeline.h), as the code that DeepSeek-AI published with its report has them
// (github.com/deepseek-ai/DualPipe, 2025, dualpipe.py).
//
// With p stages, h = p / 2 of them in each half and d = min(s, p - 1 - s) stages between a stage and its nearer end,
// near microbatches those that came in there, far ones the others, and m / 2 of each:
//
//   1  2 (h - d - 1)    near forward
//   2  d + 1            near forward, far forward
//   3  h - d - 1        far backward that is cut, its weight gradient, far forward
//   4  m/2 - p + d + 1  pair of near forward and far backward, pair of far forward and near backward; in the middle of
//                       the pipeline the very first pair is no pair
//   5  h - d - 1        far backward, pair of far forward and near backward
//   6  d + 1            far backward, near backward, the second half of them all cut
//   7  h - d - 1        weight gradient, near backward that is cut
//   8  d + 1            weight gradient
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/schedule/pipeline.h"

namespace shardscape::schedule {

/// Lists the operations of one stage in their order.
void dualpipe_order(const PipelineShape& shape, std::int32_t stage, std::vector<PipelineOperation>& order);

/// What each of a stage's two chunks holds at the moments of peaks(), [moment][chunk]. Where chunks differ in size, the
/// largest of the three moments is the peak if nothing is put off; otherwise it may miss part of one microbatch.
std::array<std::array<HeldMicrobatches, 2>, 3> dualpipe_held(const PipelineShape& shape, std::int32_t stage);

/// peaks() of a dualpipe stage: the sums over its chunks.
std::array<HeldMicrobatches, 3> dualpipe_peaks(const PipelineShape& shape, std::int32_t stage);

/// pairs() of a dualpipe stage.
std::int32_t dualpipe_pairs(const PipelineShape& shape, std::int32_t stage, std::int32_t chunk);

/// Whether dualpipe can run so many microbatches on so many stages.
constexpr bool dualpipe_runs(std::int32_t stages, std::int64_t microbatches) {
  return stages % 2 == 0 && microbatches % 2 == 0 && microbatches >= 2 * static_cast<std::int64_t>(stages);
}

}  // namespace shardscape::schedule
