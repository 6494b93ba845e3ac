// What each expert gets of a setting's tokens.
#pragma once

#include <vector>

#include "engine/compute/expert_loads.h"
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

}  // namespace shardscape::model
