// Fabrics and costs of collectives that the threads of a sweep, and its settings, have in common.
#pragma once

#include <memory>

#include "engine/network/curve_store.h"

namespace shardscape::sweep {

/// Keeps what is known of networks that a simulator has, and of the last few without one. A curve that two threads ask
/// for at the same time may be made twice; they are equal.
std::shared_ptr<network::SharedNetworks> shared_networks();

}  // namespace shardscape::sweep
