// The token and position tables, on the first stage. The vocabulary is split over the tensor group, whose
// partial rows are added up; learned positions are whole.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/model/layer_key.h"
#include "engine/model/operator.h"
#include "engine/spec/scenario.h"

namespace shardscape::model {

/// The operators for `tokens` tokens in each of key.microbatch sequences.
std::vector<Operator> embedding_operators(const Setting& setting, const LayerKey& key, std::int64_t tokens,
                                          Mode mode);
/// The operators for one new token in each of key.microbatch sequences.
std::vector<Operator> decode_embedding_operators(const Setting& setting, const LayerKey& key);

/// Parameters of the embedding on one rank.
double embedding_parameters(const ModelSpec& model, std::int32_t tensor);

}  // namespace shardscape::model
