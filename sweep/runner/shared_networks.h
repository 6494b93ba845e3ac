// Fabrics and prices of collectives that threads of a sweep, and its settings, share.
#pragma once

#include <memory>

#include "engine/network/prices/curve_store.h"

namespace shardscape::sweep {

/// Keeps what is known of networks that some simulator holds, and of the last few others. If two threads ask for a
/// curve at once it may be made twice, with equal results.
std::shared_ptr<network::SharedNetworks> shared_networks();

}  // namespace shardscape::sweep
