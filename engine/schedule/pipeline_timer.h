// The production evaluator of pipeline schedules: the times of run_in_order(), fast.
//
// gpipe is a flow shop of identical jobs and has a closed form: with forward times f and the sender's share
// of transfers c, stage s ends its m-th forward at  sum(i <= s) f_i + (m - 1) max(i <= s) f_i  (plus
// transfers), and backwards mirror it.
//
// 1f1b, zero_bubble and interleaved run as a wave over operation numbers: the n-th operation of a stage
// depends on operations of its neighbours with smaller numbers, or with the same number going down the
// pipeline (forwards) or up (backwards). After the warm-up the wave is a max-plus linear system with a fixed
// pattern, so once the whole state has moved by one constant over a period, it will do so until the cool-down
// (Baccelli et al. 1992, "Synchronization and Linearity", chapter 3). Then the step with fewer microbatches
// is evaluated and the skipped periods are added. A weight gradient that zero_bubble runs after a backward
// is no operation of the wave: it only keeps its stage busy for longer.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "engine/schedule/pipeline.h"

namespace shardscape::schedule {

class PipelineTimer {
 public:
  /// As run_in_order() and chunk_ends(), within 1e-9 relative. The result is valid until the next call. No
  /// allocation in steady state.
  PipelineEnds run(const PipelineShape& shape, std::span<const StageTime> times, const Transfer& transfer);

 private:
  struct Wave {
    bool periodic = false;  ///< from some point on the state moves by one constant per period, everywhere
    double per_period = 0;  ///< that constant
  };
  void run_gpipe(const PipelineShape& shape, std::span<const StageTime> times, const Transfer& transfer);
  Wave run_wave(const PipelineShape& shape, std::span<const StageTime> times, const Transfer& transfer);
  void snapshot();
  /// The constant by which the latest snapshot differs from the one `back` periods earlier; nothing where
  /// there is none.
  [[nodiscard]] std::optional<double> shift_since(std::size_t back) const;

  std::vector<double> stage_end_, chunk_end_;
  std::vector<double> forward_arrival_, backward_arrival_;  ///< at the neighbour, [stage][ordinal]
  std::vector<double> last_forward_, last_backward_;        ///< arrivals of each stage's latest operations
  std::vector<std::int32_t> warm_up_;
  std::vector<std::int32_t> turns_;               ///< by ordinal: how many chunks the microbatch has passed
  std::array<std::vector<double>, 3> snapshots_;  ///< latest first
  std::size_t snapshot_count_ = 0;
};

}  // namespace shardscape::schedule
