#include "engine/network/collectives/algorithm_rules.h"

#include <array>
#include <cmath>

#include "engine/base/check.h"

namespace shardscape::network {

namespace {

double ring_messages(const Pattern& pattern, double n) {
  return pattern.operation == Operation::broadcast ? (n - 1) * pattern.chunks
                                                   : rings_of(pattern) * passes_of(pattern) * n * (n - 1);
}
double pair_messages(const Pattern& pattern, double n) {
  return pattern.operation == Operation::broadcast ? n - 1 : passes_of(pattern) * n * (n - 1);
}
double halving_messages(const Pattern& pattern, double n) { return passes_of(pattern) * n * std::log2(n); }
double tree_messages(const Pattern& pattern, double n) { return (n - 1) * pattern.chunks; }
double trees_messages(const Pattern& pattern, double n) {
  return 2 * passes_of(pattern) * tree_messages(pattern, n);
}
double switch_messages(const Pattern& pattern, double n) {
  return (pattern.operation == Operation::broadcast ? n : 2 * n) * pattern.chunks;
}

constexpr Operations kNothing = 0, kBroadcast = only(Operation::broadcast),
                     kExchange = only(Operation::all_to_all);
constexpr Operations kTrees = only(Operation::all_reduce) + kBroadcast;
constexpr Operations kReductions =
    only(Operation::all_reduce) + only(Operation::reduce_scatter) + only(Operation::all_gather);
constexpr Operations kMost = kReductions + kBroadcast;

constexpr auto kAlgorithmRules = std::to_array<AlgorithmRules>({
    {Algorithm::ring, kMost, kBroadcast, GroupNeed::nothing, 1, add_rings, ring_messages},
    {Algorithm::bidirectional_ring, kReductions, kNothing, GroupNeed::nothing, 2, add_bidirectional_ring,
     ring_messages},
    {Algorithm::direct, kMost + kExchange, kNothing, GroupNeed::nothing, 0, add_direct, pair_messages},
    {Algorithm::halving_doubling, kReductions, kNothing, GroupNeed::power_of_two, 0, add_halving_doubling,
     halving_messages},
    {Algorithm::double_binary_tree, kTrees, kTrees, GroupNeed::nothing, 0, add_double_binary_tree,
     trees_messages},
    {Algorithm::binary_tree, kBroadcast, kBroadcast, GroupNeed::nothing, 0, add_binary_tree, tree_messages},
    {Algorithm::dimension_wise, kReductions, kNothing, GroupNeed::box, 0, add_dimension_wise, pair_messages},
    {Algorithm::pairwise, kExchange, kNothing, GroupNeed::nothing, 0, add_pairwise, pair_messages},
    {Algorithm::in_network, kMost, kMost, GroupNeed::switches, 0, add_in_network, switch_messages},
});
static_assert([] {
  for (std::size_t i = 0; i < kAlgorithmRules.size(); ++i)
    if (kAlgorithmRules[i].algorithm != kAlgorithms[i].algorithm) return false;
  return kAlgorithmRules.size() == kAlgorithms.size();
}());

}  // namespace

const AlgorithmRules& rules_of(Algorithm algorithm) {
  return kAlgorithmRules[static_cast<std::size_t>(algorithm)];
}

bool supports(Operation operation, Algorithm algorithm) {
  return (rules_of(algorithm).operations & only(operation)) != 0;
}

bool takes_chunks(Operation operation, Algorithm algorithm) {
  return (rules_of(algorithm).chunked & only(operation)) != 0;
}

double message_count(const Pattern& pattern, std::int64_t group_size) {
  if (group_size < 2) return 0;
  const auto n = static_cast<double>(group_size);
  if (pattern.operation == Operation::pipeline) return (n - 1) * pattern.microbatches;
  return rules_of(pattern.algorithm).messages(pattern, n);
}

void add_collective(GroupTraffic& group, const Pattern& pattern) {
  if (pattern.operation == Operation::point_to_point) return;
  if (pattern.operation == Operation::pipeline) return add_pipeline(group, pattern);
  SHARDSCAPE_CHECK(supports(pattern.operation, pattern.algorithm), name_of(pattern.algorithm));
  rules_of(pattern.algorithm).add(group, pattern);
}

}  // namespace shardscape::network
