// The axes of a study as lists of values, before they are multiplied out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/enum_array.h"
#include "engine/spec/plan_axes.h"

namespace shardscape::sweep {

/// Codes of one axis (engine/spec/plan_axes.h), distinct. Those of a degree are ascending; `fill` means gpus /
/// (product of the other degrees), built rather than filtered. At most one axis fills. `powers_of_two` and
/// `divisors` are expanded to values (up to gpus) when the study is read.
struct AxisList {
  bool fill = false;
  std::vector<std::int32_t> values;
};

/// Every list but that of an axis that fills is non-empty, distinct and in the order the study gives.
struct SpaceSpec : EnumArray<PlanKey, AxisList> {
  SpaceSpec() {
    for (const PlanAxisRow& row : kPlanRows) (*this)[row.key].values = {row.idle};
    (*this)[PlanKey::data] = {true, {}};
    (*this)[PlanKey::virtual_stages].values = {2};  // used by the interleaved schedule only
  }
  /// Inference: GPUs of the pool that prefills; 0: none. Its replicas follow from them and from its degrees.
  std::vector<std::int32_t> prefill_gpus{0};
  std::vector<std::string> constraints;  ///< source text of each expression
};

/// The key of SpaceSpec::prefill_gpus in a study.
inline constexpr const char* kPrefillGpus = "prefill_gpus";

/// An axis of a space as a study writes it.
struct NamedAxis {
  const char* key;
  const PlanAxisRow& row;
  AxisList list;
};
/// The degrees first, without axes that the phase does not know or that have no effect in any plan.
std::vector<NamedAxis> named_axes(const SpaceSpec& space, Phase phase);

/// A code as a study writes it: "8", "true", "selective".
std::string study_text(const PlanAxisRow& row, std::int32_t code);

}  // namespace shardscape::sweep
