// The layout of layers as Megatron Core writes it.
#pragma once

#include <string>

#include "sweep/launch/framework.h"

namespace shardscape::launch {

/// The layout of Megatron Core where the layers do not lie as it deals them unasked; empty: they do.
std::string layer_layout(const Case& of);

}  // namespace shardscape::launch
