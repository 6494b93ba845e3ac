#include "engine/spec/expert_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/spec/ranges.h"

namespace shardscape {

void ExpertLoad::check(Problems& problems) const {
  if (distribution == LoadDistribution::power_law)
    require_range(problems, exponent, "expert_load.exponent", ranges::kLoadExponent);
  if (distribution != LoadDistribution::histogram) return;
  bool any = false, sound = true;
  for (std::size_t e = 0; e < histogram.size(); ++e) {
    const double one = histogram[e];
    sound = sound && std::isfinite(one) && one >= 0;
    any = any || one > 0;
    problems.require(std::isfinite(one) && one >= 0, "expert_load.histogram",
                     fmt::format("entry {} is {}; must be a number from 0 on", e + 1, one));
  }
  problems.require(any || !sound, "expert_load.histogram",
                   "gives no expert a token; at least top_k of the model's experts must get some");
}

void ExpertLoad::check_against(Problems& problems, const MixtureOfExperts* experts) const {
  if (balanced()) return;
  if (experts == nullptr || !experts->routes()) {
    return problems.require(
        false, "expert_load",
        "has no effect: the model has no experts to choose from; leave it out or take a model with `moe`");
  }
  problems.require(
      experts->capacity_factor == 0, "expert_load",
      fmt::format("has no effect: the model's experts take {} times the mean of tokens each, padded or "
                  "dropped; leave it out or set moe.capacity_factor to 0",
                  experts->capacity_factor));
  if (distribution != LoadDistribution::histogram) return;
  const auto entries = static_cast<std::int64_t>(histogram.size());
  problems.require(entries == experts->experts, "expert_load.histogram",
                   fmt::format("has {} entries; must have one for each of the model's {} experts", entries,
                               experts->experts));
  const auto chosen = std::ranges::count_if(histogram, [](double one) { return one > 0; });
  problems.require(
      entries != experts->experts || chosen >= experts->top_k || chosen == 0, "expert_load.histogram",
      fmt::format("gives tokens to {} experts; must do so to at least {}, for each token goes through "
                  "as many different ones",
                  chosen, experts->top_k));
}

}  // namespace shardscape
