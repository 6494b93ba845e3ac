// How the key-value cache of a token is cut over a tensor group.
#pragma once

#include <algorithm>
#include <cstdint>

namespace shardscape::model {

/// What a token leaves in the cache of one block: units that no rank splits (KV heads), and their elements
/// (a key and a value). Where a tensor group has more ranks than there are units, ranks hold copies.
struct KvUnits {
  std::int64_t units = 1;
  std::int64_t elements = 0;  ///< of one unit

  /// On each rank of a tensor group: units / tensor, at least 1.
  [[nodiscard]] std::int64_t local(std::int32_t tensor) const {
    return std::max<std::int64_t>(1, units / tensor);
  }
  /// The first of those of a rank.
  [[nodiscard]] std::int64_t first(std::int32_t tensor, std::int32_t rank) const {
    return rank * units / tensor;
  }
  /// Ranks that hold the same.
  [[nodiscard]] std::int32_t copies(std::int32_t tensor) const {
    return static_cast<std::int32_t>(std::max<std::int64_t>(1, tensor / units));
  }
  /// Elements per token and block on each rank.
  [[nodiscard]] double local_elements(std::int32_t tensor) const {
    return static_cast<double>(local(tensor) * elements);
  }
};

}  // namespace shardscape::model
