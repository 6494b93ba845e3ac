// The share of a setting's tokens that each expert gets, and each rank that holds experts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "engine/compute/expert_loads.h"
#include "engine/compute/expert_replicas.h"
#include "engine/model/layer_key.h"
#include "engine/spec/scenario.h"

namespace shardscape::model {

/// Share of all copies of tokens that goes to each expert of a layer, in order; empty where all get the same.
inline std::vector<double> expert_shares(const Setting& setting) {
  if (!loads_differ(setting.model, setting.workload)) return {};
  const MixtureOfExperts& moe = *setting.model.moe;
  const std::vector<double> chosen =
      compute::popularity(setting.workload.expert_load, moe.experts, moe.top_k);
  return compute::member_shares(chosen, chosen.size());
}

/// Value of LayerKey::expert_rank that stands for a rank with the mean load, as if loads were balanced.
inline constexpr std::int32_t kBalancedMember = -2;

/// The shares of tokens that go to each expert, or copy of one, on a member of the expert group; kBusiest: on the
/// member that gets most.
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

/// One member of an expert group for each distinct load; empty where all members get equally much.
inline std::vector<std::int32_t> distinct_members(const Setting& setting, const LayerKey& key) {
  const ExpertSplit split = key.experts();
  if (split.ranks == 1 || !loads_differ(setting.model, setting.workload)) return {};
  const MixtureOfExperts& moe = *setting.model.moe;
  const std::vector<double> all = compute::popularity(setting.workload.expert_load, moe.experts, moe.top_k);
  std::map<std::vector<double>, std::int32_t> members;
  for (std::int32_t member = 0; member < split.ranks; ++member) {
    std::vector<double> load = experts_of(all, split, member);
    std::ranges::sort(load);
    members.try_emplace(std::move(load), member);
  }
  std::vector<std::int32_t> distinct;
  for (const auto& [load, member] : members) distinct.push_back(member);
  std::ranges::sort(distinct);
  return distinct;
}

/// The share of the other members of an expert group that get clearly fewer tokens than this one.
inline double idler_others(const Setting& setting, const LayerKey& key, std::int32_t member) {
  constexpr double kClearly = 0.9;  // as kNearlyBusiest in network/prices/expert_traffic.cc
  const ExpertSplit split = key.experts();
  const MixtureOfExperts& moe = *setting.model.moe;
  const std::vector<double> all = compute::popularity(setting.workload.expert_load, moe.experts, moe.top_k);
  const auto tokens = [&](std::int32_t of) {
    const std::vector<double> experts = experts_of(all, split, of);
    return std::accumulate(experts.begin(), experts.end(), 0.0);
  };
  const double few = kClearly * tokens(member);
  double idler = 0;
  for (std::int32_t other = 0; other < split.ranks; ++other) idler += tokens(other) < few ? 1 : 0;
  return idler / std::max(1, split.ranks - 1);
}

/// Load of the busiest rank over the mean where all experts are equally popular, >= 1. Where ranks divide the experts,
/// copies are not needed and stand idle; otherwise some ranks have more whole experts, and copies fill the others.
inline double uneven_slots(const MixtureOfExperts& moe, const ExpertSplit& split) {
  if (split.redundant == 0 || moe.experts % split.ranks == 0) return 1;
  const std::vector<double> all = compute::popularity({}, moe.experts, moe.top_k);
  return split.ranks * compute::busiest_share(compute::dealt_slots(all, split.redundant, split.ranks));
}

}  // namespace shardscape::model
