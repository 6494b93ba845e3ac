// How a stack splits the layers over pipeline stages.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/model/stage_layers.h"
#include "engine/spec/model.h"
#include "engine/spec/stack.h"

namespace shardscape::model {

/// Fills `layers` with the blocks of each stage; stage 0 also holds the embedding, the last stage
/// the head.
///
/// uniform   layers / stages each; requires divisibility by stages * virtual_stages.
/// balanced  blocks are assigned in order while the cumulative cost of the stages so far stays below their
///           share of the total; a block costs its matrix parameters, the head vocabulary * hidden, the
///           embedding nothing (nanotron's rule). Late stages may hold few blocks or none. With virtual
///           stages that divide the layers every chunk holds the same; others are filled by that rule, in
///           the order in which a microbatch meets them, and a stage has those of all its chunks.
/// with_ends as uniform where the layers divide by stages * virtual_stages. Else layers + 2 must, and the first
///           chunk and the last hold one block less than the others.
///
/// Returns false where the rule cannot be met.
bool partition_layers(const ModelSpec& model, PartitionRule rule, std::int32_t stages,
                      std::int32_t virtual_stages, std::vector<StageLayers>& layers);

/// Blocks of chunk `chunk` of a stage that holds `layers` in all: they are dealt evenly, the first chunks
/// hold what is over. Timing by stages takes every chunk as their mean.
inline StageLayers layers_of_chunk(const StageLayers& layers, std::int32_t virtual_stages,
                                   std::int32_t chunk) {
  const std::int32_t each = layers.count() / virtual_stages, over = layers.count() % virtual_stages;
  return layers.slice(chunk * each + std::min(chunk, over), each + (chunk < over ? 1 : 0));
}

}  // namespace shardscape::model
