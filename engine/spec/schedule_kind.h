// THE table of pipeline schedules: what memory, floors, rules of divisibility, spaces and reports ask of one.
// engine/schedule says what each does, one file per schedule (schedule_rules.h).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/enum_names.h"
#include "engine/spec/verdict.h"

namespace shardscape {

enum class ScheduleKind : std::uint8_t { gpipe, one_f_one_b, interleaved, zero_bubble, dualpipe };

/// The schedule that every other one equals where its rules have no effect: without a pipeline, or with one chunk per
/// stage.
inline constexpr ScheduleKind kPlainSchedule = ScheduleKind::one_f_one_b;
/// The schedule that runs several chunks per stage where a study names none.
inline constexpr ScheduleKind kChunkedSchedule = ScheduleKind::interleaved;

struct ScheduleRow {
  ScheduleKind kind;
  std::string_view name;
  bool chunks = false;     ///< stages may hold several chunks of the model; with one it is kPlainSchedule
  bool both_ways = false;  ///< microbatches enter at both ends: a stage also holds the part of its mirror
  bool cuts = false;       ///< every backward of a block leaves its weight gradients to a pass of its own
  bool forwards_first = false;  ///< all forwards come before all backwards, with a single stage, too
  bool in_step = false;      ///< neighbouring stages begin passes together, each as the one before hands on
  bool defers_head = false;  ///< the head's weight gradients may wait for the cool-down (deferred_head.h)
  /// Whether it can run so many microbatches on so many stages, and what to say where it cannot; null: any number.
  bool (*divides)(std::int32_t stages, std::int64_t microbatches) = nullptr;
  Reason indivisible = Reason::none;
};
inline constexpr auto kSchedules = std::to_array<ScheduleRow>({
    {.kind = ScheduleKind::gpipe, .name = "gpipe", .forwards_first = true, .in_step = true},
    {.kind = ScheduleKind::one_f_one_b, .name = "1f1b", .defers_head = true},
    {.kind = ScheduleKind::interleaved,
     .name = "interleaved",
     .chunks = true,
     .in_step = true,
     .defers_head = true,
     .divides = [](std::int32_t stages, std::int64_t microbatches) { return microbatches % stages == 0; },
     .indivisible = Reason::microbatches_by_stages},
    {.kind = ScheduleKind::zero_bubble, .name = "zero_bubble", .cuts = true},
    {.kind = ScheduleKind::dualpipe,
     .name = "dualpipe",
     .both_ways = true,
     .divides =
         [](std::int32_t stages, std::int64_t microbatches) {
           return stages % 2 != 0 || (microbatches % 2 == 0 && microbatches >= 2L * stages);
         },
     .indivisible = Reason::microbatches_by_directions},
});
constexpr auto list_of_names(ScheduleKind /*value*/) {
  return names_of_table(kSchedules, &ScheduleRow::kind);
}

constexpr const ScheduleRow& row_of(ScheduleKind kind) { return kSchedules[static_cast<std::size_t>(kind)]; }

}  // namespace shardscape
