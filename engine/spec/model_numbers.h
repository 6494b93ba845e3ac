// The numbers of a model, of its experts and of its latent attention, one row for each, in the order in which its file
// lists them.
#pragma once

#include <span>

#include "engine/spec/model.h"
#include "engine/spec/number_row.h"

namespace shardscape {

std::span<const NumberRow<ModelSpec>> model_numbers();
/// The numbers of the groups `moe` and `attention` of a model file.
std::span<const NumberRow<MixtureOfExperts>> expert_numbers();
std::span<const NumberRow<LatentAttention>> latent_numbers();

}  // namespace shardscape
