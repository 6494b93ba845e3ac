// How far a prediction can be trusted: what error to expect of it, and what that rests on.
#pragma once

#include <cstdint>
#include <limits>

#include "engine/base/enum_names.h"

namespace shardscape {

///   none          nothing is known: no time was predicted, there is no evidence file, or nothing that was measured
///                 bears on it
///   measured      there are measurements like it
///   near          there are some that differ in one thing, or are up to eight times larger or smaller
///   extrapolated  there are none that are closer than that, or none of so many GPUs
enum class Evidence : std::uint8_t { none, measured, near, extrapolated };

/// The property in which the nearest measurements differ from the prediction. The name of `none` is read beside that of
/// Evidence::none, which means the contrary.
enum class EvidenceGap : std::uint8_t {
  none,
  file,
  phase,
  device,
  precision,
  model_kind,
  stack,
  scale,
  degrees
};
SHARDSCAPE_ENUM_NAMES(EvidenceGap, "nothing", "file", "phase", "device", "precision", "model_kind", "stack",
                      "scale", "degrees");

struct Assessment {
  /// Relative, one sigma: of predictions like this, 68 % lie within it. Above 0; NaN where nothing is known.
  double expected_error = std::numeric_limits<double>::quiet_NaN();
  Evidence evidence = Evidence::none;
  /// The one difference from the nearest measurement that adds most to the error.
  EvidenceGap gap = EvidenceGap::none;
};

}  // namespace shardscape
