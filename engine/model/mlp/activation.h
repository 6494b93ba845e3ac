// The activation between the projections of an MLP.
#pragma once

#include "engine/model/operator_builder.h"

namespace shardscape::model {

/// The activation over `elements` elements of the inner width of all tokens on a rank; a gated MLP has two inputs per
/// element.
Operator activation(const OperatorBuilder& b, double elements);

/// Number of tensors of the inner width whose gradients live at once: inputs and outputs of nonlinearity and product.
inline double activation_gradients(const ModelSpec& model) { return model.gated() ? 4 : 2; }

}  // namespace shardscape::model
