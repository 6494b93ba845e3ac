// What each expert gets of a setting's tokens, and each rank that holds some.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "engine/compute/expert_loads.h"
#include "engine/compute/expert_replicas.h"
#include "engine/model/layer_key.h"
#include "engine/spec/scenario.h"

namespace shardscape::model {

/// The share of all copies of tokens that each expert of a layer gets, in order; empty where all get the same.
inline std::vector<double> expert_shares(const Setting& setting) {
  if (!loads_differ(setting.model, setting.workload)) return {};
  const MixtureOfExperts& moe = *setting.model.moe;
  const std::vector<double> chosen =
      compute::popularity(setting.workload.expert_load, moe.experts, moe.top_k);
  return compute::member_shares(chosen, chosen.size());
}

/// In place of a member of an expert group (LayerKey::expert_rank): one that gets what it would of a balanced load.
inline constexpr std::int32_t kBalancedMember = -2;

/// The experts that a member holds, or copies of them, by the share of tokens that come to each; kBusiest: the member
/// that gets most.
inline std::vector<double> experts_of(std::span<const double> popularity, const ExpertSplit& split,
                                      std::int32_t member) {
  if (split.redundant > 0) {
    const std::vector<std::vector<double>> slots =
        compute::dealt_slots(popularity, split.redundant, split.ranks);
    return slots[member == LayerKey::kBusiest ? compute::busiest_of(slots)
                                              : static_cast<std::size_t>(member)];
  }
  const std::vector<double> shares =
      compute::member_shares(popularity, static_cast<std::size_t>(split.ranks));
  const std::size_t each = popularity.size() / shares.size();
  const auto which =
      member == LayerKey::kBusiest ? std::ranges::max_element(shares) - shares.begin() : member;
  const auto part = popularity.subspan(static_cast<std::size_t>(which) * each, each);
  return {part.begin(), part.end()};
}

/// Of experts that are all alike, what the busiest rank has over the mean. As many of each on every rank need no
/// copies: those stand idle. Else some ranks have more whole experts than others, and copies are what fills the rest.
inline double uneven_slots(const MixtureOfExperts& moe, const ExpertSplit& split) {
  if (split.redundant == 0 || moe.experts % split.ranks == 0) return 1;
  const std::vector<double> all = compute::popularity({}, moe.experts, moe.top_k);
  return split.ranks * compute::busiest_share(compute::dealt_slots(all, split.redundant, split.ranks));
}

}  // namespace shardscape::model
