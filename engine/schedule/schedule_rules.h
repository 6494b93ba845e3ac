// What a kind of schedule does: one row per kind, in the file of its name. The properties that memory, floors, spaces
// and reports read stand in engine/spec/schedule_kind.h.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/schedule/pipeline.h"

namespace shardscape::schedule {

// Defaults of a row: after the warm-up one backward and one forward in turn, and each backward in one piece
// (one_f_one_b.cc).
void alternating_order(const PipelineShape& shape, std::int32_t stage, std::vector<PipelineOperation>& order);
std::array<HeldMicrobatches, 3> alternating_peaks(const PipelineShape& shape, std::int32_t stage);
std::array<Partner, 2> alternating_partners(const PipelineShape& shape, std::int32_t stage,
                                            std::int32_t chunk);
/// The warm-up of 1f1b and zero_bubble.
std::int32_t one_f_one_b_warm_up(const PipelineShape& shape, std::int32_t stage);

struct ScheduleRules {
  // Implementations of the functions of these names in pipeline.h; peaks_by_chunk only where a schedule runs both ways.
  std::int32_t (*warm_up)(const PipelineShape& shape, std::int32_t stage);
  void (*order)(const PipelineShape& shape, std::int32_t stage,
                std::vector<PipelineOperation>& order) = alternating_order;
  std::array<HeldMicrobatches, 3> (*peaks)(const PipelineShape& shape,
                                           std::int32_t stage) = alternating_peaks;
  std::array<Partner, 2> (*partners)(const PipelineShape& shape, std::int32_t stage,
                                     std::int32_t chunk) = alternating_partners;
  std::array<std::array<HeldMicrobatches, 2>, 3> (*peaks_by_chunk)(const PipelineShape& shape,
                                                                   std::int32_t stage) = nullptr;

  // How PipelineTimer finds the ends of stages, by `waves` or by `ends`; a schedule with neither is walked operation by
  // operation.
  bool waves = false;  ///< run by PipelineWave
  /// Closed form: run_in_order() with one entry of `times` per stage.
  void (*ends)(const PipelineShape& shape, std::span<const StageTime> times, const Transfer& transfer,
               std::vector<double>& ends) = nullptr;
};

extern const ScheduleRules kGpipeRules, kOneFOneBRules, kInterleavedRules, kZeroBubbleRules, kDualpipeRules;
/// One entry per ScheduleKind, in its order.
inline constexpr std::array<const ScheduleRules*, kSchedules.size()> kScheduleRules = {
    &kGpipeRules, &kOneFOneBRules, &kInterleavedRules, &kZeroBubbleRules, &kDualpipeRules};

inline const ScheduleRules& rules_of(const PipelineShape& shape) {
  return *kScheduleRules[static_cast<std::size_t>(shape.kind)];
}

}  // namespace shardscape::schedule
