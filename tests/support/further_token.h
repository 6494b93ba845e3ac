// The modules of a model that predict further tokens, by the size of its blocks.
#pragma once

#include "engine/spec/model.h"

namespace shardscape::test {

/// Parameters of these modules (moe.mtp_layers), which share embedding and head, of a model whose last layers have
/// experts. A module has a block, norms of the hidden state, of the embedding and ahead of the head, and the projection
/// of both.
inline double further_token_parameters(const ModelSpec& model) {
  ModelSpec longer = model;
  ++longer.layers;
  const double block = longer.parameters() - model.parameters();
  const auto h = static_cast<double>(model.hidden);
  return static_cast<double>(model.moe->mtp_layers) * (block + 2 * h * h + 3 * model.norm_vectors() * h);
}

}  // namespace shardscape::test
