// How unevenly a router gives tokens to the experts of a layer.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/enum_names.h"
#include "engine/base/problems.h"
#include "engine/spec/mixture_of_experts.h"

namespace shardscape {

/// Balanced: every expert gets the same number of tokens. power_law, histogram: see compute/expert_loads.h.
enum class LoadDistribution : std::uint8_t { balanced, power_law, histogram };

/// The expert load of a workload, the same for all layers and microbatches. YAML keys carry the same names.
struct ExpertLoad {
  LoadDistribution distribution = LoadDistribution::balanced;
  double exponent = 0;            ///< power_law: the exponent
  std::uint64_t seed = 0;         ///< power_law: seed of the random draw
  std::vector<double> histogram;  ///< histogram: what each expert gets, in any unit

  [[nodiscard]] bool balanced() const { return distribution == LoadDistribution::balanced; }
  friend bool operator==(const ExpertLoad&, const ExpertLoad&) = default;

  /// Checks the fields that are wrong whatever the model; problems are reported at `expert_load.*` of a workload.
  void check(Problems& problems) const;
  /// Checks the load against a model's `experts`, which are null where it has none.
  void check_against(Problems& problems, const MixtureOfExperts* experts) const;
};

}  // namespace shardscape
