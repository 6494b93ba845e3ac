// How a collective operation is carried out; network/collectives/algorithm_rules.h says what each algorithm does.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/enum_names.h"

namespace shardscape {

enum class Algorithm : std::uint8_t {
  ring,
  bidirectional_ring,
  direct,
  halving_doubling,
  double_binary_tree,
  binary_tree,
  dimension_wise,
  pairwise,
  in_network
};

struct AlgorithmRow {
  Algorithm algorithm;
  std::string_view name;
  bool of_stacks;  ///< a stack's library may have it; the others serve cases of `network` only
};
inline constexpr auto kAlgorithms = std::to_array<AlgorithmRow>({
    {Algorithm::ring, "ring", true},
    {Algorithm::bidirectional_ring, "bidirectional_ring", true},
    {Algorithm::direct, "direct", true},
    {Algorithm::halving_doubling, "halving_doubling", true},
    {Algorithm::double_binary_tree, "double_binary_tree", true},
    {Algorithm::binary_tree, "binary_tree", false},
    {Algorithm::dimension_wise, "dimension_wise", true},
    {Algorithm::pairwise, "pairwise", false},
    {Algorithm::in_network, "in_network", true},
});
constexpr auto list_of_names(Algorithm /*value*/) {
  return names_of_table(kAlgorithms, &AlgorithmRow::algorithm);
}

}  // namespace shardscape
