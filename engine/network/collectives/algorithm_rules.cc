// What each algorithm needs of a group, sends, waits for and copies, and the table of it.
#include "engine/network/collectives/algorithm_rules.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "engine/base/check.h"

namespace shardscape::network {

namespace {

double ring_messages(const Pattern& pattern, double n) {
  return pattern.operation == Operation::broadcast
             ? (n - 1) * pattern.chunks
             : rings_of(pattern) * passes_of(pattern.operation) * n * (n - 1);
}
double pair_messages(const Pattern& pattern, double n) {
  return pattern.operation == Operation::broadcast ? n - 1 : passes_of(pattern.operation) * n * (n - 1);
}
double halving_messages(const Pattern& pattern, double n) {
  return passes_of(pattern.operation) * n * std::log2(n);
}
double tree_messages(const Pattern& pattern, double n) { return (n - 1) * pattern.chunks; }
double trees_messages(const Pattern& pattern, double n) {
  return 2 * passes_of(pattern.operation) * tree_messages(pattern, n);
}
double switch_messages(const Pattern& pattern, double n) {
  return (pattern.operation == Operation::broadcast ? n : 2 * n) * pattern.chunks;
}

// ---- rounds ----

using Extents = std::span<const std::int32_t>;

/// ceil(log2(n))
double levels_of(std::int32_t n) {
  return static_cast<double>(std::bit_width(static_cast<std::uint32_t>(n - 1)));
}
double ring_steps(Operation operation, std::int32_t n, Extents) { return passes_of(operation) * (n - 1); }
double direct_steps(Operation operation, std::int32_t, Extents) { return passes_of(operation); }
double halving_steps(Operation operation, std::int32_t n, Extents) {
  return passes_of(operation) * levels_of(n);
}
/// As many up as down; a broadcast goes from the root, which is in neither tree, down only.
double trees_steps(Operation operation, std::int32_t n, Extents) {
  return operation == Operation::broadcast ? 1 + levels_of(std::max(1, n - 1)) : 2 * levels_of(n);
}
double tree_steps(Operation, std::int32_t n, Extents) {
  return static_cast<double>(std::bit_width(static_cast<std::uint32_t>(n))) - 1;
}
double dimension_steps(Operation operation, std::int32_t, Extents extents) {
  double steps = 0;
  for (const std::int32_t extent : extents) steps += extent - 1;
  return passes_of(operation) * steps;
}
/// Up to the switches and down again.
double switch_steps(Operation, std::int32_t, Extents) { return 2; }

// ---- copies ----

/// A rank with two children receives 2 in an all-reduce (1 of two ranks).
double copied_along_trees(Operation operation, std::int32_t n) {
  return operation == Operation::all_reduce && n > 2 ? 6 : AlgorithmRules::copied_by_ranks(operation, n);
}
/// A rank receives its result once, and the input is staged where the switches can read it: written and read once
/// more. Of a reduce-scatter the result is kept at once.
double copied_by_switches(Operation operation, std::int32_t n) {
  switch (operation) {
    case Operation::all_reduce:
      return 6;
    case Operation::reduce_scatter:
    case Operation::all_gather:
      return 3 + 1 / static_cast<double>(n);
    default:
      return AlgorithmRules::copied_by_ranks(operation, n);
  }
}

constexpr Operations kNothing = 0, kBroadcast = only(Operation::broadcast),
                     kExchange = only(Operation::all_to_all);
constexpr Operations kTrees = only(Operation::all_reduce) + kBroadcast;
constexpr Operations kReductions =
    only(Operation::all_reduce) + only(Operation::reduce_scatter) + only(Operation::all_gather);
constexpr Operations kAllButExchange = kReductions + kBroadcast;

constexpr auto kAlgorithmRules = std::to_array<AlgorithmRules>({
    {Algorithm::ring, kAllButExchange, kBroadcast, GroupNeed::nothing, 1, add_rings, ring_messages,
     ring_steps},
    {Algorithm::bidirectional_ring, kReductions, kNothing, GroupNeed::nothing, 2, add_bidirectional_ring,
     ring_messages, ring_steps},
    {Algorithm::direct, kAllButExchange + kExchange, kNothing, GroupNeed::nothing, 0, add_direct,
     pair_messages, direct_steps, AlgorithmRules::copied_by_ranks, true},
    {Algorithm::halving_doubling, kReductions, kNothing, GroupNeed::power_of_two, 0, add_halving_doubling,
     halving_messages, halving_steps},
    {Algorithm::double_binary_tree, kTrees, kTrees, GroupNeed::nothing, 0, add_double_binary_tree,
     trees_messages, trees_steps, copied_along_trees},
    {Algorithm::binary_tree, kBroadcast, kBroadcast, GroupNeed::nothing, 0, add_binary_tree, tree_messages,
     tree_steps},
    {Algorithm::dimension_wise, kReductions, kNothing, GroupNeed::box, 0, add_dimension_wise, pair_messages,
     dimension_steps},
    {Algorithm::pairwise, kExchange, kNothing, GroupNeed::nothing, 0, add_pairwise, pair_messages, ring_steps,
     AlgorithmRules::copied_by_ranks, true},
    {Algorithm::in_network, kAllButExchange, kAllButExchange, GroupNeed::switches, 0, add_in_network,
     switch_messages, switch_steps, copied_by_switches},
});
static_assert([] {
  for (std::size_t i = 0; i < kAlgorithmRules.size(); ++i)
    if (kAlgorithmRules[i].algorithm != kAlgorithms[i].algorithm) return false;
  return kAlgorithmRules.size() == kAlgorithms.size();
}());

}  // namespace

double AlgorithmRules::copied_by_ranks(Operation operation, std::int32_t n) {
  const double part = 1 / static_cast<double>(n);
  switch (operation) {
    case Operation::all_reduce:
      return 6 - 4 * part;
    case Operation::reduce_scatter:
    case Operation::all_gather:
      return 3 - part;
    case Operation::broadcast:
      return 3;
    case Operation::all_to_all:
    case Operation::pipeline:
    case Operation::point_to_point:
      return 0;
  }
  return 0;
}

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
