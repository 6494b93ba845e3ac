// How the layers lie over pipeline stages.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/model/stage_layers.h"
#include "engine/spec/model.h"
#include "engine/spec/phase.h"
#include "engine/spec/stack.h"
#include "engine/spec/verdict.h"

namespace shardscape::model {

/// The blocks of every stage and of its chunks. The first chunk of stage 0 also holds the embedding, the last of the
/// last stage the head.
struct Partition {
  std::vector<StageLayers> stages;
  std::vector<StageLayers> chunks;  ///< [stage * virtual_stages + chunk]; they add up to the stages
};

/// The part of a plan that a partition depends on.
struct PartitionCase {
  std::int32_t stages = 1;
  std::int32_t virtual_stages = 1;
  /// Decides whether there are modules that predict further tokens, which only training has.
  Phase phase = Phase::inference;
};

/// Splits the layers as the stack says: by its layout in training, where it has one, else by its rule. Where rules say
/// nothing of them, modules that predict further tokens lie with the head.
///
/// uniform   layers / (stages * virtual_stages) in each chunk, which must divide.
/// balanced  blocks are assigned in order while the cumulative cost of the stages so far stays below their
///           share of the total; a block costs its matrix parameters, the head vocabulary * hidden, the
///           embedding nothing (nanotron's rule). Late stages may hold few blocks or none. With virtual
///           stages that divide the layers every chunk holds the same; others are filled by that rule, in
///           the order in which a microbatch meets them.
/// with_ends as uniform where the layers divide by stages * virtual_stages. Else layers + 2 must, and the first
///           chunk and the last hold one block less than the others. Models with experts: as uneven, since recipes
///           write their layers out.
/// uneven    as with_ends where that can be met. Else layers, modules of further tokens and the loss count as a unit
///           each; every chunk takes ceil(units / chunks) of them and the last what is left, as the layouts of
///           Megatron Bridge have it (DeepSeek-V3, 61 layers and a module: 8 x 7 + 5 on 8 stages, 4 x 15 + 1 on 16,
///           the last with module and loss). Where that leaves the last chunk none, the units are dealt evenly and the
///           first chunks hold what is over.
///
/// Returns false where the rule or the layout cannot be met (partition_rule() says why).
bool partition_layers(const ModelSpec& model, const StackProfile& stack, const PartitionCase& of,
                      Partition& partition);

/// Gives each stage of dualpipe, which had one chunk, what its mirror holds as a second chunk.
void fold_both_ways(Partition& partition);

/// The first rule that the partition breaks; none where partition_layers() succeeds. Takes O(1), but for parsing a
/// layout.
Reason partition_rule(const ModelSpec& model, const StackProfile& stack, const PartitionCase& of);

/// Number of modules that predict further tokens; 0 outside training.
std::int32_t further_modules(const ModelSpec& model, Phase phase);

}  // namespace shardscape::model
