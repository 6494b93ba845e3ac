// How unevenly a router gives tokens to the experts of a layer.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/enum_names.h"
#include "engine/base/problems.h"
#include "engine/spec/mixture_of_experts.h"

namespace shardscape {

/// balanced: every expert as many as any other. power_law, histogram: compute/expert_loads.h.
enum class LoadDistribution : std::uint8_t { balanced, power_law, histogram };
SHARDSCAPE_ENUM_NAMES(LoadDistribution, "balanced", "power_law", "histogram");

/// Of a workload; YAML keys carry the same names. The same for all layers and microbatches.
struct ExpertLoad {
  LoadDistribution distribution = LoadDistribution::balanced;
  double exponent = 0;            ///< power_law
  std::uint64_t seed = 0;         ///< power_law: of the draw
  std::vector<double> histogram;  ///< histogram: what each expert gets, in any unit

  [[nodiscard]] bool balanced() const { return distribution == LoadDistribution::balanced; }
  friend bool operator==(const ExpertLoad&, const ExpertLoad&) = default;

  /// Rules of its own, for fields `expert_load.*` of a workload.
  void check(Problems& problems) const;
  /// Those that a model brings in: `experts` are its own, null where it has none.
  void check_against(Problems& problems, const MixtureOfExperts* experts) const;
};

}  // namespace shardscape
