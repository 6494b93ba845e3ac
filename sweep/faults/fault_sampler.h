// Turns (seed, sample) into faults: every plan meets the same ones, and any sample can be drawn by itself. The places
// where faults of each kind can fall on a fabric.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/network/fabric/fabric.h"
#include "engine/spec/fault.h"
#include "sweep/faults/fault_study.h"

namespace shardscape::sweep {

/// A thing that can break.
struct FaultPlace {
  std::int32_t link = -1;           ///< id of a link (the lower one where both directions break together)
  std::int32_t device = -1;         ///< rank of a device, lowest rank on an adapter, or vertex of a switch
  std::vector<std::int32_t> links;  ///< the directed links that the fault affects
};

/// The places of one kind, in a fixed order; empty where the fabric has none.
///   links     the physical links: both directions together, or each alone under one_way
///   devices   the ranks
///   adapters  of each GPU in the scale-out dimensions, or in the outermost where there are none: its own
///             links there; GPUs that share an adapter lose it together, a GPU with several loses all
///   switches  vertices that are neither ranks nor adapters
std::vector<FaultPlace> fault_places(FaultKind kind, const FaultStudy& study, const network::Fabric& fabric);

/// The physical links between two vertices in either direction, as ids of one direction; empty where there are none.
std::vector<std::int32_t> links_between(const network::Fabric& fabric, std::int32_t a, std::int32_t b);

/// One fault of a sample.
struct DrawnFault {
  FaultKind kind = FaultKind::soft_link;
  std::int32_t link = -1;    ///< for faults of links, else -1
  std::int32_t device = -1;  ///< for other faults (see FaultPlace::device), else -1
  double derate = 1;         ///< share that remains; 0 where nothing does
};

/// Adds the effects of `fault` at `place` to `set`.
void apply_fault(const FaultPlace& place, const DrawnFault& fault, Seconds added_latency, FaultSet& set);

struct FaultDraw {
  std::uint64_t sample = 0;
  std::vector<DrawnFault> faults;  ///< as many as the study's `simultaneous`
  FaultSet set;                    ///< their effects on the machine
};

/// Draws samples. Immutable; any number of threads may use one object.
class FaultSampler {
 public:
  /// `study` must be valid for `fabric`.
  FaultSampler(const FaultStudy& study, const network::Fabric& fabric);

  /// Number of samples per point: the study's, or the number of places under `exhaustive`.
  [[nodiscard]] std::uint64_t samples() const { return samples_; }
  /// Draws a sample: a pure function of the study and `sample`, which may lie beyond samples() unless exhaustive.
  /// Numbers come from CounterRng(seed, sample): for each fault one for the kind (if there are several), one for the
  /// place (none under `exhaustive`; drawn again where the place is taken), one for the derate.
  [[nodiscard]] FaultDraw draw(std::uint64_t sample) const;

 private:
  struct Kind {
    FaultKind kind;
    double up_to;  ///< cumulative share of the weights
    std::vector<FaultPlace> places;
  };
  [[nodiscard]] const Kind& kind_at(double uniform) const;

  FaultStudy study_;
  std::vector<Kind> kinds_;
  DistributionSampler derate_;
  std::uint64_t samples_ = 0;
};

}  // namespace shardscape::sweep
