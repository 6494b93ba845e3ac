// How the key-value cache of a token is cut over a tensor group.
#pragma once

#include <algorithm>
#include <cstdint>

namespace shardscape::model {

/// The cache of one token in one block: a number of units that no rank splits (KV heads), each of `elements` elements
/// (a key and a value). A tensor group with more ranks than units holds copies of them.
struct KvUnits {
  std::int64_t units = 1;
  std::int64_t elements = 0;  ///< elements per unit

  /// Units on each rank of a tensor group: units / tensor, at least 1.
  [[nodiscard]] std::int64_t local(std::int32_t tensor) const {
    return std::max<std::int64_t>(1, units / tensor);
  }
  /// The index of the first unit on a rank.
  [[nodiscard]] std::int64_t first(std::int32_t tensor, std::int32_t rank) const {
    return rank * units / tensor;
  }
  /// How many ranks of a tensor group hold the same units.
  [[nodiscard]] std::int32_t copies(std::int32_t tensor) const {
    return static_cast<std::int32_t>(std::max<std::int64_t>(1, tensor / units));
  }
  /// Elements per token and block on each rank.
  [[nodiscard]] double local_elements(std::int32_t tensor) const {
    return static_cast<double>(local(tensor) * elements);
  }
};

}  // namespace shardscape::model
