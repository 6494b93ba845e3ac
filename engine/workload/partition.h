// How a stack splits the layers over pipeline stages.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/spec/model.h"
#include "engine/spec/stack.h"

namespace shardscape::workload {

/// Fills `layers` with the number of blocks of each stage; stage 0 also holds the embedding, the last stage
/// the head.
///
/// uniform   layers / stages each; requires divisibility by stages * virtual_stages.
/// balanced  blocks are assigned in order while the cumulative cost of the stages so far stays below their
///           share of the total; a block costs its matrix parameters, the head vocabulary * hidden, the
///           embedding nothing (nanotron's rule). Late stages may hold few blocks or none. With virtual
///           stages that divide the layers every chunk holds the same; others are filled by that rule, in
///           the order in which a microbatch meets them, and a stage has those of all its chunks.
///
/// Returns false where the rule cannot be met.
bool partition_layers(const ModelSpec& model, PartitionRule rule, std::int32_t stages,
                      std::int32_t virtual_stages, std::vector<std::int32_t>& layers);

/// Blocks of chunk `chunk` of a stage that holds `layers` in all: they are dealt evenly, the first chunks
/// hold what is over. Timing by stages takes every chunk as their mean.
constexpr std::int32_t layers_of_chunk(std::int32_t layers, std::int32_t virtual_stages, std::int32_t chunk) {
  return layers / virtual_stages + (chunk < layers % virtual_stages ? 1 : 0);
}

}  // namespace shardscape::workload
