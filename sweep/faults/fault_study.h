// The `faults:` part of a study: which faults are drawn, how many, and where.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/enum_names.h"
#include "engine/base/quantity.h"
#include "engine/spec/fault.h"
#include "sweep/faults/distribution.h"

namespace shardscape::sweep {

struct WeightedKind {
  FaultKind kind = FaultKind::soft_link;
  double weight = 1;  ///< weight > 0, relative to the other kinds
};

/// Where link faults occur. Devices, adapters and switches are drawn uniformly, or all in turn under `exhaustive`;
/// `dimension` also restricts adapters and switches to its own.
enum class PlacementKind : std::uint8_t {
  uniform_links,  ///< any link
  dimension,      ///< any link of one dimension
  links,          ///< any link of a list
  exhaustive      ///< sample i is at place i: every link (or device, adapter, switch) in turn
};

struct FaultPlacement {
  PlacementKind kind = PlacementKind::uniform_links;
  std::string dimension;
  std::vector<std::pair<std::int32_t, std::int32_t>> links;  ///< as pairs of vertices (ranks, then switches)
};

/// A valid study (see study/faults_parser.h): every kind has enough places on the study's fabric.
struct FaultStudy {
  std::vector<WeightedKind> kinds;  ///< at least one, distinct
  std::int64_t samples = 200;       ///< samples per point; with a target, the most of them
  std::int64_t simultaneous = 1;    ///< faults per sample, at different places
  Distribution derate;              ///< share that remains, 0 < share <= 1, for kinds that derate
  Seconds added_latency;            ///< latency that soft link faults add
  bool both_directions = true;      ///< whether a link fault affects both directions
  FaultPlacement placement;
  std::uint64_t seed = 0;
  /// Stops sampling a point when the 95 % confidence interval of its mean slowdown is at most this wide.
  std::optional<double> target_ci;

  [[nodiscard]] bool exhaustive() const { return placement.kind == PlacementKind::exhaustive; }
};

}  // namespace shardscape::sweep
