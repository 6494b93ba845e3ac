// Who gets how much of the exchanges of experts: shares of the members of a group, and copies of tokens on their way
// (token_copies.h).
#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "engine/base/check.h"
#include "engine/network/collectives/expert_dispatch.h"
#include "engine/network/groups/sibling_groups.h"
#include "engine/network/prices/collective_model.h"

namespace shardscape::network {

namespace {

/// Members with more than this share of the busiest member's load end their work at the same time as that one.
constexpr double kNearlyBusiest = 0.9;

}  // namespace

std::vector<double> CollectiveModel::member_shares(std::size_t members) const {
  const std::size_t each = expert_loads_.size() / members;
  SHARDSCAPE_CHECK(each * members == expert_loads_.size(), members, expert_loads_.size());
  std::vector<double> shares;
  for (std::size_t first = 0; first < expert_loads_.size(); first += each) {
    const auto part = std::span(expert_loads_).subspan(first, each);
    shares.push_back(std::accumulate(part.begin(), part.end(), 0.0));
  }
  return shares;
}

/// How many copies of a token an exchange sends to each member on average. If groups span domains, the first group
/// stands for all.
std::vector<double> CollectiveModel::copy_chances(const SiblingGroups& groups) const {
  const std::vector<double> shares = member_shares(groups.size);
  const std::vector<std::int64_t> domains = places_of(fabric_, groups.group(0), LinkScope::scale_out);
  TokenTargets to = token_targets(static_cast<double>(groups.size));
  to.shares = shares;
  to.domain_of = domains;
  return copies_by_member(to);
}

TokenTargets CollectiveModel::token_targets(double members) const {
  return {exchange_.top_k, exchange_.groups, exchange_.top_groups, members, 1, {}, {}};
}

Skew CollectiveModel::skew_of(CollectiveOp op, const RankGroup& group) const {
  if (!is_exchange(op) || expert_loads_.empty()) return skew_of(op, static_cast<std::size_t>(group.size()));
  return skew_of(op, sibling_groups(group, fabric_, placement_));
}

Skew CollectiveModel::skew_of(CollectiveOp op, const SiblingGroups& groups) const {
  if (!is_exchange(op) || expert_loads_.empty()) return skew_of(op, groups.size);
  Skew skew{copy_chances(groups), op == CollectiveOp::expert_combine};
  const double all = std::accumulate(skew.shares.begin(), skew.shares.end(), 0.0);
  for (double& share : skew.shares) share /= all;
  return skew;
}

/// The parts of an operation that is no exchange, or of one without loads.
Skew CollectiveModel::skew_of(CollectiveOp op, std::size_t members) const {
  Skew skew;
  skew.of_sender = op == CollectiveOp::combine || op == CollectiveOp::last_combine;
  if (!is_skewed(op) || expert_loads_.empty()) return skew;
  skew.shares = member_shares(members);
  if (op == CollectiveOp::last_combine) {
    const double least = kNearlyBusiest * std::ranges::max(skew.shares);
    for (double& share : skew.shares) share = share < least ? 0 : share;
  }
  return skew;
}

}  // namespace shardscape::network
