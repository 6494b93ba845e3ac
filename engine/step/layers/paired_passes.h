// A forward and a backward of another microbatch as one stream of instructions: while the exchange of one pass's
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
// Where prices of layers are put together (layer_timer.h) c_i has what calls of tensor and context groups expose of
// themselves there, too: what compute hides of them no longer stands beside the exchange, and counts once.
//
// When an exchange is waited for stands in overlap.h, what of the hidden seconds is lost in
// LayerEmitter::add_lost_to_exchanges().
#pragma once

#include <span>
#include <vector>

#include "engine/step/layers/emit_layer.h"

namespace shardscape::step {

/// Merges the items of both passes in the order of execution; compute that is interrupted is cut in two. `lane`: that
/// of the exchanges of experts. `hidden` returns the seconds of exchanges beside which the other pass is expected to
/// compute.
std::vector<LayerEmitter::Item> pair_up(std::span<const LayerEmitter::Item> forward,
                                        std::span<const LayerEmitter::Item> backward, std::int32_t lane,
                                        double overlap, double& hidden);

/// Appends items for a pass through a layer, with its exchanges of experts on lane 0; together these take `exchanges`,
/// and each the same time. `pieces`: for each of its parts, the seconds before, between and behind its exchanges.
void append_pieces(std::span<const std::vector<Seconds>> pieces, Seconds exchanges,
                   std::vector<LayerEmitter::Item>& items);

}  // namespace shardscape::step
