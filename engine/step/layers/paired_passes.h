// A forward and a backward of another microbatch as one stream: while the exchange of one pass's
// experts is under way, the other pass computes (DeepSeek-AI 2024, section 3.2.1 and figure 4; Megatron Core:
// overlap_moe_expert_parallel_comm). As there, the order is fixed by the layers, not by how long anything takes.
//
// The exchanges of both passes take turns, the backward's first; of unlike numbers of them, those of each come at even
// distances. What a pass computes between two exchanges of its own runs beside the exchanges of the other pass that
// come between those two, beside each an equal part. A pass that no exchange is left for computes alone.
//
// With exchanges of e_i seconds, parts of c_i beside them, and C and E of compute and of exchanges in all, a pair takes
//
//     C + E - sum of min(overlap e_i, c_i),
//
// where every second computed is in one c_i at most. Nothing that takes longer makes a pair shorter, then. An order
// that followed the lengths would not keep that: list scheduling has Graham's anomalies (Graham 1969, "Bounds on
// multiprocessing timing anomalies").
//
// Where prices of layers are put together (stage_passes.cc) c_i also has the calls of ranks that split an expert, and
// what calls of tensor and context groups expose of themselves there: what compute hides of them no longer stands
// beside the exchange, and counts once.
//
// When an exchange is waited for stands in overlap.h, what of the hidden seconds is lost in
// LayerEmitter::add_lost_to_exchanges().
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/quantity.h"

namespace shardscape::step {

/// What a pass does next, as a pair sees it.
struct PairStep {
  enum class Kind : std::uint8_t { compute, exchange, wait, other };
  Kind kind =
      Kind::compute;   ///< an exchange of experts that begins, the wait for it, or anything else but compute
  double seconds = 0;  ///< of compute and waits
};

struct PairOrder {
  struct Part {
    bool backward = false;  ///< of that pass
    std::size_t step = 0;   ///< index in its list
    double seconds = 0;     ///< of compute: the part of it that runs now
  };
  std::vector<Part> parts;  ///< in the order of execution; compute that is interrupted comes in parts
  double hidden = 0;        ///< seconds of exchanges beside which the other pass computes
};

/// Merges both passes.
PairOrder pair_up(std::span<const PairStep> forward, std::span<const PairStep> backward, double overlap);

/// Appends a pass through a layer, whose exchanges of experts together take `exchanges`, and each the same time.
/// `pieces`: for each of its parts, the seconds before, between and behind its exchanges.
void append_pieces(std::span<const std::vector<Seconds>> pieces, Seconds exchanges,
                   std::vector<PairStep>& steps);

}  // namespace shardscape::step
