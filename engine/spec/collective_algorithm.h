// How a collective operation is carried out; network/collectives/collectives.h says what each algorithm sends.
#pragma once

#include <cstdint>

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
SHARDSCAPE_ENUM_NAMES(Algorithm, "ring", "bidirectional_ring", "direct", "halving_doubling",
                      "double_binary_tree", "binary_tree", "dimension_wise", "pairwise", "in_network");

}  // namespace shardscape
