// The interconnect as a list of dimensions. Rank = sum over dimensions of coordinate * stride, dimension 0
// fastest; inside a shaped dimension shape[0] is fastest.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/enum_names.h"
#include "engine/base/problems.h"
#include "engine/base/quantity.h"

namespace shardscape {

/// How the ranks of one line of a dimension are wired.
///   ring             each rank to both neighbours, closed
///   mesh             N-d grid of open lines
///   torus            N-d grid of rings
///   fully_connected  one link per pair
///   switch           every rank to one crossbar per line
enum class DimensionKind : std::uint8_t { ring, mesh, torus, fully_connected, switched };
SHARDSCAPE_ENUM_NAMES(DimensionKind, "ring", "mesh", "torus", "fully_connected", "switch");

/// Which of the stack's achieved link fractions applies.
enum class LinkScope : std::uint8_t { scale_up, scale_out };
SHARDSCAPE_ENUM_NAMES(LinkScope, "scale_up", "scale_out");

struct DimensionSpec {
  std::string name;
  DimensionKind kind = DimensionKind::switched;
  std::vector<std::int64_t>
      shape;                 ///< one entry for ring, fully_connected, switch; one per axis for mesh, torus
  BytesPerSecond bandwidth;  ///< of each link, per direction
  Seconds latency;           ///< of each link
  LinkScope scope = LinkScope::scale_up;

  /// Product of the shape.
  [[nodiscard]] std::int64_t size() const;
};

/// A fabric of exactly size() ranks. Cluster files may leave one size open ("fill"); see FabricTemplate.
struct FabricSpec {
  std::string name;
  std::vector<DimensionSpec> dimensions;

  [[nodiscard]] std::int64_t size() const;
  [[nodiscard]] Problems validate() const;
};

/// A fabric whose outermost dimension may grow with the number of GPUs (kFill as its only shape entry).
struct FabricTemplate {
  static constexpr std::int64_t kFill = 0;
  FabricSpec fabric;

  [[nodiscard]] bool open() const;
  /// The fabric for `gpus` ranks. The open dimension takes gpus / (product of the others); fewer GPUs than
  /// one innermost switch or fully-connected dimension occupy part of it. Dimensions of size 1 are dropped.
  /// Problems where nothing fits.
  [[nodiscard]] FabricSpec instantiate(std::int64_t gpus, Problems& problems) const;
};

}  // namespace shardscape
