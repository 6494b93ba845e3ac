// A forward and a backward of another microbatch as one stream of instructions: while the exchange of one pass's
// experts is under way, the other pass computes (DeepSeek-AI 2024, section 3.2.1; Megatron Core:
// overlap_moe_expert_parallel_comm).
//
// One pass runs until it starts an exchange; the other goes on for as long as the exchange is expected to take, but
// for the share of it that the stack does not overlap; then the first pass waits for what is left and goes on. A pass
// that comes to an exchange of its own meanwhile lets the first one wait at once, as both use the same lane.
#pragma once

#include <span>
#include <vector>

#include "engine/step/emit_layer.h"

namespace shardscape::step {

/// The items of both in the order of execution; compute that is interrupted is cut in two. `lane`: of the experts'
/// exchanges. Returns by `hidden` the seconds of exchanges beside which the other pass is expected to compute.
std::vector<LayerEmitter::Item> pair_up(std::span<const LayerEmitter::Item> forward,
                                        std::span<const LayerEmitter::Item> backward, std::int32_t lane,
                                        double overlap, double& hidden);

/// The compute of a pass through a layer and its exchanges of experts on lane 0, which take `exchanges` in all, each as
/// long as their mean.
void append_pieces(const LayerCost& layer, const Segments& segments, Seconds exchanges,
                   std::vector<LayerEmitter::Item>& items);

}  // namespace shardscape::step
