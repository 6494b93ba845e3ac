// The axes of a study as lists of values, before these are multiplied out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/enum_array.h"
#include "engine/spec/plan_axes.h"

namespace shardscape::sweep {

/// The codes of one axis (engine/spec/plan_axes.h), each once; those of a degree ascend. `fill` means that the degree
/// is gpus / (product of the other degrees), which is computed rather than filtered. At most one axis fills.
/// `powers_of_two` and `divisors` are replaced by values (up to gpus) when the study is read.
struct AxisList {
  bool fill = false;
  std::vector<std::int32_t> values;
};

/// Every list is non-empty (except that of an axis that fills), without repetition, and in the order of the study.
struct SpaceSpec : EnumArray<PlanKey, AxisList> {
  SpaceSpec() {
    for (const PlanAxisRow& row : kPlanRows) (*this)[row.key].values = {row.idle};
    (*this)[PlanKey::data] = {.fill = true, .values = {}};
    (*this)[PlanKey::virtual_stages].values = {2};  // has an effect only where the schedule has chunks
  }
  /// A schedule of the space whose stages may hold several chunks; null: there is none.
  [[nodiscard]] const ScheduleRow* chunked_schedule() const;
  /// Inference: numbers of GPUs of the pool that prefills; 0: no pool. Its replicas follow from these and its degrees.
  std::vector<std::int32_t> prefill_gpus{0};
  std::vector<std::string> constraints;  ///< source text of each expression
};

/// The key of SpaceSpec::prefill_gpus in a study.
inline constexpr const char* kPrefillGpus = "prefill_gpus";

/// An axis of a space as a study writes it: key and values.
struct NamedAxis {
  const char* key;
  const PlanAxisRow& row;
  AxisList list;
};
/// The axes of a space, degrees first, without axes that do not exist in the phase or have no effect in any plan.
std::vector<NamedAxis> named_axes(const SpaceSpec& space, Phase phase);

/// The text of a code in a study: "8", "true", "selective".
std::string study_text(const PlanAxisRow& row, std::int32_t code);

}  // namespace shardscape::sweep
